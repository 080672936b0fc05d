package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

func TestClaim_I1_TakesTheFolderWhole(t *testing.T) {
	path, f := opened(t)
	put(t, path, "Huber 88/metadata.json", "Huber 88/sub/a.pdf")
	c := claim(t, f, "Huber 88")
	at := ".vaultd/claimed/" + c.Key.String() + "/"
	want := []string{".vaultd/", ".vaultd/claimed/", at, at + "Huber 88/", at + "Huber 88/metadata.json", at + "Huber 88/sub/", at + "Huber 88/sub/a.pdf"}
	kit.Want(t, "the drop folder", tree(t, path), want)
	if !c.Key.Time().Equal(now) || c.Owner != uint32(os.Getuid()) || c.Inode.Ino == 0 {
		t.Errorf("%+v, want c.Key.Time() = %v, c.Owner = %v, c.Inode.Ino other than 0", c, now, uint32(os.Getuid()))
	}
	dir, again, err := f.OpenClaimed(c.Key)
	kit.Need(t, err == nil && again == c, "%+v, %v, want no error, again = %v", again, err, c)
	defer dir.Close()
	kit.Want(t, "the error of Stat", kit.Err(dir.Root().Stat("sub/a.pdf")), nil)
}

func TestClaim_I19_HostileNames(t *testing.T) {
	path := share(t)
	outside := t.TempDir()
	put(t, outside, "precious/x")
	f := open(t, config(path))
	os.Symlink(outside+"/precious", path+"/link")
	os.Symlink("nowhere", path+"/dangling")
	put(t, path, "file", "_STATUS.txt")
	syscall.Mkfifo(path+"/fifo", 0o600)
	t.Chdir(path)
	for _, name := range []string{"link", "dangling", "file", "fifo", "", ".", "..", "../in", "/etc", ".vaultd", ".VAULTD", "_Archived", "_rejected", "a/b", "a\x00b"} {
		kit.Fails(t, fmt.Sprintf("%q claimed", name), kit.Err(f.ClaimFolder(name, now)))
	}
	good := []string{"new\nline", "\xff\xfe", strings.Repeat("ü", 127) + "x", " ", "-rf", `a\b`, "\x1b[31m", "...", "Huber", "HUBER", "_Huber"}
	for _, name := range good {
		put(t, path, name+"/metadata.json")
	}
	for _, name := range good {
		c, err := f.ClaimFolder(name, now)
		if err != nil || c.Folder != name {
			t.Errorf("%q: %v, want no error, c.Folder = %v", name, err, name)
			continue
		}
		rel, err := f.ProposeDestination(Rejected, name, now)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		kit.Want(t, fmt.Sprintf("%q to %q", name, rel), f.PlaceFolder(c, rel, ReasonNote("NOT ARCHIVED.")), nil)
	}
	if _, err := os.Lstat(path + "/_rejected/HUBER (2)"); err != nil {
		t.Error("case twin not numbered:", err)
	}
	for c, err := range f.AllClaims() {
		t.Errorf("left claimed: %+v, %v", c, err)
	}
	kit.Want(t, "outside", tree(t, outside), []string{"precious/", "precious/x"})
}

func TestClaim_FaultsSayWhatToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "(owner ", syscall.EPERM: "chmod -R g+rwX", syscall.EBUSY: "in use", syscall.ETXTBSY: "in use",
		syscall.EXDEV: "another device", syscall.EROFS: "read-only", syscall.ENOENT: "gone", syscall.EIO: "input/output",
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			path := share(t)
			cfg := config(path)
			cfg.Hook = func(op, name string, do func() error) error {
				if op == "rename" && name == "Huber 88" {
					return &os.LinkError{Op: "rename", Err: errno}
				}
				return do()
			}
			f := open(t, cfg)
			put(t, path, "Huber 88/metadata.json")
			_, err := f.ClaimFolder("Huber 88", now)
			var refused *ClaimError
			kit.Check(t, errors.As(err, &refused) && errors.Is(err, errno) && strings.Contains(err.Error(), want),
				"%v, want errors.As(err, &refused), error %v, err with %q", err, errno, want)
			kit.Want(t, "left", tree(t, path), []string{".vaultd/", ".vaultd/claimed/", "Huber 88/", "Huber 88/metadata.json"})
		})
	}
}

