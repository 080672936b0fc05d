package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"vaultd/internal/test/kit"
)

// compileSchema makes the schema ready for a validator that this program does not use: editors use one like it.
func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc := kit.Value(jsonschema.UnmarshalJSON(bytes.NewReader(Schema)))(t)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for name, n := range map[string]schemaNode{formatDuration: {Format: formatDuration}, formatSize: {Format: formatSize}, formatYears: {Format: formatYears}} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			_, err := n.convertUnits(v)
			return err
		}})
	}
	kit.Must(t, c.AddResource("urn:vaultd:config", doc))
	compiled := kit.Value(c.Compile("urn:vaultd:config"))(t)
	return compiled
}

// passes reports what the pass says of plain values, without the rules that the schema cannot say.
func passes(t *testing.T, root any) []Fault {
	t.Helper()
	schema := kit.Value(parseSchema())(t)
	p := pass{schema: schema, env: noEnv, document: &document{root: root, values: map[string]mark{}, keys: map[string]mark{}, wrong: map[string]bool{}}}
	kit.Value(p.decodeConfig())(t)
	return p.faults
}

// The pass refuses what a validator of JSON schemas refuses, and takes what that takes: each key with many values. What it takes
// decodes into a Config.
func TestSchema_PassAgreesWithAValidator(t *testing.T) {
	schema := kit.Value(parseSchema())(t)
	compiled := compileSchema(t)
	const base = `{"service":{"base_url":"https://x","auth":{"method":"basic","username":"u","secret_file":"/s"},
		"accounts":{"x":{"method":"basic","username":"u","secret_file":"/s"}}},"drops":[{"name":"a","path":"/a","vault":"V"}]}`
	values := []string{`null`, `true`, `"true"`, `0`, `-1`, `1`, `3`, `64`, `65`, `501`, `1000001`, `1.5`, `""`, `"x"`, `"X Y"`, `"a/b"`, `"/"`, `"/x/y"`,
		`"\u0001"`, `"/\u0001"`, `"EUR"`, `"30s"`, `"1d12h"`, `"999999999d"`, `"30"`, `"1MB"`, `"2 GiB"`, `"10y"`, `"16y"`, `"0y"`, `"basic"`, `"warn"`, `"hold"`, `"move"`,
		`"credential:a"`, `"credential:../a"`, `"test"`, `"Invoice"`, `"host:80"`, `"127.0.0.1:1"`, `[]`, `["x"]`, `["x","x"]`, `["a","b"]`, `[1]`, `[null]`, `[""]`, `[["x"]]`,
		`["X Y"]`, `{}`, `{"x":1}`, `{"senderName":"a"}`, `{"method":"basic"}`, `{"name":"a","path":"/a","vault":"V"}`, `[{"name":"a","path":"/a","vault":"V"}]`,
		`"` + strings.Repeat("ä", 150) + `"`, `"` + strings.Repeat("ä", 151) + `"`}
	tried, each := 0, 1
	switch sampled := kit.Sampled(t, "each key with each value"); {
	case kit.Race:
		each = 40
	case sampled:
		each = 8
	}
	var walk func(n *schemaNode, loc location)
	walk = func(n *schemaNode, loc location) {
		for i, text := range values {
			if (i+len(loc))%each != 0 {
				continue
			}
			v := decodePlain(t, text)
			if v == nil && (n.Type == "object" || n.Type == "array") {
				continue // all of its lines are comments
			}
			root := putPlain(decodePlain(t, base), loc, v)
			err := compiled.Validate(root)
			faults := passes(t, root)
			kit.Check(t, (err == nil) == (len(faults) == 0), "%v: %s: the validator says %v, the pass %v", loc, text, err, faults)
			tried++
		}
		for _, name := range n.names {
			walk(n.properties[name], loc.child(name))
		}
		if n.items != nil {
			walk(n.items, loc.child("0"))
		}
		if n.entries != nil {
			walk(n.entries, loc.child("x"))
		}
	}
	walk(schema, nil)
	kit.Check(t, tried >= 4000/each, "only %d values were tried", tried)
}

