package window

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) archive.Instant {
	return archive.Instant{Wall: noon.Add(d), Boot: time.Hour + d, BootID: "b"}
}

// observe books one upload that had the line for itself.
func (p *Planner) observe(bytes int64, took time.Duration) {
	p.mu.Lock()
	began := archive.Instant{Boot: p.last}
	p.mu.Unlock()
	p.EndUpload(p.BeginUpload(archive.Ticket{Sent: began}, bytes, began), archive.Instant{Boot: began.Boot + took}, true)
}

func TestLeft_I6_BootClockDecides(t *testing.T) {
	ticket := archive.Ticket{Sent: at(0)}
	type row struct {
		now  archive.Instant
		want time.Duration
	}
	kit.Rows(t, map[string]row{
		"Fresh":              {at(0), 15 * time.Minute},
		"AfterSuspend":       {archive.Instant{Wall: noon, Boot: time.Hour + 20*time.Minute, BootID: "b"}, 0},
		"WallClockSetBack":   {archive.Instant{Wall: noon.Add(-time.Hour), Boot: time.Hour + time.Minute, BootID: "b"}, 14 * time.Minute},
		"AfterShortSuspend":  {archive.Instant{Wall: noon, Boot: time.Hour + time.Minute, BootID: "b", Slept: 30 * time.Second}, 0},
		"AfterReboot":        {archive.Instant{Wall: noon.Add(time.Minute), Boot: time.Minute, BootID: "c"}, 0},
		"BootClockBackwards": {archive.Instant{Wall: noon, Boot: time.Minute, BootID: "b"}, 0},
	}, func(t *testing.T, row row) {
		kit.Want(t, "time left", Left(ticket, row.now), row.want)
	})
}

func TestMayStart_I6_OnlyWhatIsPredictedToEndInTime(t *testing.T) {
	p := &Planner{Workers: 8}
	for range 50 {
		p.observe(10*archive.MB, 10*time.Second) // 1 MB/s
	}
	ticket := archive.Ticket{Sent: at(0)}
	kit.Check(t, p.MayStart(ticket, 100*archive.MB, nil, at(0)), "a fresh ticket must carry the largest package")
	kit.Check(t, !p.MayStart(ticket, 100*archive.MB, nil, at(12*time.Minute)),
		"200 s of upload, as predicted, started 150 s before the end")
	kit.Check(t, p.MayStart(ticket, archive.MB, nil, at(12*time.Minute)), "a small package has time enough")
	kit.Check(t, !p.MayStart(ticket, 1, nil, at(14*time.Minute+25*time.Second)), "uploads of one size show no cost beside their bytes: 10 s at least")
	kit.Check(t, !p.MayStart(ticket, 1, nil, at(15*time.Minute)) && !p.MayStart(ticket, 1, nil, at(14*time.Minute+40*time.Second)),
		"started inside the margin")
}

// A slow line must not stop uploads for good: a fresh ticket is always tried.
func TestMayStart_FreshTicketIsAlwaysTried(t *testing.T) {
	p := &Planner{Workers: 8}
	for range 100 {
		p.observe(archive.MB, 10*time.Minute)
	}
	kit.Check(t, p.MayStart(archive.Ticket{Sent: at(0)}, 100*archive.MB, nil, at(time.Second)),
		"after slow uploads nothing would ever be tried again")
}

func TestPlan_TicketsOnlyForUploadsThatFollow(t *testing.T) {
	p := &Planner{Workers: 4}
	many := make([]int64, 1000)
	for i := range many {
		many[i] = archive.MB
	}
	kit.Want(t, "before any upload", p.Plan("vault", many, nil, at(0)), 2)
	kit.Want(t, "before any upload", p.Plan("vault", make([]int64, 1000), nil, at(0)), 4)
	for range 50 { // two at once, each as fast as if it were alone
		one, other := p.BeginUpload(archive.Ticket{Sent: at(0)}, archive.MB, at(0)), p.BeginUpload(archive.Ticket{Sent: at(0)}, archive.MB, at(0))
		p.EndUpload(one, at(time.Second), true)
		p.EndUpload(other, at(time.Second), true)
		p.last = at(0).Boot
	}
	n := p.Plan("vault", many, nil, at(0))
	if per := 225.0 / 2 / 0.5; float64(n) < per*0.95 || float64(n) > per*1.05 {
		t.Errorf("%d tickets; at two a second and half that speed a quarter of the window is filled with about %.0f", n, per)
	}
	kit.Want(t, "more tickets for half a window", p.Plan("vault", many, many[:n], at(0)), 0)
	kit.Want(t, "an idle line takes documents", p.Plan("vault", []int64{100 * archive.MB}, nil, at(0)), 1)
}

// With steady speeds every upload that was planned also ends inside its window.
func TestPlan_I6_NothingPlannedStartsTooLate(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := &Planner{Workers: 1 + r.IntN(16)}
		rate := float64(50_000 + r.IntN(5_000_000))
		took := func(b int64) time.Duration {
			return 200*time.Millisecond + time.Duration(float64(b)/rate*float64(time.Second))
		}
		for range 40 {
			b := int64(1000 + r.IntN(5*archive.MB))
			p.observe(b, took(b))
		}
		waiting := make([]int64, 2000)
		for i := range waiting {
			waiting[i] = int64(1000 + r.IntN(3*archive.MB))
		}
		free := make([]time.Duration, p.Workers) // when each worker is free
		for _, b := range waiting[:p.Plan("vault", waiting, nil, at(0))] {
			first := 0
			for i := range free {
				if free[i] < free[first] {
					first = i
				}
			}
			kit.Need(t, p.MayStart(archive.Ticket{Sent: at(0)}, b, nil, at(free[first])),
				"seed %d: a planned upload of %d bytes may not start after %v", seed, b, free[first])
			if free[first] += took(b); free[first] > 15*time.Minute {
				t.Fatalf("seed %d: a planned upload ended after %v", seed, free[first])
			}
		}
	}
}

