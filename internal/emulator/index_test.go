package emulator

import (
	"encoding/json"
	"fmt"
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
