package packager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of a sidecar. They keep a hostile one cheap; a real one stays far below.
const (
	maxDepth  = 16 // objects and arrays within each other
	maxValues = 20_000
)

const digits = "0123456789"

type kind uint8

const (
	object kind = iota + 1
	array
	text
	number
	word // true, false, null
)

func (k kind) String() string {
	return [...]string{"?", "an object in { }", "a list in [ ]", "text in quotes", "a number", "a bare word"}[k]
}

// value is one JSON value and the offset at which it begins.
type value struct {
	kind    kind
	at      int
	text    string // decoded text; a number or word as it was written
	items   []value
	members []member
}

type member struct {
	key   string
	at    int
	value value
}

// syntaxFault is a fault of syntax.
type syntaxFault struct {
	at           int
	text, advice string
}

// scanner reads strict JSON (RFC 8259, valid UTF-8, no key twice) and remembers
// where everything stands. The first fault of syntax ends it.
type scanner struct {
	src    []byte
	at     int
	depth  int
	values int
	twice  []repeatedKey // keys that an object has a second time
}

type repeatedKey struct {
	key       string
	at, first int
}

// syntaxPanic carries the fault of syntax up through the recursion.
type syntaxPanic struct{ fault syntaxFault }

// parseJSON reads the one value of src. bad is nil when the syntax is right.
func parseJSON(src []byte) (v value, twice []repeatedKey, bad *syntaxFault) {
	s := &scanner{src: src}
	defer func() {
		if r := recover(); r != nil {
			st, ours := r.(syntaxPanic)
			if !ours {
				panic(r)
			}
			v, twice, bad = value{}, nil, &st.fault
		}
	}()
	s.checkUTF8()
	s.space()
	v = s.value()
	s.space()
	if s.at < len(s.src) {
		s.fail(s.at, "there is text after the closing bracket", "Delete what follows it")
	}
	return v, s.twice, nil
}

func (s *scanner) fail(at int, text, advice string) {
	panic(syntaxPanic{syntaxFault{at: at, text: text, advice: advice}})
}

func (s *scanner) checkUTF8() {
	if utf8.Valid(s.src) {
		return
	}
	at := 0
	for r, n := utf8.DecodeRune(s.src); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(s.src[at:]) {
		at += n
	}
	s.fail(at, "a character that is not UTF-8", `Save the file again with encoding "UTF-8"`)
}

// peek returns the byte at hand, 0 at the end.
func (s *scanner) peek() byte {
	if s.at == len(s.src) {
		return 0
	}
	return s.src[s.at]
}

