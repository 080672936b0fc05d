// Package durable changes directories so that the change survives power loss: files are written whole or not at all,
// renames never replace anything, and every change is followed by a sync of each directory it touched; but for removals and
// [TempFile.CommitWithoutDirSync], which come in numbers and leave it to the caller.
//
// It never removes a tree, never follows a link, and never syncs a file or a directory a second time after a sync failed:
// the kernel reports a lost write once, so a later "success" would be a lie. A file whose sync failed is thrown away.
//
// After a crash a name holds either the old content or the new one, and a directory entry is in the old place or in the
// new one. At most one temporary file per name (".<name>.tmp") stays behind; the next writer of that name removes it.
//
// Names are single path elements, resolved against an open directory: whatever people put beside or above it, nothing
// outside that directory is touched.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrSync means that the kernel could not say whether a change reached the disk. It is wrapped in the error of the
// operation; the caller must not record the change as done, and a daemon should stop.
var ErrSync = errors.New("cannot tell whether the change reached the disk")

// Hook stands between this package and the file system. In production it just does, as nil and [SyncCounter.CountSync] do; in tests
// it may fail an operation without doing it, do it and fail all the same, or panic to play a crash. op is one of create,
// write, sync, rename, mkdir, chown, chmod, unlink, rmdir, syncdir, and mount: it compares the mounts of an entry and its
// directory, and changes nothing; a test that returns a [*MountError] there plays a mount. statfs: it looks whether a
// directory is read-only, and changes nothing; EROFS says that it is.
type Hook func(op, name string, do func() error) error

func (f Hook) run(op, name string, do func() error) error {
	if f == nil {
		return do()
	}
	return f(op, name, do)
}

// SyncCounter counts syncs. The zero value is ready, and may be used from several goroutines.
type SyncCounter struct{ files, dirs atomic.Uint64 }

// CountSync is a [Hook] that does what it is asked to, and counts what was synced.
func (t *SyncCounter) CountSync(op, _ string, do func() error) error {
	switch op {
	case "sync":
		t.files.Add(1)
	case "syncdir":
		t.dirs.Add(1)
	}
	return do()
}

// FileAndDirSyncs returns how often a file was synced, and a directory.
func (t *SyncCounter) FileAndDirSyncs() (files, dirs uint64) { return t.files.Load(), t.dirs.Load() }

// Dir is an open directory. It keeps pointing at the same directory when that is renamed. Its methods may be called from
// several goroutines; syncs that are asked for while one is running share the next one.
type Dir struct {
	root  *os.Root
	file  *os.File
	fault Hook
	seen  *FileStat // when it was opened

	turn sync.Mutex // held by the one sync that is running

	mu     sync.Mutex
	next   *batch // guarded by mu: the sync that is not yet running; who joins it is covered by it
	broken error  // guarded by mu: the first failed sync
}

type batch struct {
	once sync.Once
	err  error
}

// Open opens the directory at path, following links in path (the administrator wrote it).
func Open(path string, fault Hook) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return newDir(root, fault)
}

// readDir opens a directory. What is opened as non-blocking is not made so first, and then blocking again, which would
// be four calls more for something that knows no difference.
const readDir = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK

func newDir(root *os.Root, fault Hook) (*Dir, error) {
	file, err := root.OpenFile(".", readDir, 0)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	seen, err := Fstat(file)
	if err != nil {
		return nil, errors.Join(err, file.Close(), root.Close())
	}
	return &Dir{root: root, file: file, fault: fault, seen: seen}, nil
}

// Close releases the directory. It does not sync.
func (d *Dir) Close() error {
	return errors.Join(d.file.Close(), d.root.Close())
}

// Root gives the directory as the confinement for opening what lies deeper. It belongs to d and is closed with it.
func (d *Dir) Root() *os.Root { return d.root }

// Stat describes the directory itself.
func (d *Dir) Stat() (os.FileInfo, error) { return d.file.Stat() }

// ReadOnly reports whether the directory's file system is mounted read-only for this process; false where that cannot be told.
func (d *Dir) ReadOnly() bool {
	err := d.fault.run("statfs", ".", func() error {
		var st unix.Statfs_t
		if err := d.control(func(fd int) error { return unix.Fstatfs(fd, &st) }); err != nil || st.Flags&unix.ST_RDONLY == 0 {
			return nil // or it cannot be told: whoever writes there meets it
		}
		return unix.EROFS
	})
	return errors.Is(err, unix.EROFS)
}

