package report

import (
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// monthsLate is for how many months after a year or month something without a
// date that can be right may still be a document of that time.
const monthsLate = 13

// isUnsettled reports whether an entry still keeps a report from being complete
// by its state.
func isUnsettled(e ledger.Entry) bool {
	return e.State.IsOpen() || e.State == ledger.Quarantined || e.State == ledger.Rejected && !e.Resolved
}

// countElsewhere names an unsettled entry that the report counts in another time,
// or in an earlier report, and that may belong to this one all the same. The
// balance has each entry once; a need has it wherever it may be missing.
func (t *counts) countElsewhere(e ledger.Entry, m archive.Document, read archive.AsRead) {
	if !isUnsettled(e) || t.c.Select.Year != 0 && !t.c.Select.mayHave(e, m, read, t.c.Location) {
		return
	}
	name := e.Folder + " (" + e.Drop + "), " + t.c.describeUnsettled(e, m, read)
	if r := summarizeReason(e); r != "" {
		name += ": " + r
	}
	addTo(t.needs, "elsewhere", name)
}

// describeUnsettled says what an entry is, with its date and the day on which it
// was taken.
func (c Config) describeUnsettled(e ledger.Entry, m archive.Document, read archive.AsRead) string {
	text := e.State.String()
	switch {
	case m.Date != "":
		text += ", dated " + present.FormatDay(m.Date)
	case read.Date != "":
		text += ", dated " + read.Date + " as read"
	default:
		text += ", without a date"
	}
	return text + ", taken on " + e.SeenAt.In(c.Location).Format("2 Jan 2006")
}

// mayHave reports whether an unsettled entry may belong to the selected year or
// month: by its date, which may be readable in two ways, or by the day on which
// it was taken. One without a date that can be right may belong to each time up
// to that day that ended at most thirteen months before it.
func (s Selection) mayHave(e ledger.Entry, m archive.Document, read archive.AsRead, loc *time.Location) bool {
	seen := e.SeenAt.In(loc)
	if s.isInPeriod(seen) {
		return true
	}
	dated := false
	for _, text := range []string{m.Date, read.Date} {
		for _, day := range expected.PossibleDays(text, loc) {
			if s.isInPeriod(day) {
				return true
			}
			strange := archive.Document{Date: day.Format(time.DateOnly) + "T00:00:00Z"}.HasStrangeDate(seen)
			dated = dated || !strange
		}
	}
	return !dated && !seen.Before(s.beginOfPeriod(loc)) && seen.Before(s.lastOfPeriod(loc))
}

// countOfElsewhere returns how many entries countElsewhere named.
func (t *counts) countOfElsewhere() uint64 {
	if n := t.needs["elsewhere"]; n != nil {
		return n.Count
	}
	return 0
}

// describeElsewhere says it in a sentence; empty: none was named.
func (t *counts) describeElsewhere() string {
	n := t.countOfElsewhere()
	switch {
	case n == 0:
		return ""
	case t.since.on:
		return fmt.Sprintf("%s of an earlier report %s still rejected.", formatCount(n, "folder", "folders"), oneOrMore(n, "is", "are"))
	}
	return fmt.Sprintf("%s in no count of this report and not archived, and may belong to this %s.", formatCount(n, "folder is", "folders are"), t.c.Select.periodName())
}
