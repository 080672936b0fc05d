package catalog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// walk finds what a query finds by reading the whole ledger.
func (w *world) walk(q Query) (keys []archive.Key) {
	w.t.Helper()
	kit.Must(w.t, w.led.EntriesNewestFirst(func(e ledger.Entry) error {
		doc, _, err := w.led.Document(e.Key)
		if err != nil {
			return err
		}
		hit, err := q.Match(e, doc)
		if hit != nil {
			keys = append(keys, e.Key)
		}
		return err
	}))
	return keys
}

func neverTold(string) {}

// The catalog finds what reading the whole ledger finds, in the same order: over random documents in any spelling, with keys that come
// late, while the ledger is ahead of the catalog, and after the catalog was made anew.
func TestSearch_I32_FindsWhatTheLedgerHolds(t *testing.T) {
	seeds, queries := uint64(5), 40
	switch {
	case kit.Race:
		seeds, queries = 1, 6
	case kit.Sampled(t, "five random catalogs"):
		seeds, queries = 2, 10
	}
	found := 0
	for seed := range seeds {
		w := newWorld(t, seed)
		w.hasPDFs = seed%2 == 1
		c := New(w.config())
		kit.Must(t, c.makeFile(t.Context()))
		for round := range 6 {
			for range 4 {
				w.goOn(40)
				c.mustFollow(t)
			}
			w.goOn(20) // the catalog does not have these
			for range queries {
				words := w.query()
				q := NewQuery(words)
				want := w.walk(q)
				var got []archive.Key
				kit.Must(t, c.Search(t.Context(), q, archive.Key{}, neverTold, func(h Hit) error { got = append(got, h.Entry.Key); return nil }))
				kit.Need(t, slices.Equal(got, want),
					"seed %d, round %d, %q: found %v, want %v", seed, round, words, got, want)
				found += len(got)
				var pages []archive.Key
				for after := (archive.Key{}); ; after = pages[len(pages)-1] {
					n := 0
					err := c.Search(t.Context(), q, after, neverTold, func(h Hit) error {
						if n++; n > 7 {
							return errEnough
						}
						pages = append(pages, h.Entry.Key)
						return nil
					})
					if err != nil && !errors.Is(err, errEnough) {
						t.Fatal(err)
					}
					if err == nil {
						break
					}
				}
				kit.Need(t, slices.Equal(pages, want),
					"seed %d, round %d, %q: in pages %v, want %v", seed, round, words, pages, want)
				w.compareNamed(c)
				w.compareListed(c)
			}
			kit.Must(t, c.Close())
			if round == 3 {
				kit.Must(t, c.makeFile(t.Context()))
			}
		}
	}
	tried := int(seeds) * 6 * queries
	kit.Check(t, found >= tried, "%d found of %d: the queries show nothing", found, tried)
}

// farLedger has many lines more than its journal.
type farLedger struct{ Ledger }

func (l farLedger) Head() ledger.Head {
	h := l.Ledger.Head()
	h.N += 2 * mostBehind
	return h
}

// A catalog that stopped long ago gives the documents that it has, and says that others may be missing. A list of all needs no catalog.
func TestSearch_I32_StoppedLongAgo(t *testing.T) {
	w := grown(t, 10, 60)
	c := w.made(t)
	c.cfg.Ledger = farLedger{w.led}
	c.noteFault(errors.New("no room"), retryAfter)
	found := 0
	err := c.List(t.Context(), Filter{Drop: "acme"}, Sorting{}, pageRows, neverTold, func(ledger.Entry) error { found++; return nil })
	kit.Check(t, found > 0 && err != nil && err.Error() == "the answer is not complete: the catalog is not complete: no room", "%d found, %v", found, err)
	w.comparePages(c, Filter{}, Sorting{})
	w.comparePages(c, Filter{}, Sorting{Reverse: true})
}

// Keys that come late stand in their place, however many pages lie between.
func TestSearch_I32_NewestFirst(t *testing.T) {
	w := newWorld(t, 8)
	c := w.made(t)
	for range 10 {
		var cs []ledger.Change
		for range pageRows / 2 {
			at := began.Add(time.Duration(w.rng.IntN(1_000_000)) * time.Millisecond)
			cs = append(cs, ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{
				ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: "Rechnung 4711", NotBefore: at.Add(time.Minute)}}})
		}
		kit.Value(w.led.Apply(t.Context(), cs...))(t)
		c.mustFollow(t)
	}
	kit.Check(t, w.mustFind(c, "rechnung", "4711"), "the answer is not complete")
}

// compareListed lists what a filter selects.
func (w *world) compareListed(c *Catalog) {
	w.t.Helper()
	var f Filter
	for _, s := range ledger.States() {
		if w.rng.IntN(4) == 0 {
			f.States = append(f.States, s)
		}
	}
	f.Drop = []string{"", "acme", "beta"}[w.rng.IntN(3)]
	f.Vault = []string{"", "V1", "V2"}[w.rng.IntN(3)]
	if w.rng.IntN(2) == 0 {
		f.Since = began.Add(time.Duration(w.rng.IntN(w.n)) * time.Second)
	}
	if w.rng.IntN(2) == 0 {
		f.Until = began.Add(time.Duration(w.rng.IntN(w.n)) * time.Second)
	}
	add := func(to *[]archive.Key) func(ledger.Entry) error {
		return func(e ledger.Entry) error {
			if (len(f.States) == 0 || slices.Contains(f.States, e.State)) && (f.Drop == "" || f.Drop == e.Drop) && (f.Vault == "" || f.Vault == string(e.Vault)) &&
				!e.SeenAt.Before(f.Since) && (f.Until.IsZero() || e.SeenAt.Before(f.Until)) {
				*to = append(*to, e.Key)
			}
			return nil
		}
	}
	var got, want []archive.Key
	kit.Must(w.t, c.List(context.Background(), f, Sorting{}, pageRows, neverTold, add(&got)))
	kit.Must(w.t, w.led.EntriesNewestFirst(add(&want)))
	kit.Need(w.t, slices.Equal(got, want), "%+v: %v, want %v", f, got, want)
}

