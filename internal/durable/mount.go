package durable

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MountError says that something lies on another mount, or on another device, than the directory it was reached through: what is
// in it belongs to another place. It wraps EXDEV and fs.ErrInvalid.
type MountError struct {
	Path string // as the caller asked for it; "." is the directory itself
}

// Error implements error.
func (e *MountError) Error() string {
	return fmt.Sprintf("%q is a mount of its own: what lies in it belongs to another place", e.Path)
}

// Unwrap lets callers ask with errors.Is.
func (e *MountError) Unwrap() []error { return []error{unix.EXDEV, fs.ErrInvalid} }

// FileStat is what one look at a file saw, and the mount through which the look went. It is an [fs.FileInfo] whose Sys is a
// *syscall.Stat_t; os.SameFile does not know it.
type FileStat struct {
	name  string
	stat  syscall.Stat_t
	mount uint64 // 0: this kernel does not tell
}

// Lstat looks at the file name in dir, without following it when it is a link.
func Lstat(dir *os.File, name string) (*FileStat, error) {
	return statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

// Fstat looks at an open file.
func Fstat(file *os.File) (*FileStat, error) { return statAt(file, "", unix.AT_EMPTY_PATH) }

// statAt is one call. Kernels before 5.8 do not tell the mount, and those before 4.11 have no statx at all.
func statAt(dir *os.File, name string, flags int) (*FileStat, error) {
	raw, err := dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	var st unix.Statx_t
	ctlErr := raw.Control(func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Statx(int(fd), name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st)
		}
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			err = withoutStatx(int(fd), name, flags, &st)
		}
	})
	if err := cmp.Or(ctlErr, err); err != nil {
		return nil, pathError("stat", name, err)
	}
	return seenOf(name, &st), nil
}

func withoutStatx(fd int, name string, flags int, to *unix.Statx_t) error {
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, flags); err != nil {
		return err
	}
	moment := func(t unix.Timespec) unix.StatxTimestamp {
		return unix.StatxTimestamp{Sec: t.Sec, Nsec: uint32(t.Nsec)}
	}
	*to = unix.Statx_t{Mode: uint16(st.Mode), Nlink: uint32(st.Nlink), Uid: st.Uid, Gid: st.Gid, Ino: st.Ino, Size: uint64(st.Size),
		Blksize: uint32(st.Blksize), Blocks: uint64(st.Blocks), Atime: moment(st.Atim), Mtime: moment(st.Mtim), Ctime: moment(st.Ctim),
		Dev_major: unix.Major(st.Dev), Dev_minor: unix.Minor(st.Dev), Rdev_major: unix.Major(st.Rdev), Rdev_minor: unix.Minor(st.Rdev)}
	return nil
}

func seenOf(name string, st *unix.Statx_t) *FileStat {
	moment := func(t unix.StatxTimestamp) syscall.Timespec { return syscall.Timespec{Sec: t.Sec, Nsec: int64(t.Nsec)} }
	s := &FileStat{name: name}
	s.stat.Dev, s.stat.Rdev = unix.Mkdev(st.Dev_major, st.Dev_minor), unix.Mkdev(st.Rdev_major, st.Rdev_minor)
	s.stat.Ino, s.stat.Mode, s.stat.Uid, s.stat.Gid = st.Ino, uint32(st.Mode), st.Uid, st.Gid
	setNlink(&s.stat, st.Nlink)
	s.stat.Size, s.stat.Blocks = int64(st.Size), int64(st.Blocks)
	s.stat.Atim, s.stat.Mtim, s.stat.Ctim = moment(st.Atime), moment(st.Mtime), moment(st.Ctime)
	if st.Mask&unix.STATX_MNT_ID != 0 {
		s.mount = st.Mnt_id
	}
	return s
}

// number is any type of a count: that of links differs between machines.
type number interface{ ~uint32 | ~uint64 }

func convert[T number](to *T, n uint32) { *to = T(n) }

func setNlink(st *syscall.Stat_t, n uint32) { convert(&st.Nlink, n) }

// Name implements [fs.FileInfo].
func (s *FileStat) Name() string { return s.name }

// Size implements [fs.FileInfo].
func (s *FileStat) Size() int64 { return s.stat.Size }

// ModTime implements [fs.FileInfo].
func (s *FileStat) ModTime() time.Time { return time.Unix(s.stat.Mtim.Unix()) }

