package config

import (
	"bytes"
	"encoding/json"
	"fmt"
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
	if kit.Sampled(t, "each key with each value") {
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
	if len(faults) != 1 || fmt.Sprint(faults[0].Line, faults[0].Col, " ", faults[0].Problem) != "6 19 is not a whole number" {
		t.Errorf(`%v, want len(faults) = 1, fmt.Sprint(faults[0].Line, faults[0].Col, " ", faults[0].Problem) = "6 19 is not a whole number"`, faults)
	}
}
