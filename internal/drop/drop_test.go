package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

var now = time.Date(2026, 11, 20, 14, 32, 0, 0, time.UTC)

func config(path string) Config {
	return Config{Path: path, Name: "acme-in", LedgerID: "L1", Environment: "test", Epoch: 1}
}

// share makes a drop folder that is not yet open.
func share(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in")
	kit.Must(t, os.Mkdir(path, 0o770))
	return path
}

func open(t *testing.T, cfg Config) *Folder {
	t.Helper()
	f := kit.Value(Open(cfg))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

// opened is an open drop folder, and where it is.
func opened(t *testing.T) (string, *Folder) {
	t.Helper()
	path := share(t)
	return path, open(t, config(path))
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
		kit.Must(t, err)
	}
}

// tree lists everything below base but vaultd's own lock and mark, and the
// place for what is kept while nothing is, folders with a slash.
func tree(t *testing.T, base string) []string {
	t.Helper()
	var all []string
	kit.Must(t, filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(base, path)
		if err != nil || rel == "." || strings.HasPrefix(rel, ".vaultd/lock") || strings.HasPrefix(rel, ".vaultd/drop.json") {
			return err
		}
		if names, _ := os.ReadDir(path); rel == "_archived" && len(names) == 0 {
			return nil // made when the folder is opened
		}
		if e.IsDir() {
			rel += "/"
		}
		all = append(all, rel)
		return nil
	}))
	return all
}

func claim(t *testing.T, f *Folder, name string) ClaimedFolder {
	t.Helper()
	c := kit.Value(f.ClaimFolder(name, now))(t)
	return c
}

// asNobody runs do with the rights of an ordinary user, on this thread alone.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	asUser(t, 65534, 65534, do)
}

// asUser runs do with the rights that file modes give to a user, on this thread alone.
func asUser(t *testing.T, uid, gid int, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := errors.Join(unix.Setfsgid(gid), unix.Setfsuid(uid)); err != nil {
		kit.Missing(t, "the right to drop rights: "+err.Error())
	}
	defer func() { unix.Setfsuid(0); unix.Setfsgid(0) }()
	do()
}

// I16: the lock ends with Close, also while a child that was just forked has its descriptor.
func TestOpen_I16_LockEndsWithClose(t *testing.T) {
	path := share(t)
	f := kit.Value(Open(config(path)))(t)
	child := kit.Value(syscall.Dup(int(f.lock.Fd())))(t)
	defer syscall.Close(child)
	kit.Must(t, f.Close())
	kit.Must(t, kit.Value(Open(config(path)))(t).Close())
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
		kit.Need(t, err == nil, "%v\n%s", err, out)
		return string(out)
	}
	host, _ := os.Hostname()
	kit.Holds(t, "the output", other(), fmt.Sprintf("in use by process %d on %s since 20", os.Getpid(), host))
	_, err := Open(config(path))
	var locked *LockedError
	kit.Check(t, errors.As(err, &locked), "same process: %v", err)
	f.Close()
	kit.Holds(t, "the output", other(), "RESULT <nil>")
}

func TestOpen_I19_ForeignFolderIsNotTouched(t *testing.T) {
	kit.Rows(t, map[string]func(*Config){
		"OtherLedger":      func(c *Config) { c.LedgerID = "L2" },
		"OtherEnvironment": func(c *Config) { c.Environment = "production" },
		"OlderCopy":        func(c *Config) { c.Epoch = 0 },
	}, func(t *testing.T, change func(*Config)) {
		path := share(t)
		open(t, config(path)).Close()
		before, _ := os.ReadFile(path + "/.vaultd/lock")
		cfg := config(path)
		change(&cfg)
		_, err := Open(cfg)
		var foreign *ForeignError
		kit.Check(t, errors.As(err, &foreign) && foreign.LedgerID == "L1" && strings.Contains(err.Error(), "nothing in it was touched"),
			`%v, want errors.As(err, &foreign), foreign.LedgerID = "L1", err with "nothing in it was touched"`, err)
		after, _ := os.ReadFile(path + "/.vaultd/lock")
		kit.Check(t, string(after) == string(before), "lock file rewritten")
	})
	path := share(t)
	open(t, config(path)).Close()
	later := config(path)
	later.Epoch = 2
	open(t, later).Close()
	kit.Fails(t, "the epoch before was let in again", kit.Err(Open(config(path))))
}

