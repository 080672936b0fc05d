package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/journal"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

// hostileTexts are what names, sidecars, answers of the service and reasons of people may hold to steer whoever reads.
var hostileTexts = map[string]string{
	"Screen": "\x1b[2J\x1b]0;pwned\a", "Line": "a\nFORGED line", "WindowsLine": "a\r\nFORGED: line", "Return": "harmless\rFORGED",
	"OtherLines": "a\u0085FORGED\u2028FORGED\u2029FORGED\vFORGED\fFORGED", "C1": "\u009b31mFORGED", "Turned": "\u202eDEGROF\u2066", "Hidden": "a\u200b\u00adb\ufeff",
	"NoText": "\xff\xfe\xc3", "Formula": `=HYPERLINK("http://evil.example","x")`, "Plus": "+1+1", "Minus": "-2+3", "At": "@SUM(A1:A9)", "TabFormula": "\t=1+1", "WideFormula": "＝1+1",
	"Script": "<script>FORGED</script>", "Attribute": `"><img src=x onerror=FORGED>`, "Style": "</style><b>FORGED", "Comment": "--><b>FORGED", "Link": "javascript:FORGED",
	"Template": "{{.Summary}}{{template \"x\"}}", "Verbs": "%s%n%!d(x)%", "Field": "x MESSAGE_ID=0\nVAULTD_STATE=archived", "Quotes": `'"` + "`;$(FORGED)|", "JSON": `","forged":"FORGED`, "Separators": "a;b,c\"d",
	"PathLike": "..\\..\\etc", "Spaces": "   ", "Long": strings.Repeat("A", 240),
}

// every puts each of the hostile texts wherever texts come from, one entry for each.
func (s *shelf) every() {
	at := noon.Add(-time.Hour)
	for name, text := range hostileTexts {
		at = at.Add(time.Second)
		folder := text + " " + name
		meta := archive.Document{Type: "Invoice", Number: text, Date: "2026-10-31T00:00:00Z", SenderName: text, SenderIDs: []string{text}, RecipientName: text,
			BuyerReferenceID: text, Amount: "119.00", Currency: "EUR", Parameters: []archive.Parameter{{Key: text, Value: text}}}
		doc := &ledger.Document{Metadata: meta.Metadata(), Files: []archive.File{{Path: text, Size: 3, SHA256: archive.Sum([]byte(name))}}, Junk: []string{text}}
		content := archive.ContentDigest(doc.Files)
		p := archive.Package{Path: "x.zip", Size: 1000, SHA256: archive.Sum([]byte(folder))}
		s.tell(folder, at, doc, ledger.Sealed{ID: archive.DeriveID("V-1", content, archive.Sum(doc.Metadata)), Content: content, Metadata: archive.Sum(doc.Metadata), Package: p, Seal: doc.Seal(p)})
		s.tell(folder, at, nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: text, Text: text + "\n" + text}})
		out, _, code := say(s.t, false, func(a *app) error {
			return a.runDecision(s.t.Context(), s.view, holdAct(), s.keys[folder].String(), text+"x")
		})
		s.clean(name, "hold", out)
		if code != exitDone {
			s.t.Errorf("hold %s: exit %d", name, code)
		}
	}
}

// live is what a daemon tells of drops and routes with such names.
func liveHostile() daemon.State {
	st := daemon.State{Since: noon}
	for name, text := range hostileTexts {
		st.Pauses = append(st.Pauses, ingest.Pause{Target: ingest.RegisterTarget(archive.VaultID(text)), Since: noon.Add(-time.Hour), Cause: ledger.Cause{Code: text, Text: text}})
		d := dropwork.State{Name: "acme-in"}
		d.Paused = text
		d.Watch.NotTaken = []watch.NotTakenGroup{{Reason: watch.NoRight, Count: 1, Items: []watch.NotTakenItem{{Name: text + name, Detail: text, FirstSeen: noon}}}}
		st.Drops = append(st.Drops, d)
	}
	return st
}

// clean looks at a text that a person reads on a terminal.
func (s *shelf) clean(what, where, out string) {
	s.t.Helper()
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !sanitize.IsPrintable(r) }); i >= 0 {
			s.t.Errorf("%s in %s: %q", what, where, line[max(0, i-30):min(len(line), i+30)])
			return
		}
		if strings.HasPrefix(line, "FORGED") { // what is indented belongs to the line above
			s.t.Errorf("%s in %s makes a line of its own: %q", what, where, line)
		}
	}
}

