// These tests are inside the package: they read what is handed to the journal of
// systemd.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/slogtest"

	"github.com/coreos/go-systemd/v22/journal"

	"vaultd/internal/config"
	"vaultd/internal/test/kit"
)

// The handler keeps the rules of log/slog; single capitals stand for groups there.
func TestJournalHandler_KeepsSlogsRules(t *testing.T) {
	var got []map[string]any
	h := newJournalHandler(slog.LevelInfo)
	h.send = func(message string, p journal.Priority, fields map[string]string) error {
		word, _, _ := strings.Cut(message, " ")
		m := map[string]any{slog.MessageKey: word, slog.LevelKey: p}
		for name, value := range fields {
			parts := strings.Split(name, "_")
			if name == "SYSLOG_TIMESTAMP" {
				m[slog.TimeKey] = value
			}
			if parts[0] != "VAULTD" {
				continue
			}
			at := m
			for _, group := range parts[1 : len(parts)-1] {
				below, ok := at[group].(map[string]any)
				if !ok {
					below = map[string]any{}
					at[group] = below
				}
				at = below
			}
			at[strings.ToLower(parts[len(parts)-1])] = value
		}
		got = append(got, m)
		return nil
	}
	kit.Want(t, "the error of TestHandler", slogtest.TestHandler(h, func() []map[string]any { return got }), nil)
}

func TestJournalHandler_FieldsPriorityAndMessageID(t *testing.T) {
	type sent struct {
		message string
		p       journal.Priority
		fields  map[string]string
	}
	var got []sent
	h := newJournalHandler(slog.LevelInfo)
	h.send = func(message string, p journal.Priority, fields map[string]string) error {
		got = append(got, sent{message, p, fields})
		return nil
	}
	log := slog.New(h)
	log.Debug("entry", "state", "sealed")
	log.Warn("entry", "key", "06gz", "state", "rejected", "drop", "acme-in", "bumId", "b-1", "cause", "date not understood")
	log.Error("route paused", "target", "vault ACME", "err", config.Secret("hunter2"))
	kit.Need(t, len(got) == 2, "%d records", len(got))
	for name, want := range map[string]string{"VAULTD_KEY": "06gz", "VAULTD_STATE": "rejected", "VAULTD_DROP": "acme-in",
		"VAULTD_BUMID": "b-1", "MESSAGE_ID": messageIDs["entry rejected"], "SYSLOG_IDENTIFIER": "vaultd"} {
		kit.Want(t, name, got[0].fields[name], want)
	}
	if got[0].p != journal.PriWarning || got[1].p != journal.PriErr || got[1].fields["VAULTD_TARGET"] != "vault ACME" {
		t.Errorf(`got = %v, want got[0].p = journal.PriWarning, got[1].p = journal.PriErr, got[1].fields["VAULTD_TARGET"] = "vault ACME"`, got)
	}
	kit.Want(t, "got[0].message",
		`entry key=06gz state=rejected drop=acme-in bumId=b-1 cause="date not understood"`, got[0].message)
	s := fmt.Sprint(got)
	kit.Check(t, !strings.Contains(s, "hunter2"), "a secret in the journal: %v", s)
}

// Each kind of message that has an id is one that the program says, and ids are never shared.
func TestMessageIDs_AreSaidAndDocumented(t *testing.T) {
	var source strings.Builder
	for _, dir := range []string{".", "../../internal/ingest", "../../internal/daemon"} {
		files := kit.Value(filepath.Glob(filepath.Join(dir, "*.go")))(t)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") || filepath.Base(f) == "journal.go" {
				continue
			}
			b := kit.Value(os.ReadFile(f))(t)
			source.Write(b)
		}
	}
	seen := map[string]bool{}
	table := "| message | MESSAGE_ID |\n|---|---|\n"
	for _, kind := range slices.SortedFunc(maps.Keys(messageIDs), func(a, b string) int { return strings.Compare(messageIDs[a], messageIDs[b]) }) {
		id := messageIDs[kind]
		kit.Check(t, !seen[id] && regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id), "%s: id %s", kind, id)
		seen[id] = true
		said := kind
		if strings.HasPrefix(kind, "entry ") {
			said = "entry"
		}
		kit.Holds(t, fmt.Sprintf("nothing logs %q", kind), source.String(), `"`+said+`"`)
		table += fmt.Sprintf("| %s | `%s` |\n", kind, id)
	}
	kit.Generated(t, "../../docs/metrics.md", "messages", table, *updateDocs)
}

// Each record in the journal stays one record, and no text sets a field that it must not.
func TestInjection_I7_LogRecordsStayWhole(t *testing.T) {
	for _, text := range []string{"\x1b[2J\x1b]0;pwned\a", "a\nFORGED line", "a\r\nFORGED: line", "harmless\rFORGED", "a\u0085FORGED\u2028FORGED", "\u009b31mFORGED",
		"\xff\xfe\xc3", "x MESSAGE_ID=0\nVAULTD_STATE=archived", `'"` + "`;$(FORGED)|"} {
		var fields map[string]string
		var message string
		j := newJournalHandler(slog.LevelInfo)
		j.send = func(m string, _ journal.Priority, f map[string]string) error {
			message, fields = m, f
			return nil
		}
		slog.New(j).Error("entry", "folder", text, "err", errors.New(text))
		if strings.ContainsAny(message, "\n\x1b\r\a") || fields["VAULTD_FOLDER"] != text || fields["VAULTD_STATE"] != "" || len(fields) > 5 {
			t.Errorf("%q: %q %q, want not strings.ContainsAny(message, \"\\n\\x1b\\r\\a\"), fields[\"VAULTD_FOLDER\"] = %v, fields[\"VAULTD_STATE\"] = \"\", len(fields) <= 5", text, message, fields, text)
		}
	}
}

var updateDocs = flag.Bool("update-docs", false, "write what is generated in docs anew")
