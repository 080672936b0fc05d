package main_test

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// What was not taken for too long needs a person also while vaultd does not run, and says when vaultd looked.
func TestStatus_I26_NotTakenForTooLong(t *testing.T) {
	s := newShelf(t)
	put := func(since time.Time) {
		t.Helper()
		err := s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon.Add(-5 * time.Minute), Pending: []ledger.PendingItem{
			{Name: "scan7.pdf", Reason: string(watch.LooseFile), Since: since, NeedsPerson: true},
			{Name: "Huber 3", Reason: string(watch.Queued), Since: since},
		}}, ledger.Scan{Drop: "left", RemindAfter: 30 * time.Minute, LastScan: noon, Pending: []ledger.PendingItem{{Name: "old.pdf", Reason: string(watch.LooseFile), Since: since, NeedsPerson: true}}})
		kit.Must(t, err)
	}
	status := func() (string, int) {
		out, _, code := s.say("status")
		return out, code
	}
	put(noon.Add(-time.Minute))
	if out, code := status(); code != exitDone || !strings.Contains(out, "NOT TAKEN YET 3, as of 14:27") {
		t.Errorf("young: exit %d\n%s", code, out)
	}
	put(noon.Add(-2 * time.Hour))
	out, code := status()
	if code != exitPerson || !strings.Contains(out, "drop acme-in: 1 thing not taken for longer than 30 min") || !strings.Contains(out, "scan7.pdf: loose file, since 12:32") {
		t.Errorf("old: exit %d\n%s", code, out)
	}
	kit.Holds(t, "a drop that is configured no more", out, "drop left: 1 thing not taken", "put it back into the configuration until vaultd has seen that it is empty")
	_, errs, _ := s.audit("--format=html")
	kit.Check(t, strings.Contains(errs, "NOT COMPLETE: 3 things in the drop folders were never taken."), "audit: %s", errs)
	why, _, _ := s.say("why", "scan7.pdf")
	kit.Holds(t, "why", why, "vaultd does not run. It saw this when it last looked, 14:27 CET.")
}

// The watch's words for faults are those that the needs tell at once.
func TestPending_FaultsAreNotToldTwice(t *testing.T) {
	s := newShelf(t)
	err := s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon, Pending: []ledger.PendingItem{
		{Name: "Huber", Reason: string(watch.NoRight), Since: noon.Add(-time.Hour), NeedsPerson: true},
	}})
	kit.Must(t, err)
	st := s.summary()
	kit.Check(t, len(st.Needs) == 1 && st.Needs[0].What == "not-taken" && st.Needs[0].When == "now",
		"needs %+v", st.Needs)
}
