package config

import (
	"slices"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

const goodBooks = "books: {table: IA_INVOICE, columns: {key: ID, number: NUM, date: DAY, amount: SUM}, booked: {column: STATUS, values: [Booked]}, from: 2026-01-01}\n"

func TestBooks(t *testing.T) {
	got := mustLoad(t, withExtracts(goodExtracts+goodBooks)).Books
	if got.Table != "IA_INVOICE" || !slices.Equal(got.Columns.Key, Names{"ID"}) || len(got.Columns.Company) > 0 || got.Booked.Values[0] != "Booked" || got.From != "2026-01-01" {
		t.Errorf(`%+v, want got.Table = "IA_INVOICE", got.Columns.Key = [ID], got.Columns.Company = [], got.Booked.Values[0] = "Booked", got.From = "2026-01-01"`, got)
	}
	if got := mustLoad(t, withExtracts(goodExtracts+strings.Replace(goodBooks, "NUM", "[NUMBER, NUM]", 1))).Books; !slices.Equal(got.Columns.Number, Names{"NUMBER", "NUM"}) {
		t.Errorf("names of a column: %q, want two", got.Columns.Number)
	}
	mustLoad(t, withExtracts("books: {from: soon}\n")) // without a table nothing of it counts
}

func TestBooks_Mistakes(t *testing.T) {
	rows := map[string]struct{ old, new, want string }{
		"NoExtracts":   {goodExtracts, "", "books.table: is there, and no extracts are taken; *"},
		"NoKey":        {"key: ID, ", "", "books.columns.key: is missing, and books.table is there; *"},
		"NoNumber":     {"number: NUM, ", "", "books.columns.number: is missing, and books.table is there; *"},
		"NoDate":       {"date: DAY, ", "", "books.columns.date: is missing, and books.table is there; *"},
		"NoFrom":       {", from: 2026-01-01", "", "books.from: is missing, and books.table is there; *"},
		"NoDay":        {"2026-01-01", "2026-13-01", "books.from: is not a day; write it like 2026-01-01"},
		"NoValues":     {", values: [Booked]", "", "books.booked.values: is empty, so that no record would be booked; *"},
		"NoColumn":     {"column: STATUS, ", "", "books.booked.column: is missing, and books.booked.values is there; *"},
		"EmptyValue":   {"[Booked]", "[Booked, '']", "books.booked.values: has an empty value; *"},
		"NoNames":      {"number: NUM", "number: []", "books.columns.number: is empty; *"},
		"SameNames":    {"number: NUM", "number: [NUM, NUM]", "books.columns.number: names the same thing twice; *"},
		"EmptyName":    {"number: NUM", "number: [NUM, '']", "books.columns.number[1]: is not a text of 1 to 150 characters*"},
		"UnknownKey":   {"amount: SUM", "gross: SUM", "books.columns.gross: is not a known key; *"},
		"CreditNoType": {", from", ", credit_notes: [CreditNote], from", "books.columns.type: is missing, and books.credit_notes is there; *"},
		"NoSeparator":  {"custody: /srv", "csv: {separator: ';'}, custody: /srv", "extracts.csv.separator: *"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			_, faults := load(t, withExtracts(strings.Replace(goodExtracts+goodBooks, r.old, r.new, 1)), nil)
			_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
			want, open := strings.CutSuffix(r.want, "*")
			kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
		})
	}
}
