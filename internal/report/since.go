package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// since is a report that goes on from the one before: it has the folders that were on their way when that one was made, and those
// that were taken after it. It follows the journal: what it keeps is what is on its way, and what ended after the last report.
type since struct {
	on    bool
	line  uint64               // up to which the last report went; zero: this is the first one
	at    time.Time            // when that one was written
	open  map[archive.Key]bool // on their way at the journal's end, or quarantined
	ended []end                // after that line
	late  need                 // taken after the last report, and of a month that was over then
}

// end is the line with which an entry came to its end.
type end struct {
	key  archive.Key
	line uint64
}

// sinceLast is the same for the report.
type sinceLast struct {
	Line  uint64     `json:"line"`          // of the journal, up to which the last such report went; zero: this is the first one
	At    *time.Time `json:"madeAt"`        // when that one was written; null: this is the first one
	Late  uint64     `json:"late"`          // documents of a month that was over then, and that were taken after it
	Names []string   `json:"lateDocuments"` // the first five hundred
}

func newSince(on bool) *since { return &since{on: on, open: map[archive.Key]bool{}} }

// fieldOf returns the value of a text field of a journal line; empty where there is none. Our own words and numbers need no escapes.
func fieldOf(stored []byte, name string) string {
	_, rest, ok := bytes.Cut(stored, []byte(`"`+name+`":"`))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

var endStates = map[string]bool{
	ledger.Archived.String(): true, ledger.Delivered.String(): true, ledger.Duplicate.String(): true, ledger.Rejected.String(): true,
}

// countLine follows one line of the journal.
func (s *since) countLine(n uint64, stored []byte) {
	if !s.on || ledger.IsArrivalLine(stored) {
		return
	}
	if key, err := archive.ParseKey(fieldOf(stored, "key")); err == nil {
		switch isEnd := endStates[fieldOf(stored, "state")]; {
		case !isEnd:
			s.open[key] = true
		case s.open[key] || bytes.Contains(stored, []byte(`"rev":1,`)): // later lines of an ended entry tell what became of its folder
			delete(s.open, key)
			s.ended = append(s.ended, end{key, n})
		}
		return
	}
	if fieldOf(stored, "event") != ledger.MarkReported {
		return
	}
	l, err := ledger.ParseLine(stored)
	if err != nil {
		return // the proof speaks of broken lines
	}
	if line, ok := ledger.ParseReportedCause(l.Cause); ok && line < n {
		s.line = line
		s.at, _ = time.Parse(time.RFC3339, l.At) // a broken time is shown as none
		s.ended = slices.DeleteFunc(s.ended, func(e end) bool { return e.line <= line })
	}
}

func compareEnds(a, b end) int { return bytes.Compare(a.key[:], b.key[:]) }

// sortEnded is called once the journal was read.
func (s *since) sortEnded() { slices.SortFunc(s.ended, compareEnds) }

// selects reports whether the report has an entry. It is asked when the journal was read, by many at the same time.
func (s *since) selects(key archive.Key) bool {
	if !s.on {
		return true
	}
	_, found := slices.BinarySearchFunc(s.ended, end{key: key}, compareEnds)
	return found || s.open[key]
}

// countEntry counts a selected entry that came late.
func (s *since) countEntry(e ledger.Entry, m archive.Document, loc *time.Location) {
	if !s.on || s.line == 0 || m.Date == "" || !e.SeenAt.After(s.at) {
		return
	}
	made := s.at.In(loc)
	if day := dayOf(e, m, loc); !day.Before(time.Date(made.Year(), made.Month(), 1, 0, 0, 0, 0, time.UTC)) {
		return
	}
	if s.late.Count++; len(s.late.Names) < namedAtMost {
		s.late.Names = append(s.late.Names, fmt.Sprintf("%s (%s), %s: %s", e.Folder, e.Drop, e.State, joinTexts(m.Number, m.SenderName, present.FormatDay(m.Date), m.Currency, string(m.Amount))))
	}
}

// summarize gives it for the report; nil: the report does not go on from another one.
func (s *since) summarize() *sinceLast {
	if !s.on {
		return nil
	}
	l := &sinceLast{Line: s.line, Late: s.late.Count, Names: append([]string{}, s.late.Names...)}
	if s.line > 0 {
		l.At = present.TimeOrNil(s.at)
	}
	return l
}

// describe says it as a selection.
func (s *since) describe(loc *time.Location) string {
	if s.line == 0 {
		return "everything that was ever taken; the first report of its kind"
	}
	return fmt.Sprintf("what was on its way or was taken since the report of %s (line %s of the journal)", cmp.Or(s.at, time.Unix(0, 0)).In(loc).Format("2 Jan 2006 15:04 MST"), formatNumber(s.line))
}
