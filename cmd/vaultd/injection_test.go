package main_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
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
	kit.Check(s.t, err == nil && len(rows) >= len(hostileTexts), "csv: %v %v", len(rows), err)
	for _, row := range rows {
		for _, cell := range row {
			kit.Want(s.t, "a spreadsheet takes", strings.TrimLeft(cell, "=+-@\t\r\n＝＋－＠"), cell)
			s.clean("a text", "a cell", cell)
		}
	}
}

// bounded looks at what the daemon holds.
func (y *yard) bounded() {
	y.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", y.daemon.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	y.must(err)
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if kb, err := strconv.Atoi(string(peak[1])); err != nil || kb > 300_000 {
		y.t.Errorf("at its peak %d kB of memory, %v", kb, err)
	} else {
		y.t.Logf("at its peak %d MB of memory", kb/1000)
	}
	open, err := os.ReadDir(proc + "fd")
	kit.Check(y.t, err == nil && len(open) <= 120, "%d descriptors open, %v", len(open), err)
	used := y.census(filepath.Join(y.dir, "state", "spool"))
	kit.Check(y.t, strings.Count(used, "\n") <= 20, "left in the spool: %s", used)
}

// outputs looks at everything that people and programs read.
func (y *yard) outputs() {
	y.t.Helper()
	for _, args := range [][]string{{"status"}, {"list", "--limit", "0"}, {"list", "--json"}, {"audit", "--format", "html"}, {"audit", "--format", "json"},
		{"audit", "--format", "csv"}, {"audit", "--format", "csv", "--separator", ";"}, {"find", "Gut"}} {
		var stdout, stderr bytes.Buffer
		code := program.Run(y.t.Context(), y.line(args), strings.NewReader(""), &stdout, &stderr, os.LookupEnv)
		out := stdout.String()
		want := map[string]int{"status": exitPerson, "audit": exitDifferences}[args[0]]
		kit.Check(y.t, code == want, "%v: exit %d: %s: %s", args, code, stderr.String(), tail(out, 500))
		y.harmless(strings.Join(args, " "), out, slices.Contains(args, "html"))
		if slices.Contains(args, "csv") {
			y.sheet(out, args[len(args)-1] == ";")
		}
	}
	for _, page := range []string{"/", "/metrics"} {
		resp, err := http.Get(y.base + page)
		y.must(err)
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		y.must(err)
		resp.Body.Close()
		y.harmless(page, body.String(), true)
	}
	out, _ := y.vaultd("list", "--json")
	n := 0
	for line := range strings.Lines(out) {
		var e struct{ Key, Folder string }
		y.must(json.Unmarshal([]byte(line), &e))
		if n++; n%30 != 0 && steers(e.Folder) == "" {
			continue // a few of them are enough
		}
		for _, command := range []string{"show", "why"} {
			out, _ := y.vaultd(command, e.Key)
			y.harmless(command+" "+e.Key, out, false)
		}
	}
}

func (y *yard) harmless(what, out string, html bool) {
	y.t.Helper()
	bad := steers(out)
	kit.Check(y.t, bad == "", "%s holds %s", what, bad)
	for _, tag := range []string{"<script>alert", "<img src=x"} {
		kit.Check(y.t, !html || !strings.Contains(out, tag), "%s holds %q", what, tag)
	}
	kit.Lacks(y.t, fmt.Sprintf("%s: %s", what, tail(out, 500)), out, secretOutside, "panic")
}

// sheet looks for cells that a spreadsheet would take for a formula.
func (y *yard) sheet(out string, semicolon bool) {
	y.t.Helper()
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff")))
	if semicolon {
		r.Comma = ';'
	}
	all, err := r.ReadAll()
	if err != nil {
		y.t.Errorf("csv: %v", err)
		return
	}
	number := regexp.MustCompile(`^-?[0-9.]+$`)
	for _, row := range all {
		for _, cell := range row {
			kit.Check(y.t, cell == "" || !strings.ContainsRune("=+-@\t\r", rune(cell[0])) || number.MatchString(cell),
				"csv: a cell %q", cell)
		}
	}
}

// census is all that lies below a path, with its content.
func (y *yard) census(top string) string {
	y.t.Helper()
	var b strings.Builder
	y.must(filepath.WalkDir(top, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() && info.Size() < 1000 {
			content, err = os.ReadFile(p)
		}
		fmt.Fprintf(&b, "%s %s %s %q\n", strings.TrimPrefix(p, top), info.Mode(), info.ModTime(), content)
		return err
	}))
	return b.String()
}

// file adds one of this name to an invoice.
func file(names ...string) func(y *yard, at string) {
	return spoilt(func(y *yard, at string) {
		for i, name := range names {
			y.must(os.WriteFile(at+"/"+name, fmt.Append(nil, "x", i), 0o660))
			y.give(at + "/" + name)
		}
	})
}

func plain(y *yard, at string) { y.invoice(at) }

