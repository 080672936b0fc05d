package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

const goodExtracts = "extracts: {base_url: 'https://ap.acme.example/', auth: {method: oauth2, username: e, secret_file: /etc/vaultd/secret-extracts}, custody: /srv/custody}\n"

func withExtracts(section string) string {
	return strings.Replace(smallConfig, "drops:", section+"drops:", 1)
}

func TestExtracts(t *testing.T) {
	got := mustLoad(t, withExtracts(goodExtracts)).Extracts
	if got.BaseURL != "https://ap.acme.example" || got.Custody != "/srv/custody" || got.Every != time.Hour || got.Workers != 2 || got.MaxDownloads != 10 || got.Acknowledge {
		t.Errorf(`%+v, want got.BaseURL = "https://ap.acme.example", got.Custody = "/srv/custody", got.Every = time.Hour, got.Workers = 2, got.MaxDownloads = 10, not got.Acknowledge`, got)
	}
	mustLoad(t, withExtracts("extracts: {custody: /var/lib/vaultd}\n")) // without base_url nothing of it counts
}

// The drop that extracts are put into takes what vaultd puts there.
func TestExtracts_ToDrop(t *testing.T) {
	section := strings.Replace(goodExtracts, "custody:", "to_drop: acme-in, to_drop_type: Invoice, custody:", 1)
	got := mustLoad(t, withExtracts(section)).Extracts
	kit.Check(t, got.ToDrop == "acme-in" && got.ToDropType == "Invoice", `%+v, want got.ToDrop = "acme-in", got.ToDropType = "Invoice"`, got)
	for more, want := range map[string]string{
		"complete: marker":               "is a drop with complete: marker, *",
		"require: {recipientName: Acme}": "is a drop with require, *",
	} {
		_, faults := load(t, strings.Replace(withExtracts(section), "vault: V-1}", "vault: V-1, "+more+"}", 1), nil)
		if text := strings.Join(lines(faults), "; "); len(faults) != 1 || !strings.Contains(text, "extracts.to_drop: "+strings.TrimSuffix(want, "*")) {
			t.Errorf("%s: %q, want len(faults) = 1, text with %q", more, text, "extracts.to_drop: "+strings.TrimSuffix(want, "*"))
		}
	}
	pdf := "pdf: {base_url: 'https://pdf.acme.example', auth: {method: basic, username: p, secret_file: /etc/vaultd/secret-pdf}}\n"
	text := strings.Replace(withExtracts(pdf+section), "vault: V-1}", "route: pdf, receiving: a@b.example, notify: c@b.example}", 1)
	if _, faults := load(t, text, nil); len(faults) != 1 || !strings.Contains(lines(faults)[0], "extracts.to_drop: is a drop of route pdf") {
		t.Errorf(`%q, want len(faults) = 1, lines(faults)[0] with "extracts.to_drop: is a drop of route pdf"`, lines(faults))
	}
}

func TestExtracts_Mistakes(t *testing.T) {
	kit.Rows(t, map[string]struct{ old, new, want string }{
		"NoCustody":     {", custody: /srv/custody", "", "extracts.custody: is missing, and base_url is there; add custody: *"},
		"Relative":      {"/srv/custody", "custody", "extracts.custody: is not the absolute path of the folder *"},
		"NoAuth":        {", auth: {method: oauth2, username: e, secret_file: /etc/vaultd/secret-extracts}", "", "extracts.auth: is missing, and base_url is there; *"},
		"InState":       {"/srv/custody", "/var/lib/vaultd/custody", "extracts.custody: overlaps with state_dir; *"},
		"InDrop":        {"/srv/custody", "/srv/invoices/acme-in/custody", "extracts.custody: overlaps with drop \"acme-in\"; *"},
		"TooOften":      {"custody:", "every: 5s, custody:", "extracts.every: is less than a minute; *"},
		"ThreeAtOnce":   {"custody:", "workers: 3, custody:", "extracts.workers: is out of range; *"},
		"MoreThanFifty": {"custody:", "max_downloads: 51, custody:", "extracts.max_downloads: is out of range; *"},
		"VersionTwice":  {"example/", "example/v1/", "extracts.base_url: ends with v1, which vaultd adds itself; write https://ap.acme.example"},
		"PlainHTTP":     {"https", "http", "extracts.base_url: is plain http to another machine; *"},
		"Example":       {"ap.acme.example", "ap.example", "extracts.base_url: is the address of an example; *"},
		"NoType":        {"custody:", "to_drop: acme-in, custody:", "extracts.to_drop_type: is missing, and to_drop is there; write the type that the files get in the archive: Invoice, *"},
		"TypeAlone":     {"custody:", "to_drop_type: Invoice, custody:", "extracts.to_drop_type: is there, and to_drop is empty; *"},
		"StrangeType":   {"custody:", "to_drop: acme-in, to_drop_type: Report, custody:", "extracts.to_drop_type: *"},
		"NoSuchDrop":    {"custody:", "to_drop: acme, to_drop_type: Invoice, custody:", "extracts.to_drop: is the name of no drop; drops has acme-in"},
		"UnknownKey":    {"custody:", "to: x, custody:", "extracts.to: is not a known key; *"},
	}, func(t *testing.T, r struct{ old, new, want string }) {
		_, faults := load(t, withExtracts(strings.Replace(goodExtracts, r.old, r.new, 1)), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(r.want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	})
}

const goodBooks = "books: {table: IA_INVOICE, columns: {key: ID, number: NUM, date: DAY, amount: SUM}, booked: {column: STATUS, values: [Booked]}, from: 2026-01-01}\n"

func TestBooks(t *testing.T) {
	got := mustLoad(t, withExtracts(goodExtracts+goodBooks)).Books
	if got.Table != "IA_INVOICE" || !slices.Equal(got.Columns.Key, Names{"ID"}) || len(got.Columns.Company) > 0 || got.Booked.Values[0] != "Booked" || got.From != "2026-01-01" {
		t.Errorf(`%+v, want got.Table = "IA_INVOICE", got.Columns.Key = [ID], got.Columns.Company = [], got.Booked.Values[0] = "Booked", got.From = "2026-01-01"`, got)
	}
	kit.Want(t, "names of a column",
		mustLoad(t, withExtracts(goodExtracts+strings.Replace(goodBooks, "NUM", "[NUMBER, NUM]", 1))).Books.Columns.Number, Names{"NUMBER", "NUM"})
	mustLoad(t, withExtracts("books: {from: soon}\n")) // only a table makes it count
}

func TestBooks_Mistakes(t *testing.T) {
	kit.Rows(t, map[string]struct{ old, new, want string }{
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
	}, func(t *testing.T, r struct{ old, new, want string }) {
		_, faults := load(t, withExtracts(strings.Replace(goodExtracts+goodBooks, r.old, r.new, 1)), nil)
		_, text, _ := strings.Cut(strings.Join(lines(faults), "; "), " ") // without the position
		want, open := strings.CutSuffix(r.want, "*")
		kit.Check(t, len(faults) == 1 && strings.HasPrefix(text, want) && (open || text == want), "%q", text)
	})
}
