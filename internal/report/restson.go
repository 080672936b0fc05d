package report

import (
	"fmt"
	"time"
)

// restsOn is the earlier examination that a report rests on, as its JSON has it. What it says of lines and entries is true of the moment
// examinedAt alone: what became of them since then, the report cannot tell.
type restsOn struct {
	Line       uint64    `json:"line"` // up to this one the journal was examined then, and not for this report
	Hash       string    `json:"hash"` // of the chain there
	At         time.Time `json:"examinedAt"`
	Program    string    `json:"program"` // that examined it
	Whole      time.Time `json:"wholeAt"` // when the whole ledger was examined last
	ToLine     uint64    `json:"wholeLine"`
	LinesNow   uint64    `json:"linesExamined"`      // for this report
	EntriesNow uint64    `json:"entriesExamined"`    // for this report
	Entries    uint64    `json:"entriesNotExamined"` // read and counted for this report, and not held against their lines
}

// restsOn is the earlier examination that the audit rests on; nil: everything was examined for it.
func (a *Audit) restsOn() *RestsOn { return a.c.Examined.RestsOn }

// summarizeRestsOn gives it for the report.
func (a *Audit) summarizeRestsOn() *restsOn {
	b := a.restsOn()
	if b == nil {
		return nil
	}
	return &restsOn{Line: b.Line, Hash: b.Hash.String(), At: b.At.UTC().Truncate(time.Second), Program: a.c.Program, Whole: b.Whole.UTC().Truncate(time.Second), ToLine: b.ToLine,
		LinesNow: a.proof.Lines - b.Line, EntriesNow: a.proof.Entries, Entries: b.Entries}
}

func (a *Audit) formatMinute(t time.Time) string {
	return t.In(a.c.Location).Format("2 Jan 2006 15:04 MST")
}

// DescribeExamined says in words which part of the ledger was examined when.
func (a *Audit) DescribeExamined() string {
	b := a.restsOn()
	if b == nil {
		return fmt.Sprintf("The whole journal (%s) was examined for this report, and every entry was held against it.", formatCount(a.proof.Lines, "line", "lines"))
	}
	now := "No line came since"
	switch a.proof.Lines - b.Line {
	case 0:
	case 1:
		now = fmt.Sprintf("Line %s was examined for this report", formatNumber(a.proof.Lines))
	default:
		now = fmt.Sprintf("Lines %s to %s were examined for this report", formatNumber(b.Line+1), formatNumber(a.proof.Lines))
	}
	return fmt.Sprintf("Lines 1 to %s of the journal were examined on %s by %s, and not again for this report. %s, and %s held against the journal. "+
		"%s at rest since then: read and counted, but not held against the journal again. The whole ledger was examined last on %s, up to line %s. vaultd audit --whole examines everything.",
		formatNumber(b.Line), a.formatMinute(b.At), a.c.Program, now, formatCount(a.proof.Entries, "entry was", "entries were"),
		formatCount(b.Entries, "entry has been", "entries have been"), a.formatMinute(b.Whole), formatNumber(b.ToLine))
}

// describeBasis ends the result where not everything was examined for this report.
func (a *Audit) describeBasis() string {
	b := a.restsOn()
	if b == nil {
		return ""
	}
	return fmt.Sprintf(" What the journal tells up to line %s rests on the examination of %s.", formatNumber(b.Line), a.formatMinute(b.At))
}

// listBasisDoubts says what was not examined for this report.
func (a *Audit) listBasisDoubts() []doubt {
	if a.restsOn() == nil {
		return nil
	}
	return []doubt{{"examined-before", a.restsOn().Line, a.DescribeExamined()}}
}
