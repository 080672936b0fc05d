package main_test

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/catalog"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// People find what was archived while vaultd runs, while it is stopped, and after it was killed, with the same answer. A command that
// they run meanwhile leaves no file behind, whoever runs it, and the next start goes on.
func TestCatalog_I27_RunningStoppedAndKilled(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	s.fill(20, 1)
	p := s.start("run")
	ask := func(when string) {
		t.Helper()
		before := s.stateFiles()
		for _, words := range [][]string{{"rechnung", "0007"}, {"R-7"}, {"0007"}} {
			if out, code := s.vaultd(append([]string{"find"}, words...)...); code != 0 || strings.Count(out, "Rechnung 0007") < 1 || strings.Contains(out, "0008") {
				t.Errorf("%s: find %v: exit %d: %s", when, words, code, out)
			}
		}
		out, code := s.vaultd("list", "--state", "archived,rejected", "--since", "1h", "--limit", "0")
		kit.Check(t, code == 0 && strings.Count(out, "Rechnung") >= 20, "%s: list: exit %d: %s", when, code, out)
		kit.Holds(t, when+": show: exit", s.must(0, "show", "rechnung 0007"), "Rechnung 0007")
		after := s.stateFiles()
		added := slices.DeleteFunc(after, func(name string) bool { return slices.Contains(before, name) })
		kit.Check(t, len(added) == 0, "%s: the commands leave %v", when, added)
	}
	kit.Await(t, "all documents in the archive", func() bool {
		out, _ := s.vaultd("list", "--state", "archived", "--limit", "0")
		return strings.Count(out, "Rechnung") >= 20
	})
	ask("running")
	if out, code := s.vaultd("doctor", "--json"); !strings.Contains(out, `"what":"catalog","name":"","result":"OK"`) {
		t.Errorf("doctor: exit %d: %s", code, out)
	}
	p.stop(t)
	if files := s.stateFiles(); !slices.Contains(files, "catalog.db") || slices.Contains(files, "catalog.db-wal") || slices.Contains(files, "catalog.db-shm") {
		t.Errorf("a clean end leaves %v", files)
	}
	ask("stopped")
	p = s.spawn("run")
	kit.Await(t, "the socket", func() bool {
		_, code := s.vaultd("status")
		return code != exitTemporary && strings.Contains(p.out.String(), "vaultd started")
	})
	s.drop("acme", "Rechnung 9999", map[string][]byte{"scan.bin": []byte("x")}, map[string]any{"documentType": "Invoice", "documentId": "R-9999", "documentDate": "2026-10-31"})
	kit.Await(t, "the new folder", func() bool { out, _ := s.vaultd("find", "R-9999"); return strings.Contains(out, "archived 20") })
	p.kill(t)
	ask("killed")
	kit.Holds(t, "killed: exit", s.must(0, "find", "9999"), "Rechnung 9999")
	p = s.start("run")
	kit.Await(t, "the catalog after the kill", func() bool { out, _ := s.vaultd("doctor"); return strings.Contains(out, "OK    catalog") })
	ask("after the kill")
	kit.Lacks(t, "a kill costs the catalog", p.out.String(), "the catalog is made anew")
}

// stateFiles lists what lies in the state directory.
func (s *site) stateFiles() (names []string) {
	s.t.Helper()
	es := kit.Value(os.ReadDir(filepath.Join(s.dir, "state")))(s.t)
	for _, e := range es {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), "catalog.db") && info.Mode() != 0o600 {
			s.t.Errorf("%s is %v", e.Name(), info.Mode())
		}
		if !strings.HasSuffix(e.Name(), ".tmp") && e.Name() != "ledger.opening" { // which the running daemon writes for a moment
			names = append(names, e.Name())
		}
	}
	return names
}

