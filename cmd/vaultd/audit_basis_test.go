package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// audited is a report as JSON, and what the command said beside it.
type audited struct {
	all  map[string]any
	said string
	code int
}

func (s *shelf) auditJSON(t *testing.T, args ...string) audited {
	t.Helper()
	out, errs, code := s.audit(append(args, "--json")...)
	a := audited{said: errs, code: code}
	if code == exitDone || code == exitDifferences {
		err := json.Unmarshal([]byte(out), &a.all)
		kit.Need(t, err == nil, "%v: exit %d, %s", err, code, errs)
	}
	return a
}

func (a audited) field(path ...string) any {
	var v any = a.all
	for _, name := range path {
		in, _ := v.(map[string]any)
		v = in[name]
	}
	return v
}

func (a audited) restsOn() map[string]any {
	b, _ := a.field("check", "restsOn").(map[string]any)
	return b
}

// withoutBasis takes out of a report what says which part of the ledger was examined when.
func (a audited) withoutBasis() map[string]any {
	all := maps.Clone(a.all)
	for _, name := range []string{"check", "result"} {
		all[name] = maps.Clone(all[name].(map[string]any))
	}
	delete(all["check"].(map[string]any), "restsOn")
	text, _, _ := strings.Cut(a.field("result", "text").(string), " What the journal tells up to line ")
	all["result"].(map[string]any)["text"] = text
	all["notProven"] = slices.DeleteFunc(slices.Clone(all["notProven"].([]any)), func(d any) bool { return d.(map[string]any)["what"] == "examined-before" })
	var promises []any
	for _, p := range all["promises"].([]any) {
		p := maps.Clone(p.(map[string]any))
		if strings.HasPrefix(p["today"].(string), "no contradiction in ") {
			p["today"] = "no contradiction"
		}
		promises = append(promises, p)
	}
	all["promises"] = promises
	return all
}

// live takes a step of a random world: a new folder, the next step of one, or an act of a person.
func (s *shelf) live(rnd *rand.Rand, n int) {
	at := noon.Add(-time.Hour).Add(time.Duration(n) * time.Second)
	name, remote := fmt.Sprint("F", n), archive.RemoteID(fmt.Sprint("r", n))
	by := ledger.Operator{UID: 7}
	mark := func(m ledger.Mark) {
		m.By, m.At = by, at
		kit.Must(s.t, s.ledger.CommitMark(s.t.Context(), m, nil))
	}
	switch rnd.IntN(9) {
	case 0:
		s.tell(name, at, nil)
	case 1:
		s.tell(name, at, nil, ledger.Refused{Cause: ledger.Cause{Code: "x"}})
	case 2:
		s.tell(name, at, nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "x"}})
		if rnd.IntN(2) == 0 {
			s.tell(name, at, nil, ledger.Closed{By: by})
		}
	case 3:
		s.send(name, at.Add(-time.Hour), remote)
	case 4, 5, 6:
		s.send(name, at.Add(-time.Hour), remote)
		s.says(name, at, remote, archive.Successful)
		s.tell(name, at, nil, ledger.PlaceIntended{Dest: "_archived/" + name}, ledger.Placed{})
		if rnd.IntN(3) == 0 {
			m := ledger.Mark{Vault: "V-1", Remote: remote, Name: ledger.MarkFetchIntended}
			m.By, m.At = by, at
			kit.Value(s.ledger.IntendFetch(s.t.Context(), m, nil, 1000))(s.t)
			m.Name, m.Cause = ledger.MarkFetched, []string{ledger.FetchSame, ledger.FetchDiffers}[rnd.IntN(2)]
			mark(m)
		}
	case 7:
		outcomes := ledger.CompareOutcomes()
		mark(ledger.Mark{Name: ledger.MarkCompared, Vault: "V-1", Cause: ledger.ComparedCause(outcomes[rnd.IntN(len(outcomes))], "3 of 3 read", rnd.IntN(3))})
	case 8:
		mark(ledger.Mark{Name: ledger.MarkDisposal})
	}
}

