package simulation

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// point names what an operation is for, so that the same step of another folder or of
// another life has the same name.
func (op Op) point() string {
	on := strings.TrimPrefix(op.On, ".")
	stem, rest, _ := strings.Cut(on, ".")
	switch _, err := archive.ParseKey(stem); {
	case op.Seam != Files:
		return string(op.Seam) + " " + op.Name
	case err == nil:
		on = "<key> " + rest
	case strings.HasPrefix(on, "Müller"):
		on = "<folder>"
	case strings.HasPrefix(on, scanPrefix):
		on = "<scan>"
	case strings.HasPrefix(on, "Rechnung") || strings.HasPrefix(on, "Lieferschein"):
		on = "<file>"
	case strings.HasPrefix(on, "/"):
		on = "<path>"
	case strings.HasPrefix(on, "doctor-"):
		on = "<test file>"
	}
	return string(op.Seam) + " " + op.Name + " " + on
}

// place is one named point: the n-th operation of its name. Commits and renames are for
// something else each time.
type place struct {
	point string
	n     int
}

func (p place) String() string { return fmt.Sprintf("%s %d", p.point, p.n) }

// places are all that a calm run passes through and at which a process can die: it dies neither at a reading of the clock
// nor where a package is damaged.
func places(t *testing.T) (all []place) {
	seen := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		w := New(t, several(1))
		w.SetPlan(func(op Op) Strike {
			if op.Seam != Clock && op.Seam != Packages {
				seen[op.point()]++
			}
			return Strike{}
		})
		w.Start()
		w.dropSeveral()
		w.RunUntilCalm(72 * time.Hour)
		w.Check(false)
	})
	for point, n := range seen {
		most := 1
		if strings.HasPrefix(point, string(Commits)) {
			most = 12
		} else if strings.HasSuffix(point, "<folder>") {
			most = 3
		}
		for i := range min(n, most) {
			all = append(all, place{point, i + 1})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// TestCrashMatrix_I5_Twice lets the process die at one named point, and the one that
// recovers from it at another: each pair of points with PAIRS=all, else a sample.
func TestCrashMatrix_I5_Twice(t *testing.T) {
	all := places(t)
	stride := 149
	if isSampled(t, "each tenth pair of crash points") {
		stride = 1799
	}
	if os.Getenv("PAIRS") == "all" {
		stride = 1
	}
	var rows, twice atomic.Int64
	var never sync.Map
	t.Run("pairs", func(t *testing.T) {
		i := 0
		for _, first := range all {
			for _, second := range all {
				for _, form := range [][2]Blow{{Die, Die}, {Die, DieDone}, {DieDone, Die}, {DieDone, DieDone}} {
					if i++; i%stride != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%v_%v/%v_%v", first, form[0], second, form[1]), func(t *testing.T) {
						t.Parallel()
						deaths := dieTwice(t, first, second, form)
						if rows.Add(1); deaths > 1 {
							twice.Add(1)
						} else if deaths == 0 {
							never.Store(first, true)
						}
					})
				}
			}
		}
	})
	t.Logf("%d points, %d pairs, in %d of them both deaths came", len(all), rows.Load(), twice.Load())
	kit.Check(t, 2*twice.Load() >= rows.Load(), "vacuous: in %d of %d runs both deaths came", twice.Load(), rows.Load())
	never.Range(func(p, _ any) bool {
		t.Errorf("vacuous: nothing died at %v", p)
		return true
	})
}

// dieTwice runs one pair and returns how many deaths came.
func dieTwice(t *testing.T, first, second place, form [2]Blow) (deaths int) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, several(1))
		at, blows, n := []place{first, second}, form[:], 0
		w.SetPlan(func(op Op) Strike {
			if len(at) == 0 || op.Seam == Clock || op.point() != at[0].point {
				return Strike{}
			}
			if n++; n != at[0].n {
				return Strike{}
			}
			s := Strike{Blow: blows[0]}
			at, blows, n = at[1:], blows[1:], 0
			return s
		})
		w.Start()
		w.dropSeveral()
		w.RunUntilCalm(72 * time.Hour)
		w.Check(false)
		deaths = w.deaths
	})
	return deaths
}

// sample is for those who run the simulation often, such as "make mutants".
var sample = flag.Bool("sample", false, "try a sample of each long series")

// isSampled reports whether a long series is sampled.
func isSampled(t testing.TB, what string) bool { return *sample || kit.Sampled(t, what) }

