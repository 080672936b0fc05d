package boltledger

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
)

// Names are random, and a tree with random keys rewrites a page for each of them; the larger
// the tree, the more pages. So names are kept in sorted runs, as in a log-structured merge
// tree: each commit writes the names that it bound as one run, and [fanIn] runs of one level
// are merged into one of the next, a few chunks with each commit. A name costs the same
// however many there are, and a look-up reads few runs.

const (
	pairSize   = 8 + len(archive.Key{}) // the name's hash and the entry
	fanIn      = 4                      // runs of one level that become one of the next
	chunkPairs = 1024                   // a chunk holds at most about as many
	maxSplits  = 32                     // times a run can be halved into chunks
)

// run is a sorted list of pairs. It lies in chunks, each of which holds the hashes that
// begin with the chunk's number.
type run struct {
	number uint64 // names its chunks; never used again
	level  uint8
	pairs  uint64
	into   uint64 // the run that it is being merged into; 0 if missing
	making bool   // it is being made of those before it
	done   uint64 // chunks of it that are made
}

// splits is how many bits of a hash name its chunk.
func (r run) splits() int { return bits.Len64((r.pairs - 1) / chunkPairs) }

func (r run) chunks() uint64               { return 1 << r.splits() }
func (r run) chunkOf(hash uint64) uint64   { return hash >> (64 - r.splits()) }
func (r run) firstOf(chunk uint64) uint64  { return chunk << (64 - r.splits()) }
func (r run) chunkKey(chunk uint64) []byte { return runKey(r.number, chunk) }

// inRun begins the keys of chunks in the find bucket.
const inRun = 's'

func runKey(number, chunk uint64) []byte {
	k := binary.BigEndian.AppendUint64([]byte{inRun}, number)
	return binary.BigEndian.AppendUint32(k, uint32(chunk))
}

