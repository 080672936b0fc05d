package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write what is generated in docs anew")

// inDocs holds what is between the marks in a page against what the program has.
func inDocs(t *testing.T, path, mark, want string) {
	t.Helper()
	begin, end := "<!-- "+mark+": begin -->\n", "<!-- "+mark+": end -->"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), begin)
	have, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no place for %s", path, mark)
	case have == want:
	case !*updateDocs:
		t.Errorf("%s: %s is not what the program has; go test ./cmd/vaultd -update-docs", path, mark)
	default:
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
