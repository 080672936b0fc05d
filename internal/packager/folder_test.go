package packager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

func TestFolder_Refused(t *testing.T) {
	good := tree{"metadata.json": sidecar, "rechnung.pdf": "%PDF"}
	link := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			kit.Missing(t, "a file system that can make it: "+err.Error())
		}
	}
	for _, row := range []struct {
		name  string
		files tree
		more  func(t *testing.T, dir string)
		words []string
	}{
		{"Empty", tree{}, nil, []string{"The folder is empty"}},
		{"OnlyJunk", tree{"Thumbs.db": "x"}, nil, []string{"The folder is empty"}},
		{"OnlySidecar", tree{"metadata.json": sidecar}, nil, []string{"no invoice beside metadata.json"}},
		{"OnlySidecarAndJunk", tree{"metadata.json": sidecar, "._a.pdf": "x", "_REASON.txt": "x", "sub/.DS_Store": "x"}, nil, []string{"no invoice beside metadata.json"}},
		{"NoSidecar", tree{"a.pdf": "x"}, nil, []string{"no metadata.json", "_template"}},
		{"SidecarHidesItsExtension", tree{"a.pdf": "x", "metadata.json.txt": sidecar}, nil, []string{"has metadata.json.txt in place of metadata.json", "Rename it to metadata.json (Explorer: View > File name extensions)"}},
		{"SidecarMisspelt", tree{"a.pdf": "x", "metdata.json": sidecar}, nil, []string{"has metdata.json in place of"}},
		{"TwoSidecars", tree{"a.pdf": "x", "metadata.json": sidecar, "Metadata.json": sidecar}, nil, []string{"metadata.json has the same name as Metadata.json"}},
		{"EmptyFiles", tree{"metadata.json": sidecar, "a.pdf": "", "b.xml": ""}, nil, []string{"a.pdf is empty: it has 0 bytes"}},
		{"Link", good, func(t *testing.T, dir string) { link(t, os.Symlink("rechnung.pdf", dir+"/b.pdf")) }, []string{"b.pdf is a link, not a file", "Put the file itself"}},
		{"LinkOutside", good, func(t *testing.T, dir string) { link(t, os.Symlink("/etc/passwd", dir+"/b.pdf")) }, []string{"b.pdf is a link"}},
		{"LinkLoop", good, func(t *testing.T, dir string) { link(t, os.Symlink(".", dir+"/loop")) }, []string{"loop is a link"}},
		{"SidecarIsALink", tree{"a.pdf": "x", "b.txt": sidecar}, func(t *testing.T, dir string) { link(t, os.Symlink("b.txt", dir+"/metadata.json")) }, []string{"metadata.json is a link"}},
		{"HardLink", good, func(t *testing.T, dir string) {
			link(t, os.Link(dir+"/rechnung.pdf", filepath.Join(t.TempDir(), "x")))
		}, []string{"rechnung.pdf is a hard link"}},
		{"Pipe", good, func(t *testing.T, dir string) { link(t, syscall.Mkfifo(dir+"/pipe.pdf", 0o644)) }, []string{"pipe.pdf is a named pipe, not a file"}},
		{"PipeInJunk", good, func(t *testing.T, dir string) {
			link(t, errors.Join(os.Mkdir(dir+"/@eaDir", 0o755), syscall.Mkfifo(dir+"/@eaDir/p", 0o644)))
		}, []string{"@eaDir/p is a named pipe"}},
		{"Socket", good, func(t *testing.T, dir string) {
			t.Chdir(dir) // the name of a socket is short
			l, err := net.Listen("unix", "s")
			link(t, err)
			t.Cleanup(func() { l.Close() })
		}, []string{"s is a socket"}},
		{"Device", good, func(t *testing.T, dir string) { link(t, syscall.Mknod(dir+"/null", syscall.S_IFCHR|0o644, 1<<8|3)) }, []string{"null is a device"}},
		{"NestedTooDeeply", tree{"metadata.json": sidecar, "1/2/3/4/5/6/7/8/9/a.pdf": "x"}, nil, []string{"1/2/3/4/5/6/7/8/9 has folders nested deeper than 8"}},
		{"NewlineInName", tree{"metadata.json": sidecar, "a\nb.pdf": "x"}, nil, []string{`a\x0ab.pdf has a line break`}},
		{"EscapeInName", tree{"metadata.json": sidecar, "a\x1b[31m.pdf": "x"}, nil, []string{`a\x1b[31m.pdf has a line break or another control`}},
		{"InvalidUTF8", tree{"metadata.json": sidecar, "a\xffb.pdf": "x"}, nil, []string{"a�b.pdf has a name that is not valid UTF-8"}},
		{"Backslash", tree{"metadata.json": sidecar, `..\..\a.pdf`: "x"}, nil, []string{`..\..\a.pdf has a backslash`}},
		{"CaseTwins", tree{"metadata.json": sidecar, "a.pdf": "x", "A.PDF": "y"}, nil, []string{"a.pdf has the same name as A.PDF but for capital letters"}},
		{"UnicodeTwins", tree{"metadata.json": sidecar, "M\u00fc.pdf": "x", "Mu\u0308.pdf": "y"}, nil, []string{"has the same name as"}},
		{"FolderTwins", tree{"metadata.json": sidecar, "sub/a.pdf": "x", "SUB/b.pdf": "y"}, nil, []string{"sub has the same name as SUB"}},
		{"HugeSparseFile", good, func(t *testing.T, dir string) { link(t, os.Truncate(dir+"/rechnung.pdf", 100_000_000_000)) }, []string{"The folder holds 100000 MB; the archive takes 100 MB. Largest: rechnung.pdf, 100000 MB"}},
		{"HugeSparseSidecar", good, func(t *testing.T, dir string) { link(t, os.Truncate(dir+"/metadata.json", 100_000_000_000)) }, []string{"such a file has at most"}},
		{"HugeMarker", good, func(t *testing.T, dir string) {
			write(t, dir+"/.done", "")
			link(t, os.Truncate(dir+"/.done", 100_000_000_000))
		}, []string{".done has 100000 MB; a marker has at most"}},
		{"SidecarAndFolderAtOnce", tree{"metadata.json": strings.Replace(sidecar, "EUR", "Euro", 1), `a\b`: "x"}, nil, []string{"2 things", "ISO 4217", "backslash"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, root := drop(t, row.files)
			if row.more != nil {
				row.more(t, dir)
			}
			refusalOf(t, root, rules, row.words...)
		})
	}
}

