package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// attacks are texts that become a formula in one spreadsheet or another.
var attacks = []string{
	"=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "  \t =1", "'=1", `"=1`, "＝1", "＋1", "－1", "＠x",
	"x;=1", "x,=1", "x\t=1", "x;+1", `x";=1`, `x";"=1"`, "x\r\n=1", "x; =1", "x|=1", "x\u2028=1", "\u200b=1", nasty, "-", "=", "-12.50",
}

// No cell begins a formula, whichever separator the reader takes the file to have.
func TestCSV_NoFormula(t *testing.T) {
	for _, wrote := range []rune{',', ';'} {
		for _, text := range attacks {
			var b bytes.Buffer
			out := bufio.NewWriter(&b)
			kit.Must(t, writeRecord(out, wrote, []string{sanitize.Cell("first"), sanitize.Cell(text), sanitize.Cell(text + text), sanitize.Cell("last")}))
			out.Flush()
			for _, read := range []rune{',', ';', '\t', '|'} {
				for _, c := range naive(b.String(), read) {
					if c = strings.TrimLeft(c, "\" \t\r\n\u2028\u200b"); c != "" && strings.ContainsAny(c[:1], "=+-@") || strings.HasPrefix(c, "＝") || strings.HasPrefix(c, "－") {
						t.Errorf("%q written with %q, read with %q: cell %q", text, wrote, read, c)
					}
				}
			}
		}
	}
}

// naive splits a line as the most careless reader does, and as a careful one.
func naive(line string, separator rune) []string {
	cells := strings.Split(strings.TrimSuffix(line, "\r\n"), string(separator))
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = separator, true, -1
	if all, err := r.ReadAll(); err == nil {
		for _, one := range all {
			cells = append(cells, one...)
		}
	}
	return cells
}

// A reader that keeps to RFC 4180 gets every row, every cell, and amounts that are numbers.
func TestCSV_ReadAgain(t *testing.T) {
	for _, separator := range []rune{',', ';'} {
		var b bytes.Buffer
		kit.Value(examine(t, filled(t, "production").config()).CSV(t.Context(), &b, separator))(t)
		text, marked := strings.CutPrefix(b.String(), "\ufeff")
		kit.Check(t, marked && strings.Count(text, "\r\n") == 8 && strings.Count(text, "\n") == 8,
			"mark %v, %d lines", marked, strings.Count(text, "\n"))
		r := csv.NewReader(strings.NewReader(text))
		r.Comma = separator
		rows, err := r.ReadAll()
		kit.Need(t, err == nil && len(rows) == 8,
			"err = %v, len(rows) = %v, want no error, len(rows) = 8", err, len(rows))
		amounts, folders := map[string]bool{}, ""
		for _, row := range rows[1:] {
			amounts[row[6]] = true
			folders += row[1] + "\n"
		}
		kit.Check(t, amounts["-75.105"] && amounts["9007199254740993.10"] && amounts["119.00"] && amounts[""],
			`%v, want amounts["-75.105"], amounts["9007199254740993.10"], amounts["119.00"], amounts[""]`, amounts)
		kit.Holds(t, "folders", folders, "Müller 4711\n", "Kern\\u{202e} 6\n")
	}
}

func TestNumeric_NumbersStay(t *testing.T) {
	for text, want := range map[string]string{
		"-12.50": "-12.50", "0": "0", "9007199254740993.10": "9007199254740993.10", "": "",
		"-1+1": "'-1+1", "-": "'-", "1e5": "1e5", "=1": "'=1", "--1": "'--1", "-12.50 ": "'-12.50 ",
	} {
		kit.Want(t, fmt.Sprintf("%q became", text), numericCell(text), want)
	}
}

// bare is a formula that lacks an apostrophe before it.
var bare = regexp.MustCompile(`(^|[,;|\t\r\n])["\s]*[=+\-@＝＋－＠]`)

// Every cell stays one cell of text, whatever separator the file is read with.
func FuzzCell(f *testing.F) {
	for _, s := range []string{"=1+1", "\t=cmd|' /C calc'!A0", `a","=1`, "a;=1", "\r\n@x", " ＋1", "\u202e=1", "-1", `"`, "a|=1", "\x00=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := sanitize.Cell(s)
		kit.Check(t, !strings.ContainsFunc(got, unicode.IsControl) && !bare.MatchString(got),
			"%q is written as %q", s, got)
		var b bytes.Buffer
		out := bufio.NewWriter(&b)
		kit.Must(t, writeRecord(out, ';', []string{"a", got, "z"}))
		out.Flush()
		r := csv.NewReader(&b)
		r.Comma = ';'
		rec, err := r.Read()
		kit.Check(t, err == nil && len(rec) == 3 && rec[1] == got, "%q is read as %q: %v", got, rec, err)
	})
}

