package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// Rows that differ from the balance are told, whoever runs: beside a stopped daemon nothing changes, and a running one makes the file
// anew, each time that it happens.
func TestCompare_I32_SpoiledRows(t *testing.T) {
	kit.Rows(t, map[string]string{
		"MissingRow":  "DELETE FROM document WHERE id = 3",
		"OtherState":  "UPDATE document SET state = (state + 1) % 12 WHERE id = 3",
		"NoSuchState": "UPDATE document SET state = 99 WHERE id = 3",
		"AllRows":     "DELETE FROM document",
	}, func(t *testing.T, statement string) {
		w := newWorld(t, 4)
		w.goOn(100)
		path := filepath.Join(w.dir, FileName)
		spoil := func() {
			db, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = db.Exec(statement)
			}
			kit.Must(t, errors.Join(err, db.Close()))
		}
		w.inBubble(t, func(t *testing.T) { runUntilMade(New(w.config()))() })
		c := OpenStopped(t.Context(), w.config())
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
		c = OpenStopped(t.Context(), w.config())
		got := c.Compare(t.Context())
		kit.Check(t, strings.Contains(got.Differs, "it has") || strings.Contains(got.Differs, "its rows (seen "), "stopped: %+v", got)
		kit.Must(t, c.Close())
	})
}

// A catalog that is behind, being made, closed or missing is told as that, and not as one that differs.
func TestCompare_I32_NotCompared(t *testing.T) {
	w := newWorld(t, 5)
	w.goOn(50)
	c := New(w.config())
	says := func(want string) {
		t.Helper()
		got := c.Compare(t.Context())
		kit.Check(t, got.Differs == "" && strings.Contains(got.NotDone, want), "%+v, want %q", got, want)
	}
	says("the catalog is at 0 %")
	kit.Must(t, c.rebuild(t.Context()))
	f, _, err := c.openFile(t.Context())
	kit.Must(t, err)
	kit.Want(t, "the comparison", c.Compare(t.Context()), (Comparison{}))
	w.goOn(5)
	says(fmt.Sprintf("it has the ledger up to line %d, of %d", f.at.head.N, f.at.head.N+5))
	kit.Must(t, c.closeFile(t.Context(), f))
	c = OpenStopped(t.Context(), Config{StateDir: t.TempDir(), Ledger: w.led, Log: w.config().Log})
	says("there is none")
}

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
	c, _ := w.made(t)
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
	c, _ := w.made(t)
	for words, want := range map[string]bool{"rechnungen@in.example": true, "RECHNUNGEN@IN": true, "buero.mueller@acme": true, "büro.müller@out": false, "Müller@Acme": true, "rechnungen@out": false} {
		var byIndex []archive.Key
		s := &candidates{c: c, ask: NewQuery([]string{words}).question}
		if err := s.visit(context.Background(), func(k archive.Key) error { byIndex = append(byIndex, k); return nil }); err != nil {
			t.Fatal(words, err)
		}
		if got := w.walk(NewQuery([]string{words})); slices.Contains(got, x.key) != want || want && !slices.Contains(byIndex, x.key) {
			t.Errorf("%s: the ledger finds %v, the index %v, want %v", words, got, byIndex, want)
		}
	}
}
