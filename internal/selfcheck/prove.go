package selfcheck

import (
	"context"
	"errors"
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
)

// Prove replays the journal up to its present end and compares the entries with it. Entries may change meanwhile. moved
// names those that did: a finding about one of them proves nothing.
func Prove(ctx context.Context, l *boltledger.Ledger) (r proof.Report, moved map[archive.Key]bool, err error) {
	head, balance := readHeadAndBalance(l)
	errEnough := errors.New("enough")
	var mu sync.Mutex // lines are read ahead, while entries are looked up
	keep := func(walked error) {
		mu.Lock()
		defer mu.Unlock()
		if !errors.Is(walked, errEnough) {
			err = errors.Join(err, walked)
		}
	}
	lines := func(yield func(uint64, []byte) bool) {
		keep(l.Lines(1, func(n uint64, line []byte) error {
			if n > head.N || !yield(n, line) {
				return errEnough
			}
			return context.Cause(ctx)
		}))
	}
	entries := func(yield func(ledger.Entry) bool) {
		keep(l.EntriesOldestFirst(func(e ledger.Entry) error {
			if !yield(e) {
				return errEnough
			}
			return context.Cause(ctx)
		}))
	}
	recent := newRecentEntries()
	entry := func(k archive.Key) (ledger.Entry, bool) {
		if e, ok := recent.get(k); ok {
			return e, true
		}
		e, ok, readErr := l.Entry(k)
		keep(readErr)
		if ok {
			recent.add(e)
		}
		return e, ok
	}
	r = proof.Check(proof.Journal{Lines: lines, Head: head, Balance: &balance, Entry: entry}, entries, proof.Seen{})
	if err != nil {
		return r, nil, err
	}
	moved, err = changedSince(l, head)
	return r, moved, err
}

// recentEntries are the entries that were looked up last. The replay looks an entry up at each of its lines that may be the
// last one, and those mostly stand near each other.
type recentEntries struct {
	byKey map[archive.Key]ledger.Entry
	keys  [2048]archive.Key // in the order in which they came, round and round
	next  int
}

func newRecentEntries() *recentEntries {
	return &recentEntries{byKey: map[archive.Key]ledger.Entry{}}
}

func (r *recentEntries) get(k archive.Key) (ledger.Entry, bool) { e, ok := r.byKey[k]; return e, ok }

func (r *recentEntries) add(e ledger.Entry) {
	delete(r.byKey, r.keys[r.next])
	r.byKey[e.Key], r.keys[r.next] = e, e.Key
	r.next = (r.next + 1) % len(r.keys)
}

// readHeadAndBalance returns the head and the balance of the same moment.
func readHeadAndBalance(l *boltledger.Ledger) (ledger.Head, ledger.Balance) {
	for {
		head := l.Head()
		balance := l.Balance()
		if l.Head() == head {
			return head, balance
		}
	}
}

// changedSince returns the entries that changed after head.
func changedSince(l *boltledger.Ledger, head ledger.Head) (map[archive.Key]bool, error) {
	moved := map[archive.Key]bool{}
	err := l.Lines(head.N+1, func(_ uint64, line []byte) error {
		x, err := ledger.ParseLine(line)
		if err != nil {
			return err
		}
		if k, err := archive.ParseKey(x.Key); err == nil {
			moved[k] = true
		}
		return nil
	})
	return moved, err
}