// I4: the audit counts what was downloaded and compared, of what was asked for, and names what differs.
func TestSummary_I4_DownloadedAndCompared(t *testing.T) {
	s := newShelf(t, "production")
	for i, r := range []archive.RemoteID{"r1", "r2", "r3"} {
		s.Add(fill.Item{Name: string(r), Remote: r}).Archive(noon.Add(-time.Duration(9-i)*time.Hour), time.Hour)
	}
	s.Add(fill.Item{Name: "other", Vault: "FR", Remote: "r4"}).Archive(noon.Add(-2*time.Hour), time.Hour)
	download := func(v archive.VaultID, r archive.RemoteID, outcome string) {
		t.Helper()
		m := ledger.Mark{Vault: v, Remote: r, By: ledger.Operator{UID: 1001}, At: noon}
		kit.Value(s.IntendFetch(t.Context(), m, nil, 99))(t)
		if m.Name, m.Cause = ledger.MarkFetched, outcome; outcome == "" {
			return
		}
		s.Mark(m, "")
	}
	e := s.Item("r1").Entry()
	c := s.config()
	if u := examine(t, c).Summary.Unchanged; u.Text != "0 of 4 downloaded and compared, 0 differ" || u.Money != "" {
		t.Errorf(`%+v, want u.Text = "0 of 4 downloaded and compared, 0 differ", u.Money = ""`, u)
	}
	download(e.Vault, "r1", ledger.FetchSame)
	s.Item("r2").Apply(noon, ledger.ContentDiffered{Remote: s.Item("r2").Entry().ArchivedRemote})
	download(e.Vault, "r2", ledger.FetchDiffers)
	download(e.Vault, "r3", "")
	download("FR", "r4", ledger.FetchRepacked)
	c = s.config()
	c.Price = "1234.5"
	sum := examine(t, c).Summary
	if u := sum.Unchanged; u.Text != "3 of 4 downloaded and compared, 1 differ" || u.Downloads != 4 || u.Money != "4938.00" {
		t.Errorf(`%+v, want u.Text = "3 of 4 downloaded and compared, 1 differ", u.Downloads = 4, u.Money = "4938.00"`, u)
	}
	if d := doubtOf(sum, "not-downloaded"); d.Count != 1 || !strings.HasPrefix(d.Text, "Of 4 archived documents, 3 were downloaded and compared with what was sent; 1 differs.") {
		t.Errorf(`%+v, want d.Count = 1, d.Text that begins with "Of 4 archived documents, 3 were downloaded and compared with what was sent; 1 differs."`, d)
	}
	if len(sum.Needs) != 1 || sum.Needs[0].What != "download-differs" || len(sum.Needs[0].Names) != 1 || !strings.HasPrefix(sum.Needs[0].Names[0], "r2") {
		t.Errorf(`%+v, want len(sum.Needs) = 1, sum.Needs[0].What = "download-differs", len(sum.Needs[0].Names) = 1, sum.Needs[0].Names[0] that begins with "r2"`, sum.Needs)
	}
	kit.Check(t, sum.ManualActions == 4 && len(sum.Acts) == 4 && sum.Acts[0].BumID == "r4",
		`%+v, want sum.ManualActions = 4, len(sum.Acts) = 4, sum.Acts[0].BumID = "r4"`, sum.Acts)
	c.Select = Selection{Vault: "FR"}
	a := examine(t, c)
	u := a.Summary.Unchanged
	kit.Check(t, u.Archived == 1 && u.Compared == 1 && u.Differ == 0, "of one vault: %+v", u)
	if page, _ := written(t, a, "html"); !strings.Contains(page, "1 of 1 downloaded and compared, 0 differ. 4 downloads in the whole ledger, EUR 4,938.00.") {
		t.Error("the page does not say it")
	}
}

func (s *shelf) mark(word, reason string, at time.Time) {
	s.t.Helper()
	s.Mark(ledger.Mark{Name: word, By: ledger.Operator{UID: 1001}, At: at}, reason)
}

func doubtOf(s Summary, what string) doubt {
	for _, d := range s.NotProven {
		if d.What == what {
			return d
		}
	}
	return doubt{}
}

