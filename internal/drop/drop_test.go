package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
)

var now = time.Date(2026, 11, 20, 14, 32, 0, 0, time.UTC)

func config(path string) Config {
	return Config{Path: path, Name: "acme-in", LedgerID: "L1", Environment: "test", Epoch: 1}
}

// share makes a drop folder that is not yet open.
func share(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(path, 0o770); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, cfg Config) *Folder {
	t.Helper()
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// put makes files, with their folders, below base; the content is the path, a trailing slash makes a folder.
func put(t *testing.T, base string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(base, name)
		os.MkdirAll(filepath.Dir(path), 0o770)
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o770)
		} else {
			err = os.WriteFile(path, []byte(name), 0o660)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// tree lists everything below base but vaultd's own lock and mark, folders with a slash.
func tree(t *testing.T, base string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(base, path)
		if err != nil || rel == "." || strings.HasPrefix(rel, ".vaultd/lock") || strings.HasPrefix(rel, ".vaultd/drop.json") {
			return err
		}
		if e.IsDir() {
			rel += "/"
		}
		all = append(all, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func claim(t *testing.T, f *Folder, name string) Claimed {
	t.Helper()
	c, err := f.Claim(name, now)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asNobody runs do with the rights of an ordinary user, on this thread alone.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := errors.Join(unix.Setfsgid(65534), unix.Setfsuid(65534)); err != nil {
		t.Skip("cannot drop rights:", err)
	}
	defer func() { unix.Setfsuid(0); unix.Setfsgid(0) }()
	do()
}

func TestOpen_I16_SecondProcessSaysWhoHoldsIt(t *testing.T) {
	path := share(t)
	if os.Getenv("DROP_TEST_PATH") != "" { // the other process
		f, err := Open(config(os.Getenv("DROP_TEST_PATH")))
		if f != nil {
			f.Close()
		}
		fmt.Println("RESULT", err)
		return
	}
	f := open(t, config(path))
	other := func() string {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOpen_I16_SecondProcessSaysWhoHoldsIt$", "-test.v")
		cmd.Env = append(os.Environ(), "DROP_TEST_PATH="+path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	host, _ := os.Hostname()
	if out := other(); !strings.Contains(out, fmt.Sprintf("in use by process %d on %s since 20", os.Getpid(), host)) {
		t.Errorf("second process: %s", out)
	}
	_, err := Open(config(path))
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Errorf("same process: %v", err)
	}
	f.Close()
	if out := other(); !strings.Contains(out, "RESULT <nil>") {
		t.Errorf("after release: %s", out)
	}
}

func TestOpen_I19_ForeignFolderIsNotTouched(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"OtherLedger":      func(c *Config) { c.LedgerID = "L2" },
		"OtherEnvironment": func(c *Config) { c.Environment = "production" },
		"OlderCopy":        func(c *Config) { c.Epoch = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			path := share(t)
			open(t, config(path)).Close()
			before, _ := os.ReadFile(path + "/.vaultd/lock")
			cfg := config(path)
			change(&cfg)
			_, err := Open(cfg)
			var foreign *ForeignError
			if !errors.As(err, &foreign) || foreign.LedgerID != "L1" || !strings.Contains(err.Error(), "nothing in it was touched") {
				t.Errorf("%v", err)
			}
			if after, _ := os.ReadFile(path + "/.vaultd/lock"); string(after) != string(before) {
				t.Error("lock file rewritten")
			}
		})
	}
	path := share(t)
	open(t, config(path)).Close()
	later := config(path)
	later.Epoch = 2
	open(t, later).Close()
	if _, err := Open(config(path)); err == nil {
		t.Error("the epoch before was let in again")
	}
}

func TestOpen_UnmountedIsNotNew(t *testing.T) {
	cfg := config(share(t))
	cfg.Bound = true
	if _, err := Open(cfg); !errors.Is(err, ErrAway) {
		t.Errorf("empty folder: %v", err)
	}
	if got := tree(t, cfg.Path); len(got) != 0 {
		t.Errorf("made %q in it", got)
	}
	cfg.Path += "-missing"
	if _, err := Open(cfg); !errors.Is(err, ErrAway) {
		t.Errorf("missing folder: %v", err)
	}
}

func TestOpen_RefusesVaultdFolderOfOthers(t *testing.T) {
	path := share(t)
	os.Symlink(t.TempDir(), path+"/.vaultd")
	if _, err := Open(config(path)); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("link: %v", err)
	}
	os.Remove(path + "/.vaultd")
	os.Mkdir(path+"/.vaultd", 0o700)
	os.Chmod(path+"/.vaultd", 0o770)
	if _, err := Open(config(path)); err == nil || !strings.Contains(err.Error(), "written by others") {
		t.Errorf("open to the group: %v", err)
	}
	if os.Getuid() != 0 {
		t.Skip("not root: cannot make a folder of another user")
	}
	os.Chmod(path+"/.vaultd", 0o700)
	os.Chown(path+"/.vaultd", 65534, 65534)
	if _, err := Open(config(path)); err == nil || !strings.Contains(err.Error(), "not by vaultd") {
		t.Errorf("of another user: %v", err)
	}
}

func TestCheck_VanishedReplacedForeign(t *testing.T) {
	path := share(t)
	f := open(t, config(path))
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	os.Rename(path, path+".aside")
	if err := f.Check(); !errors.Is(err, ErrAway) {
		t.Errorf("vanished: %v", err)
	}
	os.Mkdir(path, 0o770)
	if err := f.Check(); !errors.Is(err, ErrAway) {
		t.Errorf("replaced: %v", err)
	}
	os.Remove(path)
	os.Rename(path+".aside", path)
	if err := f.Check(); err != nil {
		t.Errorf("back again: %v", err)
	}
	os.WriteFile(path+"/.vaultd/drop.json", []byte(`{"ledger":"L2","environment":"test"}`), 0o600)
	var foreign *ForeignError
	if err := f.Check(); !errors.As(err, &foreign) {
		t.Errorf("foreign mark: %v", err)
	}
	os.Rename(path+"/.vaultd", path+"/elsewhere")
	if err := f.Check(); !errors.Is(err, ErrAway) {
		t.Errorf("mark moved away: %v", err)
	}
}

func TestClaim_I1_TakesTheFolderWhole(t *testing.T) {
	path := share(t)
	f := open(t, config(path))
	put(t, path, "Huber 88/metadata.json", "Huber 88/sub/a.pdf")
	c := claim(t, f, "Huber 88")
	at := ".vaultd/claimed/" + c.Key.String() + "/"
	want := []string{".vaultd/", ".vaultd/claimed/", at, at + "Huber 88/", at + "Huber 88/metadata.json", at + "Huber 88/sub/", at + "Huber 88/sub/a.pdf"}
	if got := tree(t, path); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if !c.Key.Time().Equal(now) || c.Owner != uint32(os.Getuid()) || c.Node.Ino == 0 {
		t.Errorf("%+v", c)
	}
	dir, again, err := f.OpenClaimed(c.Key)
	if err != nil || again != c {
		t.Fatalf("%+v, %v", again, err)
	}
	defer dir.Close()
	if _, err := dir.Root().Stat("sub/a.pdf"); err != nil {
		t.Error(err)
	}
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
		if c, err := f.Claim(name, now); err == nil {
			t.Errorf("%q claimed: %+v", name, c)
		}
	}
	good := []string{"new\nline", "\xff\xfe", strings.Repeat("ü", 127) + "x", " ", "-rf", `a\b`, "\x1b[31m", "...", "Huber", "HUBER", "_Huber"}
	for _, name := range good {
		put(t, path, name+"/metadata.json")
	}
	for _, name := range good {
		c, err := f.Claim(name, now)
		if err != nil || c.Folder != name {
			t.Errorf("%q: %v", name, err)
			continue
		}
		rel, err := f.Destination(Rejected, name, now)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if err := f.Place(c, rel, Reason("NOT ARCHIVED.")); err != nil {
			t.Errorf("%q to %q: %v", name, rel, err)
		}
	}
	if _, err := os.Lstat(path + "/_rejected/HUBER (2)"); err != nil {
		t.Error("case twin not numbered:", err)
	}
	for c, err := range f.Claims() {
		t.Errorf("left claimed: %+v, %v", c, err)
	}
	if got := tree(t, outside); !slices.Equal(got, []string{"precious/", "precious/x"}) {
		t.Errorf("outside: %q", got)
	}
}

