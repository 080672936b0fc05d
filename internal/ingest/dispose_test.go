package ingest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// slowRemover takes its time to remove a folder.
type slowRemover struct {
	*folders
	takes time.Duration
}

func (m slowRemover) Dispose(context.Context, ledger.Entry, ledger.Document) (string, error) {
	time.Sleep(m.takes)
	return "", nil
}

// TestDispose_I3_WhatIsDueMeanwhileIsAskedAbout: the limit allowed the folders
// that were due. Others become due while those are removed, and are not
// removed before the limit has allowed them too.
func TestDispose_I3_WhatIsDueMeanwhileIsAskedAbout(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		d := r.configured("V")
		d.Disposes, d.Grace, d.Mover = true, 30*day, slowRemover{r.folders("V"), 25 * time.Minute}
		var asked []int
		r.cfg.DisposalLimit = func(_ string, due int) error { asked = append(asked, due); return nil }
		r.start()
		r.drop("V", 3)
		r.pass(time.Hour)
		r.dropNamed("V", "later", 5)
		r.pass(time.Hour)
		kit.Want(t, "folders that are kept", r.sourcesOf("V")[ledger.Kept], 8)
		r.s.suspend(30*day - 110*time.Minute) // the first three are due since some minutes, the others in about 50
		r.pass(day)
		kit.Want(t, "folders that are gone", r.sourcesOf("V")[ledger.Gone], 8)
		kit.Want(t, "numbers that the limit was asked about", asked, []int{3, 5})
	})
}

// oldArchive says of each document that it was archived long ago.
type oldArchive struct{ *service }

func (s oldArchive) Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	rc, err := s.service.Status(ctx, v, r)
	rc.Updated = rc.Updated.AddDate(-1, 0, 0)
	return rc, err
}

// TestDispose_I3_GraceBeginsWhenTheFolderIsKept: the grace is for the users of
// the folder. The archive's clock does not shorten it.
func TestDispose_I3_GraceBeginsWhenTheFolderIsKept(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		r := build(t, s)
		d := r.configured("V")
		d.Disposes, d.Grace = true, 30*day
		route := r.cfg.Routes[ledger.Vault]
		route.Asker = oldArchive{s}
		r.cfg.Routes[ledger.Vault] = route
		r.start()
		r.drop("V", 1)
		r.pass(29 * day)
		kit.Want(t, "sources before the grace is over", r.sourcesOf("V"), sources{ledger.Kept: 1})
		r.pass(2 * day)
		kit.Want(t, "sources after it", r.sourcesOf("V"), sources{ledger.Gone: 1})
	})
}

// Folders with one invoice number are packed at the same time. All are archived, and
// all but the first name the first.
func TestSeal_SameNumberAtOnceIsNotMissed(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
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

// same_number: hold and strange_dates: hold let a document wait for an
// operator, and the ledger records the reason. The operator lets it continue,
// and has looked at it then. The first document with a number passes.
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
		kit.Bubble(t, name, func(t *testing.T) {
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
			why := notes[es[1].Rev].Text
			kit.Check(t, err == nil && strings.HasPrefix(why, row.reason), "reason = %q (error %v), want it to begin with %q", why, err, row.reason)
			r.apply(ledger.Change{Key: es[1].Key, Rev: es[1].Rev, Events: []ledger.Event{ledger.Unheld{}}})
			r.Wake()
			r.pass(2 * time.Hour)
			kit.Want(t, "states", r.states(), states{ledger.Archived: 2})
			e := r.entries()[1]
			kit.Want(t, "attention", e.Attention(), ledger.NoAttention)
			kit.Want(t, "reviewed", e.Reviewed, e.NeedsReview())
		})
	}
}