// decodeRunKey reads what runKey wrote.
func decodeRunKey(k []byte) (number, chunk uint64, ok bool) {
	if len(k) != 13 || k[0] != inRun {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(k[1:]), uint64(binary.BigEndian.Uint32(k[9:])), true
}

// nameIndex lists the runs that there are, those with the latest names first.
type nameIndex struct {
	next uint64 // number of the next run
	runs []run
}

func (x *nameIndex) clone() nameIndex { return nameIndex{x.next, slices.Clone(x.runs)} }

// hashOf returns the hash of a name in a run: the beginning of its SHA-256, with the kind of the
// name in the last three bits. Two names may have one hash; the entry tells which of them it has.
func hashOf(name []byte) uint64 {
	d := sha256.Sum256(name)
	return binary.BigEndian.Uint64(d[:])&^kindBits | uint64(slices.Index(kinds, name[0]))
}

// kinds has the kinds of names at their place in a hash.
var kinds = []byte{byID, byRemote, byContent, byObject, byNumber}

// kindBits are the bits of a hash that tell the kind of its name.
const kindBits = 7

// kindOf returns the kind of name that a hash stands for; 0: there is none.
func kindOf(hash uint64) byte {
	if i := int(hash & kindBits); i < len(kinds) {
		return kinds[i]
	}
	return 0
}

// pair leads from a name to the entry that took it.
type pair struct {
	hash uint64
	key  archive.Key
}

// encodePairs writes pairs as a chunk does.
func encodePairs(ps []pair) []byte {
	b := make([]byte, 0, len(ps)*pairSize)
	for _, p := range ps {
		b = binary.BigEndian.AppendUint64(b, p.hash)
		b = append(b, p.key[:]...)
	}
	return b
}

func hashAt(chunk []byte, i int) uint64     { return binary.BigEndian.Uint64(chunk[i*pairSize:]) }
func keyAt(chunk []byte, i int) archive.Key { return archive.Key(chunk[i*pairSize+8 : (i+1)*pairSize]) }

// firstAt returns where in a chunk the pairs begin whose hashes are not before hash.
func firstAt(chunk []byte, hash uint64) int {
	return sort.Search(len(chunk)/pairSize, func(i int) bool { return hashAt(chunk, i) >= hash })
}

// mustAsk reports whether the i-th run has the pairs of a hash: while runs are merged, each
// hash is either in the old ones or in the new one.
func (x *nameIndex) mustAsk(i int, hash uint64) bool {
	r := x.runs[i]
	switch {
	// A run in the making has the first chunks of what it replaces; the others are still in the old runs.
	case r.making:
		return r.chunkOf(hash) < r.done
	case r.into != 0:
		to := x.runs[x.placeOf(r.into)]
		return to.chunkOf(hash) >= to.done
	}
	return true
}

// placeOf returns the place of the run of a number; -1: there is none.
func (x *nameIndex) placeOf(number uint64) int {
	return slices.IndexFunc(x.runs, func(r run) bool { return r.number == number })
}

// visitKeys calls fn with each entry that a hash leads to, the one that took it last first,
// until fn returns enough.
func (x *nameIndex) visitKeys(b *bbolt.Bucket, hash uint64, fn func(archive.Key) (enough bool, err error)) error {
	for i, r := range x.runs {
		if !x.mustAsk(i, hash) {
			continue
		}
		chunk := b.Get(r.chunkKey(r.chunkOf(hash)))
		for at := firstAt(chunk, hash); (at+1)*pairSize <= len(chunk) && hashAt(chunk, at) == hash; at++ {
			if enough, err := fn(keyAt(chunk, at)); enough || err != nil {
				return err
			}
		}
	}
	return nil
}

// addRun lays down pairs as a run of their own, the latest.
func (x *nameIndex) addRun(b *bbolt.Bucket, level uint8, ps []pair) error {
	slices.SortFunc(ps, func(p, q pair) int {
		return cmp.Or(cmp.Compare(p.hash, q.hash), bytes.Compare(p.key[:], q.key[:]))
	})
	ps = slices.Compact(ps)
	if len(ps) == 0 {
		return nil
	}
	x.next++
	r := run{number: x.next, level: level, pairs: uint64(len(ps))}
	// In front: a look-up must find the entry that took a name last.
	x.runs = slices.Insert(x.runs, 0, r)
	for chunk := uint64(0); len(ps) > 0; chunk++ {
		n := sort.Search(len(ps), func(i int) bool { return r.chunkOf(ps[i].hash) > chunk })
		if n == 0 {
			continue
		}
		if err := b.Put(r.chunkKey(chunk), encodePairs(ps[:n])); err != nil {
			return err
		}
		ps = ps[n:]
	}
	return nil
}

// mergeSome merges runs, after n names were bound: slightly more than keeps up with them, and
// hardly ever a whole run. The lowest levels come first, because they are quick.
func (x *nameIndex) mergeSome(b *bbolt.Bucket, n int) error {
	levels := uint8(0)
	for _, r := range x.runs {
		levels = max(levels, r.level)
	}
	for moves := (int(levels)+3)*n + chunkPairs/4; moves > 0; {
		x.planMerges()
		to := x.nextMerge()
		if to < 0 {
			return nil
		}
		moved, err := x.mergeChunk(b, to)
		if err != nil {
			return err
		}
		moves -= moved + 16 // a chunk costs something even if it is empty
	}
	return nil
}

// planMerges begins to merge the oldest runs of each level that has enough of them.
func (x *nameIndex) planMerges() {
	for i := len(x.runs); i >= fanIn; i-- {
		from := x.runs[i-fanIn : i]
		if slices.ContainsFunc(from, func(r run) bool { return r.level != from[0].level || r.into != 0 || r.making }) {
			continue
		}
		x.next++
		to := run{number: x.next, level: from[0].level + 1, making: true}
		for j := range from {
			// Stored with the commit: after a crash the merge goes on at the chunk where it stood.
			from[j].into = to.number
			to.pairs += from[j].pairs
		}
		x.runs = slices.Insert(x.runs, i, to)
	}
}

// nextMerge returns the place of the run that is to be made next; -1: there is none. Of two
// of one level the older one comes first, so that runs stay in their order.
func (x *nameIndex) nextMerge() int {
	next := -1
	for i, r := range x.runs {
		if r.making && (next < 0 || r.level <= x.runs[next].level) {
			next = i
		}
	}
	return next
}

// mergeChunk makes the next chunk of a run and returns how many pairs are in it.
func (x *nameIndex) mergeChunk(b *bbolt.Bucket, at int) (int, error) {
	to := &x.runs[at]
	first, end := to.firstOf(to.done), to.firstOf(to.done+1)
	var parts [][]byte // the latest first
	for _, from := range x.runs {
		if from.into != to.number {
			continue
		}
		chunk := from.chunkOf(first)
		part := b.Get(from.chunkKey(chunk))
		if len(part)%pairSize != 0 {
			return 0, damage("find: chunk %d of run %d has %d bytes", chunk, from.number, len(part))
		}
		last := end == 0 || from.chunkOf(end) != chunk
		upto := len(part) / pairSize
		if !last {
			upto = firstAt(part, end)
		}
		if part := part[firstAt(part, first)*pairSize : upto*pairSize]; len(part) > 0 {
			parts = append(parts, part)
		}
		// The old chunk goes in the transaction that writes the new one: each name is always in exactly one of them.
		if last {
			if err := b.Delete(from.chunkKey(chunk)); err != nil {
				return 0, err
			}
		}
	}
	merged := mergePairs(parts)
	if len(merged) > 0 {
		if err := b.Put(to.chunkKey(to.done), merged); err != nil {
			return 0, err
		}
	}
	if to.done++; to.done == to.chunks() {
		number := to.number
		to.making, to.done = false, 0
		x.runs = slices.DeleteFunc(x.runs, func(r run) bool { return r.into == number })
	}
	return len(merged) / pairSize, nil
}

// mergePairs merges sorted pairs. Of equal hashes those of an earlier part come first.
func mergePairs(parts [][]byte) []byte {
	total := 0
	for _, p := range parts {
		total += len(p)
	}
	merged := make([]byte, 0, total)
	for len(merged) < total {
		least := 0
		for i := range parts {
			if len(parts[i]) > 0 && (len(parts[least]) == 0 || bytes.Compare(parts[i][:8], parts[least][:8]) < 0) {
				least = i
			}
		}
		merged = append(merged, parts[least][:pairSize]...)
		parts[least] = parts[least][pairSize:]
	}
	return merged
}

// isSound reports whether the index can be one: every number that is used to find its way
// in a run is within its bounds.
func (x *nameIndex) isSound() bool {
	for i, r := range x.runs {
		if r.pairs == 0 || r.splits() > maxSplits || r.number == 0 || r.number > x.next || x.placeOf(r.number) != i {
			return false
		}
		if r.making && (r.done >= r.chunks() || r.into != 0) || !r.making && r.done != 0 {
			return false
		}
		if to := x.placeOf(r.into); r.into != 0 && (to <= i || !x.runs[to].making || x.runs[to].splits() < r.splits()) {
			return false
		}
	}
	return true
}
