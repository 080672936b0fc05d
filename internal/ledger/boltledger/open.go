package boltledger

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// Open opens the ledger in c.Dir and starts its committer. It compares it with
// the outside head, and refuses with [ledger.ErrMissing], [ledger.ErrLocked],
// [ledger.ErrRolledBack], [ledger.ErrNewerSchema], [ledger.ErrDevelopment] or a
// [ledger.DamageError]. The file of a ledger that it refuses stays as it is.
func Open(c Config) (*Ledger, error) { return c.open(opening{}) }

// OpenRolledBack opens a ledger as Open does; one that Open refuses with
// [ledger.ErrRolledBack] it first brings into safe mode, with every entry that is not at rest
// marked as to be reconciled. By and At of m are in the journal line about it. After a crash in
// between, opening it in either way finishes that.
func OpenRolledBack(c Config, m ledger.Mark) (*Ledger, error) {
	m.Name = ledger.MarkRolledBack
	return c.open(opening{behind: &m})
}

// opening says how a ledger is opened where it is not opened in the usual way.
type opening struct {
	behind      *ledger.Mark // enters safe mode where the ledger is behind its outside head; nil: refuses
	replacement *markRequest // of a file that nobody worked on since it was made, and that has no outside head: what it begins with
}

func (c Config) open(o opening) (*Ledger, error) {
	l := &Ledger{
		dir: c.Dir, loc: cmp.Or(c.Location, time.UTC), fault: c.Fault, probe: c.Probe, commitInterval: c.CommitInterval,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), failed: make(chan struct{}), copying: make(chan struct{}, 1),
	}
	l.close = sync.OnceValue(l.stopAndClose)
	if l.fault == nil {
		l.fault = func(string) error { return nil }
	}
	if err := l.open(o, cmp.Or(c.mapped, mapSize)); err != nil {
		return nil, fmt.Errorf("open ledger %q: %w", pathIn(c.Dir, fileName), err)
	}
	// Started last: until here nothing else works on the file, and an error needs no committer to be stopped.
	go l.runCommitter()
	return l, nil
}

func (l *Ledger) open(o opening, mapped int) (err error) {
	outside, err := readHead(l.dir)
	if err != nil {
		return err
	}
	// A process that dies from here on leaves the marker.
	switch found := noteOpening(l.dir); {
	case !found:
		defer func() {
			if err != nil {
				forgetOpening(l.dir) // it did not die
			}
		}()
	default:
		if err := probeLeftOpen(l.dir, l.probe); err != nil {
			return err
		}
	}
	l.file, err = openToWork(pathIn(l.dir, fileName))
	// A head without its ledger: there was one. Making a new one here would
	// forget everything that was archived.
	if errors.Is(err, ledger.ErrMissing) && outside != nil {
		err = fmt.Errorf("%w, though %s beside it knows %d journal lines: put the ledger back or restore a backup; do not run \"vaultd init\"",
			err, headNameOf(outside.Incarnation), outside.N)
	}
	if err != nil {
		return err
	}
	if l.db, err = openDB(l.file, bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapped}); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.db.Close())
		}
	}()
	if l.home, err = os.Stat(l.dir); err != nil {
		return err
	}
	// Only under the lock of the ledger: the leftovers can belong to nobody who still works.
	sweepLeftovers(l.dir)
	first, err := l.compareWithHead(outside, o)
	if err != nil {
		return err
	}
	// A process that was killed between its last write and the sync left a commit
	// that is in memory alone. It must be durable before the head names it, and
	// before anything is sent because of it: the power may go next.
	if err := l.file.Sync(); err != nil {
		return err
	}
	// Safe mode and the later incarnation are one commit. A crash before it
	// leaves a ledger that is still behind its head.
	if first != nil {
		if err := l.commitOne(request{do: first.apply}); err != nil {
			return err
		}
	}
	return l.finishOpening()
}

// compareWithHead reads the ledger's record of itself and compares it with the
// outside head. first is the mark to begin with where the ledger is older than
// its head, and to be opened all the same, and that of a replacement.
func (l *Ledger) compareWithHead(outside *headRecord, o opening) (first *markRequest, err error) {
	err = l.view(func(tx *bbolt.Tx) (err error) {
		if l.state, err = readSelf(tx); err != nil || o.replacement != nil {
			return err
		}
		// A ledger older than its head would register again what was registered since.
		return checkOutsideHead(tx, l.state, outside)
	})
	if o.behind == nil || !errors.Is(err, ledger.ErrRolledBack) {
		return o.replacement, err
	}
	m := *o.behind
	m.Cause = fmt.Sprintf("the outside head was at line %d, this ledger at line %d", outside.N, l.state.Head.N)
	return &markRequest{mark: m, also: func(s *summary) {
		s.Safe.Marking = true
		s.beginIncarnation(outside.Incarnation + 1)
	}}, nil
}

// finishOpening brings the outside head up to date, and marks the entries that
// are still to be marked.
func (l *Ledger) finishOpening() (err error) {
	// A crash before this leaves the head behind the ledger, or a new
	// incarnation without one: both are known at the next start.
	if l.head, err = openHead(l.dir, l.state); err != nil {
		return err
	}
	// A crash during the marking leaves the flag set, and the next start goes on with the entries that are not marked yet.
	if l.state.Safe.Marking {
		err = l.requireReconcile()
	}
	if err == nil {
		err = l.head.writeRecord(l.state.Head)
	}
	if err != nil {
		err = errors.Join(err, l.head.closeFile())
	}
	return err
}
