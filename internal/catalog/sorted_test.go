package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// listSorted lists in an order, reading so many ranks at once, and stops after a limit.
func (w *world) listSorted(c *Catalog, f Filter, s Sorting, part, limit int) (keys []archive.Key) {
	w.t.Helper()
	err := c.ListSorted(context.Background(), f, s, part, neverTold, func(e ledger.Entry) error {
		if len(keys) == limit {
			return errEnough
		}
		keys = append(keys, e.Key)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		w.t.Fatal(err)
	}
	return keys
}

// randomFilter selects some entries, or all.
func (w *world) randomFilter() Filter {
	var f Filter
	for _, s := range ledger.States() {
		if w.rng.IntN(6) == 0 {
			f.States = append(f.States, s)
		}
	}
	f.Drop = []string{"", "", "acme", "beta", "scans"}[w.rng.IntN(5)]
	f.Vault = []string{"", "", "V1", "V2"}[w.rng.IntN(4)]
	f.Route = []ledger.Route{"", "", ledger.Vault, ledger.PDF}[w.rng.IntN(4)]
	if w.rng.IntN(3) == 0 {
		f.Since = began.Add(time.Duration(w.rng.IntN(w.n)) * time.Second)
	}
	if w.rng.IntN(3) == 0 {
		f.Until = began.Add(time.Duration(w.rng.IntN(w.n)) * time.Second)
	}
	f.Type = []string{"", "", "", "", "", "Invoice", "CreditNote"}[w.rng.IntN(7)]
	if w.rng.IntN(7) == 0 {
		f.Number = w.shortQuery()
	}
	if w.rng.IntN(7) == 0 {
		f.Sender = w.shortQuery()
	}
	return f
}

// shortQuery returns a word of one or two pieces, which some texts have.
func (w *world) shortQuery() Query {
	text := syllables[w.rng.IntN(len(syllables))]
	if w.rng.IntN(3) == 0 {
		text += syllables[w.rng.IntN(len(syllables))]
	}
	return NewQuery(strings.Fields(text))
}

// A list by the catalog is the list by the ledger, in each order, either way round, in parts of any size: over random documents, with a
// catalog that is complete and with one that does not have the latest changes yet.
func TestListSorted_I32_AsTheLedgerSorts(t *testing.T) {
	byLedger := func(w *world) *Catalog { return New(Config{Ledger: w.led, Log: w.config().Log}) }
	seeds := uint64(6)
	if kit.Sampled(t, "six random catalogs") {
		seeds = 2
	}
	listed := 0
	for seed := range seeds {
		w := newWorld(t, 100+seed)
		w.hasPDFs = true
		c := New(w.config())
		kit.Must(t, c.rebuild(t.Context()))
		f, _, err := c.openFile(t.Context())
		kit.Must(t, err)
		for round := range 8 {
			w.goOn(40)
			if round%2 == 0 {
				kit.Must(t, c.catchUp(t.Context(), f))
			}
			for _, by := range []Order{BySeen, ByArchived, ByFolder, ByDrop, ByState, BySize, ByDelivered, ByNumber, ByDate, BySender, ByAmount} {
				for _, reverse := range []bool{false, true} {
					filter, s, part, limit := w.randomFilter(), Sorting{By: by, Reverse: reverse}, 1+w.rng.IntN(40), 1+w.rng.IntN(400)
					got, want := w.listSorted(c, filter, s, part, limit), w.listSorted(byLedger(w), filter, s, 1000, limit)
					kit.Need(t, slices.Equal(got, want),
						"seed %d, round %d, %+v, %+v, parts of %d, %d of them:\n%v, want\n%v", seed, round, filter, s, part, limit, got, want)
					again := w.listSorted(byLedger(w), filter, s, part, limit)
					kit.Need(t, slices.Equal(again, want), "by the ledger alone, %+v in parts of %d: %v, want %v", s, part, again, want)
					listed += len(got)
					if w.rng.IntN(4) == 0 {
						w.comparePages(c, filter, s, byLedger(w))
					}
				}
			}
		}
		kit.Must(t, c.closeFile(t.Context(), f))
		kit.Want(t, "the log", w.log.String(), "")
	}
	kit.Check(t, listed >= int(seeds)*400, "%d listed: the lists show nothing", listed)
}

// comparePages holds the pages of a list, each behind the last entry of the one before, against the whole list: nothing twice, nothing left out.
func (w *world) comparePages(c *Catalog, f Filter, s Sorting, byLedger *Catalog) {
	w.t.Helper()
	want := w.listSorted(byLedger, f, s, 1000, 100_000)
	var got []archive.Key
	for size := 1 + w.rng.IntN(40); ; {
		page := w.listSorted(c, f, s, size+1, size)
		if got = append(got, page...); len(page) < size {
			break
		}
		s.After = page[size-1]
		rest := w.listSorted(byLedger, f, s, 1000, size)
		kit.Need(w.t, slices.Equal(rest, want[len(got):min(len(want), len(got)+size)]), "by the ledger alone behind %s, %+v, %+v: %v", s.After, f, s, rest)
	}
	kit.Need(w.t, slices.Equal(got, want), "%+v, %+v, in pages:\n%v, want\n%v", f, s, got, want)
}

// What is larger, later or earlier in the alphabet is so in the list, and what has no such value comes last either way.
func TestListSorted_ByWhatTheDocumentSays(t *testing.T) {
	w := newWorld(t, 44)
	texts, folders := map[archive.Key]archive.AsRead{}, []string{"Öb", "öa", "x", "X1"} // capitals do not count, whatever the letter
	for i, read := range []archive.AsRead{
		{Number: "b2", SenderName: "Öl AG", Date: "2026-02-01", Amount: "9.5", Currency: "EUR"},
		{Number: "A1", SenderName: "zebra", Date: "1969-12-31", Amount: "-10", Currency: "USD"},
		{Number: "", SenderName: "", Date: "31.12.2026", Amount: "1.234,56"},
		{Number: "B10", SenderName: "Acme", Date: "2026-10-01", Amount: "10", Currency: "JPY"},
	} {
		x := &life{at: began.Add(time.Duration(i) * time.Second)}
		x.key = archive.NewKey(x.at)
		x.doc = &ledger.Document{AsRead: read}
		x.evs = [][]ledger.Event{{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: folders[i], NotBefore: x.at}}, {ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}}}
		w.goOnWith(x)
		w.goOnWith(x)
		texts[x.key] = read
	}
	c, _ := w.made(t)
	for name, row := range map[string]struct {
		s    Sorting
		want string
	}{
		"Folder":        {Sorting{By: ByFolder}, "- B10 A1 b2"},
		"Number":        {Sorting{By: ByNumber}, "A1 B10 b2 -"},
		"NumberReverse": {Sorting{By: ByNumber, Reverse: true}, "b2 B10 A1 -"},
		"Date":          {Sorting{By: ByDate}, "B10 b2 A1 -"},
		"Sender":        {Sorting{By: BySender}, "B10 A1 b2 -"},
		"Amount":        {Sorting{By: ByAmount}, "B10 b2 A1 -"},
		"AmountReverse": {Sorting{By: ByAmount, Reverse: true}, "A1 b2 B10 -"},
	} {
		for _, by := range []*Catalog{c, New(Config{Ledger: w.led, Log: w.config().Log})} {
			var got []string
			for _, k := range w.listSorted(by, Filter{}, row.s, 10, 10) {
				got = append(got, cmp.Or(texts[k].Number, "-"))
			}
			kit.Want(t, name, strings.Join(got, " "), row.want)
		}
	}
	err := c.ListSorted(t.Context(), Filter{}, Sorting{After: archive.Key{1}}, 10, neverTold, nil)
	kit.Check(t, err != nil && strings.Contains(err.Error(), "no entry has the key"), `err = %v, want an error, err with "no entry has the key"`, err)
}