func TestClaim_FaultsSayWhatToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "(owner ", syscall.EPERM: "chmod -R g+rwX", syscall.EBUSY: "in use", syscall.ETXTBSY: "in use",
		syscall.EXDEV: "another device", syscall.EROFS: "read-only", syscall.ENOENT: "gone", syscall.EIO: "input/output",
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			path := share(t)
			cfg := config(path)
			cfg.Fault = func(op, name string, do func() error) error {
				if op == "rename" && name == "Huber 88" {
					return &os.LinkError{Op: "rename", Err: errno}
				}
				return do()
			}
			f := open(t, cfg)
			put(t, path, "Huber 88/metadata.json")
			_, err := f.Claim("Huber 88", now)
			var refused *ClaimError
			if !errors.As(err, &refused) || !errors.Is(err, errno) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
			if got := tree(t, path); !slices.Equal(got, []string{".vaultd/", ".vaultd/claimed/", "Huber 88/", "Huber 88/metadata.json"}) {
				t.Errorf("left %q", got)
			}
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
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		_, err = f.Claim("Huber 88", now)
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), `no right to take "Huber 88" (owner`) || !strings.Contains(err.Error(), "0555") {
			t.Errorf("%v", err)
		}
	})
	if got := tree(t, path); !slices.Equal(got, []string{".vaultd/", ".vaultd/claimed/", "Huber 88/", "Huber 88/metadata.json"}) {
		t.Errorf("left %q", got)
	}
}

