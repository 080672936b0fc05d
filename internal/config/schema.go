package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is what editors read too: every key with its meaning, its default and what may be written. The
// defaults stand there alone.
//
//go:embed config.schema.json
var Schema []byte

const (
	formatDuration = "vaultd-duration"
	formatSize     = "vaultd-size"
	formatYears    = "vaultd-years"
)

// schemaNode is the part of the schema that this program reads itself: titles for its hints, and the defaults.
type schemaNode struct {
	Ref        string                 `json:"$ref"`
	Defs       map[string]*schemaNode `json:"$defs"`
	Title      string                 `json:"title"`
	Type       schemaType             `json:"type"`
	Format     string                 `json:"format"`
	Enum       []string               `json:"enum"`
	Default    json.RawMessage        `json:"default"`
	Properties schemaProperties       `json:"properties"`
	Entries    schemaEntries          `json:"additionalProperties"`
	Items      *schemaNode            `json:"items"`

	Description string   `json:"description"`
	Required    []string `json:"required"`

	place int // among its siblings in the file
}

// schemaType is the kind of value that is allowed; empty where there are several.
type schemaType string

func (t *schemaType) UnmarshalJSON(raw []byte) error {
	var several []string
	if json.Unmarshal(raw, &several) == nil {
		*t = ""
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}

// The embedded schema is the same for ever; both forms of it are made when they are first asked for.
var (
	readSchema    = sync.OnceValues(parseSchema)
	schemaChecker = sync.OnceValues(compileSchema)
)

func parseSchema() (*schemaNode, error) {
	root := new(schemaNode)
	if err := json.Unmarshal(Schema, root); err != nil {
		return nil, fmt.Errorf("read the embedded schema: %w", err)
	}
	root.resolve(root.Defs)
	return root, nil
}

// resolve writes the definitions that nodes refer to into the nodes.
func (n *schemaNode) resolve(defs map[string]*schemaNode) {
	if def := defs[strings.TrimPrefix(n.Ref, "#/$defs/")]; def != nil {
		def.resolve(defs)
		if n.Title == "" {
			n.Title = def.Title
		}
		n.Type, n.Format, n.Properties, n.Items, n.Required = def.Type, def.Format, def.Properties, def.Items, def.Required
		if n.Description == "" {
			n.Description = def.Description
		}
		return
	}
	for _, p := range n.Properties {
		p.resolve(defs)
	}
	for _, below := range []*schemaNode{n.Items, n.Entries.node} {
		if below != nil {
			below.resolve(defs)
		}
	}
}

// at gives the node for a location, or an empty one where the schema knows none.
func (n *schemaNode) at(loc location) *schemaNode {
	for _, part := range loc {
		switch next := n.Properties[part]; {
		case next != nil:
			n = next
		case n.Entries.node != nil:
			n = n.Entries.node
		case n.Items != nil:
			n = n.Items
		default:
			return &schemaNode{}
		}
	}
	return n
}

// scalars calls visit for each key that is neither a section nor a list nor below a list, in alphabetical order.
func (n *schemaNode) scalars(loc location, visit func(location, *schemaNode)) {
	for _, name := range slices.Sorted(maps.Keys(n.Properties)) {
		child := n.Properties[name]
		switch child.Type {
		case "object":
			child.scalars(loc.child(name), visit)
		case "array":
		default:
			visit(loc.child(name), child)
		}
	}
}

// complete fills in the defaults and turns durations into nanoseconds and sizes into bytes. It expects a value that
// the schema allows and that has no faults any more.
func (n *schemaNode) complete(v any) (any, error) {
	switch {
	case n.Type == "object":
		m, ok := v.(map[string]any)
		if !ok {
			m = map[string]any{}
		}
		return m, errors.Join(n.completeObject(m), n.completeEntries(m))
	case n.Type == "array":
		list, _ := v.([]any)
		for i, item := range list {
			done, err := n.Items.complete(item)
			if err != nil {
				return nil, err
			}
			list[i] = done
		}
		return list, nil
	case v == nil:
		return nil, nil
	case n.Format == formatDuration:
		return ParseDuration(fmt.Sprint(v))
	case n.Format == formatSize:
		return parseSize(fmt.Sprint(v))
	case n.Format == formatYears:
		return parseYears(fmt.Sprint(v))
	}
	return v, nil
}

func (n *schemaNode) completeObject(m map[string]any) error {
	for name, child := range n.Properties {
		v, present := m[name]
		switch {
		case present:
		case child.Default != nil:
			var err error
			if v, err = decodeJSON(child.Default); err != nil {
				return fmt.Errorf("read the default of %s: %w", name, err)
			}
		case child.Type != "object":
			continue
		}
		done, err := child.complete(v)
		if err != nil {
			return fmt.Errorf("complete %s: %w", name, err)
		}
		m[name] = done
	}
	return nil
}

func decodeJSON(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// validate holds the document against the schema; each fault is recorded at its place, and what is wrong is taken
// out so that the rules which follow see only values of the right kind.
func (d *document) validate(schema *schemaNode) error {
	compiled, err := schemaChecker()
	if err != nil {
		return err
	}
	var wrong *jsonschema.ValidationError
	switch err := compiled.Validate(d.root); {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return fmt.Errorf("hold the configuration against its schema: %w", err)
	}
	for _, leaf := range leaves(wrong) {
		d.addSchemaFault(schema, leaf)
	}
	for _, leaf := range leaves(wrong) {
		switch k := leaf.ErrorKind.(type) {
		case *kind.Required:
		case *kind.AdditionalProperties:
			for _, name := range k.Properties {
				d.remove(location(leaf.InstanceLocation).child(name))
			}
		default:
			d.remove(leaf.InstanceLocation)
		}
	}
	return nil
}

func compileSchema() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		return nil, fmt.Errorf("read the embedded schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.RegisterFormat(&jsonschema.Format{Name: formatDuration, Validate: func(v any) error {
		return checkText(v, ParseDuration)
	}})
	c.RegisterFormat(&jsonschema.Format{Name: formatSize, Validate: func(v any) error {
		return checkText(v, parseSize)
	}})
	c.RegisterFormat(&jsonschema.Format{Name: formatYears, Validate: func(v any) error {
		return checkText(v, parseYears)
	}})
	const url = "urn:vaultd:config"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("read the embedded schema: %w", err)
	}
	compiled, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("compile the embedded schema: %w", err)
	}
	return compiled, nil
}