func TestFolder_TooManyFiles(t *testing.T) {
	dir, root := drop(t, tree{"metadata.json": sidecar})
	for i := range maxFiles + 1 {
		write(t, fmt.Sprintf("%s/%d.pdf", dir, i), "x")
	}
	refusalOf(t, root, rules, "has 1001 files; one invoice has at most 1000")
}

func TestFolder_I21_ListingStopsAtItsBound(t *testing.T) {
	dir, root := drop(t, tree{"metadata.json": sidecar})
	for i := range maxEntries + 2_000 {
		kit.Must(t, os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o644))
	}
	refusalOf(t, root, rules, "more than 10000 files and folders")
	l, err := listFolder(root, rules.withDefaults())
	kit.Check(t, err == nil && l.isTooMany && l.entries <= maxEntries+512,
		"read %d entries, full %v, %v", l.entries, l.isTooMany, err)
}

func TestFolder_JunkOthersAndNames(t *testing.T) {
	_, root := drop(t, tree{
		"metadata.json": sidecar, "Mu\u0308ller/Rechnung 1.pdf": "%PDF", "b.xml": "<b/>", "Maße.txt": "1", "Masse.txt": "2",
		"THUMBS.DB": "j", "sub/._b": "j", "@eaDir/x/y@SynoResource": "j", "_Reason.txt": "j", "_RECEIPT.json": "j",
		".DONE": "", "manifest-sha256.txt": digestOf("<b/>") + "  b.xml\n", "sub/metadata.json": "{}", "sub-a": "-", "1/2/3/4/5/6/7/8/deep": "d",
	})
	s := mustBuild(t, root, rules)
	paths := func(files []archive.File) (p []string) {
		for _, f := range files {
			p = append(p, f.Path)
		}
		return p
	}
	if got, want := paths(s.Files), []string{"1/2/3/4/5/6/7/8/deep", "Masse.txt", "Maße.txt", "Müller/Rechnung 1.pdf", "b.xml", "sub-a", "sub/metadata.json"}; !slices.Equal(got, want) {
		t.Errorf("files %q", got)
	}
	kit.Want(t, "junk", s.Junk, []string{"@eaDir/x/y@SynoResource", "THUMBS.DB", "_RECEIPT.json", "_Reason.txt", "sub/._b"})
	if got, want := paths(s.Others), []string{"metadata.json", "manifest-sha256.txt", ".DONE"}; !slices.Equal(got, want) {
		t.Errorf("others %q", got)
	}
	kit.Check(t, s.Others[0].SHA256 == archive.Sum([]byte(sidecar)) && s.Content == archive.ContentDigest(s.Files) && !s.HasChosenID,
		"digests of %+v", s)
	kit.Want(t, "identity", s.ID, archive.DeriveID("VAULT-1", s.Content, archive.Sum(s.Metadata)))
}