// OpenDir opens the directory name inside d. A link, even one that stays inside, is refused with an error that wraps ENOTDIR, and a
// mount with a [*MountError].
func (d *Dir) OpenDir(name string) (*Dir, error) {
	sub, err := d.OpenDirOrMount(name)
	if err != nil {
		return nil, err
	}
	// What was opened is compared, not the entry: a mount may have come in between, and some come by being opened.
	if err := d.fault.crossed(name, d.seen, sub.seen); err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// OpenDirOrMount is Sub for a directory that an administrator may put on another disk by a mount.
func (d *Dir) OpenDirOrMount(name string) (*Dir, error) {
	if err := single("open", name); err != nil {
		return nil, err
	}
	entry, err := Lstat(d.file, name)
	if err != nil {
		return nil, err
	}
	notDir := &os.PathError{Op: "open directory", Path: name, Err: unix.ENOTDIR}
	if !entry.IsDir() {
		return nil, notDir
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	sub, err := newDir(root, d.fault)
	if err != nil {
		return nil, err
	}
	// OpenRoot follows links, so what was opened must be what was seen.
	if !sub.seen.IsSameFile(entry) {
		return nil, errors.Join(notDir, sub.Close())
	}
	return sub, nil
}

// Sync makes the entries of d durable. One sync serves all who asked before it began. A failure is an [ErrSync] and stays:
// every later Sync of this Dir fails as well.
func (d *Dir) Sync() error {
	d.mu.Lock()
	if d.next == nil {
		d.next = new(batch)
	}
	b := d.next
	d.mu.Unlock()

	b.once.Do(func() { b.err = d.syncNow() })
	return b.err
}

func (d *Dir) syncNow() error {
	d.turn.Lock()
	defer d.turn.Unlock()

	d.mu.Lock()
	d.next = nil // who comes from here on may have changed something after the sync began
	broken := d.broken
	d.mu.Unlock()
	if broken != nil {
		return broken
	}
	err := d.fault.run("syncdir", d.root.Name(), d.file.Sync)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // some file systems have no sync for directories: their renames are as durable as they get
	}
	err = fmt.Errorf("sync directory %q: %w: %w", d.root.Name(), ErrSync, err)
	d.mu.Lock()
	d.broken = err
	d.mu.Unlock()
	return err
}

// Mkdir makes the directory name with exactly the mode perm (setgid included, umask not applied) and, unless gid is -1,
// that group, and syncs d. It fails with an error that wraps fs.ErrExist when name is taken by anything.
//
// It begins with mode 0700, so a crash in between leaves a directory that nobody else can enter; [Dir.SetModeAndGroup] finishes it.
// Only where d hands down the group and setgid anyway it begins with what it is to be.
func (d *Dir) Mkdir(name string, perm os.FileMode, gid int) error {
	if err := single("mkdir", name); err != nil {
		return err
	}
	begin, err := d.beginMode(perm, gid)
	if err != nil {
		return err
	}
	if err := d.fault.run("mkdir", name, func() error { return d.root.Mkdir(name, begin) }); err != nil {
		return err
	}
	if err := d.SetModeAndGroup(name, perm, gid); err != nil {
		return err
	}
	return d.Sync()
}

// beginMode is the mode that a new directory is made with.
func (d *Dir) beginMode(perm os.FileMode, gid int) (os.FileMode, error) {
	if perm&fs.ModeSetgid == 0 {
		return 0o700, nil
	}
	info, err := d.Stat()
	if err != nil {
		return 0, err
	}
	if hasGrant(info, info.Mode().Perm()|fs.ModeSetgid, gid) {
		return perm.Perm(), nil
	}
	return 0o700, nil
}

// hasGrant reports whether a directory has the mode and, unless gid is -1, the group.
func hasGrant(info fs.FileInfo, perm os.FileMode, gid int) bool {
	const bits = fs.ModePerm | fs.ModeSetgid | fs.ModeSetuid
	return info.Mode()&bits == perm&bits && (gid == -1 || groupOf(info) == gid)
}

// groupOf is the group of a file, or -1 where that cannot be told.
func groupOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// SetGroup gives an open file to a group, unless it has it already: a sandbox may forbid the call.
func SetGroup(f *os.File, gid int) error {
	info, err := f.Stat()
	if err != nil || groupOf(info) == gid {
		return err
	}
	return f.Chown(-1, gid)
}

// SetModeAndGroup gives the directory name its mode and, unless gid is -1, its group, without following a link. It does not sync.
//
// A sandbox may forbid every call that sets setgid (systemd's RestrictSUIDSGID), or that gives things away. What has the
// right mode and group by inheritance is therefore left alone, and where setgid is refused the directory gets the rest of
// its mode: its group can work in it.
func (d *Dir) SetModeAndGroup(name string, perm os.FileMode, gid int) error {
	if err := single("chmod", name); err != nil {
		return err
	}
	info, err := d.root.Lstat(name)
	if err == nil && info.IsDir() && hasGrant(info, perm, gid) {
		return nil
	}
	if gid != -1 && (err != nil || groupOf(info) != gid) {
		if err := d.fault.run("chown", name, func() error { return d.root.Lchown(name, -1, gid) }); err != nil {
			return err
		}
	}
	if perm == 0o700 {
		return nil
	}
	sub, err := d.OpenDir(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	// After chown, which clears setgid for those without privileges.
	err = d.fault.run("chmod", name, func() error { return sub.file.Chmod(perm) })
	if perm&fs.ModeSetgid != 0 && errors.Is(err, unix.EPERM) {
		err = d.fault.run("chmod", name, func() error { return sub.file.Chmod(perm.Perm()) })
	}
	return err
}

// Unlink removes the name of anything but a directory, and Rmdir that of an empty directory. Neither syncs: removals come
// in numbers, and one [Dir.Sync] after the last is enough.
func (d *Dir) Unlink(name string) error { return d.remove("unlink", name, 0) }

// Rmdir removes the empty directory name; ENOTEMPTY tells that it is not empty. It does not sync.
func (d *Dir) Rmdir(name string) error { return d.remove("rmdir", name, unix.AT_REMOVEDIR) }

func (d *Dir) remove(op, name string, flags int) error {
	if err := single(op, name); err != nil {
		return err
	}
	return d.fault.run(op, name, func() error {
		return d.control(func(fd int) error {
			return pathError(op, name, unix.Unlinkat(fd, name, flags))
		})
	})
}

// control lends the descriptor for one call, safe against a concurrent Close.
func (d *Dir) control(do func(fd int) error) error {
	raw, err := d.file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return err
	}
	return result
}

// single refuses names that are paths: a second element could be a link that someone swaps in.
func single(op, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return &os.PathError{Op: op, Path: name, Err: errors.New("not a single name")}
	}
	return nil
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}
