package browser

import (
	"vaultd/internal/test/kit"

	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
)

// party is a company that does not exist, with how much it charges at most and how often it writes.
type party struct {
	name   string
	most   int64 // in cents
	weight int
}

func parties() []party {
	return []party{
		{"Donauwerk GmbH", 900_000, 9}, {"Müller Bürobedarf", 60_000, 14}, {"Nordlicht Energie AG", 1_400_000, 4}, {"Huber & Sohn", 250_000, 8},
		{"Kunz Logistik", 120_000, 12}, {"Papier Otto KG", 40_000, 10}, {"Lehmann Gebäudereinigung", 90_000, 6}, {"Seewald Rechtsanwälte", 700_000, 2},
		{"Brenner Druck", 180_000, 5}, {"Hafenkontor Versicherung", 500_000, 3},
	}
}

// writeHistory gives a ledger the past of two years, the same each time but for the day on which it ends: about a hundred documents a month,
// fewer in summer, most of them archived within the hour, some rejected, and some PDFs that were delivered. The daemon must not run.
func (w *world) writeHistory(now time.Time) {
	w.t.Helper()
	l, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(w.dir, "state")})
	kit.Must(w.t, err)
	h := history{rng: rand.New(rand.NewPCG(4711, 0)), parties: parties()}
	for day := now.AddDate(-2, 0, 0); day.Before(now.AddDate(0, 0, -1)); day = day.AddDate(0, 0, 1) {
		var changes []ledger.Change
		for range h.countOf(day) {
			changes = append(changes, h.document(day.Truncate(24*time.Hour).Add(7*time.Hour+time.Duration(h.rng.IntN(600))*time.Minute)))
		}
		results := kit.Value(l.Apply(w.t.Context(), changes...))(w.t)
		for _, r := range results {
			kit.Need(w.t, r.Err == nil, "r.Err = %v, want r.Err = nil", r.Err)
		}
	}
	kit.Must(w.t, l.Close())
}

// history makes up documents.
type history struct {
	rng     *rand.Rand
	parties []party
	made    int
}

// countOf returns how many documents come on a day: none at weekends.
func (h *history) countOf(day time.Time) int {
	if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
		return 0
	}
	n := 3 + h.rng.IntN(5)
	if day.Month() == time.July || day.Month() == time.August {
		n /= 2
	}
	return n
}

func (h *history) sender() party {
	n := 0
	for _, p := range h.parties {
		n += p.weight
	}
	n = h.rng.IntN(n)
	for _, p := range h.parties {
		if n -= p.weight; n < 0 {
			return p
		}
	}
	panic("the weights do not sum up")
}

func (h *history) digest() (d archive.Digest) {
	for i := range d {
		d[i] = byte(h.rng.Uint32())
	}
	return d
}

// document returns the whole life of one document that was taken at a time.
func (h *history) document(at time.Time) ledger.Change {
	h.made++
	from := h.sender()
	it := fill.Item{Name: fmt.Sprintf("%s %d", from.name, 1000+h.made), Route: ledger.Vault, Vault: "ACME", Remote: archive.RemoteID(h.uuid().String())}
	change := ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}}
	if h.rng.IntN(30) == 0 {
		change.Events = []ledger.Event{it.Claimed(), ledger.Refused{Cause: ledger.Cause{Code: "documentDate-not-understood", Text: "31.10. is no date"}},
			ledger.PlaceIntended{Dest: "_rejected/" + it.Name}, ledger.Placed{}}
		if time.Since(at) > 30*24*time.Hour {
			change.Events = append(change.Events, ledger.Closed{By: ledger.Operator{UID: 1000}})
		}
		return change
	}
	done := at
	if h.rng.IntN(8) == 0 {
		it.Name, it.Route, it.Vault, it.Size = fmt.Sprintf("Scan %d.pdf", 1000+h.made), ledger.PDF, "", 300_000
	} else {
		it.Size = 20_000 + h.rng.Int64N(900_000)
		it.Files = []archive.File{{Path: "rechnung.pdf", Size: it.Size, SHA256: h.digest()}}
		it.Document = archive.Document{Type: "Invoice", Number: fmt.Sprintf("RE-%d-%04d", at.Year(), h.made), Date: at.Format("2006-01-02") + "T00:00:00Z", SenderName: from.name,
			SenderIDs: []string{"DE014814804"}, RecipientName: "Acme GmbH", Currency: "EUR", Amount: h.amount(from)}
		done = at.Add(2*time.Minute + time.Duration(h.rng.ExpFloat64()*float64(20*time.Minute)))
	}
	_, change.Document = it.Sealed()
	change.Events = slices.Concat(it.Life(at, done)...)
	return change
}

func (h *history) amount(from party) archive.Decimal {
	cents := 1_000 + h.rng.Int64N(from.most)
	return archive.Decimal(fmt.Sprintf("%d.%02d", cents/100, cents%100))
}
func (h *history) uuid() uuid.UUID {
	d := h.digest()
	return uuid.UUID(d[:16])
}
