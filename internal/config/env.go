package config

import (
	"encoding/json"
	"strings"
)

// override puts environment variables over the values of the file: VAULTD_ and the way to the key in capitals, such
// as VAULTD_STATE_DIR, VAULTD_UPLOAD_WORKERS or VAULTD_SERVICE_AUTH_USERNAME. Lists and drops have none. A variable
// that is set and empty counts: it is the empty text.
func (d *document) override(schema *schemaNode, env Env) {
	schema.scalars(nil, func(loc location, node *schemaNode) {
		name := "VAULTD_" + strings.ToUpper(strings.Join(loc, "_"))
		text, set := env(name)
		if !set {
			return
		}
		if d.put(loc, scalar(text, node)) {
			d.values[loc.key()] = mark{variable: name}
		}
	})
}

// scalar reads a variable's text as the kind of value that belongs there; what does not fit stays a text, for the
// schema to refuse.
func scalar(text string, node *schemaNode) any {
	switch {
	case node.Type == "boolean" && (text == "true" || text == "false"):
		return text == "true"
	case (node.Type == "integer" || node.Type == "number") && plainNumber.MatchString(text):
		return json.Number(text)
	}
	return text
}

// put sets a value, making the sections above it; it does not where one of those is something else than a section.
func (d *document) put(loc location, v any) bool {
	m, ok := d.root.(map[string]any)
	for _, part := range loc[:len(loc)-1] {
		if !ok {
			return false
		}
		if _, there := m[part]; !there {
			m[part] = map[string]any{}
		}
		m, ok = m[part].(map[string]any)
	}
	if ok {
		m[loc[len(loc)-1]] = v
	}
	return ok
}
