package networkapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDocument is the size of the largest document that is sent, in bytes. It keeps a hostile one cheap; a real one stays far below.
const MaxDocument = 8 << 20

// Further bounds of a document that is to be sent.
const (
	maxDepth  = 64 // objects and lists within each other
	maxValues = 500_000
)

// node is one value of a document, and where it stands.
type node struct {
	at, end int     // its first byte, and the one behind its last
	token   any     // a text, json.Number, bool, nil, or the opening bracket of an object or a list
	members []child // of an object, in their order
	items   []*node // of a list
}

// child is one member of an object.
type child struct {
	name  string
	at    int // where its name begins
	value *node
}

func (n *node) isObject() bool { return n != nil && n.token == json.Delim('{') }
func (n *node) isList() bool   { return n != nil && n.token == json.Delim('[') }

// find returns the value of the first member of that name. Nil: there is none, or it is null, which says the same.
func (n *node) find(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name && m.value.token != nil {
			return m.value
		}
	}
	return nil
}

// text returns the text of the first member of that name; empty: there is none, or it is no text.
func (n *node) text(name string) string {
	found := n.find(name)
	if found == nil {
		return ""
	}
	text, _ := found.token.(string)
	return text
}

// parseError is what is wrong with the form of a document.
type parseError struct {
	at   int // the byte that it is about
	text string
}

func (e *parseError) Error() string { return e.text }

// parseDocument reads the one value of src strictly: only UTF-8, no half characters, nothing behind the value. Members that stand
// twice stay in the tree; see findRepeated. The error is a *parseError.
func parseDocument(src []byte) (*node, error) {
	if len(src) > MaxDocument {
		return nil, &parseError{0, fmt.Sprintf("the file has %d bytes; a document has at most %d.", len(src), MaxDocument)}
	}
	if at := findInvalidUTF8(src); at >= 0 {
		return nil, &parseError{at, `here is a character that is not UTF-8; save the file again with encoding "UTF-8".`}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(src, &whole); err != nil {
		at := len(src)
		if wrong, is := errors.AsType[*json.SyntaxError](err); is {
			at = min(max(int(wrong.Offset)-1, 0), len(src))
		}
		return nil, &parseError{at, fmt.Sprintf("the file is not JSON here: %v. Look at the quotes, commas and brackets just before it.", err)}
	}
	if at := findHalfCharacter(src); at >= 0 {
		return nil, &parseError{at, `here is half a character (a lone \u surrogate); write the character itself.`}
	}
	p := treeParser{src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	p.dec.UseNumber()
	return p.parseValue(0)
}

// treeParser makes a tree of JSON that is known to be valid.
type treeParser struct {
	src    []byte
	dec    *json.Decoder
	values int
}

// nextToken returns the next token and where it begins.
func (p *treeParser) nextToken() (token json.Token, at int, err error) {
	at = int(p.dec.InputOffset())
	for at < len(p.src) && bytes.IndexByte([]byte(" \t\r\n,:"), p.src[at]) >= 0 {
		at++
	}
	token, err = p.dec.Token()
	if err != nil {
		err = &parseError{at, "the file is not JSON here."}
	}
	return token, at, err
}

// parseValue reads the next value.
func (p *treeParser) parseValue(depth int) (*node, error) {
	token, at, err := p.nextToken()
	if err != nil {
		return nil, err
	}
	if p.values++; p.values > maxValues || depth > maxDepth {
		return nil, &parseError{at, "the document has too many values, or they stand too deep within each other."}
	}
	n := &node{at: at, token: token}
	switch token {
	case json.Delim('{'):
		err = p.parseMembers(n, depth)
	case json.Delim('['):
		err = p.parseItems(n, depth)
	}
	n.end = int(p.dec.InputOffset())
	return n, err
}

func (p *treeParser) parseMembers(n *node, depth int) error {
	for p.dec.More() {
		name, at, err := p.nextToken()
		if err != nil {
			return err
		}
		value, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		text, _ := name.(string) // between the braces of an object a token is a name
		n.members = append(n.members, child{text, at, value})
	}
	_, _, err := p.nextToken() // the closing brace
	return err
}

func (p *treeParser) parseItems(n *node, depth int) error {
	for p.dec.More() {
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, _, err := p.nextToken() // the closing bracket
	return err
}

// findRepeated calls report for each member that stands a second time in its object.
func (n *node) findRepeated(report func(again, first child)) {
	seen := make(map[string]child, len(n.members))
	for _, m := range n.members {
		if first, twice := seen[m.name]; twice {
			report(m, first)
		} else {
			seen[m.name] = m
		}
		m.value.findRepeated(report)
	}
	for _, item := range n.items {
		item.findRepeated(report)
	}
}

// findInvalidUTF8 returns where src has a byte that is no UTF-8; -1: nowhere.
func findInvalidUTF8(src []byte) int {
	if utf8.Valid(src) {
		return -1
	}
	for at := 0; at < len(src); {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// findHalfCharacter returns where valid JSON has an escape that is one half of a pair without the other; -1: nowhere.
func findHalfCharacter(src []byte) int {
	for at := 0; at < len(src); at++ {
		if src[at] != '\\' {
			continue
		}
		at++
		first, ok := unitAt(src, at-1)
		if !ok || !utf16.IsSurrogate(first) {
			continue
		}
		second, ok := unitAt(src, at+5)
		if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
			return at - 1
		}
		at += 10 // over the second escape
	}
	return -1
}

// unitAt reads the escape \uXXXX at a place.
func unitAt(src []byte, at int) (rune, bool) {
	if at+6 > len(src) || src[at] != '\\' || src[at+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(src[at+2:at+6]), 16, 16)
	return rune(n), err == nil
}

// lineAt returns the line in which the byte at stands, counted from 1.
func lineAt(src []byte, at int) int { return 1 + bytes.Count(src[:min(at, len(src))], []byte("\n")) }

// withoutMark removes the byte order mark that some editors put before a file.
func withoutMark(src []byte) []byte { return bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")) }
