package main_test

import (
	"encoding/csv"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// A folder that was refused, and one that repeats another, are found by the number that their sidecar says; whoever sees it
// sees that nobody checked it.
func TestRefusedAndDuplicate_AreFoundAndMarked(t *testing.T) {
	t.Parallel()
	emu, s := served(t, emulator.Config{ArchiveMax: 100 * time.Millisecond}, fast+"\ntime_zone: UTC")
	once := func(want int) {
		t.Helper()
		s.must(want, "run", "--once", "--wait")
	}
	pdf := map[string][]byte{"rechnung.pdf": []byte("%PDF-1.4\n%%EOF\n")}
	invoice := map[string]any{"documentType": "Invoice", "documentId": "D9", "documentDate": "2026-10-31", "recipientName": "Acme GmbH", "amount": "119.00", "currencyCode": "EUR"}
	s.drop("acme", "Otto 9", pdf, invoice)
	once(exitDone)
	s.drop("acme", "Otto 9 again", pdf, invoice)
	once(exitDone)
	s.drop("acme", "Huber 88", pdf, map[string]any{"documentType": "Invoice", "documentId": "D1", "documentDate": "31.10.2026", "senderName": "Huber & Söhne",
		"recipientIds": []string{"DE999"}, "amount": 4711.11, "currencyCode": "EUR"})
	once(exitPerson)

	s.foundAndMarked(t)
	s.audited(t)
	s.namesTheFirst(t, emu)
}

// containsAll holds what a command says against the texts that must be in it.
func (s *site) containsAll(t *testing.T, want []string, args ...string) {
	t.Helper()
	out, _ := s.vaultd(args...)
	for _, w := range want {
		kit.Check(t, strings.Contains(out, w), "vaultd %v does not say %q:\n%s", args, w, out)
	}
}

func (s *site) foundAndMarked(t *testing.T) {
	t.Helper()
	for _, words := range []string{"D1", "huber söhne", "DE999"} {
		s.containsAll(t, []string{"Huber 88 (acme)  rejected", "  as read, refused:\n", "documentId     D1\n", "documentDate   31.10.2026\n", "amount         4711.11\n"}, "find", words)
	}
	s.containsAll(t, []string{"METADATA AS READ, REFUSED (as written in the sidecar)", "documentDate       31.10.2026\n"}, "show", "Huber 88")
	s.containsAll(t, []string{"D1 (as read)", "D9 (as read)"}, "list")
	s.containsAll(t, []string{`"folder":"Huber 88","documentId":"D1",`, `"asRead":{"documentType":"Invoice","documentId":"D1","documentDate":"31.10.2026"`,
		`"folder":"Otto 9","documentId":"D9",`}, "list", "--json")
	out, _ := s.vaultd("find", "D9", "--json")
	kit.Check(t, strings.Count(out, "\n") == 2 && strings.Count(out, `"asRead":null`) == 1,
		"the archived one and the duplicate are not told apart:\n%s", out)
}

// audited looks into the three forms of the report: what was only read is shown and marked, and no sum counts it.
func (s *site) audited(t *testing.T) {
	t.Helper()
	read := func(name string) string {
		t.Helper()
		file := filepath.Join(s.dir, name)
		out, code := s.vaultd("audit", "-o", file)
		kit.Need(t, code == exitDifferences, "exit %d: %s", code, out)
		text := kit.Value(os.ReadFile(file))(t)
		return string(text)
	}
	var all struct {
		Sums []struct {
			Documents int
			Total     string
		}
		Documents []struct {
			Folder, State string
			DocumentID    string  `json:"documentId"`
			Recipient     *string `json:"recipientName"`
			Amount        *string
			AsRead        *struct{ Amount, DocumentDate string }
			First         *struct{ Folder, DocumentID, BumID, Dest string }
		}
	}
	kit.Must(t, json.Unmarshal([]byte(read("a.json")), &all))
	kit.Check(t, len(all.Sums) == 1 && all.Sums[0].Documents == 1 && all.Sums[0].Total == "119.00",
		"the sums are %+v", all.Sums)
	for _, d := range all.Documents {
		archived := d.State == "archived"
		if (d.AsRead == nil) != archived || (d.Amount != nil) != archived || (d.Recipient != nil) != archived || (d.First != nil) != (d.State == "duplicate") {
			t.Errorf("%+v, want (d.AsRead == nil) = %v, (d.Amount != nil) = %v, (d.Recipient != nil) = %v, (d.First != nil) = %v", d, archived, archived, archived, (d.State == "duplicate"))
		}
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(read("a.csv"), "\ufeff"))).ReadAll()
	kit.Need(t, err == nil && len(rows) == 4, "rows = %v, err = %v, want no error, len(rows) = 4", rows, err)
	refused := strings.Join(rows[1], "|")
	kit.Holds(t, "refused", refused, "|D1|Invoice|31.10.2026|Huber & Söhne|as read: 4711.11|EUR|rejected|", "|DE999|as read, refused|")
	page := read("a.html")
	list, _ := s.vaultd("show", "Otto 9")
	sum := regexp.MustCompile(`SHA-256 ([0-9a-f]{64})\n`).FindStringSubmatch(list)[1] // of the ZIP
	kit.Holds(t, "page", page,
		`<bdi>D1</bdi> <small>as read, refused</small>`, `<td>Invoice</td><td>31.10.2026</td>`, `<bdi>DE999</bdi>`, `<bdi>Acme GmbH</bdi>`, sum,
	)
	s.linksWork(t, page, s.dir)
	s.linksWork(t, read("acme/_archived/a.html"), filepath.Join(s.dir, "acme/_archived"))
	page, _ = s.vaultd("audit", "--format", "html")
	kit.Check(t, !strings.Contains(page, "href"), "a page of which nobody knows where it will lie has a link")
}