// An answer that may lack documents gives those that it has, says so and ends with 75. What the ledger alone can answer is complete.
func TestCatalog_I32_AnswersThatMayLackDocuments(t *testing.T) {
	s := newShelf(t)
	s.forDaemon()
	s.edit("drops:", "spool: {min_free: 9000TB}\ndrops:") // the catalog does not grow
	key := s.tell("Rechnung-0815", noon, nil).Key.String()
	stop := s.daemon()
	awaitCatalog(t, s.config)
	say := func(args ...string) (out, errs string, code int) {
		return runHere(append([]string{args[0], "--config", s.config}, args[1:]...)...)
	}
	out, errs, code := say("hold", key)
	kit.Need(t, code == exitDone, "hold: exit %d: %s%s", code, out, errs)
	for _, when := range []string{"running", "stopped"} {
		for line, want := range map[string]int{
			"find rechnung": exitTemporary, "find " + key: exitTemporary, "show 0815": exitFailed, "show rechnung-0815": exitDone, "list --drop acme-in": exitTemporary, "list --drop acme-in --json": exitTemporary,
			"list": exitDone, "show " + key: exitDone,
		} {
			out, errs, code := say(strings.Fields(line)...)
			kit.Check(t, code == want && strings.Contains(errs, "the answer is not complete: ") == (want == exitTemporary), "%s: %s: exit %d, want %d: %s", when, line, code, want, errs)
			kit.Check(t, strings.Contains(out, "Rechnung-0815") == (line != "show 0815"), "%s: %s: %s", when, line, out)
		}
		if when == "running" {
			stop()
		}
	}
}

// A catalog whose counts differ from the balance is told by verify and by audit, as what it is: no difference in the ledger, and nothing
// that changes the report.
func TestCatalog_I32_CountsAgainstTheBalance(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.makeCatalog()
	ask := func() (verify, object, page, audit string) {
		t.Helper()
		verify, errs, code := s.say("verify", "--whole")
		kit.Check(t, code == exitDone, "verify: exit %d: %s", code, errs)
		object, _, _ = s.say("verify", "--whole", "--json")
		page, audit, code = s.audit("--json", "--whole")
		kit.Check(t, code == exitDifferences && strings.Contains(audit, "NOT COMPLETE"),
			"audit: exit %d: %s", code, audit)
		return verify, object, page, audit
	}
	verify, object, page, audit := ask()
	if strings.Contains(verify, "CATALOG") || !strings.Contains(object, `"catalogDiffers":"","catalogNotCompared":""`) || strings.Contains(audit, "catalog") {
		t.Errorf("nothing differs:\n%s\n%s\n%s", verify, object, audit)
	}
	db := kit.Value(sql.Open("sqlite", filepath.Join(s.cfg.StateDir, catalog.FileName)))(t)
	kit.Value(db.Exec("DELETE FROM document WHERE id = 2"))(t)
	kit.Must(t, db.Close())
	const differs = "its rows (seen 3 = archived 1 + delivered 0 + rejected 0 + quarantined 1 + duplicate 0 + open 1  agrees) are not those of the ledger (seen 4 = "
	verify, object, same, audit := ask()
	if !strings.Contains(verify, "CATALOG   does not count as the ledger does: "+differs) || !strings.Contains(verify, "vaultd makes it anew when it starts. Audit and verify do not rest on it\n") ||
		!strings.Contains(verify, "RESULT    nothing differs") || !strings.Contains(object, `"catalogDiffers":"`+differs) {
		t.Errorf("verify:\n%s\n%s", verify, object)
	}
	kit.Check(t, strings.Contains(audit, "the catalog does not count as the ledger does: "+differs) && same == page,
		"audit, page the same: %v\n%s", same == page, audit)
	kit.Must(t, os.Remove(filepath.Join(s.cfg.StateDir, catalog.FileName)))
	if verify, _, _, audit = ask(); !strings.Contains(verify, "CATALOG   its counts were not compared: the catalog is not complete: there is none; vaultd makes it when it starts\n") || strings.Contains(audit, "catalog") {
		t.Errorf("there is none:\n%s\n%s", verify, audit)
	}
}

