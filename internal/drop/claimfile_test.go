package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vaultd/internal/durable"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

// fileConfig is that of a drop of single files.
func fileConfig(path string) Config {
	cfg := config(path)
	cfg.TakesFiles = true
	return cfg
}

// seen is the state of a file as a watcher saw it.
func seen(t *testing.T, path string) durable.FileID {
	t.Helper()
	info := kit.Value(os.Lstat(path))(t)
	return durable.IDOf(info)
}

func TestClaimFile_I1_TakesTheFileInAFolderOfItsName(t *testing.T) {
	path := share(t)
	f := open(t, fileConfig(path))
	put(t, path, "scan7.pdf", "other.pdf")
	c, changed, err := f.ClaimFile("scan7.pdf", seen(t, path+"/scan7.pdf"), now)
	kit.Need(t, err == nil && !changed, "changed = %v, err = %v, want no error, not changed", changed, err)
	at := ".vaultd/claimed/" + c.Key.String() + "/"
	want := []string{".vaultd/", ".vaultd/claimed/", at, at + "scan7.pdf/", at + "scan7.pdf/scan7.pdf", "other.pdf"}
	kit.Want(t, "the drop folder", tree(t, path), want)
	if !c.Key.Time().Equal(now) || c.Owner != uint32(os.Getuid()) || c.Inode.Ino == 0 || c.Folder != "scan7.pdf" {
		t.Errorf(`%+v, want c.Key.Time() = %v, c.Owner = %v, c.Inode.Ino other than 0, c.Folder = "scan7.pdf"`, c, now, uint32(os.Getuid()))
	}
	// It is a claimed folder like any other: people get it back with what they should read.
	kit.Must(t, f.PlaceFolder(c, "_delivered/2026-11/scan7.pdf", DeliveryNote("DELIVERED."), NoteFile{Name: "_DELIVERED.json", Data: []byte("{}")}))
	for name, mode := range map[string]fs.FileMode{"": fs.ModeDir | fs.ModeSetgid | 0o750, "/scan7.pdf": 0o660, "/_DELIVERED.txt": 0o640, "/_DELIVERED.json": 0o640} {
		info, err := os.Lstat(path + "/_delivered/2026-11/scan7.pdf" + name)
		kit.Check(t, err == nil && (info.Mode() == mode || name == "/scan7.pdf"),
			"%q: %v, %v, want no error, info.Mode() = %v", name, info, err, mode)
	}
	n := 0
	for p, err := range f.PlacedFolders(Delivered) {
		if n++; err != nil || p.Path != "_delivered/2026-11/scan7.pdf" || p.Inode != c.Inode {
			t.Errorf(`%+v, %v, want no error, p.Path = "_delivered/2026-11/scan7.pdf", p.Inode = %v`, p, err, c.Inode)
		}
	}
	kit.Want(t, "placed", n, 1)
}

// What is no regular file, and what bears a name of vaultd's own, stays where it is.
func TestClaimFile_I19_HostileFiles(t *testing.T) {
	path, outside := share(t), t.TempDir()
	put(t, outside, "precious")
	f := open(t, fileConfig(path))
	os.Symlink(outside+"/precious", path+"/link.pdf")
	os.Symlink("nowhere", path+"/dangling.pdf")
	syscall.Mkfifo(path+"/fifo.pdf", 0o600)
	put(t, path, "Mai/", "_STATUS.txt", "_status.TXT", "_REASON.txt", "_Delivered.JSON", "_ARCHIVED", "_receipt.txt", "_Delivered")
	t.Chdir(path)
	for _, name := range []string{"link.pdf", "dangling.pdf", "fifo.pdf", "Mai", "gone.pdf", "", ".", "..", "../in", "/etc/passwd", ".vaultd", ".VAULTD", "a/b", "a\x00b",
		"_STATUS.txt", "_status.TXT", "_REASON.txt", "_Delivered.JSON", "_ARCHIVED", "_receipt.txt", "_Delivered"} {
		before := tree(t, path)
		c, _, err := f.ClaimFile(name, durable.FileID{}, now)
		kit.Check(t, err != nil, "%q claimed: %+v", name, c)
		kit.Want(t, name+": left", tree(t, path), before)
	}
	good := []string{"new\nline.pdf", "\xff\xfe", strings.Repeat("ü", 127) + "x", " ", "-rf", `a\b.pdf`, "\x1b[31m", "...", "scan.pdf", "SCAN.PDF", "_scan.pdf", ".hidden.pdf", "CON"}
	for _, name := range good {
		os.WriteFile(filepath.Join(path, name), []byte("x"), 0o660)
	}
	for _, name := range good {
		c, changed, err := f.ClaimFile(name, seen(t, filepath.Join(path, name)), now)
		if err != nil || changed || c.Folder != name {
			t.Errorf("%q: %v, %v, want no error, not changed, c.Folder = %v", name, changed, err, name)
			continue
		}
		rel, err := f.ProposeDestination(Rejected, name, now)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		kit.Want(t, fmt.Sprintf("%q to %q", name, rel), f.PlaceFolder(c, rel, ReasonNote("NOT SENT.")), nil)
	}
	if _, err := os.Lstat(path + "/_rejected/SCAN.PDF (2)/SCAN.PDF"); err != nil {
		t.Error("case twin not numbered:", err)
	}
	kit.Want(t, "outside", tree(t, outside), []string{"precious"})
}