func TestFolder_IncludeSidecar(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
	r := rules
	r.IncludeSidecar = true
	s := mustBuild(t, root, r)
	kit.Check(t, len(s.Files) == 2 && s.Files[1].Path == "metadata.json" && len(s.Others) == 0,
		"files %v, others %v", s.Files, s.Others)
}

func TestLists(t *testing.T) {
	listed := func(files string) string {
		return strings.Replace(sidecar, `"amount"`, `"files": [`+files+"],\n  \"amount\"", 1)
	}
	for _, row := range []struct {
		name     string
		complete string
		files    tree
		words    []string // none: accepted
	}{
		{"AllNamed", "list", tree{"metadata.json": listed(`"a.pdf", "sub\\B.xml"`), "a.pdf": "a", "sub/b.xml": "b"}, nil},
		{"NamedWithDigest", "list", tree{"metadata.json": listed(`{"name": "./a.pdf", "size": 1, "sha256": "` + strings.ToUpper(digestOf("a")) + `"}`), "a.pdf": "a"}, nil},
		{"NamedByManifest", "list", tree{"metadata.json": sidecar, "Manifest-SHA256.txt": "\xef\xbb\xbf# made by us\r\n" + digestOf("a") + " *a.pdf\r\n\r\n" + digestOf(sidecar) + "  metadata.json\r\n", "a.pdf": "a"}, nil},
		{"NamedByBothTogether", "list", tree{"metadata.json": listed(`"a.pdf"`), "manifest-sha256.txt": digestOf("b") + "  b.xml", "a.pdf": "a", "b.xml": "b"}, nil},
		{"NamedInNFD", "list", tree{"metadata.json": listed(`"Mu` + "\u0308" + `.pdf"`), "M\u00fc.pdf": "a"}, nil},
		{"ExtraFileQuiet", "quiet", tree{"metadata.json": listed(`"a.pdf"`), "a.pdf": "a", "b.xml": "b"}, nil},
		{"ExtraFile", "list", tree{"metadata.json": listed(`"a.pdf"`), "a.pdf": "a", "b.xml": "b"}, []string{"b.xml is in the folder but not in the list"}},
		{"NoList", "list", tree{"metadata.json": sidecar, "a.pdf": "a"}, []string{`metadata.json, "files" is missing. Write "files": ["rechnung.pdf"]`}},
		{"Missing", "quiet", tree{"metadata.json": listed(`"a.pdf", "b.xml"`), "a.pdf": "a"}, []string{`metadata.json, line 8, "files"[1]: b.xml is not in the folder`}},
		{"MissingInManifest", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": "\n" + digestOf("b") + "  b.xml", "a.pdf": "a"}, []string{`manifest-sha256.txt, line 2, "b.xml": b.xml is not in the folder`}},
		{"SizeDiffers", "quiet", tree{"metadata.json": listed(`{"name": "a.pdf", "size": 2}`), "a.pdf": "a"}, []string{"the size of a.pdf is 1, not 2"}},
		{"DigestDiffers", "quiet", tree{"metadata.json": listed(`{"name": "a.pdf", "sha256": "` + digestOf("b") + `"}`), "a.pdf": "a"}, []string{"a.pdf is not the file that is meant", "Copy a.pdf into the folder again"}},
		{"DigestInManifestDiffers", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": digestOf("b") + "  a.pdf", "a.pdf": "a"}, []string{`manifest-sha256.txt, line 1, "a.pdf": a.pdf is not the file`}},
		{"SidecarDiffers", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": digestOf("b") + "  metadata.json", "a.pdf": "a"}, []string{"metadata.json is not the file that is meant"}},
		{"ManifestBroken", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": "abc  a.pdf\n", "a.pdf": "a"}, []string{"manifest-sha256.txt is unreadable at line 1, column 1: this line is not a SHA-256"}},
		{"ManifestLeavesTheFolder", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": digestOf("b") + "  ../a.pdf\n", "a.pdf": "a"}, []string{"unreadable at line 1"}},
		{"ManifestEmpty", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": "", "a.pdf": "a"}, []string{"manifest-sha256.txt is empty"}},
		{"ManifestTwice", "quiet", tree{"metadata.json": sidecar, "manifest-sha256.txt": strings.Repeat(digestOf("a")+"  a.pdf\n", 2), "a.pdf": "a"}, []string{"line 2", "named a second time"}},
		{"NoMarker", "marker", tree{"metadata.json": sidecar, "a.pdf": "a"}, []string{"no file .done"}},
		{"Marker", "marker", tree{"metadata.json": sidecar, "a.pdf": "a", ".done": ""}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, root := drop(t, row.files)
			r := rules
			r.Complete = row.complete
			if row.words == nil {
				mustBuild(t, root, r)
				return
			}
			refusalOf(t, root, r, row.words...)
		})
	}
}

func TestComplete(t *testing.T) {
	listed := strings.Replace(sidecar, `"amount"`, `"files": ["Rechnung.pdf", "sub/b.xml"], "amount"`, 1)
	for _, row := range []struct {
		name, complete string
		files          tree
		missing        string
	}{
		{"Quiet", "quiet", tree{}, ""},
		{"NothingYet", "list", tree{"a.pdf": "a"}, "metadata.json"},
		{"NoListYet", "list", tree{"metadata.json": sidecar}, "manifest-sha256.txt"},
		{"SomeThere", "list", tree{"metadata.json": listed, "RECHNUNG.pdf": ""}, "sub/b.xml"},
		{"AllThere", "list", tree{"metadata.json": listed, "Rechnung.pdf": "", "sub/b.xml": ""}, ""},
		{"Manifest", "list", tree{"metadata.json": sidecar, "manifest-sha256.txt": digestOf("") + "  a.pdf\n" + digestOf("") + "  metadata.json\n"}, "a.pdf"},
		{"OtherFieldsMayBeWrong", "list", tree{"metadata.json": strings.Replace(listed, "EUR", "Euro", 1)}, "Rechnung.pdf sub/b.xml"},
		{"NoMarkerYet", "marker", tree{"metadata.json": sidecar}, ".done"},
		{"Marker", "marker", tree{"metadata.json": "?", ".done": ""}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, root := drop(t, row.files)
			missing, err := FindMissingFiles(root, Rules{Vault: "V", Complete: row.complete})
			kit.Check(t, err == nil && strings.Join(missing, " ") == row.missing, "missing %q, %v", missing, err)
		})
	}
	for _, src := range []string{`{"files": `, `{"files": [1]}`, ""} {
		_, root := drop(t, tree{"metadata.json": src})
		_, err := FindMissingFiles(root, Rules{Vault: "V", Complete: "list"})
		kit.Check(t, isRefusal(err), "sidecar %q: %v", src, err)
	}
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*Refusal](err)
	return ok
}

func TestBuild_I17_ChangeWhileReading(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(t *testing.T, dir string)
	}{
		{"Grows", func(t *testing.T, dir string) { write(t, dir+"/b.xml", "longer than it was") }},
		{"Shrinks", func(t *testing.T, dir string) { write(t, dir+"/b.xml", "") }},
		{"SameSize", func(t *testing.T, dir string) { write(t, dir+"/b.xml", "<c/>") }},
		{"IsSwapped", func(t *testing.T, dir string) {
			write(t, dir+"/new", "<b/>")
			kit.Must(t, os.Rename(dir+"/new", dir+"/b.xml"))
		}},
		{"BecomesALink", func(t *testing.T, dir string) {
			kit.Must(t, errors.Join(os.Remove(dir+"/b.xml"), os.Symlink("/etc/passwd", dir+"/b.xml")))
		}},
		{"BecomesAPipe", func(t *testing.T, dir string) {
			kit.Must(t, errors.Join(os.Remove(dir+"/b.xml"), syscall.Mkfifo(dir+"/b.xml", 0o644)))
		}},
		{"IsRemoved", func(t *testing.T, dir string) { os.Remove(dir + "/b.xml") }},
		{"EarlierFileChanges", func(t *testing.T, dir string) { write(t, dir+"/a.pdf", "%PDG") }},
		{"SidecarChanges", func(t *testing.T, dir string) { write(t, dir+"/metadata.json", sidecar+" ") }},
		{"FileIsAdded", func(t *testing.T, dir string) { write(t, dir+"/sub/c.pdf", "x") }},
		{"TemporaryFileIsAdded", func(t *testing.T, dir string) { write(t, dir+"/~$a.docx", "x") }},
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(row.name+"/"+when+"Open", func(t *testing.T) {
				dir, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "%PDF", "b.xml": "<b/>"})
				r := rules
				r.openFile = func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
					if path != "b.xml" {
						return durable.OpenRegular(root, path)
					}
					if when == "before" {
						row.do(t, dir)
					}
					f, info, err := durable.OpenRegular(root, path)
					if when == "after" {
						row.do(t, dir)
					}
					return f, info, err
				}
				kit.Fails(t, "got", kit.Err(build(t, root, r)), archive.ErrChanged)
			})
		}
	}
}

