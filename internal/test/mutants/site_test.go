package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
