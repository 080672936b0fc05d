package boltledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Names are random: to look each of them up, and each entry that a run leads to, reads the whole ledger in random order many
// times over. So a check first compares all names that entries bear with all pairs of the runs at once. It adds the names up
// and takes the pairs off, in groups by the beginning of their hashes. A group whose sum is zero has the same names on both
// sides, and each of them belongs to one entry; the others are looked up one by one. Two sides that differ have the same sum by chance
// once in 2^64 times.

// provenNames tells which names need no look-up, as of one moment of the ledger.
type provenNames struct {
	seed  maphash.Seed // random in each check, so that nobody can make up names with the same sum
	shift int
	sums  []atomic.Uint64 // of each group of hashes: names that entries bear, less the pairs of the runs
	doubt []atomic.Uint32 // a bit for each group: it has a name that one sum cannot tell about
	never atomic.Bool     // the runs are not as they should be: every name is looked up

	mu    sync.Mutex
	line  uint64          // guarded by mu: the journal is read up to here for what changed since
	upTo  atomic.Int64    // the transaction up to which that is so
	moved []atomic.Uint64 // a bit for each entry that changed since that moment, by its hash; others may share the bit
}

const (
	mostGroups = 1 << 21 // 16 MiB
	movedBits  = 1 << 20
)

// newProvenNames begins a comparison in a transaction whose journal ends at line.
func newProvenNames(tx *bbolt.Tx, line uint64) *provenNames {
	n := &provenNames{seed: maphash.MakeSeed(), line: line, moved: make([]atomic.Uint64, movedBits/64)}
	n.upTo.Store(int64(tx.ID()))
	pairs := uint64(0)
	if x, err := readNameIndex(tx); err == nil {
		for _, r := range x.runs {
			pairs += r.pairs
		}
	} else {
		n.never.Store(true) // reported with the runs
	}
	groups := min(uint64(1)<<bits.Len64(pairs/4), mostGroups)
	n.shift = 64 - bits.Len64(groups-1)
	n.sums, n.doubt = make([]atomic.Uint64, groups), make([]atomic.Uint32, groups/32+1)
	return n
}

func (n *provenNames) groupOf(hash uint64) uint64 { return hash >> n.shift }

// isProven reports whether each name of that hash leads to the one entry that bears it, and to no other.
func (n *provenNames) isProven(hash uint64) bool {
	if n == nil || n.never.Load() {
		return false
	}
	g := n.groupOf(hash)
	return n.sums[g].Load() == 0 && n.doubt[g/32].Load()&(1<<(g%32)) == 0
}

// doubtGroup has each name of a group looked up.
func (n *provenNames) doubtGroup(hash uint64) {
	g := n.groupOf(hash)
	n.doubt[g/32].Or(1 << (g % 32))
}

func (n *provenNames) valueOf(p pair) uint64 {
	var b [pairSize]byte
	binary.BigEndian.PutUint64(b[:], p.hash)
	copy(b[8:], p.key[:])
	return maphash.Bytes(n.seed, b[:])
}

// addEntry adds the names that an entry bears.
func (n *provenNames) addEntry(e ledger.Entry) {
	var seen []uint64
	for _, name := range entryNames(e) {
		hash := hashOf(name)
		if slices.Contains(seen, hash) { // listed twice: for which generation a sum cannot tell
			n.doubtGroup(hash)
			continue
		}
		seen = append(seen, hash)
		n.sums[n.groupOf(hash)].Add(n.valueOf(pair{hash, e.Key}))
	}
}

// compareWithRuns takes the pairs of the runs off, each once. The transactions are those in which the entries were read.
func (n *provenNames) compareWithRuns(ctx context.Context, txs []*bbolt.Tx) error {
	x, err := readNameIndex(txs[0])
	if err != nil {
		return nil // reported with the runs
	}
	n.doubtOwnKeys(txs[0])
	ranges := uint64(1) << max(bits.Len64(uint64(len(n.sums)))-14, 0) // a range of hashes has some 64,000 pairs
	var next atomic.Uint64
	var workers sync.WaitGroup
	errs := make([]error, len(txs))
	for i, tx := range txs {
		workers.Go(func() {
			errs[i] = recoverDamage(func() error {
				b := tx.Bucket(findBucket)
				var ps []pair
				for at := next.Add(1) - 1; at < ranges && context.Cause(ctx) == nil; at = next.Add(1) - 1 {
					ps = n.takeOff(&x, b, at, ranges, ps[:0])
				}
				return context.Cause(ctx)
			})
		})
	}
	workers.Wait()
	return cmp.Or(errs...)
}

