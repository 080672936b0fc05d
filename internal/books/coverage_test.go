package books

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc := kit.Value(time.LoadLocation(name))(t)
	return loc
}

// I32: a day that no extract covers is named, and makes the answer incomplete.
func TestCoverage_I32_Holes(t *testing.T) {
	extract := func(kind, name, from, to string) archive.Extract {
		e := delta(strings.Join([]string{kind, name, from}, "-"), from, to)
		e.Type, e.Name = kind, name
		return e
	}
	daily := func(from, to string) archive.Extract { return extract(archive.DeltaExtract, "daily", from, to) }
	late := daily("2026-10-14", "2026-11-01")
	late.Start = late.Start.Add(2 * time.Minute)
	close := daily("2026-10-14", "2026-11-01")
	close.Start = close.Start.Add(time.Minute)
	for name, row := range map[string]struct {
		extracts []archive.Extract
		want     []string // beginnings of what is said
	}{
		"Whole":              {[]archive.Extract{daily("2026-09-01", "2026-10-14"), daily("2026-10-14", "2026-11-01")}, nil},
		"OneDay":             {[]archive.Extract{daily("2026-09-01", "2026-10-14"), daily("2026-10-15", "2026-11-01")}, []string{"No delta covers 14 Oct 2026:"}},
		"TwoDays":            {[]archive.Extract{daily("2026-09-01", "2026-10-14"), daily("2026-10-16", "2026-11-01")}, []string{"No delta covers 14 Oct 2026 to 15 Oct 2026:"}},
		"Seam":               {[]archive.Extract{daily("2026-09-01", "2026-10-14"), close}, nil},
		"MoreThanSeam":       {[]archive.Extract{daily("2026-09-01", "2026-10-14"), late}, []string{"No delta covers 14 Oct 2026:"}},
		"End":                {[]archive.Extract{daily("2026-09-01", "2026-10-20")}, []string{"The extracts end before 20 Oct 2026 to 31 Oct 2026:"}},
		"Beginning":          {[]archive.Extract{daily("2026-10-03", "2026-11-01")}, []string{"No delta covers 1 Oct 2026 to 2 Oct 2026:"}},
		"Nothing":            {nil, []string{"The extracts end before 1 Oct 2026 to 31 Oct 2026:"}},
		"RangeFills":         {[]archive.Extract{daily("2026-09-01", "2026-10-14"), extract(archive.RangeExtract, "range", "2026-10-14", "2026-10-16"), daily("2026-10-16", "2026-11-01")}, nil},
		"InitialThen":        {[]archive.Extract{extract(archive.InitialExtract, "all", "2026-01-01", "2026-10-10"), daily("2026-10-10", "2026-11-01")}, nil},
		"AfterTheAskedDays":  {[]archive.Extract{daily("2026-09-01", "2026-11-05"), daily("2026-11-06", "2026-11-19")}, []string{"No delta covers 5 Nov 2026:"}},
		"BeforeTheAskedDays": {[]archive.Extract{daily("2026-01-01", "2026-03-05"), daily("2026-03-06", "2026-11-19")}, []string{"No delta covers 5 Mar 2026:"}},
		"BeforeTheBooks":     {[]archive.Extract{daily("2025-01-01", "2025-03-05"), daily("2025-12-06", "2026-11-19")}, nil},
		"OfTwoSeries":        {[]archive.Extract{daily("2026-09-01", "2026-11-01"), extract(archive.DeltaExtract, "other", "2026-09-01", "2026-10-14")}, []string{"The extracts of other end before 14 Oct 2026 to"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if w.since = "2026-10-01"; strings.HasPrefix(name, "Before") {
				w.since = "2026-01-01"
			}
			for _, e := range row.extracts {
				w.hold(e, definitionOf("IA_INVOICE", columnNames...), jsonOf())
			}
			a, _ := w.ask()
			if len(a.Coverage.Holes) != len(row.want) || a.IsComplete() != (len(row.want) == 0) {
				t.Fatalf("%v, complete %v; want %v", a.Coverage.Holes, a.IsComplete(), row.want)
			}
			for i, h := range a.Coverage.Holes {
				kit.Check(t, strings.HasPrefix(h.String(), row.want[i]), "%s; want %s", h, row.want[i])
			}
		})
	}
}

