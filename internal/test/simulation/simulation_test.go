package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// seedFile holds the seeds that broke a promise once, one on a line: the seed, the
// fingerprint of its scenario then, and what broke. They always run. A seed fixes what
// goes wrong and how often, not the order in which goroutines meet it, so what was
// understood has a test of its own too.
const seedFile = "testdata/seeds"

// TestSimulation runs the scenario of each seed: folders, faults and mishaps for 72 hours,
// then calm. SEEDS=n runs n of them beside the kept ones and keeps what fails, FIRST=n
// begins at another one; REPEAT=n runs that seed alone, with DROPS, MISHAPS and CLASSES
// what of it is left, and SHRINK=n looks for the least of it that still fails. Every sixth
// run sets machines back to an older copy of their ledger; with SETBACK=1 every second one does.
func TestSimulation(t *testing.T) {
	if seed := number("SHRINK", 0); seed > 0 {
		shrink(t, uint64(seed))
		return
	}
	if seed := number("REPEAT", 0); seed > 0 {
		s := drawScenario(uint64(seed)).only(os.Getenv("DROPS"), os.Getenv("MISHAPS"), os.Getenv("CLASSES"))
		t.Log(s)
		synctest.Test(t, func(t *testing.T) { t.Log(s.run(New(t, s.config()), make([]int, len(allClasses)))) })
		return
	}
	r := newRuns(t, isSampled(t, "150 seeds"))
	t.Run("seeds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for seed, ok := r.next(); ok; seed, ok = r.next() {
					t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { r.one(t, seed) })
				}
			})
		}
	})
	r.finish(t)
}

// runs is one series of seeds.
type runs struct {
	began   time.Time
	long    bool // somebody asked for it and looks on
	kept    map[uint64]string
	pending []uint64 // kept ones; guarded by mu
	first   uint64
	seeds   int

	mu       sync.Mutex
	done     int            // guarded by mu, as all below
	looked   time.Time      //
	broken   []uint64       //
	entries  int            //
	finished int            //
	problems int            //
	pdfs     int            // entries of single PDFs
	arrived  int            // of them delivered
	sent     int            // entries of the business network
	copies   int            // entries for what was sent
	received int            // documents that came in over it
	told     [3]int         // of them delivered, rejected by the network, and contradicted later
	extracts int            // of the accounts-payable system
	doubtful int            // of them those of which earlier downloads are not known
	deaths   int            //
	restarts int            //
	virtual  time.Duration  //
	fired    map[string]int // by seam and kind
	hits     []int          // by class
	mishaps  map[string]int //
}

func newRuns(t *testing.T, sampled bool) *runs {
	otherwise := 150
	switch {
	case kit.Race:
		otherwise = 5
	case sampled:
		otherwise = 6
	}
	r := &runs{began: time.Now(), looked: time.Now(), long: os.Getenv("SEEDS") != "", kept: map[uint64]string{}, first: uint64(number("FIRST", 1)),
		seeds: number("SEEDS", otherwise), fired: map[string]int{}, hits: make([]int, len(allClasses)), mishaps: map[string]int{}}
	text := kit.Value(os.ReadFile(seedFile))(t)
	for line := range strings.Lines(string(text)) {
		var seed uint64
		var fingerprint string
		if n, _ := fmt.Sscan(line, &seed, &fingerprint); n == 2 {
			r.kept[seed] = fingerprint
		}
	}
	r.pending = slices.Sorted(maps.Keys(r.kept))
	return r
}

// next gives the next seed: first the kept ones.
func (r *runs) next() (seed uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 {
		seed, r.pending = r.pending[0], r.pending[1:]
		return seed, true
	}
	if r.seeds == 0 {
		return 0, false
	}
	r.seeds--
	r.first++
	return r.first - 1, true
}

// one runs one seed.
func (r *runs) one(t *testing.T, seed uint64) {
	s := drawScenario(seed)
	var o Outcome
	hits := make([]int, len(allClasses))
	t.Cleanup(func() { r.add(t, s, o, hits) })
	synctest.Test(t, func(t *testing.T) { o = s.run(New(t, s.config()), hits) })
}

