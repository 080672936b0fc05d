package ingest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// Folders with one invoice number are packed at the same time. All are archived, and
// all but the first name the first.
func TestSeal_SameNumberAtOnceIsNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// A commit takes a while, however fast the disk is: other folders are compared meanwhile.
		r := buildSlow(t, &service{}, func(string) error { time.Sleep(time.Millisecond); return nil })
		f := r.folders("V")
		f.number, f.takes = archive.NumberDigest{1}, time.Second
		r.start()
		r.drop("V", 60) // enough that two are compared at once, however busy the machine is
		r.pass(2 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 60})
		first, named := archive.Key{}, 0
		for _, e := range r.entries() {
			if e.SameNumber.IsZero() {
				first = e.Key
			}
		}
		for _, e := range r.entries() {
			if e.SameNumber == first {
				named++
			}
		}
		kit.Want(t, "entries that name the first", named, 59)
		f.mu.Lock()
		defer f.mu.Unlock()
		kit.Check(t, f.packed != 60,
			"each folder was packed once, want more: no two were compared at once, and the test shows nothing")
	})
}

// same_number: hold and strange_dates: hold let a document wait for an operator, and
// the ledger records the reason. The operator lets it continue, and has looked at it
// then. The first document with a number is not held.
func TestSeal_HoldsWhatIsUnusual(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		holds  ingest.Holds
		sealed func(*folders)
		reason string // how it begins
	}{
		"SameNumber":         {ingest.Holds{SameNumber: true}, func(f *folders) { f.number = archive.NumberDigest{1} }, "same_number: hold. "},
		"StrangeDate":        {ingest.Holds{StrangeDate: true}, func(f *folders) { f.dated = true }, "strange_dates: hold. "},
		"SameFilesAndNumber": {ingest.Holds{SameNumber: true}, func(f *folders) { f.number, f.same = archive.NumberDigest{1}, true }, "same_number: hold. "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := build(t, &service{})
				f := r.folders("V")
				f.number, f.same = archive.NumberDigest{1}, name == "SameFilesAndNumber"
				r.start()
				r.dropNamed("V", "first", 1)
				r.pass(time.Hour)
				r.stop()
				f.number = archive.NumberDigest{2}
				row.sealed(f)
				r.configured("V").Holds = row.holds
				r.start()
				r.dropNamed("V", "second", 1)
				r.pass(2 * time.Hour)
				es := r.entries()
				kit.Want(t, "states", r.states(), states{ledger.Archived: 1, ledger.Packaged: 1})
				if e := es[1]; !e.Hold || e.Attention() != ledger.AwaitingDecision {
					t.Fatalf("the second is held: %t, attention = %v, want true, %v", e.Hold, e.Attention(), ledger.AwaitingDecision)
				}
				notes, err := r.ledger.Notes(es[1].Key)
				if why := notes[es[1].Rev].Text; err != nil || !strings.HasPrefix(why, row.reason) {
					t.Errorf("reason = %q (error %v), want it to begin with %q", why, err, row.reason)
				}
				r.apply(ledger.Change{Key: es[1].Key, Rev: es[1].Rev, Events: []ledger.Event{ledger.Unheld{}}})
				r.Wake()
				r.pass(2 * time.Hour)
				kit.Want(t, "states", r.states(), states{ledger.Archived: 2})
				e := r.entries()[1]
				kit.Want(t, "attention", e.Attention(), ledger.NoAttention)
				kit.Want(t, "reviewed", e.Reviewed, e.NeedsReview())
			})
		})
	}
}