func checkText[T any](v any, parse func(string) (T, error)) error {
	text, ok := v.(string)
	if !ok {
		return nil // of the wrong type: said elsewhere
	}
	_, err := parse(text)
	return err
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, c := range e.Causes {
		all = append(all, leaves(c)...)
	}
	return all
}

// addSchemaFault says in a person's words what the schema objects to.
func (d *document) addSchemaFault(schema *schemaNode, leaf *jsonschema.ValidationError) {
	loc := location(leaf.InstanceLocation)
	node := schema.at(loc)
	hint := "write " + node.Title
	switch k := leaf.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			d.addUnknownKey(schema, loc, name)
		}
	case *kind.Required:
		for _, name := range k.Missing {
			d.addAt(loc.child(name), "is missing", "add "+name+": "+node.at(location{name}).Title)
		}
	case *kind.Type:
		problem, hint := typeProblem(k, node), typeHint(k, node)
		if text, _ := d.lookup(loc).(string); node.Type == "object" && keyWithoutSpace.MatchString(text) {
			problem, hint = "is not a section: a space is missing after the colon", "write a space after the colon, then the value"
		}
		d.addAt(loc, problem, hint)
	case *kind.Enum:
		if meant := nearest(fmt.Sprint(k.Got), node.Enum); meant != "" {
			hint = fmt.Sprintf("did you mean %s? It is %s", meant, node.Title)
		}
		d.addAt(loc, "is none of the words that are known here", hint)
	case *kind.Format:
		d.addAt(loc, k.Err.Error(), hint)
	case *kind.Pattern, *kind.MinLength:
		d.addAt(loc, "is not "+node.Title, "")
	case *kind.Minimum, *kind.Maximum:
		d.addAt(loc, "is out of range", hint)
	case *kind.MinItems:
		d.addAt(loc, "is empty", hint)
	case *kind.UniqueItems:
		d.addAt(loc, "names the same thing twice", "keep one of them")
	default:
		d.addAt(loc, k.LocalizedString(message.NewPrinter(language.English)), hint)
	}
}

func typeProblem(k *kind.Type, node *schemaNode) string {
	switch {
	case k.Got == "null":
		return "has no value"
	case k.Got == "number" && slices.Contains([]string{formatDuration, formatSize, formatYears}, node.Format):
		return "is a number without a unit"
	}
	switch node.Type {
	case "object":
		return "is not a section"
	case "array":
		return "is not a list"
	case "integer":
		return "is not a whole number"
	case "number":
		return "is not a number"
	case "boolean":
		return "is neither true nor false"
	case "string":
		return "is not a text"
	}
	return "is of a kind that does not fit here"
}

func typeHint(k *kind.Type, node *schemaNode) string {
	switch {
	case node.Type == "object":
		return "write its keys below it, each indented and in a line of its own: " + node.knownKeys()
	case node.Type == "string" && k.Got != "null" && node.Format == "":
		return "write " + node.Title + "; put it in quotes if it looks like a number"
	}
	return "write " + node.Title
}

func (n *schemaNode) knownKeys() string {
	return strings.Join(slices.Sorted(maps.Keys(n.Properties)), ", ")
}

// addUnknownKey says which key was probably meant: a near one here, or the same word in its right section.
func (d *document) addUnknownKey(schema *schemaNode, parent location, name string) {
	loc := parent.child(name)
	node := schema.at(parent)
	hint := "known here: " + node.knownKeys()
	if meant := nearest(name, slices.Sorted(maps.Keys(node.Properties))); meant != "" {
		hint = "did you mean " + meant + "?"
	} else if home := schema.home(name, nil); home != nil {
		hint = name + " belongs under " + home.String()
	} else if secretKey.MatchString(name + ":") {
		hint = "no secret may stand in this file: write it into a file of its own and name that in service.auth.secret_file"
	}
	at, ok := d.keys[loc.key()]
	if !ok {
		at = d.place(parent)
	}
	d.add(at, loc, "is not a known key", hint)
}

// home gives the section in which the schema knows a key, or nil.
func (n *schemaNode) home(name string, loc location) location {
	for _, section := range slices.Sorted(maps.Keys(n.Properties)) {
		child := n.Properties[section]
		if child.Items != nil {
			child = child.Items
		}
		here := loc.child(section)
		if _, ok := child.Properties[name]; ok {
			return here
		}
		if found := child.home(name, here); found != nil {
			return found
		}
	}
	return nil
}

func index(part string, list []any) (int, bool) {
	i, err := strconv.Atoi(part)
	return i, err == nil && i >= 0 && i < len(list)
}
