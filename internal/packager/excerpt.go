package packager

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"vaultd/internal/strictjson"
)

// excerptAt returns the line around an offset, and a second line with a caret below it.
func excerptAt(src []byte, at int) string {
	begin := strictjson.LineStart(src, at)
	end := len(src)
	if i := bytes.IndexAny(src[at:], "\r\n"); i >= 0 {
		end = at + i
	}
	line := func(b []byte) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if r == '\t' {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(string(b), "�")))
	}
	// 200 bytes hold 40 characters and more. A character that was cut in half is dropped below.
	const enough = 200
	before, after := line(src[max(begin, at-enough):at]), line(src[at:min(end, at+enough)])
	for len(before) > 0 && before[0] == ' ' {
		before = before[1:]
	}
	before, after = before[max(0, len(before)-40):], after[:min(len(after), 40)]
	// The caret counts characters, so an escape must not lengthen the line.
	clean := func(rs []rune) string {
		return strings.Map(func(r rune) rune {
			shown, n := utf8.DecodeRuneInString(showName(string(r)))
			if n < len(showName(string(r))) {
				return '?'
			}
			return shown
		}, string(rs))
	}
	return clean(before) + clean(after) + "\n" + strings.Repeat(" ", len(before)) + "^\n"
}
