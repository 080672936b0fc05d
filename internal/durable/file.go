package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// TempFile is a new file that does not bear its name yet. The caller writes to it, then calls [TempFile.Commit], or
// [TempFile.Discard] at any time. A name has one writer at a time.
type TempFile struct {
	*os.File
	dir  *Dir
	name string
	from *Dir   // where it lies until then
	temp string // its name there
	done bool
}

// Create makes the file name with exactly the mode perm, under a temporary name beside it.
func (d *Dir) Create(name string, perm os.FileMode) (*TempFile, error) {
	if err := checkSingleName("create", name); err != nil {
		return nil, err
	}
	temp := TemporaryName(name)
	// Remove what a crashed writer of this name left behind. O_EXCL then
	// refuses whatever else appears there.
	if err := d.Unlink(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return d.createTemp(name, d, temp, perm)
}

// CreateIn is Create with the file in another directory of the same file system
// until it bears its name, under a name that nobody can guess: others may write
// to d, and could be in the way of any name there. A crash leaves the file; see
// [IsUnfinished].
func (d *Dir) CreateIn(from *Dir, name string, perm os.FileMode) (*TempFile, error) {
	if err := checkSingleName("create", name); err != nil {
		return nil, err
	}
	return d.createTemp(name, from, unfinishedPrefix+rand.Text(), perm)
}

const unfinishedPrefix = ".unfinished-"

// IsUnfinished reports whether name is one that [Dir.CreateIn] gives.
func IsUnfinished(name string) bool { return strings.HasPrefix(name, unfinishedPrefix) }

// createTemp makes the file that is to be name in d, as temp in from.
func (d *Dir) createTemp(name string, from *Dir, temp string, perm os.FileMode) (*TempFile, error) {
	p := &TempFile{dir: d, name: name, from: from, temp: temp}
	err := d.hook.runOp("create", name, func() (err error) {
		p.File, err = from.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NONBLOCK, perm.Perm()) // O_NONBLOCK as in openDirFlags
		return err
	})
	if err != nil {
		if p.File != nil {
			p.Discard()
		}
		return nil, err
	}
	if err := from.runModeOp("chmod", name, func() error { return p.Chmod(perm) }); err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}

// SetGroup sets the group of the file. A file that has the group already is
// left alone: a sandbox may forbid the call.
func (p *TempFile) SetGroup(gid int) error {
	info, err := p.Stat()
	if err != nil || groupOf(info) == gid {
		return err
	}
	return p.from.runModeOp("chown", p.name, func() error { return p.Chown(-1, gid) })
}

// TemporaryName returns the name under which the file name is written before it gets its own.
func TemporaryName(name string) string {
	const longest = 255 - len("..tmp")
	if len(name) > longest {
		name = name[:longest]
	}
	return "." + name + ".tmp"
}

// Write writes to the file. It hides the method of the embedded file, so that a [Hook] sees each write.
func (p *TempFile) Write(b []byte) (n int, err error) {
	err = p.dir.hook.runOp("write", p.name, func() (err error) {
		n, err = p.File.Write(b)
		return err
	})
	return n, err
}

// Commit syncs the file, closes it, gives it its name (replacing a file of that name) and syncs the directory. When it fails
// before the rename it removes the file.
func (p *TempFile) Commit() error {
	if err := p.CommitWithoutDirSync(); err != nil {
		return err
	}
	// A crash here: after a power loss the name holds the old file, or none, as if Commit was never called.
	return p.dir.Sync()
}

// CommitWithoutDirSync is Commit without the sync of the directory: one sync can serve several files. Until that sync a power
// loss may leave the name with its old file, or with none. The file that bears the name is whole at any time.
func (p *TempFile) CommitWithoutDirSync() error {
	if p.done {
		return fmt.Errorf("commit %q: %w", p.name, fs.ErrClosed)
	}
	// The content is synced before the rename: else the new name could lead to an empty file after a power loss.
	if err := p.dir.hook.runOp("sync", p.name, p.File.Sync); err != nil {
		p.Discard()
		return fmt.Errorf("sync %q: %w: %w", p.name, ErrSync, err)
	}
	return p.CommitWithoutSync()
}

// CommitWithoutSync is Commit without any sync. After a power loss the name may hold the old file, the new one, an empty one
// or none. It is for files that are soon written again.
func (p *TempFile) CommitWithoutSync() error {
	if p.done {
		return fmt.Errorf("commit %q: %w", p.name, fs.ErrClosed)
	}
	p.done = true
	err := p.File.Close()
	if err == nil {
		// A crash before this rename leaves the temporary file; the next writer of the name removes it.
		err = p.dir.hook.runOp("rename", p.name, p.giveName)
	}
	if err != nil {
		// The first error counts. If this removal fails, the next writer of the name removes the file.
		_ = p.from.Unlink(p.temp)
	}
	return err
}

// giveName renames the file, and replaces a file that bears the name.
func (p *TempFile) giveName() error {
	return p.from.withDescriptor(func(from int) error {
		return p.dir.withDescriptor(func(to int) error { return pathError("rename", p.name, unix.Renameat(from, p.temp, to, p.name)) })
	})
}

// Discard removes the file. After a commit it does nothing, so it can be deferred.
func (p *TempFile) Discard() {
	if p.done {
		return
	}
	p.done = true
	// No error is reported: the next writer of the name removes what stays.
	_ = p.File.Close()
	_ = p.from.Unlink(p.temp)
}

// WriteFile writes a small file whole or not at all, with exactly the mode perm, replacing a file of that name.
func (d *Dir) WriteFile(name string, data []byte, perm os.FileMode) error {
	p, err := d.Create(name, perm)
	if err != nil {
		return err
	}
	defer p.Discard()
	if _, err := p.Write(data); err != nil {
		return err
	}
	return p.Commit()
}

