package drop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

func TestPlace_I1_CrashAnywhereFinishes(t *testing.T) {
	const rel = "_archived/2026-11/Müller 4711"
	var c ClaimedFolder
	place := func(f *Folder) error {
		return f.PlaceFolder(c, rel, ReceiptNote("ARCHIVED.\n"), NoteFile{Name: "_RECEIPT.json", Data: []byte("{}")})
	}
	crash(t, 12,
		func(path string) {
			put(t, path, "Müller 4711/metadata.json")
			f := kit.Value(Open(config(path)))(t)
			defer f.Close()
			c = claim(t, f, "Müller 4711")
		},
		place,
		func(at string, f *Folder) {
			for range 2 { // also when it was done before
				kit.Want(t, at, place(f), nil)
			}
			kit.Want(t, at, tree(t, f.cfg.Path), []string{".vaultd/", ".vaultd/claimed/", "_archived/", "_archived/2026-11/", rel + "/",
				rel + "/_RECEIPT.json", rel + "/_RECEIPT.txt", rel + "/metadata.json"})
			for name, mode := range map[string]fs.FileMode{"_archived": fs.ModeSticky | fs.ModeSetgid | 0o770, "_archived/2026-11": fs.ModeSetgid | 0o750} {
				info, _ := os.Lstat(f.cfg.Path + "/" + name)
				kit.Check(t, info.Mode() == fs.ModeDir|mode, "%s: %s has mode %v, want %v", at, name, info.Mode(), fs.ModeDir|mode)
			}
		})
}

func TestPlace_NoteIsForPeople(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := share(t)
	cfg := config(path)
	if os.Getuid() == 0 {
		cfg.Group = "12345"
	}
	f := open(t, cfg)
	put(t, path, "Huber 88/metadata.json")
	os.Symlink("/etc/hostname", path+"/Huber 88/_REASON.txt") // replaced, not followed
	kit.Must(t, f.PlaceFolder(claim(t, f, "Huber 88"), "_rejected/Huber 88", ReasonNote("NOT ARCHIVED.\nWrite 2026-10-31.\r\n")))
	note := path + "/_rejected/Huber 88/_REASON.txt"
	if got, _ := os.ReadFile(note); string(got) != "\xef\xbb\xbfNOT ARCHIVED.\r\nWrite 2026-10-31.\r\n" {
		t.Errorf("%q, want string(got) = \"\\xef\\xbb\\xbfNOT ARCHIVED.\\r\\nWrite 2026-10-31.\\r\\n\"", got)
	}
	info, err := os.Lstat(note)
	kit.Check(t, err == nil && info.Mode() == 0o640, "mode %v, %v", info.Mode(), err)
	folder, _ := os.Lstat(path + "/_rejected")
	if os.Getuid() == 0 && (sysStat(info).Gid != 12345 || sysStat(folder).Gid != 12345) {
		t.Errorf("groups %d, %d", sysStat(info).Gid, sysStat(folder).Gid)
	}
	kit.Want(t, "the error of WriteStatusFile", f.WriteStatusFile("INVOICE ARCHIVE\n"), nil)
	got, _ := os.ReadFile(path + "/_STATUS.txt")
	kit.Check(t, string(got) == "\xef\xbb\xbfINVOICE ARCHIVE\r\n", "status %q", got)
}

func TestPlace_TakenLostAndForeign(t *testing.T) {
	path, f := opened(t)
	put(t, path, "a/x", "_rejected/a/theirs", "_rejected/b/theirs", "b/x")
	a, b := claim(t, f, "a"), claim(t, f, "b")
	kit.Fails(t, "taken", f.PlaceFolder(a, "_rejected/a", ReasonNote("x")), archive.ErrDestinationTaken)
	rel, err := f.ProposeDestination(Rejected, "a", now)
	kit.Check(t, err == nil && rel == "_rejected/a (2)", `%q, %v, want no error, rel = "_rejected/a (2)"`, rel, err)
	kit.Want(t, "the error of PlaceFolder", f.PlaceFolder(a, rel, ReasonNote("x")), nil)
	kit.Fails(t, "at another place than asked", f.PlaceFolder(a, "_rejected/a", ReasonNote("x")), ErrFolderLost)
	where := path + "/.vaultd/claimed/" + b.Key.String()
	os.Rename(where+"/b", t.TempDir()+"/b")
	kit.Fails(t, "lost, a foreign folder at the destination", f.PlaceFolder(b, "_rejected/b"), ErrFolderLost)
	put(t, where, "b/other")
	kit.Fails(t, "another folder in its claim", f.PlaceFolder(b, "_rejected/new"), ErrFolderLost)
	for _, rel := range []string{"", "x", "_rejected", "_rejected/", "_rejected/../x", "_rejected/a/b", "_archived/x", "_archived/../../x", "_archived/2026-13/x", "/_rejected/x", ".vaultd/x", "_rejected/.."} {
		err := f.PlaceFolder(b, rel)
		kit.Check(t, err != nil && !errors.Is(err, ErrFolderLost), "place %q accepted: %v", rel, err)
		kit.Fails(t, fmt.Sprintf("dispose %q accepted", rel), kit.Err(f.DisposeFolder(t.Context(), b, rel, Disposal{})))
	}
}

