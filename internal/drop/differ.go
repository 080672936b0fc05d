package drop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"vaultd/internal/durable"
)

// Difference is one thing in a folder that is not what was archived.
type Difference struct {
	Path string // inside the folder
	What string // what is the matter, in words
}

// FindDifferences compares the folder of c with d once more: in its claim or, moved there before, at rel. It gives each file that differs from
// what was archived, may not be read any more, or was not there then; a file that is missing is none. It changes nothing. A folder that
// lies in neither place, or has another inode, gives none: [Folder.PlaceFolder] tells.
//
// A program that has mapped a file into its memory changes it without a new time, and can do so after the file was packed: only its digest
// tells.
func (f *Folder) FindDifferences(ctx context.Context, c ClaimedFolder, rel string, d Disposal) ([]Difference, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return nil, err
	}
	claim, err := f.keyDir(c.Key)
	if err == nil {
		defer claim.Close() // read-only
		in := newInspection(ctx, claimPath(c), d)
		if found, err := f.differences(in, claim, c.Folder, c.Inode); !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	to, err := f.walk(p.dir(), false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer to.Close() // read-only
	found, err := f.differences(newInspection(ctx, rel, d), to, p.name, c.Inode)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

func (f *Folder) differences(in *inspection, parent *durable.Dir, name string, node Inode) ([]Difference, error) {
	info, err := parent.Root().Lstat(name)
	if err != nil || !f.is(info, node) {
		return nil, err
	}
	dir, err := parent.OpenDir(name)
	if err != nil {
		return nil, below(in.rel, within(".", err))
	}
	defer dir.Close() // read-only
	in.collect = true
	if err := in.folder(dir, ""); err != nil {
		return nil, below(in.rel, fmt.Errorf("compare %q with what was archived: %w", name, err))
	}
	slices.SortFunc(in.differs, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return in.differs, nil
}
