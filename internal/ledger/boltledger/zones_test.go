package boltledger_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// chooseTime proposes times at which zones disagree about the month or the day.
// With old times some are of years in which zones were no quarter of an hour
// away from UTC, or went back at another time.
type chooseTime func(r *rand.Rand) time.Time

func oldTimes(r *rand.Rand) time.Time {
	switch r.IntN(20) {
	case 0: // in Newfoundland November began twice, and October was there again between
		return time.Date(2009, 11, 1, 2, 30, r.IntN(120), 0, time.UTC)
	case 1, 2:
		return time.Date([]int{1, 1690, 1900, 1969, 1971, 2250, 2400}[r.IntN(7)], 12, 31, 23, r.IntN(60), r.IntN(60), 0, time.UTC)
	}
	return aroundMonths(r)
}

func aroundMonths(r *rand.Rand) time.Time {
	at := time.Date(2024+r.IntN(3), time.Month(1+r.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
	if r.IntN(4) == 0 {
		return at.Add(time.Duration(r.Int64N(int64(28 * 24 * time.Hour))))
	}
	at = at.Add(time.Duration(r.IntN(240)-120) * 15 * time.Minute)
	return at.Add([]time.Duration{0, -1, 1, time.Duration(r.Int64N(int64(15 * time.Minute)))}[r.IntN(4)])
}

func zones(t *testing.T) (all []*time.Location) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "America/Havana", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Etc/GMT+12", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia", "America/St_Johns"} {
		zone := kit.Value(time.LoadLocation(name))(t)
		all = append(all, zone)
	}
	return append(all, time.FixedZone("odd", 20*60+7), time.FixedZone("far", -86_399), time.FixedZone("farther", 30*3600))
}

// successes gives a ledger n documents that were archived at such times, in two
// vaults and three drop folders; the size of some of them is not known.
func successes(t *testing.T, l *boltledger.Ledger, r *rand.Rand, n int, at chooseTime) {
	t.Helper()
	var cs []ledger.Change
	for i := range n {
		d := newDoc(t, l, i)
		vault, drop := archive.VaultID([]string{"V1", "V1x"}[i%2]), fmt.Sprint("drop-", r.IntN(3))
		if i%5 == 0 {
			cs = append(cs, d.change(ledger.Recovered{Route: ledger.Vault, Vault: vault, Drop: drop, Folder: "x", ID: archive.ID{1, 14: byte(i >> 8), 15: byte(i)},
				Remote: archive.RemoteID(fmt.Sprint("R", i)), SuccessRecord: []byte("{}"), State: ledger.Archived, Source: ledger.Gone, SeenAt: d.at, ArchivedAt: at(r)}, ledger.Reconciled{}))
			continue
		}
		claim := d.claim().(ledger.ClaimedFolder)
		claim.Vault, claim.Drop = vault, drop
		seal, first, second := d.sealed(), d.ticket(), d.ticket()
		second.Ticket.Remote, second.Ticket.URL = first.Ticket.Remote+"-again", first.Ticket.URL+"-again"
		says := func(g ledger.TicketReceived) ledger.StatusSeen {
			return ledger.StatusSeen{Receipt: archive.Receipt{Remote: g.Ticket.Remote, Status: archive.Successful, Updated: at(r), Record: []byte("{}")}, Grace: time.Hour}
		}
		events := []ledger.Event{claim, seal, ledger.RegisterIntended{}, first, ledger.UploadIntended{}}
		if i%7 == 0 { // archived twice
			events = append(events, ledger.UploadRefused{}, ledger.RegisterIntended{}, second, ledger.UploadIntended{}, d.accepted(), says(second), says(first))
		} else {
			events = append(events, d.accepted(), says(first))
		}
		cs = append(cs, d.change(events...))
	}
	for some := range slices.Chunk(cs, 40) {
		applied(t, l, some...)
	}
}

// totalsFromEntries counts the totals of a zone from every entry.
func totalsFromEntries(entries []ledger.Entry, zone *time.Location) []ledger.Total {
	sums := map[ledger.Total]ledger.Total{} // by vault and month
	for _, e := range entries {
		for _, tr := range e.Transactions() {
			one := tr.Total(e.Vault, zone)
			k := ledger.Total{Vault: one.Vault, Year: one.Year, Month: one.Month}
			if had, ok := sums[k]; ok {
				one = had.Plus(one)
			}
			sums[k] = one
		}
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b ledger.Total) int {
		return cmp.Or(cmp.Compare(a.Vault, b.Vault), cmp.Compare(a.Year, b.Year), cmp.Compare(a.Month, b.Month))
	})
}

// recentOf leaves what RecentTotals promises: the months from since on, and
// each vault's first month before it with a known size.
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

// Totals, the archived of a day and the downloads of a month are the same in
// every time zone as counting every entry and every line gives, and another
// zone needs no recount.
func TestTotals_I12_EveryZoneAsCountedOneByOne(t *testing.T) {
	every := 1
	if kit.Sampled(t, "time zones of each ledger") {
		every = 3
	}
	for seed, at := range []chooseTime{aroundMonths, aroundMonths, oldTimes} {
		r := rand.New(rand.NewPCG(uint64(seed), 19))
		dir := newLedger(t)
		l := open(t, boltledger.Config{Dir: dir})
		successes(t, l, r, 300, at)
		var fetched []time.Time
		for range 60 {
			at := aroundMonths(r) // a journal line has our own clock
			fetched = append(fetched, at)
			kit.Value(l.IntendFetch(t.Context(), fetchOf(at), nil, 1000))(t)
		}
		sound(t, l)
		head, entries := l.Head(), entriesOf(t, l)
		for i, zone := range zones(t) {
			if (i+seed)%every != 0 {
				continue
			}
			l.Close()
			l = open(t, boltledger.Config{Dir: dir, Location: zone})
			all := totalsFromEntries(entries, zone)
			checkTotals(t, l, all, aroundMonths(r).In(zone))
			for range 20 {
				checkDayAndMonth(t, l, entries, aroundMonths(r).In(zone), fetched)
			}
			sound(t, l)
		}
		kit.Want(t, "head after other time zones", l.Head(), head)
	}
}