// doubtOwnKeys notes the names that have keys of their own: a look-up reads those before the runs.
func (n *provenNames) doubtOwnKeys(tx *bbolt.Tx) {
	cur := tx.Bucket(findBucket).Cursor()
	for k, _ := cur.First(); k != nil; k, _ = cur.Next() {
		if _, _, ok := decodeRunKey(k); ok {
			if k, _ = cur.Seek([]byte{inRun + 1}); k == nil {
				return
			}
		}
		n.doubtName(k)
	}
}

func (n *provenNames) doubtName(k []byte) {
	if slices.Contains(kinds, k[0]) {
		n.doubtGroup(hashOf(k))
	}
}

// takeOff takes the pairs of one range of hashes off. ps is room to sort them in.
func (n *provenNames) takeOff(x *nameIndex, b *bbolt.Bucket, at, ranges uint64, ps []pair) []pair {
	width := 64 - bits.Len64(ranges-1)
	first := at << width
	last := first + 1<<width - 1
	for i, r := range x.runs {
		for chunk := r.chunkOf(first); chunk <= r.chunkOf(last); chunk++ {
			v := b.Get(r.chunkKey(chunk))
			if !isOrdered(r, chunk, v) {
				n.never.Store(true) // a look-up may then miss a pair that is there
				return ps
			}
			for j := firstAt(v, first); j < len(v)/pairSize && hashAt(v, j) <= last; j++ {
				if hash := hashAt(v, j); x.mustAsk(i, hash) {
					ps = append(ps, pair{hash, keyAt(v, j)})
				}
			}
		}
	}
	slices.SortFunc(ps, func(p, q pair) int {
		return cmp.Or(cmp.Compare(p.hash, q.hash), bytes.Compare(p.key[:], q.key[:]))
	})
	for i, p := range ps {
		switch {
		case i > 0 && p == ps[i-1]: // bound again: once is enough
			continue
		case i > 0 && p.hash == ps[i-1].hash: // more than one entry has it, or two names share a hash
			n.doubtGroup(p.hash)
		}
		n.sums[n.groupOf(p.hash)].Add(-n.valueOf(p))
	}
	return ps
}

// isOrdered reports whether a chunk holds whole pairs, in order, of its own hashes.
func isOrdered(r run, chunk uint64, v []byte) bool {
	for i := range len(v) / pairSize {
		if r.chunkOf(hashAt(v, i)) != chunk || i > 0 && hashAt(v, i-1) > hashAt(v, i) {
			return false
		}
	}
	return len(v)%pairSize == 0
}

// hasMoved reports whether an entry may have changed since the comparison, as far as tx has it. The journal tells which did.
func (n *provenNames) hasMoved(tx *bbolt.Tx, key archive.Key) bool {
	if n == nil || n.never.Load() {
		return true
	}
	if int64(tx.ID()) > n.upTo.Load() {
		n.readMoved(tx)
	}
	h := maphash.Bytes(n.seed, key[:]) % movedBits
	return n.moved[h/64].Load()&(1<<(h%64)) != 0 || n.never.Load()
}

// readMoved notes the entries of the lines that came since it was called last.
func (n *provenNames) readMoved(tx *bbolt.Tx) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for int64(tx.ID()) > n.upTo.Load() {
		lines, err := readLines(tx, n.line+1)
		for _, stored := range lines {
			l, parseErr := ledger.ParseLine(stored)
			key, keyErr := archive.ParseKey(l.Key)
			if parseErr != nil || keyErr != nil && l.Key != "" {
				n.never.Store(true) // who it was about is not known; the chain reports it
			}
			h := maphash.Bytes(n.seed, key[:]) % movedBits
			n.moved[h/64].Or(1 << (h % 64))
		}
		if n.line += uint64(len(lines)); err != nil {
			n.never.Store(true) // the chain reports it
		}
		if err != nil || len(lines) == 0 {
			n.upTo.Store(int64(tx.ID()))
		}
	}
}
