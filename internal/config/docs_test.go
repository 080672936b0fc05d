package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

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