func TestBuild_I17_ARefusalIsAboutAFolderThatStoodStill(t *testing.T) {
	dir, root := drop(t, tree{"metadata.json": `{"documentType": `, "a.pdf": "x"})
	r := rules
	r.openFile = func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
		write(t, dir+"/b.pdf", "still copying")
		return durable.OpenRegular(root, path)
	}
	kit.Fails(t, "got", kit.Err(build(t, root, r)), archive.ErrChanged)
}

// TestFolder_I18_ANoteFurtherDownIsContent: vaultd writes its notes at the top
// of a folder. A file of such a name in a subfolder is a user's: it is archived,
// and not removed as junk.
func TestFolder_I18_ANoteFurtherDownIsContent(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "%PDF", "_REASON.txt": "j", "sub/_REASON.txt": "the user's", "sub/_receipt.json": "{}"})
	s := mustBuild(t, root, rules)
	var paths []string
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	kit.Want(t, "files", paths, []string{"a.pdf", "sub/_REASON.txt", "sub/_receipt.json"})
	kit.Want(t, "junk", s.Junk, []string{"_REASON.txt"})
}

func TestBuild_JunkMayComeAndGo(t *testing.T) {
	dir, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
	r := rules
	r.openFile = func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
		write(t, dir+"/Thumbs.db", path)
		return durable.OpenRegular(root, path)
	}
	kit.Want(t, "junk", mustBuild(t, root, r).Junk, []string{"Thumbs.db"})
}

