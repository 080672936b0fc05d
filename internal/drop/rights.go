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

// DescribeNoRight names what keeps us from looking at the folder name, or at something in it, in the words of a refused claim.
func (f *Folder) DescribeNoRight(name string) error {
	info, err := f.root.Root().Lstat(name)
	if err != nil {
		return f.refused(name, nil, fs.ErrPermission)
	}
	return f.refused(name, info, fs.ErrPermission)
}

// FindUnreadable finds the first file or folder in a claimed folder that we have no right to read; nil: there is none.
func (f *Folder) FindUnreadable(key archive.Key) error {
	dir, _, err := f.OpenClaimed(key)
	if err != nil {
		return f.unreadable(key, err)
	}
	defer dir.Close()
	left := mostLooked
	return firstUnreadable(dir.Root(), ".", &left)
}

// mostLooked bounds the search for what cannot be read.
const mostLooked = 20_000

// unreadable names a claimed folder that cannot even be opened.
func (f *Folder) unreadable(key archive.Key, err error) error {
	dir, keyErr := f.keyDir(key)
	if keyErr != nil || !errors.Is(err, fs.ErrPermission) {
		return nil // it is not the folder that keeps us out
	}
	defer dir.Close()
	c, err := f.content(dir, key)
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
	return fmt.Errorf("cannot be read: %q (owner %s, %04o)", name, userName(stat(info).Uid), info.Mode().Perm())
}

func firstUnreadable(root *os.Root, rel string, left *int) error {
	list, err := root.OpenFile(rel, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		info, look := root.Lstat(rel)
		if look != nil || !errors.Is(err, fs.ErrPermission) {
			return nil
		}
		return unreadableError(rel, info)
	}
	names, err := list.Readdirnames(*left)
	list.Close()    // read-only
	if err != nil { // a file, most often
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if *left--; *left <= 0 {
			return nil
		}
		below := path.Join(rel, name)
		if info, err := root.Lstat(below); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		if err := firstUnreadable(root, below, left); err != nil {
			return err
		}
	}
	return nil
}