func TestClaim_NoRight(t *testing.T) {
	base := t.TempDir()
	os.Chmod(base, 0o755)
	os.Chmod(filepath.Dir(base), 0o755)
	path := base + "/in"
	os.Mkdir(path, 0o770)
	if os.Getuid() == 0 {
		os.Chown(path, 65534, 65534)
	} else {
		t.Log("not root: the folder's owner is the same, its mode alone forbids")
	}
	put(t, path, "Huber 88/metadata.json") // made by root, 0755: what stock share masks give
	os.Chmod(path+"/Huber 88", 0o555)
	defer os.Chmod(path+"/Huber 88", 0o755)
	asNobody(t, func() {
		f, err := Open(config(path))
		if err != nil && os.Getuid() == 0 && strings.Contains(err.Error(), "made by user") {
			t.Skip(err)
		}
		kit.Must(t, err)
		defer f.Close()
		_, err = f.ClaimFolder("Huber 88", now)
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), `no right to take "Huber 88" (owner`) || !strings.Contains(err.Error(), "0555") {
			t.Errorf("%v, want error fs.ErrPermission, err with `no right to take \"Huber 88\" (owner`, err with \"0555\"", err)
		}
	})
	kit.Want(t, "left", tree(t, path), []string{".vaultd/", ".vaultd/claimed/", "Huber 88/", "Huber 88/metadata.json"})
}

// A share as it should be: the folder belongs to vaultd, the sticky bit is set, a clerk's folder belongs to the clerk and the group.
func TestClaim_FolderOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		kit.Missing(t, "root, to make a folder of another user")
	}
	const vaultd, alice, group = 65534, 23456, 65534
	base := t.TempDir()
	os.Chmod(base, 0o755)
	os.Chmod(filepath.Dir(base), 0o755)
	path := base + "/in"
	put(t, path, "Huber 88/sub/a.pdf")
	filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		mode := fs.FileMode(0o660)
		if e.IsDir() {
			mode = sharedDirMode
		}
		return errors.Join(err, os.Chown(p, alice, group), os.Chmod(p, mode))
	})
	os.Chown(path, vaultd, group)
	os.Chmod(path, sharedDirMode|fs.ModeSticky)
	asNobody(t, func() {
		put(t, path, ".vaultd/claimed/") // Open asks for the real user, which stays root here
		os.Chmod(path+"/.vaultd", 0o700)
		os.Chmod(path+"/.vaultd/claimed", 0o700)
		f := kit.Value(Open(config(path)))(t)
		defer f.Close()
		c, err := f.ClaimFolder("Huber 88", now)
		kit.Need(t, err == nil && c.Owner == alice, "%+v, %v, want no error, c.Owner = %v", c, err, alice)
		kit.Want(t, "the error of PlaceFolder", f.PlaceFolder(c, "_rejected/Huber 88", ReasonNote("x")), nil)
	})
	for name, want := range map[string]fs.FileMode{"_rejected": fs.ModeDir | sharedDirMode, "_rejected/Huber 88/_REASON.txt": 0o640} {
		if info, err := os.Lstat(path + "/" + name); err != nil || info.Mode() != want || sysStat(info).Gid != group || sysStat(info).Uid != vaultd {
			t.Errorf("%s: %+v, %v, want no error, info.Mode() = %v, sysStat(info).Gid = %v, sysStat(info).Uid = %v", name, info, err, want, group, vaultd)
		}
	}
}

// A network file system can report a failure of what it has done.
func TestMove_FailedButDone(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOENT, syscall.EEXIST} {
		path := share(t)
		cfg := config(path)
		cfg.Hook = func(op, name string, do func() error) error {
			if op == "rename" && name == "f" {
				do()
				return errno
			}
			return do()
		}
		f := open(t, cfg)
		put(t, path, "f/x")
		c, err := f.ClaimFolder("f", now)
		kit.Need(t, err == nil, "%v: %v", errno, err)
		kit.Want(t, fmt.Sprint(errno), f.PlaceFolder(c, "_rejected/f"), nil)
	}
}

// A link put in the folder's place between the look and the rename is put back.
func TestClaim_SwappedByALink(t *testing.T) {
	path, outside := share(t), t.TempDir()
	cfg := config(path)
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "rename" && name == "f" {
			if err := os.Rename(path+"/f", path+"/g"); err == nil {
				os.Symlink(outside, path+"/f")
			}
		}
		return do()
	}
	f := open(t, cfg)
	put(t, path, "f/metadata.json")
	kit.Fails(t, "ClaimFolder", kit.Err(f.ClaimFolder("f", now)), ErrNotFolder)
	if target, err := os.Readlink(path + "/f"); target != outside {
		t.Errorf("link not put back: %v", err)
	}
	for c, err := range f.AllClaims() {
		t.Errorf("left claimed: %+v, %v", c, err)
	}
}

// BenchmarkClaim claims with as many takers as a watcher has, and tells how many directories are synced for each claim.
func BenchmarkClaim(b *testing.B) {
	benchmarkClaims(b, config, func(path string) error { return os.Mkdir(path, 0o770) },
		func(f *Folder, name string) error { return kit.Err(f.ClaimFolder(name, now)) })
}

