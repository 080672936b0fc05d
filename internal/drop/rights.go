package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"vaultd/internal/archive"
)

// DescribeNoRight returns a [*ClaimError] that says that vaultd has no right to look at the folder name or at something in it.
func (f *Folder) DescribeNoRight(name string) error {
	info, err := f.root.Root().Lstat(name)
	if err != nil {
		return f.newClaimError(name, nil, fs.ErrPermission)
	}
	return f.newClaimError(name, info, fs.ErrPermission)
}

// FindUnreadable returns an error that names the first file or folder in a claimed folder that vaultd has no right to read. It
// returns nil when there is none.
func (f *Folder) FindUnreadable(key archive.Key) error {
	dir, _, err := f.OpenClaimed(key)
	if err != nil {
		return f.describeUnreadable(key, err)
	}
	defer dir.Close() // read-only
	left := maxSearched
	return findFirstUnreadable(dir.Root(), ".", &left)
}

// maxSearched bounds how many names FindUnreadable looks at.
const maxSearched = 20_000

// describeUnreadable names a claimed folder that cannot be opened because of its rights. It returns nil for other errors.
func (f *Folder) describeUnreadable(key archive.Key, err error) error {
	dir, keyErr := f.openClaimDir(key)
	if keyErr != nil || !errors.Is(err, fs.ErrPermission) {
		return nil // the cause is not the folder
	}
	defer dir.Close() // read-only
	c, err := findClaimedFolder(dir, key)
	if err != nil {
		return nil
	}
	info, err := dir.Root().Lstat(c.Folder)
	if err != nil {
		return nil
	}
	return unreadableError(c.Folder, info)
}

func unreadableError(name string, info fs.FileInfo) error {
	return fmt.Errorf("cannot be read: %q (owner %s, %04o)", name, userName(sysStat(info).Uid), info.Mode().Perm())
}

// findFirstUnreadable tries to open rel and all below it. left counts down the names that it may still look at.
func findFirstUnreadable(root *os.Root, rel string, left *int) error {
	list, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		info, statErr := root.Lstat(rel)
		if statErr != nil || !errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return unreadableError(rel, info)
	}
	names, err := list.Readdirnames(*left)
	list.Close() // read-only
	if err != nil {
		return nil // it is a file, most often
	}
	slices.Sort(names)
	for _, name := range names {
		if *left--; *left <= 0 {
			return nil
		}
		below := path.Join(rel, name)
		if info, err := root.Lstat(below); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			// A device or a FIFO is not opened: only opening it could do something.
			continue
		}
		if err := findFirstUnreadable(root, below, left); err != nil {
			return err
		}
	}
	return nil
}
