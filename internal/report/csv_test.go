package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/sanitize"
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
		if !marked || strings.Count(text, "\r\n") != 8 || strings.Count(text, "\n") != 8 {
			t.Errorf("mark %v, %d lines", marked, strings.Count(text, "\n"))
		}
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

// bare is a formula that no apostrophe keeps from being one.
var bare = regexp.MustCompile(`(^|[,;|\t\r\n])["\s]*[=+\-@＝＋－＠]`)

// No cell begins a formula, whatever separator the file is read with, and every cell stays one.
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
