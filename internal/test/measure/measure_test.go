package main

import (
	"os"
	"path/filepath"
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
