package main_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
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
	kit.Await(t, "two extracts to be held", func() bool {
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
		kit.Holds(t, fmt.Sprint(a.code), a.body, want)
	}
	link := regexp.MustCompile(`<a href="(/document/[0-9a-z]+)">`).FindStringSubmatch(a.body)
	kit.Check(t, link != nil && strings.Contains(reader.get(link[1]).body, "Huber R-2"),
		"%v does not lead to the document that was rejected", link)
	s.booksAsFiles(reader, october)
	s.booksRefused(reader, address, october)
	kit.Len(t, "len(v)", emu.Violations(), 0)
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
	got := download("csv").body
	kit.Check(t, err == nil && got == string(want), "the page gives\n%s, the command\n%s (%v)", got, want, err)
	semicolons := csv.NewReader(strings.NewReader(strings.TrimPrefix(download("csv-semicolon").body, "\ufeff")))
	semicolons.Comma = ';'
	kit.Len(t, "len(rows)", kit.Value(semicolons.ReadAll())(t), 5)
	var object struct{ NotArchived, Booked int }
	if err := json.Unmarshal([]byte(download("json").body), &object); err != nil || object.NotArchived != 2 || object.Booked != 3 {
		t.Errorf("%+v, %v, want no error, object.NotArchived = 2, object.Booked = 3", object, err)
	}
	workbook := download("xlsx").body
	kit.Want(t, "the workbook", kit.Err(zip.NewReader(bytes.NewReader([]byte(workbook)), int64(len(workbook)))), nil)
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
	kit.Want(t, "a day before books.from",
		reader.send("/books", "/books", url.Values{"from": {"2026-09-30"}}).code, http.StatusBadRequest)
	if a := reader.send("/books", "/books", url.Values{"from": october["from"], "company": {"Acmee"}}); a.code != http.StatusNotFound || !strings.Contains(a.body, "No booked invoice is of this company.") || !strings.Contains(a.body, "Acme<") {
		t.Errorf("a company that the books do not have: %d %s", a.code, a.body)
	}
	kit.Want(t, "without the form's token",
		reader.do(http.MethodPost, "/books", url.Values{"from": october["from"]}).code, http.StatusForbidden)
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

// A failed download shows the visitor its true reason: switched-off downloads
// end with the switch rather than with a month, and a full disk of ours is our
// own fault.
func TestPages_I26_DownloadThatFailedIsToldAsItWas(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		old, text string // of the configuration
		fault     emulator.Fault
		says      string
		status    int
	}{
		"SwitchedOff": {"downloads_per_month: 2", "downloads_per_month: 0", emulator.Fault{}, "Downloads are switched off.", http.StatusForbidden},
		"UsedUp":      {"downloads_per_month: 2", "downloads_per_month: 1", emulator.Fault{}, "The downloads of this month are used up.", http.StatusTooManyRequests},
		"NoRoom":      {"min_free: 1MB", "min_free: 9000TB", emulator.Fault{}, "There is no room for the download on the disk of vaultd.", http.StatusInsufficientStorage},
		"NotThere":    {"", "", emulator.Fault{Kind: emulator.Status, Status: http.StatusNotFound}, "The archive did not deliver the document.", http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			emu, s := served(t, emulator.Config{ArchiveMax: 50 * time.Millisecond}, fast)
			address := s.withPages()
			s.add("acme", "otto", 1)
			s.must(0, "run", "--once", "--wait")
			var row1 struct{ Key string }
			kit.Must(t, json.Unmarshal([]byte(s.must(0, "list", "--json")), &row1))
			if name == "UsedUp" {
				s.must(0, "fetch", "otto-0", "-o", filepath.Join(s.dir, "got.zip"))
			}
			if row.old != "" {
				s.edit(row.old, row.text)
			}
			err := emu.SetFaults(emulator.Faults{Rules: []emulator.Rule{{Op: "download", Rate: 1, Fault: row.fault}}})
			kit.Need(t, err == nil || row.fault == (emulator.Fault{}), "error: %v", err)
			s.begin()
			awaitPort(t, address)
			anna := newReader(t, address)
			anna.signIn("anna")
			a := anna.send("/report", "/document/"+row1.Key+"/download", url.Values{})
			kit.Check(t, a.code == row.status && strings.Contains(a.body, row.says),
				"%d, want %d and %q: %s", a.code, row.status, row.says, a.body)
		})
	}
}

// A download leaves the room that the work needs: it is refused where that is
// used up, and ends where it runs out.
func TestDownload_I21_LeavesRoomForTheWork(t *testing.T) {
	if !apart(t) {
		return
	}
	s := newShelf(t)
	stored(t, s, []byte("PK"))
	sent := 0
	s.archiveIs(func(w http.ResponseWriter, _ *http.Request) {
		part := append([]byte("PK\x03\x04"), make([]byte, 1<<20)...)
		for sent = 1; sent < 200; sent++ {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	kit.Must(t, s.ledger.Close())
	dir := filepath.Join(t.TempDir(), "state")
	kit.Must(t, os.Mkdir(dir, 0o700))
	small(t, dir, "size=120m")
	copyFiles(t, s.cfg.StateDir, dir)
	s.edit(s.cfg.StateDir, dir)
	s.edit("drops:", "spool: {min_free: 60MB}\ndrops:")
	fetch := func() (string, int) {
		_, errs, code := runHere("--config", s.config, "fetch", "Müller 4711", "-o", filepath.Join(t.TempDir(), "x.zip"))
		return errs, code
	}
	if errs, code := fetch(); code == exitDone || sent == 0 || sent > 100 || !strings.Contains(errs, "min_free") {
		t.Errorf("a disk that becomes full: exit %d after %d MB: %s", code, sent, errs)
	}
	s.edit("min_free: 60MB", "min_free: 500MB")
	sent = 0
	if errs, code := fetch(); code == exitDone || sent != 0 || !strings.Contains(errs, "nothing was downloaded") {
		t.Errorf("with a full disk: exit %d after %d MB: %s", code, sent, errs)
	}
}