func benchmarkClaims(b *testing.B, of func(path string) Config, put func(path string) error, claim func(f *Folder, name string) error) {
	path := b.TempDir()
	var syncs atomic.Int64
	cfg := of(path)
	cfg.Hook = func(op, _ string, do func() error) error {
		if op == "syncdir" {
			syncs.Add(1)
		}
		return do()
	}
	f := kit.Value(Open(cfg))(b)
	defer f.Close()
	for i := range b.N {
		kit.Must(b, put(fmt.Sprintf("%s/f%d", path, i)))
	}
	var next atomic.Int64
	b.SetParallelism(max(1, 32/runtime.GOMAXPROCS(0)))
	syncs.Store(0)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			kit.Want(b, "the error of the claim", claim(f, fmt.Sprintf("f%d", next.Add(1)-1)), nil)
		}
	})
	b.ReportMetric(float64(syncs.Load())/float64(b.N), "syncs/op")
}

func TestClaims_ForeignThingsStayAndAreNamed(t *testing.T) {
	path, f := opened(t)
	put(t, path, "a/x", "b/x")
	a, b := claim(t, f, "a"), claim(t, f, "b")
	put(t, path, ".vaultd/claimed/strange/", ".vaultd/claimed/"+b.Key.String()+"/second/", ".vaultd/claimed/file")
	empty := strings.Repeat("0", 25) + "4"
	put(t, path, ".vaultd/claimed/"+empty+"/")
	var found []ClaimedFolder
	strange := 0
	for c, err := range f.AllClaims() {
		if errors.Is(err, ErrUnexpectedItem) {
			strange++
			continue
		}
		kit.Must(t, err)
		found = append(found, c)
	}
	kit.Check(t, slices.Equal(found, []ClaimedFolder{a}) && strange == 3, "found %+v, strange %d", found, strange)
	if _, err := os.Lstat(path + "/.vaultd/claimed/" + empty); !errors.Is(err, fs.ErrNotExist) {
		t.Error("empty claim not cleared:", err)
	}
	kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/.vaultd/claimed/strange")), nil)
}

func TestClaim_I1_CrashAnywhereLosesNothing(t *testing.T) {
	crash(t, 4, func(path string) { put(t, path, "f/metadata.json") },
		func(f *Folder) error { _, err := f.ClaimFolder("f", now); return err },
		func(at string, f *Folder) {
			places := 0
			for c, err := range f.AllClaims() {
				kit.Check(t, err == nil && c.Folder == "f", `%s: %+v, %v, want no error, c.Folder = "f"`, at, c, err)
				places++
			}
			if _, err := os.Lstat(f.cfg.Path + "/f/metadata.json"); err == nil {
				places++
			}
			kit.Want(t, at+": places of the folder", places, 1)
			if got := len(tree(t, f.cfg.Path)); got > 5 {
				t.Errorf("%s: left %q", at, tree(t, f.cfg.Path))
			}
		})
}

func TestClaim_I1_SyncFailureIsLoudAndFindable(t *testing.T) {
	path := share(t)
	cfg := config(path)
	broken := false
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "rename" && name == "f" {
			broken = true
		}
		if op == "syncdir" && broken {
			return syscall.EIO
		}
		return do()
	}
	f := open(t, cfg)
	put(t, path, "f/x")
	kit.Fails(t, "ClaimFolder", kit.Err(f.ClaimFolder("f", now)), durable.ErrSync)
	n := 0
	for range f.AllClaims() {
		n++
	}
	kit.Want(t, "claims", n, 1)
}

// I5: a claim whose maker died before its syncs is synced before anybody builds on it; of a single file, with the folder that holds it.
func TestSecure_I5_SyncsWhatWasFound(t *testing.T) {
	type row struct {
		config       func(path string) Config
		file, folder string
	}
	kit.Rows(t, map[string]row{"Folder": {config, "Huber 88/scan.pdf", "claimed"}, "File": {fileConfig, "scan7.pdf/scan7.pdf", "scan7.pdf"}}, func(t *testing.T, row row) {
		path := share(t)
		open(t, row.config(path)).Close()
		key := archive.NewKey(now)
		put(t, filepath.Join(path, ".vaultd/claimed", key.String()), row.file)
		synced := map[string]bool{}
		cfg := row.config(path)
		cfg.Hook = func(op, name string, do func() error) error {
			if op == "syncdir" {
				synced[filepath.Base(name)] = true
			}
			return do()
		}
		f := open(t, cfg)
		for c, err := range f.AllClaims() {
			clear(synced)
			kit.Must(t, errors.Join(err, f.SyncClaim(c)))
		}
		kit.Check(t, synced[row.folder] && synced[key.String()] && synced["claimed"] && synced["in"], "synced: %v", synced)
	})
}
