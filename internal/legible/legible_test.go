package legible

import (
	"slices"
	"testing"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"Müller & Söhne 4711": "Müller & Söhne 4711",
		"a\nb\r\tc":           `a\x0ab\x0d\x09c`,
		"\x1b[2J\x07":         `\x1b[2J\x07`,
		"\xff\xfe":            `\xff\xfe`,
		"a\u202eb\u200b":      `a\u{202e}b\u{200b}`,
		"\u0085\u2028":        `\u{85}\u{2028}`,
		"\ufffd":              `\u{fffd}`,
		"":                    "",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	if got := Lines("a\tb\r\n\n \x1b[1m \nc"); !slices.Equal(got, []string{"a  b", ` \x1b[1m`, "c"}) {
		t.Errorf("%q", got)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Text(s) {
			if !Fit(r) {
				t.Errorf("%q leaves %U", s, r)
			}
		}
		if again := Text(Text(s)); again != Text(s) {
			t.Errorf("%q is not stable", s)
		}
	})
}
