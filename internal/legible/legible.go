// Package legible makes texts of unknown origin fit for people: names from drop folders, words of the service, whatever
// a file holds. What it gives can stand on a terminal, in a log or on a page without steering it: control characters,
// those that turn or hide text, and bytes that are no text at all become visible escapes.
//
// It never cuts a text and never guesses an encoding, so that two different texts stay different. It keeps nothing;
// a crash means nothing here.
package legible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text gives s on one line. What was legible already comes back unchanged.
func Text(s string) string {
	if !strings.ContainsFunc(s, unfit) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf && unfit(r):
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !unfit(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// Lines gives each line of s as Text, without the empty ones; tabs become blanks.
func Lines(s string) []string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimRight(line, "\r\n\t "); line != "" {
			lines = append(lines, Text(strings.ReplaceAll(line, "\t", "  ")))
		}
	}
	return lines
}

// Fit reports whether a character may stand as it is.
func Fit(r rune) bool { return !unfit(r) }

// unfit also says yes to utf8.RuneError, which is printable: the byte behind it may be anything.
func unfit(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