// makeCatalog makes the catalog of the shelf's ledger.
func (s *shelf) makeCatalog() {
	s.t.Helper()
	c := catalog.New(catalog.Config{StateDir: s.cfg.StateDir, Ledger: s.ledger.Ledger, Location: s.cfg.Location, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	kit.Await(s.t, "the catalog", func() bool { return c.Status().Describe() == "" })
	stop()
	<-done
}

// shelfIndex is an index of n documents, two a day, which says that there are found. Its pages have 1000 documents, and the last
// one names a next page or not.
type shelfIndex struct {
	n, found int
	names    bool   // the last page names a next one, which is empty
	last     func() // before the last page
}

func (x shelfIndex) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, size := 0, 0
	if cursor := r.FormValue("cursor"); cursor != vaultapi.FirstPage {
		fmt.Sscan(cursor, &from)
	}
	fmt.Sscan(r.FormValue("size"), &size)
	if x.last != nil && from+size >= x.n {
		x.last()
	}
	fmt.Fprint(w, `{"documents":[`)
	for i := from; i < min(from+size, x.n); i++ {
		kind, day, comma := "Invoice", indexBegins.Add(time.Duration(i)*12*time.Hour).Format(time.RFC3339), ","
		if i%4 == 3 {
			kind = "CreditNote"
		}
		if i == 5 {
			day = ""
		}
		if i == from {
			comma = ""
		}
		fmt.Fprintf(w, `%s{"bumid":"bum-%d","archiveId":"%d","archiveDate":%q,"documentType":%q,"documentId":"=cmd()","senderIds":["DE1","@x"],"amount":"-1.50"}`, comma, i, i, day, kind)
	}
	fmt.Fprint(w, "]")
	if end := from + size; end < x.n || x.names && from < x.n {
		fmt.Fprintf(w, `,"cursor":"%d"`, end)
	}
	if x.found >= 0 {
		fmt.Fprintf(w, `,"found":%d`, x.found)
	}
	fmt.Fprint(w, "}")
}

// indexBegins is the last hour of October in Berlin, and of UTC's day before.
var indexBegins = time.Date(2026, 10, 31, 22, 30, 0, 0, time.UTC)

// readIndex runs a command against an index. In its output the id of the last
// request reads 7c1f.
func readIndex(t *testing.T, x http.Handler, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	s, id := newShelf(t), ""
	s.archiveIs(func(w http.ResponseWriter, r *http.Request) {
		id = r.Header.Get("X-SVC-REQUEST-ID")
		x.ServeHTTP(w, r)
	})
	stdout, stderr, code = s.reach(append([]string{"index"}, args...)...)
	if id != "" {
		stdout, stderr = strings.ReplaceAll(stdout, id, "7c1f"), strings.ReplaceAll(stderr, id, "7c1f")
	}
	return stdout, stderr, code
}

// I32: what an index did not give is never taken for all: both numbers are said, and it ends with 3.
func TestIndex_I32_CompleteOrSaysSo(t *testing.T) {
	for name, row := range map[string]struct {
		x    shelfIndex
		code int
		says string
	}{
		"Whole":             {shelfIndex{n: 7, found: 7}, exitDone, "the index gave 7 of 7 documents"},
		"ManyPages":         {shelfIndex{n: 2500, found: 2500}, exitDone, "the index gave 2500 of 2500 documents"},
		"EmptyPage":         {shelfIndex{n: 7, found: -1, names: true}, exitDone, "the index gave 7 documents, and does not say how many there are"},
		"Nothing":           {shelfIndex{}, exitDone, "the index gave 0 of 0 documents"},
		"CursorEndsEarly":   {shelfIndex{n: 1, found: 900}, exitPerson, "the index gave 1 of 900 documents\nINCOMPLETE its last page names no next page; the provider's request is 7c1f"},
		"CursorEndsUntold":  {shelfIndex{n: 7, found: -1}, exitPerson, "INCOMPLETE"},
		"EmptyPageTooEarly": {shelfIndex{n: 7, found: 8, names: true}, exitPerson, "the index gave 7 of 8 documents"},
	} {
		for _, form := range []string{"counts", "csv", "json"} {
			out, errs, code := readIndex(t, row.x, fmt.Sprint("--csv=", form == "csv"), fmt.Sprint("--json=", form == "json"))
			kit.Check(t, code == row.code && strings.Contains(out+errs, row.says),
				"%s as %s: exit %d\n%s%s", name, form, code, out, errs)
			records := strings.Count(out, "bum-")
			kit.Check(t, form == "counts" || records == row.x.n, "%s as %s: %d records", name, form, records)
		}
	}
}

func TestIndex_CountsByMonthOfTheTimeZone(t *testing.T) {
	out, _, code := readIndex(t, shelfIndex{n: 8, found: 8})
	want := []string{"2026-10 Invoice 1", "2026-11 CreditNote 2", "2026-11 Invoice 4", "no date Invoice 1"}
	var have []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "Invoice") || strings.Contains(line, "CreditNote") {
			have = append(have, strings.Join(strings.Fields(line), " "))
		}
	}
	if code != exitDone || strings.Join(have, "\n") != strings.Join(want, "\n") || !strings.Contains(out, "TEST, NO EVIDENCE") {
		t.Errorf("exit %d, %q\n%s", code, have, out)
	}
	for _, row := range []struct {
		from, to string
		n        int
	}{{"2026-10-31", "2026-10-31", 1}, {"2026-11-01", "2026-11-01", 2}, {"", "2026-11-01", 3}, {"2026-11-02", "", 4}, {"2027-01-01", "", 0}} {
		out, _, code := readIndex(t, shelfIndex{n: 8, found: 8}, "--csv", "--from", row.from, "--to", row.to)
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff"))).ReadAll()
		kit.Check(t, err == nil && code == exitDone && len(rows) == row.n+1,
			"%s to %s: exit %d, %d rows, %v", row.from, row.to, code, len(rows), err)
	}
	_, errs, _ := readIndex(t, shelfIndex{n: 8, found: 8}, "--csv", "--to=2026-11-01")
	kit.Holds(t, "errs", errs, "SELECTED   3 of them, by the day on which the archive took them; of 1 more the index does not tell that day")
}

