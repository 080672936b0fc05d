// These tests are inside the package: the figures are drawn on the pages, and
// counted here one by one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// historyWorld is a ledger in which documents come to their ends around the ends of days and months.
type historyWorld struct {
	*inside
	r   *rand.Rand
	n   int
	was []ledger.Entry // rejected, and not taken again yet
}

// historyNoon is when most histories are looked at.
var historyNoon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

func newHistoryWorld(t *testing.T, seed uint64, zone string, now time.Time) *historyWorld {
	t.Helper()
	return &historyWorld{inside: lookInside(t, now, "time_zone: "+zone+"\n"), r: rand.New(rand.NewPCG(seed, 20))}
}

// anyTime proposes a time of the last 26 months, most often near the end of a day, of which some are the ends of summer time, of a month
// or of a year.
func (w *historyWorld) anyTime() time.Time {
	y, m, d := w.Now.In(w.Location).Date()
	switch w.r.IntN(3) {
	case 0:
		m, d = m-time.Month(w.r.IntN(26)), 1
	case 1:
		d -= w.r.IntN(33)
	case 2:
		d -= w.r.IntN(800)
	}
	at := time.Date(y, m, d, 0, 0, 0, 0, w.Location).Add(time.Duration(w.r.IntN(9)-4) * 15 * time.Minute)
	return at.Add([]time.Duration{0, -1, 1, -time.Millisecond, time.Duration(w.r.Int64N(int64(24 * time.Hour)))}[w.r.IntN(5)])
}

// goOn adds documents: archived once or twice, rejected, rejected and taken again, on their way, or recovered with any times.
func (w *historyWorld) goOn(documents int) {
	w.t.Helper()
	var cs []ledger.Change
	for range documents {
		w.n++
		at := w.anyTime() // the clock is set back all the time
		key := archive.NewKey(at)
		claim := ledger.ClaimedFolder{Route: ledger.Vault, Vault: archive.VaultID([]string{"V-1", "V-2"}[w.r.IntN(2)]), Drop: fmt.Sprint("drop-", w.r.IntN(3)), Folder: fmt.Sprint("Otto ", w.n)}
		c := ledger.Change{Key: key, At: archive.Instant{Wall: at}}
		switch w.r.IntN(7) {
		case 6:
			claim.Route, claim.Vault, claim.Drop = ledger.PDF, "", "scans"
			c.Events, c.Document = w.deliveredEvents(claim, at)
			c.At.Wall = w.anyTime()
		case 0:
			c.Events = []ledger.Event{claim, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}, ledger.PlaceIntended{Dest: "_rejected/x"}, ledger.Placed{}}
		case 1:
			c.Events = []ledger.Event{claim}
		case 2:
			c.Events = []ledger.Event{ledger.Recovered{Route: ledger.Vault, Vault: claim.Vault, Drop: claim.Drop, Folder: claim.Folder, ID: archive.ID{1, 14: byte(w.n >> 8), 15: byte(w.n)},
				Remote: archive.RemoteID(fmt.Sprint("R", w.n)), SuccessRecord: []byte("{}"), State: ledger.Archived, Source: ledger.Gone, SeenAt: w.anyTime(), ArchivedAt: w.anyTime()}, ledger.Reconciled{}}
		default:
			if len(w.was) > 0 && w.r.IntN(2) == 0 { // one that was rejected comes again
				claim.Supersedes = w.was[0].Key
				cs = append(cs, ledger.Change{Key: w.was[0].Key, Rev: w.was[0].Rev, Events: []ledger.Event{ledger.Superseded{}}, At: archive.Instant{Wall: at}})
				w.was = w.was[1:]
			}
			c.Events, c.Document = w.archivedEvents(claim, at, w.r.IntN(4) == 0)
		}
		cs = append(cs, c)
	}
	rs := kit.Value(w.ledger.Apply(w.t.Context(), cs...))(w.t)
	for _, r := range rs {
		kit.Need(w.t, r.Err == nil, "r.Err = %v, want r.Err = nil", r.Err)
		if e := r.Entry; e.State == ledger.Rejected && !e.Resolved {
			w.was = append(w.was, e)
		}
	}
}

