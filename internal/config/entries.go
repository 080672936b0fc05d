package config

import (
	"encoding/json"
	"fmt"
)

// schemaEntries is what the entries of a section look like whose keys are names that a person chooses.
type schemaEntries struct {
	node *schemaNode // nil: the section has no such keys
}

// UnmarshalJSON leaves out the plain "false" of the other sections.
func (e *schemaEntries) UnmarshalJSON(raw []byte) error {
	if string(raw) == "false" {
		return nil
	}
	e.node = new(schemaNode)
	return json.Unmarshal(raw, e.node)
}

// entries are what a person named in m.
func (n *schemaNode) entries(m map[string]any) map[string]any {
	named := map[string]any{}
	for name, v := range m {
		if n.Entries.node != nil && n.Properties[name] == nil {
			named[name] = v
		}
	}
	return named
}

// completeEntries is completeObject for the entries that a person named.
func (n *schemaNode) completeEntries(m map[string]any) error {
	for name, v := range n.entries(m) {
		done, err := n.Entries.node.complete(v)
		if err != nil {
			return fmt.Errorf("complete %s: %w", name, err)
		}
		m[name] = done
	}
	return nil
}

// fillSections makes an empty section or list of a key that has nothing below it: all of its lines are comments.
func (n *schemaNode) fillSections(v any) any {
	switch {
	case v == nil && n.Type == "object":
		return map[string]any{}
	case v == nil && n.Type == "array":
		return []any{}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range n.Properties {
			if below, ok := v[name]; ok {
				v[name] = child.fillSections(below)
			}
		}
		for name := range n.entries(v) {
			v[name] = n.Entries.node.fillSections(v[name])
		}
	case []any:
		for i := range v {
			if n.Items != nil && v[i] != nil {
				v[i] = n.Items.fillSections(v[i])
			}
		}
	}
	return v
}
