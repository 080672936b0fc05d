package simulation

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// only returns what is left of s: of its drops, mishaps and classes those whose places
// are named, as "0.3.4"; an empty list leaves all.
func (s scenario) only(drops, mishaps, mix string) scenario {
	s.Drops, s.Mishaps, s.Mix = chosen(s.Drops, drops), chosen(s.Mishaps, mishaps), chosen(s.Mix, mix)
	return s
}

func chosen[T any](all []T, places string) (some []T) {
	if places == "" {
		return all
	}
	for word := range strings.SplitSeq(places, ".") {
		if i, err := strconv.Atoi(word); err == nil && i >= 0 && i < len(all) {
			some = append(some, all[i])
		}
	}
	return some
}

// part is one list of a scenario while it shrinks: the places that are left.
type part struct {
	name string
	left []int
	step int // how many are left out at once
}

// shrink leaves out halves, quarters and so on of a failing scenario's folders, mishaps
// and classes of faults for as long as it still fails, each try in a process of its own.
func shrink(t *testing.T, seed uint64) {
	s := drawScenario(seed)
	parts := []*part{{name: "DROPS"}, {name: "MISHAPS"}, {name: "CLASSES"}}
	for i, n := range []int{len(s.Drops), len(s.Mishaps), len(s.Mix)} {
		for place := range n {
			parts[i].left = append(parts[i].left, place)
		}
		parts[i].step = (n + 1) / 2
	}
	kit.Need(t, failsWith(t, seed, parts), "seed %d does not fail in five runs", seed)
	for again := true; again; {
		again = false
		for _, p := range parts {
			again = p.less(func() bool { return failsWith(t, seed, parts) }) || again
		}
		t.Logf("still fails: %s", command(seed, parts))
	}
}

// less leaves out what can be left out in steps of one size; false: there is nothing
// more to try.
func (p *part) less(fails func() bool) bool {
	if p.step == 0 {
		return false
	}
	for from := 0; from < len(p.left); {
		was := p.left
		p.left = slices.Concat(was[:from], was[min(from+p.step, len(was)):])
		if len(p.left) > 0 && fails() {
			continue
		}
		p.left = was
		from += p.step
	}
	p.step /= 2
	return p.step > 0
}

func (p *part) String() string {
	return p.name + "=" + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.left), " ", "."), "[]")
}

func command(seed uint64, parts []*part) string {
	return fmt.Sprintf("REPEAT=%d %v %v %v go test ./internal/test/simulation -run '^TestSimulation$' -count=1 -v", seed, parts[0], parts[1], parts[2])
}

// failsWith runs what is left up to five times: the order of goroutines differs.
func failsWith(t *testing.T, seed uint64, parts []*part) bool {
	t.Helper()
	for range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSimulation$", "-test.timeout", "2m")
		cmd.Env = append(os.Environ(), fmt.Sprintf("REPEAT=%d", seed), "SHRINK=0")
		for _, p := range parts {
			cmd.Env = append(cmd.Env, p.String())
		}
		if cmd.Run() != nil {
			return true
		}
	}
	return false
}

func TestMain(m *testing.M) { os.Exit(kit.MainOfManyFiles(m)) }

// soon is a world in which everything happens within two hours.
func soon(seed uint64) Config {
	return Config{Seed: seed,
		Drop: func(_ int, d *dropwork.Settings, _ string) {
			d.Disposes, d.Grace, d.Settle, d.Rescan = true, time.Hour, time.Second, time.Minute
		},
		Emulator: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = time.Minute, 5*time.Minute },
	}
}

func isCall(name string) func() func(Op) bool {
	return func() func(Op) bool {
		return func(op Op) bool { return op.Seam == Calls && op.Name == name }
	}
}

// nthRename picks the n-th rename of each thing whose name begins so: claim, place, move out.
func nthRename(n int, prefix string) func() func(Op) bool {
	return func() func(Op) bool {
		seen := map[string]int{}
		return func(op Op) bool {
			if op.Seam != Files || op.Name != "rename" || !strings.HasPrefix(op.On, prefix) {
				return false
			}
			seen[op.On]++
			return seen[op.On] == n
		}
	}
}

func TestCrashMatrix(t *testing.T) {
	steps := map[string]func() func(Op) bool{
		"Register":    isCall("register"),
		"Upload":      isCall("upload"),
		"Ask":         func() func(Op) bool { return func(op Op) bool { return strings.HasPrefix(op.Name, "status") } },
		"Commit":      func() func(Op) bool { return func(op Op) bool { return op.Seam == Commits } },
		"Claim":       nthRename(1, "Müller"),
		"Place":       nthRename(2, "Müller"),
		"MoveOut":     nthRename(3, "Müller"),
		"PDFRegister": isCall("pdf-register"),
		"PDFUpload":   isCall("pdf-upload"),
		"PDFClaim":    nthRename(1, scanPrefix),
		"PDFPlace":    nthRename(2, scanPrefix),
		"PDFSpool": func() func(Op) bool {
			return func(op Op) bool {
				return op.Seam == Files && op.Name == "rename" && strings.HasSuffix(op.On, ".pdf") && !strings.HasPrefix(op.On, scanPrefix)
			}
		},
		"Dispose": func() func(Op) bool { return func(op Op) bool { return op.Name == "unlink" } },
	}
	// Each document does these several times, and the third is another than the
	// first. Of the others the third is the first of another document.
	severalForEach := []string{"Ask", "Commit", "Dispose"}
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		for b := Fail; b <= DieDone; b++ {
			for _, n := range []int{1, 3} {
				if n > 1 && (kit.Race || !slices.Contains(severalForEach, name)) {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%d", name, b, n), func(t *testing.T) {
					kit.ParallelBubble(t, func(t *testing.T) {
						cfg := soon(uint64(n))
						cfg.Daemon = func(c *daemon.Config) { c.BatchSize = 1 }
						if strings.HasPrefix(name, "PDF") {
							cfg.PDFs = onePDFDrop()
						}
						if name == "MoveOut" {
							keep := cfg.Drop
							cfg.Drop = func(i int, d *dropwork.Settings, moved string) {
								keep(i, d, moved)
								d.DisposeTo = moved
							}
						}
						w := New(t, cfg)
						w.SetPlan(StrikeAt(n, b, steps[name]()))
						w.Start()
						for i := range 4 {
							w.DropFolders(0, MakeFolder(1, i, Good))
							if strings.HasPrefix(name, "PDF") {
								w.DropFolders(1, MakePDF(1, i, Scan))
							}
						}
						w.Advance(2 * time.Hour)
						w.RunUntilCalm(72 * time.Hour)
						w.Check(true)
					})
				})
			}
		}
	}
}