func (s *scanner) space() {
	for s.at < len(s.src) && strings.IndexByte(" \t\r\n", s.src[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) value() value {
	if s.values++; s.values > maxValues {
		s.fail(s.at, fmt.Sprintf("more than %d values", maxValues), "It describes one invoice: make it smaller")
	}
	v := value{at: s.at}
	switch c := s.peek(); {
	case c == '{':
		v.kind, v.members = object, s.object()
	case c == '[':
		v.kind, v.items = array, s.array()
	case c == '"':
		v.kind, v.text = text, s.string()
	case c == '-' || c >= '0' && c <= '9':
		v.kind, v.text = number, s.number()
	default:
		v.kind, v.text = word, s.word()
	}
	return v
}

// enter steps over an opening bracket.
func (s *scanner) enter() {
	if s.depth++; s.depth > maxDepth {
		s.fail(s.at, fmt.Sprintf("brackets nested deeper than %d", maxDepth), "Fill in a copy of _template\\metadata.json")
	}
	s.at++
	s.space()
}

func (s *scanner) object() (members []member) {
	s.enter()
	seen := map[string]int{}
	for s.peek() != '}' {
		if s.peek() != '"' {
			s.failToken("a field's name in quotes")
		}
		m := member{at: s.at}
		m.key = s.string()
		if first, ok := seen[m.key]; ok {
			s.twice = append(s.twice, repeatedKey{m.key, m.at, first})
		} else {
			seen[m.key] = m.at
		}
		s.space()
		if s.peek() != ':' {
			s.failToken("a colon")
		}
		s.at++
		s.space()
		m.value = s.value()
		members = append(members, m)
		s.next('}', m.value.kind)
	}
	s.at++
	s.depth--
	return members
}

func (s *scanner) array() (items []value) {
	s.enter()
	for s.peek() != ']' {
		v := s.value()
		items = append(items, v)
		s.next(']', v.kind)
	}
	s.at++
	s.depth--
	return items
}

// next steps over the comma that must stand between two values.
func (s *scanner) next(closing byte, before kind) {
	s.space()
	if s.peek() == closing {
		return
	}
	if s.peek() != ',' {
		s.failMore(before)
		s.failToken(fmt.Sprintf("a comma or %c", closing))
	}
	comma := s.at
	s.at++
	if c := s.peek(); closing == '}' && before == number && c >= '0' && c <= '9' {
		s.fail(comma, "a comma inside a number", "Write a number without thousands separators and with a point, like 1234.56")
	}
	s.space()
	if s.peek() == closing {
		s.fail(comma, fmt.Sprintf("a comma before %c", closing), "Delete that comma")
	}
}

// failMore says what people often write behind a value that had come to its end: the rest of a name with quotation marks in it,
// or a currency behind an amount.
func (s *scanner) failMore(before kind) {
	line, _, _ := strings.Cut(string(s.src[s.at:]), "\n")
	more, _, closed := strings.Cut(line, `"`)
	first, _ := utf8.DecodeRuneInString(more)
	switch {
	case !unicode.IsLetter(first) && !unicode.IsDigit(first):
	case before == text && closed:
		s.fail(s.at, "quotation marks inside a value", fmt.Sprintf(`Put a backslash before each of them: \"%s\"`, showName(more)))
	case before == number:
		s.fail(s.at, "a word behind a number", `Write the number alone, like 1234.56; a currency belongs to "currencyCode"`)
	}
}

// curly are the quotes that word processors put in place of the straight one.
const curly = "“”„‟«»‘’‚‛‹›"

// failToken says what stands where something else was expected.
func (s *scanner) failToken(want string) {
	rest := s.src[s.at:]
	r, _ := utf8.DecodeRune(rest)
	switch {
	case len(rest) == 0:
		s.fail(s.at, "the file ends too early; here "+want+" is expected", "Complete it, or copy the file again")
	case strings.ContainsRune(curly, r):
		s.failCurly(s.at)
	case r == '\'':
		s.fail(s.at, "single quotes", `Write straight double quotes: "`)
	case bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("/*")), r == '#':
		s.fail(s.at, "a comment", "JSON has no comments: delete it")
	case r == ',':
		s.fail(s.at, "a comma too many", "Delete that comma")
	}
	s.fail(s.at, fmt.Sprintf("here %s is expected, not %s", want, showName(string(r))), "Look for a missing comma, colon or quote just before it")
}

func (s *scanner) failCurly(at int) {
	s.fail(at, "curly quotes, probably from Word", `Fill in a copy of _template\metadata.json with Notepad`)
}

func (s *scanner) word() string {
	rest := s.src[s.at:]
	n := 0
	for n < len(rest) && (rest[n]|0x20 >= 'a' && rest[n]|0x20 <= 'z') {
		n++
	}
	w := string(rest[:n])
	switch lower := strings.ToLower(w); {
	case w == "true" || w == "false" || w == "null":
		s.at += n
		return w
	case s.peek() == '+' || s.peek() == '.':
		s.fail(s.at, fmt.Sprintf("a number that begins with %c", s.peek()), "Write it like 1234.56 or 0.56")
	case lower == "true" || lower == "false" || lower == "null":
		s.fail(s.at, showName(w)+" in capital letters", "Write "+lower)
	case lower == "nan" || lower == "infinity" || lower == "inf":
		s.fail(s.at, showName(w)+" is not a number", "Write the number, or leave the field out")
	case n > 0:
		s.fail(s.at, "text without quotes", `Put it in straight quotes: "…"`)
	}
	s.failToken("a value")
	return ""
}

// number reads everything that belongs to a number by its characters and then
// holds it against the grammar, so that the fault is about the whole of it.
func (s *scanner) number() string {
	begin := s.at
	for s.at < len(s.src) && strings.IndexByte("+-.0123456789eE", s.src[s.at]) >= 0 {
		s.at++
	}
	n := string(s.src[begin:s.at])
	if json.Valid([]byte(n)) {
		return n
	}
	whole, fraction, point := strings.Cut(strings.TrimPrefix(n, "-"), ".")
	switch alone := strings.TrimRight(n, "eE"); {
	case alone != n && json.Valid([]byte(alone)): // 119.00EUR
		s.at = begin + len(alone)
		s.failMore(number)
	case n == "-" && s.peek() == 'I':
		s.fail(begin, "-Infinity is not a number", "Write the number, or leave the field out")
	case strings.Trim(whole+fraction, digits) != "":
		s.fail(begin, "this is not a number", "Write a number like 1234.56; dates and invoice numbers stand in quotes")
	case whole == "" || point && fraction == "":
		s.fail(begin, "digits are missing in this number", "Write it like 1234.56 or 0.56")
	}
	s.fail(begin, "a number with a leading zero", "Put it in quotes if it is text, else write it without the zero")
	return ""
}

func (s *scanner) string() string {
	begin := s.at
	s.at++
	var b strings.Builder
	for {
		plain := s.at
		for s.at < len(s.src) && s.src[s.at] >= ' ' && s.src[s.at] != '"' && s.src[s.at] != '\\' {
			s.at++
		}
		b.Write(s.src[plain:s.at])
		switch {
		case s.at == len(s.src) || s.src[s.at] == '\n' || s.src[s.at] == '\r':
			if i := strings.IndexAny(string(s.src[begin:s.at]), curly); i >= 0 {
				s.failCurly(begin + i)
			}
			s.fail(begin, "the quote that opens here is not closed on its line", "Close it; a line break inside text is written \\n")
		case s.src[s.at] == '"':
			s.at++
			return b.String()
		case s.src[s.at] == '\\':
			b.WriteRune(s.escape())
		default:
			s.fail(s.at, "a control character (perhaps a tab) inside text", "Delete it, or write a tab as \\t")
		}
	}
}

func (s *scanner) escape() rune {
	begin := s.at
	s.at += 2
	if s.at > len(s.src) {
		s.fail(begin, "the file ends inside text", "Complete it, or copy the file again")
	}
	c := s.src[s.at-1]
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i])
	}
	if c != 'u' {
		s.fail(begin, "a backslash that means nothing here", `Write every backslash twice: \\`)
	}
	r := s.hex4(begin)
	if !utf16.IsSurrogate(r) {
		return r
	}
	if bytes.HasPrefix(s.src[s.at:], []byte(`\u`)) {
		s.at += 2
		if r = utf16.DecodeRune(r, s.hex4(begin)); r != utf8.RuneError {
			return r
		}
	}
	s.fail(begin, `half a character (a lone \u surrogate)`, "Write the character itself")
	return 0
}

func (s *scanner) hex4(begin int) rune {
	if s.at+4 <= len(s.src) {
		if n, err := strconv.ParseUint(string(s.src[s.at:s.at+4]), 16, 16); err == nil {
			s.at += 4
			return rune(n)
		}
	}
	s.fail(begin, `\u without four hexadecimal digits`, "Write the character itself")
	return 0
}
