package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

var updateGuarantees = flag.Bool("update-guarantees", false, "write docs/guarantees.md anew")

const guaranteesPage = "../../docs/guarantees.md"

// TestGuarantees_PageIsTheList holds the page that auditors read against the list that audits print.
func TestGuarantees_PageIsTheList(t *testing.T) {
	want := guaranteesText()
	if *updateGuarantees {
		kit.Must(t, os.WriteFile(guaranteesPage, []byte(want), 0o644))
	}
	have := kit.Value(os.ReadFile(guaranteesPage))(t)
	kit.Check(t, string(have) == want, "docs/guarantees.md is not what the list says; make it anew with \"make docs\"")
}

// TestGuarantees_TestsExist keeps the page from naming a test that is gone.
func TestGuarantees_TestsExist(t *testing.T) {
	last := 0
	for _, g := range guarantees {
		n, err := strconv.Atoi(strings.TrimPrefix(g.id, "I"))
		kit.Check(t, err == nil && n > last, "%s stands behind I%d", g.id, last)
		last = n
		kit.Check(t, len(g.tests) != 0, "%s names no test", g.id)
		for _, test := range g.tests {
			dir, name, _ := strings.Cut(test, " ")
			kit.Check(t, defined(t, dir, name), "%s names %s, which %s does not have", g.id, name, dir)
		}
	}
}

func defined(t *testing.T, dir, name string) bool {
	t.Helper()
	files := kit.Value(filepath.Glob(filepath.Join("../..", dir, "*_test.go")))(t)
	function := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(name) + `\(`)
	for _, f := range files {
		text := kit.Value(os.ReadFile(f))(t)
		if function.Match(text) {
			return true
		}
	}
	return false
}

// TestPromises_I12_SayWhatWasFound: what an audit says of a promise follows from the proof.
func TestPromises_I12_SayWhatWasFound(t *testing.T) {
	r := proof.Report{Lines: 9, Entries: 2, Findings: []proof.Finding{{Promise: "I14", Key: archive.Key{}, Text: "x"}, {Promise: "I14", Text: "y"}}}
	for _, p := range (&Audit{proof: r}).listPromises() {
		switch {
		case p.ID == "I14" && (p.Findings != 2 || p.Today != "BROKEN: 2 findings, see the top"):
			t.Errorf("I14: %+v", p)
		case p.ID == "I1" && p.Today != "no contradiction in 9 journal lines and 2 entries":
			t.Errorf("I1: %q", p.Today)
		case (p.ID == "I27" || p.ID == "I5") && (p.Checked || strings.Contains(p.Today, "journal")):
			t.Errorf("%s cannot be checked by an audit, and it says %q", p.ID, p.Today)
		}
	}
}

func guaranteesText() string {
	var b strings.Builder
	b.WriteString(`# What vaultd guarantees

<!-- Generated from internal/report: make docs -->

For auditors, and for those who answer them. Each promise is followed by how it is kept, by what it does not cover, and by the tests that would
fail if it did not hold. "Checked" means that every ` + "`vaultd audit --whole`" + ` and every ` + "`vaultd verify --whole`" + ` examine the whole ledger for contradictions to it. Without --whole
they examine what came since the last time, and say so. The audit
prints this list with what it found that day. That none was found is no proof: what left no trace in the ledger cannot be seen there. All of
them, checked or not, are held by how the program is built, and by its tests.

` + "`make test` and `make long`" + ` run all tests that are named here; ` + "`make simulate`, `make campaign` and `make mutants`" + ` are the long forms:
years of simulated faults, a real process that is killed again and again, and known mistakes that the tests must find.

`)
	for _, g := range guarantees {
		fmt.Fprintf(&b, "## %s\n\n**%s**", g.id, g.promise)
		if g.checked {
			b.WriteString(" Checked.")
		}
		fmt.Fprintf(&b, "\n\n%s\n", g.how)
		if g.limit != "" {
			fmt.Fprintf(&b, "\nNot covered: %s\n", g.limit)
		}
		b.WriteString("\nShown by:")
		for i, test := range g.tests {
			dir, name, _ := strings.Cut(test, " ")
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " `%s` in [%s](../%s)", name, dir, dir)
		}
		b.WriteString("\n\n")
	}
	b.WriteString(`## What cannot be guaranteed

Every audit prints these under "Not proven", with that day's numbers:

- Invoices that nobody dropped: there is no list of what was expected.
- Registrations whose answer was lost: at most as many as lost answers; they hold no content.
- Uploads whose end nobody knows; they are named.
- Whether the service removes doubles by itself.
- Archived documents that were not downloaded again and compared.
- Folders that were taken as complete because they had been quiet.
- What the archive's own index says, after the time at which ` + "`vaultd reconcile`" + ` last compared it.
- What an index left out that was not read to its end, and that a person let count as complete.
- What was done after the last line of a ledger that was put back, until ` + "`vaultd reconcile`" + ` has asked the archive.
`)
	return b.String()
}