// IsDir implements [fs.FileInfo].
func (s *FileStat) IsDir() bool { return s.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// Sys implements [fs.FileInfo]: a *syscall.Stat_t.
func (s *FileStat) Sys() any { return &s.stat }

// Mode implements [fs.FileInfo], as those of package os do.
func (s *FileStat) Mode() fs.FileMode {
	mode := fs.FileMode(s.stat.Mode & 0o777)
	switch s.stat.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	}
	if s.stat.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if s.stat.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if s.stat.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// IsSameFile reports whether both looks saw the same file.
func (s *FileStat) IsSameFile(t *FileStat) bool {
	return s.stat.Dev == t.stat.Dev && s.stat.Ino == t.stat.Ino
}

// IsOnOtherMount reports whether s, an entry of the directory that parent saw, lies on another mount. Where the kernel does not tell
// mounts apart only another device is seen, and of directories alone: a file of an overlay can have another one than its directory.
func (s *FileStat) IsOnOtherMount(parent *FileStat) bool {
	return s.mount != parent.mount || s.IsDir() && s.stat.Dev != parent.stat.Dev
}

// crossed is Crosses as an error.
func (f Hook) crossed(name string, parent, entry *FileStat) error {
	if f == nil && !entry.IsOnOtherMount(parent) { // no closure for each file of a folder
		return nil
	}
	return f.run("mount", name, func() error {
		if entry.IsOnOtherMount(parent) {
			return &MountError{Path: name}
		}
		return nil
	})
}

// Lstat describes the entry name of d, without following it when it is a link. What is a mount of its own is a [*MountError].
func (d *Dir) Lstat(name string) (*FileStat, error) {
	if err := single("look at", name); err != nil {
		return nil, err
	}
	seen, err := Lstat(d.file, name)
	if err != nil {
		return nil, err
	}
	return seen, d.fault.crossed(name, d.seen, seen)
}

// Bounds of the walk that looks for mounts. What is deeper or larger is answered by the kernel's table of mounts, whose cost
// does not depend on the folder.
const (
	deepestWalk = 16
	mostWalked  = 20_000
)

var errNotWalked = errors.New("too deep or too large to be walked through")

// FindMount looks for a mount in d or anywhere below it. The error is a [*MountError] that names the first one relative to d; nil:
// there is none. Any other error says that nobody can tell.
//
// A mount is told by its number, which statx gives for each file. Where the kernel does not give it (before 5.8), where not everything
// may be read, and where the folder is very deep or large, /proc/self/mountinfo is asked instead.
func (d *Dir) FindMount() error {
	if d.seen.mount == 0 {
		return d.findInTable()
	}
	top, err := d.root.OpenFile(".", readDir, 0)
	if err != nil {
		return d.findInTable()
	}
	w := mountWalk{fault: d.fault, left: mostWalked}
	err = errors.Join(w.folder(top, d.seen, "", 0), top.Close())
	if _, found := errors.AsType[*MountError](err); found || err == nil {
		return err
	}
	return d.findInTable()
}

type mountWalk struct {
	fault Hook
	left  int // entries
}

func (w *mountWalk) folder(dir *os.File, at *FileStat, rel string, depth int) error {
	if depth > deepestWalk {
		return errNotWalked
	}
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if w.left--; w.left < 0 {
				return errNotWalked
			}
			if err := w.entry(dir, at, name, path.Join(rel, name), depth); err != nil && !errors.Is(err, fs.ErrNotExist) {
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

func (w *mountWalk) entry(dir *os.File, at *FileStat, name, rel string, depth int) error {
	seen, err := Lstat(dir, name)
	if err != nil {
		return err
	}
	if err := w.fault.crossed(name, at, seen); err != nil {
		return within(rel, err)
	}
	if !seen.IsDir() {
		return nil
	}
	sub, inside, err := openDirAt(dir, at, name, rel)
	if err != nil {
		return err
	}
	return errors.Join(w.folder(sub, inside, rel, depth+1), sub.Close())
}

// within names what a [*MountError] is about by its longer path.
func within(rel string, err error) error {
	if _, is := errors.AsType[*MountError](err); is {
		return &MountError{Path: rel}
	}
	return err
}

// findInTable asks the kernel's table of mounts.
func (d *Dir) findInTable() error {
	const untold = "cannot tell whether anything is mounted in %q: %w"
	var here string
	err := d.control(func(fd int) (err error) {
		here, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		return err
	})
	if err != nil {
		return fmt.Errorf(untold, d.root.Name(), err)
	}
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf(untold, d.root.Name(), err)
	}
	defer table.Close() // read-only
	rel, found, err := mountBelow(table, here)
	switch {
	case err != nil:
		return fmt.Errorf(untold, d.root.Name(), err)
	case found:
		return &MountError{Path: rel}
	}
	return nil
}

// mountBelow finds the first mount at the directory here or below it in a table as /proc/self/mountinfo has it.
func mountBelow(table io.Reader, here string) (rel string, found bool, err error) {
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			return "", false, fmt.Errorf("%q is not a line of a table of mounts", lines.Text())
		}
		switch point := unescaped(fields[4]); {
		case point == here:
			return ".", true, nil
		case strings.HasPrefix(point, strings.TrimSuffix(here, "/")+"/"):
			return strings.TrimPrefix(point, strings.TrimSuffix(here, "/")+"/"), true, nil
		}
	}
	return "", false, lines.Err()
}

// unescaped gives a path as it is, where the table has blanks, tabs, line breaks and backslashes as three octal digits.
func unescaped(field string) string {
	var b strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] == '\\' && i+3 < len(field) {
			if n, err := strconv.ParseUint(field[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(field[i])
	}
	return b.String()
}