func decodePlain(t *testing.T, text string) any {
	t.Helper()
	v := kit.Value(jsonschema.UnmarshalJSON(strings.NewReader(text)))(t)
	return v
}

// putPlain puts v at a location of plain values, and gives the root.
func putPlain(root any, loc location, v any) any {
	if len(loc) == 0 {
		return v
	}
	if loc[0] == "0" {
		list, _ := root.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = putPlain(list[0], loc[1:], v)
		return list
	}
	m, ok := root.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	m[loc[0]] = putPlain(m[loc[0]], loc[1:], v)
	return m
}

// The pass knows every word that the schema uses: one that it did not know would hold in editors alone.
func TestSchema_UsesOnlyWordsThatThePassKnows(t *testing.T) {
	known := strings.Fields("$schema $id $defs $ref title description type format pattern enum default required minimum maximum minLength maxLength minItems uniqueItems properties additionalProperties items")
	var walk func(v any, names bool)
	walk = func(v any, names bool) {
		m, _ := v.(map[string]any)
		for name, below := range m {
			kit.Check(t, names || slices.Contains(known, name),
				"the schema says %q, which the pass does not know", name)
			if name != "default" || names {
				walk(below, !names && (name == "properties" || name == "$defs"))
			}
		}
	}
	var root any
	kit.Must(t, json.Unmarshal(Schema, &root))
	walk(root, false)
}

// Each default is a value that may be written.
func TestSchema_DefaultsMayBeWritten(t *testing.T) {
	schema := kit.Value(parseSchema())(t)
	var walk func(n *schemaNode, loc location)
	walk = func(n *schemaNode, loc location) {
		if v := n.defaultValue(); v != nil {
			p := pass{schema: schema, env: noEnv, document: &document{values: map[string]mark{}, wrong: map[string]bool{}}}
			if p.takeValue(n, v, true, loc); len(p.faults) > 0 {
				t.Errorf("%v: %v, want len(p.faults) <= 0", loc, p.faults)
			}
		}
		for _, name := range n.names {
			walk(n.properties[name], loc.child(name))
		}
		for part, below := range map[string]*schemaNode{"0": n.items, "x": n.entries} {
			if below != nil {
				walk(below, loc.child(part))
			}
		}
	}
	walk(schema, nil)
}

// A whole number with a fraction of zero is no whole number as it is written, and is refused with a place instead of failing later.
func TestConfig_WholeNumberWithAPoint(t *testing.T) {
	_, faults := load(t, smallConfig+"upload: {workers: 8.0}\n", nil)
	kit.Check(t, len(faults) == 1 && fmt.Sprint(faults[0].Line, faults[0].Col, " ", faults[0].Problem) == "6 19 is not a whole number",
		`%v, want len(faults) = 1, fmt.Sprint(faults[0].Line, faults[0].Col, " ", faults[0].Problem) = "6 19 is not a whole number"`, faults)
}

const sound = `service:
  environment: test
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}
state_dir: /var/lib/vaultd
drops:
  - name: acme-in
    path: /srv/invoices/acme-in
    vault: V-1
  - {name: beta, path: /srv/b, vault: V-2}
time_zone: Europe/Berlin
status:
  poll_min: 1m
`

