package main

import (
	"reflect"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

func TestFill_IsALedgerAsProductionHasIt(t *testing.T) {
	for _, together := range []int{0, 100} {
		checkFilled(t, together)
	}
}

func checkFilled(t *testing.T, together int) {
	t.Helper()
	dir := t.TempDir()
	must(t, fillLedger(t.Context(), dir, 700, 30, together))
	l, err := boltledger.Open(boltledger.Config{Dir: dir})
	must(t, err)
	defer l.Close()
	b := l.Balance()
	kit.Check(t, b.Seen == 700 && b.States[ledger.Archived] == 670 && b.States[ledger.Uploaded] == 30 && b.IsBalanced(),
		"balance %+v", b)
	atRest := 0
	must(t, l.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.IsAtRest() && e.Source == ledger.Kept {
			atRest++
		}
		return nil
	}))
	problems, err := l.Verify(t.Context())
	kit.Check(t, err == nil && len(problems) == 0, "%v: %v, want no error, len(problems) <= 0", err, problems)
	if atRest != 670 || l.Head().N != 1+670*9+30*6 {
		t.Errorf("%d at rest, %d lines", atRest, l.Head().N)
	}
}

// A ledger is filled with lives in one change each. Production tells them change by change: the records are the same.
func TestFill_AWholeLifeIsOneInSteps(t *testing.T) {
	f := newLives(time.Now()).next()
	var after [2]ledger.Entry
	for i, tell := range []func(*boltledger.Ledger) error{
		func(l *boltledger.Ledger) error { return f.apply(t.Context(), l) },
		func(l *boltledger.Ledger) error {
			rs, err := l.Apply(t.Context(), f.whole(false))
			if err == nil {
				err = rs[0].Err
			}
			return err
		},
	} {
		_, err := onLedger(t.TempDir(), 0, 0, func(l *boltledger.Ledger) error {
			if err := tell(l); err != nil {
				return err
			}
			e, ok, err := l.Entry(f.key)
			kit.Need(t, ok, "no entry %v", err)
			e.Registrations[0].Ticket.Object = archive.ObjectDigest{} // each ledger has a key of its own for it
			after[i] = e
			return err
		})
		must(t, err)
	}
	kit.Check(t, reflect.DeepEqual(after[0], after[1]) && after[0].State == ledger.Archived,
		"in steps:\n%+v\nwhole:\n%+v", after[0], after[1])
}

// G3: who waits for nobody costs the disk little, however slow it is.
func TestLedgerFlow_G3_SlowSyncs(t *testing.T) {
	f := newFlow(300)
	s, err := onLedger(t.TempDir(), gatherWindow, slowSync, func(l *boltledger.Ledger) error {
		return f.steady(t.Context(), l, newLives(time.Now()).take(300))
	})
	must(t, err)
	// Nine changes a document, 2,700 in all: who waits for each would pay two syncs for each.
	if windows := uint64(s.Wall/gatherWindow) + 2; s.Commits == 0 || s.Commits > 2*windows || f.left != 0 {
		t.Errorf("%d commits in %d gather windows, %d documents left", s.Commits, windows, f.left)
	}
}

// A full ledger has as many documents on its way as it may, and no more: one alone has each of its changes in a commit of its own.
func TestLedgerFull_KeepsSoManyOnTheirWay(t *testing.T) {
	const docs, changes = 40, 9
	for atOnce, most := range map[int]uint64{1: docs * changes, 2: docs * changes, docs: docs * changes / 10} {
		f := newFlow(docs)
		s, err := onLedger(t.TempDir(), 2*time.Millisecond, 0, func(l *boltledger.Ledger) error {
			return f.keep(t.Context(), l, newLives(time.Now()).take(docs), atOnce)
		})
		must(t, err)
		if least := uint64(docs * changes / atOnce); s.Commits < least || s.Commits > most || f.left != 0 || len(f.queue) != 0 {
			t.Errorf("%d at once: %d commits instead of %d to %d, %d documents left", atOnce, s.Commits, least, most, f.left)
		}
	}
}
