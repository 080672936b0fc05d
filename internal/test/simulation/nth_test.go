package simulation

import (
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
)

// underRace says that the race detector slows everything down.
var underRace bool

// sample is for those who run the simulation often, such as "make mutants".
var sample = flag.Bool("sample", false, "try a sample of each long series")

// bounded says that long series are sampled.
func bounded() bool { return testing.Short() || underRace || *sample }

// TestNthFailure strikes the N-th operation of each seam, in each form, for N = 1, 2, …
// until a run has no N-th operation any more. Of the files every third is taken, and of
// all fewer still with the race detector; NTH=all takes each.
func TestNthFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("a fault at every operation in turn is left to make test-long")
	}
	stride := map[Seam]int{Files: 3, Commits: 1, Calls: 1, Clock: 20, Packages: 1}
	for _, seam := range []Seam{Files, Commits, Calls, Clock, Packages} {
		last := DieDone
		if seam == Clock || seam == Packages {
			last = FailDone
		}
		for b := Fail; b <= last; b++ {
			t.Run(fmt.Sprintf("%s/%v", seam, b), func(t *testing.T) {
				t.Parallel()
				step := stride[seam]
				if os.Getenv("NTH") == "all" {
					step = 1
				} else if underRace {
					step = 151 * max(1, step/2)
				} else if bounded() {
					step = 23 * max(1, step/2)
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

// nth runs the several with one strike and reports whether it fired.
func nth(t *testing.T, seam Seam, b Blow, n int) (fired bool) {
	synctest.Test(t, func(t *testing.T) {
		cfg := several(uint64(n))
		if seam == Packages {
			cfg = careless(cfg)
		}
		w := New(t, cfg)
		var hit atomic.Bool
		w.SetPlan(func(op Op) Strike {
			if op.Seam != seam || op.All != n {
				return Strike{}
			}
			hit.Store(true)
			return Strike{Blow: b}
		})
		w.Start()
		w.dropSeveral()
		w.RunUntilCalm(72 * time.Hour)
		w.Check(false)
		fired = hit.Load()
	})
	return fired
}

// several is a world in which every kind of end comes within two hours: one drop folder
// whose archived sources are deleted, one whose are moved, and one of single PDFs.
func several(seed uint64) Config {
	cfg := soon(seed)
	soonDrop := cfg.Drop
	cfg.Vaults, cfg.PDFs = 2, onePDFDrop()
	cfg.Drop = func(vault int, d *dropwork.Settings, moved string) {
		if soonDrop(vault, d, moved); vault == 1 {
			d.DisposeTo = moved
		}
	}
	return cfg
}

// careless makes the store one that holds no body against its Content-MD5, and keeps what ends early.
func careless(cfg Config) Config {
	with := cfg.Emulator
	cfg.Emulator = func(c *emulator.Config) {
		with(c)
		c.Readings.ContentMD5, c.Readings.ShortBody = "ignore", "keep"
	}
	return cfg
}

// dropSeveral drops what will be deleted, moved, rejected, registered twice, found to
// be a duplicate, and delivered.
func (w *World) dropSeveral() {
	w.t.Helper()
	w.DropFolders(0, MakeFolder(1, 0, Good), MakeFolder(1, 1, Faulty))
	w.DropFolders(1, MakeFolder(1, 2, Good), MakeFolder(1, 3, FailsOnce))
	w.DropFolders(2, MakePDF(1, 4, Scan))
	w.Advance(3 * time.Minute)
	w.DropFolders(0, MakeFolder(1, 0, Good).CopyToDropAgain())
	w.Advance(2 * time.Hour)
}
