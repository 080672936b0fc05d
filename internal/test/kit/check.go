package kit

import (
	"errors"
	"reflect"
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

// Value gives the value of a call, and ends the test at its error:
// kit.Value(os.ReadFile(path))(t).
func Value[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return v
	}
}

// Err gives the error of a call that also has a value.
func Err[T any](_ T, err error) error { return err }

// Fails fails the test unless an error is one of those that are wanted.
func Fails(t testing.TB, what string, err error, wanted ...error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want one %q", what, wanted)
		return
	}
	for _, w := range wanted {
		if errors.Is(err, w) {
			return
		}
	}
	if len(wanted) > 0 {
		t.Errorf("%s: error %q, want one of %q", what, err, wanted)
	}
}

// Len fails the test when a slice or map has another number of elements than
// wanted, and prints them.
func Len(t testing.TB, what string, list any, want int) {
	t.Helper()
	if got := reflect.ValueOf(list).Len(); got != want {
		t.Errorf("%s: %d, want %d: %+v", what, got, want, list)
	}
}

// Check fails the test with a message when a statement is false.
func Check(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
}

// Need ends the test with a message when a statement is false, for a
// precondition of the rest of the test.
func Need(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !ok {
		t.Fatalf(format, args...)
	}
}
