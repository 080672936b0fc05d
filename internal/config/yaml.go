package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"vaultd/internal/sanitize"
)

// location is the path to a value: keys, and positions in lists as decimal numbers.
type location []string

// String gives the form people know, such as drops[0].settle.
func (l location) String() string {
	var b strings.Builder
	for i, part := range l {
		part = sanitize.Replace(part, '?')
		switch {
		case part != "" && part[0] >= '0' && part[0] <= '9':
			b.WriteString("[" + part + "]")
		case i > 0:
			b.WriteString("." + part)
		default:
			b.WriteString(part)
		}
	}
	return b.String()
}

func (l location) key() string { return strings.Join(l, "\x00") }

func (l location) child(part string) location {
	return append(l[:len(l):len(l)], part)
}

// mark is the place of a value or a key.
type mark struct {
	line, col int
	variable  string // the environment variable, when the value comes from one
}

// document is a configuration as it was written: plain JSON values with the place of each, and the faults found so far.
type document struct {
	name   string
	lines  []string
	root   any // map[string]any, []any, string, bool, json.Number or nil
	values map[string]mark
	keys   map[string]mark
	hide   map[int]int     // by line: the column from which it must not be shown
	wrong  map[string]bool // locations that have a fault already
	faults []Fault
}

// parseDocument reads YAML into plain values. Broken syntax becomes a fault, and so do anchors, merge keys, tags, repeated keys
// and numbers that YAML versions read differently (some read 010 as 8). The rest of the file is read all the same.
func parseDocument(name string, src []byte) *document {
	d := &document{name: name, values: map[string]mark{}, keys: map[string]mark{}, hide: map[int]int{}, wrong: map[string]bool{}}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(string(src), "\ufeff"))
	d.lines = strings.Split(text, "\n")
	if bad := firstUnreadable(d.lines); bad.line > 0 {
		d.addFault(bad, nil, "is not text in UTF-8", "save the file as UTF-8")
		return d
	}
	file, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.addSyntaxFault(err)
		return d
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil || doc.Body.Type() == ast.CommentType:
		case d.root != nil:
			d.addFault(markOf(firstToken(doc.Body)), nil, "a second document begins", `keep one document: remove the line "---" and what is not wanted`)
		default:
			d.root = d.readValue(doc.Body, nil)
		}
	}
	if d.root == nil { // nothing but comments
		d.root = map[string]any{}
	}
	if _, sections := d.root.(map[string]any); !sections { // no configuration at all: perhaps the secret's file, named by mistake
		for i := range d.lines {
			d.hideFrom(i+1, 1)
		}
	}
	return d
}

func firstUnreadable(lines []string) mark {
	for i, line := range lines {
		if at := strings.IndexByte(line, 0); at >= 0 || !utf8.ValidString(line) {
			return mark{line: i + 1, col: 1}
		}
	}
	return mark{}
}

// addFault records a fault at a place. Its excerpt is made later, when it is known what of the line must be hidden.
func (d *document) addFault(at mark, loc location, problem, hint string) {
	f := Fault{File: d.name, Line: at.line, Col: at.col, Key: loc.String(), Problem: problem, Hint: hint}
	if at.variable != "" {
		f.File, f.Line, f.Col = at.variable, 0, 0
	}
	d.faults = append(d.faults, f)
	if len(loc) > 0 {
		d.wrong[loc.key()] = true
	}
}

// addFaultAt records a fault of the value at loc. If that was not written, the
// fault is at the nearest section above it.
func (d *document) addFaultAt(loc location, problem, hint string) {
	d.addFault(d.findPlace(loc), loc, problem, hint)
}

// faultsAsError returns the faults as an *Error, each with its excerpt, or nil.
func (d *document) faultsAsError() error {
	for i, f := range d.faults {
		if f.Line >= 1 && f.Line <= len(d.lines) {
			d.faults[i].Excerpt = formatExcerpt(d.lines[f.Line-1], f.Line, f.Col, d.hide[f.Line])
		}
	}
	return newError(d.faults)
}

func (d *document) findPlace(loc location) mark {
	for n := len(loc); n > 0; n-- {
		if at, ok := d.values[loc[:n].key()]; ok {
			return at
		}
	}
	return mark{line: 1, col: 1}
}

// hasNoFault reports whether none of the values, and no section above them, has a fault yet. A rule that compares two values
// applies only when both are right on their own.
func (d *document) hasNoFault(locs ...location) bool {
	for _, loc := range locs {
		for n := len(loc); n > 0; n-- {
			if d.wrong[loc[:n].key()] {
				return false
			}
		}
	}
	return true
}

// hasNoFaultBelow reports whether nothing below a location has a fault yet.
func (d *document) hasNoFaultBelow(loc location) bool {
	for wrong := range d.wrong {
		if strings.HasPrefix(wrong, loc.key()+"\x00") {
			return false
		}
	}
	return true
}

func (d *document) addSyntaxFault(err error) {
	at, problem := mark{line: 1, col: 1}, "cannot be read as YAML"
	var y yaml.Error
	if errors.As(err, &y) {
		problem = "cannot be read as YAML: " + y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			at = markOf(t)
		}
	}
	hint := "look at indentation, colons, quotes and brackets here and in the lines around"
	if usual, ok := findUsualMistake(d.lines, at); ok {
		at, problem, hint = usual.at, "cannot be read as YAML: "+usual.problem, usual.hint
	}
	d.addFault(at, nil, problem, hint)
}

