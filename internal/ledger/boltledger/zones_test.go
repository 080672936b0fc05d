package boltledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// aroundMonths proposes times at which zones disagree about the month.
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

// The downloads of a month are the same in every time zone as counting every
// line gives, and another zone needs no recount.
func TestCountFetches_I29_EveryZoneAsCountedOneByOne(t *testing.T) {
	r, dir := rand.New(rand.NewPCG(1, 19)), newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	var fetched []time.Time
	for range 60 {
		at := aroundMonths(r) // a journal line has our own clock
		fetched = append(fetched, at)
		kit.Value(l.IntendFetch(t.Context(), fetchOf(at), nil, 1000))(t)
	}
	sound(t, l)
	for _, zone := range zones(t) {
		kit.Must(t, l.Close())
		l = open(t, boltledger.Config{Dir: dir, Location: zone})
		for range 20 {
			now, want := aroundMonths(r).In(zone), uint64(0)
			for _, at := range fetched {
				if at.Truncate(time.Millisecond).In(zone).Format("2006-01") == now.Truncate(time.Millisecond).Format("2006-01") {
					want++
				}
			}
			kit.Want(t, fmt.Sprintf("%v: downloads that month", now), kit.Value(l.CountFetches(now))(t), want)
		}
	}
}

// The last success is the newest of the service's times, of any entry and of
// any of its registrations, also after a restart. A time that is still to come
// when it is recorded counts as that moment: one of the year 2099 would hide
// for good that nothing is archived any more. Later changes move nothing.
func TestLastSuccess_I26_TheNewestOfTheServicesTimes(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	kit.Want(t, "the last success before any", l.LastSuccess(), time.Time{})
	day := func(n int) time.Time { return began.AddDate(0, 0, n) }
	for n, row := range []struct{ recorded, says, want time.Time }{
		{day(2), day(1), day(1)},
		{day(3), time.Date(2099, 1, 2, 0, 0, 0, 0, time.UTC), day(3)},
		{day(5), day(2), day(3)},
		{day(6), day(5), day(5)},
	} {
		d := newDoc(t, l, n)
		d.do(d.claim())
		d.do(d.sealed(), ledger.RegisterIntended{})
		d.do(d.ticket(), ledger.UploadIntended{}, d.accepted())
		success := d.success()
		success.Receipt.Updated, d.at = row.says, row.recorded
		d.do(success)
		kit.Want(t, "the last success", l.LastSuccess(), row.want)
		d.at = d.at.Add(time.Hour)
		d.do(ledger.PlaceIntended{Dest: "_archived/x"}, ledger.Placed{})
		kit.Want(t, "the last success after another change", l.LastSuccess(), row.want)
	}
	sound(t, l)
	kit.Must(t, l.Close())
	l = open(t, boltledger.Config{Dir: dir})
	kit.Want(t, "the last success after a restart", l.LastSuccess(), day(5))
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
		got := 0
		for _, c := range counts {
			got += c.Entries
			kit.Check(t, c.Oldest.Before(before), "the oldest before %v was taken at %v", before, c.Oldest)
		}
		kit.Need(t, err == nil && got == want, "before %v: %+v (%v), want %d", before, counts, err, want)
	}
	sound(t, l)
}
