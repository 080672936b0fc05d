package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// TestMutants plants each mutant and runs its tests: MUTANTS=all, or a regular expression on their names.
func TestMutants(t *testing.T) {
	which := os.Getenv("MUTANTS")
	if which == "" {
		t.Skip("MUTANTS is not set: \"make mutants\" plants them all")
	}
	wanted := regexp.MustCompile(strings.Replace(which, "all", ".", 1))
	list := readMutants(t)
	known := readKillers(t, list)
	free := make(chan string, 2) // copies of the tree; two mutants live at a time
	for range cap(free) {
		free <- copyTree(t)
	}
	t.Run("mutant", func(t *testing.T) {
		for _, m := range list {
			if !wanted.MatchString(m.name) {
				continue
			}
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				dir := <-free
				defer func() { free <- dir }()
				plant(t, dir, m, known)
			})
		}
	})
}

// plant puts m into the copy in dir, runs its tests, and takes it out again. The test that killed it the last time comes first, then the short form
// of its tests.
func plant(t *testing.T, dir string, m mutant, known *killers) {
	path := filepath.Join(dir, m.file)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(bytes.Replace(whole, []byte(m.old), []byte(m.new), 1))
	defer write(whole)
	var skipped []string
	began := time.Now()
	for _, args := range slices.Concat(known.narrow(m), shorten(m.tests), m.tests) {
		out, err := goTool(t, dir, testCommand(args)...)
		if err == nil {
			for _, m := range skips.FindAllSubmatch(out, -1) {
				skipped = append(skipped, string(m[1]))
			}
			continue
		}
		if bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")) {
			t.Fatalf("%s: its tests do not compile, so they show nothing:\n%s", m.name, out)
		}
		by := killer(out, args)
		t.Logf("%s (%s) was killed after %v by %s", m.name, m.promise, time.Since(began).Round(time.Second/10), by)
		known.note(t, m.name, by)
		return
	}
	t.Errorf("%s LIVES: no test of %q notices that %s is broken; skipped were %q", m.name, m.tests, m.promise, skipped)
}

// shorten gives the short form of those tests that have another.
func shorten(tests []string) (short []string) {
	for _, args := range tests {
		if !strings.Contains(args, "-short") && !strings.Contains(args, "-run") {
			short = append(short, args+" -short")
		}
	}
	return short
}

// testCommand gives the words of a run of "go test". The folders browser and bench are modules of their own. A mutant is not vetted: only a test may
// kill it.
func testCommand(args string) []string {
	words := strings.Fields(args)
	module, folder := ".", words[0]
	if top, rest, _ := strings.Cut(folder, "/"); top == "browser" || top == "bench" {
		module, folder = top, rest
	}
	return slices.Concat([]string{"test", "-C", module, "-v", "-vet=off", "-count=1", "-failfast", "-timeout=4m", "./" + folder}, words[1:])
}

var (
	failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	skips  = regexp.MustCompile(`(?m)^\s*--- SKIP: (\S+)`)
)

// killer names the innermost test that failed. Where none did, it did not end: a mutant may make it wait for ever, and so may a busy machine.
func killer(out []byte, args string) string {
	if all := failed.FindAllSubmatch(out, -1); len(all) > 0 {
		return string(all[len(all)-1][1])
	}
	return "what did not end, or panicked: go test " + args
}

func goTool(t *testing.T, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MUTANTS=") }), "GOFLAGS=-buildvcs=false")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("go %v: %v", args, err)
	}
	return out, err
}

// copyTree copies what the module is made of.
func copyTree(t *testing.T) string {
	dir := t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		switch {
		case d.IsDir() && rel == ".git":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("copy %s: %w", rel, err)
		}
		return os.WriteFile(to, b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
