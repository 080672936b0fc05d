package drop

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/durable"
)

// ProposeDestination proposes a free place for the folder name, relative to the drop folder: "_rejected/Huber 88",
// "_archived/2026-11/Müller 4711 (2)". Months are those of at in its own location. Names that differ only in case or in how
// accents are stored count as taken. Nothing is made or reserved: [Folder.PlaceFolder] says [ErrDestinationTaken] if somebody was faster.
func (f *Folder) ProposeDestination(kind Kind, name string, at time.Time) (rel string, err error) {
	p := place{kind: kind, name: name}
	if kind == Archived {
		p.month = at.Format("2006-01")
	}
	if _, err := parsePlace(path.Join(p.dir()...) + "/" + name); err != nil {
		return "", err
	}
	dir, err := f.walk(p.dir(), false)
	if errors.Is(err, fs.ErrNotExist) {
		return path.Join(append(p.dir(), name)...), nil
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	names, err := f.names(dir, p)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		p.name = numbered(name, n)
		if names.has(p.name) {
			continue
		}
		switch _, err := dir.Root().Lstat(p.name); {
		case errors.Is(err, fs.ErrNotExist):
			return path.Join(append(p.dir(), p.name)...), nil
		case err != nil:
			return "", err
		}
	}
}

// longestName is what Linux file systems take, in bytes.
const longestName = 255

func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return suffixed(name, fmt.Sprintf(" (%d)", n))
}

// suffixed appends suffix, shortening name by whole characters where both do not fit.
func suffixed(name, suffix string) string {
	for len(name)+len(suffix) > longestName {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name + suffix
}

// takenNames remembers, as hashes, which names a destination holds, so that finding a free one does not read the directory
// each time. It is only an aid: the rename never replaces, whatever this says.
type takenNames struct {
	seed   maphash.Seed
	mtime  time.Time // of the directory when the names were read, or when we last added one
	hashes map[uint64]struct{}
}

// Beyond mostNames only names that are equal byte for byte count as taken; few directories are ever so full. mostPlaces bounds for
// how many directories names are kept: returned, duplicate, and the month that is running.
const (
	mostNames  = 100_000
	mostPlaces = 4
)

func (t *takenNames) hash(name string) uint64 {
	return maphash.String(t.seed, cases.Fold().String(norm.NFC.String(name)))
}

func (t *takenNames) has(name string) bool {
	_, ok := t.hashes[t.hash(name)]
	return ok
}

func (t *takenNames) add(name string) {
	if len(t.hashes) < mostNames {
		t.hashes[t.hash(name)] = struct{}{}
	}
}

// names gives the names in dir; f.mu is held.
func (f *Folder) names(dir *durable.Dir, p place) (*takenNames, error) {
	info, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	key := strings.Join(p.dir(), "/")
	if t := f.taken[key]; t != nil && t.mtime.Equal(info.ModTime()) {
		return t, nil
	}
	if len(f.taken) >= mostPlaces {
		clear(f.taken)
	}
	t := &takenNames{seed: maphash.MakeSeed(), mtime: info.ModTime(), hashes: map[uint64]struct{}{}}
	list, err := dir.Root().Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for len(t.hashes) < mostNames {
		some, err := list.Readdirnames(512)
		for _, name := range some {
			t.add(name)
		}
		if errors.Is(err, io.EOF) || err == nil && len(some) == 0 {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	f.taken[key] = t
	return t, nil
}

// noteTaken keeps the names current after a move of ours.
func (f *Folder) noteTaken(dir *durable.Dir, p place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.taken[strings.Join(p.dir(), "/")]
	if t == nil {
		return
	}
	info, err := dir.Stat()
	if err != nil {
		delete(f.taken, strings.Join(p.dir(), "/")) // read anew next time
		return
	}
	t.add(p.name)
	t.mtime = info.ModTime()
}
