package window

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"vaultd/internal/test/kit"
)

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