// No cell becomes a formula, an amount stays a number, and each line of JSON is whole.
func TestIndex_RecordsAreFitForOthers(t *testing.T) {
	out, _, _ := readIndex(t, shelfIndex{n: 2, found: 2}, "--csv")
	kit.Holds(t, "out", out, `"'=cmd()"`, `"DE1 | '@x"`, `"-1.50"`, `"TEST, NO EVIDENCE"`, `"2026-10-31T22:30:00Z"`)
	out, _, _ = readIndex(t, shelfIndex{n: 2, found: 3}, "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		End struct {
			Vault       string
			Read, Found int
			Complete    bool
			RequestID   string
		}
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err, line)
		}
	}
	if e := last.End; len(lines) != 3 || e.Read != 2 || e.Found != 3 || e.Complete || e.RequestID != "7c1f" || !strings.Contains(lines[0], `"documentId":"=cmd()"`) {
		t.Errorf("%+v\n%s\nwant len(lines) = 3, e.Read = 2, e.Found = 3, not e.Complete, e.RequestID = \"7c1f\", lines[0] with `\"documentId\":\"=cmd()\"`", e, out)
	}
}

func TestIndex_WrongFlags(t *testing.T) {
	for name, args := range map[string]string{
		"NoDay": "--from=2026-13-01", "Backwards": "--from=2026-02-01 --to=2026-01-31", "NoForm": "-o x.txt", "NoSeparator": "--separator=x", "NoVault": "--vault=A/B", "TwoForms": "--csv --json",
	} {
		_, errs, code := readIndex(t, http.NotFoundHandler(), strings.Fields(args)...)
		kit.Check(t, code == exitUsage, "%s: exit %d: %s", name, code, errs)
	}
}

