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

// Lying is a folder that lies where vaultd puts those that have ended.
type Lying struct {
	Rel   string // as in "_archived/2026-11/Müller 4711"
	Owner uint32 // uid
	Node  Node
}

// errStopped ends a walk whose caller has seen enough.
var errStopped = errors.New("stopped")

// Lying gives the folders of one kind, in no order. Files among them are passed over, and so are folders in
// _archived that are no month. A link is not followed: it comes as an error that wraps [ErrStrange], for what lies behind
// it was not looked at. Any other error ends the iteration.
func (f *Folder) Lying(kind Kind) iter.Seq2[Lying, error] {
	return func(yield func(Lying, error) bool) {
		top, err := f.walk([]string{string(kind)}, false)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(Lying{}, err)
			return
		}
		defer top.Close() // read-only
		if kind == Archived {
			err = each(top, func(month string) error { return f.month(top, month, yield) })
		} else {
			err = f.lying(top, string(kind), yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Lying{}, err)
		}
	}
}

func (f *Folder) month(top *durable.Dir, name string, yield func(Lying, error) bool) error {
	if _, err := time.Parse("2006-01", name); err != nil {
		return nil //nolint:nilerr // not ours
	}
	dir, err := top.Sub(name)
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
func (f *Folder) lying(dir *durable.Dir, rel string, yield func(Lying, error) bool) error {
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
		if !yield(Lying{Rel: rel + "/" + name, Owner: st.Uid, Node: Node{Dev: uint64(st.Dev), Ino: st.Ino}}, nil) {
			return errStopped
		}
		return nil
	})
}

// linked tells of a link that lies where a folder belongs.
func linked(rel string) (Lying, error) {
	return Lying{Rel: rel}, fmt.Errorf("%q is a link; what lies behind it was not looked at: %w", rel, ErrStrange)
}

// OpenLying opens the folder that [Folder.Lying] told of. The error wraps fs.ErrNotExist where it is gone or another lies there.
func (f *Folder) OpenLying(l Lying) (*durable.Dir, error) {
	p, err := parsePlace(l.Rel)
	if err != nil {
		return nil, err
	}
	parent, err := f.walk(p.dir(), false)
	if err != nil {
		return nil, err
	}
	defer parent.Close() // read-only
	dir, err := parent.Sub(p.name)
	if err != nil {
		return nil, err
	}
	if info, err := dir.Stat(); err != nil || !f.is(info, l.Node) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: l.Rel, Err: fs.ErrNotExist}, dir.Close())
	}
	return dir, nil
}