// compareNamed asks for an entry by one of its names.
func (w *world) compareNamed(c *Catalog) {
	w.t.Helper()
	x := w.texts[w.rng.IntN(len(w.texts))]
	switch w.rng.IntN(4) {
	case 0:
		x = strings.ToUpper(x)
	case 1:
		x = "_archived/2026-11/" + x
	case 2:
		x = "acme/" + x
	}
	if strings.Trim(x, "/") == "" {
		return
	}
	isNamed := func(e ledger.Entry) bool {
		return e.Folder == x || e.Dest == x || path.Join(e.Drop, e.Folder) == x || e.Dest != "" && path.Base(e.Dest) == x || strings.EqualFold(e.Folder, x)
	}
	var got, want []archive.Key
	add := func(to *[]archive.Key) func(ledger.Entry) error {
		return func(e ledger.Entry) error {
			if isNamed(e) {
				*to = append(*to, e.Key)
			}
			return nil
		}
	}
	kit.Must(w.t, c.FindNamed(context.Background(), x, neverTold, add(&got)))
	kit.Must(w.t, w.led.EntriesNewestFirst(add(&want)))
	kit.Need(w.t, slices.Equal(got, want), "named %q: %v, want %v", x, got, want)
}

// Words of one and two characters, words in the path of a folder, and words over its end are found.
func TestSearch_I32_ShortWordsAndPaths(t *testing.T) {
	w := grown(t, 9, 60)
	for range 6 {
		w.goOn(20)
	}
	x := w.newLife()
	x.evs[0] = []ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: "xq\uffff\U0010ffffzx", NotBefore: x.at.Add(time.Minute)}}
	w.goOnWith(x)
	c := w.made(t)
	for _, words := range [][]string{{"q\uffff"}, {"\uffff"}, {"\U0010ffff"}, {"\uffff\U0010ffff"}, {"\U0010ffffz"}, {"q\uffff\U0010ffff"}, {"7"}, {"ß"}, {"日"}, {"q"}, {"mu"}, {"qz"}, {"qz", "x"}, {"11"}, {"rejected"}, {"archived", "mu"}, {"2026-11"}, {"11/mu"}} {
		kit.Check(t, w.mustFind(c, words...), "%q: the answer is not complete", words)
	}
}

// Each text that is posted and that people remember finds its document, through
// the index and without it.
func TestMatch_I32_EachPostedText(t *testing.T) {
	meta := archive.Document{Type: "Invoice", Number: "RE-1", Date: "2026-11-03T00:00:00Z", SenderName: "Huber", SenderIDs: []string{"DE1"}, RecipientName: "Acme",
		BuyerReferenceID: "B-77", TradingPartner: "Kraus & Co", Parameters: []archive.Parameter{{Key: "project", Value: "Nordbahnhof"}, {Key: "order", Value: "PO 8812"}}}
	doc := ledger.Document{Metadata: meta.Metadata()}
	e := ledger.Entry{Route: ledger.Vault, Folder: "Scan 9"}
	r := kit.Value(newRow(e, doc))(t)
	index := fmt.Sprint(r.values(1, 1))
	for _, text := range r.parties() {
		index += foldedLines(text) + "\n"
	}
	for words, found := range map[string]bool{
		"re-1": true, "huber": true, "de1": true, "acme": true, "b-77": true, "kraus": true, "nordbahn": true, "PO 8812": true, "scan 9 b-77": true,
		"project": false, "b-78": false, "8812 other": false,
	} {
		q := NewQuery(strings.Fields(words))
		kit.Want(t, words+": found", kit.Value(q.Match(e, doc))(t) != nil, found)
		if !found {
			continue
		}
		for _, w := range q {
			kit.Holds(t, words+": the text of the row", index, w[0])
		}
	}
}

// I32: a document that comes late gives those behind it other numbers, each of
// them or none, also where one of them changes at the same time.
func TestSearch_I32_BehindALateOne(t *testing.T) {
	w := newWorld(t, 8)
	c := w.made(t)
	claim := func(at time.Time, name string) ledger.Change {
		return ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{
			ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: name, NotBefore: at.Add(time.Minute)}}}
	}
	var claims []ledger.Change
	for n := range 60 {
		claims = append(claims, claim(began.Add(time.Duration(n+100)*time.Second), fmt.Sprintf("Rechnung x%03dy", n)))
	}
	fifth := kit.Value(w.led.Apply(t.Context(), claims...))(t)[5].Entry
	c.mustFollow(t)
	follow := func(most int, at time.Time) error {
		refused := ledger.Change{Key: fifth.Key, Rev: fifth.Rev, At: archive.Instant{Wall: at}, Events: []ledger.Event{ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}}}
		kit.Value(w.led.Apply(t.Context(), claim(at, "Rechnung spät"), refused))(t)
		c.writing.Lock()
		defer c.writing.Unlock()
		c.file.mostBehindLate = most
		return c.follow(t.Context())
	}
	kit.Fails(t, "more behind it than get another number", follow(20, began), errOlder)
	kit.Must(t, follow(mostBehindLate, began))
	for n := range 60 {
		found := 0
		kit.Must(t, c.Search(t.Context(), NewQuery([]string{fmt.Sprintf("x%03dy", n)}), archive.Key{}, nil, func(Hit) error { found++; return nil }))
		kit.Want(t, fmt.Sprint("found of ", n), found, 1)
	}
}