// The usual mistakes in YAML are told by the line and the column where they stand, with what is right.
func TestConfig_UsualMistakesInYAML(t *testing.T) {
	kit.Rows(t, map[string]struct{ right, wrong, at, problem string }{
		"Tab":                  {"  base_url", "\tbase_url", "3:1", "a tab stands where only spaces may stand"},
		"TabInAnItem":          {"    vault: V-1", "  \tvault: V-1", "9:3", "a tab stands where only spaces may stand"},
		"QuoteInTheMiddle":     {"https://vault.example", `"https://vault.example`, "3:13", "a quote is opened here and never closed in this line"},
		"QuoteClosedByAnother": {"https://vault.example\n", "\"https://vault.example\n  request_id_header: \"X\"\n", "3:13", "a quote is opened here and never closed in this line"},
		"SingleQuote":          {"Europe/Berlin", "'Europe/Berlin", "11:12", "a quote is opened here and never closed in this line"},
		"QuoteInBraces":        {"basic", `"basic`, "4:18", "a quote is opened here and never closed in this line"},
		"NoSpaceAfterColon":    {"base_url: ", "base_url:", "3:12", "a space is missing after the colon"},
		"NoSpaceInAnItem":      {"vault: V-1", "vault:V-1", "9:11", "a space is missing after the colon"},
		"NoSpaceAlone":         {"poll_min: 1m", "poll_min:1m", "13:3", "is not a section: a space is missing after the colon"},
		"NoColon":              {"base_url: ", "base_url ", "3:11", "a colon is missing"},
		"NoColonOfASection":    {"drops:\n", "drops\n", "6:6", "a colon is missing"},
		"TooShallow":           {"    path", "   path", "8:4", "the indentation of this line fits no line above it"},
		"TooDeep":              {"    path", "     path", "8:6", "this line is indented deeper than the line above, which opens no section"},
		"DeepOnTop":            {"time_zone", " time_zone", "11:2", "the indentation of this line fits no line above it"},
		"NoSpaceAfterDash":     {"  - name", "  -name", "7:4", "a space is missing after the dash"},
		"BracketOpen":          {"vault: V-2}", "vault: V-2", "10:5", "a bracket is opened here and never closed"},
		"BracketNotOpened":     {"auth: {", "auth: ", "4:15", "a second colon stands in this line"},
		"At":                   {"vault: V-1", "vault: @V-1", "9:12", "a text may not begin with @"},
	}, func(t *testing.T, row struct{ right, wrong, at, problem string }) {
		_, faults := load(t, strings.Replace(sound, row.right, row.wrong, 1), nil)
		if len(faults) != 1 || fmt.Sprintf("%d:%d", faults[0].Line, faults[0].Col) != row.at || !strings.HasSuffix(faults[0].Problem, row.problem) || faults[0].Hint == "" {
			t.Fatalf("want %s: %s, got %v", row.at, row.problem, faults)
		}
		lines := strings.Split(faults[0].Excerpt, "\n")
		if caret := strings.Index(lines[1], "^") - strings.Index(lines[1], "|") - 1; caret != faults[0].Col {
			t.Errorf("the caret stands under column %d:\n%s", caret, faults[0].Excerpt)
		}
	})
}

// In a file that is right no mistake is seen: the examples and the forms that YAML has for texts and lists.
func TestConfig_NoMistakeIsSeenInWhatIsRight(t *testing.T) {
	example := kit.Value(os.ReadFile("../../config.example.yaml"))(t)
	for _, text := range []string{string(example), sound,
		"a: |\n  b:c\n  \"d\n  \te\nf: 'it''s'\ng: \"x\\\"y\" # z: \"\n",
		"a:\n- b\n- http://x/y\n- c: d\n  e: [1,\n    'f', {g: h}]\ni: {j: k,\n  l: m}\n\"n\": 'o: p'\n",
	} {
		lines := strings.Split(text, "\n")
		m, found := findUsualMistake(lines, mark{line: len(lines)})
		kit.Check(t, !found, "%+v in\n%s", m, text)
	}
}

// docs/configuration.md is made of the schema and of the words of config.example.yaml.
func TestConfigDocs_AreTheSchemas(t *testing.T) {
	schema := kit.Value(parseSchema())(t)
	said := exampleWords(t)
	var b strings.Builder
	for _, name := range schema.names {
		section := schema.properties[name]
		switch {
		case section.Type == "object":
			fmt.Fprintf(&b, "### `%s`\n\n%s\n", name, sentence(said[name], section))
			keyTable(&b, section, said, name)
		case section.items != nil && section.items.Type == "object":
			fmt.Fprintf(&b, "### `%s`\n\n%s\n", name, sentence(said[name], section))
			keyTable(&b, section.items, said, name)
		default:
			fmt.Fprintf(&b, "### `%s`\n\n%s\n\nDefault: `%s`. Write %s.\n", name, sentence(said[name], section), defaultText(section), section.Title)
		}
		b.WriteString("\n")
	}
	kit.Generated(t, "../../docs/configuration.md", "keys", b.String(), *updateDocs)
}

