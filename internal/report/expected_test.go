package report

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// listOf reads a list of what was expected.
func listOf(t *testing.T, csv string) *expected.List {
	t.Helper()
	l := kit.Value(expected.Read("erp.csv", strings.NewReader("number;sender;date;amount;currency\n"+csv), expected.Options{}))(t)
	return l
}

func (s *shelf) archivedAs(folder, number, sender, date, amount string) {
	document := archive.Document{Type: "Invoice", Number: number, SenderName: sender, Date: date + "T00:00:00Z", Amount: archive.Decimal(amount), Currency: "EUR"}
	s.Add(fill.Item{Name: folder, Document: document}).Archive(noon.Add(time.Duration(s.Count()-40)*time.Hour), time.Hour)
}

// Only a list makes a report COMPLETE, and only when everything on it is archived as listed, and nothing that was dropped is missing.
func TestResult_I32_CompleteNeedsAList(t *testing.T) {
	const one, two = "RE 1;Huber;2026-10-01;10,00;EUR\n", "RE 2;Otto;2026-10-02;20,00;EUR\n"
	type row struct {
		list string
		more func(s *shelf)
		code string
		text string
	}
	kit.Rows(t, map[string]row{
		"All":             {one + two, nil, "complete", "Compared with the list erp.csv (2 documents): 2 archived, 0 not; 0 documents are archived and not listed."},
		"NoList":          {"", nil, "complete-as-dropped", asDropped},
		"OneMissing":      {one + two + "RE 3;Kern;2026-10-03;5,00;EUR\n", nil, "not-complete", "1 listed document is not archived."},
		"OtherAmount":     {one + "RE 2;Otto;2026-10-02;20,01;EUR\n", nil, "not-complete", "1 archived document is not as listed."},
		"OtherDate":       {one + "RE 2;Otto;2026-10-03;20,00;EUR\n", nil, "not-complete", "1 archived document is not as listed."},
		"OtherCurrency":   {one + "RE 2;Otto;2026-10-02;20,00;USD\n", nil, "not-complete", "1 archived document is not as listed."},
		"OtherSender":     {one + "RE 2;Somebody;2026-10-03;21,00;EUR\n", nil, "not-complete", "1 listed document is not archived."},
		"SenderSpelt":     {one + "RE 2;Otto KG;2026-10-02;20,00;EUR\n", nil, "not-complete", "1 archived document is not as listed."},
		"NumberOnly":      {"re 1;;;;\n RE 2 ;;;;\n", nil, "complete", "2 archived, 0 not"},
		"NotListed":       {one, nil, "complete-as-listed", "1 document is archived and not listed."},
		"SomethingOpen":   {one + two, func(s *shelf) { s.Item("Wagner 5").Claim(noon) }, "not-complete", "1 on the way"},
		"RowsLeftOut":     {one + two + ";;;30,00;EUR\n", nil, "complete", "1 row of it has no number and could not be compared."},
		"DatedRowLeftOut": {one + two + ";Kern;2026-10-03;30,00;EUR\n", nil, "not-complete", "1 row of the list has a date and no number"},
		"Repeated":        {one + two + one, nil, "complete", "1 row of it repeats another one and counts once."},
		"NothingArchived": {"X;;;;\n", nil, "not-complete", "1 listed document is not archived."},
	}, func(t *testing.T, row row) {
		s := newShelf(t, "production")
		s.archivedAs("Huber 1", "RE 1", "Huber", "2026-10-01", "10.00")
		s.archivedAs("Otto 2", "RE 2", "Otto", "2026-10-02", "20.00")
		if row.more != nil {
			row.more(s)
		}
		c := s.config()
		if row.list != "" {
			c.Expected = listOf(t, row.list)
		}
		a := examine(t, c)
		if r := a.Summary.Result; r.Code != row.code || !strings.Contains(r.Text, row.text) || (r.Title == "COMPLETE") != (row.code == "complete") {
			t.Errorf(`%+v, want r.Code = %v, r.Text with %q, (r.Title == "COMPLETE") = %v`, r, row.code, row.text, (row.code == "complete"))
		}
		by := "It was compared by amount, currency, date, number, sender."
		kit.Check(t, strings.Contains(a.Summary.Result.Text, by) == (row.list != ""), "the result does not say what was compared: %s", a.Summary.Result.Text)
		page, _ := written(t, a, "html")
		kit.Check(t, strings.Contains(page, "Against the list") == (row.list != ""),
			"the page does not say what it was compared with")
	})
	c := newShelf(t, "production").config()
	c.Expected = listOf(t, one)
	r := examine(t, c).Summary.Result
	kit.Check(t, r.Code == "not-complete", "an empty ledger: %+v", r)
}