// deliveredEvents lets a PDF live until it is delivered.
func (w *historyWorld) deliveredEvents(claim ledger.ClaimedFolder, at time.Time) ([]ledger.Event, *ledger.Document) {
	seal, doc := (&fill.Item{Name: claim.Folder, Vault: claim.Vault, Route: claim.Route, Size: 1 + w.r.Int64N(3_000_000)}).Sealed()
	remote := archive.RemoteID("slot-" + claim.Folder)
	return []ledger.Event{claim, seal, ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: archive.PresignedURL("https://store.example/" + remote),
		Sent: archive.Instant{Wall: at}, Validity: time.Hour}}, ledger.UploadIntended{}, ledger.DeliveryConfirmed{Sent: seal.Package.SHA256, Seal: seal.Seal}}, doc
}

// archivedEvents lets a document live until it is archived, twice where that is asked for. The archive's clock is that of another machine.
func (w *historyWorld) archivedEvents(claim ledger.ClaimedFolder, at time.Time, isTwice bool) ([]ledger.Event, *ledger.Document) {
	seal, doc := (&fill.Item{Name: claim.Folder, Vault: claim.Vault, Route: claim.Route, Size: 1 + w.r.Int64N(3_000_000)}).Sealed()
	ticket := func(again string) ledger.TicketReceived {
		remote := archive.RemoteID(claim.Folder + again)
		one := ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: archive.PresignedURL("https://store.example/" + remote), Sent: archive.Instant{Wall: at}}}
		if w.r.IntN(2) == 0 {
			one.Ticket.Date = at.Add(time.Duration(w.r.IntN(7200)-3600) * time.Second)
		}
		return one
	}
	says := func(g ledger.TicketReceived) ledger.StatusSeen {
		updated := w.anyTime()
		if w.r.IntN(2) == 0 {
			updated = at.Add(time.Duration(w.r.ExpFloat64() * float64(8*time.Hour)))
		}
		return ledger.StatusSeen{Receipt: archive.Receipt{Remote: g.Ticket.Remote, Status: archive.Successful, Updated: updated, Record: []byte("{}")}, Grace: time.Hour}
	}
	first, second, accepted := ticket(""), ticket("-again"), ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal}
	events := []ledger.Event{claim, seal, ledger.RegisterIntended{}, first, ledger.UploadIntended{}}
	if isTwice {
		return append(events, ledger.UploadRefused{}, ledger.RegisterIntended{}, second, ledger.UploadIntended{}, accepted, says(second), says(first)), doc
	}
	return append(events, accepted, says(first)), doc
}

// countPlainly counts the history from every entry, one by one, by the names of days and months.
func (w *historyWorld) countPlainly() present.History {
	w.t.Helper()
	h := present.History{Delays: make([]present.DelayCounts, 8)}
	for i, limit := range []time.Duration{10 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour, 168 * time.Hour} {
		h.Delays[i].Below, h.Delays[i+1].From = limit, limit
	}
	days, months := map[string]*present.DayCounts{}, map[string]*present.MonthCounts{}
	noonToday := w.Now.In(w.Location)
	noonToday = time.Date(noonToday.Year(), noonToday.Month(), noonToday.Day(), 12, 0, 0, 0, time.UTC)
	for i := 29; i >= 0; i-- {
		day := noonToday.AddDate(0, 0, -i)
		h.Days = append(h.Days, present.DayCounts{Year: day.Year(), Month: day.Month(), Day: day.Day()})
	}
	for i := 23; i >= 0; i-- {
		month := noonToday.AddDate(0, 0, 1-noonToday.Day()).AddDate(0, -i, 0)
		h.Months = append(h.Months, present.MonthCounts{Year: month.Year(), Month: month.Month()})
	}
	for i, d := range h.Days {
		days[fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day)] = &h.Days[i]
	}
	for i, m := range h.Months {
		months[fmt.Sprintf("%04d-%02d", m.Year, m.Month)] = &h.Months[i]
	}
	err := w.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		for _, t := range e.Transactions() {
			if m := months[t.At.In(w.Location).Format("2006-01")]; m != nil {
				m.Archived++
			}
		}
		switch e.State {
		case ledger.Archived:
			if d := days[e.ArchivedAt.In(w.Location).Format(time.DateOnly)]; d != nil {
				d.Archived++
			}
			took := e.ArchivedAt.Sub(e.SeenAt)
			ahead, known := e.ServiceAhead()
			if took -= ahead; took >= -time.Minute || known {
				h.DelaysOf++
				i := slices.IndexFunc(h.Delays, func(d present.DelayCounts) bool { return d.Below == 0 || took < d.Below })
				h.Delays[i].Documents++
			}
		case ledger.Delivered:
			if d := days[e.UploadedAt.In(w.Location).Format(time.DateOnly)]; d != nil {
				d.Delivered++
			}
			if m := months[e.UploadedAt.In(w.Location).Format("2006-01")]; m != nil {
				m.Delivered++
			}
			if took := e.UploadedAt.Sub(e.SeenAt); took >= -time.Minute {
				h.DeliveredOf++
				h.Delays[slices.IndexFunc(h.Delays, func(d present.DelayCounts) bool { return d.Below == 0 || took < d.Below })].Delivered++
			}
		case ledger.Rejected:
			seen := e.SeenAt.Truncate(time.Millisecond).In(w.Location)
			if d := days[seen.Format(time.DateOnly)]; d != nil {
				d.Rejected++
			}
			if m := months[seen.Format("2006-01")]; m != nil {
				m.Rejected++
			}
		}
		return nil
	})
	kit.Must(w.t, err)
	return h
}

