package main_test

import (
	"fmt"

	"vaultd/internal/test/kit"

	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vaultd/internal/emulator"
)

// I31: over the real program, the page names the booked invoice that nobody dropped and the day that no extract covers, leads to the
// document that was rejected, and gives the files that the command gives. Who may not read gets none of it.
func TestPages_I31_BookedInvoicesThatAreNotArchived(t *testing.T) {
	t.Parallel()
	emu, service := serveEmulator(t, emulator.Config{})
	kit.Must(t, emu.SetTableDefinition([]byte(booksDefinition)))
	s := newSite(t, service, fast)
	s.withBooks(service)
	address := s.withPages()
	publishBooked(t, emu, "1", "Initial", "2026-01-01", "2026-10-13", "R-1", "119.00", "R-2", "7", "R-3", "1.10")
	publishBooked(t, emu, "2", "Delta", "2026-10-15", "2026-11-01", "R-2", "7.50")
	for number, date := range map[string]string{"R-1": "2026-10-05", "R-2": "5.10.2026", "R-9": "2026-10-05"} { // that of R-2 is refused
		s.drop("acme", "Huber "+number, map[string][]byte{"scan.bin": []byte(number)}, map[string]any{"documentType": "Invoice", "documentId": number, "documentDate": date,
			"senderName": "Huber", "recipientName": "Acme", "currencyCode": "EUR", "amount": json.Number("119.00")})
	}
	s.begin()
	s.calm(3)
	waitFor(t, "two extracts to be held", func() bool {
		out, _ := s.vaultd("extracts")
		return strings.Count(out, " held ") == 2
	})
	reader := newReader(t, address)
	reader.signIn("reader")
	if a := reader.get("/"); !strings.Contains(a.body, `<a href="/books">`) {
		t.Error("no page leads to the booked invoices")
	}
	october := url.Values{"from": {"2026-10-01"}, "to": {"2026-10-31"}}
	a := reader.send("/books", "/books", october)
	for _, want := range []string{">Not complete<", "Booked: 3. Archived: 1. Not archived: 2. Archived and not booked: 1.", "No extract covers 13 Oct 2026 to 14 Oct 2026", "R-3", "never dropped",
		"R-2", ">rejected<", "1.10 EUR", "127.60", "TEST, NO EVIDENCE"} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%d: no %q in\n%s", a.code, want, a.body)
		}
	}
	link := regexp.MustCompile(`<a href="(/document/[0-9a-z]+)">`).FindStringSubmatch(a.body)
	if link == nil || !strings.Contains(reader.get(link[1]).body, "Huber R-2") {
		t.Errorf("%v does not lead to the document that was rejected", link)
	}
	s.booksAsFiles(reader, october)
	s.booksRefused(reader, address, october)
	if v := emu.Violations(); len(v) != 0 {
		t.Errorf("%q, want len(v) = 0", v)
	}
}

// booksAsFiles holds the files of the page against those of the command, and looks for the books in the report.
func (s *site) booksAsFiles(reader *reader, october url.Values) {
	t := s.t
	t.Helper()
	download := func(form string) answer {
		fields := url.Values{"from": october["from"], "to": october["to"], "company": {"ACME"}, "form": {form}}
		a := reader.send("/books", "/books", fields)
		if a.code != http.StatusOK || !strings.Contains(a.header.Get("Content-Disposition"), "books-2026-10-01-2026-10-31.") {
			t.Errorf(`%s: %d %v %s, want a.code = http.StatusOK, a.header.Get("Content-Disposition") with "books-2026-10-01-2026-10-31."`, form, a.code, a.header, a.body)
		}
		return a
	}
	path := filepath.Join(t.TempDir(), "october.csv")
	s.must(exitDifferences, "books", "--from", "2026-10-01", "--to", "2026-10-31", "--company", "ACME", "-o", path)
	want, err := os.ReadFile(path)
	if got := download("csv").body; err != nil || got != string(want) {
		t.Errorf("the page gives\n%s, the command\n%s (%v)", got, want, err)
	}
	semicolons := csv.NewReader(strings.NewReader(strings.TrimPrefix(download("csv-semicolon").body, "\ufeff")))
	semicolons.Comma = ';'
	if rows, err := semicolons.ReadAll(); err != nil || len(rows) != 5 {
		t.Errorf("%v, %v, want no error, len(rows) = 5", rows, err)
	}
	var object struct{ NotArchived, Booked int }
	if err := json.Unmarshal([]byte(download("json").body), &object); err != nil || object.NotArchived != 2 || object.Booked != 3 {
		t.Errorf("%+v, %v, want no error, object.NotArchived = 2, object.Booked = 3", object, err)
	}
	workbook := download("xlsx").body
	if _, err := zip.NewReader(bytes.NewReader([]byte(workbook)), int64(len(workbook))); err != nil {
		t.Errorf("the workbook: %v", err)
	}
	if html := download("html").body; !strings.Contains(html, "Result: NOT COMPLETE") || !strings.HasSuffix(strings.TrimSpace(html), "</html>") {
		t.Errorf("the page to read: %s", html)
	}
	a := reader.send("/report", "/report", url.Values{"form": {"html"}, "year": {"2026"}, "month": {"10"}})
	kit.Holds(t, fmt.Sprintf("the report does not compare with the books: %d", a.code), a.body, "Against the books", "R-3")
}

// booksRefused asks what is not answered.
func (s *site) booksRefused(reader *reader, address string, october url.Values) {
	t := s.t
	t.Helper()
	if a := reader.send("/books", "/books", url.Values{"from": {"2026-09-30"}}); a.code != http.StatusBadRequest {
		t.Errorf("a day before books.from: %d", a.code)
	}
	if a := reader.send("/books", "/books", url.Values{"from": october["from"], "company": {"Acmee"}}); a.code != http.StatusNotFound || !strings.Contains(a.body, "No booked invoice is of this company.") || !strings.Contains(a.body, "Acme<") {
		t.Errorf("a company that the books do not have: %d %s", a.code, a.body)
	}
	if a := reader.do(http.MethodPost, "/books", url.Values{"from": october["from"]}); a.code != http.StatusForbidden {
		t.Errorf("without the form's token: %d", a.code)
	}
	probe := newReader(t, address)
	probe.signIn("probe")
	if a := probe.get("/books"); a.code != http.StatusForbidden || strings.Contains(probe.get("/").body, "/books") {
		t.Errorf("without the right to read: %d", a.code)
	}
	if a := probe.send("/", "/books", url.Values{"from": october["from"]}); a.code != http.StatusForbidden || strings.Contains(a.body, "R-3") {
		t.Errorf("without the right to read: %d %s", a.code, a.body)
	}
	s.move("custody", "custody.away")
	for _, form := range []string{"", "csv"} {
		a := reader.send("/books", "/books", url.Values{"from": october["from"], "form": {form}})
		if a.code != http.StatusServiceUnavailable || !strings.Contains(a.body, "the custody folder is not there") || a.header.Get("Content-Disposition") != "" {
			t.Errorf("without the custody: %d %s", a.code, a.body)
		}
	}
	s.move("custody.away", "custody")
}
