package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCountWords(t *testing.T) {
	for name, want := range map[string]int{"read": 1, "Close": 1, "ID": 1, "run2": 1, "readFile": 2, "parseJSONLine": 3, "newID": 2, "TestX_readY": 4} {
		if have := countWords(name); have != want {
			t.Errorf("%s: %d words instead of %d", name, have, want)
		}
	}
}

func TestMeasureFile(t *testing.T) {
	const src = `// Package p is not counted.
package p

// Of a declaration: not in a body.
func read() { // behind code

	// One.
	x := 1 // behind code

	/* Two
	   and three. */
	_ = x
}

var text = ` + "`a\nb`" + `

func (t T) writeAll() {}
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	have := map[string]*figures{}
	if err := measureFile(dir, "p.go", have); err != nil {
		t.Fatal(err)
	}
	want := &figures{files: 1, code: 8, comments: 3, functions: []function{{"read", "p.go:5", 9}, {"writeAll", "p.go:18", 1}}}
	if diff := cmp.Diff(want, have["."], cmp.AllowUnexported(figures{}, function{})); diff != "" {
		t.Error(diff)
	}
	if n := have["."].singleWords(); n != 1 {
		t.Errorf("%d single words", n)
	}
}

// TestFigures_OfTheProgram holds what a reader needs most: comments where a crash or an order of two lines matters, and names that say what is
// done to what.
func TestFigures_OfTheProgram(t *testing.T) {
	const root = "../../.."
	packages, all := map[string]*figures{}, &figures{}
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return measureFile(root, name, packages)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range packages {
		all.add(p)
	}
	for _, name := range []string{"internal/ingest", "internal/ledger", "internal/drop", "internal/recovery"} {
		if p := packages[name]; p == nil || 100*p.comments < 3*p.functionLines() {
			t.Errorf("%s: fewer than 3 comments in 100 lines of functions: say at each commit, rename, unlink and call what a crash there means", name)
		}
	}
	if single, n := all.singleWords(), len(all.functions); n < 1000 || 100*single > 40*n {
		t.Errorf("%d of %d functions are named by a single word, which is more than 40 %%: say what is done to what", single, n)
	}
}
