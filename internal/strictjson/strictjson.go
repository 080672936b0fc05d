// Package strictjson reads strict JSON (RFC 8259, valid UTF-8) and remembers
// where each value is in the file, so that a fault can name its place and
// advise whoever wrote it. Numbers stay the text that was written.
//
// It never repairs a file and never guesses a value: the first fault of syntax
// ends the reading. It keeps no state, and its result depends on its arguments
// alone.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"vaultd/internal/sanitize"
)

// Form bounds a kind of file, so that a hostile one stays cheap, and has the
// advice that differs between the kinds.
type Form struct {
	Depth, Values int    // the most objects and lists within each other; the most values
	Again         string // advice to make the file again
	Currency      string // the field of a currency
}

// Kind is the kind of a value.
type Kind uint8

// The kinds.
const (
	Object Kind = iota + 1
	List
	Text
	Number
	Word // true, false, null
)

func (k Kind) String() string {
	return [...]string{"?", "an object in { }", "a list in [ ]", "text in quotes", "a number", "a bare word"}[k]
}

// Value is one value and its place.
type Value struct {
	Kind    Kind
	At, End int    // its first byte, and the one behind its last
	Text    string // decoded text; a number or word as it was written
	Items   []*Value
	Members []Member // in their order, repeated keys too
}

// Member is one member of an object.
type Member struct {
	Key   string
	At    int // where the key begins
	Value *Value
}

// Is reports whether there is a value, of that kind.
func (v *Value) Is(k Kind) bool { return v != nil && v.Kind == k }

// IsNull reports whether the value is null.
func (v *Value) IsNull() bool { return v.Kind == Word && v.Text == "null" }

// Find returns the value of the first member with that key. Nil: there is none,
// or it is null, which says the same.
func (v *Value) Find(key string) *Value {
	if v == nil {
		return nil
	}
	for _, m := range v.Members {
		if m.Key == key && !m.Value.IsNull() {
			return m.Value
		}
	}
	return nil
}

// FindText returns the text of the first member with that key; empty: there is
// none, or it is another kind of value.
func (v *Value) FindText(key string) string {
	if found := v.Find(key); found.Is(Text) {
		return found.Text
	}
	return ""
}

// Fault is a fault of syntax.
type Fault struct {
	At           int
	Text, Advice string // without full stops
}

// Repeated is a key that its object has again.
type Repeated struct {
	Key       string
	At, First int
}

// scanner reads one file. The first fault of syntax ends it.
type scanner struct {
	form     Form
	src      []byte
	at       int
	depth    int
	values   int
	repeated []Repeated
}

// syntaxPanic carries the fault of syntax up through the recursion.
type syntaxPanic struct{ fault Fault }

