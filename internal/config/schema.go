package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Schema is the JSON schema that editors read too: every key with its meaning, its default and what may be written. The defaults stand
// there alone.
//
//go:embed config.schema.json
var Schema []byte

const (
	formatDuration = "vaultd-duration"
	formatSize     = "vaultd-size"
	formatYears    = "vaultd-years"
)

// schemaNode is what the schema says of one value. A test holds that it knows every word that the schema uses.
type schemaNode struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Type        schemaType      `json:"type"`
	Format      string          `json:"format"`
	Pattern     string          `json:"pattern"`
	Enum        []string        `json:"enum"`
	Default     json.RawMessage `json:"default"`
	Required    []string        `json:"required"`
	Minimum     *float64        `json:"minimum"`
	Maximum     *float64        `json:"maximum"`
	MinLength   int             `json:"minLength"`
	MaxLength   int             `json:"maxLength"` // 0: any
	MinItems    int             `json:"minItems"`
	UniqueItems bool            `json:"uniqueItems"`

	RawProperties json.RawMessage `json:"properties"`
	RawEntries    json.RawMessage `json:"additionalProperties"`
	RawItems      json.RawMessage `json:"items"`

	properties map[string]*schemaNode
	names      []string    // of the properties, as the schema file has them
	entries    *schemaNode // of a section whose keys a person names; nil: the section has no such keys
	items      *schemaNode
	pattern    *regexp.Regexp // nil: any text
	variable   string         // the environment variable that goes before the file; may be empty
}

// schemaType is the kind of value that is allowed; empty where there are several.
type schemaType string

func (t *schemaType) UnmarshalJSON(raw []byte) error {
	if raw[0] == '[' {
		*t = ""
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// parseSchema parses the embedded schema, once.
var parseSchema = sync.OnceValues(func() (*schemaNode, error) {
	var whole struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &whole); err != nil {
		return nil, fmt.Errorf("read the embedded schema: %w", err)
	}
	root, err := parseNode(Schema, whole.Defs, "VAULTD")
	if err != nil {
		return nil, fmt.Errorf("read the embedded schema: %w", err)
	}
	return root, nil
})

// parseNode parses one node with all below it. variable is empty below lists and below keys that a person names: they have no
// environment variables.
func parseNode(raw json.RawMessage, defs map[string]json.RawMessage, variable string) (*schemaNode, error) {
	var ref struct {
		Ref string `json:"$ref"`
	}
	n := &schemaNode{variable: variable, properties: map[string]*schemaNode{}}
	if err := json.Unmarshal(raw, &ref); err != nil {
		return nil, err
	}
	if def := defs[strings.TrimPrefix(ref.Ref, "#/$defs/")]; def != nil {
		if err := json.Unmarshal(def, n); err != nil {
			return nil, err
		}
	}
	err := json.Unmarshal(raw, n) // what stands beside a reference goes before the definition
	if err == nil && n.Pattern != "" {
		n.pattern, err = regexp.Compile(n.Pattern)
	}
	if err == nil && len(n.RawItems) > 0 {
		n.items, err = parseNode(n.RawItems, defs, "")
	}
	if err == nil && len(n.RawEntries) > 0 && string(n.RawEntries) != "false" {
		n.entries, err = parseNode(n.RawEntries, defs, "")
	}
	if err != nil || len(n.RawProperties) == 0 {
		return n, err
	}
	return n, n.parseProperties(defs)
}

func (n *schemaNode) parseProperties(defs map[string]json.RawMessage) error {
	dec := json.NewDecoder(bytes.NewReader(n.RawProperties))
	if _, err := dec.Token(); err != nil { // the opening brace
		return err
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		var below json.RawMessage
		if err := dec.Decode(&below); err != nil {
			return err
		}
		name, variable := fmt.Sprint(token), ""
		if n.variable != "" {
			variable = n.variable + "_" + strings.ToUpper(name)
		}
		if n.properties[name], err = parseNode(below, defs, variable); err != nil {
			return err
		}
		n.names = append(n.names, name)
	}
	return nil
}

// isShownWhole reports whether a value is one setting for people, with all below it.
func (n *schemaNode) isShownWhole() bool {
	hasKeys := len(n.properties) > 0 && string(n.Default) != "{}" // defaults and require are shown whole
	return !hasKeys && (n.items == nil || n.items.Type != "object")
}

// defaultValue gives the default as plain JSON values; nil where there is none.
func (n *schemaNode) defaultValue() any {
	if n.Default == nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(n.Default))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		panic(err) // it was parsed with the schema
	}
	return v
}

func (n *schemaNode) listKeys() string {
	return strings.Join(slices.Sorted(maps.Keys(n.properties)), ", ")
}

// findHome gives the first section in which the schema knows a key, or nil.
func (n *schemaNode) findHome(name string, loc location) location {
	for _, section := range n.names {
		child := n.properties[section]
		if child.items != nil {
			child = child.items
		}
		here := loc.child(section)
		if child.properties[name] != nil {
			return here
		}
		if found := child.findHome(name, here); found != nil {
			return found
		}
	}
	return nil
}