// linksWork opens what the links of a page lead to.
func (s *site) linksWork(t *testing.T, page, lies string) {
	t.Helper()
	links := regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1)
	kit.Need(t, len(links) == 1, "%d links in the page in %s", len(links), lies)
	link := strings.ReplaceAll(html.UnescapeString(links[0][1]), "%20", " ")
	text, err := os.ReadFile(filepath.Join(lies, link))
	kit.Check(t, err == nil && strings.Contains(string(text), "D9"), "%q does not lead to the receipt: %v", link, err)
}

// namesTheFirst looks for the archived folder wherever people read of its duplicate.
func (s *site) namesTheFirst(t *testing.T, emu *emulator.Server) {
	t.Helper()
	var first struct{ BumID, Key string }
	out, _ := s.vaultd("show", "Otto 9", "--json")
	err := json.Unmarshal([]byte(out), &first)
	kit.Need(t, err == nil && first.BumID != "", `err = %v, out = %v, want no error, first.BumID other than ""`, err, out)
	place := "_archived/" + time.Now().UTC().Format("2006-01") + "/Otto 9"
	want := []string{`"Otto 9"`, "D9", first.BumID, place, time.Now().UTC().Format("2 Jan 2006")}
	s.containsAll(t, want, "list", "--state", "duplicate")
	s.containsAll(t, want, "find", "Otto 9 again")
	s.containsAll(t, want, "audit", "--state", "duplicate", "--format", "json", "-o", "-")
	shown := append(want[:4:4], time.Now().UTC().Format("2006-01-02"), first.Key)
	s.containsAll(t, shown, "show", "Otto 9 again")
	s.containsAll(t, shown, "why", "Otto 9 again")
	text := kit.Value(os.ReadFile(filepath.Join(s.dir, "acme/_duplicates/Otto 9 again/_REASON.txt")))(t)
	reason := notepad(text)
	want[3] = strings.ReplaceAll(place, "/", `\`)
	kit.Check(t, strings.HasPrefix(reason, "DUPLICATE. These files were archived on "),
		`reason = %v, want reason that begins with "DUPLICATE. These files were archived on "`, reason)
	for _, w := range want {
		kit.Holds(t, "_REASON.txt", reason, w)
	}
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
}