// A sorted list by the catalog reads the entries that it gives, and no others.
func TestListSorted_I32_ReadsWhatItGives(t *testing.T) {
	w := newWorld(t, 3)
	for range 10 {
		w.goOn(60)
	}
	cfg := w.config()
	reads := &countedLedger{Ledger: cfg.Ledger}
	cfg.Ledger = reads
	c := New(cfg)
	kit.Must(t, c.rebuild(t.Context()))
	f, _, err := c.openFile(t.Context())
	kit.Must(t, err)
	defer c.closeFile(t.Context(), f)
	for _, s := range []Sorting{{By: ByArchived}, {By: ByFolder, Reverse: true}, {By: ByDrop}, {By: ByState, Reverse: true}, {By: BySize}, {By: BySeen, Reverse: true}, {By: ByNumber}, {By: BySender}, {By: ByAmount}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			reads.entries = 0
			got := w.listSorted(c, Filter{Vault: "V1"}, s, 21, 20)
			kit.Check(t, len(got) == 20 && reads.entries <= 21, "%d listed, %d entries read\n%s", len(got), reads.entries, w.log)
		})
	}
}

// countedLedger counts the entries that are read.
type countedLedger struct {
	Ledger
	entries int
}

func (l *countedLedger) Entry(k archive.Key) (ledger.Entry, bool, error) {
	l.entries++
	return l.Ledger.Entry(k)
}

func (l *countedLedger) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	return l.Ledger.EntriesNewestFirst(func(e ledger.Entry) error { l.entries++; return fn(e) })
}

func (l *countedLedger) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	return l.Ledger.EntriesOldestFirst(func(e ledger.Entry) error { l.entries++; return fn(e) })
}
