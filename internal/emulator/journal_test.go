package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// What was answered is known after a restart, also when the last line was torn by the end of the process.
func TestRestartForgetsNothing(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ArchiveMin, c.ArchiveMax = time.Hour, 9*time.Hour })
	for n := range 5 {
		ticket := w.register(n, `,"amount":1.10`)
		if n > 0 {
			w.mustPut(ticket, zipOf(strings.Repeat("a", n)))
		}
		w.now = w.now.Add(time.Minute)
	}
	open := w.register(9)
	w.register(9, " ")
	var before []RegistrationRecord
	for range 3 {
		before = w.Registrations()
		violations := w.Violations()
		w.close()
		path := filepath.Join(w.cfg.Dir, "journal.jsonl")
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(`{"kind":"registered","bum`)
			f.Close()
		}
		kit.Must(t, err)
		w.Server = nil
		w.restart()
		after := w.Registrations()
		kit.Check(t, slices.Equal(before, after) && slices.Equal(violations, w.Violations()), "before %+v\nafter %+v", before, after)
		w.register(int(w.now.Unix() % 1000)) // new ids do not repeat old ones
		w.now = w.now.Add(3 * time.Minute)
	}
	w.mustPut(open, zipOf("later")) // a URL outlives the server that gave it
	w.now = w.now.Add(24 * time.Hour)
	_, ids := w.walk("size=2")
	kit.Check(t, len(ids) == 5, "archived in the end: %v", ids)
	bumIDs := map[string]bool{}
	for _, s := range w.Registrations() {
		bumIDs[s.BumID] = true
	}
	kit.Want(t, "a bumId came twice", len(bumIDs), len(w.Registrations()))
}

// I7 secrecy: the journal and the answers to errors hold no credential, no signature and no package.
func TestClaim_I7_JournalHoldsNoSecret(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Readings.Download = "redirect" })
	ticket := w.register(1)
	w.mustPut(ticket, zipOf("the content of a file"))
	w.call("GET", docs+"/"+ticket.bumID, "")
	w.token("x")
	w.put(ticket, "x", "Content-MD5: bad")
	raw := kit.Value(os.ReadFile(filepath.Join(w.cfg.Dir, "journal.jsonl")))(t)
	for _, secret := range []string{"X-Amz", "s3=cret", "cl%secret", w.keys.SecretKey, w.keys.SessionToken, "the content", "access_token"} {
		kit.Check(t, !bytes.Contains(raw, []byte(secret)), "the journal holds %q", secret)
	}
	var calls, stored int
	for l := range bytes.Lines(raw) {
		var rec map[string]any
		err := json.Unmarshal(l, &rec)
		kit.Need(t, err == nil, "line %s: %v", l, err)
		if rec["kind"] == "call" {
			calls++
		}
		if rec["kind"] == "call" && rec["op"] == "upload" && rec["sha256"] == digest([]byte(zipOf("the content of a file"))) && rec["status"] == 200.0 {
			stored++
		}
	}
	kit.Check(t, calls == 5 && stored == 1, "%d calls, %d stored: %s", calls, stored, raw)
}

// API and Store can stand on two listeners; neither serves the other's paths.
func TestTwoHosts(t *testing.T) {
	var store *httptest.Server
	w := newWorld(t, func(c *Config) { c.StoreURL = func() string { return store.URL } })
	store = httptest.NewServer(w.Store())
	defer store.Close()
	api := httptest.NewServer(w.API())
	defer api.Close()
	req := w.request("POST", api.URL+docs, batch(document(1)), "Content-Type: application/json")
	req.SetBasicAuth("user", "s3=cret/+")
	ticket := w.tickets(wireSend(t, req))[0]
	a := wireSend(t, w.request("PUT", ticket.url, zipOf("a")))
	kit.Check(t, a.status == 200, "PUT: %+v", a)
	a = wireSend(t, w.request("PUT", strings.Replace(ticket.url, store.URL, api.URL, 1), zipOf("a")))
	kit.Check(t, a.status == 502, "PUT at the API: %+v", a)
	a = wireSend(t, w.request("GET", store.URL+"/v1/vaults", ""))
	kit.Check(t, a.status == http.StatusForbidden, "API call at the store: %+v", a)
	w.wantNoViolations()
}

// sevenArchived is a world with seven documents in its index.
func sevenArchived(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	for n := range 7 {
		w.mustPut(w.register(n), zipOf("a"))
		w.now = w.now.Add(time.Second)
	}
	return w
}

