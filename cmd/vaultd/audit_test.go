package main_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// audit makes a report on standard output at noon.
func (s *shelf) audit(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return s.run(noon, append([]string{"audit"}, args...)...)
}

func TestAudit_SaysTheResultInEveryForm(t *testing.T) {
	s := filled(t)
	for _, format := range []string{"html", "csv", "json"} {
		out, errs, code := s.audit("--format", format)
		if code != exitDifferences || !strings.Contains(errs, "NOT COMPLETE: Of 4 folders, 1 is archived and 3 not: 1 on the way, 1 rejected, 1 quarantined.") {
			t.Errorf("%s: exit %d, %s", format, code, errs)
		}
		kit.Check(t, strings.Contains(out, "TEST, NO EVIDENCE") && strings.Contains(errs, "TEST, NO EVIDENCE"),
			"%s: no mark of the test environment", format)
		if !strings.Contains(out, "Müller 4711") || strings.ContainsAny(out, "\x1b\x07") || strings.Contains(out, "canary") {
			t.Errorf("%s:\n%s\nwant out with \"Müller 4711\", not strings.ContainsAny(out, \"\\x1b\\x07\"), out without \"canary\"", format, out)
		}
	}
	out, _, _ := s.audit("--format=csv", "--separator=;", "--state=rejected,archived")
	r := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff")))
	r.Comma = ';'
	rows, err := r.ReadAll()
	kit.Check(t, err == nil && len(rows) == 3, "%v\n%s\nwant no error, len(rows) = 3", err, out)
}

// I26, I32: scripts and timers see from the exit code that a report is not
// complete. The report is written in either case.
func TestAudit_I26_I32_NotCompleteEndsWith4(t *testing.T) {
	reject := func(s *shelf) { s.tell("B", noon, nil, ledger.Refused{Cause: ledger.Cause{Code: "x"}}) }
	away := func(s *shelf) {
		week := noon.AddDate(0, 0, -7)
		kit.Must(t, s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: week, Fault: "not mounted", FaultSince: week}))
	}
	type row struct {
		change func(*shelf)
		args   string
		code   int
		says   string
	}
	kit.Rows(t, map[string]row{
		"Complete":        {func(*shelf) {}, "", exitDone, "COMPLETE AS DROPPED"},
		"Rejected":        {reject, "", exitDifferences, "NOT COMPLETE"},
		"OnTheWay":        {func(s *shelf) { s.tell("B", noon, nil) }, "", exitDifferences, "NOT COMPLETE"},
		"APart":           {reject, "--state=archived", exitDone, "A PART ONLY"},
		"NothingFound":    {reject, "--year=1999", exitDone, "NOTHING FOUND"},
		"NothingIsLooked": {away, "--month=2026-12", exitDifferences, "NOT COMPLETE: Drop acme-in cannot be looked into"},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		s.send("A", noon.Add(-5*time.Hour), "bum-1")
		s.says("A", noon.Add(-4*time.Hour), "bum-1", archive.Successful)
		row.change(s)
		for _, format := range []string{"html", "csv", "json", "xlsx"} {
			file := filepath.Join(t.TempDir(), "report."+format)
			_, errs, code := s.audit(append(strings.Fields(row.args), "-o", file)...)
			if _, err := os.Stat(file); code != row.code || !strings.Contains(errs, row.says) || err != nil {
				t.Errorf("%s: exit %d, %v, %s; want exit %d and %q", format, code, err, errs, row.code, row.says)
			}
		}
	})
}

// A report of --since-last that is not complete is noted: the next one continues
// from it. One of a ledger that contradicts its journal is not.
func TestAudit_I14_I26_SinceLastNotesWhatIsNotComplete(t *testing.T) {
	incomplete := newShelf(t)
	incomplete.tell("B", noon, nil)
	for name, row := range map[string]struct {
		s     *shelf
		notes int
	}{"NotComplete": {incomplete, 1}, "Contradicts": {ofAnotherPast(t), 0}} {
		before := row.s.ledger.Head().N
		_, errs, code := row.s.audit("--since-last", "-o", filepath.Join(t.TempDir(), "report.html"))
		if n := row.s.ledger.Head().N - before; code != exitDifferences || n != uint64(row.notes) {
			t.Errorf("%s: exit %d, %d lines more, %s; want exit %d, %d lines", name, code, n, errs, exitDifferences, row.notes)
		}
	}
}

