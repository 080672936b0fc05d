package simtest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// underRace says that the race detector slows everything down.
var underRace bool

// bounded says that long series are sampled.
func bounded() bool { return testing.Short() || underRace }

// TestNthFailure strikes the N-th operation of each seam, in each form, for N = 1, 2, …
// until a run has no N-th operation any more.
func TestNthFailure(t *testing.T) {
	stride := map[Seam]int{Files: 1, Commits: 1, Calls: 1, Clock: 20}
	for _, seam := range []Seam{Files, Commits, Calls, Clock} {
		last := DieDone
		if seam == Clock {
			last = FailDone
		}
		for b := Fail; b <= last; b++ {
			t.Run(fmt.Sprintf("%s/%v", seam, b), func(t *testing.T) {
				t.Parallel()
				step := stride[seam]
				if bounded() {
					step *= 7
				}
				runs := 0
				for n := 1; nth(t, seam, b, n); n += step {
					runs++
					if t.Failed() {
						t.Fatalf("%s %v at operation %d", seam, b, n)
					}
				}
				t.Logf("%d runs", runs)
			})
		}
	}
}

// nth runs three folders with one strike and reports whether it fired.
func nth(t *testing.T, seam Seam, b Blow, n int) (fired bool) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, soon(uint64(n)))
		var hit atomic.Bool
		w.Plan(func(op Op) Strike {
			if op.Seam != seam || op.All != n {
				return Strike{}
			}
			hit.Store(true)
			return Strike{Blow: b}
		})
		w.Start()
		w.Drop(0, Make(1, 0, Good), Make(1, 1, Faulty))
		w.Advance(3 * time.Minute)
		w.Drop(0, Make(1, 0, Good).Again())
		w.Advance(80 * time.Minute)
		w.Calm(72 * time.Hour)
		w.Check(false)
		fired = hit.Load()
	})
	return fired
}