// I12, I14: over random worlds a report that goes on from a checkpoint says what one says that examines everything, in each form, and says
// beside it which part was examined when.
func TestAudit_I12_I14_SameFromACheckpoint(t *testing.T) {
	rested := 0
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		s := newShelf(t)
		s.auditJSON(t) // leaves the first checkpoint
		for n, round := 0, 0; round < 8; round++ {
			before := s.ledger.Head().N
			for range rnd.IntN(8) {
				s.live(rnd, n)
				n++
			}
			for _, name := range slices.Sorted(maps.Keys(s.keys)) { // some entry goes on, which may have been at rest
				if e, _, err := s.ledger.Entry(s.keys[name]); err != nil || rnd.IntN(30) == 0 && !e.Hold {
					s.tell(name, noon, nil, ledger.Held{By: ledger.Operator{UID: 7}})
				}
			}
			since := s.auditJSON(t)
			whole := s.auditJSON(t, "--whole")
			if a, b := since.withoutBasis(), whole.withoutBasis(); since.code != whole.code || !reflect.DeepEqual(a, b) {
				x, _ := json.Marshal(a)
				y, _ := json.Marshal(b)
				t.Fatalf("seed %d, round %d: exit %d and %d\n%s\n%s", seed, round, since.code, whole.code, x, y)
			}
			if whole.restsOn() != nil || !strings.Contains(whole.said, "was examined for this report, and every entry was held against it") {
				t.Errorf("seed %d: the whole rests on %v: %s", seed, whole.restsOn(), whole.said)
			}
			b := since.restsOn()
			if b == nil {
				if !strings.Contains(since.said, "The checkpoint was not used: an entry that was at rest has changed") {
					t.Errorf("seed %d, round %d: %s%v", seed, round, since.said, since.field("check", "findings"))
				}
				continue
			}
			rested++
			if b["line"] != float64(before) || b["linesExamined"] != float64(s.ledger.Head().N-before) ||
				!strings.Contains(since.said, fmt.Sprintf("Lines 1 to %d of the journal were examined on ", before)) || !strings.Contains(since.said, ", and not again for this report") {
				t.Errorf("seed %d: %v: %s", seed, b, since.said)
			}
			html, _, _ := s.audit("--format=html")
			if strings.Count(html, "of the journal were examined on ") != 2 || !strings.Contains(html, " rests on the examination of ") {
				t.Errorf("seed %d: the page does not say what it rests on", seed)
			}
			csv, _, _ := s.audit("--format=csv")
			again, _, _ := s.audit("--format=csv", "--whole")
			kit.Check(t, csv == again, "seed %d: the tables differ", seed)
		}
	}
	kit.Check(t, rested >= 16, "%d reports went on from a checkpoint: the test is vacuous", rested)
}

// I14: a report of a given time rests on no checkpoint: it has the same bytes whatever was examined before.
func TestAudit_I14_AsOfRestsOnNothing(t *testing.T) {
	s := filled(t)
	for _, format := range []string{"html", "json", "csv"} {
		args := []string{"audit", "--format", format, "--as-of=2026-11-21"}
		err := os.Remove(filepath.Join(s.cfg.StateDir, selfcheck.CheckpointName))
		kit.Need(t, err == nil || os.IsNotExist(err), "error: %v", err)
		first, _, code := s.run(noon.AddDate(0, 0, 2), args...)
		again, errs, _ := s.run(noon.AddDate(0, 0, 2), args...)
		if code != exitDifferences || first != again || !strings.Contains(errs, "was examined for this report, and every entry") {
			t.Errorf("%s: exit %d, %s", format, code, errs)
		}
	}
}

// I14: what is damaged before the line of the checkpoint, and is not read, the report does not find, and says so; what it reads it
// finds. A report of everything finds both.
func TestAudit_I14_DamageBeforeTheCheckpoint(t *testing.T) {
	s := filled(t)
	for n := range 40 { // more than a page of the journal
		s.tell(fmt.Sprint("G", n), noon.Add(-time.Minute), nil, ledger.Refused{Cause: ledger.Cause{Code: "x"}}, ledger.PlaceIntended{Dest: "_rejected/G"}, ledger.Placed{})
	}
	s.auditJSON(t)
	line := s.ledger.Head().N
	s.tell("New 1", noon, nil)
	s.damageJournal()
	a := s.auditJSON(t)
	if b := a.restsOn(); a.code != exitDifferences || b["line"] != float64(line) || a.field("check", "agrees") != true ||
		!strings.Contains(a.said, fmt.Sprintf("Lines 1 to %d of the journal were examined on ", line)) {
		t.Errorf("exit %d, %v: %s", a.code, b, a.said)
	}
	_, errs, code := s.audit("--format=json", "--whole")
	kit.Check(t, code != exitDone && !strings.Contains(errs, "NOT COMPLETE"), "--whole found nothing: %s", errs)

	s = filled(t)
	s.auditJSON(t)
	s.damage("Müller 4711") // an entry at rest, which every report reads
	if _, errs, code := s.audit("--format=html"); code == exitDone || strings.Contains(errs, "NOT COMPLETE") {
		t.Errorf("a damaged entry at rest was passed over: %s", errs)
	}
}