// checkTotals compares what is said of totals with those that all entries add
// up to.
func checkTotals(t *testing.T, l *boltledger.Ledger, all []ledger.Total, since time.Time) {
	t.Helper()
	zone := since.Location()
	kit.Want(t, fmt.Sprintf("totals in %v", zone), kit.Value(l.Totals())(t), all)
	got, err := l.RecentTotals(since)
	if want := recentOf(all, since); err != nil || !slices.Equal(recentOf(got, since), want) || len(got) != len(want) && len(got) != len(all) {
		t.Errorf("totals in %v since %v =\n%+v (%v), want\n%+v", zone, since, got, err, want)
	}
	var last time.Time
	for _, one := range all {
		if one.Last.After(last) {
			last = one.Last
		}
	}
	if got, err := l.LastSuccess(); err != nil || !got.Equal(last) {
		t.Errorf("the last success = %v (%v), want %v", got, err, last)
	}
}

// checkDayAndMonth compares what is said of the day and of the month of a time
// with counting one by one.
func checkDayAndMonth(t *testing.T, l *boltledger.Ledger, entries []ledger.Entry, now time.Time, fetched []time.Time) {
	t.Helper()
	zone, today := now.Location(), map[string]int{}
	isToday := func(at time.Time) bool { return at.In(zone).Format(time.DateOnly) == now.Format(time.DateOnly) }
	days := make([]int, 1+now.Day())
	for _, e := range entries {
		if e.State != ledger.Archived {
			continue
		}
		if isToday(e.ArchivedAt) {
			today[e.Drop]++
		}
		for i := range days {
			day := time.Date(now.Year(), now.Month(), now.Day()-i, 0, 0, 0, 0, time.UTC) // only its name is compared
			if e.ArchivedAt.In(zone).Format(time.DateOnly) == day.Format(time.DateOnly) {
				days[len(days)-1-i]++
			}
		}
	}
	if got, err := l.CountArchived(now, isToday); err != nil || !maps.Equal(got, today) {
		t.Errorf("%v: archived that day = %v (%v), want %v", now, got, err, today)
	}
	kit.Want(t, fmt.Sprintf("%v: archived on", now), kit.Value(l.CountArchivedByDay(now, len(days)))(t), days)
	fetches := uint64(0)
	for _, at := range fetched {
		if at.Truncate(time.Millisecond).In(zone).Format("2006-01") == now.Truncate(time.Millisecond).Format("2006-01") {
			fetches++
		}
	}
	got, err := l.CountFetches(now)
	if _, offset := now.Zone(); offset > 86_400 { // no zone is as far away as that
		fetches = got
	}
	kit.Check(t, err == nil && got == fetches, "%v: downloads that month = %d (%v), want %d", now, got, err, fetches)
}

// Every month of these zones begins with a span since 1980, so that the totals
// are read without the entries: here no entry can be read. In Newfoundland
// clocks went back at one minute past midnight until 2011.
func TestSpans_EveryMonthBeginsWithOne(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	successes(t, l, rand.New(rand.NewPCG(3, 19)), 1000, aroundMonths)
	kit.Must(t, l.Close())
	edit(t, dir, flipAll(openBucket))
	for _, zone := range zones(t)[:9] {
		l := open(t, boltledger.Config{Dir: dir, Location: zone})
		kit.Want(t, fmt.Sprintf("totals in %v", zone), kit.Err(l.Totals()), nil)
		kit.Must(t, l.Close())
	}
}

// I26: entries of a class are counted up to the given time, whatever it is.
func TestCountAttention_I26_UpToATime(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	r := rand.New(rand.NewPCG(19, 19))
	const entries = 400
	var seen []time.Time
	var cs []ledger.Change
	for i := range entries {
		d := newDoc(t, l, i)
		d.at = began.Add(time.Duration(r.Int64N(int64(20 * 24 * time.Hour))))
		if i%10 == 0 {
			d.at = d.at.Truncate(24 * time.Hour)
		}
		seen = append(seen, d.at)
		cs = append(cs, d.change(d.claim()))
	}
	applied(t, l, cs...)
	for range 200 {
		before := began.Add(time.Duration(r.Int64N(int64(22 * 24 * time.Hour))))
		switch r.IntN(4) {
		case 0:
			before = before.Truncate(24 * time.Hour)
		case 1:
			before = seen[r.IntN(entries)]
		}
		want := 0
		for _, at := range seen {
			if at.Before(before) {
				want++
			}
		}
		counts, err := l.CountAttention(ledger.Waiting, before)
		kit.Need(t, err == nil && len(counts) == 1 && counts[0].Entries == want && (!counts[0].Oldest.After(before) || want <= 0),
			"before %v: %+v (%v), want %d", before, counts, err, want)
	}
	sound(t, l)
}
