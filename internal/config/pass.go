package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// pass takes the values of a document over into a Config. It visits each key of the schema once: there it puts the environment variable
// over the value of the file, notes what is wrong, lets the default stand in for what is missing or wrong, turns durations and sizes
// into numbers, and notes what is shown to people.
type pass struct {
	*document
	schema   *schemaNode
	env      Env
	settings []Setting
}

// decodeConfig makes the pass. An error is a mistake in this program: the schema allowed what the types do not hold.
func (p *pass) decodeConfig() (Config, error) {
	p.refuseRemovedVariables()
	raw, err := json.Marshal(p.takeValue(p.schema, p.root, true, nil))
	if err != nil {
		return Config{}, fmt.Errorf("encode the configuration: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	cfg := Config{doc: p.document}
	if err := dec.Decode(&cfg); err != nil {
		return Config{}, fmt.Errorf("decode the configuration: %w", err)
	}
	cfg.Settings = p.settings
	return cfg, nil
}

// takeValue takes over one value, which was written or has to be the default.
func (p *pass) takeValue(n *schemaNode, v any, written bool, loc location) (taken any) {
	if n.Type != "object" && n.Type != "array" && p.hasVariable(n) {
		text, _ := p.env(n.variable)
		v, written, p.values[loc.key()] = parseVariable(text, n), true, mark{variable: n.variable}
	}
	// A section or a list that has a key and no value is empty: all of its lines are comments.
	if !written || v == nil && (n.Type == "object" || n.Type == "array") {
		v = n.defaultValue()
	}
	before := len(p.settings)
	switch _, isList := v.([]any); {
	case n.Type == "object":
		taken = p.takeSection(n, v, written, loc)
	case n.Type == "array" || n.Type == "" && isList:
		taken = p.takeList(n, v, written, loc)
	default:
		taken = p.takeScalar(n, v, written, loc)
	}
	if len(p.settings) == before || n.isShownWhole() && n.entries == nil {
		p.settings = append(p.settings[:before], p.newSetting(loc, v, written))
	}
	return taken
}

func (p *pass) takeSection(n *schemaNode, v any, written bool, loc location) any {
	m, isSection := v.(map[string]any)
	isWrong := v != nil && !isSection
	if isWrong {
		p.addValueFault(n, v, loc)
		written = false
	}
	taken := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch {
		case n.properties[name] != nil: // below
		case n.entries != nil:
			taken[name] = p.takeValue(n.entries, m[name], true, loc.child(name))
		default:
			p.addKeyFault(n, loc, name)
		}
	}
	for _, name := range n.names {
		child := n.properties[name]
		below, there := m[name]
		// Below a value that is no section nothing is missing, whatever variables are set: one fault is told, not its consequences.
		there = there || !isWrong && p.hasVariable(child)
		if written && !there && slices.Contains(n.Required, name) {
			p.addFaultAt(loc.child(name), "is missing", "add "+name+": "+child.Title)
		}
		if done := p.takeValue(child, below, there, loc.child(name)); done != nil {
			taken[name] = done
		}
	}
	return taken
}

func (p *pass) takeList(n *schemaNode, v any, written bool, loc location) any {
	list, isList := v.([]any)
	switch {
	case v == nil && !written:
		return nil
	case v != nil && !isList:
		p.addValueFault(n, v, loc)
		list, _ = n.defaultValue().([]any)
	case written && len(list) < n.MinItems:
		p.addFaultAt(loc, "is empty", "write "+n.Title)
	}
	taken, seen := make([]any, len(list)), map[string]bool{}
	for i, item := range list {
		here := loc.child(strconv.Itoa(i))
		if item == nil {
			p.addValueFault(n.items, nil, here)
		}
		taken[i] = p.takeValue(n.items, item, item != nil, here)
		if text := fmt.Sprintf("%T %v", item, item); n.UniqueItems && seen[text] {
			p.addFaultAt(loc, "names the same thing twice", "keep one of them")
		} else {
			seen[text] = true
		}
	}
	return taken
}

func (p *pass) takeScalar(n *schemaNode, v any, written bool, loc location) any {
	taken, err := n.convertUnits(v)
	if written && (err != nil || !n.allowsKind(v) || !n.allowsValue(v)) {
		p.addValueFault(n, v, loc)
		taken, _ = n.convertUnits(n.defaultValue())
	}
	return taken
}

// allowsKind reports whether a plain value is of the type that the schema wants; a list or section is asked elsewhere.
func (n *schemaNode) allowsKind(v any) bool {
	switch v := v.(type) {
	case string:
		return n.Type == "string" || n.Type == ""
	case bool:
		return n.Type == "boolean"
	case json.Number:
		return n.Type == "number" || n.Type == "integer" && !strings.Contains(v.String(), ".")
	}
	return false
}

// allowsValue reports whether a value of the right type is one that may be written.
func (n *schemaNode) allowsValue(v any) bool {
	switch v := v.(type) {
	case string:
		length := utf8.RuneCountInString(v)
		return (n.Enum == nil || slices.Contains(n.Enum, v)) && (n.pattern == nil || n.pattern.MatchString(v)) &&
			length >= n.MinLength && (n.MaxLength == 0 || length <= n.MaxLength)
	case json.Number:
		f, err := v.Float64()
		return err == nil && (n.Minimum == nil || f >= *n.Minimum) && (n.Maximum == nil || f <= *n.Maximum)
	}
	return true
}

// convertUnits turns durations into nanoseconds, sizes into bytes and years into a number of them.
func (n *schemaNode) convertUnits(v any) (any, error) {
	text, isText := v.(string)
	switch {
	case !isText:
		return v, nil
	case n.Format == formatDuration:
		return ParseDuration(text)
	case n.Format == formatSize:
		return parseSize(text)
	case n.Format == formatYears:
		return parseYears(text)
	}
	return v, nil
}

// addValueFault says in a person's words what is wrong with a value that the schema does not allow.
func (p *pass) addValueFault(n *schemaNode, v any, loc location) {
	if v == nil && p.wrong[loc.key()] {
		return // it could not be read, which was said already
	}
	problem, hint := n.describeProblem(v)
	p.addFaultAt(loc, problem, hint)
}

func (n *schemaNode) describeProblem(v any) (problem, hint string) {
	hint = "write " + n.Title
	text, isText := v.(string)
	switch {
	case n.Type == "object" && keyWithoutSpace.MatchString(text):
		return "is not a section: a space is missing after the colon", "write a space after the colon, then the value"
	case n.Type == "object":
		hint = "write its keys below it, each indented and in a line of its own: " + n.listKeys()
	case n.Type == "string" && n.Format == "" && v != nil && !isText:
		hint += "; put it in quotes if it looks like a number"
	}
	_, isNumber := v.(json.Number)
	_, err := n.convertUnits(v)
	switch {
	case v == nil:
		return "has no value", hint
	case isNumber && n.Format != "":
		return errNoUnit.Error(), hint
	case !n.allowsKind(v):
		return wrongType[n.Type], hint
	case n.Enum != nil:
		if meant := findNearestWord(text, n.Enum); meant != "" {
			hint = fmt.Sprintf("did you mean %s? It is %s", meant, n.Title)
		}
		return "is none of the words that are known here", hint
	case err != nil:
		return err.Error(), hint
	case isNumber:
		return "is out of range", hint
	}
	return "is not " + n.Title, ""
}

// wrongType says of each type that a value is of another one.
var wrongType = map[schemaType]string{
	"object": "is not a section", "array": "is not a list", "integer": "is not a whole number", "number": "is not a number",
	"boolean": "is neither true nor false", "string": "is not a text", "": "is of a kind that does not fit here",
}

// addKeyFault says which key was probably meant: a near one here, or the same word in its right section.
func (p *pass) addKeyFault(section *schemaNode, parent location, name string) {
	loc := parent.child(name)
	problem, hint := "is not a known key", "known here: "+section.listKeys()
	if advice, removed := removedKeys[loc.String()]; removed {
		problem, hint = removedProblem, advice
	} else if meant := findNearestWord(name, slices.Sorted(maps.Keys(section.properties))); meant != "" {
		hint = "did you mean " + meant + "?"
	} else if home := p.schema.findHome(name, nil); home != nil {
		hint = name + " belongs under " + home.String()
	} else if secretKey.MatchString(name + ":") {
		hint = "no secret may stand in this file: write it into a file of its own and name that in service.auth.secret_file"
	}
	at, ok := p.keys[loc.key()]
	if !ok {
		at = p.findPlace(parent)
	}
	p.addFault(at, loc, problem, hint)
}

// removedKeys are keys of older versions, each with what to do instead.
var removedKeys = map[string]string{
	"http.password_file": "it held one password for everybody; now there are users: let vaultd hash-password print a line for each, put the lines into a file, and name that in http.access.users_file",
}

const removedProblem = "is a key of an older version"

// refuseRemovedVariables refuses environment variables of removed keys. To ignore one could open what it closed before.
func (p *pass) refuseRemovedVariables() {
	for key, advice := range removedKeys {
		variable := "VAULTD_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		if _, set := p.env(variable); set {
			p.addFault(mark{variable: variable}, locationOf(key), removedProblem, advice)
		}
	}
}

// hasVariable reports whether the environment has a variable for a value, or for one in a section: VAULTD_ and the way to the key in
// capitals, such as VAULTD_STATE_DIR or VAULTD_SERVICE_AUTH_USERNAME. One that is set and empty counts: it is the empty text.
func (p *pass) hasVariable(n *schemaNode) bool {
	switch {
	case n.variable == "" || n.Type == "array":
		return false
	case n.Type == "object":
		return slices.ContainsFunc(n.names, func(name string) bool { return p.hasVariable(n.properties[name]) })
	}
	_, set := p.env(n.variable)
	return set
}

// parseVariable reads a variable's text as the kind of value that belongs there; what does not fit stays a text, for the schema to
// refuse.
func parseVariable(text string, n *schemaNode) any {
	switch {
	case n.Type == "boolean" && (text == "true" || text == "false"):
		return text == "true"
	case (n.Type == "integer" || n.Type == "number") && plainNumber.MatchString(text):
		return json.Number(text)
	}
	return text
}