// WithoutMark removes the byte order mark that some editors put before a file.
func WithoutMark(src []byte) []byte { return bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")) }

// Parse reads the one value of src, which has no byte order mark. bad is nil
// when the syntax is right. Repeated keys are in the order of the file.
func Parse(src []byte, form Form) (v *Value, repeated []Repeated, bad *Fault) {
	s := &scanner{form: form, src: src}
	defer func() {
		if r := recover(); r != nil {
			st, ours := r.(syntaxPanic)
			if !ours {
				panic(r)
			}
			v, repeated, bad = nil, nil, &st.fault
		}
	}()
	s.checkUTF8()
	s.space()
	v = s.value()
	s.space()
	if s.at < len(s.src) {
		s.fail(s.at, "there is text after the closing bracket", "Delete what follows it")
	}
	return v, s.repeated, nil
}

// Place returns the line and the column, in characters from 1, of an offset.
func Place(src []byte, at int) (line, column int) {
	begin := LineStart(src, at)
	above := src[:begin]
	line = 1 + bytes.Count(above, []byte("\n")) + bytes.Count(above, []byte("\r")) - bytes.Count(above, []byte("\r\n"))
	return line, utf8.RuneCount(src[begin:at]) + 1
}

// LineStart returns where the line of an offset begins.
func LineStart(src []byte, at int) int { return bytes.LastIndexAny(src[:at], "\r\n") + 1 }

func (s *scanner) fail(at int, text, advice string) {
	panic(syntaxPanic{Fault{At: at, Text: text, Advice: advice}})
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

func (s *scanner) value() *Value {
	if s.values++; s.values > s.form.Values {
		s.fail(s.at, fmt.Sprintf("more than %d values", s.form.Values), "Make it smaller: it describes one invoice")
	}
	v := &Value{At: s.at}
	switch c := s.peek(); {
	case c == '{':
		v.Kind, v.Members = Object, s.object()
	case c == '[':
		v.Kind, v.Items = List, s.list()
	case c == '"':
		v.Kind, v.Text = Text, s.string()
	case c == '-' || c >= '0' && c <= '9':
		v.Kind, v.Text = Number, s.number()
	default:
		v.Kind, v.Text = Word, s.word()
	}
	v.End = s.at
	return v
}

// enter steps over an opening bracket.
func (s *scanner) enter() {
	if s.depth++; s.depth > s.form.Depth {
		s.fail(s.at, fmt.Sprintf("brackets nested deeper than %d", s.form.Depth), s.form.Again)
	}
	s.at++
	s.space()
}

func (s *scanner) object() (members []Member) {
	s.enter()
	seen := map[string]int{}
	for s.peek() != '}' {
		if s.peek() != '"' {
			s.failToken("a field's name in quotes")
		}
		m := Member{At: s.at}
		m.Key = s.string()
		if first, again := seen[m.Key]; again {
			s.repeated = append(s.repeated, Repeated{m.Key, m.At, first})
		} else {
			seen[m.Key] = m.At
		}
		s.space()
		if s.peek() != ':' {
			s.failToken("a colon")
		}
		s.at++
		s.space()
		m.Value = s.value()
		members = append(members, m)
		s.next('}', m.Value.Kind)
	}
	s.at++
	s.depth--
	return members
}

func (s *scanner) list() (items []*Value) {
	s.enter()
	for s.peek() != ']' {
		v := s.value()
		items = append(items, v)
		s.next(']', v.Kind)
	}
	s.at++
	s.depth--
	return items
}

// next steps over the comma between two values.
func (s *scanner) next(closing byte, before Kind) {
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
	if c := s.peek(); closing == '}' && before == Number && c >= '0' && c <= '9' {
		s.fail(comma, "a comma inside a number", "Write a number without thousands separators and with a point, like 1234.56")
	}
	s.space()
	if s.peek() == closing {
		s.fail(comma, fmt.Sprintf("a comma before %c", closing), "Delete that comma")
	}
}

// failMore names the usual mistakes behind a whole value: the rest of a name
// with quotation marks in it, or a currency behind an amount.
func (s *scanner) failMore(before Kind) {
	line, _, _ := strings.Cut(string(s.src[s.at:]), "\n")
	more, _, closed := strings.Cut(line, `"`)
	first, _ := utf8.DecodeRuneInString(more)
	switch {
	case !unicode.IsLetter(first) && !unicode.IsDigit(first):
	case before == Text && closed:
		s.fail(s.at, "quotation marks inside a value", fmt.Sprintf(`Put a backslash before each of them: \"%s\"`, showName(more)))
	case before == Number:
		s.fail(s.at, "a word behind a number", fmt.Sprintf("Write the number alone, like 1234.56, and the currency in %q", s.form.Currency))
	}
}

// curly are the quotes that word processors put in place of the straight one.
const curly = "“”„‟«»‘’‚‛‹›"

// failToken names the text where something else is expected.
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
	s.fail(at, "curly quotes, probably from Word", s.form.Again)
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

// number reads all characters that numbers have and then checks them against
// the grammar, so that the fault is about the whole number.
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
		s.failMore(Number)
	case n == "-" && s.peek() == 'I':
		s.fail(begin, "-Infinity is not a number", "Write the number, or leave the field out")
	case strings.Trim(whole+fraction, "0123456789") != "":
		s.fail(begin, "this is not a number", "Write a number like 1234.56, and dates and invoice numbers in quotes")
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
			s.fail(begin, "the quote that opens here is not closed on its line", "Close it, and write a line break inside text as \\n")
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

// showName makes a text of the file fit for a line.
func showName(s string) string { return sanitize.Name(s, 80) }