// I32: a delta covers its day for the data set whose tables it has, whatever the
// deltas of its name have on other days.
func TestCoverage_I32_ByTheDataSet(t *testing.T) {
	const hole = "No delta covers 30 Oct 2026:"
	type row struct {
		asked string   // the table; empty: IA_INVOICE
		day   []string // the table of each delta of 30 October; "-": it has no file
		rest  string   // tables of the deltas of the other days, besides the one that is asked for
		want  string
	}
	kit.Rows(t, map[string]row{
		"Own":                  {"", []string{"IA_INVOICE"}, "", ""},
		"OtherTableOfTheSet":   {"", []string{"IA_CODING_ROW"}, "", ""},
		"SupplierAlone":        {"", []string{"ADM_SUPPLIER"}, "ADM_SUPPLIER", hole},
		"SupplierForTheFirst":  {"", []string{"ADM_SUPPLIER"}, "", hole},
		"HistoryIsAnotherSet":  {"", []string{"IA_ACTION_LOG"}, "", hole},
		"NoTableKnown":         {"", []string{"IA_NEW_TABLE"}, "", hole},
		"Both":                 {"", []string{"ADM_SUPPLIER", "IA_INVOICE"}, "ADM_SUPPLIER", ""},
		"EmptyOfOneSet":        {"", []string{"-"}, "", ""},
		"EmptyOfSeveral":       {"", []string{"-"}, "ADM_SUPPLIER", hole},
		"EmptyAndSupplier":     {"", []string{"-", "ADM_SUPPLIER"}, "ADM_SUPPLIER", hole},
		"None":                 {"", nil, "ADM_SUPPLIER", hole},
		"AnotherDataSet":       {"PR_PURCHASE_ORDER", []string{"GOODS_RECEIPT_DOCUMENT"}, "IA_INVOICE", ""},
		"OutsideTheList":       {"MY_INVOICES", []string{"MY_INVOICES"}, "IA_INVOICE", ""},
		"OutsideTheListAndNot": {"MY_INVOICES", []string{"IA_INVOICE"}, "IA_INVOICE", hole},
	}, func(t *testing.T, row row) {
		w := newWorld(t)
		w.since = "2026-10-01"
		asked := cmp.Or(row.asked, "IA_INVOICE")
		w.settings = func(s *Settings) { s.Table = asked }
		hold := func(table, from, to string, number int) {
			content := []string{jsonOf()}
			if w.table = table; table == "-" {
				content = nil
			}
			w.hold(delta(fmt.Sprint(from, "-", number), from, to), definitionOf(asked, columnNames...), content...)
		}
		for _, days := range [][2]string{{"2026-09-01", "2026-10-30"}, {"2026-10-31", "2026-11-19"}} {
			hold(asked, days[0], days[1], 1)
			if row.rest != "" {
				hold(row.rest, days[0], days[1], 2)
			}
		}
		for i, table := range row.day {
			hold(table, "2026-10-30", "2026-10-31", i)
		}
		a, _ := w.ask()
		got := ""
		for _, h := range a.Coverage.Holes {
			got += h.String()
		}
		if !strings.HasPrefix(got, row.want) || row.want == "" && got != "" || a.IsComplete() != (row.want == "") {
			t.Errorf("%q, complete %v, want %q", got, a.IsComplete(), row.want)
		}
		kit.Want(t, fmt.Sprintf("%q; other deltas are of that day", got),
			len(row.day) > 0 && row.want != "", strings.Contains(got, "have no table of the data set"))
	})
}

