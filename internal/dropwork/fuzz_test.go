package dropwork

import (
	"strings"
	"testing"
)

// The code of a refusal is one plain word, whatever the refusal says.
func FuzzCodeOf(f *testing.F) {
	for _, s := range []string{"Müller 4711", "a\nb", "\x1b[2J", "\xff", "../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if code := codeOf(s); strings.Trim(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
			t.Errorf("code of %q = %q, want only letters, digits, _, . and -", s, code)
		}
	})
}
