package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// reportSince makes a report that goes on from the last one, as of a time. It notes it where it is to be.
func (s *shelf) reportSince(at time.Time, noted bool) (*Audit, []string) {
	s.t.Helper()
	c := s.config()
	c.Made, c.Select.SinceLast = at, true
	a := examine(s.t, c)
	text, end := written(s.t, a, "json")
	var all struct{ Documents []row2 }
	if err := json.Unmarshal([]byte(text), &all); err != nil || !end.Agrees || !a.Summary.Check.Agrees {
		s.t.Fatalf("err = %v, end = %v, a.Summary.Check = %v, want no error, end.Agrees, a.Summary.Check.Agrees", err, end, a.Summary.Check)
	}
	if noted {
		s.Mark(ledger.Mark{Name: ledger.MarkReported, By: ledger.Operator{UID: 7}, At: at, Cause: ledger.ReportedCause(a.Summary.About.HeadLine)}, "")
	}
	var folders []string
	for _, d := range all.Documents {
		folders = append(folders, d.Folder)
	}
	slices.Sort(folders)
	return a, folders
}

// A report goes on from the last one: it has what was on its way then and what came since, and names what came late. One that was not
// noted is repeated.
func TestSince_GoesOnFromTheLastReport(t *testing.T) {
	s := newShelf(t, "production")
	month := func(m time.Month, day int) time.Time { return time.Date(2026, m, day, 9, 0, 0, 0, time.UTC) }
	s.Item("September 1").Archive(month(9, 10), time.Hour)
	s.Item("Open 2").Claim(month(9, 20))
	for _, noted := range []bool{false, true} { // the first one broke off before it was noted
		a, folders := s.reportSince(month(10, 5), noted)
		if !slices.Equal(folders, []string{"Open 2", "September 1"}) || !strings.Contains(a.Summary.About.Selection, "the first report of its kind") || a.Summary.Since.At != nil {
			t.Errorf(`%q, %+v, want folders = %v, a.Summary.About.Selection with "the first report of its kind", a.Summary.Since.At = nil`, folders, a.Summary.Since, []string{"Open 2", "September 1"})
		}
	}
	s.Item("September 1").Apply(month(10, 20), ledger.Held{By: ledger.Operator{UID: 1001}}) // it had ended: what comes later is no news
	s.Add(fill.Item{Name: "Late 3", Document: archive.Document{Type: "Invoice", Number: "RE 3", Date: "2026-09-30T00:00:00Z", SenderName: "Huber", Amount: "1.00", Currency: "EUR"}}).Archive(month(10, 21), time.Hour)
	s.Add(fill.Item{Name: "New 4", Document: archive.Document{Type: "Invoice", Number: "RE 4", Date: "2026-10-02T00:00:00Z", SenderName: "Huber", Amount: "2.00", Currency: "EUR"}}).Archive(month(10, 22), time.Hour)
	s.Item("Open 2").Refuse(month(10, 23), ledger.Cause{Code: "x"})
	a, folders := s.reportSince(month(11, 5), true)
	kit.Check(t, slices.Equal(folders, []string{"Late 3", "New 4", "Open 2"}) && a.Summary.Selected.Seen == 3,
		"%q, %+v, want folders = %v, a.Summary.Selected.Seen = 3", folders, a.Summary.Selected, []string{"Late 3", "New 4", "Open 2"})
	if l := a.Summary.Since; l.Late != 1 || !slices.Equal(l.Names, []string{"Late 3 (acme-in), archived: RE 3, Huber, 2026-09-30, EUR, 1.00"}) || !l.At.Equal(month(10, 5)) {
		t.Errorf("%+v, want l.Late = 1, l.Names = %v, l.At = %v", l, []string{"Late 3 (acme-in), archived: RE 3, Huber, 2026-09-30, EUR, 1.00"}, month(10, 5))
	}
	kit.Want(t, fmt.Sprintf("a report counts as an act: %+v", a.Summary.Acts), a.Summary.HumanActs, 1)
	page, _ := written(t, a, "html")
	kit.Holds(t, "the page", page, "Came late", "1 document was taken after the last report", "since the report of 5 Oct 2026")
	_, folders = s.reportSince(month(12, 5), true)
	kit.Check(t, len(folders) == 0, "nothing happened, and the report has %q", folders)
}

// Over random worlds each folder is in the reports from when it is taken to when it ends, in each of them once, and in no later one.
func TestSince_I1_NoFolderIsLeftOut(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := newShelf(t, "production")
		var open []string
		due := map[string]bool{} // what the next report must have
		at := noon.AddDate(0, -8, 0)
		for range 6 {
			for range r.IntN(8) {
				at = at.Add(time.Hour)
				folder := fmt.Sprint("F", s.Count())
				due[folder] = true
				if r.IntN(2) == 0 {
					s.Item(folder).Archive(at, time.Minute)
					continue
				}
				s.Item(folder).Claim(at)
				open = append(open, folder)
			}
			open = slices.DeleteFunc(open, func(folder string) bool {
				if r.IntN(3) > 0 {
					return false
				}
				at = at.Add(time.Minute)
				s.Item(folder).Refuse(at, ledger.Cause{Code: "x"})
				return true
			})
			at = at.Add(time.Hour)
			noted := r.IntN(4) > 0
			_, got := s.reportSince(at, noted)
			var want []string
			for folder := range due {
				want = append(want, folder)
			}
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("seed %d: %q, want %q", seed, got, want)
			}
			if noted {
				due = map[string]bool{}
				for _, folder := range open {
					due[folder] = true
				}
			}
		}
	}
}

// A mark that names no line, or one that is not there yet, is refused.
func TestSince_MarkNeedsALine(t *testing.T) {
	s := newShelf(t, "production")
	for _, cause := range []string{"", "up to line", "up to line 0", "up to line x", ledger.ReportedCause(99)} {
		err := s.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkReported, At: noon, Cause: cause}, nil)
		kit.Check(t, err != nil, "%q was taken", cause)
	}
}