func keyTable(b *strings.Builder, section *schemaNode, said map[string]string, path string) {
	b.WriteString("\n| key | default | what to write | meaning |\n|---|---|---|---|\n")
	var row func(n *schemaNode, short, full string)
	row = func(n *schemaNode, short, full string) {
		for _, name := range n.names {
			child := n.properties[name]
			if child.Type == "object" && !child.isShownWhole() {
				row(child, short+name+".", full+"."+name)
				continue
			}
			fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", short, name, cell(defaultText(child), n, name), bar(child.Title), bar(sentence(said[full+"."+name], child)))
		}
	}
	row(section, "", path)
}

func cell(text string, n *schemaNode, name string) string {
	for _, r := range n.Required {
		if r == name {
			return "must be given"
		}
	}
	if text == "" {
		return "empty"
	}
	return "`" + text + "`"
}

func bar(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func defaultText(n *schemaNode) string {
	return strings.Trim(string(n.Default), `"`)
}

// sentence is what the example says of a key, or else what the schema does.
func sentence(said string, n *schemaNode) string {
	if said != "" {
		return said
	}
	return n.Description
}

// exampleWords reads the comment above each key of the example, by the way to the key.
func exampleWords(t *testing.T) map[string]string {
	t.Helper()
	src := kit.Value(os.ReadFile("../../config.example.yaml"))(t)
	said := map[string]string{}
	var words []string
	type open struct {
		indent int
		name   string
	}
	var stack []open
	for line := range strings.Lines(string(src)) {
		text := strings.TrimRight(line, "\n")
		trimmed := strings.TrimSpace(text)
		if comment, ok := strings.CutPrefix(trimmed, "#"); ok {
			words = append(words, strings.TrimSpace(comment))
			continue
		}
		trimmed = strings.TrimPrefix(trimmed, "- ")
		name, _, ok := strings.Cut(trimmed, ":")
		if !ok {
			words = nil
			continue
		}
		indent := len(text) - len(trimmed)
		for len(stack) > 0 && stack[len(stack)-1].indent >= indent {
			stack = stack[:len(stack)-1]
		}
		stack = append(stack, open{indent, name})
		path := ""
		for _, o := range stack {
			path = strings.TrimPrefix(path+"."+o.name, ".")
		}
		for _, mark := range []string{"CHANGE. ", "CHANGE if it lies elsewhere. "} {
			if len(words) > 0 {
				words[0] = strings.TrimPrefix(words[0], mark)
			}
		}
		said[path] = strings.Join(words, " ")
		words = nil
	}
	return said
}

// The example says something of every key, in the schema's order, so that nobody must guess.
func TestConfigExample_NamesEveryKey(t *testing.T) {
	schema := kit.Value(parseSchema())(t)
	said := exampleWords(t)
	var walk func(n *schemaNode, path string)
	walk = func(n *schemaNode, path string) {
		for _, name := range n.names {
			child, full := n.properties[name], strings.TrimPrefix(path+"."+name, ".")
			words, there := said[full]
			kit.Check(t, there && (words != "" || child.Type == "object"),
				"config.example.yaml says nothing of %s", full)
			switch {
			case child.items != nil && child.items.Type == "object":
				walk(child.items, full)
			case child.Type == "object" && !child.isShownWhole():
				walk(child, full)
			}
		}
	}
	walk(schema, "")
}

var updateDocs = flag.Bool("update-docs", false, "write what is generated in docs anew")
