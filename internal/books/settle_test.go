package books

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// csvOf is a CSV with an amount and a date in each row, beginning with number n.
func csvOf(n int, rows ...[2]string) string {
	text := "ID;INVOICE_NUM;SUPPLIER;ORG;INVOICE_DATE;GROSS_SUM;CURRENCY;STATUS\r\n"
	for i, r := range rows {
		text += fmt.Sprintf("%d;R-%d;Huber GmbH;Acme;%s;%s;EUR;Booked\r\n", n+i, n+i, r[1], r[0])
	}
	return text
}

// I31: amounts and dates are read in every form that bookkeeping writes. One that
// alone can be read in two ways is read as the other values of its column show,
// or as the configuration says; else it is ambiguous and counts as nothing.
func TestSettle_I31_ByTheOtherValues(t *testing.T) {
	const day = "05.10.2026"
	rows := map[string]struct {
		decimal expected.Shown
		own     [][2]string // rows of the extract; the first is the one that is asked about
		older   [][2]string // of an older extract
		want    string      // verdict, amount and date of the first row
	}{
		"German":               {0, [][2]string{{"1.234,56", day}}, nil, "archived 1234.56 2026-10-05"},
		"MinusBehind":          {0, [][2]string{{"75,10-", day}}, nil, "differs -75.1 2026-10-05"},
		"Blank":                {0, [][2]string{{"1 500,00", day}}, nil, "differs 1500 2026-10-05"},
		"NarrowBlank":          {0, [][2]string{{"1\u202f234,56", day}}, nil, "archived 1234.56 2026-10-05"},
		"Apostrophe":           {0, [][2]string{{"1'234.56", day}}, nil, "archived 1234.56 2026-10-05"},
		"English":              {0, [][2]string{{`"1,234.56"`, day}}, nil, "archived 1234.56 2026-10-05"},
		"WithCurrency":         {0, [][2]string{{"1234,56 EUR", day}}, nil, "archived 1234.56 2026-10-05"},
		"OtherCurrency":        {0, [][2]string{{"1234,56 USD", day}}, nil, "unreadable 1234.56 2026-10-05"},
		"InBrackets":           {0, [][2]string{{"(75,10)", day}}, nil, "differs -75.1 2026-10-05"},
		"ALetter":              {0, [][2]string{{"75,10 H", day}}, nil, "unreadable  2026-10-05"},
		"NothingShows":         {0, [][2]string{{"1.234", day}, {"7", day}}, nil, "ambiguous  2026-10-05"},
		"Configured":           {',', [][2]string{{"1.234", day}}, nil, "differs 1234 2026-10-05"},
		"ConfiguredPoint":      {'.', [][2]string{{"1.234", day}}, nil, "differs 1.234 2026-10-05"},
		"OtherThanConfigured":  {'.', [][2]string{{"1.234,56", day}}, nil, "unreadable  2026-10-05"},
		"LaterRowShows":        {0, [][2]string{{"1.234", day}, {"7,50", day}}, nil, "differs 1234 2026-10-05"},
		"LaterRowShowsPoint":   {0, [][2]string{{"1.234", day}, {"7.50", day}}, nil, "differs 1.234 2026-10-05"},
		"TwoWays":              {0, [][2]string{{"1.234", day}, {"7,50", day}, {"7.50", day}}, nil, "ambiguous  2026-10-05"},
		"OlderExtractShows":    {0, [][2]string{{"1.234", day}}, [][2]string{{"7,50", day}}, "differs 1234 2026-10-05"},
		"OwnExtractFirst":      {0, [][2]string{{"1.234", day}, {"7.50", day}}, [][2]string{{"7,50", day}}, "differs 1.234 2026-10-05"},
		"OlderExtractIsMixed":  {0, [][2]string{{"1.234", day}}, [][2]string{{"7,50", day}, {"7.50", day}}, "ambiguous  2026-10-05"},
		"EitherMonth":          {0, [][2]string{{"1234,56", "05/10/2026"}}, nil, "ambiguous 1234.56 "},
		"MonthByOtherDate":     {0, [][2]string{{"1234,56", "05/10/2026"}, {"1", "13/10/2026"}}, nil, "archived 1234.56 2026-10-05"},
		"MonthFirst":           {0, [][2]string{{"1234,56", "10/05/2026"}, {"1", "10/13/2026"}}, nil, "archived 1234.56 2026-10-05"},
		"MonthByOlderExtract":  {0, [][2]string{{"1234,56", "05/10/2026, 10:17:02"}}, [][2]string{{"1", "31/01/2026"}}, "archived 1234.56 2026-10-05"},
		"BothAreUnclear":       {0, [][2]string{{"1.234", "05/10/2026"}}, nil, "ambiguous  "},
		"NoDate":               {0, [][2]string{{"1234,56", "10/32/2026"}}, nil, "unreadable 1234.56 "},
		"ExponentIsNoThousand": {0, [][2]string{{"1.23456E+03", day}}, nil, "archived 1234.56 2026-10-05"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings = func(s *Settings) { s.Decimal = row.decimal }
			def := definitionOf("IA_INVOICE", columnNames...)
			w.hold(delta("1", "2026-01-01", "2026-10-10"), def, csvOf(100, row.older...))
			w.hold(delta("2", "2026-10-10", "2026-11-19"), def, csvOf(1, row.own...))
			doc := documentOf("R-1")
			doc.Amount = "1234.56"
			w.drop("R-1", doc, ledger.Archived)
			a, all := w.ask()
			for _, r := range all {
				if r.Number != "R-1" {
					continue
				}
				got := fmt.Sprintf("%s %s %s", r.Verdict, r.Amount, string(r.Date))
				kit.Check(t, got == row.want, "got %q, want %q; %s", got, row.want, r.Found)
				if isUnclear := strings.HasPrefix(row.want, "ambiguous"); isUnclear != strings.Contains(r.Found, "can be read in two ways") || isUnclear && a.IsComplete() {
					t.Errorf("found %q, complete %v; want it unclear and not complete: %v", r.Found, a.IsComplete(), isUnclear)
				}
				return
			}
			t.Errorf("R-1 is not in %v", all)
		})
	}
}

