package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// TempFile is a file that does not have its name yet. Write to it, then [TempFile.Commit], or [TempFile.Discard] at any time.
// One writer per name at a time.
type TempFile struct {
	*os.File
	dir  *Dir
	name string
	done bool
}

// Create begins the file name with exactly the mode perm, under a temporary name beside it.
func (d *Dir) Create(name string, perm os.FileMode) (*TempFile, error) {
	if err := single("create", name); err != nil {
		return nil, err
	}
	p := &TempFile{dir: d, name: name}
	if err := d.Unlink(p.temp()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err := d.fault.run("create", name, func() (err error) {
		p.File, err = d.root.OpenFile(p.temp(), os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NONBLOCK, perm.Perm()) // as readDir
		return err
	})
	if err != nil {
		if p.File != nil {
			p.Discard()
		}
		return nil, err
	}
	if err := p.Chmod(perm); err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}

// TemporaryName gives the name under which the file name is written before it has its own.
func TemporaryName(name string) string {
	const longest = 255 - len("..tmp")
	if len(name) > longest {
		name = name[:longest]
	}
	return "." + name + ".tmp"
}

func (p *TempFile) temp() string { return TemporaryName(p.name) }

// Write hides the embedded file's, so that tests can fail it.
func (p *TempFile) Write(b []byte) (n int, err error) {
	err = p.dir.fault.run("write", p.name, func() (err error) {
		n, err = p.File.Write(b)
		return err
	})
	return n, err
}

// Commit syncs the file, closes it, gives it its name (replacing a file of that name) and syncs the directory. On failure
// before the rename the file is thrown away; it is never synced twice.
func (p *TempFile) Commit() error {
	if err := p.CommitWithoutDirSync(); err != nil {
		return err
	}
	return p.dir.Sync()
}

// CommitWithoutDirSync is Commit without the sync of the directory, which can serve several files: until then a crash may leave the name
// with its old file, or with none. What the name leads to is whole at any time.
func (p *TempFile) CommitWithoutDirSync() error {
	if p.done {
		return fmt.Errorf("commit %q: %w", p.name, fs.ErrClosed)
	}
	if err := p.dir.fault.run("sync", p.name, p.File.Sync); err != nil {
		p.Discard()
		return fmt.Errorf("sync %q: %w: %w", p.name, ErrSync, err)
	}
	p.done = true
	err := p.File.Close()
	if err == nil {
		err = p.dir.fault.run("rename", p.name, func() error { return p.dir.root.Rename(p.temp(), p.name) })
	}
	if err != nil {
		// Best effort, the first error counts; the next writer of this name removes what stays.
		_ = p.dir.Unlink(p.temp())
	}
	return err
}

// Discard throws the file away. After Commit or Publish it does nothing, so it can be deferred.
func (p *TempFile) Discard() {
	if p.done {
		return
	}
	p.done = true
	// Nothing was promised about this file, and the next writer of its name removes what stays.
	_ = p.File.Close()
	_ = p.dir.Unlink(p.temp())
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

// OpenRegular opens the regular file at rel (slash-separated, relative to root) for reading. No element of rel is followed
// when it is a link, no other mount is entered or opened, and nothing but a regular file is opened: a FIFO does not
// block, a device is not touched. The error wraps fs.ErrInvalid when what lies there is not a regular file; a mount is
// a [*MountError]. The FileInfo is that of the open file.
func OpenRegular(root *os.Root, rel string) (*os.File, fs.FileInfo, error) {
	if !fs.ValidPath(strings.ToValidUTF8(rel, "_")) || rel == "." || strings.Contains(rel, "\x00") {
		return nil, nil, &os.PathError{Op: "open", Path: rel, Err: fs.ErrInvalid}
	}
	dir, err := root.OpenFile(".", readDir, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() { dir.Close() }() // read-only: its close has nothing to tell
	at, err := Fstat(dir)
	if err != nil {
		return nil, nil, err
	}
	parents, name := path.Split(rel)
	for _, element := range strings.FieldsFunc(parents, func(r rune) bool { return r == '/' }) {
		next, inside, err := openDirAt(dir, at, element, rel)
		if err != nil {
			return nil, nil, err
		}
		dir.Close()
		dir, at = next, inside
	}
	return openFileAt(dir, at, name, rel)
}

// OpenLock opens the file name directly in root for reading and writing, and makes it where it is missing. It is for a file that is
// locked, and that says who holds it: what is written to it must not reach anything else. A link is not followed, nothing but a regular
// file is opened, and one that has a second name (a hard link) is refused; the error wraps fs.ErrInvalid then.
func OpenLock(root *os.Root, name string) (*os.File, error) {
	if err := single("open", name); err != nil {
		return nil, err
	}
	refused := func(what string) error {
		return fmt.Errorf("open %q: it %s, and what is written to it would reach something else: stop vaultd and remove it, it is made anew: %w", filepath.Join(root.Name(), name), what, fs.ErrInvalid)
	}
	const special = "is no regular file"
	dir, err := root.OpenFile(".", readDir, 0)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	if seen, err := Lstat(dir, name); err == nil && !seen.Mode().IsRegular() {
		return nil, refused(special) // opening a device can already do something
	}
	fd, err := openatMode(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return nil, refused(special) // swapped since the look
	}
	if err != nil {
		return nil, pathError("open", filepath.Join(root.Name(), name), err)
	}
	file := os.NewFile(uintptr(fd), filepath.Join(root.Name(), name))
	info, err := file.Stat()
	switch opened, ok := sysOf(info); {
	case err != nil:
	case !info.Mode().IsRegular():
		err = refused(special)
	case ok && opened.Nlink > 1:
		err = refused(fmt.Sprintf("has %d names (hard links)", opened.Nlink))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// OpenDirAt opens the directory name in parent without following it when it is a link, and says what was opened: that may be a mount.
// The error wraps fs.ErrInvalid when it is no directory.
func OpenDirAt(parent *os.File, name string) (*os.File, *FileStat, error) {
	fd, err := openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil, &os.PathError{Op: "open", Path: name, Err: fmt.Errorf("%q is not a directory: %w", name, fs.ErrInvalid)}
	}
	if err != nil {
		return nil, nil, pathError("open", name, err)
	}
	dir := os.NewFile(uintptr(fd), name)
	seen, err := Fstat(dir)
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	return dir, seen, nil
}

// openDirAt is OpenDirAt for a directory that must not be a mount: at describes parent. rel is what errors name.
func openDirAt(parent *os.File, at *FileStat, name, rel string) (*os.File, *FileStat, error) {
	dir, inside, err := OpenDirAt(parent, name)
	if err != nil {
		return nil, nil, pathIs(rel, err)
	}
	if inside.IsOnOtherMount(at) {
		dir.Close()
		return nil, nil, &MountError{Path: rel}
	}
	return dir, inside, nil
}

// pathIs names what a failed call was about by its longer path.
func pathIs(rel string, err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return &os.PathError{Op: pe.Op, Path: rel, Err: pe.Err}
	}
	return err
}

func openFileAt(dir *os.File, at *FileStat, name, rel string) (*os.File, fs.FileInfo, error) {
	notRegular := &os.PathError{Op: "open", Path: rel, Err: fmt.Errorf("not a regular file: %w", fs.ErrInvalid)}
	seen, err := Lstat(dir, name)
	switch {
	case err != nil:
		return nil, nil, pathIs(rel, err)
	case seen.IsOnOtherMount(at):
		return nil, nil, &MountError{Path: rel}
	case seen.stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, nil, notRegular // opening a device can already do something
	}
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, nil, notRegular // swapped since the look
	}
	if err != nil {
		return nil, nil, pathError("open", rel, err)
	}
	file := os.NewFile(uintptr(fd), rel)
	info, err := file.Stat()
	switch opened, ok := sysOf(info); {
	case err != nil:
	case !info.Mode().IsRegular():
		err = notRegular
	case ok && (opened.Ino != seen.stat.Ino || opened.Dev != seen.stat.Dev):
		// Another file bears the name since the look, and nobody looked whether that one is a mount.
		err = &os.PathError{Op: "open", Path: rel, Err: fmt.Errorf("exchanged while it was opened: %w", fs.ErrInvalid)}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

// sysOf gives the system's own form of a FileInfo of package os.
func sysOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

func openat(dir *os.File, name string, flags int) (int, error) {
	return openatMode(dir, name, flags, 0)
}

func openatMode(dir *os.File, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(int(dir.Fd()), name, flags, perm)
		runtime.KeepAlive(dir)
		if err != unix.EINTR {
			return fd, err
		}
	}
}