// A person's act stands in the audit with his name.
func TestAudit_I29_HumanActs(t *testing.T) {
	s := filled(t)
	s.tell("Kern\x1b[2J 6", noon, nil, ledger.Closed{By: ledger.Operator{UID: 0, Reason: archive.Sum([]byte("called them"))}})
	out, _, _ := s.audit("--format=json")
	var all struct {
		ManualActions int
		Acts          []struct {
			Event string
			UID   uint32
		}
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || all.ManualActions != 1 || all.Acts[0].Event != "closed" {
		t.Errorf(`%v %+v, want no error, all.ManualActions = 1, all.Acts[0].Event = "closed"`, err, all)
	}
	page, _, _ := s.audit("--format=html")
	kit.Holds(t, "nobody is named", page, present.UserName(0))
}

func TestAudit_Flags(t *testing.T) {
	s := filled(t)
	dir := t.TempDir()
	const page, table, object = "<!DOCTYPE html>", "\ufeff", "{"
	for name, row := range map[string]struct {
		args string
		file string // the report's; empty: standard output
		want string // how the report begins, or a part of the error
	}{
		"Default":          {"", "", page},
		"ByName":           {"-o", "audit.CSV", table},
		"ByUpperName":      {"-o", "audit.JSON", object},
		"Htm":              {"-o", "x.htm", page},
		"NoEnding":         {"-o", "x", page},
		"Workbook":         {"-o", "x.xlsx", "PK"},
		"FormatWins":       {"--format=JSON -o", "audit.csv", object},
		"FormatOfAnEnding": {"--format=csv -o", "x.txt", table},
		"JSON":             {"--json -o", "audit.html", object},
		"TableInTheMiddle": {"--format=html -o", "x.csv.html", page},
		"TwoFormats":       {"--json --format=csv", "", "not the same"},
		"UnknownFormat":    {"--format=pdf", "", "is no format"},
		"UnknownEnding":    {"-o", "x.txt", "ends in no format"},
		"OldEnding":        {"-o", "x.ods", "ends in no format"},
		"PageAsTable":      {"--format=html -o", "x.csv", "is one of a table"},
		"PageAsWorkbook":   {"--format=html -o", "x.XLSX", "is one of a table"},
		"UnknownState":     {"--state=archved", "", "is no state"},
		"UnknownSeparator": {"--separator=|", "", "is no separator"},
		"UnknownDecimal":   {"--expected=x.csv --decimal=dot", "", "--decimal"},
		"ColumnsOfNothing": {"--columns=number=x", "", "--expected"},
		"ListAndStates":    {"--expected=x.csv --state=archived", "", "cannot go with --state"},
		"NoYear":           {"--year=26", "", "is no year"},
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(row.args)
			if row.file != "" {
				args = append(args, filepath.Join(dir, name+"-"+row.file))
			}
			out, errs, code := s.audit(args...)
			if row.file != "" && code == exitDifferences {
				b, err := os.ReadFile(args[len(args)-1])
				if out = string(b); err != nil {
					t.Error(err)
				}
			}
			isReport := code == exitDifferences && strings.HasPrefix(out, row.want)
			kit.Check(t, isReport || code == exitUsage && strings.Contains(errs, row.want), "exit %d, %s%.100q", code, errs, out)
		})
	}
}

