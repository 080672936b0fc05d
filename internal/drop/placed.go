package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"syscall"
	"time"

	"vaultd/internal/durable"
)

// PlacedFolder is a folder that lies where vaultd puts those whose entry has ended.
type PlacedFolder struct {
	Path  string // relative to the drop folder, as in "_archived/2026-11/Müller 4711"
	Owner uint32 // uid
	Inode Inode
}

// errStopped ends a walk whose caller needs no more.
var errStopped = errors.New("stopped")

// PlacedFolders returns the folders of one kind, in no order. It passes over files, and over folders in _archived and _delivered that are no
// month. It does not follow a link: a link comes as an error that wraps [ErrUnexpectedItem], because nobody looked behind it.
// Any other error ends the iteration.
func (f *Folder) PlacedFolders(kind Kind) iter.Seq2[PlacedFolder, error] {
	return func(yield func(PlacedFolder, error) bool) {
		top, err := f.openPath([]string{string(kind)})
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(PlacedFolder{}, err)
			return
		}
		defer top.Close() // read-only
		if kind.isKept() {
			err = top.EachName(func(month string) error { return yieldMonth(top, kind, month, yield) })
		} else {
			err = yieldFolders(top, string(kind), yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(PlacedFolder{}, err)
		}
	}
}

// yieldMonth yields the folders of one month of _archived or _delivered.
func yieldMonth(top *durable.Dir, kind Kind, name string, yield func(PlacedFolder, error) bool) error {
	if _, err := time.Parse("2006-01", name); err != nil {
		return nil // made by others
	}
	dir, err := top.OpenDir(name)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrNotExist) {
		info, err := top.Root().Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && !yield(linkError(path.Join(string(kind), name))) {
			return errStopped
		}
		return nil // it is gone, or a file
	}
	if err != nil {
		return err
	}
	defer dir.Close() // read-only
	return yieldFolders(dir, path.Join(string(kind), name), yield)
}

// yieldFolders yields the folders in dir.
func yieldFolders(dir *durable.Dir, rel string, yield func(PlacedFolder, error) bool) error {
	return dir.EachName(func(name string) error {
		info, err := dir.Root().Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		goOn := true
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			goOn = yield(linkError(rel + "/" + name))
		case info.IsDir():
			goOn = yield(PlacedFolder{Path: rel + "/" + name, Owner: sysStat(info).Uid, Inode: inodeOf(info)}, nil)
		}
		if !goOn {
			return errStopped
		}
		return nil
	})
}

// linkError is what the iteration yields for a link in place of a folder.
func linkError(rel string) (PlacedFolder, error) {
	return PlacedFolder{Path: rel}, fmt.Errorf("%q is a link; what lies behind it was not looked at: %w", rel, ErrUnexpectedItem)
}

// OpenPlaced opens the folder at rel (as in "_rejected/Huber 88") if it still is the one with that inode. The error wraps
// fs.ErrNotExist when it is gone or another folder lies there. It is a [*durable.MountError] when something is mounted on it.
// After any other error it is unknown what lies there.
func (f *Folder) OpenPlaced(rel string, inode Inode) (*durable.Dir, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return nil, err
	}
	parent, err := f.openPath(p.parents())
	if err != nil {
		return nil, err
	}
	defer parent.Close() // read-only
	dir, err := parent.OpenDir(p.name)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("open %q: %w", rel, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat()
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if !f.isFolder(info, inode) {
		return nil, errors.Join(fmt.Errorf("open %q: another folder lies there: %w", rel, fs.ErrNotExist), dir.Close())
	}
	return dir, nil
}