// checkHistory holds what is told against counting one by one; of the shares that they are those of the bills.
func (w *historyWorld) checkHistory(name string) present.History {
	w.t.Helper()
	h := kit.Value(w.collectHistory(w.t.Context()))(w.t)
	got, want := h, w.countPlainly()
	got.Shares = nil
	kit.Want(w.t, fmt.Sprintf("%s, now %v: the history", name, w.Now.In(w.Location)), got, want)
	w.checkShares(name, h.Shares)
	return h
}

func (w *historyWorld) checkShares(name string, shares []present.VaultShare) {
	w.t.Helper()
	out, _ := asks(func(a *app) error { a.json = true; return a.runStatus(w.t.Context(), w.view, false) })
	var st present.StatusSummary
	kit.Must(w.t, json.Unmarshal([]byte(out), &st))
	bills := st.Billing
	if len(bills) == 2 {
		bills = bills[1:]
	}
	kit.Need(w.t, len(shares) == len(bills),
		"%s: %d shares, %d bills: %+v %+v", name, len(shares), len(bills), shares, bills)
	for i, b := range bills {
		s := shares[i]
		if s.Vault != b.Vault || s.Year != b.Year || s.Included != archive.MB || (s.Forecast != nil) != (b.Forecast != nil) {
			w.t.Errorf("%s: %+v is not about the bill %+v", name, s, b)
		}
		last := 0.0
		for j, u := range s.Used {
			if last = u.Share; u.Month > w.Now.In(w.Location).Month() || j > 0 && u.Month != s.Used[j-1].Month+1 {
				w.t.Errorf("%s: months %+v", name, s.Used)
			}
		}
		average := archive.Decimal(b.AverageMB).Rat()
		if later := b.Documents > 0 && w.hasLaterThisYear(); average != nil && !later {
			f, _ := average.Float64()
			kit.Check(w.t, math.Abs(f-last) <= 1e-6, "%s: %v of what is included, the bill says %s MB", name, last, b.AverageMB)
		}
		kit.Check(w.t, s.Forecast == nil || (s.Forecast.Lowest <= s.Forecast.Share && s.Forecast.Share <= s.Forecast.Highest),
			"%s: %+v", name, s.Forecast)
	}
}

// hasLaterThisYear reports whether the archive says of something that it was archived in a later month of this year.
func (w *historyWorld) hasLaterThisYear() (has bool) {
	now := w.Now.In(w.Location)
	kit.Must(w.t, w.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		for _, t := range e.Transactions() {
			at := t.At.In(w.Location)
			has = has || at.Year() == now.Year() && at.Month() > now.Month()
		}
		return nil
	}))
	return has
}

