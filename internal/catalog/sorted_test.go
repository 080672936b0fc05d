package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
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
	return f
}

// A list by the catalog is the list by the ledger, in each order, either way round, in parts of any size: over random documents, with a
// catalog that is complete and with one that does not have the latest changes yet.
func TestListSorted_I32_AsTheLedgerSorts(t *testing.T) {
	byLedger := func(w *world) *Catalog { return New(Config{Ledger: w.led, Log: w.config().Log}) }
	seeds := uint64(6)
	if testing.Short() || raceEnabled {
		seeds = 2
	}
	listed := 0
	for seed := range seeds {
		w := newWorld(t, 100+seed)
		w.hasPDFs = true
		c := New(w.config())
		if err := c.rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, _, err := c.openFile(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for round := range 8 {
			w.goOn(40)
			if round%2 == 0 {
				if err := c.catchUp(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			for _, by := range []Order{BySeen, ByArchived, ByFolder, ByDrop, ByState, BySize, ByDelivered} {
				for _, reverse := range []bool{false, true} {
					filter, s, part, limit := w.randomFilter(), Sorting{by, reverse}, 1+w.rng.IntN(40), 1+w.rng.IntN(400)
					got, want := w.listSorted(c, filter, s, part, limit), w.listSorted(byLedger(w), filter, s, 1000, limit)
					if !slices.Equal(got, want) {
						t.Fatalf("seed %d, round %d, %+v, %+v, parts of %d, %d of them:\n%v, want\n%v", seed, round, filter, s, part, limit, got, want)
					}
					if again := w.listSorted(byLedger(w), filter, s, part, limit); !slices.Equal(again, want) {
						t.Fatalf("by the ledger alone, %+v in parts of %d: %v, want %v", s, part, again, want)
					}
					listed += len(got)
				}
			}
		}
		if err := c.closeFile(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if log := w.log.String(); log != "" {
			t.Errorf("the ledger was read instead:\n%s", log)
		}
	}
	if listed < int(seeds)*500 {
		t.Errorf("%d listed: the lists show nothing", listed)
	}
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
	if err := c.rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, _, err := c.openFile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.closeFile(t.Context(), f)
	for _, s := range []Sorting{{ByArchived, false}, {ByFolder, true}, {ByDrop, false}, {ByState, true}, {BySize, false}, {BySeen, true}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			reads.entries = 0
			if got := w.listSorted(c, Filter{Vault: "V1"}, s, 21, 20); len(got) != 20 || reads.entries > 21 {
				t.Errorf("%d listed, %d entries read\n%s", len(got), reads.entries, w.log)
			}
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
