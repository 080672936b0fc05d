package mutants

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// TestMutants_EachFitsItsPlace keeps the table from growing stale, and a test
// that is the known killer of a mutant from being lost in silence.
func TestMutants_EachFitsItsPlace(t *testing.T) {
	list := readMutants(t)
	known := readKillers(t, list)
	functions := map[string][]string{} // by folder
	for _, m := range list {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		kit.Want(t, fmt.Sprintf("%s: %s contains %q", m.name, m.file, m.old), strings.Count(string(text), m.old), 1)
		k, isKnown := known.of(m.name)
		if !isKnown {
			continue
		}
		if functions[k.folder] == nil {
			functions[k.folder] = functionsIn(t, k.folder)
		}
		if name, _, _ := strings.Cut(k.test, "/"); !slices.Contains(functions[k.folder], name) {
			t.Errorf("%s: the test that kills it, %s, is gone from %s; if another one does, MUTANTS='^%s$' finds it", m.name, name, k.folder, m.name)
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
	r := &results{known: readKillers(t, list), clean: newSite(t, nil)}
	chosen := choose(t, which, list, r.known)
	kit.Need(t, len(chosen) != 0, "MUTANTS=%s selects none of %d mutants", which, len(list))
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
		t.Logf("killed by no test alone: %s", text)
	}
	t.Logf("%d planted, %d killed, %d lived, in %v", len(chosen), r.killed, len(r.lived), time.Since(began).Round(time.Second))
}

// results of a run of mutants.
type results struct {
	known *killers
	clean *site // without a mutant

	mu             sync.Mutex
	killed         int      // guarded by mu
	lived, unnamed []string // guarded by mu
}

// plant runs the tests of m with m in place: the test that killed it the last
// time, then the short form of its tests, then all of them.
func (r *results) plant(t *testing.T, m mutant) {
	s := newSite(t, &m)
	if k, isKnown := r.known.of(m.name); isKnown {
		if took, kills := r.try(t, s, m, k); kills {
			k.time = cmp.Or(k.time, took)
			r.kill(t, m, k, took)
			return
		}
		t.Logf("%s is not killed by %s any more", m.name, k.test)
	}
	var skipped []string
	for _, test := range append(shorten(m.tests), m.tests...) {
		folder, flags := splitTest(test)
		k, o := r.find(t, s, m, folder, flags)
		skipped = append(skipped, o.skipped...)
		switch {
		case k.test != "":
			r.kill(t, m, k, k.time)
			return
		case o.hasFailed && r.clean.run(t, folder, flags, wholeLimit).passed():
			r.kill(t, m, killer{test: o.test}, o.took)
			return
		case !o.passed():
			t.Logf("%s shows nothing: %s fails without the mutant, or did not end once\n%s", test, o.test, o.tail)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lived = append(r.lived, fmt.Sprintf("%s (%s) in %s; skipped were %q", m.name, m.promise, m.file, skipped))
	t.Errorf("%s LIVES: no test of %q notices that %s is broken; skipped were %q", m.name, m.tests, m.promise, skipped)
}

// find runs tests of m as a whole, and returns the test that kills m alone. If
// the one that the output names does not, the tests run one at a time: after a
// panic the output names any of those that were running.
func (r *results) find(t *testing.T, s *site, m mutant, folder string, flags []string) (k killer, o outcome) {
	for _, flags := range [][]string{flags, append(slices.Clip(flags), "-test.parallel=1")} {
		o = s.run(t, folder, flags, wholeLimit)
		if o.passed() {
			break
		}
		k = killer{folder: folder, test: o.test}
		if took, kills := r.try(t, s, m, k); kills {
			k.time = took
			return k, o
		}
		if o.hung {
			break
		}
	}
	return killer{}, o
}

// try runs the test of k alone. The test kills m if it fails, or twice does
// not end at its limit. A test whose time is not known, or that did not end,
// must pass without the mutant too. The time is that of the run that failed,
// or of the one that passed.
func (r *results) try(t *testing.T, s *site, m mutant, k killer) (took time.Duration, kills bool) {
	flags := k.flags(m)
	o := s.run(t, k.folder, flags, k.limit())
	if o.passed() {
		return 0, false
	}
	if o.hasFailed && k.time > 0 {
		return o.took, true
	}
	limit := k.limit()
	if o.hasFailed {
		limit = killer{time: o.took}.limit()
	}
	clean := r.clean.run(t, k.folder, flags, limit)
	if clean.hasFailed {
		t.Logf("%s fails without the mutant:\n%s", k.test, clean.tail)
	}
	if clean.hasFailed || o.hasFailed {
		return o.took, !clean.hasFailed
	}
	k.time = cmp.Or(k.time, clean.took)
	inItsTime := !clean.hung && clean.took <= 2*k.time+time.Second
	return clean.took, inItsTime && s.run(t, k.folder, flags, k.limit()).hung
}

// kill notes that the test of k killed m; without a folder, together with
// other tests only.
func (r *results) kill(t *testing.T, m mutant, k killer, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed++
	if k.folder == "" {
		r.unnamed = append(r.unnamed, m.name+": "+k.test)
		t.Logf("%s (%s) was killed, but by no test alone; %s failed last", m.name, m.promise, k.test)
		return
	}
	t.Logf("%s (%s) was killed in %.1fs by %s %s", m.name, m.promise, took.Seconds(), k.folder, k.test)
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