// The clerk gets the folder back even when the reason cannot be written into it; who archives needs the receipt.
func TestPlace_UnwritableFolder(t *testing.T) {
	path, f := opened(t)
	put(t, path, "a/_REASON.txt/x", "b/_RECEIPT.txt/x")
	a, b := claim(t, f, "a"), claim(t, f, "b")
	kit.Fails(t, "nobody was told that the note is missing", f.PlaceFolder(a, "_rejected/a", ReasonNote("x")))
	kit.Want(t, "again", f.PlaceFolder(a, "_rejected/a", ReasonNote("x")), nil)
	kit.Fails(t, "kept without a receipt", f.PlaceFolder(b, "_archived/2026-11/b", ReceiptNote("x")))
	_, _, err := f.OpenClaimed(b.Key)
	kit.Check(t, err == nil, "not claimed any more: %v", err)
}

func TestPlace_LinkInTheWayOfOurFolders(t *testing.T) {
	path, outside := share(t), t.TempDir()
	f := open(t, config(path))
	put(t, path, "a/x")
	os.Symlink(outside, path+"/_rejected")
	kit.Fails(t, `f.PlaceFolder(a, "_rejected/a")`, f.PlaceFolder(claim(t, f, "a"), "_rejected/a"), syscall.ENOTDIR)
	kit.Len(t, "outside", tree(t, outside), 0)
}

func TestDestination_NumbersWithoutCase(t *testing.T) {
	path, f := opened(t)
	long := strings.Repeat("ü", 127) + "x"
	put(t, path, "_rejected/Müller/", "_rejected/STRASSE (2)/", "_rejected/strasse/", "_rejected/"+long+"/")
	for name, want := range map[string]string{
		"MÜLLER": "MÜLLER (2)", "Mu\u0308ller": "Mu\u0308ller (2)", "Strasse": "Strasse (3)", "Otto": "Otto",
		long: strings.Repeat("ü", 125) + " (2)",
	} {
		rel, err := f.ProposeDestination(Rejected, name, now)
		kit.Check(t, err == nil && rel == "_rejected/"+want,
			"%q: %q, %v, want no error, rel = %v", name, rel, err, "_rejected/"+want)
	}
	rel, err := f.ProposeDestination(Archived, "x", now.In(time.FixedZone("", 14*3600)).AddDate(0, 0, 10))
	kit.Check(t, err == nil && rel == "_archived/2026-12/x", "month: %q, %v", rel, err)
	// What we place ourselves is known at once, what others make as soon as the folder's mtime tells.
	put(t, path, "Neu/x")
	kit.Must(t, f.PlaceFolder(claim(t, f, "Neu"), "_rejected/Neu"))
	rel, _ = f.ProposeDestination(Rejected, "NEU", now)
	kit.Check(t, rel == "_rejected/NEU (2)", "own: %q", rel)
	put(t, path, "_rejected/Fremd/")
	rel, _ = f.ProposeDestination(Rejected, "FREMD", now)
	kit.Check(t, rel == "_rejected/FREMD (2)", "theirs: %q", rel)
	for _, bad := range []string{"", "..", "a/b", "."} {
		kit.Fails(t, fmt.Sprintf("%q", bad), kit.Err(f.ProposeDestination(Rejected, bad, now)))
	}
}

func TestReclaim_ReturnedFolderIsTakenAgain(t *testing.T) {
	path, f := opened(t)
	put(t, path, "a/x")
	a := claim(t, f, "a")
	kit.Must(t, f.PlaceFolder(a, "_rejected/a", ReasonNote("x")))
	again, err := f.ClaimReturned("_rejected/a", now)
	kit.Check(t, err == nil && again.Key != a.Key && again.Inode == a.Inode,
		"%+v, %v, want no error, again.Key other than %v, again.Inode = %v", again, err, a.Key, a.Inode)
	for _, rel := range []string{"_rejected/a", "_rejected/../.vaultd", "_archived/2026-11/a", "a"} {
		kit.Fails(t, fmt.Sprintf("%q claimed", rel), kit.Err(f.ClaimReturned(rel, now)))
	}
}