// I31: what is settled follows the extracts: a later one may show how the column
// is written, or that it is written in two ways.
func TestSettle_I31_FollowsTheExtracts(t *testing.T) {
	w := newWorld(t)
	w.settings = func(s *Settings) { s.Decimal = 0 }
	def := definitionOf("IA_INVOICE", columnNames...)
	for i, step := range []struct{ amount, want string }{{"1.234", "ambiguous"}, {"7,50", "never-dropped 1234"}, {"7.50", "ambiguous"}} {
		w.hold(delta(fmt.Sprint(i+1), "2026-01-01", "2026-11-19"), def, csvOf(10*i+1, [2]string{step.amount, "2026-10-05"}))
		_, all := w.ask()
		for _, r := range all {
			got := strings.TrimSpace(fmt.Sprint(r.Verdict, " ", r.Amount))
			kit.Check(t, r.Number != "R-1" || got == step.want, "with %d extracts: %s, want %s", i+1, got, step.want)
		}
	}
}

// I31: a number of JSON is a number, and a text of JSON is read as one of CSV.
func TestSettle_I31_NumbersAndTextsOfJSON(t *testing.T) {
	w := newWorld(t)
	w.settings = func(s *Settings) { s.Decimal = 0 }
	text := strings.Replace(jsonOf(invoice("1", "R-1"), invoice("2", "R-2", "GROSS_SUM", "1.234"), invoice("3", "R-3", "GROSS_SUM", "1.234,00")), "119.00", "1.234", 1)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), text)
	_, all := w.ask()
	var got []string
	for _, r := range all {
		got = append(got, string(r.Amount))
	}
	kit.Want(t, "the amounts", fmt.Sprint(got), "[1.234 1234 1234]")
}
