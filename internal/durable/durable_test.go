package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

func open(t *testing.T, path string, f Hook) *Dir {
	t.Helper()
	d := kit.Value(Open(path, f))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

func names(t *testing.T, path string) []string {
	t.Helper()
	entries := kit.Value(os.ReadDir(path))(t)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// Every operation of a write fails once, in both forms; afterwards the name holds all of the old or all of the new, and
// the same write done again succeeds and leaves nothing beside it.
func TestWriteFile_I5_EveryFault(t *testing.T) {
	faults.EachOperation(t, 1, 4, func(f *faults.Fault) {
		dir := t.TempDir()
		kit.Must(t, open(t, dir, nil).WriteFile("receipt.json", []byte("old"), 0o660))
		f.On = true
		err := open(t, dir, f.File).WriteFile("receipt.json", []byte("new"), 0o660)
		kit.Check(t, (err != nil) == (f.Fired() != ""), "the write ends with %v", err)
		kit.Check(t, !strings.HasPrefix(f.Fired(), "sync") || errors.Is(err, ErrSync),
			"the write ends with %v, want ErrSync", err)
		got, _ := os.ReadFile(filepath.Join(dir, "receipt.json"))
		kit.Check(t, string(got) == "old" || string(got) == "new", "the file holds %q, want the old or the new content", got)
		kit.Must(t, open(t, dir, nil).WriteFile("receipt.json", []byte("again"), 0o660))
		kit.Want(t, "the folder", names(t, dir), []string{"receipt.json"})
	})
}

// The order of operations is the promise: a later one must not be asked for before an earlier one is over.
func TestOrder_I5_SyncBeforeRenameBeforeDirectory(t *testing.T) {
	var ops []string
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "from", "x"), 0o700)
	os.Mkdir(filepath.Join(dir, "to"), 0o700)
	d := open(t, dir, func(op, name string, do func() error) error {
		if op != "unlink" && op != "mount" {
			ops = append(ops, op+" "+filepath.Base(name))
		}
		return do()
	})
	from := kit.Value(d.OpenDir("from"))(t)
	defer from.Close()
	to := kit.Value(d.OpenDir("to"))(t)
	defer to.Close()
	for _, row := range []struct {
		do   func() error
		want []string
	}{
		{func() error { return to.WriteFile("f", []byte("x"), 0o600) }, []string{"create f", "chmod f", "write f", "sync f", "rename f", "syncdir to"}},
		{func() error { return from.Rename("x", to, "y") }, []string{"rename y", "syncdir to", "syncdir from"}},
		{func() error { return to.Rename("y", to, "z") }, []string{"rename z", "syncdir to"}},
		{func() error { return to.Mkdir("d", 0o770, -1) }, []string{"mkdir d", "chmod d", "syncdir to"}},
	} {
		ops = nil
		err := row.do()
		kit.Check(t, err == nil && slices.Equal(ops, row.want), "%q, want %q (%v)", ops, row.want, err)
	}
}

func TestWriteFile_ExactModeUnderUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	d := open(t, dir, nil)
	kit.Must(t, d.WriteFile("f", nil, 0o660))
	kit.Must(t, d.Mkdir("d", os.ModeSetgid|0o770, os.Getgid()))
	for name, want := range map[string]os.FileMode{"f": 0o660, "d": os.ModeDir | os.ModeSetgid | 0o770} {
		info, err := os.Lstat(filepath.Join(dir, name))
		kit.Check(t, err == nil && info.Mode() == want, "%s: mode %v, want %v (%v)", name, info.Mode(), want, err)
	}
}

func TestRename_NeverReplaces(t *testing.T) {
	for name, target := range map[string]func(path string) error{
		"EmptyDirectory": func(p string) error { return os.Mkdir(p, 0o700) },
		"File":           func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o600) },
		"DanglingLink":   func(p string) error { return os.Symlink("nowhere", p) },
	} {
		for _, way := range []string{"Renameat2", "ByLook"} {
			t.Run(name+way, func(t *testing.T) {
				base := t.TempDir()
				os.MkdirAll(filepath.Join(base, "from", "x"), 0o700)
				os.Mkdir(filepath.Join(base, "to"), 0o700)
				kit.Must(t, target(filepath.Join(base, "to", "x")))
				from, to := open(t, filepath.Join(base, "from"), nil), open(t, filepath.Join(base, "to"), nil)
				var err error
				if way == "ByLook" {
					err = renameAfterCheck(int(from.file.Fd()), "x", int(to.file.Fd()), "x")
				} else {
					err = from.Rename("x", to, "x")
				}
				kit.Fails(t, "error", err, fs.ErrExist)
				kit.Want(t, "source vanished", len(names(t, filepath.Join(base, "from"))), 1)
			})
		}
	}
}

