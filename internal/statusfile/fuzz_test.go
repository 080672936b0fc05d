package statusfile

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// What stands in a line of _STATUS.txt stays in it.
func FuzzStatusWords(f *testing.F) {
	for _, s := range []string{"Müller 4711", "a\nb", "\x1b[2J", "\u202eexe", "\xff", strings.Repeat("ü", 500), "e\u0301", "😀", "\u2028", "../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{shortenName(s), replaceUnprintable(s)} {
			if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) && r != unicode.ReplacementChar }) {
				t.Errorf("%q: %q", s, got)
			}
		}
		if utf8.RuneCountInString(shortenName(s)) > longestShown {
			t.Errorf("%q is too long", shortenName(s))
		}
	})
}
