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

// MountError says that something lies on another mount, or on another device, than the directory through which it was
// reached: it belongs to another place. It wraps EXDEV and fs.ErrInvalid.
type MountError struct {
	Path string // as the caller asked for it; "." is the directory itself
}

// Error implements error.
func (e *MountError) Error() string {
	return fmt.Sprintf("%q is a mount of its own: what lies in it belongs to another place", e.Path)
}

// Unwrap lets callers ask with errors.Is.
func (e *MountError) Unwrap() []error { return []error{unix.EXDEV, fs.ErrInvalid} }

// PrefixMountPath puts dir before the path of a [*MountError]. Other errors, and nil, are returned as they are.
func PrefixMountPath(dir string, err error) error {
	if mount, is := errors.AsType[*MountError](err); is {
		return &MountError{Path: path.Join(dir, mount.Path)}
	}
	return err
}

// FileStat describes a file and the mount through which it was reached. It is an
// [fs.FileInfo] whose Sys is a *syscall.Stat_t; os.SameFile does not accept it.
// It is a value: a watcher makes one for each file at each scan, and a pointer
// to it costs an allocation (184 bytes, a third of the time).
type FileStat struct {
	name  string
	stat  syscall.Stat_t
	mount uint64 // 0: the kernel does not tell
}

// Lstat describes the file name in dir, without following a link.
func Lstat(dir *os.File, name string) (FileStat, error) {
	return statAt(dir, name, unix.AT_SYMLINK_NOFOLLOW)
}

// Fstat describes an open file.
func Fstat(file *os.File) (FileStat, error) { return statAt(file, "", unix.AT_EMPTY_PATH) }

// statAt makes one system call, statx. Kernels before 5.8 do not tell the mount. Kernels before 4.11 have no statx, and some
// sandboxes forbid it: then fstatat is used, and the mount is unknown.
func statAt(dir *os.File, name string, flags int) (FileStat, error) {
	raw, err := dir.SyscallConn()
	if err != nil {
		return FileStat{}, err
	}
	var st unix.Statx_t
	ctlErr := raw.Control(func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Statx(int(fd), name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &st)
		}
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			err = statWithoutStatx(int(fd), name, flags, &st)
		}
	})
	if err := cmp.Or(ctlErr, err); err != nil {
		return FileStat{}, pathError("stat", name, err)
	}
	return fileStatOf(name, &st), nil
}