func TestOpen_UnmountedIsNotNew(t *testing.T) {
	cfg := config(share(t))
	cfg.HasWorkedHere = true
	kit.Fails(t, "empty folder", kit.Err(Open(cfg)), ErrUnavailable)
	kit.Len(t, "made", tree(t, cfg.Path), 0)
	cfg.Path += "-missing"
	kit.Fails(t, "missing folder", kit.Err(Open(cfg)), ErrUnavailable)
}

// TestOpen_I16_LostMark: a folder in which this ledger worked and that has no
// mark any more may be another ledger's by now. It gets no new mark.
func TestOpen_I16_LostMark(t *testing.T) {
	path := share(t)
	open(t, config(path)).Close()
	kit.Must(t, os.Remove(path+"/.vaultd/drop.json"))
	cfg := config(path)
	cfg.HasWorkedHere = true
	kit.Fails(t, "error", kit.Err(Open(cfg)), ErrUnavailable)
	_, ok, err := ReadMark(path)
	kit.Must(t, err)
	kit.Want(t, "the folder has a mark", ok, false)
}

// TestTakeOver_I16_OnlyWhatIsOurs: a takeover never writes its mark into the
// folder of another ledger, of the other environment or of a later epoch.
func TestTakeOver_I16_OnlyWhatIsOurs(t *testing.T) {
	ours := OwnershipMark{LedgerID: "L1", Environment: "test", Epoch: 1}
	for name, row := range map[string]struct {
		mark      OwnershipMark
		isRefused bool
	}{
		"NextEpoch":        {OwnershipMark{"L1", "test", 2, nil}, false},
		"SameEpoch":        {ours, false},
		"EarlierEpoch":     {OwnershipMark{"L1", "test", 0, nil}, true},
		"OtherLedger":      {OwnershipMark{"L2", "test", 2, nil}, true},
		"OtherEnvironment": {OwnershipMark{"L1", "production", 2, nil}, true},
	} {
		path := share(t)
		open(t, config(path)).Close()
		err := TakeOverFolder(path, row.mark)
		_, isForeign := errors.AsType[*ForeignError](err)
		kit.Check(t, isForeign == row.isRefused && (isForeign || err == nil), "%s: error = %v, want a ForeignError: %v", name, err, row.isRefused)
		want := row.mark
		if row.isRefused {
			want = ours
		}
		got, _, err := ReadMark(path)
		kit.Must(t, err)
		kit.Want(t, name+": mark", got, want)
	}
}

func TestOpen_RefusesVaultdFolderOfOthers(t *testing.T) {
	path := share(t)
	os.Symlink(t.TempDir(), path+"/.vaultd")
	kit.Fails(t, "link", kit.Err(Open(config(path))), syscall.ENOTDIR)
	os.Remove(path + "/.vaultd")
	os.Mkdir(path+"/.vaultd", 0o700)
	os.Chmod(path+"/.vaultd", 0o770)
	_, err := Open(config(path))
	kit.Check(t, err != nil && strings.Contains(err.Error(), "written by others"), "open to the group: %v", err)
	if os.Getuid() != 0 {
		kit.Missing(t, "root, to make a folder of another user")
	}
	os.Chmod(path+"/.vaultd", 0o700)
	os.Chown(path+"/.vaultd", 65534, 65534)
	_, err = Open(config(path))
	kit.Check(t, err != nil && strings.Contains(err.Error(), "not by vaultd"), "of another user: %v", err)
}