// What the page draws is what counting every entry one by one gives, in zones with a quarter or half an hour, over changes of summer
// time, ends of months and years, with documents that were archived twice, rejected and taken again, and with a clock that was set back.
func TestHistory_I12_AsCountedOneByOne(t *testing.T) {
	t.Parallel()
	for i, row := range []struct {
		zone string
		now  time.Time
	}{
		{"Europe/Berlin", time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)},       // half an hour before summer time
		{"Europe/Berlin", time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC)},      // the hour that comes twice
		{"Asia/Kolkata", time.Date(2026, 12, 31, 18, 30, 0, 0, time.UTC)},      // the first second of the year
		{"Asia/Kathmandu", time.Date(2026, 2, 28, 18, 14, 59, 0, time.UTC)},    // the last second of the month
		{"America/St_Johns", time.Date(2026, 11, 1, 4, 0, 0, 0, time.UTC)},     // the day on which summer time ends
		{"America/St_Johns", time.Date(2009, 11, 2, 12, 0, 0, 0, time.UTC)},    // one day came twice, from one minute after midnight on
		{"America/Havana", time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)},       // a day without midnight was yesterday
		{"Pacific/Kiritimati", time.Date(2026, 5, 31, 10, 0, 0, 0, time.UTC)},  // the first of June there
		{"Etc/GMT+12", time.Date(2026, 1, 1, 11, 59, 59, 0, time.UTC)},         // still last year there
		{"Australia/Lord_Howe", time.Date(2026, 4, 4, 15, 15, 0, 0, time.UTC)}, // half an hour comes twice
	} {
		t.Run(strings.ReplaceAll(row.zone, "/", "-")+row.now.Format("-2006-01-02"), func(t *testing.T) {
			t.Parallel()
			w := newHistoryWorld(t, uint64(i), row.zone, row.now)
			for range 3 {
				w.goOn(60)
			}
			w.makeCatalog()
			h := w.checkHistory(row.zone)
			var archived, rejected uint64
			for _, m := range h.Months {
				archived, rejected = archived+m.Archived, rejected+m.Rejected
			}
			if archived < 60 || rejected < 10 || h.DelaysOf < 60 || len(h.Shares) != 3 && w.Now.In(w.Location).YearDay() > 31 {
				t.Errorf("the world is poor: %d archived, %d rejected, %d delays, %+v", archived, rejected, h.DelaysOf, h.Shares)
			}
			for range 4 { // the same ledger on other days
				w.Now = w.anyTime()
				w.checkHistory(row.zone)
			}
		})
	}
}

// A command that runs alone has the whole history of a small ledger, whatever
// lies in the place of the catalog.
func TestHistory_I32_WithoutACatalog(t *testing.T) {
	t.Parallel()
	w := newHistoryWorld(t, 1, "Europe/Berlin", historyNoon)
	w.goOn(100)
	path := filepath.Join(w.cfg.StateDir, catalog.FileName)
	w.checkHistory("no daemon and no file")
	w.makeCatalog()
	w.checkHistory("no daemon")
	whole := kit.Value(os.ReadFile(path))(t)
	for name, file := range map[string][]byte{"foreign": []byte("not a database at all, and of no use"), "cut": whole[:len(whole)/2],
		"damaged": append(slices.Clone(whole[:4096]), make([]byte, len(whole)-4096)...)} {
		kit.Must(t, os.WriteFile(path, file, 0o600))
		w.checkHistory(name)
	}
}

