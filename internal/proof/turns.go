package proof

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"

	"vaultd/internal/archive"
)

// mostItems is how many keys are remembered at once. Where more were under way at the same
// time, one walk over the journal folds a part of all keys, and others the rest.
const mostItems = 25_000

// turn is a part of all keys: those whose hash begins with these bits.
type turn struct {
	seed  maphash.Seed
	bits  uint
	begin uint64
}

func (t turn) has(key string) bool { return t.is(maphash.String(t.seed, key)) }

func (t turn) is(hash uint64) bool { return hash>>(64-t.bits) == t.begin }

// skips reports whether a stored line is of a key whose turn it is not, without reading all of it.
func (t turn) skips(line []byte) bool {
	_, rest, ok := bytes.Cut(line, []byte(`"key":"`)) // within a text the quotes would be escaped
	key, _, whole := bytes.Cut(rest, []byte(`"`))
	return ok && whole && !t.is(maphash.Bytes(t.seed, key))
}

func (t turn) halves() (a, b turn) {
	a, b = t, t
	a.bits, b.bits = t.bits+1, t.bits+1
	a.begin, b.begin = t.begin*2, t.begin*2+1
	return a, b
}

// turns walks over the journal, once where most keys have room.
func (f *fold) turns(j Journal, most int) {
	if f.stored == nil {
		f.journal(j)
		return
	}
	for open := []turn{{seed: maphash.MakeSeed()}}; len(open) > 0; {
		last := len(open) - 1
		t := open[last]
		open = open[:last]
		next := f.begin(t, most)
		if !next.journal(j) {
			a, b := t.halves()
			open = append(open, b, a)
			continue
		}
		for key, it := range next.items {
			next.forget(key, it)
		}
		next.again = true
		*f = *next
	}
}

// begin returns a fold that goes on from f, which stays as it is.
func (f *fold) begin(t turn, most int) *fold {
	next := *f
	next.turn = t
	if next.room = len(f.items) + most; t.bits > 32 { // chance does not part them
		next.room = 0
	}
	next.Findings = slices.Clone(f.Findings)
	next.items, next.bums, next.lost = maps.Clone(f.items), maps.Clone(f.bums), maps.Clone(f.lost)
	return &next
}

// once notes what is wrong with the journal itself, which every walk meets.
func (f *fold) once(promise string, key archive.Key, format string, a ...any) {
	if !f.again {
		f.find(promise, key, format, a...)
	}
}
