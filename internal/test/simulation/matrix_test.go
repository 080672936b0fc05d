package simulation

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

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
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
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
