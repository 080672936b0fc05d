package emulator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

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

// A document whose retention is over is in neither index nor status list; its bumId is unknown, and so is its package.
func TestRetentionReading(t *testing.T) {
	w := newWorld(t, nil)
	ticket := w.register(1)
	w.mustPut(ticket, zipOf("a"))
	unused := w.register(2) // never archived: nothing of it ends
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