// The history names a running catalog that is rebuilt or damaged; a page asks it again meanwhile.
func TestHistory_I32_WhileTheCatalogIsMade(t *testing.T) {
	t.Parallel()
	w := newHistoryWorld(t, 2, "Europe/Berlin", historyNoon)
	for range 25 { // more than one transaction of a new file
		w.goOn(100)
	}
	goOn, asked := make(chan struct{}), make(chan struct{}, 100)
	w.catalog = catalog.New(catalog.Config{StateDir: w.cfg.StateDir, Ledger: w.ledger, Location: w.cfg.Location, Log: slog.New(slog.DiscardHandler), CheckSpace: func() error {
		select {
		case asked <- struct{}{}: // part of the rows is in the file
		default:
		}
		<-goOn
		return nil
	}})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.catalog.Run(ctx) }()
	defer func() { stop(); <-done }()
	<-asked
	h, err := w.collectHistory(t.Context())
	if want := "the catalog is at 80 %"; err != nil || h.Missing != want || h.Days != nil || h.Shares != nil {
		t.Errorf("%v, missing %q, want %q: %+v", err, h.Missing, want, h)
	}
	close(goOn)
	kit.Await(t, "the catalog", func() bool { return w.catalog.Status().Describe() == "" })
	h, err = w.collectHistory(t.Context())
	kit.Check(t, err == nil && h.Missing == "" && h.DelaysOf != 0,
		`%v: %+v, want no error, h.Missing = "", h.DelaysOf other than 0`, err, h)
	path := filepath.Join(w.cfg.StateDir, catalog.FileName)
	kit.Must(t, os.Rename(path, path+".away"))
	if h, err = w.collectHistory(t.Context()); err != nil || !strings.Contains(h.Missing, "its file was removed") || h.Delays != nil || h.Shares != nil {
		t.Errorf("removed: %v: %+v", err, h)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	kit.Fails(t, "a request that ended", kit.Err(w.collectHistory(cancelled)), context.Canceled)
}

// While the catalog is made, the status says so and shows no zeros for what was archived today; the rest is there.
func TestStatus_I26_WhileTheCatalogIsMade(t *testing.T) {
	t.Parallel()
	w := newHistoryWorld(t, 6, "Europe/Berlin", historyNoon)
	w.goOn(100)
	w.catalog = catalog.New(catalog.Config{StateDir: w.cfg.StateDir, Ledger: w.ledger, Location: w.cfg.Location, Log: slog.New(slog.DiscardHandler)}) // it does not run yet
	s := kit.Value(w.collectStatus(t.Context()))(t)
	kit.Want(t, "why", s.Figures, "the catalog is at 0 %")
	kit.Check(t, s.Billing == nil && s.LastSuccess != nil && s.Balance.Seen > 0, "billing %v, last success %v, balance %+v, want no bill and the rest", s.Billing, s.LastSuccess, s.Balance)
	for _, d := range s.Drops {
		kit.Want(t, "today in "+d.Name, [2]int{d.Today, d.Delivered}, [2]int{-1, -1})
	}
	var text strings.Builder
	kit.Must(t, s.WriteText(&text, w.Clock))
	kit.Holds(t, "status", text.String(), "BILLING  being counted; this and what was archived today may lack something: the catalog is at 0 %", "not known")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.catalog.Run(ctx) }()
	defer func() { stop(); <-done }()
	kit.Await(t, "the catalog", func() bool { return w.catalog.Status().Describe() == "" })
	s = kit.Value(w.collectStatus(t.Context()))(t)
	kit.Check(t, s.Figures == "" && s.Billing != nil && s.Drops[0].Today >= 0, "made: figures %q, billing %v, drops %+v, want all of them", s.Figures, s.Billing, s.Drops)
}

// Damage in an entry is said. It hides the delays alone where the figures are known, and everything where they must be counted first: no
// figure stands there that could be taken for a true one. It does not end the page.
func TestHistory_I26_DamageIsSaid(t *testing.T) {
	t.Parallel()
	w := newHistoryWorld(t, 4, "Europe/Berlin", historyNoon)
	w.goOn(200)
	w.makeCatalog()
	want := w.countPlainly()
	kit.Must(t, w.ledger.Close())
	db, err := bbolt.Open(filepath.Join(w.cfg.StateDir, "ledger.db"), 0o600, nil)
	kit.Must(t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("done"))
		return b.ForEach(func(k, v []byte) error {
			spoilt := slices.Clone(v)
			spoilt[len(v)/2]++
			return b.Put(slices.Clone(k), spoilt)
		})
	})
	kit.Must(t, errors.Join(err, db.Close()))
	w.open()
	h, err := w.collectHistory(t.Context())
	kit.Check(t, err == nil && h.Missing != "" && h.Delays == nil && h.Shares != nil && h.Days[29].Archived == want.Days[29].Archived,
		`with a catalog: %v: %+v, want no error, h.Missing other than "", h.Delays = nil and the rest`, err, h)
	kit.Must(t, os.Remove(filepath.Join(w.cfg.StateDir, catalog.FileName)))
	h, err = w.collectHistory(t.Context())
	kit.Check(t, err == nil && h.Missing != "" && h.Delays == nil && h.Days == nil && h.Months == nil && h.Shares == nil,
		`without: %v: %+v, want no error, h.Missing other than "" and nothing else`, err, h)
}