// The records of an index pass through: what stays of each is what tells it from others, some thirty bytes.
func TestIndex_MemoryStaysSmall(t *testing.T) {
	const documents = 60_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := shelfIndex{n: documents, found: documents, last: func() {
		runtime.GC()
		runtime.ReadMemStats(&after)
	}}
	s := newShelf(t)
	s.archiveIs(x.ServeHTTP)
	kit.Must(t, s.ledger.Close())
	if code := program.Run(t.Context(), []string{"--config", s.config, "index", "--csv"}, strings.NewReader(""), io.Discard, io.Discard, noEnv); code != exitDone {
		t.Fatal("exit", code)
	}
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	kit.Check(t, grown <= documents*60, "%d bytes for each document stay in memory", grown/documents)
}

// Inside the daemon and beside none, and without a ledger; a file has its name only when the index was read to its end.
func TestIndex_InsideAndBeside(t *testing.T) {
	t.Parallel()
	s, emu, url := archivedSite(t, 3, "")
	bare := newSite(t, url, fast)
	bare.move("state", "gone") // no ledger
	whole := filepath.Join(bare.dir, "index.csv")
	kit.Holds(t, "without a ledger",
		bare.must(0, "index", "--vault", "ACME", "-o", whole), "ACME: the index gave 3 of 3 documents")
	if b, err := os.ReadFile(whole); err != nil || strings.Count(string(b), "\r\n") != 4 || !strings.Contains(string(b), `"inv 02"`) {
		t.Errorf("%v\n%s\nwant no error, strings.Count(string(b), \"\\r\\n\") = 4, b with `\"inv 02\"`", err, b)
	}
	bare.must(exitCreate, "index", "-o", whole)
	s.start("run")
	s.listens()
	kit.Holds(t, "inside",
		s.must(0, "index"), "ACME: the index gave 3 of 3 documents", "BETA: the index gave 0 of 0 documents")
	kit.Must(t, emu.SetReadings(emulator.Readings{IndexFound: "more"}))
	part := filepath.Join(s.dir, "part.json")
	kit.Holds(t, "an index that never tells the right number",
		s.must(exitPerson, "index", "--vault", "ACME", "-o", part), "ACME: the index gave 3 of 1003 documents")
	kit.Fails(t, "a part has the name of the whole", kit.Err(os.Lstat(part)))
	kit.Want(t, `strings.Count(string(b), "\n")`,
		strings.Count(string(kit.Value(os.ReadFile(part+".incomplete"))(t)), "\n"), 4)
}

// hostileIndex has one document for each hostile text, which stands in every field of it.
func hostileIndex(w http.ResponseWriter, _ *http.Request) {
	var records []map[string]any
	for name, text := range hostileTexts {
		record := map[string]any{"bumid": name, "senderIds": []string{text, text}, "recipientIds": []string{text}, "additionalParameters": []any{map[string]string{"key": text, "value": text}}}
		for _, field := range []string{"archiveId", "documentType", "documentId", "documentDate", "senderName", "recipientName", "currencyCode", "amount", "buyerReferenceId", "buyerReferenceType", "tradingPartner", "flowDirection"} {
			record[field] = text
		}
		records = append(records, record)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"found": len(hostileTexts) + 1, "documents": records}) // the client tells
}

// No text of an index steers a terminal, forges a line, or becomes a formula.
func TestInjection_I7_IndexOfAHostileArchive(t *testing.T) {
	s := newShelf(t)
	for _, form := range []string{"counts", "csv", "json"} {
		out, errs, code := readIndex(t, http.HandlerFunc(hostileIndex), "--separator=;", fmt.Sprint("--csv=", form == "csv"), fmt.Sprint("--json=", form == "json"))
		kit.Check(t, code == exitPerson, "%s: exit %d, %s", form, code, errs)
		s.clean("a text", form+" (stderr)", errs)
		if form == "csv" {
			s.tableIsClean(out)
			continue
		}
		s.clean("a text", form, out)
	}
}
