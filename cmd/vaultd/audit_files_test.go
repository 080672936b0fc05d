package main

import (
	"bytes"
	"context"
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
)

// sendReport writes the pieces of a report with tables.
func sendReport(w io.Writer, texts ...string) error {
	for part, text := range texts {
		for piece := range slices.Chunk([]byte(text), 7) {
			if _, err := (pieceWriter{w, byte(part)}).Write(piece); err != nil {
				return err
			}
		}
	}
	return nil
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

// The page and its tables come through one stream and become three files, wherever the stream is cut.
func TestAudit_TablesBesideThePage(t *testing.T) {
	for seed := range uint64(20) {
		dir := t.TempDir()
		var errs strings.Builder
		a := &app{stdout: io.Discard, stderr: &errs, env: noEnv}
		want := []string{"the page, which is longer", strings.Repeat("a;b\r\n", 50), "PK"}
		err := a.auditPage(auditFlags{output: dir + "/2026.html"}, io.Discard, func(w io.Writer) error {
			return sendReport(choppy{w, rand.New(rand.NewPCG(seed, 1))}, want...)
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"2026.html", "2026.csv", "2026.xlsx"} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want[i] || !strings.Contains(errs.String(), "written to "+dir+"/"+name) {
				t.Errorf("%s: %q, %v, %s", name, b, err, &errs)
			}
		}
		if all, _ := os.ReadDir(dir); len(all) != 3 {
			t.Errorf("left behind: %v", all)
		}
	}
}

// A report that breaks off leaves no file, one about differences leaves all of them, and a table that is there is not overwritten.
func TestAudit_TablesWholeOrNotAtAll(t *testing.T) {
	for name, row := range map[string]struct {
		wrong error
		cut   int // bytes that are missing at the end
		taken string
		force bool
		kept  int
	}{
		"Whole": {kept: 3}, "Differs": {wrong: fail(exitDifferences, context.Canceled, ""), kept: 3}, "BrokeOff": {wrong: context.Canceled}, "CutInAPiece": {cut: 3},
		"TableIsThere": {taken: "2026.xlsx", kept: 1}, "PageIsThere": {taken: "2026.html", kept: 1}, "Force": {taken: "2026.csv", force: true, kept: 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if row.taken != "" {
				if err := os.WriteFile(filepath.Join(dir, row.taken), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &app{stdout: io.Discard, stderr: io.Discard, env: noEnv}
			err := a.auditPage(auditFlags{output: dir + "/2026.html", force: row.force}, io.Discard, func(w io.Writer) error {
				var b bytes.Buffer
				if err := sendReport(&b, "page", "csv", "book"); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(b.Bytes()[:b.Len()-row.cut]); err != nil {
					return err
				}
				return row.wrong
			})
			all, _ := os.ReadDir(dir)
			if len(all) != row.kept || (err == nil) != (row.kept == 3 && row.wrong == nil) {
				t.Errorf("%v, %v", err, all)
			}
			if row.taken != "" && !row.force {
				if b, _ := os.ReadFile(filepath.Join(dir, row.taken)); string(b) != "old" {
					t.Errorf("overwritten: %q", b)
				}
			}
		})
	}
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
	if _, err := s.ledger.Apply(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := auditFlags{output: dir + "/a b.html"}
	if err := f.completeFlags(false); err == nil {
		t.Error("no separator")
	}
	f.separator, f.stem = ",", "a b"
	a := &app{stdout: io.Discard, stderr: io.Discard, env: noEnv}
	if err := a.auditPage(f, io.Discard, func(w io.Writer) error { return a.auditInto(t.Context(), s.view, f, w) }); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page := read("a b.html")
	if !strings.Contains(page, `<a href="./a%20b.csv">a b.csv</a>, <a href="./a%20b.xlsx">a b.xlsx</a>`) || strings.Count(page, "<bdi>Folder ") < 200 || len(page) > 3_000_000 {
		t.Errorf("a page of %d bytes", len(page))
	}
	if rows := strings.Count(read("a b.csv"), "\r\n"); rows != 2002 || !strings.HasPrefix(read("a b.xlsx"), "PK") {
		t.Errorf("%d rows", rows)
	}
}

func TestAudit_NamesOfTheTables(t *testing.T) {
	for output, want := range map[string]string{"x/2026.html": "x/2026", "2026.10.htm": "2026.10", "x/report": "x/report", "x/.html": "x/.html"} {
		if got := (auditFlags{output: output}).tablePath(); got != want {
			t.Errorf("%s: %s", output, got)
		}
	}
}

// A page may not have the name of the table that lies beside it: one would replace the other.
func TestAudit_PageIsNoTable(t *testing.T) {
	for output, ok := range map[string]bool{"x.csv": false, "x.XLSX": false, "x.html": true, "x.csv.html": true, "x": true} {
		f := auditFlags{output: output, format: "html", separator: ","}
		if err := f.completeFlags(false); (err == nil) != ok {
			t.Errorf("%s: %v", output, err)
		}
	}
}

// A piece of an unknown file is no report.
func TestAudit_UnknownPiece(t *testing.T) {
	s := &reportFiles{begin: func(int) (io.Writer, error) { return io.Discard, nil }}
	if err := sendReport(s, "a", "b", "c", "1", "d"); err == nil || !strings.Contains(err.Error(), "part 4") {
		t.Error(err)
	}
	if (&reportFiles{}).isWhole() {
		t.Error("nothing is a whole report")
	}
}

// A page that has every folder replaces one that had tables beside it. The tables are told, and stay: a person may have worked on them.
func TestAudit_TablesOfAnEarlierReportAreTold(t *testing.T) {
	dir := t.TempDir()
	audit := func(texts ...string) string {
		var errs strings.Builder
		a := &app{stdout: io.Discard, stderr: &errs, env: noEnv}
		err := a.auditPage(auditFlags{output: dir + "/2026.html", force: true}, io.Discard, func(w io.Writer) error { return sendReport(w, texts...) })
		if err != nil {
			t.Fatal(err)
		}
		return errs.String()
	}
	if errs := audit("long", "a;b", "PK"); strings.Contains(errs, "not of this report") {
		t.Error(errs)
	}
	errs := audit("short")
	for _, name := range []string{"/2026.csv", "/2026.xlsx"} {
		if !strings.Contains(errs, dir+name+" is not of this report") {
			t.Errorf("%s is not told: %s", name, errs)
		}
		if _, err := os.Stat(dir + name); err != nil {
			t.Error(err)
		}
		if err := os.Remove(dir + name); err != nil {
			t.Fatal(err)
		}
	}
	if errs := audit("short"); strings.Contains(errs, "not of this report") {
		t.Error(errs)
	}
}
