package boltledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// A check reads a bucket in stretches of neighbouring records. Each worker takes the next stretch, and what the stretches
// found is merged in the order of their keys: neither what is found nor its order tells how many workers there were.

// part is what was found in one stretch of a bucket. One worker fills it, and the check that it belongs to takes it in.
type part struct {
	check *checker
	found []ledger.Problem
	err   error // why the stretch was not read to its end

	counted *recount  // of entries; nil: there were none
	names   nameCheck // of entries
	chain   chainPart // of journal blocks
}

// reportProblem notes a problem and says whether to go on.
func (p *part) reportProblem(bucket []byte, format string, a ...any) error {
	p.found = append(p.found, ledger.Problem{Where: string(bucket), What: fmt.Sprintf(format, a...)})
	if len(p.found) >= 10*maxProblems { // far more than are taken in
		return errEnough
	}
	return context.Cause(p.check.ctx)
}

// reportError reports err, if it is one.
func (p *part) reportError(bucket []byte, err error) error {
	var d *ledger.DamageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &d):
		return p.reportProblem(bucket, "%s", strings.TrimPrefix(d.What, string(bucket)+" "))
	}
	return p.reportProblem(bucket, "%v", err)
}

func (p *part) countEntry(e ledger.Entry) {
	if p.counted == nil {
		p.counted = newRecount()
	}
	p.counted.addEntry(e)
}

// takeIn adds what a part found to what the check found.
func (c *checker) takeIn(p *part) error {
	for _, problem := range p.found {
		if c.found = append(c.found, problem); len(c.found) >= maxProblems {
			return errEnough
		}
	}
	return nil
}

// runAlone makes a check that is not spread over workers.
func (c *checker) runAlone(check func(p *part, tx *bbolt.Tx) error) error {
	p := &part{check: c}
	err := c.ledger.view(func(tx *bbolt.Tx) error { return check(p, tx) })
	return cmp.Or(c.takeIn(p), err)
}

// stretch is a part of a bucket: behind the key after, up to the key last.
type stretch struct {
	number      int
	after, last []byte // after is nil for the first one
}

// walk hands the stretches of a bucket out, and merges what was found in them.
type walk struct {
	bucket []byte
	check  func(p *part, tx *bbolt.Tx, k, v []byte) error
	merge  func(*part) error // called with one part after the other, in the order of the keys
	from   []byte            // the walk begins behind this key; nil: with the first one
	keys   []archive.Key     // in order; where given, check is called with the records of these keys alone, their notes included

	mu      sync.Mutex
	changed sync.Cond
	taken   int           // guarded by mu: stretches handed out
	after   []byte        // guarded by mu: the last key of those
	end     bool          // guarded by mu: no stretch is left
	waiting map[int]*part // guarded by mu: read, but one before them is not
	merged  int           // guarded by mu
	err     error         // guarded by mu: why no further part is merged
}

// eachRecord calls check with every pair of a bucket, and then merge with each part.
func (c *checker) eachRecord(bucket []byte, check func(p *part, tx *bbolt.Tx, k, v []byte) error) error {
	return c.walkBucket(&walk{bucket: bucket, check: check, merge: c.takeIn})
}

func (c *checker) walkBucket(w *walk) error {
	if w.keys != nil && len(w.keys) == 0 {
		return nil
	}
	w.changed.L, w.waiting = &w.mu, map[int]*part{}
	w.after = w.from
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() { c.workOn(w) })
	}
	workers.Wait()
	return w.err
}

// workOn reads one stretch after the other, until none is left or a part could not be merged.
func (c *checker) workOn(w *walk) {
	for {
		p := &part{check: c}
		s, ok := w.takeNext(c, p)
		if !ok {
			return
		}
		if p.err == nil {
			p.err = context.Cause(c.ctx)
		}
		if p.err == nil {
			p.err = c.ledger.view(func(tx *bbolt.Tx) error { return w.readStretch(tx, s, p) })
		}
		w.hand(s.number, p)
	}
}

// takeNext takes the next stretch. It notes in p why the stretch could not be found.
func (w *walk) takeNext(c *checker, p *part) (s stretch, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Bounded: where one stretch takes long, the parts of the others must not pile up.
	for w.taken-w.merged >= 4*c.workers && w.err == nil {
		w.changed.Wait()
	}
	if w.end || w.err != nil {
		return s, false
	}
	s = stretch{number: w.taken, after: w.after}
	w.taken++
	p.err = c.ledger.view(func(tx *bbolt.Tx) error { s.last, w.end = w.findStretch(tx); return nil })
	if w.after = s.last; p.err != nil {
		w.end = true
	}
	return s, true
}

// findStretch returns the last key of the next stretch, and whether no other one follows it.
func (w *walk) findStretch(tx *bbolt.Tx) (last []byte, end bool) {
	if w.keys != nil {
		at := w.keyBehind(w.after) + chunkKeys - 1
		if at+1 >= len(w.keys) {
			return w.keys[len(w.keys)-1][:], true
		}
		return w.keys[at][:], false
	}
	cur := tx.Bucket(w.bucket).Cursor()
	k, v := seekBehind(cur, w.after)
	for n := 0; k != nil && n < chunkEntries; k, v = cur.Next() {
		last = k
		n += recordsToCheck(w.bucket, v)
	}
	return bytes.Clone(last), k == nil // cloned: the key belongs to the transaction
}

// chunkKeys is how many single keys a stretch has.
const chunkKeys = 32

// keyBehind returns the place of the first of the keys that is behind another one.
func (w *walk) keyBehind(after []byte) int {
	return sort.Search(len(w.keys), func(i int) bool { return bytes.Compare(w.keys[i][:], after) > 0 })
}

// seekBehind goes to the first key behind another one; nil: to the first of all.
func seekBehind(cur *bbolt.Cursor, after []byte) (k, v []byte) {
	if after == nil {
		return cur.First()
	}
	if k, v = cur.Seek(after); bytes.Equal(k, after) {
		k, v = cur.Next()
	}
	return k, v
}

func (w *walk) readStretch(tx *bbolt.Tx, s stretch, p *part) error {
	cur := tx.Bucket(w.bucket).Cursor()
	if w.keys != nil {
		return w.readKeys(cur, tx, s, p)
	}
	for k, v := seekBehind(cur, s.after); k != nil && bytes.Compare(k, s.last) <= 0; k, v = cur.Next() {
		if err := w.check(p, tx, k, v); err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads the records that begin with one of the keys.
func (w *walk) readKeys(cur *bbolt.Cursor, tx *bbolt.Tx, s stretch, p *part) error {
	for _, key := range w.keys[w.keyBehind(s.after):w.keyBehind(s.last)] {
		for k, v := cur.Seek(key[:]); bytes.HasPrefix(k, key[:]); k, v = cur.Next() {
			if err := w.check(p, tx, k, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// hand hands a part over, and merges those whose turn it is.
func (w *walk) hand(number int, p *part) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[number] = p
	for p := w.waiting[w.merged]; p != nil && w.err == nil; p = w.waiting[w.merged] {
		delete(w.waiting, w.merged)
		w.merged++
		// What was found before the error counts: a damaged page does not make the findings before it unseen.
		if w.err = w.merge(p); w.err == nil {
			w.err = p.err
		}
	}
	w.changed.Broadcast()
}

// recordsToCheck is how many records it takes to check a value: a journal block
// has a line in about sixty bytes.
func recordsToCheck(bucket, v []byte) int {
	if bytes.Equal(bucket, journalBucket) {
		return 1 + len(v)/250
	}
	return 1
}
