package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// unusual has two invoices with one number, one with the same files as another, and one of 2062.
func unusual(t *testing.T) *shelf {
	s := newShelf(t, "production")
	meta := archive.Document{Type: "Invoice", Number: "RE 1", Date: "2026-10-31T00:00:00Z", SenderName: "Huber KG", Amount: "10.00", Currency: "EUR"}
	other := meta
	other.Amount = "11.00"
	far := archive.Document{Type: "Invoice", Number: "RE 9", Date: "2062-10-31T00:00:00Z", SenderName: "Huber KG", Amount: "7.00", Currency: "EUR"}
	number := meta.NumberDigest("DE")
	first := s.Add(fill.Item{Name: "Huber 1", Document: meta, Change: func(ev *ledger.Sealed) { ev.Number = number }})
	s.Add(fill.Item{Name: "Huber 1 neu", Document: other, Change: func(ev *ledger.Sealed) { ev.Number, ev.SameNumber = number, first.Key }})
	s.Add(fill.Item{Name: "Huber 9", Document: far, Change: func(ev *ledger.Sealed) { ev.Number, ev.StrangeDate = far.NumberDigest("DE"), true }})
	s.Add(fill.Item{Name: "Otto 2", Change: func(ev *ledger.Sealed) { ev.SameContent = first.Key }})
	for i, folder := range []string{"Huber 1", "Huber 1 neu", "Huber 9", "Otto 2"} {
		s.Item(folder).Archive(noon.Add(time.Duration(i-20)*time.Hour), time.Hour)
	}
	return s
}

func remarks(s Summary) map[string]need {
	by := map[string]need{}
	for _, n := range s.Remarks {
		by[n.What] = n
	}
	return by
}

// I12: the audit names both of two invoices with one number, whoever looked at them, and each document whose date can
// hardly be right. They keep counting: the sums are those of all that is archived.
func TestExamine_I12_UnusualDocumentsAreRemarked(t *testing.T) {
	s := unusual(t)
	for _, looked := range []bool{false, true} {
		if looked {
			s.Item("Huber 1 neu").Apply(noon, ledger.Closed{})
		}
		a := examine(t, s.config())
		by := remarks(a.Summary)
		if n := by["same-number"]; n.Count != 1 || n.Names[0] != `Huber 1 neu (acme-in), archived: same invoice number, sender and date as "Huber 1" (acme-in), archived 19 Nov 2026` {
			t.Errorf("%+v", n)
		}
		if n := by["same-content"]; n.Count != 1 || !strings.Contains(n.Names[0], `"Huber 1" (acme-in)`) {
			t.Errorf("%+v, want n.Count = 1, n.Names[0] with `\"Huber 1\" (acme-in)`", n)
		}
		if n := by["strange-date"]; n.Count != 1 || n.Names[0] != "Huber 9 (acme-in), archived: document date 2062-10-31 can hardly be right: it was taken on 19 Nov 2026" {
			t.Errorf("%+v", n)
		}
		kit.Check(t, a.Summary.Result.Code == "complete-as-dropped" && len(a.Summary.Needs) <= 0 && len(by) == 3,
			"%+v, needs %+v", a.Summary.Result, a.Summary.Needs)
		if len(a.Summary.Sums) != 1 || a.Summary.Sums[0].Total != "147.00" { // 10 + 11 + 7 + 119
			t.Errorf(`%+v, want len(a.Summary.Sums) = 1, a.Summary.Sums[0].Total = "147.00"`, a.Summary.Sums)
		}
		page, _ := written(t, a, "html")
		kit.Holds(t, "the page", page, "<h2>Remarks</h2>", "Huber 1 neu (acme-in)", "date can hardly be right", "same invoice number as another")
		if table, _ := written(t, a, "csv"); strings.Contains(table, "looked at by a person") != looked {
			t.Errorf("looked at: %t, and the table says otherwise", looked)
		}
	}
}

// I12: an invoice of 2062 that was taken in 2026 is named by the audit of 2026, and is in none of its sums; the audit of
// 2062 has it as well.
func TestExamine_I12_AStrangeDateIsInNoYearsBlindSpot(t *testing.T) {
	s := unusual(t)
	for year, row := range map[int]struct {
		what, sum string
		seen      uint64
	}{2026: {"strange-date-elsewhere", "140.00", 3}, 2062: {"strange-date", "7.00", 1}, 2027: {"", "", 0}} {
		c := s.config()
		c.Select.Year = year
		got := examine(t, c).Summary
		by := remarks(got)
		if n, ok := by[row.what]; row.what != "" && (!ok || n.Count != 1 || !strings.HasPrefix(n.Names[0], "Huber 9 (acme-in)")) {
			t.Errorf("%d: %+v", year, got.Remarks)
		}
		kit.Check(t, row.what != "" || len(by) <= 0, "%d: %+v", year, got.Remarks)
		sums := slices.DeleteFunc(got.Sums, func(l sumLine) bool { return l.Total == row.sum })
		kit.Check(t, got.Selected.Seen == row.seen && len(sums) <= 0,
			"%d: %d folders, sums %+v", year, got.Selected.Seen, got.Sums)
	}
}
