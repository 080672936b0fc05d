package packager

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"io/fs"
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

var pdfRules = PDFRules{Receiving: "ap@in.example", Notify: "clerk@acme.example", MaxSize: 100_000}

const goodPDF = "%PDF-1.7\nhello\n%%EOF\n"

// copyPDF copies the PDF of root into a fresh spool.
func copyPDF(t *testing.T, root *os.Root, r PDFRules, hook durable.Hook) (Sealed, string, error) {
	t.Helper()
	return intoSpool(t, "k.pdf", hook, func(dir *durable.Dir) (Sealed, error) {
		return BuildPDF(context.Background(), root, r, dir, "k.pdf")
	})
}

// I4: the copy has the bytes of the PDF, and everything about it follows from those bytes and the rules.
func TestPDF_I4_ByteCopy(t *testing.T) {
	kit.Rows(t, map[string]string{
		"Small": goodPDF, "HeadLater": strings.Repeat(" ", 1000) + goodPDF, "EndEarlier": goodPDF + strings.Repeat("\x00", 1000),
		"TwoPieces": "%PDF-1.7" + strings.Repeat("x", chunkSize-4) + "%%EOF", "EndInTwoPieces": "%PDF-1.7" + strings.Repeat("x", chunkSize-8-2) + "%%EOF", "OneByteMore": "%PDF-" + strings.Repeat("x", chunkSize-9) + "%%EOF",
	}, func(t *testing.T, content string) {
		dir, root := drop(t, tree{"Mu\u0308ller 7.PDF": content, "_REASON.txt": "old", "Thumbs.db": "x"})
		s, path, err := copyPDF(t, root, pdfRules, nil)
		kit.Must(t, err)
		copied, _ := os.ReadFile(path)
		sum := archive.Sum([]byte(content))
		if string(copied) != content || s.Content != sum || s.Package != (archive.Package{Path: "k.pdf", Size: int64(len(content)), SHA256: sum, MD5: md5.Sum([]byte(content))}) {
			t.Errorf("%+v", s.Package)
		}
		if !slices.Equal(s.Files, []archive.File{{Path: "M\u00fcller 7.PDF", Size: int64(len(content)), SHA256: sum}}) || !slices.Equal(s.Junk, []string{"Thumbs.db", "_REASON.txt"}) {
			t.Errorf("%+v, %q, want s.Files = %v, s.Junk = %v", s.Files, s.Junk, []archive.File{{Path: "M\u00fcller 7.PDF", Size: int64(len(content)), SHA256: sum}}, []string{"Thumbs.db", "_REASON.txt"})
		}
		want := `{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":"clerk@acme.example"}`
		if string(s.Metadata) != want || s.ID != archive.DerivePDFID("ap@in.example", sum) || s.MetadataDigest != archive.Sum([]byte("ap@in.example")) {
			t.Errorf("%s, %s, %s, want string(s.Metadata) = %v, s.ID = %v, s.Metadata = %v", s.Metadata, s.ID, s.MetadataDigest, want, archive.DerivePDFID("ap@in.example", sum), archive.Sum([]byte("ap@in.example")))
		}
		// Another name and another person to tell make no other document.
		kit.Must(t, os.Rename(filepath.Join(dir, "Mu\u0308ller 7.PDF"), dir+"/x"))
		r := pdfRules
		r.Notify = "other@acme.example"
		if again, _, err := copyPDF(t, root, r, nil); err != nil || again.ID != s.ID || again.MetadataDigest != s.MetadataDigest || again.Package != s.Package {
			t.Errorf("%+v, %v, want no error, again.ID = %v, again.MetadataDigest = %v, again.Package = %v", again, err, s.ID, s.MetadataDigest, s.Package)
		}
		kit.Want(t, "info.Mode()", kit.Value(os.Stat(path))(t).Mode(), 0o600)
	})
}

