package boltledger

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// opening says how a ledger is opened where it is not opened in the usual way.
type opening struct {
	behind *ledger.Mark // enters safe mode where the ledger is behind its outside head; nil: refuses
	mapped int          // the address space of the file
	isCopy bool         // nobody worked on it since it was made: it has no outside head yet
}

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

func (c Config) open(o opening) (*Ledger, error) {
	l := &Ledger{
		loc: c.Location, fault: c.Fault, probe: c.Probe, commitInterval: c.CommitInterval,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}), failed: make(chan struct{}), copying: make(chan struct{}, 1),
	}
	l.close = sync.OnceValue(l.stopAndClose)
	l.loc = cmp.Or(l.loc, time.UTC)
	if l.fault == nil {
		l.fault = func(string) error { return nil }
	}
	o.mapped = cmp.Or(c.mapped, mapSize)
	if err := l.open(c.Dir, o); err != nil {
		return nil, fmt.Errorf("open ledger %q: %w", filepath.Join(c.Dir, fileName), err)
	}
	// Started last: until here nothing else works on the file, and an error needs no committer to be stopped.
	go l.runCommitter()
	return l, nil
}

func (l *Ledger) open(dir string, o opening) (err error) {
	outside, err := readHead(dir)
	if err != nil {
		return err
	}
	// A process that dies from here on leaves the marker.
	switch found := noteOpening(dir); {
	case !found:
		defer func() {
			if err != nil {
				forgetOpening(dir) // it did not die
			}
		}()
	default:
		if err := probeLeftOpen(dir, l.probe); err != nil {
			return err
		}
	}
	if l.db, l.file, err = openFile(dir, outside, o.mapped); err != nil {
		return err
	}
	l.dir = dir
	if l.home, err = os.Stat(dir); err != nil {
		return errors.Join(err, l.db.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.db.Close())
		}
	}()
	// Only under the lock of the ledger: the leftovers can belong to nobody who still works.
	sweepLeftovers(dir)
	isBehind, err := l.compareWithHead(outside, o)
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
	if isBehind {
		if err := l.enterRolledBack(*o.behind, outside); err != nil {
			return err
		}
	}
	return l.finishOpening(dir)
}

// compareWithHead reads the ledger's record of itself and compares it with the outside head.
// isBehind says that it is older than its head, and to be opened all the same.
func (l *Ledger) compareWithHead(outside *headRecord, o opening) (isBehind bool, err error) {
	err = l.view(func(tx *bbolt.Tx) (err error) {
		if l.state, err = readSelf(tx); err != nil {
			return err
		}
		if o.isCopy {
			return nil
		}
		// A ledger older than its head would register again what was registered since.
		err = checkOutsideHead(tx, l.state, outside)
		if o.behind != nil && errors.Is(err, ledger.ErrRolledBack) {
			isBehind, err = true, nil
		}
		return err
	})
	return isBehind, err
}

// finishOpening brings the outside head up to date, and marks the entries that
// are still to be marked.
func (l *Ledger) finishOpening(dir string) (err error) {
	// A crash before this leaves the head behind the ledger, or a new
	// incarnation without one: both are known at the next start.
	if l.head, err = openHead(dir, l.state.Info.ID, l.state.This.N, l.state.Head); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.head.closeFile())
		}
	}()
	if !l.state.Safe.Marking {
		return nil
	}
	// A crash during the marking leaves the flag set, and the next start goes on with the entries that are not marked yet.
	_, err = l.requireReconcile(func(r request) ([]ledger.Result, error) {
		all, err := l.commitRequests([]request{r})
		if err != nil {
			return nil, err
		}
		return all[0], l.head.writeRecord(l.state.Head)
	})
	return err
}