// add adds an outcome up, and keeps a seed that failed.
func (r *runs) add(t *testing.T, s scenario, o Outcome, hits []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.entries += len(s.Drops)
	r.finished += o.Finished
	r.deaths += o.Deaths
	r.restarts += o.Restarts
	r.virtual += o.Virtual
	r.problems += len(o.Problems)
	for _, e := range o.Entries {
		r.countByRoute(e)
	}
	for _, a := range o.Arrivals {
		if a.Kind == arrival.Received {
			r.received++
			continue
		}
		r.extracts++
		if a.UnknownPast {
			r.doubtful++
		}
	}
	for k, n := range o.Fired {
		word := strings.Fields(k)
		r.fired[word[0]+" "+word[len(word)-1]] += n
	}
	for i, n := range hits {
		r.hits[i] += n
	}
	for _, m := range s.Mishaps {
		r.mishaps[m.What]++
	}
	if t.Failed() {
		r.broken = append(r.broken, s.Seed)
		what := "failed before its end"
		if len(o.Problems) > 0 {
			what = o.Problems[0]
		}
		if r.say(os.Stdout, "seed %d failed: %s", s.Seed, what); !testing.Verbose() {
			r.say(os.Stdout, "again: SETBACK=%s REPEAT=%d go test ./internal/test/simulation -run '^TestSimulation$' -count=1 -v", os.Getenv("SETBACK"), s.Seed)
		}
		t.Logf("%v", s)
		t.Logf("again: SETBACK=%s REPEAT=%d go test ./internal/test/simulation -run '^TestSimulation$' -count=1 -v; less of it: SHRINK=%d in its place", os.Getenv("SETBACK"), s.Seed, s.Seed)
		r.keep(t, s, what)
	}
	if r.long && time.Since(r.looked) > 10*time.Second {
		r.looked = time.Now()
		r.say(os.Stdout, "%d seeds, %.1f a second, %d folders, %d failed", r.done, r.rate(), r.entries, len(r.broken))
	}
}

// countByRoute counts an entry of a route that has no archive. The caller holds mu.
func (r *runs) countByRoute(e ledger.Entry) {
	switch e.Route {
	case ledger.Vault:
		if strings.HasPrefix(e.Folder, "Sent ") && e.State == ledger.Archived {
			r.copies++
		}
	case ledger.PDF:
		r.pdfs++
		if e.State == ledger.Delivered {
			r.arrived++
		}
	case ledger.Network:
		r.sent++
		for i, is := range []bool{e.State == ledger.Delivered, e.Cause.Code == ledger.CauseUndelivered || e.Cause.Code == ledger.CauseInvalidContent, e.IsUndelivered()} {
			if is {
				r.told[i]++
			}
		}
	}
}

func (r *runs) say(to *os.File, format string, args ...any) {
	fmt.Fprintf(to, format+"\n", args...)
}

func (r *runs) rate() float64 { return float64(r.done) / time.Since(r.began).Seconds() }

// keep writes a failed seed down for ever.
func (r *runs) keep(t *testing.T, s scenario, what string) {
	if _, known := r.kept[s.Seed]; known || !r.long {
		return
	}
	f, err := os.OpenFile(seedFile, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Log(err)
		return
	}
	defer f.Close()
	what, _, _ = strings.Cut(what, "\n")
	fmt.Fprintf(f, "%d %s %s\n", s.Seed, s.fingerprint(), what)
}

// finish tells what happened, and fails a series in which too little did.
func (r *runs) finish(t *testing.T) {
	lines := []string{
		fmt.Sprintf("%d seeds in %v: %.1f a second", r.done, time.Since(r.began).Round(time.Second), r.rate()),
		fmt.Sprintf("%.1f virtual years, %d folders, %d finished", r.virtual.Hours()/24/365.25, r.entries, r.finished),
		fmt.Sprintf("%d single PDFs, %d delivered", r.pdfs, r.arrived),
		fmt.Sprintf("%d documents of the network, %d delivered, %d rejected by it, %d of them after the delivery; %d copies archived; %d documents received", r.sent, r.told[0], r.told[1], r.told[2], r.copies, r.received),
		fmt.Sprintf("%d extracts, of %d of them earlier downloads are not known", r.extracts, r.doubtful),
		fmt.Sprintf("%d deaths, %d graceful restarts; mishaps: %s", r.deaths, r.restarts, listCounts(r.mishaps)),
		fmt.Sprintf("%d faults fired: %s", sumCounts(r.fired), listCounts(r.fired)),
		fmt.Sprintf("%d violations in %d seeds: %v", r.problems, len(r.broken), r.broken),
	}
	for _, line := range lines {
		if t.Log(line); r.long && !testing.Verbose() {
			r.say(os.Stdout, "%s", line)
		}
	}
	if r.done >= 1000 && slices.Contains(r.hits, 0) {
		t.Errorf("vacuous: the class of faults %d never fired", slices.Index(r.hits, 0))
	}
	if r.done >= 100 && 2*r.arrived < r.pdfs { // the others are duplicates, come back, or wait for a person
		t.Errorf("vacuous: %d of %d single PDFs delivered", r.arrived, r.pdfs)
	}
	if r.done >= 100 && (2*r.told[0] < r.sent || r.told[1] == 0 || r.told[2] == 0) {
		t.Errorf("vacuous: of %d documents of the network %d were delivered, %d rejected, %d of them late", r.sent, r.told[0], r.told[1], r.told[2])
	}
	kit.Check(t, r.done < 100 || r.copies != 0, "vacuous: no copy of what was sent is archived")
	kit.Check(t, r.done < 100 || r.received != 0, "vacuous: no document was received")
	kit.Check(t, r.done < 100 || r.extracts != 0, "vacuous: no extract came")
	if len(r.broken) == 0 && (sumCounts(r.fired) == 0 || 10*r.finished < 9*r.entries) {
		t.Errorf("vacuous: %d faults, %d of %d folders finished", sumCounts(r.fired), r.finished, r.entries)
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
