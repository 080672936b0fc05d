package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"vaultd/internal/sanitize"
)

// Setting is one value that the daemon uses, and where it comes from. It is an object of
// "check --show --json".
type Setting struct {
	Key      string `json:"key"`      // such as drops[0].settle
	Value    any    `json:"value"`    // as it was written; "[hidden]" for what is nobody's business
	Origin   string `json:"origin"`   // file, environment or default
	File     string `json:"file"`     // of origin file
	Line     int    `json:"line"`     // of origin file
	Variable string `json:"variable"` // of origin environment
}

func (d *document) newSetting(loc location, v any, written bool) Setting {
	s := Setting{Key: loc.String(), Value: redactValue(loc, v), Origin: "default"}
	at, marked := d.values[loc.key()]
	switch {
	case !written && !marked:
	case at.variable != "":
		s.Origin, s.Variable = "environment", at.variable
	case written:
		s.Origin, s.File, s.Line = "file", d.name, at.line
	}
	return s
}

// redactValue hides user names, and each text that looks like a secret.
func redactValue(loc location, v any) any {
	text, isText := v.(string)
	switch {
	case !isText || text == "":
		return v
	case loc[len(loc)-1] == "username" && isSignIn(loc[:len(loc)-1]):
		return hidden
	case findSecretColumn(loc[len(loc)-1]+": "+text) > 0:
		return hidden
	}
	return v
}

// DescribeOrigin tells in a few words where the value comes from.
func (s Setting) DescribeOrigin() string {
	switch s.Origin {
	case "file":
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	case "environment":
		return s.Variable
	}
	return "default"
}

// FormatYAML returns the value as it can be written into a configuration.
func (s Setting) FormatYAML() string {
	if text, ok := s.Value.(string); ok && (isPlainYAML(text) || text == hidden) {
		return text
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s.Value) != nil {
		return hidden // not a plain value; nothing of it is shown
	}
	return sanitize.Text(strings.TrimSpace(b.String()))
}

var (
	plainWord = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9_./+-]*(:[A-Za-z0-9_./+-]+)*$`)
	otherWord = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|null|[0-9.:_+-]*|0[xo].*|[0-9].*e[0-9+-]+)$`)
)

// isPlainYAML reports whether YAML reads the text as the same text without quotes.
func isPlainYAML(s string) bool { return plainWord.MatchString(s) && !otherWord.MatchString(s) }