// What is missing is named with what the ledger has of it; what differs and what is not listed is named, too.
func TestExpected_SaysWhatItFound(t *testing.T) {
	s := filled(t, "production")
	c := s.config()
	c.Select.Year = 2026
	s.Add(fill.Item{Name: "Doppelt", Document: archive.Document{Type: "Invoice", Number: "NR Müller 4711", Date: "2026-10-31T00:00:00Z", SenderName: "Müller GmbH", Amount: "118.00", Currency: "EUR"}}).Archive(noon.Add(-30*time.Hour), time.Hour) // the older one equals its row less
	c.Ledger, c.Head, c.Examined = s.Ledger, s.Head(), examined(t, s.Ledger, s.Head(), s.Balance())
	c.Expected = listOf(t, "NR Müller 4711;Müller GmbH;31.10.2026;119,00;EUR\nGS-7;Otto KG;30.10.2026;75,105;EUR\nALT-1;;;;\n=1+1;;;;\nNIX;;;;\n")
	a := examine(t, c)
	l := a.Summary.Expected
	kit.Want(t, "listed, archived, missing, differ, unlisted", []uint64{l.Rows, l.Archived, l.Missing, l.Differ, l.Unlisted}, []uint64{5, 2, 3, 0, 1})
	found := map[string]string{}
	for _, m := range l.MissingRows {
		found[m.Number] = m.Found
	}
	if !strings.HasPrefix(found["ALT-1"], "archived, but not in the choice of this report: vault FR") || !strings.HasPrefix(found["=1+1"], "unclear, ") || found["NIX"] != "" {
		t.Errorf(`%+v, want found["ALT-1"] that begins with "archived, but not in the choice of this report: vault FR", found["=1+1"] that begins with "unclear, ", found["NIX"] = ""`, found)
	}
	if len(l.UnlistedNames) != 1 || l.UnlistedNames[0] != "Doppelt (acme-in): NR Müller 4711, Müller GmbH, 2026-10-31, EUR, 118.00" {
		t.Errorf(`%q, want len(l.UnlistedNames) = 1, l.UnlistedNames[0] = "Doppelt (acme-in): NR Müller 4711, Müller GmbH, 2026-10-31, EUR, 118.00"`, l.UnlistedNames)
	}
	table, _ := written(t, a, "csv")
	for _, line := range strings.Split(table, "\r\n") {
		for folder, want := range map[string]string{`"Doppelt"`: `"no"`, `"Müller 4711"`: `"yes"`, `"Huber 88"`: `""`} {
			kit.Check(t, !strings.Contains(line, ","+folder+",") || strings.HasSuffix(line, ","+want), "%s", line)
		}
	}
	page, _ := written(t, a, "html")
	kit.Holds(t, "the page", page, "no folder that was taken has this number", "Archived, not listed", "erp.csv, SHA-256")
}