func hostileNames() []hostile {
	const rename = "Rename it"
	rows := []hostile{
		{name: "FileNewline", make: file("a\nb.pdf"), want: returns, says: []string{"line break", rename}},
		{name: "FileEscape", make: file("a\x1b[2J.pdf"), want: returns, says: []string{"control character", rename}},
		{name: "FileRTL", make: file("rechnung\u202efdp.exe"), want: returns, says: []string{"turns the reading direction", rename}},
		{name: "FileInvalid", make: file("a\xff\xfe.pdf"), want: returns, says: []string{"UTF-8", rename}},
		{name: "FileBackslash", make: file(`..\..\x.pdf`), want: returns, says: []string{"backslash", rename}},
		{name: "FileCaseTwins", make: file("Anlage.pdf", "ANLAGE.PDF"), want: returns, says: []string{"same name as"}},
		{name: "FileUnicodeTwins", make: file("M\u00fcller.pdf", "Mu\u0308ller.pdf"), want: returns, says: []string{"the way accents are stored"}},
		{name: "FileDotTwins", make: file("anlage.pdf", "anlage.pdf."), want: returns, says: []string{"same name as"}},
		{name: "FileSpaceTwins", make: file("anlage.pdf", "anlage.pdf "), want: returns, says: []string{"same name as"}},
		{name: "FileNFD", make: file("Mu\u0308ller.pdf"), want: archives, says: []string{"M\u00fcller.pdf"}},
		{name: "FileDashes", make: file("-rf", "--", "...", "..x", "=cmd|'calc'!A0", `"quoted".pdf`, "'", "%s%n", "$(reboot)", "`reboot`", "<script>alert(1)<script"), want: archives},
		{name: "FileCON", make: file("CON", "aux.pdf", "LPT1.txt", "COM¹"), want: archives},
		{name: "FileLongest", make: file(strings.Repeat("x", 251)+".pdf", strings.Repeat("ü", 127)), want: archives},
		{name: "FileSpace", make: file(" ", "a ", " a", "a."), want: returns, says: []string{"same name as"}},
		{name: "FileLikeOurs", make: file("_STATUS.txt", ".lock", "drop.json"), want: archives},
		{name: "SubfolderTwins", make: spoilt(func(y *yard, at string) { y.write(at+"/A/x.pdf", "1"); y.write(at+"/a/y.pdf", "2") }), want: returns, says: []string{"same name as"}},
		{name: "SubfolderVaultd", make: spoilt(func(y *yard, at string) {
			y.write(at+"/.vaultd/claimed/x.pdf", "1")
			y.write(at+"/_rejected/x.pdf", "2")
		}), want: archives},
		{name: "FolderReason", make: spoilt(func(y *yard, at string) { y.write(at+"/_REASON.txt/x", "1") }), want: archives, says: []string{"_REASON.txt/x"}},
		{name: "FolderThumbs", make: spoilt(func(y *yard, at string) { y.write(at+"/Thumbs.db/x.pdf", "1") }), want: archives, says: []string{"Thumbs.db/x.pdf"}},
		{name: "FolderReceipt", make: spoilt(func(y *yard, at string) { y.write(at+"/_RECEIPT.json/x", "1") }), want: returns, says: []string{"_RECEIPT.json is a folder", rename}},
		{name: "ReservedArchived", folder: "_ARCHIVED", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "ReservedRejected", folder: "_Rejected", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "ReservedVaultd", folder: ".VAULTD", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "ReservedTemplate", folder: "_TEMPLATE", make: plain, want: waits, says: []string{"uses this name itself", "rename the folder"}},
		{name: "JunkFolder", folder: "._Huber 88", make: plain, want: archives},
		{name: "JunkFolder2", folder: "desktop.ini", make: plain, want: archives},
		{name: "SynologyFolder", folder: "@eaDir", make: func(y *yard, at string) { y.folder(at) }, want: ignored},
		{name: "TemporaryFolder", folder: "Export.part", make: plain, want: waits, says: []string{"Export.part"}},
		{name: "LooseFile", make: func(y *yard, at string) { y.write(at, "x") }, want: waits, says: []string{"loose file", "put it in a folder"}},
		{name: "LooseLink", make: func(y *yard, at string) { y.must(os.Symlink(y.outside+"/folder", at)) }, want: waits, says: []string{"a link: copy the folder itself here, delete the link"}},
		{name: "LooseFIFO", make: func(y *yard, at string) { y.must(syscall.Mkfifo(at, 0o660)) }, want: waits, says: []string{"loose file"}},
	}
	for _, folder := range []string{"a\nb\rc", "\x1b[2J\x1b]0;pwned\a", "Huber\u202e88", "\xff\xfe\xfd", "...", "..Huber", `C:\Windows\x`, "CON", "Huber.", "Huber ", " Huber", "HUBER 88", "Huber 88",
		"M\u00fcller 4711", "Mu\u0308ller 4711", "-rf", "--config", "=cmd|'calc'!A0", "@SUM(1)", "+1", "\"', <b>", "<script>alert(1)<script", "<img src=x onerror=alert(1)>", "{{.Key}}", "%s%n%!", "$(reboot)",
		strings.Repeat("L", 255), strings.Repeat("ü", 127), "\u200bzero", "\u2028line", "\u009b2J\u009d0;x\u009c", "a\tb", "💶 1", "İstanbul", "ﬀ", "claimed", "lock", "drop.json", ".done", "~Huber", "metadata.json"} {
		rows = append(rows, hostile{name: fmt.Sprintf("Named %.30q", folder), folder: folder, make: plain, want: archives})
	}
	return rows
}