// I12: an entry at rest that is gone since the checkpoint is missing where the report counts the entries: everything is examined
// then, and the report names it.
func TestAudit_I12_CountsTellOtherwiseThanTheCheckpoint(t *testing.T) {
	s := filled(t)
	s.auditJSON(t)
	key := s.keys["Müller 4711"]
	kit.Must(t, s.ledger.Close())
	db := kit.Value(bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil))(t)
	kit.Must(t, errors.Join(db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("done")).Delete(key[:]) }), db.Close()))
	s.ledger.Open()
	a := s.auditJSON(t)
	text := fmt.Sprint(a.field("check", "findings"))
	kit.Check(t, a.code == exitDifferences && a.restsOn() == nil && a.field("check", "agrees") == false, "exit %d, rests on %v, %s, want differences and that everything was examined", a.code, a.restsOn(), a.said)
	kit.Holds(t, "the findings", text, key.String(), "but there is no entry")
}

// I14, I15: a checkpoint that was changed, that is of another ledger or of another past of this one is not believed, as verify does not
// believe it: everything is examined, and the command says why. Of another past the report says so at its top.
func TestAudit_I14_I15_CheckpointIsNotBelieved(t *testing.T) {
	t.Run("Changed", func(t *testing.T) {
		s := filled(t)
		s.auditJSON(t)
		name := filepath.Join(s.cfg.StateDir, selfcheck.CheckpointName)
		text := kit.Value(os.ReadFile(name))(t)
		text[len(text)-9] ^= 1
		kit.Must(t, os.WriteFile(name, text, 0o600))
		a := s.auditJSON(t)
		if a.code != exitDifferences || a.restsOn() != nil || !strings.Contains(a.said, "The checkpoint was not used: it is damaged: its SHA-256 is not the one that it states") {
			t.Errorf("exit %d, %v: %s", a.code, a.restsOn(), a.said)
		}
		again := s.auditJSON(t)
		kit.Check(t, again.restsOn() != nil, "it left no other one: %s", again.said)
	})
	t.Run("OfAnotherPast", func(t *testing.T) {
		a := ofAnotherPast(t).auditJSON(t)
		text := fmt.Sprint(a.field("check", "findings"))
		if a.code != exitDifferences || a.restsOn() != nil || a.field("check", "agrees") != false || !strings.Contains(text, "no line tells that the ledger was put back since") {
			t.Errorf("exit %d, %s: %s", a.code, text, a.said)
		}
	})
}

// ofAnotherPast is a ledger that was put back with its head, past vaultd, to
// before the line of its checkpoint.
func ofAnotherPast(t *testing.T) *shelf {
	t.Helper()
	s := filled(t)
	copied := t.TempDir()
	copyFiles(t, s.cfg.StateDir, copied)
	s.tell("New 1", noon, nil)
	s.auditJSON(t)
	kit.Must(t, s.ledger.Close())
	copyFiles(t, copied, s.cfg.StateDir)
	s.ledger.Open()
	return s
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"ledger.db", "ledger.head.1"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		kit.Must(t, err)
	}
}

// sendReport writes the pieces of a report with tables, as a daemon sends them: the number of the file, the length in four bytes, and so
// many bytes.
func sendReport(w io.Writer, texts ...string) {
	for part, text := range texts {
		for piece := range slices.Chunk([]byte(text), 7) {
			w.Write(append([]byte{byte(part), 0, 0, 0, byte(len(piece))}, piece...))
		}
	}
}

// choppy hands on what it gets in pieces of any length.
type choppy struct {
	to io.Writer
	r  *rand.Rand
}

func (c choppy) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := 1 + c.r.IntN(len(rest))
		if _, err := c.to.Write(rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(b), nil
}

// The page and its tables come through one stream and become three files, wherever the stream is cut, under the name of the page.
func TestAudit_TablesBesideThePage(t *testing.T) {
	s := newShelf(t)
	want := []string{"the page, which is longer", strings.Repeat("a;b\r\n", 50), "PK"}
	seed := uint64(0)
	s.standIn(func(out io.Writer) int {
		sendReport(choppy{out, rand.New(rand.NewPCG(seed, 1))}, want...)
		return 0
	})
	for page, table := range map[string]string{"2026.html": "2026", "2026.10.htm": "2026.10", "report": "report", ".html": ".html"} {
		for range 5 {
			seed++
			dir := t.TempDir()
			code, _, errs := s.ask(t, "audit", "-o", filepath.Join(dir, page))
			kit.Need(t, code == exitDone, "exit %d: %s", code, errs)
			for i, name := range []string{page, table + ".csv", table + ".xlsx"} {
				if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want[i] || !strings.Contains(errs, "written to "+dir+"/"+name) {
					t.Errorf("%s: %q, %v, %s, want no error, string(b) = %v, errs with %q", name, b, err, errs, want[i], "written to "+dir+"/"+name)
				}
			}
			all, _ := os.ReadDir(dir)
			kit.Check(t, len(all) == 3, "left behind: %v", all)
		}
	}
}