// kept makes an archived folder and what may be removed with it.
func kept(t *testing.T, path string) (ClaimedFolder, string, Disposal) {
	t.Helper()
	f := kit.Value(Open(config(path)))(t)
	defer f.Close()
	const rel = "_archived/2026-11/Mu\u0308ller"
	files := []string{"metadata.json", "rechnung.pdf", "sub/u\u0308bersicht.pdf", "sub/deep/b.pdf"}
	for _, name := range append(files, "Thumbs.db", "sub/@eaDir/x", "sub/empty/") {
		put(t, path+"/Mu\u0308ller", name)
	}
	c := claim(t, f, "Mu\u0308ller")
	kit.Must(t, f.PlaceFolder(c, rel, ReceiptNote("ok"), NoteFile{"_RECEIPT.json", []byte("{}")}))
	d := Disposal{Junk: []string{"Thumbs.db", "sub/@eaDir/x"}}
	for _, name := range files {
		nfc := strings.ReplaceAll(name, "u\u0308", "\u00fc")
		d.Files = append(d.Files, archive.File{Path: nfc, Size: int64(len(name)), SHA256: archive.Sum([]byte(name))})
	}
	return c, rel, d
}

func TestDispose_I18_CrashAnywhereFinishes(t *testing.T) {
	var c ClaimedFolder
	var rel string
	var d Disposal
	dispose := func(f *Folder) error { _, err := f.DisposeFolder(context.Background(), c, rel, d); return err }
	crash(t, 10, func(path string) { c, rel, d = kept(t, path) }, dispose, func(at string, f *Folder) {
		for range 2 {
			kit.Want(t, at, dispose(f), nil)
		}
		kit.Want(t, at+": left", tree(t, f.cfg.Path), []string{".vaultd/", ".vaultd/claimed/", "_archived/", "_archived/2026-11/"})
	})
}

func TestDispose_MoveCrashAnywhereFinishes(t *testing.T) {
	var c ClaimedFolder
	var rel string
	var d Disposal
	move := func(f *Folder) (string, error) { return f.DisposeFolder(context.Background(), c, rel, d) }
	crash(t, 2, func(path string) {
		c, rel, d = kept(t, path)
		d.To = path + ".out"
		put(t, d.To, filepath.Base(rel)+"/theirs")
	}, func(f *Folder) error { _, err := move(f); return err }, func(at string, f *Folder) {
		for range 2 {
			to, err := move(f)
			kit.Check(t, err == nil && strings.HasPrefix(to, d.To+"/") && strings.Contains(to, c.Key.String()),
				"%s: %q, %v, want no error, to that begins with %q, to with %q", at, to, err, d.To+"/", c.Key.String())
			kit.Want(t, at, kit.Err(os.Lstat(to+"/rechnung.pdf")), nil)
		}
		kit.Want(t, at, kit.Err(os.Lstat(d.To+"/"+filepath.Base(rel)+"/theirs")), nil)
	})
}

func TestDispose_I18_AnythingElseStopsIt(t *testing.T) {
	type row struct {
		change func(dir string) error
		path   string
	}
	kit.Rows(t, map[string]row{
		"ForeignFile":     {func(d string) error { return os.WriteFile(d+"/sub/new.pdf", nil, 0o660) }, "sub/new.pdf"},
		"ForeignHidden":   {func(d string) error { return os.WriteFile(d+"/.x", nil, 0o660) }, ".x"},
		"UnlistedJunk":    {func(d string) error { return os.WriteFile(d+"/sub/Thumbs.db", nil, 0o660) }, "sub/Thumbs.db"},
		"NoteFurtherDown": {func(d string) error { return os.WriteFile(d+"/sub/_REASON.txt", nil, 0o660) }, "sub/_REASON.txt"},
		"OtherContent":    {func(d string) error { return os.WriteFile(d+"/rechnung.pdf", []byte("rechnung.PDF"), 0o660) }, "rechnung.pdf"},
		"OtherSize":       {func(d string) error { return os.WriteFile(d+"/rechnung.pdf", []byte("longer than before"), 0o660) }, "rechnung.pdf"},
		"CaseTwin":        {func(d string) error { return os.WriteFile(d+"/Rechnung.pdf", []byte("rechnung.pdf"), 0o660) }, "Rechnung.pdf"},
		"LinkForAFile": {func(d string) error {
			return errors.Join(os.Remove(d+"/rechnung.pdf"), os.Symlink("metadata.json", d+"/rechnung.pdf"))
		}, "rechnung.pdf"},
		"LinkOut":          {func(d string) error { return os.Symlink("/etc", d+"/sub/out") }, "sub/out"},
		"Fifo":             {func(d string) error { return syscall.Mkfifo(d+"/fifo", 0o600) }, "fifo"},
		"AnotherFolder":    {func(d string) error { return errors.Join(os.Rename(d, d+".old"), os.Mkdir(d, 0o770)) }, "."},
		"NestedVeryDeeply": {func(d string) error { return os.MkdirAll(d+strings.Repeat("/d", 40), 0o770) }, strings.Repeat("d/", 31) + "d"},
	}, func(t *testing.T, row row) {
		path := share(t)
		c, rel, d := kept(t, path)
		kit.Must(t, row.change(path+"/"+rel))
		before := tree(t, path)
		f := open(t, config(path))
		for _, to := range []string{"", t.TempDir()} {
			d.To = to
			_, err := f.DisposeFolder(t.Context(), c, rel, d)
			var stray *UnexpectedContentError
			kit.Check(t, errors.As(err, &stray) && stray.Path == row.path && stray.Folder == rel,
				"to %q: %v", to, err)
		}
		kit.Want(t, "removed something", tree(t, path), before)
	})
}