// Each bad file has its words for the clerk who dropped it.
func TestPDF_Refused(t *testing.T) {
	link := func(t *testing.T, dir string) { os.Symlink("/etc/passwd", dir+"/scan7.pdf") }
	type row struct {
		files tree
		more  func(t *testing.T, dir string)
		text  string
	}
	kit.Rows(t, map[string]row{
		"NoPDF":         {files: tree{"brief.docx": "PK\x03\x04 a document %%EOF"}, text: `NOT SENT. "brief.docx" is no PDF. Save it as PDF, then move the PDF back.`},
		"LargeNoPDF":    {files: tree{"brief.docx": strings.Repeat("x", 90_000)}, text: `NOT SENT. "brief.docx" is no PDF. Save it as PDF, then move the PDF back.`},
		"HeadTooLate":   {files: tree{"a.pdf": strings.Repeat(" ", 1020) + goodPDF}, text: `NOT SENT. "a.pdf" is no PDF. Save it as PDF, then move the PDF back.`},
		"OnlyTheHead":   {files: tree{"scan7.pdf": "%PDF-1.7\n%\xaa\xab\n"}, text: `NOT SENT. "scan7.pdf" is no PDF. Save it as PDF, then move the PDF back.`},
		"Empty":         {files: tree{"scan7.pdf": ""}, text: `NOT SENT. "scan7.pdf" is empty: it has 0 bytes. Scan it again.`},
		"TooLarge":      {files: tree{"scan7.pdf": goodPDF + strings.Repeat("x", 100_000) + "%%EOF"}, text: `NOT SENT. "scan7.pdf" has 0.1 MB; the service takes 0.1 MB. Save it as a smaller PDF, then move the PDF back.`},
		"Sparse100GB":   {more: func(t *testing.T, dir string) { write(t, dir+"/a.pdf", ""); os.Truncate(dir+"/a.pdf", 100_000_000_000) }, text: `NOT SENT. "a.pdf" has 100000 MB; the service takes 0.1 MB. Save it as a smaller PDF, then move the PDF back.`},
		"Link":          {more: link, text: `NOT SENT. scan7.pdf is a link, not a file. Put the file itself in its place, then move the PDF back.`},
		"FIFO":          {more: func(t *testing.T, dir string) { syscall.Mkfifo(dir+"/scan7.pdf", 0o600) }, text: `NOT SENT. scan7.pdf is a named pipe, not a file. Delete it, then move the PDF back.`},
		"HardLink":      {files: tree{"scan7.pdf": goodPDF}, more: func(t *testing.T, dir string) { os.Link(dir+"/scan7.pdf", dir+"-other") }, text: `NOT SENT. scan7.pdf is a hard link: it exists under a second name elsewhere. Copy the file in its place, then move the PDF back.`},
		"TwoFiles":      {files: tree{"a.pdf": goodPDF, "b.pdf": goodPDF}, text: `NOT SENT. The folder holds more than a single PDF. Move each PDF back by itself.`},
		"InAFolder":     {files: tree{"Mai/b.pdf": goodPDF}, text: `NOT SENT. The folder holds more than a single PDF. Move each PDF back by itself.`},
		"OnlyJunk":      {files: tree{"Thumbs.db": "x"}, text: `NOT SENT. The folder is empty. Put the PDF itself into the drop folder.`},
		"NewlineInName": {files: tree{"a\nb.pdf": goodPDF}, text: "NOT SENT. a\\x0ab.pdf has a line break or another control character in its name. Rename it, with letters, digits, spaces, points and hyphens, then move the PDF back."},
		"InvalidName":   {files: tree{"a\xff.pdf": goodPDF}, text: "not valid UTF-8"},
		"TurnedName":    {files: tree{"a\u202efdp.exe": goodPDF}, text: "turns the reading direction"},
		"Backslash":     {files: tree{`..\x.pdf`: goodPDF}, text: "backslash"},
	}, func(t *testing.T, row row) {
		dir, root := drop(t, row.files)
		if row.more != nil {
			row.more(t, dir)
		}
		_, _, err := copyPDF(t, root, pdfRules, nil)
		refused, ok := errors.AsType[*Refusal](err)
		kit.Need(t, ok, "got %v, want a refusal", err)
		said := strings.TrimSuffix(refused.Text(), "\n")
		kit.Check(t, said == row.text || !strings.HasPrefix(row.text, "NOT") && strings.Contains(said, row.text), "got  %s\nwant %s", said, row.text)
		for file := range row.files {
			if _, err := ValidatePDF(context.Background(), root, file, pdfRules); len(row.files) == 1 && file == filepath.Base(file) && file != "Thumbs.db" && (err == nil || err.Error() != refused.Error()) {
				t.Errorf("ValidatePDF says %v, BuildPDF %v", err, refused)
			}
		}
		if strings.Contains(refused.Text(), "ARCHIVED") || !strings.HasPrefix(refused.Error(), "PDF refused: ") {
			t.Errorf("%s\n%s\nwant refused.Text() without \"ARCHIVED\", refused that begins with \"PDF refused: \"", refused.Text(), refused)
		}
	})
}

