package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
)

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
