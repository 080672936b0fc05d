package kit

import (
	"strings"
	"testing"
)

// Must ends the test at an unexpected error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Holds fails the test when parts are missing in a text: it names them, and
// prints the text once.
func Holds(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	var missing []string
	for _, part := range parts {
		if !strings.Contains(text, part) {
			missing = append(missing, part)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s lacks %q:\n%s", what, missing, text)
	}
}

// Lacks fails the test when a text holds one of the parts.
func Lacks(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s holds %q, want it absent:\n%s", what, part, text)
		}
	}
}