// OpenRegular opens the regular file at rel (slash-separated, relative to root) for reading. It follows no link in rel,
// enters no other mount, and opens nothing but a regular file: a FIFO does not block, a device is not touched. The error
// wraps fs.ErrInvalid when there is something other than a regular file, and is a [*MountError] at a mount. The FileInfo
// describes the open file.
func OpenRegular(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	if !fs.ValidPath(strings.ToValidUTF8(rel, "_")) || rel == "." || strings.Contains(rel, "\x00") {
		return nil, nil, &os.PathError{Op: "open", Path: rel, Err: fs.ErrInvalid}
	}
	dir, err := root.OpenFile(".", openDirFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { dir.Close() }() // read-only; dir changes below
	at, err := Fstat(dir)
	if err != nil {
		return nil, nil, err
	}
	parents, name := path.Split(rel)
	for _, element := range strings.FieldsFunc(parents, func(r rune) bool { return r == '/' }) {
		next, inside, err := openDirSameMount(dir, at, element, rel)
		if err != nil {
			return nil, nil, err
		}
		dir.Close()
		dir, at = next, inside
	}
	return openRegularAt(dir, at, name, rel)
}

// OpenLock opens the file name directly in root for reading and writing, and makes it where it is missing. It is for a file
// that is locked and names its holder, so what is written to it must not reach another file. It refuses a link, anything but
// a regular file, and a file with a second name (a hard link) with an error that wraps fs.ErrInvalid.
func OpenLock(root *os.Root, name string) (*os.File, error) {
	if err := checkSingleName("open", name); err != nil {
		return nil, err
	}
	refused := func(what string) error {
		return fmt.Errorf("open %q: it %s, and what is written to it would reach something else: stop vaultd and remove it, it is made anew: %w", filepath.Join(root.Name(), name), what, fs.ErrInvalid)
	}
	const notRegular = "is no regular file"
	dir, err := root.OpenFile(".", openDirFlags, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	// Look first: only opening a device can already do something.
	if entry, err := Lstat(dir, name); err == nil && !entry.Mode().IsRegular() {
		return nil, refused(notRegular)
	}
	fd, err := openAt(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, refused(notRegular) // replaced since the look
	}
	if err != nil {
		return nil, pathError("open", filepath.Join(root.Name(), name), err)
	}
	file := os.NewFile(uintptr(fd), filepath.Join(root.Name(), name))
	opened, err := Fstat(file)
	switch {
	case err != nil:
	case !opened.Mode().IsRegular():
		err = refused(notRegular)
	case opened.stat.Nlink > 1:
		err = refused(fmt.Sprintf("has %d names (hard links)", opened.stat.Nlink))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// CloseLock ends a lock of flock and closes its file. Closing alone would leave the
// lock to a child that is forked at this moment, until it executes its program.
func CloseLock(f *os.File) error {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // if this fails, the closing ends the lock
	return f.Close()
}

// OpenDirAt opens the directory name in parent without following a link, and describes what was opened, which may be a mount.
// The error wraps fs.ErrInvalid when name is no directory.
func OpenDirAt(parent *os.File, name string) (*os.File, FileStat, error) {
	fd, err := openAt(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, FileStat{}, &os.PathError{Op: "open", Path: name, Err: fmt.Errorf("%q is not a directory: %w", name, fs.ErrInvalid)}
	}
	if err != nil {
		return nil, FileStat{}, pathError("open", name, err)
	}
	dir := os.NewFile(uintptr(fd), name)
	stat, err := Fstat(dir)
	if err != nil {
		dir.Close()
		return nil, FileStat{}, err
	}
	return dir, stat, nil
}

// openDirSameMount is OpenDirAt for a directory that must lie on the same mount as parent, which at describes. Errors name rel.
func openDirSameMount(parent *os.File, at FileStat, name, rel string) (*os.File, FileStat, error) {
	dir, inside, err := OpenDirAt(parent, name)
	if err != nil {
		return nil, FileStat{}, renamePathError(rel, err)
	}
	if inside.IsOnOtherMount(at) {
		dir.Close()
		return nil, FileStat{}, &MountError{Path: rel}
	}
	return dir, inside, nil
}

// renamePathError puts the longer path rel into an error of a call that knew the last element alone.
func renamePathError(rel string, err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return &os.PathError{Op: pe.Op, Path: rel, Err: pe.Err}
	}
	return err
}

// openRegularAt opens the regular file name in dir, which at describes. Errors name rel.
func openRegularAt(dir *os.File, at FileStat, name, rel string) (*os.File, fs.FileInfo, error) {
	notRegular := &os.PathError{Op: "open", Path: rel, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	// Look first: only opening a device can already do something.
	entry, err := Lstat(dir, name)
	switch {
	case err != nil:
		return nil, nil, renamePathError(rel, err)
	case entry.IsOnOtherMount(at):
		return nil, nil, &MountError{Path: rel}
	case !entry.Mode().IsRegular():
		return nil, nil, notRegular
	}
	fd, err := openAt(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, nil, notRegular // replaced since the look
	}
	if err != nil {
		return nil, nil, pathError("open", rel, err)
	}
	file := os.NewFile(uintptr(fd), rel)
	opened, err := Fstat(file)
	switch {
	case err != nil:
	case !opened.Mode().IsRegular():
		err = notRegular
	case !opened.IsSameFile(entry):
		// Another file bears the name since the look, and it was not checked whether that one is a mount.
		err = &os.PathError{Op: "open", Path: rel, Err: fmt.Errorf("exchanged while it was opened: %w", fs.ErrInvalid)}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, opened, nil
}

func openAt(dir *os.File, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), name, flags, perm)
		runtime.KeepAlive(dir)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
