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

// FindDifferences compares the folder of c with d once more, in its claim or, when it was moved already, at rel. It returns
// each file that differs from what was archived, may not be read any more, or was not there then. A file that is missing is no
// difference. It changes nothing. For a folder that lies in neither place, or has another inode, it returns nothing:
// [Folder.PlaceFolder] reports that.
//
// A program that mapped a file into its memory can change it after the file was packed, and without a new time. Only the digest
// shows that.
func (f *Folder) FindDifferences(ctx context.Context, c ClaimedFolder, rel string, d Disposal) ([]Difference, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return nil, err
	}
	claim, err := f.openClaimDir(c.Key)
	if err == nil {
		defer claim.Close() // read-only
		found, err := f.compareFolder(newInspection(ctx, claimPath(c), d), claim, c.Folder, c.Inode)
		if !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	to, err := f.openPath(p.parents())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer to.Close() // read-only
	found, err := f.compareFolder(newInspection(ctx, rel, d), to, p.name, c.Inode)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return found, err
}

func (f *Folder) compareFolder(in *inspection, parent *durable.Dir, name string, inode Inode) ([]Difference, error) {
	info, err := parent.Root().Lstat(name)
	if err != nil || !f.isFolder(info, inode) {
		return nil, err
	}
	dir, err := parent.OpenDir(name)
	if _, is := errors.AsType[*durable.MountError](err); is {
		return nil, &durable.MountError{Path: in.rel}
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	in.collectsAll = true
	if err := in.inspectDir(dir, ""); err != nil {
		return nil, durable.PrefixMountPath(in.rel, fmt.Errorf("compare %q with what was %s: %w", name, in.done, err))
	}
	slices.SortFunc(in.differences, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return in.differences, nil
}
