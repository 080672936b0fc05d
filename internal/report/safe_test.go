package report

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func (s *shelf) mark(word, reason string, at time.Time) {
	s.t.Helper()
	s.Mark(ledger.Mark{Name: word, By: ledger.Operator{UID: 1001}, At: at}, reason)
}

func doubtOf(s Summary, what string) doubt {
	for _, d := range s.NotProven {
		if d.What == what {
			return d
		}
	}
	return doubt{}
}

// A ledger that may have forgotten something never reads as complete.
func TestResult_I15_SafeModeIsNeverComplete(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Archive(noon.Add(-3*time.Hour), time.Hour)
	s.mark(ledger.MarkRestored, "", noon.Add(-time.Hour))
	c := s.config()
	c.Safe = "the ledger was put back from a backup; what was done after 11:00 is not known"
	for name, sel := range map[string]Selection{"All": {}, "Nothing": {Drop: "x"}, "States": {States: map[ledger.State]bool{ledger.Archived: true}}} {
		c.Select = sel
		sum := examine(t, c).Summary
		if r := sum.Result; r.Code != "safe-mode" || !strings.HasPrefix(r.Text, "SAFE MODE: "+c.Safe) || strings.Contains(r.Text, "Nothing that was dropped is missing") {
			t.Errorf(`%s: %+v, want r.Code = "safe-mode", r.Text that begins with %q, r.Text without "Nothing that was dropped is missing"`, name, r, "SAFE MODE: "+c.Safe)
		}
		kit.Holds(t, name, doubtOf(sum, "safe-mode").Text, c.Safe)
	}
	c.Safe, c.Select = "", Selection{} // the journal says so, too
	kit.Want(t, "the result", examine(t, c).Summary.Result.Code, "safe-mode")
}

// After safe mode, what is still in doubt is said, and when the archive was asked.
func TestResult_I15_StillInDoubtAfterReconcile(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Send(noon.Add(-3 * time.Hour))
	kit.Want(t, "the result", doubtOf(examine(t, s.config()).Summary, "index").Text, "The archive's own index was not compared with this ledger.")
	s.Item("A").Apply(noon.Add(-2*time.Hour), ledger.ReconcileRequired{})
	s.mark(ledger.MarkRestored, "", noon.Add(-2*time.Hour))
	s.mark(ledger.MarkReconciled, "", noon.Add(-time.Hour))
	sum := examine(t, s.config()).Summary
	kit.Check(t, sum.Result.Code == "not-complete" && strings.Contains(sum.Result.Text, "1 is in doubt since the ledger was put back"),
		`%+v, want sum.Result.Code = "not-complete", sum.Result.Text with "1 is in doubt since the ledger was put back"`, sum.Result)
	kit.Want(t, "the result", doubtOf(sum, "index").Text, "When safe mode ended, on 20 Nov 2026 13:32 CET, the archive was asked for everything. What came later was not compared on that occasion.")
	kit.Check(t, doubtOf(sum, "needs-reconcile").Count == 1 && doubtOf(sum, "put-back").Count == 1 && doubtOf(sum, "safe-mode").Count == 0,
		`%+v, want doubtOf(sum, "needs-reconcile").Count = 1, doubtOf(sum, "put-back").Count = 1, doubtOf(sum, "safe-mode").Count = 0`, sum.NotProven)
}

// An index that a person let count as complete is no proof, in any later audit.
func TestResult_I29_I32_AcceptedIndexIsNotProven(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Send(noon.Add(-3 * time.Hour))
	accept := func(at time.Time) {
		t.Helper()
		s.Mark(ledger.Mark{Name: ledger.MarkIndex, Vault: "ACME", Cause: "1 of 900 documents", By: ledger.Operator{UID: 1001}, At: at}, "ticket 4711")
	}
	accept(noon.Add(-time.Hour))
	s.mark(ledger.MarkDisposal, "", noon.Add(-time.Minute))
	want := "On 20 Nov 2026 13:32 CET the archive's index of vault ACME gave 1 of 900 documents. A person (uid 1001) let it count as complete: what it left out was not compared."
	kit.Want(t, "the result", doubtOf(examine(t, s.config()).Summary, "index-accepted").Text, want)
	for range 25 {
		accept(noon)
	}
	var named, more uint64
	for _, d := range examine(t, s.config()).Summary.NotProven {
		switch {
		case d.What == "index-accepted" && strings.HasPrefix(d.Text, "On 20 Nov"):
			named++
		case d.What == "index-accepted":
			more += d.Count
		}
	}
	kit.Check(t, named == 20 && more == 6, "%d named, %d more", named, more)
}

// The reason for a restore belongs to no entry; it is not erased for that.
func TestActs_I29_ReasonOfARestore(t *testing.T) {
	s := newShelf(t, "production")
	s.mark(ledger.MarkRestored, "the server burned down", noon)
	c := s.config()
	c.Reason = func(k archive.Key, rev uint32) (string, error) {
		notes, err := s.Notes(k)
		return notes[rev].Text, err
	}
	a := examine(t, c)
	kit.Check(t, len(a.Summary.Acts) == 1 && a.Summary.Acts[0].Reason == "the server burned down",
		`%+v, want len(a.Summary.Acts) = 1, a.Summary.Acts[0].Reason = "the server burned down"`, a.Summary.Acts)
	if page, _ := written(t, a, "html"); !strings.Contains(page, "<bdi>the ledger</bdi></td><td><bdi>the server burned down</bdi>") || strings.Contains(page, "erased") {
		t.Error("the page does not say it")
	}
}