func TestRename_ByLookMovesDirectories(t *testing.T) {
	base := t.TempDir()
	os.MkdirAll(filepath.Join(base, "from", "x", "deep"), 0o700)
	os.WriteFile(filepath.Join(base, "from", "file"), nil, 0o600)
	d := open(t, base, nil)
	from := kit.Value(d.OpenDir("from"))(t)
	defer from.Close()
	kit.Want(t, "the error of renameDirAfterCheck",
		renameDirAfterCheck(int(from.file.Fd()), "x", int(d.file.Fd()), "x"), nil)
	kit.Fails(t, "file", renameDirAfterCheck(int(from.file.Fd()), "file", int(d.file.Fd()), "file"), syscall.ENOTSUP)
	// Into a directory of the caller's own a file is moved as well, and still replaces nothing.
	os.WriteFile(filepath.Join(base, "taken"), nil, 0o600)
	kit.Fails(t, "replaced", renameAfterCheck(int(from.file.Fd()), "file", int(d.file.Fd()), "taken"), fs.ErrExist)
	kit.Want(t, "the error of renameAfterCheck",
		renameAfterCheck(int(from.file.Fd()), "file", int(d.file.Fd()), "file"), nil)
	kit.Want(t, "the moved folder", names(t, filepath.Join(base, "x")), []string{"deep"})
}

func TestSync_StaysFailed(t *testing.T) {
	calls := 0
	d := open(t, t.TempDir(), func(op, name string, do func() error) error {
		if op == "syncdir" {
			if calls++; calls == 1 {
				return syscall.EIO
			}
		}
		return do()
	})
	for range 2 {
		err := d.Sync()
		kit.Check(t, errors.Is(err, ErrSync) && errors.Is(err, syscall.EIO), "sync: %v", err)
	}
	kit.Want(t, fmt.Sprintf("synced %d times after a failure", calls-1), calls, 1)
}

// Each goroutine makes an entry, then syncs; when its Sync returns, a sync that began after its entry must be over.
func TestSync_SharedButNeverTooEarly(t *testing.T) {
	kit.Waits(t, 0.1, "callers have to come while a sync is under way")
	var clock, syncs atomic.Int64
	var mu sync.Mutex
	var covered int64
	d := open(t, t.TempDir(), func(op, name string, do func() error) error {
		if op != "syncdir" {
			return do()
		}
		began := clock.Add(1)
		syncs.Add(1)
		time.Sleep(100 * time.Microsecond) // a disk takes its time, and callers come meanwhile
		err := do()
		mu.Lock()
		covered = max(covered, began)
		mu.Unlock()
		return err
	})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				changed := clock.Add(1)
				kit.Want(t, "the error of Sync", d.Sync(), nil)
				mu.Lock()
				kit.Check(t, covered >= changed, "change %d, only synced up to %d", changed, covered)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	n := syncs.Load()
	kit.Check(t, n < 64*20, "%d syncs for %d callers: nothing was shared", n, 64*20)
}

func TestNames_I19_OnlySingleElements(t *testing.T) {
	d := open(t, t.TempDir(), nil)
	for _, name := range []string{"", ".", "..", "a/b", "../x", "/etc", "a\x00b"} {
		_, sub := d.OpenDir(name)
		for what, err := range map[string]error{
			"write": d.WriteFile(name, nil, 0o600), "mkdir": d.Mkdir(name, 0o700, -1), "unlink": d.Unlink(name),
			"rmdir": d.Rmdir(name), "rename from": d.Rename(name, d, "x"), "rename to": d.Rename("x", d, name), "sub": sub,
		} {
			kit.Check(t, err != nil && !errors.Is(err, fs.ErrNotExist),
				"%s %q reached the file system: %v", what, name, err)
		}
	}
}

func TestNames_HostileOnes(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	for _, name := range []string{"new\nline", "\xff\xfe", strings.Repeat("ü", 127) + "x", " ", "-rf", `a\b`, "\x1b[31m"} {
		kit.Want(t, fmt.Sprintf("%q", name), d.WriteFile(name, []byte(name), 0o600), nil)
		f, _, err := OpenRegular(d.Root(), name)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		f.Close()
	}
}