func TestCheck_VanishedReplacedForeign(t *testing.T) {
	path, f := opened(t)
	kit.Must(t, f.CheckStillOurs())
	os.Rename(path, path+".aside")
	kit.Fails(t, "vanished", f.CheckStillOurs(), ErrUnavailable)
	os.Mkdir(path, 0o770)
	kit.Fails(t, "replaced", f.CheckStillOurs(), ErrUnavailable)
	os.Remove(path)
	os.Rename(path+".aside", path)
	kit.Want(t, "back again", f.CheckStillOurs(), nil)
	os.WriteFile(path+"/.vaultd/drop.json", []byte(`{"ledger":"L2","environment":"test"}`), 0o600)
	var foreign *ForeignError
	err := f.CheckStillOurs()
	kit.Check(t, errors.As(err, &foreign), "foreign mark: %v", err)
	os.Rename(path+"/.vaultd", path+"/elsewhere")
	kit.Fails(t, "mark moved away", f.CheckStillOurs(), ErrUnavailable)
}

// crash runs do again and again, each time dying at the next operation, in both forms: before it and after it. After each
// death recover runs with a fresh Folder; it must finish. do tells whether it died.
func crash(t *testing.T, least int, prepare func(path string), do func(f *Folder) error, recover_ func(at string, f *Folder)) {
	t.Helper()
	crashIn(t, config, least, prepare, do, recover_)
}

// crashIn is crash in a drop folder of another configuration.
func crashIn(t *testing.T, config func(path string) Config, least int, prepare func(path string), do func(f *Folder) error, recover_ func(at string, f *Folder)) {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // hundreds of syncs: what is tested is their order, not the disk
	}
	type death struct{}
	faults.EachOperation(t, 1, least, func(fault *faults.Fault) {
		if fault.Full {
			return // a death before the operation is the same
		}
		path := share(t)
		open(t, config(path)).Close()
		prepare(path)
		cfg := config(path)
		cfg.Hook = func(op, name string, run func() error) error {
			if !fault.Hit(op) {
				return run()
			}
			if fault.Done {
				run()
			}
			panic(death{})
		}
		f := kit.Value(Open(cfg))(t)
		func() {
			defer f.Close()
			defer func() {
				if r := recover(); r != nil && r != (death{}) {
					panic(r)
				}
			}()
			fault.On = true
			kit.Must(t, do(f))
		}()
		if fault.Fired() == "" {
			return
		}
		again := open(t, config(path))
		recover_(fault.String(), again)
		again.Close()
	})
}

// A planted lock file is not opened: what it leads to is neither written nor cut, and a FIFO blocks nobody.
func TestOpen_I19_APlantedLockFile(t *testing.T) {
	type row struct {
		plant func(path, lock string) error
		says  string
	}
	kit.Rows(t, map[string]row{
		"Link":     {func(_, lock string) error { return os.Symlink("drop.json", lock) }, "no regular file"},
		"LinkOut":  {func(path, lock string) error { return os.Symlink(path+"/precious", lock) }, "no regular file"},
		"Dangling": {func(_, lock string) error { return os.Symlink("none", lock) }, "no regular file"},
		"HardLink": {func(path, lock string) error { return os.Link(path+"/precious", lock) }, "2 names"},
		"FIFO":     {func(_, lock string) error { return syscall.Mkfifo(lock, 0o600) }, "no regular file"},
		"Folder":   {func(_, lock string) error { return os.Mkdir(lock, 0o700) }, "no regular file"},
	}, func(t *testing.T, row row) {
		path, f := opened(t)
		kit.Must(t, f.Close())
		const words = "what nobody has archived, and longer than a line about the holder of a lock, whoever and wherever that may be just now"
		mark, err := os.ReadFile(path + "/.vaultd/drop.json")
		kit.Must(t, errors.Join(err, os.WriteFile(path+"/precious", []byte(words), 0o600), os.Remove(path+"/.vaultd/lock"), row.plant(path, path+"/.vaultd/lock")))
		f, err = Open(config(path))
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), ".vaultd/lock") || !strings.Contains(err.Error(), "remove it") {
			t.Errorf(`%v, want an error, err with %q, err with ".vaultd/lock", err with "remove it"`, err, row.says)
		}
		kit.Want(t, "the mark was written", string(kit.Value(os.ReadFile(path+"/.vaultd/drop.json"))(t)), string(mark))
		kit.Want(t, "written through the link", string(kit.Value(os.ReadFile(path+"/precious"))(t)), words)
		kit.Fails(t, "made through the link", kit.Err(os.Lstat(path+"/.vaultd/none")))
	})
}