// The same report comes out of the daemon and beside it; the client writes the file, whole or not at all.
func TestAudit_InsideAndBeside(t *testing.T) {
	cfg, path, stop := startDaemon(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.html")
	read := func() string {
		b := kit.Value(os.ReadFile(file))(t)
		return string(b)
	}
	audit := func(more ...string) (string, int) {
		_, errs, code := runHere(append([]string{"--config", path, "audit", "-o", file}, more...)...)
		return errs, code
	}
	if errs, code := audit(); code != exitDifferences || !strings.Contains(errs, "written to "+file) || !strings.HasSuffix(read(), "</html>\n") {
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
	if out, _, code := runHere("--config", path, "audit", "--json"); code != exitDifferences || !json.Valid([]byte(out)) {
		t.Errorf("exit %d, %s", code, out)
	}
	if _, errs, code := frames(t, cfg.StateDir, `{"args":["audit","--output=/tmp/x.html"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "writes no files") {
		t.Errorf("the daemon would write a file: exit %d, %s", code, errs)
	}
	list := filepath.Join(dir, "erp.csv")
	kit.Must(t, os.WriteFile(list, []byte("Beleg;Betrag\nRE 1;"+strings.Repeat(" ", 200_000)+"1,00\n"), 0o600))
	if errs, code := audit("--force", "--expected", list, "--columns", "number=Beleg"); code != exitDifferences || !strings.Contains(errs, "NOT COMPLETE: 1 listed document is not archived.") || !strings.Contains(read(), "erp.csv, SHA-256") {
		t.Errorf("with a list: exit %d, %s", code, errs)
	}
	if errs, code := audit("--force", "--expected", list, "--columns", "number=Nummer"); code != exitData || !strings.Contains(errs, `no column "Nummer"`) || !strings.Contains(errs, `--columns "number=NAME"`) {
		t.Errorf("an unknown column: exit %d, %s", code, errs)
	}
	if _, errs, code := frames(t, cfg.StateDir, `{"args":["audit","--expected=/etc/passwd"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "the daemon reads no files") {
		t.Errorf("the daemon would read a file: exit %d, %s", code, errs)
	}
	stop()
	ended(audit("--force", "--expected", list))(t, "with a list, beside", exitDifferences, "1 listed document is not archived.")
	kit.Must(t, os.Remove(list))
	if errs, code := audit("--force"); code != exitDifferences || !strings.HasSuffix(read(), "</html>\n") {
		t.Errorf("beside: exit %d, %s", code, errs)
	}
	names, err := os.ReadDir(dir)
	kit.Check(t, err == nil && len(names) == 1, "left behind: %v, %v", names, err)
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
		kit.Must(t, json.Unmarshal([]byte(out), &all))
		return all.About.HeadLine
	}
	before := marks()
	if errs, code := audit("-o", dir+"/"); code != exitDifferences {
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
		errs, code := audit(wrong...)
		kit.Check(t, code == exitUsage && marks() == before+1, "%q: exit %d, %s", wrong, code, errs)
	}
	stop()
	if errs, code := audit("-o", names[0], "--force"); code != exitDifferences || marks() != before+2 {
		t.Errorf("beside: exit %d, %s, line %d", code, errs, marks())
	}
	page, err := os.ReadFile(names[0])
	kit.Check(t, err == nil && strings.Contains(string(page), "what was on its way or was taken since the report of "),
		`%v, want no error, page with "what was on its way or was taken since the report of "`, err)
}

// The daemon notes a report for the user for whom it made it, once and up to its
// line, so that a member of access.groups cannot empty the next report.
func TestAudit_I29_NotesItsOwnReportsAlone(t *testing.T) {
	cfg, path, _ := startDaemon(t)
	note := func(line int) (string, int) {
		_, errs, code := frames(t, cfg.StateDir, fmt.Sprintf(`{"args":["audit"],"audit":{"reported":%d}}`, line)+"\n")
		return errs, code
	}
	lines := func() int {
		out, _, _ := runHere("--config", path, "audit", "--json")
		var all struct{ About struct{ HeadLine int } }
		kit.Must(t, json.Unmarshal([]byte(out), &all))
		return all.About.HeadLine
	}
	before := lines()
	ended(note(3))(t, "a note without a report", exitUsage, "no report up to line 3")
	_, errs, code := runHere("--config", path, "audit", "--since-last", "-o", t.TempDir()+"/a.html")
	kit.Want(t, "a report that is noted: exit, "+errs, code, exitDifferences)
	kit.Want(t, "lines of the journal", lines(), before+1)
	ended(note(before))(t, "a note of a report that was noted before", exitUsage)
	refused(frames(t, cfg.StateDir, `{"args":["list"],"audit":{"reported":3}}`+"\n"))(t, "a note in another command", exitUsage)
}

// The same ledger, arguments and time give the same bytes; a time before the ledger's last line, or one that is to come, gives none.
func TestAudit_AsOf(t *testing.T) {
	s := filled(t)
	report := func(asOf string, now time.Time) (string, string, int) {
		return s.run(now, "audit", "--as-of", asOf)
	}
	first, errs, code := report("2026-11-21", noon.AddDate(0, 0, 2))
	if again, _, _ := report("2026-11-21", noon.AddDate(0, 1, 0)); code != exitDifferences || first != again || !strings.Contains(first, "made 21 Nov 2026") {
		t.Errorf("exit %d, %s", code, errs)
	}
	for asOf, want := range map[string]string{"2026-11-19": "before the journal's last line", "2027-01-01": "is not over yet", "yesterday": "is no time"} {
		out, errs, code := report(asOf, noon.AddDate(0, 0, 2))
		kit.Check(t, code == exitUsage && strings.Contains(errs, want) && out == "", "%s: exit %d, %s", asOf, code, errs)
	}
}

// A report about differences is kept, and says so by its exit code; one that broke off leaves nothing.
func TestAudit_DifferencesAndFailures(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.html")
	broken := filled(t)
	broken.damage("the answer named")
	out, errs, code := broken.audit("--json")
	kit.Check(t, code != exitDone && !json.Valid([]byte(out)), "a damaged ledger: exit %d, %s", code, errs)
	_, errs, code = broken.audit("-o", file)
	kit.Check(t, code != exitDone, "a damaged ledger: exit %d, %s", code, errs)
	kit.Len(t, "a report that broke off leaves", kit.Value(os.ReadDir(dir))(t), 0)
	differs := ofAnotherPast(t)
	_, errs, code = differs.audit("-o", file)
	kit.Check(t, code == exitDifferences, "a ledger of another past: exit %d, %s", code, errs)
	if b, err := os.ReadFile(file); err != nil || !strings.HasSuffix(string(b), "</html>\n") {
		t.Errorf("%q, %v, want no error, b that ends with \"</html>\\n\"", b, err)
	}
	kit.Len(t, "left behind", kit.Value(os.ReadDir(dir))(t), 1)
}

// Only a regular file is accepted as a list: a named pipe may stay silent
// permanently.
func TestAudit_I23_AListThatIsNoFile(t *testing.T) {
	s := newShelf(t)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "list.csv")
	kit.Must(t, unix.Mkfifo(fifo, 0o600))
	link := filepath.Join(dir, "link.csv")
	kit.Must(t, os.Symlink(fifo, link))
	for path, want := range map[string]string{fifo: "is a pipe", link: "is a pipe", dir: "is a folder", "/dev/zero": "is a device"} {
		if _, errs, code := s.audit("--expected", path); code != exitData || !strings.Contains(errs, want) || !strings.Contains(errs, "--expected -") {
			t.Errorf("%s: exit %d, %s", path, code, errs)
		}
	}
}

// The output of another program comes by standard input, and gives the same
// list.
func TestAudit_AListFromStandardInput(t *testing.T) {
	const text = "Belegnummer;Betrag\nRE 1;1,00\n"
	s := filled(t)
	file := filepath.Join(t.TempDir(), "standard input")
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	want, errs, code := s.audit("--json", "--whole", "--expected", file)
	kit.Need(t, code == exitDifferences && strings.Contains(errs, "1 listed document is not archived"),
		"exit %d: %s", code, errs)
	s.stdin = text
	got, errs, code := s.audit("--json", "--whole", "--expected", "-")
	kit.Check(t, code == exitDifferences && got == want, "exit %d: %s\n%s\n%s", code, errs, got, want)
}

// A page links to a receipt only where whoever opens the page there sees the receipt, too, on this machine and over a share.
func TestAudit_LinksThatWork(t *testing.T) {
	top := t.TempDir()
	s := newShelf(t)
	s.edit("/srv/invoices/acme-in, vault: V-1}", top+"/invoices/acme-in, vault: V-1}\n  - {name: beta-in, path: "+top+"/other/beta-in, vault: V-1}")
	for _, dir := range []string{"invoices/acme-in/_archived", "invoices/acme-in-2", "other/beta-in", "anna"} {
		kit.Must(t, os.MkdirAll(filepath.Join(top, dir), 0o700))
	}
	const kept = "_archived/2026-11/"
	for i, folder := range []string{"Müller 4711", `a#b?c%d"e`, "a#b%d&'e", "javascript:x", "Otto. ", "a\xff", "a\u202eb"} {
		remote := archive.RemoteID(fmt.Sprint("bum-", i))
		s.send(folder, noon.Add(-5*time.Hour), remote)
		s.says(folder, noon.Add(-4*time.Hour), remote, archive.Successful)
		s.tell(folder, noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: kept + folder}, ledger.Placed{})
	}
	good := []string{kept + "M%C3%BCller%204711/_RECEIPT.txt", kept + "a%23b%25d&amp;%27e/_RECEIPT.txt"}
	for beside, prefix := range map[string]string{
		"invoices/acme-in": "./", "invoices/acme-in/_archived": "../", "invoices": "./acme-in/", "other": "", "other/beta-in": "", "anna": "", "invoices/acme-in-2": "",
	} {
		page := filepath.Join(top, beside, "audit.html")
		_, errs, code := s.audit("-o", page)
		kit.Need(t, code == exitDifferences, "exit %d: %s", code, errs)
		b := kit.Value(os.ReadFile(page))(t)
		var got, want []string
		for _, m := range regexp.MustCompile(`href="([^"]*_RECEIPT[^"]*)"`).FindAllStringSubmatch(string(b), -1) {
			got = append(got, m[1])
		}
		for _, link := range good {
			if prefix != "" {
				want = append(want, prefix+link)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		kit.Want(t, "from "+beside+": links", got, want)
	}
	out, _, _ := s.audit()
	kit.Check(t, !strings.Contains(out, "_RECEIPT.txt\""), "links though nobody knows where the page will lie")
}