// Over random worlds the counts of the list are those of a comparison by hand, in whatever order the documents came, and the forms
// say the same of each document.
func TestExpected_I32_CountsAreThoseOfACountByHand(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 11))
		s := newShelf(t, "production")
		type document struct{ number, amount string }
		var list strings.Builder
		rows, archivedRows, differ, unlisted, expectedRows := 0, 0, 0, 0, map[document]bool{}
		for i := range 30 {
			d := document{fmt.Sprint("N", i), fmt.Sprintf("%d.%02d", r.IntN(900), r.IntN(100))}
			inList, inLedger, other := r.IntN(4) > 0, r.IntN(4) > 0, r.IntN(5) == 0
			if inLedger {
				s.archivedAs(fmt.Sprint("F", i), d.number, "Huber", "2026-10-01", d.amount)
			}
			if inList {
				rows++
				if other {
					d.amount += "1"
				}
				fmt.Fprintf(&list, "%s;huber ;1.10.2026;%s;EUR\n", d.number, strings.ReplaceAll(d.amount, ".", ","))
				expectedRows[d] = true
			}
			switch {
			case inList && inLedger && other:
				archivedRows, differ = archivedRows+1, differ+1
			case inList && inLedger:
				archivedRows++
			case inLedger:
				unlisted++
			}
		}
		c := s.config()
		c.Expected = listOf(t, list.String())
		a := examine(t, c)
		if l := a.Summary.Expected; l.Rows != uint64(rows) || l.Archived != uint64(archivedRows) || l.Differ != uint64(differ) || l.Unlisted != uint64(unlisted) || l.Missing != uint64(rows-archivedRows) {
			t.Errorf("seed %d: %+v; by hand %d listed, %d archived, %d differ, %d unlisted", seed, l, rows, archivedRows, differ, unlisted)
		}
		table, _ := written(t, a, "csv")
		book, _ := written(t, a, "xlsx")
		sheet, _, _ := readBook(t, []byte(book))
		column := len(csvHeader) - 1
		yes, no, others := 0, 0, 0
		for _, row := range sheet[1:] {
			switch row[column] {
			case "yes":
				yes++
			case "no":
				no++
			case "other amount":
				others++
			}
		}
		kit.Check(t, yes == archivedRows-differ && no == unlisted && others == differ && strings.Count(table, `"other amount"`) == differ,
			"seed %d: %d yes, %d no, %d other", seed, yes, no, others)
	}
}

// A document that equals its row less makes room for one that equals it more, whichever came first.
func TestMatcher_OrderDoesNotCount(t *testing.T) {
	var first string
	for _, order := range [][]string{{"10.00", "11.00", "12.00"}, {"12.00", "11.00", "10.00"}, {"11.00", "12.00", "10.00"}} {
		s := newShelf(t, "production")
		for i, amount := range order {
			s.archivedAs(fmt.Sprint("F", i, " ", amount), "RE 1", "Huber", "2026-10-01", amount)
		}
		c := s.config()
		c.Expected = listOf(t, "RE 1;Huber;2026-10-01;12,00;EUR\nRE 1;Huber;2026-10-01;11,00;EUR\n")
		l := examine(t, c).Summary.Expected
		if got := fmt.Sprint(l.Archived, l.Missing, l.Differ, l.Unlisted, strings.HasSuffix(l.UnlistedNames[0], "10.00")); first == "" {
			first = got
		} else if got != first {
			t.Errorf("%v: %s, before %s", order, got, first)
		}
		kit.Want(t, fmt.Sprint(order)+": archived, differ, unlisted", []uint64{l.Archived, l.Differ, l.Unlisted}, []uint64{2, 0, 1})
	}
}

// A row that names no sender is left for a document that no other row fits, whichever came first.
func TestMatcher_ExactRowsFirst(t *testing.T) {
	for _, order := range [][]string{{"Huber", "Otto"}, {"Otto", "Huber"}} {
		s := newShelf(t, "production")
		for i, sender := range order {
			s.archivedAs(fmt.Sprint("F", i), "RE 1", sender, "2026-10-01", "10.00")
		}
		c := s.config()
		c.Expected = listOf(t, "RE 1;;;10,00;\nRE 1;Huber;;10,00;\n")
		kit.Want(t, fmt.Sprint(order), examine(t, c).Summary.Result.Code, "complete")
	}
}