func plainRules(string) Rules { return Rules{Vault: "V"} }

// failOn fails each operation of one kind without doing it.
func failOn(failing string, err error) durable.Hook {
	return func(op, _ string, do func() error) error {
		if op == failing {
			return err
		}
		return do()
	}
}

func TestBuild_I24_EnvironmentIsNoRefusal(t *testing.T) {
	for _, row := range []struct {
		name  string
		rules func(dir string) Rules
		hook  durable.Hook
		want  error
		words string
	}{
		{"NoRightToRead", func(string) Rules {
			return Rules{Vault: "V", openFile: func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
				return nil, nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
			}}
		}, nil, fs.ErrPermission, `open "metadata.json": permission denied`},
		{"DiskFull", plainRules, failOn("write", syscall.ENOSPC), syscall.ENOSPC, "no space left"},
		{"SyncFails", plainRules, failOn("sync", syscall.EIO), durable.ErrSync, "finish ZIP"},
		{"ReadFails", func(dir string) Rules {
			return Rules{Vault: "V", openFile: func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
				f, info, err := durable.OpenRegular(root, path)
				if path == "a.pdf" && err == nil {
					f.Close()
					f, err = os.OpenFile(filepath.Join(dir, path), os.O_WRONLY, 0) // cannot be read from
				}
				return f, info, err
			}}
		}, nil, syscall.EBADF, `read "a.pdf": bad file descriptor`},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
			_, err := buildWithHook(t, root, row.rules(dir), row.hook)
			if err == nil || isRefusal(err) || errors.Is(err, archive.ErrChanged) || !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.words) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestBuild_UnreadableFileForReal(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything; TestBuild_I24_EnvironmentIsNoRefusal plays it")
	}
	dir, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
	kit.Must(t, os.Chmod(dir+"/a.pdf", 0))
	_, err := build(t, root, rules)
	kit.Check(t, errors.Is(err, fs.ErrPermission) && !isRefusal(err), "got %v", err)
}