// The file is in one place after a crash at any step, and the next start leaves nothing else of the claim.
func TestClaimFile_I1_CrashAnywhereLosesNothing(t *testing.T) {
	crashIn(t, fileConfig, 6, func(path string) { put(t, path, "scan7.pdf") },
		func(f *Folder) error {
			_, _, err := f.ClaimFile("scan7.pdf", seen(t, f.cfg.Path+"/scan7.pdf"), now)
			return err
		},
		func(at string, f *Folder) {
			places := 0
			for c, err := range f.AllClaims() {
				if err != nil || c.Folder != "scan7.pdf" || c.Owner != uint32(os.Getuid()) {
					t.Errorf(`%s: %+v, %v, want no error, c.Folder = "scan7.pdf", c.Owner = %v`, at, c, err, uint32(os.Getuid()))
				}
				kit.Want(t, at, f.SyncClaim(c), nil)
				kit.Want(t, at, kit.Err(os.Lstat(filepath.Join(f.cfg.Path, claimPath(c), "scan7.pdf"))), nil)
				places++
			}
			inDrop := 0
			if _, err := os.Lstat(f.cfg.Path + "/scan7.pdf"); err == nil {
				inDrop = 1
			}
			kit.Check(t, places+inDrop == 1,
				"%s: the file is in %d claims, and in the drop %d times", at, places, inDrop)
			// An empty claim and a claim with an empty folder are gone: .vaultd, claimed, and the file or its claim.
			if got, want := len(tree(t, f.cfg.Path)), 3+2*places; got != want {
				t.Errorf("%s: left %q", at, tree(t, f.cfg.Path))
			}
		})
}

// Each operation of a claim fails once, and is done or not done all the same.
func TestClaimFile_I1_EveryFault(t *testing.T) {
	faults.EachOperation(t, 1, 5, func(fault *faults.Fault) {
		path := share(t)
		cfg := fileConfig(path)
		cfg.Hook = fault.File
		f := open(t, cfg)
		put(t, path, "scan7.pdf")
		fault.On = true
		_, _, err := f.ClaimFile("scan7.pdf", seen(t, path+"/scan7.pdf"), now)
		fault.On = false
		claims := 0
		for c, err := range f.AllClaims() {
			if claims++; err != nil {
				t.Errorf("claim %+v: %v", c, err)
			}
		}
		_, there := os.Lstat(path + "/scan7.pdf")
		kit.Check(t, (claims != 0 || there == nil) && (claims != 1 || there != nil) && claims <= 1,
			"%d claims, in the drop: %v; want the file in one place", claims, there == nil)
		// Without an error the claim is durable; with one it is not taken, or the process stops.
		kit.Check(t, (err != nil || claims == 1) && (err == nil || claims != 1 || errors.Is(err, durable.ErrSync)),
			"%d claims and %v", claims, err)
	})
}