// A report that breaks off leaves no file, one about differences leaves all of them, and a table that is there is not overwritten.
func TestAudit_TablesWholeOrNotAtAll(t *testing.T) {
	type row struct {
		exit  int // of the daemon
		cut   int // bytes that are missing at the end
		taken string
		force bool
		kept  int
	}
	kit.Rows(t, map[string]row{
		"Whole": {kept: 3}, "Differs": {exit: exitDifferences, kept: 3}, "BrokeOff": {exit: exitIO}, "CutInAPiece": {cut: 3},
		"TableIsThere": {taken: "2026.xlsx", kept: 1}, "PageIsThere": {taken: "2026.html", kept: 1}, "Force": {taken: "2026.csv", force: true, kept: 3},
	}, func(t *testing.T, row row) {
		s, dir := newShelf(t), t.TempDir()
		if row.taken != "" {
			kit.Must(t, os.WriteFile(filepath.Join(dir, row.taken), []byte("old"), 0o600))
		}
		s.standIn(func(out io.Writer) int {
			var b bytes.Buffer
			sendReport(&b, "page", "csv", "book")
			out.Write(b.Bytes()[:b.Len()-row.cut])
			return row.exit
		})
		code, _, errs := s.ask(t, "audit", "-o", dir+"/2026.html", fmt.Sprint("--force=", row.force))
		all, _ := os.ReadDir(dir)
		kit.Check(t, len(all) == row.kept && (code == exitDone) == (row.kept == 3 && row.exit == 0),
			"exit %d, %s, %v", code, errs, all)
		if row.taken != "" && !row.force {
			b, _ := os.ReadFile(filepath.Join(dir, row.taken))
			kit.Check(t, string(b) == "old", "overwritten: %q", b)
		}
	})
}

// A ledger with more folders than the page has gives three files; the tables have every folder.
func TestAudit_LongTableHasThreeFiles(t *testing.T) {
	s := newShelf(t)
	var all []ledger.Change
	for i := range 2001 {
		key := archive.Key{8: byte(i >> 8), 9: byte(i), 15: 1}
		all = append(all, ledger.Change{Key: key, At: archive.Instant{Wall: noon}, Events: []ledger.Event{
			ledger.ClaimedFolder{Route: ledger.Vault, Vault: "DE", Drop: "acme-in", Folder: fmt.Sprint("Folder ", i)}}})
	}
	kit.Value(s.ledger.Apply(t.Context(), all...))(t)
	dir := t.TempDir()
	_, errs, code := s.audit("-o", dir+"/a b.html")
	kit.Need(t, code == exitDifferences, "exit %d: %s", code, errs)
	read := func(name string) string {
		b := kit.Value(os.ReadFile(filepath.Join(dir, name)))(t)
		return string(b)
	}
	page := read("a b.html")
	if !strings.Contains(page, `<a href="./a%20b.csv">a b.csv</a>, <a href="./a%20b.xlsx">a b.xlsx</a>`) || strings.Count(page, "<bdi>Folder ") < 200 || len(page) > 3_000_000 {
		t.Errorf("a page of %d bytes", len(page))
	}
	rows := strings.Count(read("a b.csv"), "\r\n")
	kit.Check(t, rows == 2002 && strings.HasPrefix(read("a b.xlsx"), "PK"), "%d rows", rows)
}

// A piece of an unknown file is no report.
func TestAudit_UnknownPiece(t *testing.T) {
	s, dir := newShelf(t), t.TempDir()
	s.standIn(func(out io.Writer) int { sendReport(out, "a", "b", "c", "1", "d"); return 0 })
	code, _, errs := s.ask(t, "audit", "-o", dir+"/2026.html")
	if left, err := os.ReadDir(dir); code == exitDone || !strings.Contains(errs, "part 4") || err != nil || len(left) != 0 {
		t.Errorf("exit %d, %s; left: %v, %v", code, errs, left, err)
	}
}

// A page that has every folder replaces one that had tables beside it. The tables are told, and stay: a person may have worked on them.
func TestAudit_TablesOfAnEarlierReportAreTold(t *testing.T) {
	s, dir := newShelf(t), t.TempDir()
	var texts []string
	s.standIn(func(out io.Writer) int { sendReport(out, texts...); return 0 })
	audit := func(report ...string) string {
		texts = report
		code, _, errs := s.ask(t, "audit", "--force", "-o", dir+"/2026.html")
		kit.Need(t, code == exitDone, "exit %d: %s", code, errs)
		return errs
	}
	kit.Lacks(t, "errs", audit("long", "a;b", "PK"), "not of this report")
	errs := audit("short")
	for _, name := range []string{"/2026.csv", "/2026.xlsx"} {
		kit.Holds(t, fmt.Sprintf("%s is not told", name), errs, dir+name+" is not of this report")
		kit.Want(t, "the error of Stat", kit.Err(os.Stat(dir+name)), nil)
		kit.Must(t, os.Remove(dir+name))
	}
	kit.Lacks(t, "errs", audit("short"), "not of this report")
}
