// Package durable changes directories so that the change survives power loss. A file is written whole or not at all. A
// directory entry is renamed without replacing another one. After each change the touched directories are synced. A few
// methods leave that sync to the caller, because one sync can serve many calls: [Dir.Unlink], [Dir.Rmdir],
// [Dir.SetModeAndGroup] and [TempFile.CommitWithoutDirSync]. [TempFile.CommitWithoutSync] and [OpenLock] sync nothing: their
// files may be lost.
//
// The package never removes a tree and never follows a link below the directory that the caller opened. It never syncs a
// file or a directory again after a sync failed: the kernel reports a lost write once, so a later success proves nothing. A
// file whose sync failed is removed.
//
// After a crash a name holds either the old content or the new one, and a renamed entry is in the old place or in the new
// one. A power loss between the two syncs of a rename may leave it in both. At most one temporary file per name
// (".<name>.tmp") stays behind; the next writer of that name removes it.
//
// Names are single path elements. They are resolved against an open directory, so nothing outside it is touched, whatever
// lies beside or above it.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrSync means that the kernel could not say whether a change reached the disk. It is wrapped in the error of the
// operation; the caller must not record the change as done, and a daemon should stop.
var ErrSync = errors.New("cannot tell whether the change reached the disk")

// Hook is called in place of each operation on the file system and calls do to perform it. Production code uses nil or
// [SyncCounter.CountSync], which always call do. A test may fail without calling do, call do and fail all the same, or panic
// to play a crash.
//
// op is one of create, write, sync, rename, mkdir, chown, chmod, unlink, rmdir and syncdir. Two more change nothing: mount
// compares the mount of an entry with that of its directory (a test returns a [*MountError] to play a mount), and statfs
// asks whether a directory is read-only (EROFS: it is) or on a network drive.
type Hook func(op, name string, do func() error) error

func (h Hook) runOp(op, name string, do func() error) error {
	if h == nil {
		return do()
	}
	return h(op, name, do)
}

// SyncCounter counts syncs. The zero value is ready, and may be used from several goroutines.
type SyncCounter struct{ files, dirs atomic.Uint64 }

// CountSync is a [Hook] that performs each operation and counts the syncs.
func (t *SyncCounter) CountSync(op, _ string, do func() error) error {
	switch op {
	case "sync":
		t.files.Add(1)
	case "syncdir":
		t.dirs.Add(1)
	}
	return do()
}

// FileAndDirSyncs returns how many syncs of files and of directories were counted.
func (t *SyncCounter) FileAndDirSyncs() (files, dirs uint64) { return t.files.Load(), t.dirs.Load() }

// Dir is an open directory. It keeps pointing at the same directory when that is renamed. Its methods may be called from
// several goroutines. Calls of [Dir.Sync] that arrive while a sync runs share the next one.
type Dir struct {
	root     *os.Root
	file     *os.File
	hook     Hook
	openedAs FileStat // the directory itself, when it was opened

	ignoresModes atomic.Bool // see IgnoreModeErrors

	syncing sync.Mutex // held while a sync runs

	mu      sync.Mutex
	waiting *sharedSync // guarded by mu: the sync that has not begun; it covers whoever joins it
	syncErr error       // guarded by mu: the first failed sync
}

// sharedSync is one sync that several callers wait for.
type sharedSync struct {
	once sync.Once
	err  error
}

// Open opens the directory at path. Links in path are followed, because the administrator wrote it.
func Open(path string, hook Hook) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return newDir(root, hook)
}

// openDirFlags are the flags for opening a directory. With O_NONBLOCK package os skips four system calls that set and clear
// it; a directory never blocks.
const openDirFlags = os.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK

func newDir(root *os.Root, hook Hook) (*Dir, error) {
	file, err := root.OpenFile(".", openDirFlags, 0)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	stat, err := Fstat(file)
	if err != nil {
		return nil, errors.Join(err, file.Close(), root.Close())
	}
	return &Dir{root: root, file: file, hook: hook, openedAs: stat}, nil
}

// Close releases the directory. It does not sync.
func (d *Dir) Close() error {
	return errors.Join(d.file.Close(), d.root.Close())
}

// Root returns the directory as an [os.Root], which confines whoever opens what lies deeper. It is closed with d.
func (d *Dir) Root() *os.Root { return d.root }

// Stat describes the directory itself.
func (d *Dir) Stat() (os.FileInfo, error) { return d.file.Stat() }

// EachName calls do with the name of each entry of d, in no order.
func (d *Dir) EachName(do func(name string) error) error {
	// A new open file: the reading position belongs to this call alone.
	list, err := d.root.OpenFile(".", openDirFlags, 0)
	if err != nil {
		return err
	}
	defer list.Close() // read-only
	return EachName(list, do)
}

