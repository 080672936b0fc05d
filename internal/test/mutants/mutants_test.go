package mutants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// A site is the module with one mutant in it: an overlay in place of one file,
// for all that the go command builds. The tree itself stays as it is, so that
// all other packages are those of the build cache.
type site struct {
	root string // absolute
	dir  string // the mutated file, test binaries and what the tests write
	env  []string

	mu sync.Mutex // held while tests are built
}

// newSite returns a site with m planted; nil: the module as it is.
func newSite(t *testing.T, m *mutant) *site {
	abs := kit.Value(filepath.Abs(root))(t)
	dir, err := os.MkdirTemp("", "m") // short: tests have sockets below it
	kit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // some tests are run by another user
		t.Fatal(err)
	}
	s := &site{root: abs, dir: dir, env: append(os.Environ(), "TMPDIR="+dir)}
	// In CI a test fails where a tool is missing. That shows nothing of a
	// mutant: the test is to be skipped.
	s.env = slices.DeleteFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "MUTANTS") || strings.HasPrefix(v, "CI=") })
	if m == nil {
		return s
	}
	path := filepath.Join(abs, m.file)
	text := kit.Value(os.ReadFile(path))(t)
	planted, overlay := filepath.Join(dir, "planted"+filepath.Ext(path)), filepath.Join(dir, "overlay.json")
	names, err := json.Marshal(map[string]any{"Replace": map[string]string{path: planted}})
	err = errors.Join(err,
		os.WriteFile(planted, bytes.Replace(text, []byte(m.old), []byte(m.new), 1), 0o644),
		os.WriteFile(overlay, names, 0o644))
	kit.Must(t, err)
	s.env = append(s.env, "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay) // tests that build the program need it as well
	return s
}

// wholeLimit is how long tests may take that are run as a whole.
const wholeLimit = 4 * time.Minute

// outcome is what became of a run of tests.
type outcome struct {
	hasFailed bool
	hung      bool   // was still running at its limit
	test      string // the innermost test that failed, or that was running at the end
	skipped   []string
	took      time.Duration
	tail      string // the end of the output
}

func (o outcome) passed() bool { return !o.hasFailed && !o.hung }

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	skips   = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)
	running = regexp.MustCompile(`(?m)^\t\t(\S+) \(\S+\)$`)
	started = regexp.MustCompile(`(?m)^=== (?:RUN|CONT|NAME)\s+(\S+)`)
)

// run runs the tests of one package with flags of "go test", at most as long
// as limit. The build is not counted.
func (s *site) run(t *testing.T, folder string, flags []string, limit time.Duration) (o outcome) {
	words := []string{"-test.v", "-test.failfast", "-test.timeout=" + limit.String()}
	for _, flag := range flags {
		if flag == "-run" || flag == "-short" {
			flag = "-test." + flag[1:]
		}
		words = append(words, flag)
	}
	bin := s.build(t, folder)
	// The panic at the limit names the test that hangs, this end does not.
	ctx, cancel := context.WithTimeout(t.Context(), limit+20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, words...)
	cmd.Dir, cmd.Env = filepath.Join(s.root, folder), s.env
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	o.took = time.Since(began)
	if cmd.Process != nil {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // programs that the tests left behind
	}
	_, exited := errors.AsType[*exec.ExitError](err)
	kit.Need(t, err == nil || exited || errors.Is(err, exec.ErrWaitDelay), "%s %q: %v", bin, words, err)
	o.hung = ctx.Err() != nil || bytes.Contains(out, []byte("panic: test timed out after "))
	o.hasFailed = err != nil && !o.hung
	o.tail = string(out[max(0, len(out)-4000):])
	for _, m := range skips.FindAllSubmatch(out, -1) {
		o.skipped = append(o.skipped, string(m[1]))
	}
	form := failed
	if o.hung {
		form = running
	}
	for _, form := range []*regexp.Regexp{form, started} {
		if all := form.FindAllSubmatch(out, -1); len(all) > 0 {
			o.test = string(all[len(all)-1][1])
			break
		}
	}
	return o
}

// build builds the tests of one package, once.
func (s *site) build(t *testing.T, folder string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	bin := filepath.Join(s.dir, strings.ReplaceAll(folder, "/", "-")+".test")
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	module, pkg := ".", folder
	if top, rest, _ := strings.Cut(folder, "/"); top == "browser" || top == "bench" { // modules of their own
		module, pkg = top, rest
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags=-w", "-o", bin, "./"+pkg)
	cmd.Dir, cmd.Env = filepath.Join(s.root, module), s.env
	out, err := cmd.CombinedOutput()
	kit.Need(t, err == nil, "the tests of %s do not compile, so they show nothing:\n%s", folder, out)
	return bin
}
