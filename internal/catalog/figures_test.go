package catalog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// figured is a ledger whose documents are archived and delivered at times at
// which zones disagree about the day or the month.
type figured struct {
	t   *testing.T
	r   *rand.Rand
	led *fill.Ledger
	n   int

	isLate bool // keys may be older than the last ones

	// Documents of which the service may say later that it archived them.
	open map[*fill.Item][]archive.RemoteID
}

// at proposes a time near the beginning of a month, sometimes of an old one in
// which the clocks of Newfoundland went back to October.
func (w *figured) at() time.Time {
	switch w.r.IntN(30) {
	case 0:
		return time.Date(2009, 11, 1, 2, 30, w.r.IntN(120), 0, time.UTC)
	case 1:
		return time.Date([]int{1971, 1999, 2250}[w.r.IntN(3)], 12, 31, 23, w.r.IntN(60), w.r.IntN(60), 0, time.UTC)
	}
	month := time.Date(2024+w.r.IntN(3), time.Month(1+w.r.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
	return month.Add(time.Duration(w.r.IntN(240)-120) * 15 * time.Minute).Add([]time.Duration{0, -1, 1}[w.r.IntN(3)])
}

// add commits a document.
func (w *figured) add() {
	w.t.Helper()
	w.n++
	claimed, at := began.Add(time.Duration(w.n)*time.Minute), w.at()
	key := fill.Key(claimed, w.n)
	if w.isLate && w.r.IntN(10) == 0 {
		key = fill.Key(claimed.Add(-time.Duration(w.r.IntN(100))*time.Minute), w.n)
	}
	binary.BigEndian.PutUint32(key[12:], uint32(w.n))
	it := w.led.Add(fill.Item{Name: fmt.Sprint("x ", w.n), Key: key, Route: ledger.Vault, Vault: archive.VaultID(fmt.Sprint("V", w.r.IntN(2))), Drop: fmt.Sprint("drop-", w.r.IntN(3)), Size: int64(1 + w.r.IntN(3000))})
	first, second := archive.RemoteID(fmt.Sprint("R", w.n)), archive.RemoteID(fmt.Sprint("R", w.n, "-again"))
	it.Remote = first
	sending := it.Sending(claimed)
	switch w.r.IntN(6) {
	case 0: // of unknown size
		w.recover(it, claimed, at)
	case 1: // archived twice, the second time perhaps later
		it.Seal(claimed)
		it.Apply(claimed, sending...)
		it.Apply(claimed, ledger.UploadRefused{}, sending[0], fill.Ticket(second, claimed, ledger.Vault), sending[2], it.Accepted(), fill.Seen(second, archive.Successful, at))
		w.open[it] = []archive.RemoteID{first}
	case 2: // delivered, by this machine's clock
		w.led.Add(fill.Item{Name: it.Name + ".pdf", Key: fill.Key(claimed.Add(time.Second), w.n), Route: ledger.PDF, Drop: it.Drop}).Deliver(at, 0)
	case 3: // on its way
		it.Seal(claimed)
		it.Apply(claimed, append(sending, it.Accepted())...)
		w.open[it] = []archive.RemoteID{first}
	case 4:
		it.Refuse(claimed, ledger.Cause{})
	default:
		it.Seal(claimed)
		it.Apply(claimed, append(sending, it.Accepted(), fill.Seen(first, archive.Successful, at))...)
	}
}

// recover commits a document as the archive lists it, without its size.
func (w *figured) recover(it *fill.Item, claimed, at time.Time) {
	w.t.Helper()
	w.led.Commit(ledger.Change{Key: it.Key, At: archive.Instant{Wall: claimed}, Events: []ledger.Event{ledger.Recovered{Route: ledger.Vault, Vault: it.Vault, Drop: it.Drop, Folder: it.Name,
		ID: archive.ID{1, 14: byte(w.n >> 8), 15: byte(w.n)}, Remote: it.Remote, SuccessRecord: []byte("{}"), State: ledger.Archived, Source: ledger.Gone, SeenAt: claimed, ArchivedAt: at}, ledger.Reconciled{}}})
}

// goOn has the service archive some of what is on its way, and adds documents.
func (w *figured) goOn(documents int) {
	w.t.Helper()
	for _, it := range slices.SortedFunc(maps.Keys(w.open), func(a, b *fill.Item) int { return cmp.Compare(a.Name, b.Name) }) {
		if w.r.IntN(2) == 0 {
			it.Apply(began.AddDate(1, 0, 0), fill.Seen(w.open[it][0], archive.Successful, w.at()))
			delete(w.open, it)
		}
	}
	for range documents {
		w.add()
	}
}

// totalsOf adds up what the entries say, one by one.
func totalsOf(entries []ledger.Entry, zone *time.Location) []ledger.Total {
	sums := map[ledger.Total]ledger.Total{} // by vault and month
	for _, e := range entries {
		for _, tr := range e.Transactions() {
			one := tr.Total(e.Vault, zone)
			k := ledger.Total{Vault: one.Vault, Year: one.Year, Month: one.Month}
			sums[k] = one.Plus(sums[k])
		}
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b ledger.Total) int {
		return cmp.Or(cmp.Compare(a.Vault, b.Vault), cmp.Compare(a.Year, b.Year), cmp.Compare(a.Month, b.Month))
	})
}

// recentOf leaves the months from since on, and each vault's first month before
// it with a known size.
func recentOf(all []ledger.Total, since time.Time) (recent []ledger.Total) {
	first := map[archive.VaultID]bool{}
	for _, one := range all {
		isFirst := !first[one.Vault] && one.Documents > one.Unsized
		first[one.Vault] = first[one.Vault] || isFirst
		if isFirst || 12*one.Year+one.Month >= 12*since.Year()+int(since.Month()) {
			recent = append(recent, one)
		}
	}
	return recent
}

// check compares the figures of a catalog with counting one by one.
func (w *figured) check(c *Catalog) {
	w.t.Helper()
	zone := c.cfg.Location
	lacks, err := c.CatchUp(w.t.Context())
	kit.Need(w.t, err == nil && lacks == "", "%v: lacks %q (%v), want nothing", zone, lacks, err)
	var entries []ledger.Entry
	kit.Must(w.t, w.led.EntriesOldestFirst(func(e ledger.Entry) error { entries = append(entries, e); return nil }))
	all := totalsOf(entries, zone)
	kit.Want(w.t, fmt.Sprintf("totals in %v", zone), kit.Value(c.Totals(w.t.Context(), time.Time{}))(w.t), all)
	var last time.Time
	for _, e := range entries {
		if at := deliveredAt(e).Truncate(time.Millisecond); at.After(last) {
			last = at
		}
	}
	got := kit.Value(c.LastDelivered(w.t.Context()))(w.t)
	kit.Check(w.t, got.Equal(last), "last delivered %v, want %v", got, last)
	for range 10 {
		now := w.at().In(zone)
		kit.Want(w.t, fmt.Sprintf("totals since %v", now), kit.Value(c.Totals(w.t.Context(), now))(w.t), recentOf(all, now))
		for _, state := range []ledger.State{ledger.Archived, ledger.Delivered} {
			today, days := map[string]int{}, make([]int, 40)
			for _, e := range entries {
				if e.State != state {
					continue
				}
				y, m, d := e.CompletedAt().In(zone).Date()
				for i := range days {
					if day := time.Date(now.Year(), now.Month(), now.Day()-len(days)+1+i, 12, 0, 0, 0, time.UTC); day.Year() == y && day.Month() == m && day.Day() == d {
						days[i]++
						if i == len(days)-1 {
							today[e.Drop]++
						}
					}
				}
			}
			kit.Want(w.t, fmt.Sprintf("%v on %v", state, now), kit.Value(c.CompletedOn(w.t.Context(), state, now))(w.t), today)
			kit.Want(w.t, fmt.Sprintf("%v by day until %v", state, now), kit.Value(c.CompletedByDay(w.t.Context(), state, now, len(days)))(w.t), days)
		}
	}
}

// I12: the figures are those of the entries, one by one, in every time zone: in
// a catalog that follows the ledger, with rows that come late, and in one that
// is made anew.
func TestFigures_I12_EveryZoneAsCountedOneByOne(t *testing.T) {
	w := &figured{t: t, r: rand.New(rand.NewPCG(4, 19)), led: fill.New(t, boltledger.Config{}, ledger.Info{}), open: map[*fill.Item][]archive.RemoteID{}}
	for n, vault := range []archive.VaultID{"V0", "V1"} { // the first month of each has no size
		at := began.AddDate(-50, -n, 0)
		w.recover(w.led.Add(fill.Item{Name: string(vault), Key: fill.Key(at, n), Route: ledger.Vault, Vault: vault, Drop: "drop-0", Remote: archive.RemoteID(vault)}), at, at)
		w.n++
	}
	w.goOn(100)
	var all []*Catalog
	for _, name := range []string{"Europe/Berlin", "America/St_Johns", "Pacific/Apia"} {
		all = append(all, opened(t, Config{StateDir: t.TempDir(), Ledger: w.led, Location: kit.Value(time.LoadLocation(name))(t)}))
	}
	for round := range 6 {
		for _, c := range all {
			w.check(c)
			anew := OpenStopped(Config{StateDir: t.TempDir(), Ledger: w.led, Location: c.cfg.Location})
			w.check(anew)
			kit.Must(t, anew.Close())
		}
		w.isLate = round%2 == 0
		w.goOn(40)
	}
}

// I12: a file whose days are those of another time zone, or of other rules of
// the same one, is made anew.
func TestFigures_I12_OfAnotherZoneAreMadeAnew(t *testing.T) {
	w := newWorld(t, 34)
	w.goOn(50)
	for _, zones := range [][2]*time.Location{{time.UTC, time.FixedZone("UTC", 900)}, {kit.Value(time.LoadLocation("Europe/Berlin"))(t), kit.Value(time.LoadLocation("Europe/Moscow"))(t)}} {
		cfg := w.config()
		cfg.Location = zones[0]
		kit.Must(t, New(cfg).makeFile(t.Context()))
		cfg.Location = zones[1]
		err := New(cfg).openFile(t.Context())
		kit.Check(t, reasonToRebuild(err) != nil, "a file of %v for %v: %v, want it made anew", zones[0], zones[1], err)
	}
}

// A ledger's catalog that is being made, or of which none can be made, has no
// figures and says why; one that cannot go on has those that it has.
func TestFigures_I26_SayWhatTheyLack(t *testing.T) {
	w := newWorld(t, 35)
	for range 10 {
		w.goOn(100)
	}
	cfg := w.config()
	var full error
	cfg.CheckSpace = func() error { return full }
	c := New(cfg)
	lacks, err := c.CatchUp(t.Context())
	kit.Check(t, err == nil && lacks == "the catalog is at 0 %", "before it is made: lacks %q (%v)", lacks, err)
	_, err = c.Totals(t.Context(), time.Time{})
	_, incomplete := errors.AsType[*IncompleteError](err)
	kit.Check(t, incomplete, "totals before it is made: %v, want an IncompleteError", err)
	kit.Must(t, c.makeFile(t.Context()))
	c.mustFollow(t)
	defer func() { kit.Must(t, c.Close()) }()
	before := kit.Value(c.Totals(t.Context(), time.Time{}))(t)
	for range 10 {
		w.goOn(100)
	}
	full = errors.New("no room")
	c.noteFault(full, retryAfter)
	lacks, err = c.CatchUp(t.Context())
	kit.Check(t, err == nil && lacks == "no room", "on a full disk: lacks %q (%v)", lacks, err)
	kit.Want(t, "totals on a full disk", kit.Value(c.Totals(t.Context(), time.Time{}))(t), before)
	full = nil
	c.noteWorks()
	lacks, err = c.CatchUp(t.Context())
	kit.Check(t, err == nil && lacks == "", "with room again: lacks %q (%v)", lacks, err)
	kit.Check(t, !slices.Equal(kit.Value(c.Totals(t.Context(), time.Time{}))(t), before), "the totals did not follow the ledger")
}
