// Package sanitize makes texts of unknown origin safe to show: names from drop folders, messages of the service, whatever
// a file holds. Its results can stand on a terminal, in a log, in a text file, on an HTML page, in JSON or in a
// spreadsheet without controlling it: no control character, no character that hides text or changes its direction, and
// no byte that is not text remains.
//
// It is the only place that decides which characters are safe: see [IsPrintable]. It never guesses an encoding. Only the
// functions that say so shorten a text or remove characters; [Text] keeps two different texts different. It keeps no
// state, so a crash means nothing here.
package sanitize

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsPrintable reports whether a character may be shown as it is. utf8.RuneError is not: the byte behind it may be anything.
func IsPrintable(r rune) bool { return r != utf8.RuneError && unicode.IsPrint(r) }

func isUnprintable(r rune) bool { return !IsPrintable(r) }

// Text writes s on one line, with an escape for each character that is not printable. A text without such characters is
// returned unchanged.
func Text(s string) string {
	if isPrintableASCII(s) || !strings.ContainsFunc(s, isUnprintable) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf && isUnprintable(r):
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case IsPrintable(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// isPrintableASCII is a fast check that is true for most texts: all of it is printable ASCII.
func isPrintableASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// Lines returns each line of s as Text, without the empty ones. A tab becomes two blanks.
func Lines(s string) []string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimRight(line, "\r\n\t "); line != "" {
			lines = append(lines, Text(strings.ReplaceAll(line, "\t", "  ")))
		}
	}
	return lines
}

// JoinLines writes the lines of s on one line, with " / " between them.
func JoinLines(s string) string { return strings.Join(Lines(s), " / ") }

// FirstLine returns the first line of s that is not empty, shortened to n characters.
func FirstLine(s string, n int) string {
	lines := Lines(s)
	if len(lines) == 0 {
		return ""
	}
	return Truncate(lines[0], n)
}

// Truncate shortens s to n characters. The last of them is "…" when something was cut off. It sanitizes nothing.
func Truncate(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// Replace writes the given character in place of each one that is not printable, so that columns stay aligned.
func Replace(s string, with rune) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return with
		}
		return r
	}, strings.ToValidUTF8(s, string(with)))
}

// Name writes a name or a field for the person who must correct it: at most n characters of it, with an escape for each
// control character, and "�" for what is invisible or no text.
func Name(s string, n int) string {
	var b strings.Builder
	for _, r := range s {
		if n--; n < 0 {
			b.WriteRune('…')
			break
		}
		switch {
		case r == unicode.ReplacementChar || unicode.Is(unicode.Cf, r):
			b.WriteRune(unicode.ReplacementChar)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\x%02x`, r)
		}
	}
	return b.String()
}

// Message writes a text of a remote service on one line: without what is not
// printable, with single blanks, at most n characters.
func Message(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case isUnprintable(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return Truncate(strings.Join(strings.Fields(s), " "), n)
}

// HTML writes s as Text, escaped for an HTML page.
func HTML(s string) string { return template.HTMLEscapeString(Text(s)) }

// JSON returns the same JSON with an escape for each character that is not printable. Such characters stand only in
// strings, where the escape means the same.
func JSON(data []byte) []byte {
	hidden := func(r rune) bool { return r != '\n' && isUnprintable(r) }
	if !bytes.ContainsFunc(data, hidden) {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		switch high, low := utf16.EncodeRune(r); {
		case !hidden(r):
			b.WriteRune(r)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// formula finds the places where a spreadsheet may begin a formula: the beginning of a cell, and behind every character
// that it may take for a separator when it reads the file with another one than ours. Quotes and blanks in between do not
// prevent that. Full-width forms count as well.
var formula = regexp.MustCompile(`(^|[,;|\t\r\n])(["'\s]*)([=+\-@＝＋－＠])`)

// Cell writes s for a cell of a spreadsheet: as Text, with an apostrophe before each place where a formula could begin.
func Cell(s string) string {
	lead := ""
	if s != "" && strings.ContainsRune("\t\r\n", rune(s[0])) {
		lead = "'" // before Text hides the control character behind which a formula could begin
	}
	if s = Text(s); !mayHoldFormula(s) {
		return lead + s
	}
	return lead + formula.ReplaceAllString(s, "$1$2'$3")
}

// mayHoldFormula is a fast check that is false for nearly all cells: the regular expression took most of the time of a
// large table.
func mayHoldFormula(s string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, "\"' \t\n\f\r"))
	return strings.ContainsAny(s, ",;|\t\r\n") || strings.ContainsRune("=+-@＝＋－＠", first)
}

// ShellWord writes s as one word of a shell command line.
func ShellWord(s string) string {
	isSafe := func(r rune) bool {
		return r == '/' || r == '-' || r == '_' || r == '.' || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !isSafe(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(Text(s), "'", `'\''`) + "'"
}