// I17: a PDF that changes while it is copied is neither refused nor taken.
func TestPDF_I17_ChangeWhileCopying(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"Grows":    func(dir string) error { return os.WriteFile(dir+"/a.pdf", []byte(goodPDF+goodPDF), 0o644) },
		"Shrinks":  func(dir string) error { return os.WriteFile(dir+"/a.pdf", nil, 0o644) },
		"SameSize": func(dir string) error { return os.WriteFile(dir+"/a.pdf", bytes.ToUpper([]byte(goodPDF)), 0o644) },
		"Swapped": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/new", []byte(goodPDF), 0o644), os.Rename(dir+"/new", dir+"/a.pdf"))
		},
		"Link": func(dir string) error {
			return errors.Join(os.Remove(dir+"/a.pdf"), os.Symlink("/etc/passwd", dir+"/a.pdf"))
		},
		"FIFO": func(dir string) error {
			return errors.Join(os.Remove(dir+"/a.pdf"), syscall.Mkfifo(dir+"/a.pdf", 0o644))
		},
		"Removed": func(dir string) error { return os.Remove(dir + "/a.pdf") },
	} {
		for _, when := range []string{"before", "after"} {
			t.Run(name+"/"+when+"Open", func(t *testing.T) {
				dir, root := drop(t, tree{"a.pdf": goodPDF})
				r := pdfRules
				r.openFile = func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
					if when == "before" {
						kit.Want(t, "the error of change", change(dir), nil)
					}
					f, info, err := durable.OpenRegular(root, path)
					if when == "after" {
						kit.Want(t, "the error of change", change(dir), nil)
					}
					return f, info, err
				}
				if _, _, err := copyPDF(t, root, r, nil); !errors.Is(err, archive.ErrChanged) {
					t.Errorf("got %v, want ErrChanged", err)
				}
			})
		}
	}
}