// I32: an extract of which the time is not known covers nothing, and is told.
func TestCoverage_I32_UntoldTimes(t *testing.T) {
	for name, change := range map[string]func(*archive.Extract){
		"NoStart": func(e *archive.Extract) { e.Start = time.Time{} },
		"NoEnd":   func(e *archive.Extract) { e.End = time.Time{} },
	} {
		w := newWorld(t)
		e := delta("1", "2026-01-01", "2026-11-19")
		change(&e)
		w.hold(e, definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1")))
		if a, rows := w.ask(); len(a.Coverage.Holes) != 1 || len(a.Problems) != 1 || a.IsComplete() || len(rows) != 1 {
			t.Errorf("%s: %+v, %v, %d rows", name, a.Coverage, a.Problems, len(rows))
		}
	}
	w := newWorld(t)
	e := delta("1", "2026-01-01", "2026-11-19")
	e.Type, e.Start = archive.InitialExtract, time.Time{}
	w.hold(e, definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1")))
	a, _ := w.ask()
	kit.Check(t, a.IsComplete(), "an initial extract: %+v, %v", a.Coverage, a.Problems)
}

// I32: a day with 25 hours is a day, and one in the zone of the company is not one in UTC.
func TestCoverage_I32_ZonesAndTheLongDay(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	at := func(day, hour int) time.Time { return time.Date(2026, 10, day, hour, 0, 0, 0, berlin) }
	spans := []span{{kind: archive.DeltaExtract, name: "d", has: ownTables, start: at(24, 0), end: at(25, 0)}, {kind: archive.DeltaExtract, name: "d", has: ownTables, start: at(26, 0), end: at(27, 0)}}
	c := cover(spans, "2026-10-24", "2026-10-24", "2026-10-26", at(28, 0), berlin)
	if len(c.Holes) != 1 || c.Holes[0].First != "2026-10-25" || c.Holes[0].Last != "2026-10-25" || c.Holes[0].End.Sub(c.Holes[0].Start) != 25*time.Hour {
		t.Errorf(`%+v, want len(c.Holes) = 1, c.Holes[0].First = "2026-10-25", c.Holes[0].Last = "2026-10-25", c.Holes[0].End.Sub(c.Holes[0].Start) = 25*time.Hour`, c.Holes)
	}
}

// I31: the last record of a key counts, by the ends of the extracts and not by the order in which they came.
func TestFold_I31_TheLastRecordOfAKeyCounts(t *testing.T) {
	w := newWorld(t)
	def := definitionOf("IA_INVOICE", columnNames...)
	w.hold(delta("2", "2026-10-02", "2026-11-19"), def, jsonOf(invoice("1", "4711", "STATUS", "Cancelled")), jsonOf(invoice("2", "5"), invoice("2", "6")))
	w.ask() // which folds it before the older ones: together they are folded in random order
	w.hold(delta("1", "2026-01-01", "2026-10-02"), def, jsonOf(invoice("1", "4711"), invoice("2", "4")))
	initial := delta("0", "2025-01-01", "2026-01-01")
	initial.Type = archive.InitialExtract
	w.hold(initial, def, jsonOf(invoice("2", "3"), invoice("3", "8")))
	_, rows := w.ask()
	var got []string
	for _, r := range rows {
		got = append(got, r.Number)
	}
	kit.Want(t, fmt.Sprintf("booked are %q", got), strings.Join(got, ", "), "6, 8")
	again, _ := w.ask() // nothing is folded twice
	kit.Check(t, again.Booked == 2 && again.Coverage.Records == 7,
		"then %d booked of %d records", again.Booked, again.Coverage.Records)
}

// I31: what was folded of an extract that the ledger does not have any more, or has otherwise, counts no more.
func TestFold_I31_OnlyWhatTheLedgerRecorded(t *testing.T) {
	w := newWorld(t)
	def := definitionOf("IA_INVOICE", columnNames...)
	w.hold(delta("1", "2026-01-01", "2026-10-02"), def, jsonOf(invoice("1", "1")))
	w.hold(delta("2", "2026-10-02", "2026-11-19"), def, jsonOf(invoice("2", "2")))
	if a, _ := w.ask(); a.Booked != 2 || !a.IsComplete() {
		t.Fatalf("%d booked, complete %v", a.Booked, a.IsComplete())
	}
	w.sums["2"] = Recorded{Manifest: archive.Sum([]byte("another manifest"))}
	if a, _ := w.ask(); a.Booked != 1 || a.IsComplete() || len(a.Problems) != 1 {
		t.Errorf("%d booked, complete %v, %v", a.Booked, a.IsComplete(), a.Problems)
	}
	delete(w.sums, "1")
	a, _ := w.ask()
	kit.Check(t, a.Booked == 0 && len(a.Problems) == 2, "%d booked, %v", a.Booked, a.Problems)
}

// I32: an extract that the ledger holds and the custody has lost makes the answer incomplete, whatever the others cover.
func TestFold_I32_LostInTheCustody(t *testing.T) {
	w := newWorld(t)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1")))
	w.sums["2"] = Recorded{archive.Sum([]byte("of a folder that was moved away")), day("2026-10-01")}
	w.sums["3"] = Recorded{archive.Sum([]byte("of one that nobody asks about")), day("2026-01-01")}
	if a, _ := w.ask(); a.IsComplete() || len(a.Problems) != 1 || a.Problems[0].Extract != "2" {
		t.Errorf("complete %v, %v", a.IsComplete(), a.Problems)
	}
}

// I31: answers at the same time fold each extract once.
func TestFold_I31_TwoAtOnce(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.hold(delta(fmt.Sprint(i), fmt.Sprintf("2026-0%d-01", i+1), fmt.Sprintf("2026-0%d-01", i+2)), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice(fmt.Sprint(i), fmt.Sprint(i))))
	}
	var g errgroup.Group
	for range 4 {
		b := w.open(testSettings())
		g.Go(func() error { _, err := b.Update(t.Context(), w.sums); return err })
	}
	kit.Must(t, g.Wait())
	a, rows := w.ask()
	kit.Check(t, len(rows) == 5 && a.Coverage.Records == 5, "%d rows of %d records", len(rows), a.Coverage.Records)
}

