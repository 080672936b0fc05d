package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// listSorted lists in an order, reading so many ranks at once, and stops after a limit.
func (w *world) listSorted(c *Catalog, f Filter, s Sorting, part, limit int) (keys []archive.Key) {
	w.t.Helper()
	err := c.List(context.Background(), f, s, part, neverTold, func(e ledger.Entry) error {
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

// A list is the list of all entries of the ledger, in each order, either way round, in parts of any size: over random documents, with a
// catalog that is complete and with one that does not have the latest changes yet.
func TestListSorted_I32_AsTheLedgerSorts(t *testing.T) {
	seeds := uint64(6)
	if kit.Sampled(t, "six random catalogs") {
		seeds = 2
	}
	listed := 0
	for seed := range seeds {
		w := newWorld(t, 100+seed)
		w.hasPDFs = true
		c := w.made(t)
		for round := range 8 {
			w.goOn(40)
			if round%2 == 0 {
				c.mustFollow(t)
			}
			for _, by := range []Order{BySeen, ByArchived, ByFolder, ByDrop, ByState, BySize, ByDelivered, ByNumber, ByDate, BySender, ByAmount} {
				for _, reverse := range []bool{false, true} {
					filter, s, part, limit := w.randomFilter(), Sorting{By: by, Reverse: reverse}, 1+w.rng.IntN(40), 1+w.rng.IntN(400)
					got, want := w.listSorted(c, filter, s, part, limit), w.sortedByWalk(filter, s, limit)
					kit.Need(t, slices.Equal(got, want),
						"seed %d, round %d, %+v, %+v, parts of %d, %d of them:\n%v, want\n%v", seed, round, filter, s, part, limit, got, want)
					listed += len(got)
					if w.rng.IntN(4) == 0 {
						w.comparePages(c, filter, s)
					}
				}
			}
		}
		kit.Want(t, "the log", w.log.String(), "")
	}
	kit.Check(t, listed >= int(seeds)*400, "%d listed: the lists show nothing", listed)
}

// comparePages holds the pages of a list, each behind the last entry of the one before, against the whole list: nothing twice, nothing left out.
func (w *world) comparePages(c *Catalog, f Filter, s Sorting) {
	w.t.Helper()
	want := w.sortedByWalk(f, s, 100_000)
	var got []archive.Key
	for size := 1 + w.rng.IntN(40); ; s.After = got[len(got)-1] {
		page := w.listSorted(c, f, s, size+1, size)
		if got = append(got, page...); len(page) < size {
			break
		}
	}
	kit.Need(w.t, slices.Equal(got, want), "%+v, %+v, in pages:\n%v, want\n%v", f, s, got, want)
}

// sortedByWalk is the list by reading the whole ledger.
func (w *world) sortedByWalk(f Filter, s Sorting, limit int) (keys []archive.Key) {
	w.t.Helper()
	var all []row
	kit.Must(w.t, w.led.EntriesNewestFirst(func(e ledger.Entry) error {
		doc, _, err := w.led.Document(e.Key)
		if err != nil {
			return err
		}
		r, err := newRow(e, doc)
		if f.selectsEntry(e) && f.selectsTexts(r) {
			all = append(all, r)
		}
		return err
	}))
	if s.Reverse {
		slices.Reverse(all) // what is equal, and what has no value
	}
	slices.SortStableFunc(all, func(a, b row) int {
		x, hasX := valueOf(s.By, a)
		y, hasY := valueOf(s.By, b)
		switch {
		case !hasX || !hasY:
			return cmp.Compare(boolToInt(hasY), boolToInt(hasX))
		case s.Reverse:
			return -compareValues(x, y)
		}
		return compareValues(x, y)
	})
	for _, r := range all[:min(limit, len(all))] {
		keys = append(keys, r.Key)
	}
	return keys
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareValues(x, y any) int {
	switch x := x.(type) {
	case string:
		return strings.Compare(x, y.(string))
	case *big.Rat:
		return -x.Cmp(y.(*big.Rat))
	}
	return -cmp.Compare(x.(int64), y.(int64))
}

// valueOf returns a text, of which the smallest comes first, or a number, of which the largest does.
func valueOf(o Order, r row) (value any, ok bool) {
	m := r.shown()
	switch o {
	case ByFolder:
		return strings.ToLower(r.Folder), true
	case ByDrop:
		return strings.ToLower(r.Drop), true
	case ByState:
		return -int64(r.State), true
	case ByNumber:
		return strings.ToLower(m.Number), m.Number != ""
	case BySender:
		return strings.ToLower(m.SenderName), m.SenderName != ""
	case ByDate:
		day, err := time.Parse(time.DateOnly, m.Date[:min(10, len(m.Date))])
		return day.Unix(), err == nil
	case ByAmount:
		if _, err := archive.ParseDecimal(string(m.Amount)); err != nil {
			return nil, false
		}
		return m.Amount.Rat(), true
	case BySize:
		return r.Package.Size, r.Package.Size != 0
	case ByArchived:
		return r.ArchivedAt.UnixMilli(), !r.ArchivedAt.IsZero()
	case ByDelivered:
		return r.CompletedAt().UnixMilli(), r.State == ledger.Delivered
	}
	return int64(0), true
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
	c := w.made(t)
	alone := OpenStopped(Config{StateDir: t.TempDir(), Ledger: w.led, Log: w.config().Log})
	defer func() { kit.Must(t, alone.Close()) }()
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
		for _, by := range []*Catalog{c, alone} {
			var got []string
			for _, k := range w.listSorted(by, Filter{}, row.s, 10, 10) {
				got = append(got, cmp.Or(texts[k].Number, "-"))
			}
			kit.Want(t, name, strings.Join(got, " "), row.want)
		}
	}
	err := c.List(t.Context(), Filter{}, Sorting{After: archive.Key{1}}, 10, neverTold, nil)
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
	c := opened(t, cfg)
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

func (l *countedLedger) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	return l.Ledger.EntriesOldestFirst(func(e ledger.Entry) error { l.entries++; return fn(e) })
}

// Rows that differ from the balance are told, whoever runs: beside a stopped daemon nothing changes, and a running one makes the file
// anew, each time that it happens.
func TestCompare_I32_SpoiledRows(t *testing.T) {
	kit.Rows(t, map[string]string{
		"MissingRow":  "DELETE FROM document WHERE id = 3",
		"OtherState":  "UPDATE document SET state = (state + 1) % 12 WHERE id = 3",
		"NoSuchState": "UPDATE document SET state = 99 WHERE id = 3",
		"AllRows":     "DELETE FROM document",
	}, func(t *testing.T, statement string) {
		w := grown(t, 4, 100)
		path := filepath.Join(w.dir, FileName)
		spoil := func() {
			db, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = db.Exec(statement)
			}
			kit.Must(t, errors.Join(err, db.Close()))
		}
		w.inBubble(t, func(t *testing.T) { runUntilMade(New(w.config()))() })
		c := OpenStopped(w.config())
		kit.Want(t, "before", c.Compare(t.Context()), (Comparison{}))
		kit.Must(t, c.Close())
		w.inBubble(t, func(t *testing.T) {
			c := New(w.config())
			stop := runUntilMade(c)
			defer stop()
			for range 2 {
				spoil()
				got := c.Compare(t.Context())
				kit.Check(t, got.Differs != "" && got.NotDone == "", "running: %+v", got)
				time.Sleep(2 * retryAfter)
				synctest.Wait()
				kit.Want(t, "made anew", c.Compare(t.Context()), (Comparison{}))
			}
		})
		spoil()
		c = OpenStopped(w.config())
		got := c.Compare(t.Context())
		kit.Check(t, strings.Contains(got.Differs, "it has") || strings.Contains(got.Differs, "its rows (seen "), "stopped: %+v", got)
		kit.Must(t, c.Close())
	})
}

// A catalog that is behind, being made, closed or missing is told as that, and not as one that differs.
func TestCompare_I32_NotCompared(t *testing.T) {
	w := grown(t, 5, 50)
	c := New(w.config())
	says := func(want string) {
		t.Helper()
		got := c.Compare(t.Context())
		kit.Check(t, got.Differs == "" && strings.Contains(got.NotDone, want), "%+v, want %q", got, want)
	}
	says("the catalog is at 0 %")
	full := error(nil)
	c.cfg.CheckSpace = func() error { return full }
	kit.Must(t, c.makeFile(t.Context()))
	c.mustFollow(t)
	kit.Want(t, "the comparison", c.Compare(t.Context()), (Comparison{}))
	c.cfg.Ledger = movingLedger{w.led, func() { w.goOn(1) }}
	says("the ledger changed meanwhile")
	c.cfg.Ledger = w.led
	full = errors.New("no room")
	w.goOn(5)
	says("no room")
	kit.Must(t, c.Close())
	c = OpenStopped(Config{StateDir: t.TempDir(), Ledger: w.led, Log: w.config().Log})
	says("there is none")
}

// movingLedger commits something before it tells its balance.
type movingLedger struct {
	Ledger
	move func()
}

func (l movingLedger) Balance() ledger.Balance { l.move(); return l.Ledger.Balance() }

// A line about incoming documents is valid although it names an arrival instead
// of an entry.
func TestKeyOf_PassesArrivalsOver(t *testing.T) {
	key := archive.NewKey(time.Unix(1_790_000_000, 0))
	a := arrival.Arrival{Key: key, Rev: 1, Kind: arrival.Extract, State: arrival.Announced, Item: "4711"}
	line := arrival.NewLine(2, a, arrival.Listed{}, archive.Instant{}).Encode()
	_, is, err := keyOf(line)
	kit.Check(t, !is && err == nil, "the line of an arrival: %t, %v", is, err)
	line = ledger.NewLine(2, ledger.Entry{Key: key, Rev: 1, State: ledger.Discovered}, ledger.ClaimedFolder{}, archive.Instant{}).Encode()
	k, is, err := keyOf(line)
	kit.Check(t, is && err == nil && k == key, "the line of an entry: %s, %t, %v", k, is, err)
}

// I12: what is delivered is found by its state and its route, agrees with the ledger's balance, and is never listed as archived.
func TestCatalog_I12_DeliveredIsNotArchived(t *testing.T) {
	w := newWorld(t, 12)
	w.hasPDFs = true
	for range 30 {
		w.goOn(40)
	}
	c := w.made(t)
	balance := w.led.Balance()
	if balance.States[ledger.Delivered] == 0 || balance.States[ledger.Archived] == 0 || c.Compare(t.Context()) != (Comparison{}) {
		t.Fatalf("balance = %v, c.Compare(t.Context()) = %v, want balance.States[ledger.Delivered] other than 0, balance.States[ledger.Archived] other than 0, c.Compare(t.Context()) = (Comparison{})", balance, c.Compare(t.Context()))
	}
	for name, row := range map[string]struct {
		f    Filter
		want uint64
		by   Order
	}{
		"Delivered":       {Filter{States: []ledger.State{ledger.Delivered}}, balance.States[ledger.Delivered], ByDelivered},
		"DeliveredByPDF":  {Filter{States: []ledger.State{ledger.Delivered}, Route: ledger.PDF}, balance.States[ledger.Delivered], BySeen},
		"ArchivedByPDF":   {Filter{States: []ledger.State{ledger.Archived}, Route: ledger.PDF}, 0, BySeen},
		"ArchivedByVault": {Filter{States: []ledger.State{ledger.Archived}, Route: ledger.Vault}, balance.States[ledger.Archived], ByArchived},
		"UnknownDelivery": {Filter{States: []ledger.State{ledger.Quarantined}, Route: ledger.PDF}, balance.States[ledger.Quarantined], BySize},
	} {
		kit.Want(t, name, uint64(len(w.listSorted(c, row.f, Sorting{By: row.by}, 20, 1000))), row.want)
	}
	keys, err := c.NewestIn(t.Context(), ledger.Archived, 1000)
	if err != nil || uint64(len(keys)) != balance.States[ledger.Archived] {
		t.Errorf("%d archived documents in the charts, %d in the ledger (%v)", len(keys), balance.States[ledger.Archived], err)
	}
	// Those that are sorted by the time of archiving have the delivered ones last, as everything that has no such time.
	all := w.listSorted(c, Filter{}, Sorting{By: ByArchived}, 50, 1000)
	for i, k := range all {
		if e, _, err := w.led.Entry(k); err != nil || (e.State == ledger.Archived) != (uint64(i) < balance.States[ledger.Archived]) {
			t.Fatalf("%d: %s (%v), want no error, (e.State == ledger.Archived) = %v", i, e.State, err, (uint64(i) < balance.States[ledger.Archived]))
		}
	}
}

// I32: a PDF is found by the address that it was sent to and by the one that is notified, in any case and by a part of it, by the index
// as well as by the ledger alone. The index alone decides which entries are compared.
func TestSearch_I32_FindsTheAddressesOfAPDF(t *testing.T) {
	w := newWorld(t, 5)
	x := &life{at: began}
	x.key = archive.NewKey(x.at)
	w.goByPDF(x, "scan7.pdf", "scan7.pdf")
	x.doc.Metadata = archive.PDFRequest{Receiving: "Rechnungen@in.example", Notify: "buero.müller@acme.example"}.Encode()
	for len(x.evs) > 0 {
		w.goOnWith(x)
	}
	w.goOn(20)
	c := w.made(t)
	for words, want := range map[string]bool{"rechnungen@in.example": true, "RECHNUNGEN@IN": true, "buero.mueller@acme": true, "büro.müller@out": false, "Müller@Acme": true, "rechnungen@out": false} {
		var found []archive.Key
		err := c.FindCandidates(t.Context(), NewQuery([]string{words}), neverTold, func(e ledger.Entry) error { found = append(found, e.Key); return nil })
		kit.Must(t, err)
		if got := w.walk(NewQuery([]string{words})); slices.Contains(got, x.key) != want || want && !slices.Contains(found, x.key) {
			t.Errorf("%s: the ledger finds %v, the catalog %v, want %v", words, got, found, want)
		}
	}
}