func TestBuild_FolderGoneIsNotEmpty(t *testing.T) {
	dir, root := drop(t, tree{"metadata.json": sidecar})
	kit.Must(t, errors.Join(os.Remove(dir+"/metadata.json"), os.Remove(dir)))
	_, err := build(t, root, rules)
	kit.Check(t, err != nil && !isRefusal(err), "got %v", err)
}

func TestBuild_Canceled(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Fails(t, "got", kit.Err(buildAt(ctx, root, rules, filepath.Join(t.TempDir(), "a.zip"))), context.Canceled)
}

// The identity of what was dropped is for ever: neither another compressor nor
// another version of this package may change it.
func TestBuild_IdentityIsGolden(t *testing.T) {
	const want = "a155a060-eb2b-5e9d-9cc6-4a5034757751"
	files := tree{"metadata.json": sidecar, "Müller/rechnung.pdf": "%PDF", "b.xml": "<b/>"}
	respelt := tree{"METADATA.json": "\xef\xbb\xbf" + strings.NewReplacer("\n", "\r\n", "2026-10-31", "2026-10-31T00:00:00Z", "Söhne", `S\u00f6hne`).Replace(sidecar),
		"Mu\u0308ller/rechnung.pdf": "%PDF", "b.xml": "<b/>", ".done": "", "Thumbs.db": "x"}
	for _, compression := range []string{"fast", "default", "max"} {
		for name, dropped := range map[string]tree{"AsIs": files, "SpeltInAnotherWay": respelt} {
			_, root := drop(t, dropped)
			s := mustBuild(t, root, Rules{Vault: "VAULT-1", Compression: compression})
			kit.Want(t, fmt.Sprintf("%s, %s: identity", name, compression), s.ID.String(), want)
		}
	}
	_, root := drop(t, files)
	s := mustBuild(t, root, Rules{Vault: "VAULT-2"})
	kit.Check(t, s.ID.String() != want, "another vault, the same identity")
}