// EachName calls do with the name of each entry of the open directory dir, in no order. It reads the names in chunks, so
// memory does not grow with the directory. The first error of do ends it.
func EachName(dir *os.File, do func(name string) error) error {
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Walk calls do for what lies in the folder rel of root and in those below it,
// each folder before what is in it, with paths relative to root. It reads the
// names in chunks, and ends after most of them: a folder may hold a million. An
// error of do ends it, but for [fs.SkipDir], which leaves a folder out.
func Walk(root *os.Root, rel string, most int, do func(rel string, e fs.DirEntry) error) error {
	for dirs := []string{rel}; len(dirs) > 0 && most > 0; dirs = dirs[1:] {
		inside, err := walkFolder(root, dirs[0], &most, do)
		if err != nil {
			return err
		}
		dirs = append(dirs, inside...)
	}
	return nil
}

// walkFolder calls do for what lies in one folder, and returns the folders in it.
func walkFolder(root *os.Root, rel string, most *int, do func(rel string, e fs.DirEntry) error) (inside []string, err error) {
	dir, err := root.OpenFile(rel, openDirFlags, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	for {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if *most--; *most < 0 {
				return nil, nil
			}
			switch err := do(path.Join(rel, e.Name()), e); {
			case err == nil && e.IsDir():
				inside = append(inside, path.Join(rel, e.Name()))
			case err != nil && !errors.Is(err, fs.SkipDir):
				return nil, err
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(entries) == 0 {
			return inside, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// IsReadOnly reports whether the file system of d is mounted read-only for this process. It is false where that is unknown.
func (d *Dir) IsReadOnly() bool {
	err := d.hook.runOp("statfs", ".", func() error {
		var st unix.Statfs_t
		if err := d.withDescriptor(func(fd int) error { return unix.Fstatfs(fd, &st) }); err != nil || st.Flags&unix.ST_RDONLY == 0 {
			// Unknown counts as writable: the next write fails if it is not.
			return nil
		}
		return unix.EROFS
	})
	return errors.Is(err, unix.EROFS)
}

// OpenDir opens the directory name inside d. It refuses a link, even one that stays inside, with an error that wraps
// ENOTDIR, and a mount with a [*MountError].
func (d *Dir) OpenDir(name string) (*Dir, error) {
	sub, err := d.OpenDirOrMount(name)
	if err != nil {
		return nil, err
	}
	// Compare the open directory, not the entry: a mount may appear between the two, and an automount appears on opening.
	if err := d.hook.checkSameMount(name, d.openedAs, sub.openedAs); err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// OpenDirOrMount is [Dir.OpenDir] for a directory that an administrator may put on another disk by a mount.
func (d *Dir) OpenDirOrMount(name string) (*Dir, error) {
	if err := checkSingleName("open", name); err != nil {
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
	sub, err := newDir(root, d.hook)
	if err != nil {
		return nil, err
	}
	sub.ignoresModes.Store(d.ignoresModes.Load())
	// OpenRoot follows links, so the open directory must be the entry that was checked.
	if !sub.openedAs.IsSameFile(entry) {
		return nil, errors.Join(notDir, sub.Close())
	}
	return sub, nil
}

// Sync makes the entries of d durable. One sync serves all who asked before it began. A failure is an [ErrSync], and every
// later Sync of this Dir fails as well.
func (d *Dir) Sync() error {
	// Join the sync that has not begun. The one that is running may have begun before the caller's change.
	d.mu.Lock()
	if d.waiting == nil {
		d.waiting = new(sharedSync)
	}
	b := d.waiting
	d.mu.Unlock()

	b.once.Do(func() { b.err = d.runSync() })
	return b.err
}

func (d *Dir) runSync() error {
	d.syncing.Lock()
	defer d.syncing.Unlock()

	d.mu.Lock()
	// Later callers may have changed something after this sync began: they need another one.
	d.waiting = nil
	failed := d.syncErr
	d.mu.Unlock()
	if failed != nil {
		return failed
	}
	err := d.hook.runOp("syncdir", d.root.Name(), d.file.Sync)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		// Some file systems cannot sync a directory: nothing more can be done for its entries there.
		return nil
	}
	// Remember the failure: the kernel reports a lost write once, so the next sync could succeed and prove nothing.
	err = fmt.Errorf("sync directory %q: %w: %w", d.root.Name(), ErrSync, err)
	d.mu.Lock()
	d.syncErr = err
	d.mu.Unlock()
	return err
}

// Mkdir makes the directory name with exactly the mode perm (setgid included, umask not applied) and, unless gid is -1,
// that group, and syncs d. It fails with an error that wraps fs.ErrExist when the name is taken by anything.
func (d *Dir) Mkdir(name string, perm os.FileMode, gid int) error {
	if err := checkSingleName("mkdir", name); err != nil {
		return err
	}
	// A new directory begins with mode 0700: a crash before its group is set
	// leaves a directory that nobody else can enter. If d passes on the group
	// and setgid by itself it begins with perm: a sandbox may forbid the chmod
	// that follows.
	begin := os.FileMode(0o700)
	if perm&fs.ModeSetgid != 0 {
		info, err := d.Stat()
		if err != nil {
			return err
		}
		if hasModeAndGroup(info, info.Mode()&(fs.ModePerm|fs.ModeSticky)|fs.ModeSetgid, gid) {
			begin = perm.Perm() | perm&fs.ModeSticky
		}
	}
	if err := d.hook.runOp("mkdir", name, func() error { return d.makeDir(name, begin) }); err != nil {
		return err
	}
	// A crash here leaves the directory with its first mode. The caller sees fs.ErrExist next time and calls SetModeAndGroup.
	if err := d.SetModeAndGroup(name, perm, gid); err != nil {
		return err
	}
	return d.Sync()
}

// makeDir makes the directory name, sticky if perm has that bit, which the library's call refuses.
func (d *Dir) makeDir(name string, perm os.FileMode) error {
	mode := uint32(perm.Perm())
	if perm&fs.ModeSticky != 0 {
		mode |= unix.S_ISVTX
	}
	return d.withDescriptor(func(fd int) error { return pathError("mkdir", name, unix.Mkdirat(fd, name, mode)) })
}

// hasModeAndGroup reports whether a directory has the mode and, unless gid is -1, the group.
func hasModeAndGroup(info fs.FileInfo, perm os.FileMode, gid int) bool {
	const bits = fs.ModePerm | fs.ModeSetgid | fs.ModeSetuid | fs.ModeSticky
	return info.Mode()&bits == perm&bits && (gid == -1 || groupOf(info) == gid)
}

// groupOf returns the group of a file, or -1 where it is unknown.
func groupOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Gid)
	}
	return -1
}

// IgnoreModeErrors makes d, and each directory that is opened in it from now
// on, ignore errors of chmod and chown: the caller has found that modes and
// groups come from the mount there.
func (d *Dir) IgnoreModeErrors() { d.ignoresModes.Store(true) }

// IsUnsupportedMode reports whether an error of chmod or chown is that of a
// file system whose modes come from its mount. EPERM has other causes too.
func IsUnsupportedMode(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOTSUP)
}

// runModeOp runs chmod or chown.
func (d *Dir) runModeOp(op, name string, do func() error) error {
	err := d.hook.runOp(op, name, do)
	if d.ignoresModes.Load() && IsUnsupportedMode(err) {
		return nil
	}
	return err
}

// SetModeAndGroup sets the mode of the directory name and, unless gid is -1, its group, without following a link. It does
// not sync.
//
// A sandbox may forbid every call that sets setgid (systemd's RestrictSUIDSGID) or changes an owner. A directory that
// inherited the right mode and group is therefore left alone, and where setgid is refused the directory gets the rest of its
// mode, so that its group can work in it.
func (d *Dir) SetModeAndGroup(name string, perm os.FileMode, gid int) error {
	if err := checkSingleName("chmod", name); err != nil {
		return err
	}
	info, err := d.root.Lstat(name)
	if err == nil && info.IsDir() && hasModeAndGroup(info, perm, gid) {
		return nil
	}
	if gid != -1 && (err != nil || groupOf(info) != gid) {
		if err := d.runModeOp("chown", name, func() error { return d.root.Lchown(name, -1, gid) }); err != nil {
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
	// The chmod comes after the chown, which clears setgid for unprivileged users.
	err = d.runModeOp("chmod", name, func() error { return sub.file.Chmod(perm) })
	if perm&fs.ModeSetgid != 0 && errors.Is(err, unix.EPERM) {
		err = d.runModeOp("chmod", name, func() error { return sub.file.Chmod(perm &^ fs.ModeSetgid) })
	}
	return err
}

// Unlink removes the entry name, which must not be a directory. It does not sync: one [Dir.Sync] after the last of many
// removals is enough. Until then a power loss may bring the entry back.
func (d *Dir) Unlink(name string) error { return d.removeEntry("unlink", name, 0) }

// Rmdir removes the directory name. It fails with ENOTEMPTY when the directory is not empty. It does not sync, as Unlink.
func (d *Dir) Rmdir(name string) error { return d.removeEntry("rmdir", name, unix.AT_REMOVEDIR) }

func (d *Dir) removeEntry(op, name string, flags int) error {
	if err := checkSingleName(op, name); err != nil {
		return err
	}
	return d.hook.runOp(op, name, func() error {
		return d.withDescriptor(func(fd int) error {
			return pathError(op, name, unix.Unlinkat(fd, name, flags))
		})
	})
}

// withDescriptor calls do with the descriptor of d, which stays open until do returns.
func (d *Dir) withDescriptor(do func(fd int) error) error {
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

// checkSingleName refuses a name that is a path: one of its elements could be replaced by a link.
func checkSingleName(op, name string) error {
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