// Of many archived documents the newest tell how long archiving took, and of very many rejected folders the newest are counted, and
// the history says that there were more.
func TestHistory_I21_BoundedAndSaysSo(t *testing.T) {
	t.Parallel()
	w := newHistoryWorld(t, 3, "Europe/Berlin", historyNoon)
	const older = 40 // that took long, before all others
	n := 0
	add := func(change func(i int, at time.Time) ledger.Event, count int) {
		t.Helper()
		var cs []ledger.Change
		for i := range count {
			n++
			at := historyNoon.AddDate(0, -6, 0).Add(time.Duration(n) * time.Minute)
			cs = append(cs, ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{change(i, at), ledger.Reconciled{}}})
		}
		rs, err := w.ledger.Apply(t.Context(), cs...)
		kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
	}
	add(func(i int, at time.Time) ledger.Event {
		return recoveredAt(n, at, at.Add(time.Hour*24*30*time.Duration(1+i%2)))
	}, older)
	add(func(_ int, at time.Time) ledger.Event { return recoveredAt(n, at, at.Add(time.Minute)) }, present.DelaysAtMost)
	for range present.RejectedAtMost/1000 + 1 {
		add(func(int, time.Time) ledger.Event {
			return ledger.Recovered{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: "x", State: ledger.Rejected, Source: ledger.Returned, Dest: "_rejected/x"}
		}, 1000)
	}
	w.makeCatalog()
	h, err := w.collectHistory(t.Context())
	kit.Need(t, err == nil && h.Missing == "",
		`err = %v, h.Missing = %v, want no error, h.Missing = ""`, err, h.Missing)
	kit.Check(t, h.DelaysOf == present.DelaysAtMost && h.Delays[0].Documents == present.DelaysAtMost,
		"%d delays: %+v", h.DelaysOf, h.Delays)
	rejected := uint64(0)
	for _, m := range h.Months {
		rejected += m.Rejected
	}
	kit.Check(t, h.IsRejectedCut && rejected == present.RejectedAtMost,
		"%d rejected are counted, cut %t", rejected, h.IsRejectedCut)
}

// The history costs the same however much was archived in its days: thousands more documents make it read no more of them.
func TestHistory_G15_CostsTheSameWhateverWasArchived(t *testing.T) {
	w := newHistoryWorld(t, 5, "Europe/Berlin", historyNoon)
	archived := 0
	addArchived := func(count int) float64 {
		t.Helper()
		var cs []ledger.Change
		for range count {
			at := historyNoon.AddDate(0, 0, -archived%20).Add(-time.Duration(archived%3600) * time.Second)
			cs = append(cs, ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{recoveredAt(archived, at.Add(-time.Minute), at), ledger.Reconciled{}}})
			archived++
		}
		for some := range slices.Chunk(cs, 500) { // opening the catalog reads the last block of the journal
			rs, err := w.ledger.Apply(t.Context(), some...)
			kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
		}
		w.makeCatalog()
		return testing.AllocsPerRun(3, func() {
			h, err := w.collectHistory(t.Context())
			if err != nil || h.Missing != "" || h.DelaysOf != present.DelaysAtMost || h.Months[23].Archived+h.Months[22].Archived != uint64(archived) {
				t.Fatalf(`%v: %+v, want no error, h.Missing = "", h.DelaysOf = present.DelaysAtMost, h.Months[23].Archived+h.Months[22].Archived = %v`, err, h, uint64(archived))
			}
		})
	}
	few := addArchived(2 * present.DelaysAtMost)
	if many := addArchived(6 * present.DelaysAtMost); many > few+2000 { // one more page of a tree is read for each entry
		t.Errorf("%.0f allocations with 2,000 archived, %.0f with 8,000", few, many)
	}
}