func markOf(t *token.Token) mark {
	if t == nil || t.Position == nil {
		return mark{line: 1, col: 1}
	}
	return mark{line: t.Position.Line, col: t.Position.Column}
}

// firstToken returns the token at which a person would point.
func firstToken(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

// readValue turns a node into plain JSON values and notes its place. The place of a section is its key.
func (d *document) readValue(n ast.Node, loc location) any {
	if _, ok := d.values[loc.key()]; !ok && n != nil {
		d.values[loc.key()] = markOf(firstToken(n))
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.readSection(n.Values, loc)
	case *ast.MappingValueNode:
		return d.readSection([]*ast.MappingValueNode{n}, loc)
	case *ast.SequenceNode:
		list := make([]any, 0, len(n.Values))
		for i, item := range n.Values {
			list = append(list, d.readValue(item, loc.child(fmt.Sprint(i))))
		}
		return list
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.BoolNode:
		return n.Value
	case *ast.NullNode, nil:
		return nil
	case *ast.IntegerNode, *ast.FloatNode:
		return d.readNumber(n, loc)
	case *ast.AnchorNode:
		d.addFault(markOf(n.Start), loc, "anchors (&) are not used here", "write the value out in each place")
		return d.readValue(n.Value, loc)
	case *ast.AliasNode:
		d.addFault(markOf(n.Start), loc, "aliases (*) are not used here", "write the value out in each place")
		return nil
	case *ast.TagNode:
		d.addFault(markOf(n.Start), loc, "tags (!) are not used here", "remove the tag; put a text in quotes")
		return d.readValue(n.Value, loc)
	default:
		d.addFaultAt(loc, "is no value that can be used here", "")
		return nil
	}
}

func (d *document) readSection(entries []*ast.MappingValueNode, loc location) map[string]any {
	m := make(map[string]any, len(entries))
	for _, e := range entries {
		at := markOf(e.Key.GetToken())
		if e.Key.IsMergeKey() {
			d.addFault(at, loc.child("<<"), "merge keys (<<) are not used here", "write the keys out in each place")
			continue
		}
		if _, plain := e.Key.(*ast.StringNode); !plain {
			d.addFault(at, loc.child(e.Key.GetToken().Value), "is no name of a key", "a key is a plain word, such as settle")
			continue
		}
		key := e.Key.GetToken().Value
		here := loc.child(key)
		d.hideIfSecret(here, at, e.Value)
		if first, double := d.keys[here.key()]; double {
			d.addFault(at, here, fmt.Sprintf("stands here a second time; the first is in line %d", first.line), "keep one of them")
			continue
		}
		d.keys[here.key()] = at
		switch e.Value.(type) {
		case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.NullNode, nil:
			d.values[here.key()] = at
		}
		m[key] = d.readValue(e.Value, here)
	}
	return m
}

var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// readNumber keeps a number as the decimal text that was written, so that it is neither rounded nor read in another base.
func (d *document) readNumber(n ast.Node, loc location) any {
	text := strings.TrimSpace(n.GetToken().Value)
	if plainNumber.MatchString(text) {
		return json.Number(text)
	}
	hint := "write it in plain decimal digits, such as 8 or 0.12"
	if trimmed := strings.TrimLeft(text, "0"); plainNumber.MatchString(trimmed) && trimmed != text {
		hint = fmt.Sprintf("write %s, or put a text in quotes", trimmed)
	}
	d.addFaultAt(loc, "is a number that is read differently by different programs", hint)
	return nil
}

// hideIfSecret hides a value that may be a secret: each value below auth unless key and type are known, and each value that should be the
// name of a secret's file and is not.
func (d *document) hideIfSecret(loc location, key mark, value ast.Node) {
	name := loc[len(loc)-1]
	isFile := slices.Contains(secretFileKeys, name)
	if value == nil || (!isFile && !isPageAccess(loc) && !isSignIn(loc) && !isSignIn(loc[:len(loc)-1])) || d.isHarmless(loc, value) {
		return
	}
	at := markOf(firstToken(value))
	d.hideFrom(at.line, at.col)
	d.hideFrom(key.line, key.col+utf8.RuneCountInString(name)+1)
}

// secretFileKeys are the keys whose value is the name of a secret's file, and password_file, which older configurations have.
var secretFileKeys = []string{"secret_file", "users_file", "password_file", "key_file"}

// isSignIn reports whether loc is a section with credentials, or holds such sections by name.
func isSignIn(loc location) bool {
	at := func(back int) string {
		if len(loc) < back {
			return ""
		}
		return loc[len(loc)-back]
	}
	return at(1) == "auth" || at(1) == "accounts" || at(2) == "accounts"
}

// isPageAccess reports whether loc is the section that names the users of the web port.
func isPageAccess(loc location) bool { return len(loc) == 2 && loc[0] == "http" && loc[1] == "access" }

func (d *document) isHarmless(loc location, value ast.Node) bool {
	if isSignIn(loc) || isPageAccess(loc) {
		return value.Type() == ast.MappingType || value.Type() == ast.MappingValueType
	}
	_, text := value.(*ast.StringNode)
	_, double := d.keys[loc.key()]
	switch name := loc[len(loc)-1]; {
	case name == "scopes":
		return value.Type() == ast.SequenceType
	case slices.Contains(secretFileKeys, name):
		return text && !double && isSecretRef(value.GetToken().Value)
	default:
		known := name == "method" || name == "username" || name == "token_url" || name == "basic_encoding"
		return known && text && !double
	}
}

func (d *document) hideFrom(line, col int) {
	if before, ok := d.hide[line]; !ok || col < before {
		d.hide[line] = col
	}
}