// No text of any origin steers a terminal, forges a line, breaks a page, a table or an object, in any output.
func TestInjection_I7_EveryTextThroughEveryOutput(t *testing.T) {
	s := newShelf(t)
	s.every()
	s.view.state = liveHostile
	ctx := t.Context()
	asks := map[string]func(a *app) error{
		"list":   func(a *app) error { return a.runList(ctx, s.view, listFilter{}) },
		"status": func(a *app) error { return a.runStatus(ctx, s.view) },
		"verify": func(a *app) error { return a.runVerify(ctx, s.view, sinceCheckpoint) },
		"find":   func(a *app) error { return a.runFind(ctx, s.view, []string{"FORGED"}, 0) },
	}
	for name, key := range s.keys {
		asks["show "+fmt.Sprintf("%q", name)] = func(a *app) error { return a.runShow(ctx, s.view, key.String()) }
		asks["why "+fmt.Sprintf("%q", name)] = func(a *app) error { return a.runWhy(ctx, s.view, key.String()) }
		asks["receipt "+fmt.Sprintf("%q", name)] = func(a *app) error { return a.runReceipt(ctx, s.view, key.String()) }
		asks["retry "+fmt.Sprintf("%q", name)] = func(a *app) error { return a.retryEntry(ctx, s.view, name, name) } // its refusal names the folder
		asks["unknown "+fmt.Sprintf("%q", name)] = func(a *app) error { return a.runShow(ctx, s.view, name+"?") }
		asks["fetch "+fmt.Sprintf("%q", name)] = func(a *app) error {
			e, _, err := s.ledger.Entry(key)
			w := wanted{"V-1", "bum-1", e}
			fmt.Fprintln(a.stderr, sanitize.Text(w.describeComparison()))
			return errors.Join(err, a.downloadAndCompare(ctx, s.view, &store{t: t, zip: []byte("PK")}, w, io.Discard))
		}
	}
	for where, ask := range asks {
		out, errs, _ := say(t, false, ask)
		s.clean("a text", where, out)
		s.clean("a text", where+" (stderr)", errs)
		out, errs, _ = say(t, true, ask)
		s.clean("a text", where+" --json (stderr)", errs)
		objects := json.NewDecoder(strings.NewReader(out))
		for objects.More() {
			var v any
			if err := objects.Decode(&v); err != nil {
				t.Errorf("%s --json: %v", where, err)
				break
			}
		}
		s.clean("a text", where+" --json", out)
	}
	s.auditIsClean()
}

func (s *shelf) auditIsClean() {
	for _, format := range []string{"html", "csv", "json"} {
		var page bytes.Buffer
		_, errs, code := say(s.t, false, func(a *app) error {
			return a.auditInto(s.t.Context(), s.view, auditFlags{format: format, separator: ";"}, &page)
		})
		if code != exitDone {
			s.t.Errorf("audit %s: exit %d, %s", format, code, errs)
		}
		text := page.String()
		switch format {
		case "html":
			for _, bad := range []string{"<script", "<img", "<b>FORGED", `href="javascript`} {
				if strings.Contains(strings.ToLower(text), strings.ToLower(bad)) {
					s.t.Errorf("the page holds %s", bad)
				}
			}
			s.clean("a text", "the page", text)
		case "csv":
			s.tableIsClean(text)
		default:
			if !json.Valid(page.Bytes()) {
				s.t.Error("the audit is no JSON")
			}
			s.clean("a text", "audit --format json", text)
		}
	}
}

// tableIsClean reads a table as a spreadsheet does.
func (s *shelf) tableIsClean(text string) {
	s.t.Helper()
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	r.Comma, r.FieldsPerRecord = ';', -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) < len(hostileTexts) {
		s.t.Error("csv:", len(rows), err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if strings.TrimLeft(cell, "=+-@\t\r\n＝＋－＠") != cell {
				s.t.Errorf("a spreadsheet takes %q for a formula", cell)
			}
			s.clean("a text", "a cell", cell)
		}
	}
}

// Each record of the log stays one record, and none sets a field that it must not.
func TestInjection_I7_LogRecordsStayWhole(t *testing.T) {
	for name, text := range hostileTexts {
		var b bytes.Buffer
		for _, h := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
			b.Reset()
			slog.New(h).Error("entry", "folder", text, "err", errors.New(text), "state", text)
			if n := strings.Count(b.String(), "\n"); n != 1 || strings.ContainsAny(b.String(), "\x1b\a\r\v\f") {
				t.Errorf("%s: %d lines: %q", name, n, b.String())
			}
		}
		var fields map[string]string
		var message string
		j := newJournalHandler(slog.LevelInfo)
		j.send = func(m string, _ journal.Priority, f map[string]string) error {
			message, fields = m, f
			return nil
		}
		slog.New(j).Error("entry", "folder", text, "err", errors.New(text))
		if strings.ContainsAny(message, "\n\x1b\r\a") || fields["VAULTD_FOLDER"] != text || fields["VAULTD_STATE"] != "" || len(fields) > 5 {
			t.Errorf("%s: %q %q", name, message, fields)
		}
	}
}
