package drop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Look says which files of a kept folder a look reads. Of the others it compares
// the names and sizes.
type Look struct {
	ChangedSince time.Time // files with a later ctime are read
	ReadsAll     bool
}

func (l Look) reads(id durable.FileID) bool {
	return l.ReadsAll || !time.Unix(0, id.Ctime).Before(l.ChangedSince)
}

// OpenKept opens whatever folder is at rel (as in "_archived/2026-11/Müller
// 4711"), also one with another inode: a share that was moved or restored has new
// ones. The error wraps fs.ErrNotExist when none is there, and is a
// [*durable.MountError] when something is mounted on it. After any other error it
// is unknown what is there.
func (f *Folder) OpenKept(rel string) (*durable.Dir, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return nil, err
	}
	dir, err := f.openPath(append(slices.Clone(p.parents()), p.name))
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("open %q: no folder is there: %w", rel, fs.ErrNotExist)
	}
	return dir, err
}

// LookAtKept compares the kept folder dir with d. It returns each file that
// differs from what was archived, is missing, or was added. A file whose name says
// that it never belongs to an invoice may be added: systems and editors leave it
// in any folder that people open. It changes nothing.
func LookAtKept(ctx context.Context, dir *durable.Dir, rel string, d Disposal, look Look) ([]Difference, error) {
	in := newInspection(ctx, rel, d)
	in.collectsAll, in.look = true, &look
	if err := in.inspectDir(dir, ""); err != nil {
		return nil, durable.PrefixMountPath(rel, err)
	}
	for _, name := range slices.Sorted(maps.Keys(in.files)) {
		isHidden := slices.ContainsFunc(in.differences, func(d Difference) bool { return strings.HasPrefix(name, d.Path+"/") })
		if !in.met[name] && !isHidden { // a folder above it cannot be read, or is a link
			in.differences = append(in.differences, Difference{name, "is missing"})
		}
	}
	// What was added comes last: a text that names a few must name the others.
	isAdded := func(d Difference) int {
		if _, archived := in.files[norm.NFC.String(d.Path)]; archived {
			return 0
		}
		return 1
	}
	slices.SortFunc(in.differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(isAdded(a), isAdded(b)), strings.Compare(a.Path, b.Path))
	})
	return in.differences, nil
}

// isTolerated reports whether a look passes over something that was not archived.
func (in *inspection) isTolerated(name string, isFolder bool) bool {
	if in.look == nil {
		return false
	}
	return isFolder && archive.IsJunkFolder(name) || !isFolder && !archive.IsContentName(name)
}