// A ledger that may have forgotten something never reads as complete.
func TestResult_I15_SafeModeIsNeverComplete(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Archive(noon.Add(-3*time.Hour), time.Hour)
	s.mark(ledger.MarkRestored, "", noon.Add(-time.Hour))
	c := s.config()
	c.Safe = "the ledger was put back from a backup; what was done after 11:00 is not known"
	for name, sel := range map[string]Selection{"All": {}, "Nothing": {Drop: "x"}, "States": {States: map[ledger.State]bool{ledger.Archived: true}}} {
		c.Select = sel
		sum := examine(t, c).Summary
		if r := sum.Result; r.Code != "safe-mode" || !strings.HasPrefix(r.Text, "SAFE MODE: "+c.Safe) || strings.Contains(r.Text, "Nothing that was dropped is missing") {
			t.Errorf(`%s: %+v, want r.Code = "safe-mode", r.Text that begins with %q, r.Text without "Nothing that was dropped is missing"`, name, r, "SAFE MODE: "+c.Safe)
		}
		kit.Holds(t, name, doubtOf(sum, "safe-mode").Text, c.Safe)
	}
	c.Safe, c.Select = "", Selection{} // the journal says so, too
	kit.Want(t, "the result", examine(t, c).Summary.Result.Code, "safe-mode")
}

// After safe mode, what is still in doubt is said, and when the archive was asked.
func TestResult_I15_StillInDoubtAfterReconcile(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Send(noon.Add(-3 * time.Hour))
	kit.Want(t, "the result", doubtOf(examine(t, s.config()).Summary, "index").Text, "The archive's own index was not compared with this ledger.")
	s.Item("A").Apply(noon.Add(-2*time.Hour), ledger.ReconcileRequired{})
	s.mark(ledger.MarkRestored, "", noon.Add(-2*time.Hour))
	s.mark(ledger.MarkReconciled, "", noon.Add(-time.Hour))
	sum := examine(t, s.config()).Summary
	kit.Check(t, sum.Result.Code == "not-complete" && strings.Contains(sum.Result.Text, "1 is in doubt since the ledger was put back"),
		`%+v, want sum.Result.Code = "not-complete", sum.Result.Text with "1 is in doubt since the ledger was put back"`, sum.Result)
	kit.Want(t, "the result", doubtOf(sum, "index").Text, "When safe mode ended, on 20 Nov 2026 13:32 CET, the archive was asked for everything. What came later was not compared on that occasion.")
	kit.Check(t, doubtOf(sum, "needs-reconcile").Count == 1 && doubtOf(sum, "put-back").Count == 1 && doubtOf(sum, "safe-mode").Count == 0,
		`%+v, want doubtOf(sum, "needs-reconcile").Count = 1, doubtOf(sum, "put-back").Count = 1, doubtOf(sum, "safe-mode").Count = 0`, sum.NotProven)
}

// An index that a person let count as complete is no proof, in any later audit.
func TestResult_I29_I32_AcceptedIndexIsNotProven(t *testing.T) {
	s := newShelf(t, "production")
	s.Item("A").Send(noon.Add(-3 * time.Hour))
	accept := func(at time.Time) {
		t.Helper()
		s.Mark(ledger.Mark{Name: ledger.MarkIndex, Vault: "ACME", Cause: "1 of 900 documents", By: ledger.Operator{UID: 1001}, At: at}, "ticket 4711")
	}
	accept(noon.Add(-time.Hour))
	s.mark(ledger.MarkDisposal, "", noon.Add(-time.Minute))
	want := "On 20 Nov 2026 13:32 CET the archive's index of vault ACME gave 1 of 900 documents. A person (uid 1001) let it count as complete: what it left out was not compared."
	kit.Want(t, "the result", doubtOf(examine(t, s.config()).Summary, "index-accepted").Text, want)
	for range 25 {
		accept(noon)
	}
	var named, more uint64
	for _, d := range examine(t, s.config()).Summary.NotProven {
		switch {
		case d.What == "index-accepted" && strings.HasPrefix(d.Text, "On 20 Nov"):
			named++
		case d.What == "index-accepted":
			more += d.Count
		}
	}
	kit.Check(t, named == 20 && more == 6, "%d named, %d more", named, more)
}

// The reason for a restore belongs to no entry; it is not erased for that.
func TestActs_I29_ReasonOfARestore(t *testing.T) {
	s := newShelf(t, "production")
	s.mark(ledger.MarkRestored, "the server burned down", noon)
	c := s.config()
	c.Reason = func(k archive.Key, rev uint32) (string, error) {
		notes, err := s.Notes(k)
		return notes[rev].Text, err
	}
	a := examine(t, c)
	kit.Check(t, len(a.Summary.Acts) == 1 && a.Summary.Acts[0].Reason == "the server burned down",
		`%+v, want len(a.Summary.Acts) = 1, a.Summary.Acts[0].Reason = "the server burned down"`, a.Summary.Acts)
	if page, _ := written(t, a, "html"); !strings.Contains(page, "<bdi>the ledger</bdi></td><td><bdi>the server burned down</bdi>") || strings.Contains(page, "erased") {
		t.Error("the page does not say it")
	}
}