// recoveredAt is a document that was taken and archived at such times.
func recoveredAt(n int, seen, archived time.Time) ledger.Recovered {
	return ledger.Recovered{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: fmt.Sprintf("Rechnung %07d", n), ID: archive.ID{1, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)},
		Remote: archive.RemoteID(fmt.Sprint("R", n)), SuccessRecord: []byte("{}"), State: ledger.Archived, Source: ledger.Gone, SeenAt: seen, ArchivedAt: archived}
}

// BenchmarkHistory asks for the history of a ledger of DOCS documents (20,000)
// of fifteen years, one in a hundred of them rejected, of four drop folders and
// two vaults, while its catalog runs. It prints how long its parts take, in
// milliseconds.
func BenchmarkHistory(b *testing.B) {
	docs := 20_000
	if n, err := strconv.Atoi(os.Getenv("DOCS")); err == nil {
		docs = n
	}
	dir, now := b.TempDir(), historyNoon
	kit.Must(b, boltledger.Create(dir, ledger.Info{ID: "L", Environment: "test", BaseURL: "https://archive.example", Created: historyNoon}))
	berlin := kit.Value(time.LoadLocation("Europe/Berlin"))(b)
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: dir, Location: berlin}))(b)
	defer l.Close()
	fillYears(b, l, docs, now)
	v := view{Clock: present.Clock{Now: now, Location: berlin}, cfg: config.Config{StateDir: dir, Location: berlin}, ledger: l}
	v.catalog = catalog.New(catalog.Config{StateDir: dir, Ledger: l, Location: berlin, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); v.catalog.Run(ctx) }()
	defer func() { stop(); <-done }()
	kit.Await(b, "the catalog", func() bool { return v.catalog.Status().Describe() == "" })
	h, err := v.collectHistory(ctx)
	if err != nil || h.Missing != "" || h.Days[10].Archived == 0 || len(h.Shares) != 3 || h.DelaysOf == 0 {
		b.Fatalf(`%v: %+v, want no error, h.Missing = "", h.Days[10].Archived other than 0, len(h.Shares) = 3, h.DelaysOf other than 0`, err, h)
	}
	time.Sleep(5 * time.Second) // the catalog counts its rows once when it begins
	oldest := now.AddDate(-2, 0, 0)
	for b.Loop() {
		kit.Value(v.collectHistory(ctx))(b)
	}
	for name, part := range map[string]func() error{
		"days": func() error {
			_, err := v.catalog.CompletedByDay(ctx, ledger.Archived, now, present.HistoryDays)
			return err
		},
		"totals":   func() error { _, err := v.catalog.Totals(ctx, oldest); return err },
		"rejected": func() error { _, err := v.catalog.RejectedSince(ctx, oldest, present.RejectedAtMost); return err },
	} {
		began := time.Now()
		for range 10 {
			kit.Must(b, part())
		}
		b.ReportMetric(float64(time.Since(began).Microseconds())/1e4, "ms-"+name)
	}
}

// fillYears gives a ledger documents of fifteen years, at office hours.
func fillYears(b *testing.B, l *boltledger.Ledger, docs int, now time.Time) {
	b.Helper()
	const days = 15 * 365
	for n := 0; n < docs; {
		var cs []ledger.Change
		for ; n < docs && len(cs) < 1000; n++ {
			day := n * days / docs
			at := now.AddDate(0, 0, day-days+1).Add(-time.Duration(n*7919%36_000) * time.Second)
			one := recoveredAt(n, at, at.Add(41*time.Minute))
			one.Vault, one.Drop = archive.VaultID([]string{"V-1", "V-2"}[n%2]), []string{"acme-in", "acme-erp", "huber", "otto"}[n%4]
			one.Package = archive.Package{Path: "x.zip", Size: 300_000}
			if n%100 == 0 {
				one = ledger.Recovered{Route: ledger.Vault, Vault: one.Vault, Drop: one.Drop, Folder: one.Folder, State: ledger.Rejected, Source: ledger.Returned, Dest: "_rejected/x", SeenAt: at}
			}
			cs = append(cs, ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{one, ledger.Reconciled{}}})
		}
		rs, err := l.Apply(b.Context(), cs...)
		kit.Need(b, err == nil && rs[0].Err == nil,
			"err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
	}
}
