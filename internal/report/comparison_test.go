package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// The audit tells what the last comparison with the archive's index of each vault came to.
func TestAudit_I32_TellsTheLastComparison(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Archive(noon.Add(-3*time.Hour), time.Hour)
	compare := func(cause string, at time.Time) Summary {
		t.Helper()
		s.Mark(ledger.Mark{Name: ledger.MarkCompared, Vault: "ACME", By: ledger.Operator{UID: 1001}, Cause: cause, At: at}, "")
		return examine(t, s.config()).Summary
	}
	sum := compare(ledger.ComparedCause(ledger.CompareSame, "1 of 1 document", 0), noon.Add(-time.Hour))
	if d := doubtOf(sum, "index"); !strings.HasSuffix(d.Text, "13:32 CET, not since: nothing differed (1 of 1 document, differences 0).") {
		t.Errorf(`%+v, want d.Text that ends with "13:32 CET, not since: nothing differed (1 of 1 document, differences 0)."`, d)
	}
	if len(sum.Compared) != 1 || sum.Compared[0].Outcome != "same" || sum.Result.Code != "complete-as-dropped" || len(sum.Needs) != 0 {
		t.Errorf(`%+v, %+v, %+v, want len(sum.Compared) = 1, sum.Compared[0].Outcome = "same", sum.Result.Code = "complete-as-dropped", len(sum.Needs) = 0`, sum.Compared, sum.Result, sum.Needs)
	}
	sum = compare(ledger.ComparedCause(ledger.CompareDiffers, "1 of 1 document", 1), noon.Add(-30*time.Minute))
	if len(sum.Needs) != 1 || sum.Needs[0].What != "index-differs" || sum.Result.Code != "complete-as-dropped" {
		t.Errorf(`%+v, %+v, want len(sum.Needs) = 1, sum.Needs[0].What = "index-differs", sum.Result.Code = "complete-as-dropped"`, sum.Result, sum.Needs)
	}
	sum = compare(ledger.ComparedCause(ledger.CompareMissing, "0 of 0 documents", 1), noon)
	if len(sum.Needs) != 1 || sum.Result.Code != "not-complete" || !strings.Contains(sum.Result.Text, "archived documents were missing in the archive's own index") {
		t.Errorf(`%+v, %+v, want len(sum.Needs) = 1, sum.Result.Code = "not-complete", sum.Result.Text with "archived documents were missing in the archive's own index"`, sum.Result, sum.Needs)
	}
	sum = compare(ledger.ComparedCause(ledger.CompareIncomplete, "0 of 900 documents", 0), noon.Add(time.Minute))
	if d := doubtOf(sum, "index"); len(sum.Needs) != 1 || sum.Result.Code != "not-complete" || !strings.Contains(d.Text, "was not read to its end and concluded nothing") {
		t.Errorf("a try that was cut off: %+v, %+v, %+v", sum.Result, sum.Needs, d)
	}
	c := s.config()
	c.Select.Drop, c.Drops = "other-in", []present.DropScan{{Name: "other-in", Vault: "BETA", Configured: true, RemindAfter: time.Hour, Rescan: time.Minute, Scan: ledger.Scan{LastScan: noon}}}
	sum = examine(t, c).Summary
	kit.Check(t, len(sum.Needs) == 0 && len(sum.Compared) == 0, "a drop of another vault: %+v", sum.Needs)
	for _, m := range []ledger.Mark{
		{Name: ledger.MarkCompared, Vault: "ACME", Cause: "fine: all"}, {Name: ledger.MarkCompared, Cause: ledger.ComparedCause(ledger.CompareSame, "1 of 1", 0)},
	} {
		kit.Fails(t, fmt.Sprintf("%+v was taken", m), s.CommitMark(t.Context(), m, nil))
	}
}

// How long a document took is told by one clock, however wrong the other one is.
func TestOnTime_I12_OfTwoClocks(t *testing.T) {
	for name, row := range map[string]struct {
		behind time.Duration // of the archive's clock
		told   bool          // the archive told its time at the registration
		want   onTime
	}{
		"Right":         {0, true, onTime{1, 3600, 3600, "A", 0, 0}},
		"Behind":        {26 * time.Hour, true, onTime{1, 3600, 3600, "A", 0, 1}},
		"Ahead":         {-26 * time.Hour, true, onTime{1, 3600, 3600, "A", 0, 1}},
		"BehindNotTold": {26 * time.Hour, false, onTime{0, 0, 0, "", 1, 0}},
	} {
		taken := noon.Add(-3 * time.Hour)
		e := ledger.Entry{Folder: "A", State: ledger.Archived, SeenAt: taken, ArchivedAt: taken.Add(time.Hour - row.behind), ArchivedRemote: "r"}
		ticket := archive.Ticket{Remote: "r", Sent: archive.Instant{Wall: taken.Add(time.Minute)}}
		if row.told {
			ticket.Date = taken.Add(time.Minute - row.behind)
		}
		e.Registrations = []ledger.Registration{{Ticket: ticket, Fate: ledger.Succeeded}}
		c := newCounts(Config{})
		c.countDuration(e)
		got := onTime{c.spans.total, c.spans.median().Seconds(), c.spans.longest.Seconds(), c.longest, c.unmeasured, c.skewed}
		kit.Want(t, name, got, row.want)
	}
}
