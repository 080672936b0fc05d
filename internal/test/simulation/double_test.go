package simulation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
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
	if 2*twice.Load() < rows.Load() {
		t.Errorf("vacuous: in %d of %d runs both deaths came", twice.Load(), rows.Load())
	}
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
