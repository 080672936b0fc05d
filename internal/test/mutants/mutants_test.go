package mutants

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMutants_EachFitsItsPlace keeps the table from growing stale.
func TestMutants_EachFitsItsPlace(t *testing.T) {
	for _, m := range readMutants(t) {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: %s contains %q %d times, want once", m.name, m.file, m.old, n)
		}
	}
}

// TestMutants plants mutants, two at a time, and runs their tests. MUTANTS
// selects them: see choose.
func TestMutants(t *testing.T) {
	which := os.Getenv("MUTANTS")
	if which == "" {
		t.Skip("MUTANTS is not set: \"make mutants\" plants them all")
	}
	began := time.Now()
	list := readMutants(t)
	r := &results{known: readKillers(t, list)}
	chosen := choose(t, which, list, r.known)
	if len(chosen) == 0 {
		t.Fatalf("MUTANTS=%s selects none of %d mutants", which, len(list))
	}
	free := make(chan bool, 2)
	t.Run("mutant", func(t *testing.T) {
		for _, m := range chosen {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				free <- true
				defer func() { <-free }()
				r.plant(t, m)
			})
		}
	})
	for _, text := range r.lived {
		t.Logf("LIVES: %s", text)
	}
	for _, text := range r.unnamed {
		t.Logf("no test alone kills it: %s", text)
	}
	t.Logf("%d planted, %d killed, %d lived, in %v", len(chosen), r.killed, len(r.lived), time.Since(began).Round(time.Second))
}

// results of a run of mutants. What was killed or lived is guarded by mu.
type results struct {
	known *killers

	mu             sync.Mutex
	killed         int
	lived, unnamed []string
}

// plant runs the tests of m with m in place: the test that killed it the last
// time, then the short form of its tests, then all of them.
func (r *results) plant(t *testing.T, m mutant) {
	s := newSite(t, &m)
	if k, isKnown := r.known.of(m.name); isKnown {
		if o := s.try(k, m); o.hasFailed {
			k.time = cmp.Or(k.time, o.took)
			r.kill(t, m, k, o)
			return
		}
		t.Logf("%s is not killed by %s any more", m.name, k.test)
	}
	var skipped []string
	for _, test := range append(shorten(m.tests), m.tests...) {
		folder, flags := splitTest(test)
		o := s.run(folder, flags, wholeLimit)
		skipped = append(skipped, o.skipped...)
		if !o.hasFailed && !o.hung {
			continue
		}
		// The killer is confirmed alone. A test that only did not end counts
		// if it does not end alone either, and does without the mutant.
		k := killer{folder: folder, test: o.test}
		alone := s.try(k, m)
		switch {
		case alone.hasFailed:
			k.time = alone.took
			r.kill(t, m, k, alone)
			return
		case o.hasFailed:
			r.kill(t, m, killer{}, o)
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lived = append(r.lived, m.name+" ("+m.promise+"); skipped were "+strings.Join(skipped, " "))
	t.Errorf("%s LIVES: no test of %q notices that %s is broken; skipped were %q", m.name, m.tests, m.promise, skipped)
}

// kill notes that m was killed. Without a test in k none kills it alone.
func (r *results) kill(t *testing.T, m mutant, k killer, o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed++
	if k.test == "" {
		r.unnamed = append(r.unnamed, m.name)
		t.Logf("%s (%s) was killed, by no test alone; the last one was %q:\n%s", m.name, m.promise, o.test, o.tail)
		return
	}
	t.Logf("%s (%s) was killed in %v by %s %s", m.name, m.promise, o.took.Round(time.Second/10), k.folder, k.test)
	r.known.note(t, m.name, k)
}

// shorten gives the short form of those tests that have another.
func shorten(tests []string) (short []string) {
	for _, test := range tests {
		if !strings.Contains(test, "-short") && !strings.Contains(test, "-run") {
			short = append(short, test+" -short")
		}
	}
	return short
}
