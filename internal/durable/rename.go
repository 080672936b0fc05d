package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Rename moves the entry name of d to newname in to and syncs both directories. It never replaces: when newname is taken the
// error wraps fs.ErrExist and nothing has changed. Other causes keep their errno (EXDEV, EACCES, EBUSY, EROFS …).
//
// An error that wraps [ErrSync], or any error on a network file system, leaves open whether the entry was moved: look at both ends.
func (d *Dir) Rename(name string, to *Dir, newname string) error {
	if err := errors.Join(single("rename", name), single("rename", newname)); err != nil {
		return err
	}
	err := d.fault.run("rename", newname, func() error {
		return d.control(func(from int) error {
			return to.control(func(dest int) error {
				return linkError(name, newname, renameNoReplace(from, name, dest, newname))
			})
		})
	})
	if err != nil {
		return err
	}
	// The new entry first: a power cut between the two may show the folder twice, never nowhere.
	if err := to.Sync(); err != nil {
		return err
	}
	if to == d {
		return nil
	}
	return d.Sync()
}

func renameNoReplace(from int, name string, to int, newname string) error {
	err := unix.Renameat2(from, name, to, newname, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP {
		return renameByLook(from, name, to, newname)
	}
	return err
}

// renameByLook is for file systems without RENAME_NOREPLACE (NFS, some FUSE). A plain rename replaces an empty directory by
// a directory and a file by a file; so only directories are moved this way, after a look: what can slip in between and be
// replaced is an empty directory, which holds nothing.
func renameByLook(from int, name string, to int, newname string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTSUP
	}
	err := unix.Fstatat(to, newname, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil {
		return unix.EEXIST
	}
	if err != unix.ENOENT {
		return err
	}
	err = unix.Renameat(from, name, to, newname)
	if err == unix.ENOTEMPTY || err == unix.ENOTDIR {
		return unix.EEXIST
	}
	return err
}

func linkError(name, newname string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: "rename", Old: name, New: newname, Err: err}
}