// A link put in the folder's place between the look and the rename is put back.
func TestClaim_SwappedByALink(t *testing.T) {
	path, outside := share(t), t.TempDir()
	cfg := config(path)
	cfg.Fault = func(op, name string, do func() error) error {
		if op == "rename" && name == "f" {
			if err := os.Rename(path+"/f", path+"/g"); err == nil {
				os.Symlink(outside, path+"/f")
			}
		}
		return do()
	}
	f := open(t, cfg)
	put(t, path, "f/metadata.json")
	if _, err := f.Claim("f", now); !errors.Is(err, ErrNotFolder) {
		t.Errorf("%v", err)
	}
	if target, err := os.Readlink(path + "/f"); target != outside {
		t.Errorf("link not put back: %v", err)
	}
	for c, err := range f.Claims() {
		t.Errorf("left claimed: %+v, %v", c, err)
	}
}

func TestClaims_ForeignThingsStayAndAreNamed(t *testing.T) {
	path := share(t)
	f := open(t, config(path))
	put(t, path, "a/x", "b/x")
	a, b := claim(t, f, "a"), claim(t, f, "b")
	put(t, path, ".vaultd/claimed/strange/", ".vaultd/claimed/"+b.Key.String()+"/second/", ".vaultd/claimed/file")
	empty := strings.Repeat("0", 25) + "4"
	put(t, path, ".vaultd/claimed/"+empty+"/")
	var found []Claimed
	strange := 0
	for c, err := range f.Claims() {
		if errors.Is(err, ErrStrange) {
			strange++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, c)
	}
	if !slices.Equal(found, []Claimed{a}) || strange != 3 {
		t.Errorf("found %+v, strange %d", found, strange)
	}
	if _, err := os.Lstat(path + "/.vaultd/claimed/" + empty); !errors.Is(err, fs.ErrNotExist) {
		t.Error("empty claim not cleared:", err)
	}
	if _, err := os.Lstat(path + "/.vaultd/claimed/strange"); err != nil {
		t.Error(err)
	}
}

// crash runs do again and again, each time dying at the next operation, in both forms: before it and after it. After each
// death recover runs with a fresh Folder; it must finish. do tells whether it died.
func crash(t *testing.T, least int, prepare func(path string), do func(f *Folder) error, recover_ func(at string, f *Folder)) {
	t.Helper()
	type death struct{ op string }
	for _, form := range []string{"Before", "After"} {
		for n := 1; ; n++ {
			path := share(t)
			open(t, config(path)).Close()
			prepare(path)
			count, died := 0, ""
			cfg := config(path)
			armed := false
			cfg.Fault = func(op, name string, run func() error) error {
				if !armed {
					return run()
				}
				if count++; count != n {
					return run()
				}
				if form == "After" {
					run()
				}
				panic(death{op})
			}
			f, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			func() {
				defer f.Close()
				defer func() {
					if r := recover(); r != nil {
						d, ok := r.(death)
						if !ok {
							panic(r)
						}
						died = d.op
					}
				}()
				armed = true
				if err := do(f); err != nil {
					t.Errorf("%s %d: %v", form, n, err)
				}
			}()
			if died == "" {
				if n <= least {
					t.Fatalf("only %d operations: the test is vacuous", n-1)
				}
				break
			}
			again := open(t, config(path))
			recover_(fmt.Sprintf("%s %d (%s)", form, n, died), again)
			again.Close()
		}
	}
}

func TestClaim_I1_CrashAnywhereLosesNothing(t *testing.T) {
	crash(t, 4, func(path string) { put(t, path, "f/metadata.json") },
		func(f *Folder) error { _, err := f.Claim("f", now); return err },
		func(at string, f *Folder) {
			places := 0
			for c, err := range f.Claims() {
				if err != nil || c.Folder != "f" {
					t.Errorf("%s: %+v, %v", at, c, err)
				}
				places++
			}
			if _, err := os.Lstat(f.cfg.Path + "/f/metadata.json"); err == nil {
				places++
			}
			if places != 1 {
				t.Errorf("%s: the folder is in %d places", at, places)
			}
			if got := len(tree(t, f.cfg.Path)); got > 5 {
				t.Errorf("%s: left %q", at, tree(t, f.cfg.Path))
			}
		})
}

func TestClaim_I1_SyncFailureIsLoudAndFindable(t *testing.T) {
	path := share(t)
	cfg := config(path)
	broken := false
	cfg.Fault = func(op, name string, do func() error) error {
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
	if _, err := f.Claim("f", now); !errors.Is(err, durable.ErrSync) {
		t.Errorf("%v", err)
	}
	n := 0
	for range f.Claims() {
		n++
	}
	if n != 1 {
		t.Errorf("%d claims", n)
	}
}
