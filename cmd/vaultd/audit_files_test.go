package main_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

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