// Between the look and the rename somebody exchanges the file, or writes to it.
func TestClaimFile_I17_SwappedBetweenLookAndRename(t *testing.T) {
	type row struct {
		swap    func(path string) error
		changed bool  // claimed, and to settle again
		refused error // put back
	}
	kit.Rows(t, map[string]row{
		"Nothing":  {func(string) error { return nil }, false, nil},
		"Appended": {func(p string) error { return appendTo(p, "more") }, true, nil},
		"AnotherFile": {func(p string) error {
			return errors.Join(os.Rename(p, p+".old"), os.WriteFile(p, []byte("scan7.pdf"), 0o660))
		}, true, nil},
		"Link":   {func(p string) error { return errors.Join(os.Rename(p, p+".old"), os.Symlink("/etc/passwd", p)) }, false, ErrNotFile},
		"FIFO":   {func(p string) error { return errors.Join(os.Rename(p, p+".old"), syscall.Mkfifo(p, 0o660)) }, false, ErrNotFile},
		"Folder": {func(p string) error { return errors.Join(os.Rename(p, p+".old"), os.Mkdir(p, 0o770)) }, false, ErrNotFile},
		"Gone":   {func(p string) error { return os.Rename(p, p+".old") }, false, fs.ErrNotExist},
	}, func(t *testing.T, row row) {
		path := share(t)
		cfg := fileConfig(path)
		cfg.Hook = func(op, on string, do func() error) error {
			if op == "mkdir" && on == "scan7.pdf" {
				kit.Want(t, "the error of swap", row.swap(path+"/scan7.pdf"), nil)
			}
			return do()
		}
		f := open(t, cfg)
		put(t, path, "scan7.pdf")
		look := seen(t, path+"/scan7.pdf")
		c, changed, err := f.ClaimFile("scan7.pdf", look, now)
		claims := 0
		for again, err := range f.AllClaims() {
			if claims++; err != nil || again != c {
				t.Errorf("%+v, %v, want no error, again = %v", again, err, c)
			}
		}
		switch {
		case row.refused != nil && (!errors.Is(err, row.refused) || claims != 0):
			t.Errorf("%d claims, %v", claims, err)
		case row.refused == nil && (err != nil || claims != 1 || changed != row.changed):
			t.Errorf("%d claims, changed %v, %v", claims, changed, err)
		}
		if _, err := os.Lstat(path + "/scan7.pdf"); row.refused == ErrNotFile && err != nil {
			t.Error("what was exchanged is not put back:", err)
		}
	})
}

// What a person finds in the way of the way back stays in the claim, where the next start finds it.
func TestClaimFile_I1_NoWayBack(t *testing.T) {
	path := share(t)
	cfg := fileConfig(path)
	cfg.Hook = func(op, on string, do func() error) error {
		if op == "mkdir" && on == "scan7.pdf" {
			os.Rename(path+"/scan7.pdf", path+"/old")
			os.Symlink("/etc/passwd", path+"/scan7.pdf")
		}
		err := do()
		if op == "rename" && on == "scan7.pdf" {
			put(t, path, "scan7.pdf") // another one comes while the link is looked at
		}
		return err
	}
	f := open(t, cfg)
	put(t, path, "scan7.pdf")
	if _, _, err := f.ClaimFile("scan7.pdf", durable.FileID{}, now); !errors.Is(err, ErrNotFile) || !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want error %v, error fs.ErrExist", err, ErrNotFile)
	}
	n := 0
	for c, err := range f.AllClaims() {
		if n++; err != nil {
			t.Errorf("%+v, %v", c, err)
		}
	}
	kit.Want(t, "claims", n, 1)
	if text, err := os.ReadFile(path + "/scan7.pdf"); string(text) != "scan7.pdf" {
		t.Errorf("the new file was replaced: %q, %v", text, err)
	}
}

// A folder that came back and is taken again has another name than the file in it: it is no empty claim.
func TestClaimFile_I1_ReturnedFolderTakenAgain(t *testing.T) {
	path := share(t)
	f := open(t, fileConfig(path))
	put(t, path, "_rejected/scan7.pdf (2)/scan7.pdf", "_rejected/scan7.pdf (2)/_REASON.txt")
	c := kit.Value(f.ClaimReturned("_rejected/scan7.pdf (2)", now))(t)
	n := 0
	for again, err := range f.AllClaims() {
		if n++; err != nil || again != c {
			t.Errorf("%+v, %v, want no error, again = %v", again, err, c)
		}
	}
	_, err := os.Lstat(filepath.Join(path, claimPath(c), "scan7.pdf"))
	kit.Check(t, n == 1 && err == nil, "%d claims, %v", n, err)
	put(t, path, "_delivered/2026-11/x.pdf/x.pdf")
	kit.Fails(t, "a delivered folder was taken again", kit.Err(f.ClaimReturned("_delivered/2026-11/x.pdf", now)))
}

// BenchmarkClaimFile is BenchmarkClaim for single files.
func BenchmarkClaimFile(b *testing.B) {
	benchmarkClaims(b, fileConfig, func(path string) error { return os.WriteFile(path, []byte("x"), 0o660) },
		func(f *Folder, name string) error {
			_, _, err := f.ClaimFile(name, durable.FileID{}, now)
			return err
		})
}

func appendTo(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