func statWithoutStatx(fd int, name string, flags int, to *unix.Statx_t) error {
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

func fileStatOf(name string, st *unix.Statx_t) FileStat {
	moment := func(t unix.StatxTimestamp) syscall.Timespec { return syscall.Timespec{Sec: t.Sec, Nsec: int64(t.Nsec)} }
	s := FileStat{name: name}
	s.stat.Dev, s.stat.Rdev = unix.Mkdev(st.Dev_major, st.Dev_minor), unix.Mkdev(st.Rdev_major, st.Rdev_minor)
	s.stat.Ino, s.stat.Mode, s.stat.Uid, s.stat.Gid = st.Ino, uint32(st.Mode), st.Uid, st.Gid
	setCount(&s.stat.Nlink, st.Nlink)
	s.stat.Size, s.stat.Blocks = int64(st.Size), int64(st.Blocks)
	s.stat.Atim, s.stat.Mtim, s.stat.Ctim = moment(st.Atime), moment(st.Mtime), moment(st.Ctime)
	if st.Mask&unix.STATX_MNT_ID != 0 {
		s.mount = st.Mnt_id
	}
	return s
}

// setCount assigns n to a field whose type differs between machines, as that of a file's link count.
func setCount[T ~uint32 | ~uint64](to *T, n uint32) { *to = T(n) }

// Name implements [fs.FileInfo].
func (s FileStat) Name() string { return s.name }

// Size implements [fs.FileInfo].
func (s FileStat) Size() int64 { return s.stat.Size }

// ModTime implements [fs.FileInfo].
func (s FileStat) ModTime() time.Time { return time.Unix(s.stat.Mtim.Unix()) }

// IsDir implements [fs.FileInfo].
func (s FileStat) IsDir() bool { return s.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// Sys implements [fs.FileInfo]: a *syscall.Stat_t.
func (s FileStat) Sys() any { return &s.stat }

// Mode implements [fs.FileInfo], as those of package os do.
func (s FileStat) Mode() fs.FileMode {
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

// FileID says which file this is and in which state. Each change of its content,
// names, owner or rights gives another one, because no program can set a ctime
// back: two that are equal are the same file, unchanged. A comparison of fewer
// fields says which and why.
type FileID struct {
	Dev, Ino, Nlink uint64
	Mode, UID, GID  uint32 // Mode as the kernel has it
	Size            int64
	Mtime, Ctime    int64 // nanoseconds since 1970
}

// ID returns the identity of the file.
func (s FileStat) ID() FileID { return idOf(&s.stat) }

// IDOf returns the identity of a file that package os or this one described.
func IDOf(info fs.FileInfo) FileID {
	if s, ours := info.(FileStat); ours {
		return s.ID()
	}
	return idOf(info.Sys().(*syscall.Stat_t))
}

func idOf(st *syscall.Stat_t) FileID {
	return FileID{Dev: uint64(st.Dev), Ino: st.Ino, Nlink: uint64(st.Nlink), Mode: st.Mode, UID: st.Uid, GID: st.Gid, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano()}
}

// IsSameFile reports whether s and t describe the same file.
func (s FileStat) IsSameFile(t FileStat) bool {
	return s.stat.Dev == t.stat.Dev && s.stat.Ino == t.stat.Ino
}

// IsOnOtherMount reports whether s, an entry of the directory parent, lies on
// another mount than parent. If the kernel does not tell mounts apart,
// directories are compared by device. Files are not: a file of an overlay file
// system can have another device than its directory.
func (s FileStat) IsOnOtherMount(parent FileStat) bool {
	return s.mount != parent.mount || s.IsDir() && s.stat.Dev != parent.stat.Dev
}

// checkSameMount returns a [*MountError] when entry lies on another mount than the directory parent.
func (h Hook) checkSameMount(name string, parent, entry FileStat) error {
	// The shortcut saves a closure for each file of a folder.
	if h == nil && !entry.IsOnOtherMount(parent) {
		return nil
	}
	return h.runOp("mount", name, func() error {
		if entry.IsOnOtherMount(parent) {
			return &MountError{Path: name}
		}
		return nil
	})
}

// Lstat describes the entry name of d, without following a link. The error is a [*MountError] when the entry is a mount.
func (d *Dir) Lstat(name string) (FileStat, error) {
	if err := checkSingleName("look at", name); err != nil {
		return FileStat{}, err
	}
	entry, err := Lstat(d.file, name)
	if err != nil {
		return FileStat{}, err
	}
	return entry, d.hook.checkSameMount(name, d.openedAs, entry)
}

// Bounds of the walk that looks for mounts. For a folder that is deeper or larger the kernel's table of mounts is read, whose
// cost does not depend on the folder.
const (
	maxWalkDepth   = 16
	maxWalkEntries = 20_000
)

var errWalkTooLarge = errors.New("too deep or too large to be walked through")

// FindMount looks for a mount at d or anywhere below it. It returns nil when there is none, and a [*MountError] that names
// the first one relative to d. After any other error it is unknown whether there is one.
//
// Each file is compared with its directory by the mount number from statx. /proc/self/mountinfo is read instead where the
// kernel gives no such number (before 5.8), where something may not be read, and where the folder is very deep or large.
func (d *Dir) FindMount() error {
	if d.openedAs.mount == 0 {
		return d.findMountInTable()
	}
	top, err := d.root.OpenFile(".", openDirFlags, 0)
	if err != nil {
		return d.findMountInTable()
	}
	w := mountWalk{hook: d.hook, entriesLeft: maxWalkEntries}
	err = errors.Join(w.walkDir(top, d.openedAs, "", 0), top.Close())
	if _, found := errors.AsType[*MountError](err); found || err == nil {
		return err
	}
	return d.findMountInTable()
}

// mountWalk is one walk through a folder that looks for mounts.
type mountWalk struct {
	hook        Hook
	entriesLeft int
}

// walkDir looks at all that lies in dir, which at describes and whose path inside the folder is rel.
func (w *mountWalk) walkDir(dir *os.File, at FileStat, rel string, depth int) error {
	if depth > maxWalkDepth {
		return errWalkTooLarge
	}
	return EachName(dir, func(name string) error {
		if w.entriesLeft--; w.entriesLeft < 0 {
			return errWalkTooLarge
		}
		err := w.checkEntry(dir, at, name, path.Join(rel, name), depth)
		if errors.Is(err, fs.ErrNotExist) {
			// It is gone, so nothing is mounted there.
			return nil
		}
		return err
	})
}

func (w *mountWalk) checkEntry(dir *os.File, at FileStat, name, rel string, depth int) error {
	entry, err := Lstat(dir, name)
	if err != nil {
		return err
	}
	if err := w.hook.checkSameMount(name, at, entry); err != nil {
		return PrefixMountPath(path.Dir(rel), err)
	}
	if !entry.IsDir() {
		return nil
	}
	sub, inside, err := openDirSameMount(dir, at, name, rel)
	if err != nil {
		return err
	}
	return errors.Join(w.walkDir(sub, inside, rel, depth+1), sub.Close())
}

// findMountInTable looks for a mount at d or below it in the kernel's table of mounts.
func (d *Dir) findMountInTable() error {
	rel, found, err := d.searchMountTable()
	switch {
	case err != nil:
		return fmt.Errorf("cannot tell whether anything is mounted in %q: %w", d.root.Name(), err)
	case found:
		return &MountError{Path: rel}
	}
	return nil
}

func (d *Dir) searchMountTable() (rel string, found bool, err error) {
	var here string
	err = d.withDescriptor(func(fd int) (err error) {
		here, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		return err
	})
	if err != nil {
		return "", false, err
	}
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", false, err
	}
	defer table.Close() // read-only
	return findMountBelow(table, here)
}

// findMountBelow finds the first mount at the directory here or below it. table has the format of /proc/self/mountinfo.
func findMountBelow(table io.Reader, here string) (rel string, found bool, err error) {
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			return "", false, fmt.Errorf("%q is not a line of a table of mounts", lines.Text())
		}
		switch point := unescapeOctal(fields[4]); {
		case point == here:
			return ".", true, nil
		case strings.HasPrefix(point, strings.TrimSuffix(here, "/")+"/"):
			return strings.TrimPrefix(point, strings.TrimSuffix(here, "/")+"/"), true, nil
		}
	}
	return "", false, lines.Err()
}

// unescapeOctal decodes a path of the table, which has blanks, tabs, line breaks and backslashes as three octal digits.
func unescapeOctal(field string) string {
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
