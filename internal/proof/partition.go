package proof

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"

	"vaultd/internal/archive"
)

// mostItems is how many keys are remembered at once. If more were open at the
// same time, the journal is replayed several times, each time for a part of the
// keys.
const mostItems = 25_000

// partition is a part of all keys: those whose hash begins with these bits.
type partition struct {
	seed  maphash.Seed
	bits  uint
	begin uint64
}

// wholeJournal is the partition that has all keys.
func wholeJournal() partition { return partition{seed: maphash.MakeSeed()} }

func (t partition) hasKey(key string) bool { return t.hasHash(maphash.String(t.seed, key)) }

func (t partition) hasHash(hash uint64) bool { return hash>>(64-t.bits) == t.begin }

// skipsLine reports whether a stored line is of a key of another partition, without parsing the line.
func (t partition) skipsLine(line []byte) bool {
	_, rest, ok := bytes.Cut(line, []byte(`"key":"`)) // within a text the quotes would be escaped
	key, _, whole := bytes.Cut(rest, []byte(`"`))
	return ok && whole && !t.hasHash(maphash.Bytes(t.seed, key))
}

func (t partition) split() (a, b partition) {
	a, b = t, t
	a.bits, b.bits = t.bits+1, t.bits+1
	a.begin, b.begin = t.begin*2, t.begin*2+1
	return a, b
}

// replayPartitions replays the journal: once where the open keys fit, and otherwise once for each partition.
func (f *replay) replayPartitions(j Journal, most int) {
	if f.stored == nil {
		f.replayJournal(j)
		return
	}
	for open := []partition{wholeJournal()}; len(open) > 0; {
		last := len(open) - 1
		t := open[last]
		open = open[:last]
		next := f.startPartition(t, most)
		// There are too many open keys in this partition: it is split, and its result is thrown away.
		if !next.replayJournal(j) {
			a, b := t.split()
			open = append(open, b, a)
			continue
		}
		for key, it := range next.items {
			next.forgetEntry(key, it)
		}
		next.repeated = true
		*f = *next
	}
}

// startPartition returns a copy of f for the replay of one partition. f stays as it is.
func (f *replay) startPartition(t partition, most int) *replay {
	next := *f
	next.part = t
	next.Marks, next.PutBack, next.Safe, next.beforeReconcile = 0, 0, false, false
	next.Indexes, next.Accepted = nil, 0
	next.Downloads = Downloads{}
	if next.mostKeys = len(f.items) + most; t.bits > 32 { // too many hashes are equal: no split helps
		next.mostKeys = 0
	}
	if !f.repeated {
		next.arrivals = f.arrivals.restarted()
	}
	next.Findings, next.Acts = slices.Clone(f.Findings), f.Acts.clone()
	next.items, next.bindings, next.open = maps.Clone(f.items), maps.Clone(f.bindings), maps.Clone(f.open)
	return &next
}

// findOnce notes a fault of the journal itself. Each replay meets it, and only the first one reports it.
func (f *replay) findOnce(promise string, key archive.Key, format string, a ...any) {
	if !f.repeated {
		f.addFinding(promise, key, format, a...)
	}
}