// A file that appears or changes after the comparison stops what is left.
func TestDispose_I18_ChangeWhileRemoving(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	cfg := config(path)
	once := false
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "unlink" && !once { // by a handle on the folder: no path of people's leads there any more
			once = true
			put(t, path+"/.vaultd/claimed/"+c.Key.String()+"/"+c.Folder, "sub/late.pdf")
		}
		return do()
	}
	f := open(t, cfg)
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	var stray *UnexpectedContentError
	kit.Check(t, errors.As(err, &stray) && stray.Path == "sub/late.pdf",
		`%v, want errors.As(err, &stray), stray.Path = "sub/late.pdf"`, err)
	kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/"+rel+"/sub/late.pdf")), nil)
}

func TestDispose_NeverWithoutTheRightFolder(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	f := open(t, config(path))
	kit.Fails(t, "a returned folder was disposed", kit.Err(f.DisposeFolder(t.Context(), c, "_rejected/x", d)))
	os.Rename(path, path+".aside")
	os.Mkdir(path, 0o770)
	kit.Fails(t, "drop folder replaced", kit.Err(f.DisposeFolder(t.Context(), c, rel, d)), ErrUnavailable)
	os.Remove(path)
	os.Rename(path+".aside", path)
	d.To = t.TempDir()
	os.Rename(path+"/"+rel, path+"/gone")
	kit.Fails(t, "moved away by hand", kit.Err(f.DisposeFolder(t.Context(), c, rel, d)), ErrFolderLost)
	os.Rename(path+"/gone", path+"/"+rel)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Fails(t, "cancelled", kit.Err(f.DisposeFolder(ctx, c, rel, d)), context.Canceled)
}

func TestDispose_OtherFileSystemIsRefusedInWords(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "drop")
	if err != nil {
		t.Skip("no second file system:", err)
	}
	defer os.Remove(other)
	path := share(t)
	here, _ := os.Stat(path)
	there, _ := os.Stat(other)
	if sysStat(here).Dev == sysStat(there).Dev {
		t.Skip("no second file system to move to")
	}
	c, rel, d := kept(t, path)
	d.To = other
	f := open(t, config(path))
	if _, err := f.DisposeFolder(t.Context(), c, rel, d); !errors.Is(err, syscall.EXDEV) || !strings.Contains(err.Error(), "another file system") {
		t.Errorf(`%v, want error syscall.EXDEV, err with "another file system"`, err)
	}
	kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/"+rel+"/rechnung.pdf")), nil)
}

// TestDispose_I18_OneFileIsExchangedWhileAnotherGoes: whoever still has the
// folder open reaches into the claim. The compared file is checked once more
// just before its removal.
func TestDispose_I18_OneFileIsExchangedWhileAnotherGoes(t *testing.T) {
	const precious = "what nobody has archived"
	path := share(t)
	c, rel, d := kept(t, path)
	exchanged := ""
	cfg := config(path)
	cfg.Hook = func(op, on string, do func() error) error {
		if err := do(); err != nil || op != "unlink" || exchanged != "" {
			return err
		}
		return filepath.WalkDir(filepath.Join(path, ".vaultd", "claimed"), func(p string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() || exchanged != "" {
				return err
			}
			exchanged = p
			return os.WriteFile(p, []byte(precious), 0o660)
		})
	}
	f := open(t, cfg)
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	kit.Need(t, exchanged != "", "nothing was exchanged: vacuous")
	found := false
	werr := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			b, readErr := os.ReadFile(p)
			found = found || readErr == nil && string(b) == precious
		}
		return err
	})
	kit.Check(t, werr == nil && found && err != nil,
		"%q was exchanged and is gone, or nobody was told: %v, %v", exchanged, err, werr)
}