func TestSub_I19_RefusesLinks(t *testing.T) {
	base := t.TempDir()
	os.Mkdir(filepath.Join(base, "real"), 0o700)
	os.Symlink("real", filepath.Join(base, "inside"))
	os.Symlink("/", filepath.Join(base, "outside"))
	os.WriteFile(filepath.Join(base, "file"), nil, 0o600)
	d := open(t, base, nil)
	for _, name := range []string{"inside", "outside", "file"} {
		kit.Fails(t, name, kit.Err(d.OpenDir(name)), syscall.ENOTDIR)
	}
}

func TestOpenRegular_I19_NothingButRegularFiles(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	os.MkdirAll(at("sub/deep"), 0o700)
	os.WriteFile(at("sub/deep/ok"), []byte("ok"), 0o600)
	os.Symlink("sub", at("dirlink"))
	os.Symlink("deep/ok", at("sub/link"))
	os.Symlink("/etc/passwd", at("out"))
	os.Symlink("loop", at("loop"))
	kit.Must(t, syscall.Mkfifo(at("fifo"), 0o600))
	fd := kit.Value(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: at("sock")}); err != nil {
		t.Log("no socket in this test:", err)
	}
	root := open(t, base, nil).Root()
	f, info, err := OpenRegular(root, "sub/deep/ok")
	kit.Need(t, err == nil && info.Size() == 2, "regular file: %v", err)
	f.Close()
	for _, name := range []string{"dirlink/deep/ok", "sub/link", "out", "loop", "fifo", "sock", "sub", "sub/../sub/deep/ok", "/etc/passwd", "../x", "", ".", "sub/", "a\x00"} {
		if f, _, err := OpenRegular(root, name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v, want error fs.ErrInvalid", name, err)
			if f != nil {
				f.Close()
			}
		}
	}
	_, _, err = OpenRegular(root, "sub/missing")
	kit.Check(t, errors.Is(err, fs.ErrNotExist), "missing: %v", err)
}

func TestPending_DiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir, nil)
	p := kit.Value(d.Create("zip", 0o600))(t)
	fmt.Fprint(p, "half")
	p.Discard()
	p.Discard()
	kit.Fails(t, "commit after discard", p.Commit(), fs.ErrClosed)
	kit.Len(t, "left", names(t, dir), 0)
}

// A counter changes nothing and tells what was synced; a sync of a directory that serves several counts once.
func TestSyncCounter_CountsSyncs(t *testing.T) {
	var counter SyncCounter
	d := open(t, t.TempDir(), counter.CountSync)
	kit.Must(t, errors.Join(d.WriteFile("a", []byte("x"), 0o600), d.Mkdir("b", 0o700, -1)))
	if err := errors.Join(d.Unlink("a"), d.Rmdir("b")); err != nil { // neither syncs
		t.Fatal(err)
	}
	files, dirs := counter.FileAndDirSyncs()
	kit.Check(t, files == 1 && dirs == 2, "%d syncs of files and %d of directories, wanted 1 and 2", files, dirs)
}

// I21: a walk sees each entry once, leaves out what it is told to, and neither
// holds nor sees more of a folder of a million than it is asked for.
func TestWalk_I21_HoldsNoWholeFolder(t *testing.T) {
	dir := t.TempDir()
	for n := range 3000 {
		kit.Must(t, os.WriteFile(fmt.Sprintf("%s/%04d", dir, n), nil, 0o600))
	}
	for _, name := range []string{"sub/a", "sub/deep/b", "left out/c"} {
		kit.Must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	root := open(t, dir, nil).Root()
	walk := func(rel string, most int, stop error) (seen []string) {
		err := Walk(root, rel, most, func(rel string, e fs.DirEntry) error {
			seen = append(seen, rel)
			if e.Name() == "left out" {
				return fs.SkipDir
			}
			return stop
		})
		kit.Want(t, "the error", err, stop)
		slices.Sort(seen)
		return seen
	}
	all := walk(".", 10_000, nil)
	kit.Want(t, "all", strings.Join(all[2999:], " "), "2999 left out sub sub/a sub/deep sub/deep/b")
	kit.Want(t, "below", strings.Join(walk("sub", 10_000, nil), " "), "sub/a sub/deep sub/deep/b")
	kit.Want(t, "at most", len(walk(".", 700, nil)), 700)
	few := testing.AllocsPerRun(3, func() { walk(".", 10_000, fs.SkipAll) })
	kit.Check(t, few < 1500, "%.0f allocations until the first of 3,000 files, want those of one chunk", few)
}
