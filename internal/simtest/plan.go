package simtest

import (
	"math"
	"math/rand/v2"
	"time"

	"vaultd/internal/emulator"
)

// At strikes the n-th of the operations that match picks, once.
func At(n int, b Blow, match func(Op) bool) Plan {
	return func(op Op) Strike {
		if !match(op) {
			return Strike{}
		}
		if n--; n != 0 {
			return Strike{}
		}
		return Strike{Blow: b}
	}
}

// class is one way in which things go wrong, as a simulation mixes them.
type class struct {
	seam   Seam
	name   string // of the operation; empty: every one of the seam
	rarest float64
	often  float64 // the rate lies between the two
	strike func(*rand.Rand) Strike
}

func blow(b Blow) func(*rand.Rand) Strike { return func(*rand.Rand) Strike { return Strike{Blow: b} } }

func call(f emulator.Fault) func(*rand.Rand) Strike {
	return func(*rand.Rand) Strike { return Strike{Call: f} }
}

func status(code int) func(*rand.Rand) Strike {
	return call(emulator.Fault{Kind: emulator.Status, Status: code})
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// classes are all that the simulation knows to do.
var classes = []class{
	{Files, "", 0.0003, 0.01, blow(Fail)},
	{Files, "", 0.0003, 0.01, blow(FailDone)},
	{Files, "", 0.0003, 0.003, blow(Die)},
	{Files, "", 0.0003, 0.003, blow(DieDone)},
	{Commits, "", 0.0003, 0.003, blow(Fail)},
	{Commits, "", 0.0003, 0.003, blow(FailDone)},
	{Commits, "", 0.0003, 0.003, blow(Die)},
	{Commits, "", 0.0003, 0.003, blow(DieDone)},
	{Calls, "", 0.001, 0.01, blow(Die)},
	{Calls, "", 0.001, 0.01, blow(DieDone)},
	{Calls, "", 0.01, 0.3, blow(Fail)},
	{Calls, "", 0.01, 0.3, blow(FailDone)},
	{Calls, "", 0.01, 0.2, status(500)},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Status, Status: 504, Done: true})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: 40 * time.Second})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Status, Status: 429, RetryAfter: 3 * time.Minute, RetryAfterDate: true})},
	{Calls, "", 0.01, 0.1, status(401)},
	{Calls, "", 0.01, 0.1, status(403)},
	{Calls, "", 0.01, 0.1, status(404)},
	{Calls, "", 0.01, 0.2, status(502)},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Refuse})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.HTML, Done: true})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Cut})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Garble})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Truncate})},
	{Calls, "", 0.01, 0.2, call(emulator.Fault{Kind: emulator.Empty})},
	{Calls, "", 0.01, 0.2, late(90 * time.Second)},
	{Calls, "upload", 0.01, 0.2, late(20 * time.Minute)},
	{Calls, "upload", 0.01, 0.2, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Trickle, Linger: upTo(r, 10*time.Minute)}}
	}},
	{Calls, "upload", 0.01, 0.2, call(emulator.Fault{Kind: emulator.CutRequest})},
	{Calls, "upload", 0.01, 0.1, call(emulator.Fault{Kind: emulator.DeadToken})},
	{Calls, "upload", 0.01, 0.1, call(emulator.Fault{Kind: emulator.Vanish})},
	{Calls, "upload", 0.01, 0.2, lag(emulator.None)},
	{Calls, "upload", 0.01, 0.2, lag(emulator.Abort)},
	{Calls, "register", 0.01, 0.2, lag(emulator.None)},
	{Calls, "register", 0.01, 0.2, call(emulator.Fault{Kind: emulator.MissingAnswer})},
	{Calls, "register", 0.01, 0.2, call(emulator.Fault{Kind: emulator.MissingURL})},
	{Calls, "register", 0.01, 0.2, call(emulator.Fault{Kind: emulator.ExtraAnswer})},
	{Calls, "register", 0.01, 0.2, call(emulator.Fault{Kind: emulator.ForeignAnswer})},
	{Calls, "register", 0.002, 0.05, call(emulator.Fault{Kind: emulator.DoubleBumID})},
	{Clock, "", 0.00001, 0.0003, blow(Fail)},
	{Clock, "", 0.00001, 0.0003, blow(FailDone)},
}

// late makes a call slow before and after its work.
func late(most time.Duration) func(*rand.Rand) Strike {
	return func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Delay: upTo(r, most), Linger: upTo(r, most)}}
	}
}

// lag makes what a call did show only later, though well before anybody may conclude
// from its absence.
func lag(k emulator.Kind) func(*rand.Rand) Strike {
	return func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: k, Done: true, Lag: upTo(r, 6*time.Hour)}}
	}
}

// Mix returns a seed's plan: each class of faults is on with an even chance, and has a
// rate of its own. Fixed rates would hide what only shows when one thing goes wrong
// often and all others never.
func Mix(seed uint64) Plan {
	r := rand.New(rand.NewPCG(seed, 1))
	type on struct {
		class
		rate float64
	}
	var mix []on
	for _, c := range classes {
		rate := c.rarest * math.Pow(c.often/c.rarest, r.Float64())
		if r.IntN(2) == 0 {
			mix = append(mix, on{c, rate})
		}
	}
	return func(op Op) Strike {
		for _, c := range mix {
			if c.seam == op.Seam && (c.name == "" || c.name == op.Name) && r.Float64() < c.rate {
				return c.strike(r)
			}
		}
		return Strike{}
	}
}