// Each ticket has its own life: that of one route does not shorten, or lengthen, that of another.
func TestMayStart_I6_EachTicketHasItsOwnLife(t *testing.T) {
	p := &Planner{Workers: 8}
	for range 50 {
		p.observe(archive.MB, time.Second)
	}
	long := archive.Ticket{Sent: at(0), Date: noon, SignedAt: noon, Validity: time.Hour}
	short := long.LimitLife(15 * time.Minute)
	for name, row := range map[string]struct {
		after       time.Duration
		short, long bool
	}{"AtOnce": {0, true, true}, "AfterTheWindow": {16 * time.Minute, false, true}, "AfterTheHour": {time.Hour, false, false}} {
		kit.Want(t, name+": a ticket of 15 minutes may be used", p.MayStart(short, 1, nil, at(row.after)), row.short)
		kit.Want(t, name+": a ticket of an hour may be used", p.MayStart(long, 1, nil, at(row.after)), row.long)
	}
}

// What is planned for one route goes by the tickets of that route. A long life does not let a route fill the link for longer
// than the others can wait.
func TestPlan_I6_GoesByTheTicketsOfItsRoute(t *testing.T) {
	p := &Planner{Workers: 4}
	for range 50 {
		p.observe(archive.MB, time.Second)
	}
	many := make([]int64, 2000)
	for i := range many {
		many[i] = archive.MB
	}
	unseen := p.Plan("vault", many, nil, at(0))
	p.ObserveTicket("vault", archive.Ticket{Validity: 5 * time.Minute})
	p.ObserveTicket("pdf", archive.Ticket{Validity: time.Hour})
	n := p.Plan("vault", many, nil, at(0))
	kit.Check(t, n*3 >= unseen*9/10 && n*3 <= unseen*11/10, "%d tickets of five minutes, %d before their life was known", n, unseen)
	kit.Want(t, "tickets of an hour", p.Plan("pdf", many, nil, at(0)), unseen)
}

func TestPace_BeginsSmallAndGrows(t *testing.T) {
	p := NewLimiter(8)
	for i, want := range []int{2, 3, 4, 5, 6, 7, 8, 8} {
		kit.Want(t, fmt.Sprintf("after %d calls", i), p.Limit(), want)
		p.Begin()
		p.Succeeded(true)
	}
	idle := NewLimiter(8)
	for range 100 {
		idle.Begin()
		idle.Succeeded(false)
	}
	kit.Want(t, "the limit of an idle line", idle.Limit(), 2)
}

// grown is a pace of eight that has no credit left.
func grown() *Limiter {
	p := NewLimiter(8)
	p.limit, p.overloadedOnce = 8, true
	return p
}

func TestPace_HalvesOnceARoundAndRestsAtTheFloor(t *testing.T) {
	p := grown()
	for round, want := range []int{4, 2, 1} {
		var calls []uint64
		for range p.Limit() {
			calls = append(calls, p.Begin())
		}
		for _, n := range calls {
			kit.Check(t, !p.Overloaded(n), "round %d: rests before the floor was tried", round)
		}
		kit.Want(t, fmt.Sprintf("round %d", round), p.Limit(), want)
	}
	kit.Check(t, p.Overloaded(p.Begin()), "one call at a time is too much, and the route does not rest")
	p.Succeeded(true)
	if p.Overloaded(p.Begin()); p.Limit() != 1 {
		t.Errorf("%d at once", p.Limit())
	}
}

// A spike slows down and does not stop; when it is over, speed comes back.
func TestPace_ASpikeSlowsDown(t *testing.T) {
	p := grown()
	p.Overloaded(p.Begin())
	if p.Limit() != 4 {
		t.Fatalf("p.Limit() = %v, want p.Limit() = 4", p.Limit())
	}
	for range 30 {
		p.Begin()
		p.Succeeded(true)
	}
	kit.Want(t, "calls at once after thirty good ones", p.Limit(), 8)
}

// G13: with 5 % of strained calls and 1 % of broken ones at least 90 % of the speed are
// left, though a call that fails takes as long as one that does not.
func TestPace_G13_FewFaultsCostLittle(t *testing.T) {
	for _, most := range []int{1, 2, 4, 8, 16, 64} {
		r := rand.New(rand.NewPCG(5, uint64(most)))
		p, good, took := NewLimiter(most), 0, 0.0
		for good < 20_000 {
			n := p.Begin()
			took += 1 / float64(p.Limit())
			switch f := r.Float64(); {
			case f < 0.05:
				if p.Overloaded(n) {
					took += 500 // of the time that a call takes
				}
			case f < 0.06:
			default:
				p.Succeeded(true)
				good++
			}
		}
		share := float64(good) / float64(most) / took
		kit.Check(t, share >= 0.90, "%d at once: %.3f of the speed", most, share)
	}
}
