package selfcheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
)

// replayed is what a replay of the journal found.
type replayed struct {
	report proof.Report
	state  *proof.State // nil: there is nothing to go on from
	err    error
}

// replayWhole replays all lines.
func replayWhole(ctx context.Context, l *boltledger.Ledger) (p replayed) {
	r := &reader{ctx: ctx, ledger: l}
	p.report, p.state = proof.CheckForLater(r.journal(1), r.entries(l.EntriesOldestFirst))
	p.err = r.err
	return p
}

// replaySince replays the lines behind a state.
func replaySince(ctx context.Context, l *boltledger.Ledger, s proof.State) (p replayed) {
	r := &reader{ctx: ctx, ledger: l}
	p.report, p.state, p.err = proof.Continue(s, r.journal(s.Head.N+1), r.entries(func(fn func(ledger.Entry) error) error {
		return r.visitChanged(s.Head.N+1, fn)
	}))
	p.err = cmp.Or(p.err, r.err)
	return p
}

var errEnough = errors.New("enough")

// reader reads a ledger for a replay.
type reader struct {
	ctx    context.Context
	ledger *boltledger.Ledger

	mu  sync.Mutex // lines are read ahead, while entries are looked up
	err error      // guarded by mu
}

func (r *reader) keep(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, errEnough) {
		r.err = errors.Join(r.err, err)
	}
}

// journal returns the journal from a line on.
func (r *reader) journal(from uint64) proof.Journal {
	lines := func(yield func(uint64, []byte) bool) {
		r.keep(r.ledger.Lines(from, func(n uint64, line []byte) error {
			if !yield(n, line) {
				return errEnough
			}
			return context.Cause(r.ctx)
		}))
	}
	entry := proof.KeepRecent(func(k archive.Key) (ledger.Entry, bool) {
		e, ok, err := r.ledger.Entry(k)
		r.keep(err)
		return e, ok
	})
	byRemote := func(n archive.RemoteID) (ledger.Entry, bool) {
		k, ok, err := r.ledger.FindByRemote(n)
		r.keep(err)
		if !ok {
			return ledger.Entry{}, false
		}
		return entry(k)
	}
	balance := r.ledger.Balance()
	return proof.Journal{Lines: lines, Head: r.ledger.Head(), Balance: &balance, Entry: entry, ByRemote: byRemote, Arrivals: r.arrivals()}
}

// arrivals returns all arrivals.
func (r *reader) arrivals() iter.Seq[arrival.Arrival] {
	return func(yield func(arrival.Arrival) bool) {
		r.keep(r.ledger.Arrivals(func(a arrival.Arrival) error {
			if !yield(a) {
				return errEnough
			}
			return context.Cause(r.ctx)
		}, arrival.States()...))
	}
}

// entries returns the entries that visit visits.
func (r *reader) entries(visit func(func(ledger.Entry) error) error) iter.Seq[ledger.Entry] {
	return func(yield func(ledger.Entry) bool) {
		r.keep(visit(func(e ledger.Entry) error {
			if !yield(e) {
				return errEnough
			}
			return context.Cause(r.ctx)
		}))
	}
}

// visitChanged calls fn once with each entry that is not at rest, or that a line from a number on is about.
func (r *reader) visitChanged(from uint64, fn func(ledger.Entry) error) error {
	keys := map[archive.Key]bool{}
	err := r.ledger.Lines(from, func(_ uint64, line []byte) error {
		l, err := ledger.ParseLine(line)
		if k, keyErr := archive.ParseKey(l.Key); err == nil && keyErr == nil { // else the replay reports the line
			keys[k] = true
		}
		return context.Cause(r.ctx)
	})
	if err != nil {
		return err
	}
	err = r.ledger.OpenEntries(func(e ledger.Entry) error {
		delete(keys, e.Key)
		return fn(e)
	})
	for _, k := range slices.SortedFunc(maps.Keys(keys), func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }) {
		if err != nil {
			return err
		}
		var e ledger.Entry
		var ok bool
		if e, ok, err = r.ledger.Entry(k); ok && err == nil {
			err = fn(e)
		}
	}
	return err
}
