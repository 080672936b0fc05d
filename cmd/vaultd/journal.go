package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
)

// messageIDs name what happened for systemd's journal, whatever the words are one day:
// journalctl MESSAGE_ID=... finds all of one kind. They never change. An entry's message is
// told apart by the state that it is in.
var messageIDs = map[string]string{
	"vaultd started":                  "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e01",
	"vaultd stopped":                  "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e02",
	"configuration reloaded":          "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e03",
	"configuration not reloaded":      "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e04",
	"no progress":                     "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e05",
	"progress again":                  "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e06",
	"included storage is nearly used": "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e07",
	"included storage is used up":     "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e08",
	"route paused":                    "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e11",
	"route open again":                "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e12",
	"drop paused":                     "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e13",
	"drop works again":                "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e14",
	"change not committed":            "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e15",
	"entry archived":                  "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e21",
	"entry rejected":                  "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e22",
	"entry quarantined":               "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e23",
	"entry unclear":                   "0c0c9f8d5b0a4d0fb1f2a4a6de3b6e24",
}

// journalHandler writes records to systemd's journal with a field for each attribute, so that
// journalctl VAULTD_KEY=... tells the story of one entry. It keeps nothing back: what must not
// be logged must not be an attribute.
type journalHandler struct {
	level slog.Leveler
	send  func(message string, p journal.Priority, fields map[string]string) error
	group string // of the keys to come: VAULTD_ and the names of the groups, each with an underscore
	given []field
}

// field is one attribute as it is sent: its name, its name for people, and its text.
type field struct{ name, key, text string }

func newJournalHandler(level slog.Leveler) *journalHandler {
	return &journalHandler{level: level, send: journal.Send, group: "VAULTD_"}
}

// Enabled implements slog.Handler.
func (h *journalHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.given = h.given[:len(h.given):len(h.given)]
	for _, a := range attrs {
		next.given = fieldsOf(next.given, h.group, a)
	}
	return &next
}

// WithGroup implements slog.Handler.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.group += fieldName(name) + "_"
	return &next
}

// Handle implements slog.Handler.
func (h *journalHandler) Handle(_ context.Context, r slog.Record) error {
	all := h.given[:len(h.given):len(h.given)]
	r.Attrs(func(a slog.Attr) bool {
		all = fieldsOf(all, h.group, a)
		return true
	})
	fields := map[string]string{"SYSLOG_IDENTIFIER": "vaultd"}
	if !r.Time.IsZero() {
		fields["SYSLOG_TIMESTAMP"] = r.Time.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	kind, message := r.Message, r.Message
	for _, f := range all {
		fields[f.name] = f.text
		message += " " + f.key + "=" + quoteField(f.text)
		if f.name == "VAULTD_STATE" && r.Message == "entry" {
			kind = "entry " + f.text
		}
	}
	if id, known := messageIDs[kind]; known {
		fields["MESSAGE_ID"] = id
	}
	return h.send(message, syslogPriority(r.Level), fields)
}

// fieldsOf adds an attribute; a group adds those in it.
func fieldsOf(all []field, prefix string, a slog.Attr) []field {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += fieldName(a.Key) + "_"
		}
		for _, member := range v.Group() {
			all = fieldsOf(all, prefix, member)
		}
		return all
	case a.Key == "":
		return all
	}
	return append(all, field{prefix + fieldName(a.Key), a.Key, v.String()})
}

// fieldName makes what the journal takes as a name: capitals, digits and underscores.
func fieldName(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key)
}

// quoteField puts a text into quotes where people could not see its end otherwise.
func quoteField(text string) string {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '"' || r == '=' || r == 0x7f }) {
		return fmt.Sprintf("%q", text)
	}
	return text
}

func syslogPriority(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}
