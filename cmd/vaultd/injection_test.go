package main_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
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
		out, _, code := s.say("hold", s.keys[folder].String(), "--reason", text+"x")
		s.clean(name, "hold", out)
		kit.Want(s.t, "hold "+name+": exit", code, exitDone)
	}
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
	asks := [][]string{{"list"}, {"status"}, {"verify"}, {"find", "--limit=0", "FORGED"}}
	for name, key := range s.keys {
		for _, command := range []string{"show", "why", "receipt", "fetch"} {
			asks = append(asks, []string{command, key.String()})
		}
		// The refusals name the folder.
		asks = append(asks, []string{"retry", "--reason=x", "--", name}, []string{"show", "--", name + "?"})
	}
	for _, args := range asks {
		where := fmt.Sprintf("%q", args)
		out, errs, _ := s.say(args...)
		s.clean("a text", where, out)
		s.clean("a text", where+" (stderr)", errs)
		out, errs, _ = s.say(append([]string{"--json"}, args...)...)
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
		text, errs, code := s.audit("--separator=;", "--format", format)
		kit.Check(s.t, code == exitDifferences, "audit %s: exit %d, %s", format, code, errs)
		switch format {
		case "html":
			for _, bad := range []string{"<script", "<img", "<b>FORGED", `href="javascript`} {
				kit.Lacks(s.t, fmt.Sprintf("the page holds %s", bad), strings.ToLower(text), strings.ToLower(bad))
			}
			s.clean("a text", "the page", text)
		case "csv":
			s.tableIsClean(text)
		default:
			kit.Check(s.t, json.Valid([]byte(text)), "the audit is no JSON")
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
			kit.Want(s.t, "a spreadsheet takes", strings.TrimLeft(cell, "=+-@\t\r\n＝＋－＠"), cell)
			s.clean("a text", "a cell", cell)
		}
	}
}