// I32: a table that was renamed, or whose name is written otherwise, is not one without records.
func TestFold_I32_RenamedTable(t *testing.T) {
	for name, row := range map[string]struct{ defined, of string }{"Definition": {"IA_INVOICE_V2", "IA_INVOICE_V2"}, "Case": {"IA_INVOICE", "ia_invoice"}, "NoName": {"IA_INVOICE", ""}} {
		w := newWorld(t)
		w.table = row.of
		w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf(row.defined, columnNames...), jsonOf(invoice("1", "1")))
		b := w.open(testSettings())
		problems, err := b.Update(t.Context(), w.sums)
		if lost, is := errors.AsType[*DefinitionError](err); name == "Definition" && (!is || lost.Setting != "books.table") || name != "Definition" && (err != nil || len(problems) != 1) {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
	}
}

// I32: a file that cannot be read makes the answer incomplete, and the other extracts still count.
func TestFold_I32_AnExtractThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	def := definitionOf("IA_INVOICE", columnNames...)
	w.hold(delta("1", "2026-01-01", "2026-10-10"), def, jsonOf(invoice("1", "1")))
	w.hold(delta("2", "2026-10-10", "2026-11-19"), def, jsonOf(invoice("2", "2")), `[{"ID":"3","INVOICE_NUM":"3"`)
	a, rows := w.ask()
	if len(rows) != 1 || rows[0].Number != "1" || len(a.Problems) != 1 || a.IsComplete() || len(a.Coverage.Holes) != 1 {
		t.Errorf(`%+v, %v, %v, want len(rows) = 1, rows[0].Number = "1", len(a.Problems) = 1, not a.IsComplete(), len(a.Coverage.Holes) = 1`, rows, a.Problems, a.Coverage.Holes)
	}
}

// I21: an extract whose values have no bound is not read, and says so; the others
// count.
func TestFold_I21_TooMuchOfAFile(t *testing.T) {
	kit.Long(t, "a file with 300 MB of values")
	w := newWorld(t)
	def := definitionOf("IA_INVOICE", columnNames...)
	w.hold(delta("1", "2026-01-01", "2026-10-10"), def, jsonOf(invoice("1", "1")))
	long, csv := strings.Repeat("x", longestValue), []string{"ID,INVOICE_NUM,SUPPLIER,ORG,STATUS"}
	for range 300 << 20 / (3 * longestValue) {
		csv = append(csv, "2,"+long+","+long+","+long+",Booked")
	}
	w.hold(delta("2", "2026-10-10", "2026-11-19"), def, strings.Join(csv, "\n"))
	a, rows := w.ask()
	if len(rows) != 1 || rows[0].Number != "1" || len(a.Problems) != 1 || !strings.Contains(a.Problems[0].Text, "more than 256 MB of values") {
		t.Errorf("%d rows, problems %v; want one row and its problem", len(rows), a.Problems)
	}
}
