package sanitize

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"vaultd/internal/test/kit"
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
		kit.Want(t, in, Text(in), want)
	}
}

func TestLines(t *testing.T) {
	got := Lines("a\tb\r\n\n \x1b[1m \nc")
	kit.Check(t, slices.Equal(got, []string{"a  b", ` \x1b[1m`, "c"}), "%q, want got = %v", got, []string{"a b", ` \x1b[1m`, "c"})
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(Text(s)) || strings.ContainsFunc(Text(s), isUnprintable) {
			t.Errorf("%q: %q, want utf8.ValidString(Text(s)), not strings.ContainsFunc(Text(s), isUnprintable)", s, Text(s))
		}
		kit.Want(t, fmt.Sprintf("%q is not stable", s), Text(Text(s)), Text(s))
	})
}

func TestReplace(t *testing.T) {
	kit.Want(t, `Replace("a\nb\xff\u202e", '\ufffd')`, Replace("a\nb\xff\u202e", '\ufffd'), "a\ufffdb\ufffd\ufffd")
}

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"a\nb": `a\x0ab`, "a\xffb": "a\ufffdb", "a\u200bb": "a\ufffdb", "abcdef": "abcde…", "abcde": "abcde",
	} {
		kit.Want(t, in, Name(in, 5), want)
	}
}

func TestMessage(t *testing.T) {
	for in, want := range map[string]string{
		"  two\r\n\twords ": "two words", "a\x1b[2Jb": "a [2Jb", "a\u200b\u202eb\xff": "ab", "a\ue02eb\u0378\ufffd": "ab", "12345678901": "123456789…",
	} {
		kit.Want(t, in, Message(in, 10), want)
	}
}

func TestFirstLine(t *testing.T) {
	kit.Want(t, `FirstLine("\n\x07one two\nthree", 8)`, FirstLine("\n\x07one two\nthree", 8), `\x07one…`)
	kit.Want(t, `FirstLine(" \n", 8)`, FirstLine(" \n", 8), "")
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"a/b-c_d.é": "a/b-c_d.é", "a b": "'a b'", "it's": `'it'\''s'`, "a\nb": `'a\x0ab'`} {
		kit.Want(t, in, ShellWord(in), want)
	}
}

// Every way of writing leaves only printable characters, or the replacement for those that are not.
func FuzzAll(f *testing.F) {
	f.Add("=cmd\x1b\xff\u202e\n")
	f.Add("\ue02e\u0378") // of private use, and not assigned
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{
			"Replace": Replace(s, '?'), "Name": Name(s, 20), "Message": Message(s, 20), "Cell": Cell(s), "HTML": HTML(s),
			"FirstLine": FirstLine(s, 20), "JoinLines": JoinLines(s), "ShellWord": ShellWord(s),
		} {
			for _, r := range got {
				kit.Check(t, IsPrintable(r) || r == '\ufffd', "%s of %q leaves %U", name, s, r)
			}
		}
	})
}

// Names come from people who may wish to steer an administrator's terminal.
func TestText_NothingControlsATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"Müller 4711 €": "Müller 4711 €", "日本 e\u0301": "日本 e\u0301", `\\files\acme`: `\\files\acme`,
		"a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\tc\r": `a\x0ab\x09c\x0d`, "\x7f\u0080\u009b": `\x7f\u{80}\u{9b}`,
		"gpj\u202eexe": `gpj\u{202e}exe`, "\u2066a\u2069": `\u{2066}a\u{2069}`, "a\u200bb\ufeff": `a\u{200b}b\u{feff}`,
		"a\u2028b": `a\u{2028}b`, "\xff\xfeok": `\xff\xfeok`, "\ufffd": `\u{fffd}`, "\U000e0041": `\u{e0041}`,
	} {
		kit.Want(t, in, Text(in), want)
	}
}