// The sign of a credit note does not count, that of an invoice does.
func TestMatcher_Signs(t *testing.T) {
	row := expected.Row{Number: "1", Amount: "75.10"}
	u, same := compareToRow(row, archive.Document{Type: "Invoice", Number: "1"})
	kit.Check(t, u == otherAmount && same, "a document without the amount that is listed: %v", u)
	for kind, want := range map[string]unequal{"CreditNote": 0, "CreditNoteSelfBilled": 0, "Invoice": otherAmount} {
		u, same := compareToRow(row, archive.Document{Type: kind, Number: "1", Amount: "-75.100"})
		kit.Check(t, u == want && same, "%s: %v, want u = %v, same", kind, u, want)
	}
}

// The same ledger, list and time give the same bytes in every form.
func TestReport_SameBytes(t *testing.T) {
	s := randomShelf(t, 42)
	s.Item("Kern 6").Quarantine(noon, ledger.Cause{Code: "x"})
	for _, form := range []string{"html", "csv", "xlsx", "json"} {
		var first []byte
		for range 3 {
			c := s.config()
			c.Expected = listOf(t, "RE 1;Huber;2026-10-01;12,00;EUR\nRE 2;Huber;2026-10-01;11,00;EUR\nRE 3;;;;\n")
			text, _ := written(t, examine(t, c), form)
			if first == nil {
				first = []byte(text)
			}
			kit.Check(t, bytes.Equal(first, []byte(text)), "%s differs", form)
		}
	}
}

// A number whose leading zeros a spreadsheet removed is no equal one: the result stays, and both sides have a hint. Only an archived
// document that no row has is hinted at, and only where the row may be about it.
func TestExpected_I31_LostLeadingZerosAreAHint(t *testing.T) {
	s := newShelf(t, "production")
	s.archivedAs("Huber 1", "0004711", "Huber", "2026-10-01", "10.00")
	s.archivedAs("Otto 2", "0815", "Otto", "2026-10-02", "20.00")
	s.archivedAs("Kern 3", "000", "Kern", "2026-10-03", "30.00")
	s.archivedAs("Abel 4", "007A", "Abel", "2026-10-04", "40.00")
	s.archivedAs("Nagel 5", "0012", "Nagel", "2026-10-05", "50.00")
	s.archivedAs("Nagel 6", "12", "Nagel", "2026-10-06", "60.00")
	c := s.config()
	c.Expected = listOf(t, "4711;Huber;2026-10-01;10,00;EUR\n815;Somebody;2026-10-03;21,00;EUR\n0;;;;\n7A;;;;\n12;Nagel;2026-10-06;60,00;EUR\n")
	a := examine(t, c)
	l := a.Summary.Expected
	kit.Check(t, a.Summary.Result.Code == "not-complete" && l.Archived == 1 && l.Missing == 4 && l.Unlisted == 5,
		`%+v: %+v, want a.Summary.Result.Code = "not-complete", l.Archived = 1, l.Missing = 4, l.Unlisted = 5`, a.Summary.Result, l)
	hints := 0
	for _, r := range l.MissingRows {
		if strings.Contains(r.Found, "leading zeros") {
			hints++
			kit.Check(t, r.Number == "4711" && strings.Contains(r.Found, "may be the same as 0004711"),
				`%+v, want r.Number = "4711", r.Found with "may be the same as 0004711"`, r)
		}
	}
	for _, text := range l.UnlistedNames {
		if strings.Contains(text, "leading zeros") {
			hints++
			kit.Check(t, strings.HasPrefix(text, "Huber 1 ") && strings.Contains(text, "may be the same as 4711 in row 2 of the list"),
				`text = %v, want text that begins with "Huber 1 ", text with "may be the same as 4711 in row 2 of the list"`, text)
		}
	}
	kit.Check(t, hints == 2, "%d hints: %+v", hints, l)
}

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
	kit.Check(t, len(sum.Needs) == 1 && sum.Needs[0].What == "index-differs" && sum.Result.Code == "complete-as-dropped",
		`%+v, %+v, want len(sum.Needs) = 1, sum.Needs[0].What = "index-differs", sum.Result.Code = "complete-as-dropped"`, sum.Result, sum.Needs)
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
		kit.Want(t, name, onTime{c.spans.total, c.spans.median().Seconds(), c.spans.longest.Seconds(), c.longest, c.unmeasured, c.skewed}, row.want)
	}
}