func TestPDF_I17_ARefusalIsAboutAFolderThatStoodStill(t *testing.T) {
	dir, root := drop(t, tree{"a.pdf": "%PDF-1.7"})
	r := pdfRules
	r.openFile = func(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
		f, info, err := durable.OpenRegular(root, path)
		write(t, dir+"/b.pdf", "another one")
		return f, info, err
	}
	if _, _, err := copyPDF(t, root, r, nil); !errors.Is(err, archive.ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
}

// I24: a fault of a disk or of rights is no fault of the PDF, and a damaged copy never gets its name.
func TestPDF_I24_EnvironmentIsNoRefusal(t *testing.T) {
	damage := func(op, name string, do func() error) error {
		err := do()
		if op == "write" {
			return errors.Join(err, syscall.EIO)
		}
		return err
	}
	for name, row := range map[string]struct {
		open func(root *os.Root, path string) (*os.File, fs.FileInfo, error)
		hook durable.Hook
		want error
	}{
		"NoRight": {func(_ *os.Root, path string) (*os.File, fs.FileInfo, error) {
			return nil, nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
		}, nil, fs.ErrPermission},
		"Mount": {func(*os.Root, string) (*os.File, fs.FileInfo, error) {
			return nil, nil, &durable.MountError{Path: "a.pdf"}
		}, nil, syscall.EXDEV},
		"DiskFull":    {nil, failOn("write", syscall.ENOSPC), syscall.ENOSPC},
		"WriteFails":  {nil, damage, syscall.EIO},
		"SyncFails":   {nil, failOn("sync", syscall.EIO), durable.ErrSync},
		"RenameFails": {nil, failOn("rename", syscall.EIO), syscall.EIO},
		"CreateFails": {nil, failOn("create", syscall.EACCES), syscall.EACCES},
		"NoAddress":   {},
	} {
		t.Run(name, func(t *testing.T) {
			_, root := drop(t, tree{"a.pdf": goodPDF})
			r := pdfRules
			r.openFile = row.open
			if name == "NoAddress" {
				r.Notify = ""
			}
			_, _, err := copyPDF(t, root, r, row.hook)
			kit.Check(t, err != nil && !isRefusal(err) && !errors.Is(err, archive.ErrChanged) && (row.want == nil || errors.Is(err, row.want)), "got %v", err)
		})
	}
	c := &pdfCopy{size: 3, sha256: archive.Sum([]byte("abc"))}
	for _, found := range []string{"abd", "ab", "abcd", ""} {
		err := c.compareWith(context.Background(), strings.NewReader(found))
		kit.Check(t, err != nil, "%q was taken for the copy", found)
	}
}

// A file is validated as it would be packed, whatever lies beside it, and nothing is written.
func TestValidatePDF_AsItWouldBePacked(t *testing.T) {
	dir, root := drop(t, tree{"a.pdf": goodPDF, "b.docx": "x", "sub/c.pdf": "x", "half.part": goodPDF})
	_, alone := drop(t, tree{"a.pdf": goodPDF})
	want, _, err := copyPDF(t, alone, pdfRules, nil)
	kit.Must(t, err)
	got, err := ValidatePDF(context.Background(), root, "a.pdf", pdfRules)
	if err != nil || got.ID != want.ID || got.Content != want.Content || !slices.Equal(got.Files, want.Files) || got.Package != (archive.Package{}) {
		t.Errorf("%+v, %v, want no error, got.ID = %v, got.Content = %v, got.Files = %v, got.Package = (archive.Package{})", got, err, want.ID, want.Content, want.Files)
	}
	os.Symlink("a.pdf", dir+"/link.pdf")
	for name, want := range map[string]func(error) bool{
		"link.pdf": isRefusal, "b.docx": isRefusal, "sub": isRefusal,
		"gone.pdf": func(err error) bool { return errors.Is(err, fs.ErrNotExist) }, "half.part": func(err error) bool { return errors.Is(err, archive.ErrChanged) },
	} {
		_, err := ValidatePDF(context.Background(), root, name, pdfRules)
		kit.Check(t, want(err), "%s: %v, want want(err)", name, err)
	}
}

func TestPDF_Canceled(t *testing.T) {
	_, root := drop(t, tree{"a.pdf": goodPDF})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := kit.Value(durable.Open(t.TempDir(), nil))(t)
	defer dir.Close()
	kit.Fails(t, "BuildPDF", kit.Err(BuildPDF(ctx, root, pdfRules, dir, "k.pdf")), context.Canceled)
}

// A file waits while its writer may only pause, and does not wait for what no writing would change.
func TestCheckFileEnd(t *testing.T) {
	dir, root := drop(t, tree{"whole.pdf": goodPDF, "cut.pdf": "%PDF-1.7\n", "empty.pdf": "", "blank.pdf": strings.Repeat("\x00", 5000), "brief.docx": "a letter",
		"long.pdf": goodPDF + strings.Repeat("x", 5000), "short.pdf": "%P"})
	os.Symlink("whole.pdf", dir+"/link.pdf")
	for name, want := range map[string]error{"whole.pdf": nil, "cut.pdf": ErrCutOff, "empty.pdf": ErrCutOff, "blank.pdf": ErrCutOff, "brief.docx": nil, "long.pdf": ErrCutOff, "short.pdf": ErrCutOff} {
		err := CheckFileEnd(root, name)
		kit.Check(t, errors.Is(err, want) && (want != nil || err == nil), "%s: %v", name, err)
	}
	for _, name := range []string{"link.pdf", "gone.pdf"} {
		err := CheckFileEnd(root, name)
		kit.Check(t, err != nil && !errors.Is(err, ErrCutOff), "%s: %v, want an error, not errors.Is(err, ErrCutOff)", name, err)
	}
}
