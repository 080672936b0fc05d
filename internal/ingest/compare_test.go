package ingest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// entries returns all entries in the order in which they were claimed.
func (r *running) entries() (es []ledger.Entry) {
	r.t.Helper()
	if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error { es = append(es, e); return nil }); err != nil {
		r.t.Fatal(err)
	}
	return es
}

// Folders with one invoice number that are packed at the same time do not miss each other: all are archived, and all but
// one name that one.
func TestSeal_SameNumberAtOnceIsNotMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// A commit takes a while, however fast the disk is: others look meanwhile.
		r := build(t, &service{committing: func(string) error { time.Sleep(time.Millisecond); return nil }})
		f := r.drops["V"].Packer.(*folders)
		f.number, f.takes = archive.NumberDigest{1}, time.Second
		r.start()
		r.drop("V", 60) // so many that two look at once, whatever the machine is busy with
		r.pass(2 * time.Hour)
		first, named := archive.Key{}, 0
		for _, e := range r.entries() {
			if e.State != ledger.Archived {
				t.Errorf("%s is %s", e.Folder, e.State)
			}
			if e.SameNumber.IsZero() {
				first = e.Key
			}
		}
		for _, e := range r.entries() {
			if e.SameNumber == first {
				named++
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if named != 59 {
			t.Errorf("%d of 59 name the first", named)
		}
		if f.packed == 60 {
			t.Error("none was packed again: no two looked at once, and the test shows nothing")
		}
	})
}

// same_number: hold and strange_dates: hold let a document wait for a person, whoever lets it go on has looked at it, and
// the reason stands in the ledger. The first one with a number goes on.
func TestSeal_HoldsWhatIsUnusual(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		holds  Holds
		sealed func(*folders)
		reason string // how it begins
	}{
		"SameNumber":         {Holds{SameNumber: true}, func(f *folders) { f.number = archive.NumberDigest{1} }, "same_number: hold. "},
		"StrangeDate":        {Holds{StrangeDate: true}, func(f *folders) { f.dated = true }, "strange_dates: hold. "},
		"SameFilesAndNumber": {Holds{SameNumber: true}, func(f *folders) { f.number, f.same = archive.NumberDigest{1}, true }, "same_number: hold. "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := build(t, &service{})
				d := r.drops["V"]
				f := d.Packer.(*folders)
				f.number, f.same = archive.NumberDigest{1}, name == "SameFilesAndNumber"
				r.start()
				r.dropNamed("V", "first", 1)
				r.pass(time.Hour)
				f.mu.Lock()
				f.number = archive.NumberDigest{2}
				row.sealed(f)
				f.mu.Unlock()
				d.Holds = row.holds
				r.drops["V"] = d
				r.dropNamed("V", "second", 1)
				r.pass(2 * time.Hour)
				es := r.entries()
				if es[0].State != ledger.Archived || es[1].State != ledger.Packaged || !es[1].Hold || es[1].Attention() != ledger.AwaitingDecision {
					t.Fatalf("%s, then %s, held: %t", es[0].State, es[1].State, es[1].Hold)
				}
				notes, err := r.ledger.Notes(es[1].Key)
				if why := notes[es[1].Rev].Text; err != nil || !strings.HasPrefix(why, row.reason) {
					t.Errorf("held for %q (%v)", why, err)
				}
				r.ledger.Submit([]ledger.Change{r.newChange(es[1], ledger.Unheld{})}, func(rs []ledger.Result) { r.noteResult(rs[0]) })
				r.pass(2 * time.Hour)
				e := r.entries()[1]
				if e.State != ledger.Archived || e.Attention() != ledger.NoAttention || e.Reviewed != e.NeedsReview() {
					t.Errorf("let go on: %s, class %d, checked: %t", e.State, e.Attention(), e.Reviewed)
				}
			})
		})
	}
}
