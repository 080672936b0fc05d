package simtest

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
)

// foundOnce are seeds that broke a promise once, with what it was. They always run. A
// seed fixes what goes wrong and how often, not the order in which goroutines meet it, so
// what was understood has a test of its own too.
var foundOnce = []struct {
	seed uint64
	what string
}{
	{12, "I2: a package that landed after its window was registered again at once, for the service called the unused number failed"},
	{1049, "I25: a failure that might have been an unused number went round for ever, and was never counted"},
}

// TestSimulation runs a world from each seed: folders, faults, restarts and the clock
// for 72 hours, then calm. SEEDS=n runs n of them, FIRST=n begins at another one.
func TestSimulation(t *testing.T) {
	seeds := number("SEEDS", 60)
	if bounded() {
		seeds = number("SEEDS", 10)
	}
	var all []uint64
	for i := range seeds {
		all = append(all, uint64(number("FIRST", 1)+i))
	}
	for _, f := range foundOnce {
		if !slices.Contains(all, f.seed) {
			all = append(all, f.seed)
		}
	}
	var sums tally
	t.Run("seed", func(t *testing.T) {
		for _, seed := range all {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { sums.add(simulate(t, seed)) })
			})
		}
	})
	t.Logf("%d seeds, %d folders, %v virtual, %d deaths, %d restarts, %d faults: %s", len(all), sums.entries,
		sums.virtual.Round(time.Hour), sums.deaths, sums.restarts, sum(sums.fired), listed(sums.fired))
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64) Outcome {
	r := rand.New(rand.NewPCG(seed, 0))
	cfg, same := randomConfig(seed, r)
	w := New(t, cfg)
	w.Plan(except(Mix(seed), same))
	w.Start()
	total := 1 + r.IntN(40)
	var made []Folder
	for hour := range 72 {
		for len(made) < total && r.IntN(48) < max(2, total*48/60) && hour < 60 || len(made) < total && hour == 60 {
			f := invent(r, seed, made)
			if same && strings.HasPrefix(f.Number, "FAIL") {
				f = Make(seed, len(made), Good) // what failed once fails for ever under the same number
			}
			made = append(made, f)
			w.Drop(r.IntN(w.cfg.Vaults), made[len(made)-1])
			w.Advance(upTo(r, 40*time.Minute))
			if r.IntN(3) > 0 && hour < 60 {
				break
			}
		}
		w.mishap(r)
		w.Advance(time.Hour)
	}
	w.Plan(nil)
	w.Restart(Graceful) // a route that was stopped for good goes on only then
	w.Calm(7 * 24 * time.Hour)
	return w.Check(true)
}

// invent makes the next folder.
func invent(r *rand.Rand, seed uint64, made []Folder) Folder {
	switch p := r.IntN(100); {
	case p < 8 && len(made) > 0:
		f := made[r.IntN(len(made))]
		f.Name += fmt.Sprintf(" (%d)", len(made))
		return f
	case p < 14:
		return Make(seed, len(made), Faulty)
	case p < 18:
		return Make(seed, len(made), Hostile)
	case p < 24:
		return Make(seed, len(made), FailsOnce)
	}
	return Make(seed, len(made), Good)
}

// mishap is what the machine does by itself in an hour: rarely anything.
func (w *World) mishap(r *rand.Rand) {
	switch r.IntN(40) {
	case 0:
		w.Restart(Graceful)
	case 1:
		w.Restart(Death)
	case 2:
		w.Restart(Reboot)
	case 3:
		w.clock.sleep(upTo(r, 3*time.Hour))
	case 4:
		w.clock.set(upTo(r, 2*time.Hour) - time.Hour)
	case 5:
		w.clock.set(0)
	}
}

// randomConfig draws how the daemon is configured and what kind of service it meets.
func randomConfig(seed uint64, r *rand.Rand) (cfg Config, same bool) {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	readings := emulator.Readings{
		URLForm: pick("object", "string", "headers", "fields"), InOrder: r.IntN(2) == 0, Repeat: pick("new", "new", "refuse", "same"),
		LatePackage: pick("archive", "ignore"), BadCredentials: 401 + 2*r.IntN(2), ErrorBody: pick("message", "detail-list", "xml", "empty", "html"),
		NumbersAsStrings: r.IntN(2) == 0, InProgressWord: pick("", "", "ArchivingQueued"), ETag: pick("md5", "kms", "none"),
	}
	archiving := upTo(r, 5*time.Hour)
	workers, batch := 1+r.IntN(8), 1+r.IntN(50)
	disposes, moves, grace := r.IntN(3) > 0, r.IntN(2) == 0, upTo(r, 24*time.Hour)
	return Config{
		Seed: seed, Vaults: 1 + r.IntN(2), OAuth: r.IntN(2) == 0,
		Daemon: func(c *daemon.Config) { c.Workers, c.BatchSize = workers, batch },
		Drop: func(_ int, d *daemon.Drop, moved string) {
			d.Disposes, d.Grace = disposes, grace
			if moves {
				d.DisposeTo = moved
			}
		},
		Emulator: func(c *emulator.Config) {
			c.Readings, c.ArchiveMin, c.ArchiveMax, c.TokenLife = readings, archiving/10, archiving, 20*time.Minute
		},
	}, readings.Repeat == "same"
}

// except leaves foreign numbers out of p where the service gives the same number again:
// the emulator would hold the second, right answer against whoever believes it.
func except(p Plan, same bool) Plan {
	return func(op Op) Strike {
		s := p(op)
		if same && (s.Call.Kind == emulator.ForeignAnswer || s.Call.Kind == emulator.DoubleBumID) {
			return Strike{}
		}
		return s
	}
}

// number reads a number from the environment.
func number(name string, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		panic(name + " is no number")
	}
	return n
}

// tally adds outcomes up.
type tally struct {
	mu               sync.Mutex
	entries          int            // guarded by mu, as all below
	deaths, restarts int            //
	virtual          time.Duration  //
	fired            map[string]int //
}

func (s *tally) add(o Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fired == nil {
		s.fired = map[string]int{}
	}
	s.entries += len(o.Entries)
	s.deaths += o.Deaths
	s.restarts += o.Restarts
	s.virtual += o.Virtual
	for k := range maps.Keys(o.Fired) {
		s.fired[k] += o.Fired[k]
	}
}