// mostOf is how many operations of one kind TestNthFailure strikes in one run of it, by seam; 0: each. The first number is that of the full
// form, the second that of a sample. With the race detector it is one of each name, whatever it is done to, and a few of the clock.
var mostOf = map[Seam][2]int{Files: {6, 1}, Commits: {0, 3}, Calls: {0, 3}, Clock: {60, 20}, Packages: {0, 1}}

// clockUnderRace is how many readings of the clock are struck with the race detector.
const clockUnderRace = 4

// TestNthFailure strikes one operation in each run of a world, in each form: of every kind of operation, such as the sync of a receipt or
// the rename of a claimed PDF, those that a calm run does. Some kinds come hundreds of times, and are the same each time: of these it takes
// a few at equal distances, and a seed says which is the first: NTH_SEED=2 strikes others than NTH_SEED=1, which is the default, so that
// the same tree gives the same result. NTH=all strikes each operation.
func TestNthFailure(t *testing.T) {
	kit.Long(t, "a fault at an operation of every kind")
	seed, all := uint64(number("NTH_SEED", 1)), os.Getenv("NTH") == "all"
	kinds := countKinds(t)
	for _, seam := range []Seam{Files, Commits, Calls, Clock, Packages} {
		last := DieDone
		if seam == Clock || seam == Packages {
			last = FailDone
		}
		for b := Fail; b <= last; b++ {
			t.Run(fmt.Sprintf("%s/%v", seam, b), func(t *testing.T) {
				t.Parallel()
				runs, fired := 0, 0
				for _, at := range chooseOperations(kinds, seam, seed+uint64(b), all) {
					runs++
					struck := strikeOne(t, seam, b, at)
					for !struck && at.n > 1 {
						at.n = at.n * 3 / 4 // this run did fewer operations than the one that was counted: what goes in one commit depends on who is ready
						struck = strikeOne(t, seam, b, at)
					}
					if struck {
						fired++
					}
					if t.Failed() {
						t.Fatalf("%s %v at %v; again: NTH_SEED=%d go test ./internal/test/simulation -run %q -count=1", seam, b, at, seed, t.Name())
					}
				}
				t.Logf("NTH_SEED=%d: %d runs, %d struck", seed, runs, fired)
				kit.Check(t, 10*fired >= 9*runs && runs != 0, "vacuous: %d of %d runs struck", fired, runs)
			})
		}
	}
}

// kindOf names what an operation is for. With the race detector a kind is all of one name.
func kindOf(op Op) string {
	if kit.Race {
		return string(op.Seam) + " " + op.Name
	}
	return op.point()
}

// countKinds counts how often a calm run does the operations of each kind.
func countKinds(t *testing.T) map[Seam]map[string]int {
	kinds := map[Seam]map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		w := New(t, several(1))
		w.SetPlan(func(op Op) Strike {
			if kinds[op.Seam] == nil {
				kinds[op.Seam] = map[string]int{}
			}
			kinds[op.Seam][kindOf(op)]++
			return Strike{}
		})
		w.Start()
		w.dropSeveral()
		w.RunUntilCalm(72 * time.Hour)
		w.Check(false)
	})
	return kinds
}

// chooseOperations returns the operations of a seam that are struck. Of a kind that comes often the seed says which.
func chooseOperations(kinds map[Seam]map[string]int, seam Seam, seed uint64, all bool) (chosen []place) {
	for _, kind := range slices.Sorted(maps.Keys(kinds[seam])) {
		n, most := kinds[seam][kind], mostOf[seam][0]
		switch {
		case kit.Race && seam == Clock:
			most = clockUnderRace
		case kit.Race:
			most = 1
		case *sample:
			most = mostOf[seam][1]
		}
		stride := 1
		if most > 0 && !all {
			stride = (n + most - 1) / most
		}
		first := scatterBits(seed^hashName(kind)) % uint64(stride)
		for at := 1 + int(first); at <= n; at += stride {
			chosen = append(chosen, place{kind, at})
		}
	}
	return chosen
}

// strikeOne runs the several with one strike and reports whether it fired.
func strikeOne(t *testing.T, seam Seam, b Blow, at place) (fired bool) {
	synctest.Test(t, func(t *testing.T) {
		cfg := several(uint64(at.n))
		if seam == Packages {
			cfg = careless(cfg)
		}
		w := New(t, cfg)
		var hit atomic.Bool
		n := 0
		w.SetPlan(func(op Op) Strike {
			if op.Seam != seam || kindOf(op) != at.point {
				return Strike{}
			}
			if n++; n != at.n {
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
