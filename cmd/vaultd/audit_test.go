package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

func (s *shelf) audit(t *testing.T, f auditFlags) (stdout, stderr string, code int) {
	t.Helper()
	if err := f.completeFlags(false); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	_, stderr, code = say(t, false, func(a *app) error { return a.auditInto(t.Context(), s.view, f, &b) })
	return b.String(), stderr, code
}

func TestAudit_SaysTheResultInEveryForm(t *testing.T) {
	s := filled(t)
	for _, format := range []string{"html", "csv", "json"} {
		out, errs, code := s.audit(t, auditFlags{format: format, separator: ","})
		if code != exitDone || !strings.Contains(errs, "NOT COMPLETE: Of 4 folders, 1 is archived and 3 not: 1 on the way, 1 rejected, 1 quarantined.") {
			t.Errorf("%s: exit %d, %s", format, code, errs)
		}
		if !strings.Contains(out, "TEST, NO EVIDENCE") || !strings.Contains(errs, "TEST, NO EVIDENCE") {
			t.Errorf("%s: no mark of the test environment", format)
		}
		if !strings.Contains(out, "Müller 4711") || strings.ContainsAny(out, "\x1b\x07") || strings.Contains(out, "canary") {
			t.Errorf("%s:\n%s", format, out)
		}
	}
	out, _, _ := s.audit(t, auditFlags{format: "csv", separator: ";", states: "rejected,archived"})
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff")))
	r.Comma = ';'
	if rows, err := r.ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// A person's act stands in the audit with his name.
func TestAudit_I29_HumanActs(t *testing.T) {
	s := filled(t)
	s.tell("Kern\x1b[2J 6", noon, nil, ledger.Closed{By: ledger.Operator{UID: 0, Reason: archive.Sum([]byte("called them"))}})
	out, _, _ := s.audit(t, auditFlags{format: "json", separator: ","})
	var all struct {
		HumanActs int
		Acts      []struct {
			Event string
			UID   uint32
		}
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || all.HumanActs != 1 || all.Acts[0].Event != "closed" {
		t.Errorf("%v %+v", err, all)
	}
	page, _, _ := s.audit(t, auditFlags{format: "html", separator: ","})
	if !strings.Contains(page, present.UserName(0)) {
		t.Error("nobody is named")
	}
}

func TestAudit_Flags(t *testing.T) {
	for name, row := range map[string]struct {
		flags auditFlags
		json  bool
		want  string // the format, or a part of the error
	}{
		"Default":          {auditFlags{separator: ","}, false, "html"},
		"ByName":           {auditFlags{separator: ",", output: "x/audit.CSV"}, false, "csv"},
		"FormatWins":       {auditFlags{separator: ",", output: "audit.csv", format: "JSON"}, false, "json"},
		"JSON":             {auditFlags{separator: ",", output: "audit.html"}, true, "json"},
		"TwoFormats":       {auditFlags{separator: ",", format: "csv"}, true, "not the same"},
		"UnknownFormat":    {auditFlags{separator: ",", format: "pdf"}, false, "is no format"},
		"UnknownState":     {auditFlags{separator: ",", states: "archved"}, false, "is no state"},
		"UnknownSeparator": {auditFlags{separator: "|"}, false, "is no separator"},
		"UnknownDecimal":   {auditFlags{separator: ",", expected: "x.csv", decimal: "dot"}, false, "--decimal"},
		"ColumnsOfNothing": {auditFlags{separator: ",", columns: "number=x"}, false, "--expected"},
		"ListAndStates":    {auditFlags{separator: ",", expected: "x.csv", states: "archived"}, false, "cannot go with --state"},
		"NoYear":           {auditFlags{separator: ",", year: 26}, false, "is no year"},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.flags.completeFlags(row.json)
			got := row.flags.format
			if err != nil {
				got = err.Error()
				if code, _ := exitCodeOf(err); code != exitUsage {
					t.Errorf("exit %d", code)
				}
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// The same report comes out of the daemon and beside it; the client writes the file, whole or not at all.
func TestAudit_InsideAndBeside(t *testing.T) {
	cfg, path, stop := startDaemon(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.html")
	read := func() string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	audit := func(more ...string) (string, int) {
		_, errs, code := runHere(append([]string{"--config", path, "audit", "-o", file}, more...)...)
		return errs, code
	}
	if errs, code := audit(); code != exitDone || !strings.Contains(errs, "written to "+file) || !strings.HasSuffix(read(), "</html>\n") {
		t.Fatalf("exit %d, %s", code, errs)
	}
	inside := read()
	if errs, code := audit("--year", "1999"); code != exitCreate || !strings.Contains(errs, "is there already") || read() != inside {
		t.Errorf("exit %d, %s", code, errs)
	}
	if errs, code := audit("--force", "--state", "archved"); code != exitUsage || read() != inside {
		t.Errorf("exit %d, %s", code, errs)
	}
	if errs, code := audit("--force", "--drop", "beta-in"); code != exitDone || !strings.Contains(errs, "NOTHING FOUND") || read() == inside {
		t.Errorf("exit %d, %s", code, errs)
	}
	if out, _, code := runHere("--config", path, "audit", "--json"); code != exitDone || !json.Valid([]byte(out)) {
		t.Errorf("exit %d, %s", code, out)
	}
	if _, errs, code := frames(t, socketPath(cfg), `{"args":["audit","--output=/tmp/x.html"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "writes no files") {
		t.Errorf("the daemon would write a file: exit %d, %s", code, errs)
	}
	list := filepath.Join(dir, "erp.csv")
	if err := os.WriteFile(list, []byte("Beleg;Betrag\nRE 1;"+strings.Repeat(" ", 200_000)+"1,00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if errs, code := audit("--force", "--expected", list, "--columns", "number=Beleg"); code != exitDone || !strings.Contains(errs, "NOT COMPLETE: 1 listed document is not archived.") || !strings.Contains(read(), "erp.csv, SHA-256") {
		t.Errorf("with a list: exit %d, %s", code, errs)
	}
	if errs, code := audit("--force", "--expected", list, "--columns", "number=Nummer"); code != exitData || !strings.Contains(errs, `no column "Nummer"`) || !strings.Contains(errs, `--columns "number=NAME"`) {
		t.Errorf("an unknown column: exit %d, %s", code, errs)
	}
	if _, errs, code := frames(t, socketPath(cfg), `{"args":["audit","--expected=/etc/passwd"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "the daemon reads no files") {
		t.Errorf("the daemon would read a file: exit %d, %s", code, errs)
	}
	stop()
	if errs, code := audit("--force", "--expected", list); code != exitDone || !strings.Contains(errs, "1 listed document is not archived.") {
		t.Errorf("with a list, beside: exit %d, %s", code, errs)
	}
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	if errs, code := audit("--force"); code != exitDone || !strings.HasSuffix(read(), "</html>\n") {
		t.Errorf("beside: exit %d, %s", code, errs)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

// A monthly report goes on from the last one that was written, through the daemon and beside it, and is named by its day in a folder.
func TestAudit_SinceLast(t *testing.T) {
	_, path, stop := startDaemon(t)
	dir := t.TempDir()
	audit := func(more ...string) (string, int) {
		_, errs, code := runHere(append([]string{"--config", path, "audit", "--since-last"}, more...)...)
		return errs, code
	}
	marks := func() int {
		out, _, _ := runHere("--config", path, "audit", "--json")
		var all struct{ About struct{ HeadLine int } }
		if err := json.Unmarshal([]byte(out), &all); err != nil {
			t.Fatal(err)
		}
		return all.About.HeadLine
	}
	before := marks()
	if errs, code := audit("-o", dir+"/"); code != exitDone {
		t.Fatalf("exit %d, %s", code, errs)
	}
	names, err := filepath.Glob(dir + "/report-20??-??-??.html")
	if err != nil || len(names) != 1 || marks() != before+1 {
		t.Fatalf("%v, %v, line %d after %d", names, err, marks(), before)
	}
	if errs, code := audit("-o", names[0]); code != exitCreate || marks() != before+1 {
		t.Errorf("the name is taken: exit %d, %s, line %d", code, errs, marks())
	}
	for _, wrong := range [][]string{{}, {"-o", "-"}, {"-o", dir + "/x.csv"}, {"-o", dir + "/x.html", "--year", "2026"}} {
		if errs, code := audit(wrong...); code != exitUsage || marks() != before+1 {
			t.Errorf("%q: exit %d, %s", wrong, code, errs)
		}
	}
	stop()
	if errs, code := audit("-o", names[0], "--force"); code != exitDone || marks() != before+2 {
		t.Errorf("beside: exit %d, %s, line %d", code, errs, marks())
	}
	page, err := os.ReadFile(names[0])
	if err != nil || !strings.Contains(string(page), "what was on its way or was taken since the report of ") {
		t.Errorf("%v", err)
	}
}

// The same ledger, arguments and time give the same bytes; a time before the ledger's last line, or one that is to come, gives none.
func TestAudit_AsOf(t *testing.T) {
	s := filled(t)
	report := func(asOf string, now time.Time) (string, string, int) {
		s.view.Now = now
		return s.audit(t, auditFlags{format: "html", separator: ",", asOf: asOf})
	}
	first, errs, code := report("2026-11-21", noon.AddDate(0, 0, 2))
	if again, _, _ := report("2026-11-21", noon.AddDate(0, 1, 0)); code != exitDone || first != again || !strings.Contains(first, "made 21 Nov 2026") {
		t.Errorf("exit %d, %s", code, errs)
	}
	for asOf, want := range map[string]string{"2026-11-19": "before the journal's last line", "2027-01-01": "is not over yet", "yesterday": "is no time"} {
		if out, errs, code := report(asOf, noon.AddDate(0, 0, 2)); code != exitUsage || !strings.Contains(errs, want) || out != "" {
			t.Errorf("%s: exit %d, %s", asOf, code, errs)
		}
	}
}

// A report about differences is kept, and says so by its exit code; one that broke off leaves nothing.
func TestAudit_DifferencesAndFailures(t *testing.T) {
	s := filled(t)
	out, errs, code := (&shelf{view: s.damaged("the answer named"), t: t}).audit(t, auditFlags{format: "json", separator: ","})
	if code == exitDone || json.Valid([]byte(out)) {
		t.Errorf("a damaged ledger: exit %d, %s", code, errs)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "a.html")
	a := &app{stdout: &strings.Builder{}, stderr: &strings.Builder{}, env: noEnv}
	differs := fail(exitDifferences, context.Canceled, "")
	for name, row := range map[string]struct {
		err  error
		kept bool
	}{"Differs": {differs, true}, "BrokeOff": {context.Canceled, false}} {
		err := a.auditFile(auditFlags{output: file, force: true}, func(w io.Writer) error {
			_, werr := w.Write([]byte(name))
			if werr != nil {
				t.Error(werr)
			}
			return row.err
		})
		b, readErr := os.ReadFile(file)
		if err == nil || (string(b) == name) != row.kept {
			t.Errorf("%s: %v, %q, %v", name, err, b, readErr)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 && row.kept {
			t.Errorf("left behind: %v", names)
		}
		if row.kept {
			os.Remove(file) //nolint:errcheck // the next row tells
		}
	}
}
