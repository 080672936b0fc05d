package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Rename moves the entry name of d to newname in to and syncs both directories. It never replaces an entry: when newname is
// taken the error wraps fs.ErrExist and nothing has changed. Other errors keep their errno (EXDEV, EACCES, EBUSY, EROFS …).
//
// After an error that wraps [ErrSync], or any error on a network file system, it is unknown whether the entry was moved: the
// caller must look in both directories.
func (d *Dir) Rename(name string, to *Dir, newname string) error {
	return d.rename(name, to, newname, renameDirAfterCheck)
}

// RenameIntoOwn is [Dir.Rename] into a directory in which nobody but the caller makes entries. It moves files as well where the
// file system cannot refuse to replace an entry (NFS, some FUSE). [Dir.Rename] refuses those with ENOTSUP there.
func (d *Dir) RenameIntoOwn(name string, to *Dir, newname string) error {
	return d.rename(name, to, newname, renameAfterCheck)
}

// renameCall renames an entry of the open directory from to an entry of the open directory to.
type renameCall func(from int, name string, to int, newname string) error

// rename renames without replacing. If the file system cannot do that, it calls
// fallback.
func (d *Dir) rename(name string, to *Dir, newname string, fallback renameCall) error {
	if err := errors.Join(checkSingleName("rename", name), checkSingleName("rename", newname)); err != nil {
		return err
	}
	err := d.hook.runOp("rename", newname, func() error {
		return d.withDescriptor(func(from int) error {
			return to.withDescriptor(func(dest int) error {
				return linkError(name, newname, renameNoReplace(from, name, dest, newname, fallback))
			})
		})
	})
	if err != nil {
		return err
	}
	// A crash here: after a power loss the entry is in the old place or in the new one, so the caller looks in both.
	// The new place is synced first: a power loss between the two syncs may show the entry twice, never nowhere.
	if err := to.Sync(); err != nil {
		return err
	}
	if to == d {
		return nil
	}
	return d.Sync()
}

func renameNoReplace(from int, name string, to int, newname string, fallback renameCall) error {
	err := unix.Renameat2(from, name, to, newname, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP {
		return fallback(from, name, to, newname)
	}
	return err
}

// renameDirAfterCheck is renameAfterCheck for directories alone. Another process can create newname between the check and the
// rename, and a plain rename replaces a file by a file and an empty directory by a directory: at worst an empty directory is
// replaced.
func renameDirAfterCheck(from int, name string, to int, newname string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return unix.ENOTSUP
	}
	return renameAfterCheck(from, name, to, newname)
}

// renameAfterCheck is for file systems without RENAME_NOREPLACE (NFS, some FUSE). It checks first that newname is free, then
// renames.
func renameAfterCheck(from int, name string, to int, newname string) error {
	var st unix.Stat_t
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
