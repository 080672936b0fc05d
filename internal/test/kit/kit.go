// Package kit gives all tests of the project the same few words: a comparison
// that prints got and want, the mark of a test that belongs to the long run,
// and the end of a test that needs a program or a right that is missing.
//
// Each test keeps what it expects.
package kit

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Want fails the test when got differs from want, and prints both under the
// name of what was compared. Two values of several lines are printed as a diff.
func Want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	if g, ok := any(got).(string); ok && len(g) > 200 {
		t.Errorf("%s differs (-want +got):\n%s", what, cmp.Diff(any(want), any(got)))
		return
	}
	t.Errorf("%s = %+v, want %+v", what, got, want)
}

// Long ends a test in the short form of the suite; why says what takes long.
// "make long" runs each test that calls it, found by this call in the source:
// the call must stand in the test function itself.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: " + why)
	}
}

// Sampled reports whether a test tries a sample of its series: in the short
// form of the suite, and under the race detector, which makes it many times
// slower. what names the series. "make long" runs each test that calls it in
// full, found by this call in the source: the call must stand in the test
// function itself.
func Sampled(t testing.TB, what string) bool {
	t.Helper()
	sampled := testing.Short() || Race
	if sampled {
		t.Logf("sampled: %s", what)
	}
	return sampled
}

// Missing ends a test that needs what this machine lacks. In CI, where the
// environment has CI set, the test fails; elsewhere it is skipped.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: CI must have what its tests need", what)
	}
	t.Skipf("NOT TESTED: %s", what)
}

// Generated fails the test where a file of the tree differs from what the code
// says: the part of it between "<!-- name: begin -->" and "<!-- name: end -->",
// or the whole file if name is empty. With update it writes that instead.
func Generated(t testing.TB, path, name, text string, update bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := text
	if name != "" {
		before, rest, _ := strings.Cut(string(b), "<!-- "+name+": begin -->\n")
		_, after, ok := strings.Cut(rest, "<!-- "+name+": end -->")
		if !ok {
			t.Fatalf("%s has no part %q, want one", path, name)
		}
		want = before + "<!-- " + name + ": begin -->\n" + text + "<!-- " + name + ": end -->" + after
	}
	if string(b) == want {
		return
	}
	if !update {
		t.Errorf("%s is not what the code says (-want +got):\n%s\nrun this test with -update", path, cmp.Diff(want, string(b)))
		return
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
