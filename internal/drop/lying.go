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

// PlacedFolder is a folder that lies where vaultd puts those that have ended.
type PlacedFolder struct {
	Rel   string // as in "_archived/2026-11/Müller 4711"
	Owner uint32 // uid
	Inode Inode
}

// errStopped ends a walk whose caller has seen enough.
var errStopped = errors.New("stopped")

// PlacedFolders gives the folders of one kind, in no order. Files among them are passed over, and so are folders in
// _archived that are no month. A link is not followed: it comes as an error that wraps [ErrUnexpectedItem], for what lies behind
// it was not looked at. Any other error ends the iteration.
func (f *Folder) PlacedFolders(kind Kind) iter.Seq2[PlacedFolder, error] {
	return func(yield func(PlacedFolder, error) bool) {
		top, err := f.walk([]string{string(kind)}, false)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(PlacedFolder{}, err)
			return
		}
		defer top.Close() // read-only
		if kind == Archived {
			err = each(top, func(month string) error { return f.month(top, month, yield) })
		} else {
			err = f.lying(top, string(kind), yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(PlacedFolder{}, err)
		}
	}
}

func (f *Folder) month(top *durable.Dir, name string, yield func(PlacedFolder, error) bool) error {
	if _, err := time.Parse("2006-01", name); err != nil {
		return nil //nolint:nilerr // not ours
	}
	dir, err := top.OpenDir(name)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || errors.Is(err, fs.ErrNotExist) {
		info, err := top.Root().Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && !yield(linked(path.Join(string(Archived), name))) {
			return errStopped
		}
		return nil //nolint:nilerr // it is gone, or a file
	}
	if err != nil {
		return err
	}
	defer dir.Close() // read-only
	return f.lying(dir, path.Join(string(Archived), name), yield)
}

// lying yields the folders in dir.
func (f *Folder) lying(dir *durable.Dir, rel string, yield func(PlacedFolder, error) bool) error {
	return each(dir, func(name string) error {
		info, err := dir.Root().Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if !yield(linked(rel + "/" + name)) {
				return errStopped
			}
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		st := stat(info)
		if !yield(PlacedFolder{Rel: rel + "/" + name, Owner: st.Uid, Inode: Inode{Dev: uint64(st.Dev), Ino: st.Ino}}, nil) {
			return errStopped
		}
		return nil
	})
}

// linked tells of a link that lies where a folder belongs.
func linked(rel string) (PlacedFolder, error) {
	return PlacedFolder{Rel: rel}, fmt.Errorf("%q is a link; what lies behind it was not looked at: %w", rel, ErrUnexpectedItem)
}

// OpenPlaced opens the folder that [Folder.PlacedFolders] told of. The error wraps fs.ErrNotExist where it is gone or another lies there.
func (f *Folder) OpenPlaced(l PlacedFolder) (*durable.Dir, error) {
	p, err := parsePlace(l.Rel)
	if err != nil {
		return nil, err
	}
	parent, err := f.walk(p.dir(), false)
	if err != nil {
		return nil, err
	}
	defer parent.Close() // read-only
	dir, err := parent.OpenDir(p.name)
	if err != nil {
		return nil, err
	}
	if info, err := dir.Stat(); err != nil || !f.is(info, l.Inode) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: l.Rel, Err: fs.ErrNotExist}, dir.Close())
	}
	return dir, nil
}
