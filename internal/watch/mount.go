package watch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errIsMount says that a folder, or something in it, is a mount of its own. It cannot be taken, and the mount is not entered.
var errIsMount = fmt.Errorf("is a mount of its own: %w", syscall.EXDEV)

// fileStat describes a file and the mount through which it was reached. It is smaller than durable.FileStat and made without an
// allocation, because a watcher makes one for each file at each scan.
type fileStat struct {
	unix.Stat_t
	mount uint64 // 0: this kernel does not tell
}

// isOnOtherMount reports whether s, an entry of the directory parent, lies on another mount than parent. A kernel before 5.8 does
// not tell mounts apart: then directories are compared by device. Whoever claims the folder reads the table of mounts.
func (s fileStat) isOnOtherMount(parent fileStat) bool {
	return s.mount != parent.mount || s.Mode&unix.S_IFMT == unix.S_IFDIR && s.Dev != parent.Dev
}

// statAt describes the file name in dir, or with AT_EMPTY_PATH dir itself. It makes one system call.
func statAt(dir *os.File, name string, flags int) (s fileStat, err error) {
	raw, err := dir.SyscallConn()
	if err != nil {
		return s, err
	}
	var x unix.Statx_t
	ctlErr := raw.Control(func(fd uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Statx(int(fd), name, flags|unix.AT_NO_AUTOMOUNT, unix.STATX_BASIC_STATS|unix.STATX_MNT_ID, &x)
		}
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) { // before 4.11
			err = unix.Fstatat(int(fd), name, &s.Stat_t, flags)
			x.Mask = 0
		}
	})
	if ctlErr != nil || err != nil || x.Mask == 0 {
		return s, cmp.Or(ctlErr, err)
	}
	moment := func(t unix.StatxTimestamp) unix.Timespec { return unix.Timespec{Sec: t.Sec, Nsec: int64(t.Nsec)} }
	s.Mode, s.Uid, s.Gid, s.Ino, s.Size = uint32(x.Mode), x.Uid, x.Gid, x.Ino, int64(x.Size)
	s.Dev, s.Mtim, s.Ctim = unix.Mkdev(x.Dev_major, x.Dev_minor), moment(x.Mtime), moment(x.Ctime)
	if x.Mask&unix.STATX_MNT_ID != 0 {
		s.mount = x.Mnt_id
	}
	return s, nil
}
