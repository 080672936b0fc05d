package drop

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// ProposeDestination returns a free place for the folder name, relative to the
// drop folder: "_rejected/Huber 88" or "_archived/2026-11/Müller 4711 (2)". The
// month is that of at in its own location. Names that differ only in case or in
// how accents are stored count as taken. It makes and reserves nothing:
// [Folder.PlaceFolder] returns [archive.ErrDestinationTaken] when somebody else
// took the place meanwhile.
func (f *Folder) ProposeDestination(kind Kind, name string, at time.Time) (rel string, err error) {
	p := place{kind: kind, name: name}
	if kind.isKept() {
		p.month = at.Format("2006-01")
	}
	if _, err := parsePlace(path.Join(p.parents()...) + "/" + name); err != nil {
		return "", err
	}
	dir, err := f.openPath(p.parents())
	if errors.Is(err, fs.ErrNotExist) {
		return p.rel(), nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close() // read-only
	f.mu.Lock()
	defer f.mu.Unlock()
	used, err := f.readUsedNames(dir, p)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		p.name = withNumber(name, n)
		if used.has(p.name) {
			continue
		}
		// Ask the file system too: the memory is bounded, and people put folders there.
		switch _, err := dir.Root().Lstat(p.name); {
		case errors.Is(err, fs.ErrNotExist):
			return p.rel(), nil
		case err != nil:
			return "", err
		}
	}
}

// maxNameLength is the longest name that Linux file systems take, in bytes.
const maxNameLength = 255

// withNumber returns the n-th name to try: the name itself, then "name (2)" and so on.
func withNumber(name string, n int) string {
	if n == 1 {
		return name
	}
	return appendSuffix(name, fmt.Sprintf(" (%d)", n))
}

// appendSuffix appends suffix. If both do not fit it shortens name by whole
// characters.
func appendSuffix(name, suffix string) string {
	for len(name)+len(suffix) > maxNameLength {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name + suffix
}

// usedNames remembers as hashes which names a directory holds, so that the search for a free one need not read the directory
// each time. It only saves work: the rename never replaces anything.
type usedNames struct {
	seed   maphash.Seed
	mtime  time.Time // of the directory when its names were read, or when we last added one
	hashes map[uint64]struct{}
}

// With more than maxUsedNames only names that are equal byte for byte count as taken; few directories are so full. maxUsedDirs
// bounds for how many directories names are remembered: returned, duplicates, and the present month.
const (
	maxUsedNames = 100_000
	maxUsedDirs  = 4
)

func (t *usedNames) hash(name string) uint64 {
	return maphash.String(t.seed, archive.FoldName(name))
}

func (t *usedNames) has(name string) bool {
	_, ok := t.hashes[t.hash(name)]
	return ok
}

// readUsedNames returns the names in dir, and reads them where they changed. The caller holds f.mu.
func (f *Folder) readUsedNames(dir *durable.Dir, p place) (*usedNames, error) {
	info, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	key := strings.Join(p.parents(), "/")
	if t := f.usedNames[key]; t != nil && t.mtime.Equal(info.ModTime()) {
		return t, nil
	}
	if len(f.usedNames) >= maxUsedDirs {
		clear(f.usedNames)
	}
	t := &usedNames{seed: maphash.MakeSeed(), mtime: info.ModTime(), hashes: map[uint64]struct{}{}}
	err = dir.EachName(func(name string) error {
		if len(t.hashes) >= maxUsedNames {
			return errStopped
		}
		t.hashes[t.hash(name)] = struct{}{}
		return nil
	})
	if err != nil && !errors.Is(err, errStopped) {
		return nil, err
	}
	f.usedNames[key] = t
	return t, nil
}

// rememberName adds the name of a folder that we moved to its place.
func (f *Folder) rememberName(dir *durable.Dir, p place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.Join(p.parents(), "/")
	t := f.usedNames[key]
	if t == nil {
		return
	}
	info, err := dir.Stat()
	if err != nil {
		delete(f.usedNames, key) // read again next time
		return
	}
	if len(t.hashes) < maxUsedNames {
		t.hashes[t.hash(p.name)] = struct{}{}
	}
	t.mtime = info.ModTime()
}
