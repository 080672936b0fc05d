package ledger

import (
	"crypto/sha256"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// finding is a promise that the model broke, with the moves that led there.
type finding struct {
	text  string
	trace []string
}

// explored is the graph of all worlds that were reached, breadth first.
type explored struct {
	states int
	capped bool
	bad    *finding
	seen   map[[16]byte]int32
	parent []int32
	label  []uint16
	labels []string
	calm   [][2]int32 // moves without a fault, by number of world
	done   []bool     // worlds where an invoice may stay
}

// explore visits every world that can be reached, until one breaks a promise.
func explore(o setup) *explored {
	x := &explored{seen: map[[16]byte]int32{}}
	names := map[string]uint16{}
	var buf []byte
	reach := func(w *world, from int32, label string) (int32, bool) {
		buf = w.appendKey(buf[:0])
		h := sha256.Sum256(buf)
		k := [16]byte(h[:16])
		if i, ok := x.seen[k]; ok {
			return i, false
		}
		i := int32(len(x.parent))
		if _, ok := names[label]; !ok {
			names[label] = uint16(len(x.labels))
			x.labels = append(x.labels, label)
		}
		x.seen[k] = i
		x.parent, x.label, x.done = append(x.parent, from), append(x.label, names[label]), append(x.done, w.settled(o))
		return i, true
	}
	first := o.start()
	reach(&first, -1, "start")
	level, index := []world{first}, []int32{0}
	for len(level) > 0 && !x.capped {
		var next []world
		var nextIndex []int32
		for n := range level {
			if text := level[n].broken(); text != "" {
				x.bad = &finding{text, x.trace(index[n])}
				x.states = len(x.parent)
				return x
			}
			for _, m := range o.moves(&level[n]) {
				i, fresh := reach(&m.to, index[n], m.label)
				if m.to.undue != "" {
					x.bad = &finding{m.to.undue, append(x.trace(index[n]), m.label)}
					x.states = len(x.parent)
					return x
				}
				if !m.faulty {
					x.calm = append(x.calm, [2]int32{index[n], i})
				}
				if fresh {
					next, nextIndex = append(next, m.to), append(nextIndex, i)
				}
			}
		}
		level, index = next, nextIndex
		x.capped = o.limit > 0 && len(x.parent) >= o.limit
	}
	x.states = len(x.parent)
	return x
}

func (x *explored) trace(i int32) []string {
	var t []string
	for ; i > 0; i = x.parent[i] {
		t = append(t, x.labels[x.label[i]])
	}
	slices.Reverse(t)
	return t
}

// stuck returns a world from which no calm moves lead to where an invoice may stay.
func (x *explored) stuck() ([]string, bool) {
	into := make([]int32, len(x.parent)+2) // from[into[i]:into[i+1]] lead to i
	for _, c := range x.calm {
		into[c[1]+2]++
	}
	for i := range x.parent {
		into[i+2] += into[i+1]
	}
	from := make([]int32, len(x.calm))
	for _, c := range x.calm {
		from[into[c[1]+1]] = c[0]
		into[c[1]+1]++
	}
	var queue []int32
	good := slices.Clone(x.done)
	for i, d := range good {
		if d {
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		i := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, f := range from[into[i]:into[i+1]] {
			if !good[f] {
				good[f] = true
				queue = append(queue, f)
			}
		}
	}
	i := slices.Index(good, false)
	if i < 0 {
		return nil, false
	}
	return x.trace(int32(i)), true
}

// services are those that must be survived.
func services(posts uint16, f faults) []setup {
	var all []setup
	for _, s := range []setup{
		{name: "RegistersAnew", repeat: anew},
		{name: "Deduplicates", repeat: deduplicate},
		{name: "RefusesRepeated", repeat: refuse},
		{name: "RegistersAnewAmbiguous", repeat: anew, ambiguous: true},
		{name: "DeduplicatesAmbiguous", repeat: deduplicate, ambiguous: true},
	} {
		if s.posts, s.faults = posts, f; s.ambiguous && f.any < 2 {
			s.faults = faults{} // the ordinary run shall be short
		}
		all = append(all, s)
	}
	return all
}

// TestModel_Promises walks every world within a bound, against each kind of service.
// VAULTD_MODEL=3 (or more) raises the bound to that many POSTs and to two faults of
// each class; VAULTD_MODEL_STATES stops a run at so many worlds.
func TestModel_Promises(t *testing.T) {
	skipUnderRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	posts, f := uint16(2), faults{crash: 1, loss: 1, odd: 1, human: 1, any: 1}
	limit := 0
	if n, err := strconv.Atoi(os.Getenv("VAULTD_MODEL")); err == nil {
		posts, f = uint16(n), faults{crash: 2, loss: 2, odd: 2, human: 1, any: 3}
		limit, _ = strconv.Atoi(os.Getenv("VAULTD_MODEL_STATES"))
	}
	if kit.Sampled(t, "the later worlds of the largest state models") {
		limit = max(limit, sampledWorlds)
	}
	for _, o := range services(posts, f) {
		o.limit = limit
		t.Run(o.name, func(t *testing.T) { o.survive(t) })
	}
}

// sampledWorlds is how many worlds of one service a sampled run walks.
const sampledWorlds = 40_000

// silentServices are those that have no later word and are never asked, with and without the leave to send the same bytes again.
func silentServices(posts uint16, f faults) []setup {
	return []setup{
		{name: "Silent", silent: true, posts: posts, faults: f},
		{name: "SilentRepeats", silent: true, repeats: true, posts: posts, faults: f},
	}
}

// TestModel_I2_SilentService walks every world of a document whose service says nothing after the upload: a second content never lands without
// a flag, or a person to look at it, also where the ledger is put back.
func TestModel_I2_SilentService(t *testing.T) {
	skipUnderRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	limit := 0
	if kit.Sampled(t, "the later worlds of a silent service") {
		limit = sampledWorlds
	}
	for _, o := range silentServices(2, faults{crash: 1, loss: 1, odd: 1, human: 1, any: 1}) {
		o.limit = limit
		t.Run(o.name, func(t *testing.T) { o.survive(t) })
		o.posts, o.faults = 2, faults{crash: 1, human: 1, restore: 1, any: 3}
		t.Run(o.name+"Restored", func(t *testing.T) { o.survive(t) })
	}
}

// TestModel_I2_LateSuccess walks the worlds in which the service archives a package that it
// failed before, or that the store refused. VAULTD_MODEL as above; then other faults come with it.
func TestModel_I2_LateSuccess(t *testing.T) {
	kit.Long(t, "the worlds with a late success")
	skipUnderRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	f := faults{late: 1, any: 1}
	limit := 0
	if _, err := strconv.Atoi(os.Getenv("VAULTD_MODEL")); err == nil {
		f = faults{crash: 1, loss: 1, odd: 1, human: 1, late: 2, any: 3}
		limit, _ = strconv.Atoi(os.Getenv("VAULTD_MODEL_STATES"))
	}
	for _, o := range services(2, f)[:3] {
		o.limit = limit
		t.Run(o.name, func(t *testing.T) { o.survive(t) })
	}
}

// TestModel_I15_SurvivesARestore walks the worlds in which the ledger is put back from a
// backup of any moment. VAULTD_MODEL as above; then other faults come with it.
func TestModel_I15_SurvivesARestore(t *testing.T) {
	skipUnderRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	posts, f := uint16(1), faults{restore: 1, any: 2} // after the restore it counts from the copy
	limit := 0
	if n, err := strconv.Atoi(os.Getenv("VAULTD_MODEL")); err == nil {
		posts, f = uint16(n), faults{crash: 1, loss: 1, odd: 1, human: 1, restore: 1, any: 3}
		limit, _ = strconv.Atoi(os.Getenv("VAULTD_MODEL_STATES"))
	}
	for _, o := range services(posts, f)[:3] {
		o.limit = limit
		o.faults = f
		t.Run(o.name, func(t *testing.T) { o.survive(t) })
	}
}

func (o setup) survive(t *testing.T) {
	x := explore(o)
	t.Logf("%d worlds, all: %t", x.states, !x.capped)
	if x.bad != nil {
		t.Fatalf("the model breaks a promise: %s, want none broken\n  %s", x.bad.text, strings.Join(x.bad.trace, "\n  "))
	}
	kit.Check(t, x.states >= 1000, "only %d worlds: nothing happened", x.states)
	if trace, ok := x.stuck(); ok && !x.capped {
		t.Errorf("I25 nothing leads out of\n  %s", strings.Join(trace, "\n  "))
	}
}

// TestModel_RefutesMistakes plants the mistakes that the protocol exists to avoid:
// each must break its promise somewhere in the same space.
func TestModel_RefutesMistakes(t *testing.T) {
	skipUnderRace(t)
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	for _, row := range []struct {
		mistake   string
		ambiguous bool
		silent    bool
		faults    faults // that it takes; most need none but bad timing
		promise   string
	}{
		{"NoIntentBeforePost", false, false, faults{}, "I9"},
		{"NoIntentBeforePut", false, false, faults{crash: 1, any: 1}, "I2"},
		{"BlindReregistration", false, false, faults{}, "I2"},
		{"NoGrace", false, false, faults{}, "I2"},
		{"FailureBelievedAtOnce", false, false, faults{}, "I2"},
		{"UnusedTakenForFailed", false, false, faults{}, "I2"},
		{"AbsentIsProof", false, false, faults{odd: 1, any: 1}, "I2"},
		{"DisposeAfter2xx", false, false, faults{}, "I1"},
		{"AdoptedByPosition", false, false, faults{odd: 1, any: 1}, "I8"},
		{"UnknownWordIsSuccess", true, false, faults{}, "I12"},
		{"TimeoutTakenForSuccess", false, false, faults{}, "I12"},
		{"RefusalHidesEarlierAttempt", false, false, faults{}, "I2"},
		{"RefusalForgotten", false, false, faults{late: 1, any: 1}, "I2"},
		{"ReleaseUnflagged", false, false, faults{human: 1, any: 1}, "I2"},
		{"RestoredWithoutDoubt", false, false, faults{restore: 1, any: 2}, "I9"},
		{"ReconciledWithoutAsking", false, false, faults{restore: 1, any: 2}, "I9"},
		{"SourceNotLookedFor", false, false, faults{restore: 1, any: 2}, "I1"},
		{"RepeatedUnflagged", false, true, faults{crash: 1, any: 1}, "I2"},
		{"RegisteredAgainBlindly", false, true, faults{crash: 1, any: 1}, "I2"},
		{"TimeoutTakenForSuccess", false, true, faults{}, "I12"},
	} {
		t.Run(row.mistake, func(t *testing.T) {
			x := explore(setup{posts: 2, faults: row.faults, mistake: row.mistake, ambiguous: row.ambiguous, silent: row.silent})
			if x.bad == nil {
				t.Fatalf("nothing found in %d worlds", x.states)
			}
			t.Logf("%d worlds: %s", x.states, x.bad.text)
			if !strings.HasPrefix(x.bad.text, row.promise+" ") {
				t.Errorf("found %q, want %s, after\n  %s", x.bad.text, row.promise, strings.Join(x.bad.trace, "\n  "))
			}
		})
	}
}

// TestModel_SeesWhatIsStuck: a client that never asks leaves an upload for ever.
func TestModel_SeesWhatIsStuck(t *testing.T) {
	x := explore(setup{posts: 1, mistake: "NeverAsks"})
	if _, ok := x.stuck(); !ok || x.bad != nil {
		t.Errorf("nothing is stuck in %d worlds (%v)", x.states, x.bad)
	}
}

func skipUnderRace(t *testing.T) {
	t.Helper()
	if kit.Race {
		t.Skip("one goroutine, millions of worlds: run without the race detector")
	}
}