// pageAt gives a page as its first document, how many it has, its found (null: not told) and its cursor.
func (w *world) pageAt(cursor string) string {
	w.Helper()
	var p struct {
		Cursor    string
		Documents []map[string]any
		Found     json.RawMessage
	}
	w.decode(w.call("GET", "/v1/vaults/V1/index?size=3&sort=archiveDate+asc&cursor="+cursor, ""), &p)
	first := "none"
	if len(p.Documents) > 0 {
		first = p.Documents[0]["documentId"].(string)
	}
	return fmt.Sprintf("%s %d %s %s", first, len(p.Documents), p.Found, p.Cursor)
}

func (w *world) read(r Readings) {
	w.Helper()
	kit.Must(w, w.SetReadings(r))
}

// Each reading of what an index page gives as found, on the second page of three.
func TestIndexFoundReadings(t *testing.T) {
	w := sevenArchived(t)
	for found, want := range map[string]string{"": "7", "all": "7", "none": "", "page": "3", "read": "6", "left": "4", "zero": "0", "negative": "-1", "more": "1007"} {
		w.read(Readings{IndexFound: found})
		kit.Want(t, fmt.Sprintf("%q", found), w.pageAt("at-3"), "INV-3 3 "+want+" at-6")
	}
	w.read(Readings{IndexPage: 2, NumbersAsStrings: true})
	kit.Want(t, "smaller pages", w.pageAt("initial"), `INV-0 2 "7" at-2`)
	for _, r := range []Readings{{IndexFound: "some"}, {IndexPage: -1}} {
		kit.Check(t, w.SetReadings(r) != nil, "%+v was taken", r)
	}
}

// Each fault of an index page, and where its cursor leads.
func TestIndexFaults(t *testing.T) {
	for kind, want := range map[Kind][]string{
		ShortPage:  {"INV-0 1 7 initial", "INV-0 3 7 at-3"},
		EmptyPage:  {"none 0 7 at-0.1", "INV-0 3 7 at-3"},
		RepeatPage: {"INV-0 3 7 at-0.1", "INV-0 3 7 at-3"},
	} {
		w := sevenArchived(t)
		w.at("index", 1, Fault{Kind: kind})
		cursor := "initial"
		for _, one := range want {
			got := w.pageAt(cursor)
			kit.Want(t, string(kind), got, one)
			kit.Value(fmt.Sscanf(got, "%s %s %s %s", new(string), new(string), new(string), &cursor))(t)
		}
	}
	w := sevenArchived(t)
	kit.Must(t, w.SetFaults(Faults{Rules: []Rule{{Op: "index", Rate: 1, Fault: Fault{Kind: CirclePage}}}}))
	for cursor, want := range map[string]string{"initial": "INV-0 3 7 at-3", "at-3": "INV-3 3 7 at-0", "at-0": "INV-0 3 7 at-3"} {
		kit.Want(t, "the next page", w.pageAt(cursor), want)
	}
}

// A document whose retention is over is gone from index and status list; its
// bumId and its package are unknown.
func TestRetentionReading(t *testing.T) {
	w := newWorld(t, nil)
	ticket := w.register(1)
	w.mustPut(ticket, zipOf("a"))
	unused := w.register(2) // still unarchived: it stays whole
	w.now = w.now.Add(time.Hour)
	w.read(Readings{Retention: 24 * time.Hour})
	shown := func() (list, index bool, status, download int) {
		list = strings.Contains(w.call("GET", docs+"/status", "").body, ticket.bumID)
		index = strings.Contains(w.call("GET", "/v1/vaults/V1/index", "").body, ticket.bumID)
		return list, index, w.call("GET", docs+"/"+ticket.bumID+"/status", "").status, w.call("GET", docs+"/"+ticket.bumID, "").status
	}
	since := w.Registrations()[0].ArchivedAt
	for _, row := range []struct {
		at    time.Duration // after its success
		there bool
	}{{time.Hour, true}, {24*time.Hour - 1, true}, {24 * time.Hour, false}, {365 * 24 * time.Hour, false}} {
		w.now = since.Add(row.at)
		list, index, status, download := shown()
		if list != row.there || index != row.there || (status == 200) != row.there || (download == 200) != row.there || !row.there && (status != 404 || download != 404) {
			t.Errorf("%v after its success: in the list %t, in the index %t, status %d, download %d", row.at, list, index, status, download)
		}
	}
	kit.Holds(t, "the answer", w.call("GET", docs+"/status", "").body, unused.bumID)
	kit.Check(t, w.SetReadings(Readings{Retention: -1}) != nil, "a retention of less than nothing was taken")
}
