package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
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

// reportSince makes a report that goes on from the last one, as of a time. It notes it where it is to be.
func (s *shelf) reportSince(at time.Time, noted bool) (*Audit, []string) {
	s.t.Helper()
	c := s.config()
	c.Made, c.Select.SinceLast = at, true
	a := examine(s.t, c)
	text, end := written(s.t, a, "json")
	var all struct{ Documents []row2 }
	if err := json.Unmarshal([]byte(text), &all); err != nil || !end.Agrees || !a.Summary.Check.Agrees {
		s.t.Fatalf("err = %v, end = %v, a.Summary.Check = %v, want no error, end.Agrees, a.Summary.Check.Agrees", err, end, a.Summary.Check)
	}
	if noted {
		s.Mark(ledger.Mark{Name: ledger.MarkReported, By: ledger.Operator{UID: 7}, At: at, Cause: ledger.ReportedCause(a.Summary.About.HeadLine)}, "")
	}
	var folders []string
	for _, d := range all.Documents {
		folders = append(folders, d.Folder)
	}
	slices.Sort(folders)
	return a, folders
}

// A report goes on from the last one: it has what was on its way then and what came since, and names what came late. One that was not
// noted is repeated.
func TestSince_GoesOnFromTheLastReport(t *testing.T) {
	s := newShelf(t, "production")
	month := func(m time.Month, day int) time.Time { return time.Date(2026, m, day, 9, 0, 0, 0, time.UTC) }
	s.Item("September 1").Archive(month(9, 10), time.Hour)
	s.Item("Open 2").Claim(month(9, 20))
	for _, noted := range []bool{false, true} { // the first one broke off before it was noted
		a, folders := s.reportSince(month(10, 5), noted)
		if !slices.Equal(folders, []string{"Open 2", "September 1"}) || !strings.Contains(a.Summary.About.Selection, "the first report of its kind") || a.Summary.Since.At != nil {
			t.Errorf(`%q, %+v, want folders = %v, a.Summary.About.Selection with "the first report of its kind", a.Summary.Since.At = nil`, folders, a.Summary.Since, []string{"Open 2", "September 1"})
		}
	}
	s.Item("September 1").Apply(month(10, 20), ledger.Held{By: ledger.Operator{UID: 1001}}) // it had ended: what comes later is no news
	s.Add(fill.Item{Name: "Late 3", Document: archive.Document{Type: "Invoice", Number: "RE 3", Date: "2026-09-30T00:00:00Z", SenderName: "Huber", Amount: "1.00", Currency: "EUR"}}).Archive(month(10, 21), time.Hour)
	s.Add(fill.Item{Name: "New 4", Document: archive.Document{Type: "Invoice", Number: "RE 4", Date: "2026-10-02T00:00:00Z", SenderName: "Huber", Amount: "2.00", Currency: "EUR"}}).Archive(month(10, 22), time.Hour)
	s.Item("Open 2").Refuse(month(10, 23), ledger.Cause{Code: "x"})
	a, folders := s.reportSince(month(11, 5), true)
	kit.Check(t, slices.Equal(folders, []string{"Late 3", "New 4", "Open 2"}) && a.Summary.Selected.Seen == 3,
		"%q, %+v, want folders = %v, a.Summary.Selected.Seen = 3", folders, a.Summary.Selected, []string{"Late 3", "New 4", "Open 2"})
	if l := a.Summary.Since; l.Late != 1 || !slices.Equal(l.Names, []string{"Late 3 (acme-in), archived: RE 3, Huber, 2026-09-30, EUR, 1.00"}) || !l.At.Equal(month(10, 5)) {
		t.Errorf("%+v, want l.Late = 1, l.Names = %v, l.At = %v", l, []string{"Late 3 (acme-in), archived: RE 3, Huber, 2026-09-30, EUR, 1.00"}, month(10, 5))
	}
	kit.Want(t, fmt.Sprintf("a report counts as an act: %+v", a.Summary.Acts), a.Summary.ManualActions, 1)
	page, _ := written(t, a, "html")
	kit.Holds(t, "the page", page, "Came late", "1 document was taken after the last report", "since the report of 5 Oct 2026")
	_, folders = s.reportSince(month(12, 5), true)
	kit.Check(t, len(folders) == 0, "nothing happened, and the report has %q", folders)
}

// Over random worlds each folder is in the reports from when it is taken to when it ends, in each of them once, and in no later one.
func TestSince_I1_NoFolderIsLeftOut(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 5))
		s := newShelf(t, "production")
		var open []string
		due := map[string]bool{} // what the next report must have
		at := noon.AddDate(0, -8, 0)
		for range 6 {
			for range r.IntN(8) {
				at = at.Add(time.Hour)
				folder := fmt.Sprint("F", s.Count())
				due[folder] = true
				if r.IntN(2) == 0 {
					s.Item(folder).Archive(at, time.Minute)
					continue
				}
				s.Item(folder).Claim(at)
				open = append(open, folder)
			}
			open = slices.DeleteFunc(open, func(folder string) bool {
				if r.IntN(3) > 0 {
					return false
				}
				at = at.Add(time.Minute)
				s.Item(folder).Refuse(at, ledger.Cause{Code: "x"})
				return true
			})
			at = at.Add(time.Hour)
			noted := r.IntN(4) > 0
			_, got := s.reportSince(at, noted)
			var want []string
			for folder := range due {
				want = append(want, folder)
			}
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("seed %d: %q, want %q", seed, got, want)
			}
			if noted {
				due = map[string]bool{}
				for _, folder := range open {
					due[folder] = true
				}
			}
		}
	}
}

// A mark that names no line, or one that is not there yet, is refused.
func TestSince_MarkNeedsALine(t *testing.T) {
	s := newShelf(t, "production")
	for _, cause := range []string{"", "up to line", "up to line 0", "up to line x", ledger.ReportedCause(99)} {
		err := s.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkReported, At: noon, Cause: cause}, nil)
		kit.Check(t, err != nil, "%q was taken", cause)
	}
}

// anonymousMemory is what this process has in memory that is no file's.
func anonymousMemory(b *testing.B) int64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("no /proc")
	}
	_, rest, _ := bytes.Cut(status, []byte("RssAnon:"))
	kb := kit.Value(strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64))(b)
	return kb << 10
}

// cpuTime is what this process has computed, on all cores: the others' work does not count.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	kit.Must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memoryGauge looks at the memory now and then.
type memoryGauge struct {
	b             *testing.B
	written, next int64
	peak          int64
}

func (g *memoryGauge) Write(p []byte) (int, error) {
	if g.written += int64(len(p)); g.written >= g.next {
		g.next = g.written + 4<<20
		g.peak = max(g.peak, anonymousMemory(g.b))
	}
	return len(p), nil
}

// BenchmarkReport tells how long the rows of a real ledger take in each form, and the memory that they take: by the slope between two
// sizes it is known for more. What the examination left in memory is told beside it.
func BenchmarkReport(b *testing.B) {
	for _, size := range []int{5_000, 50_000} {
		s := benchShelf(b, size)
		for _, form := range []string{"csv", "xlsx", "page"} {
			b.Run(fmt.Sprint(size, "/", form), func(b *testing.B) {
				for b.Loop() {
					c := s.config()
					a, err := Examine(b.Context(), c)
					kit.Must(b, err)
					examined := anonymousMemory(b)
					debug.FreeOSMemory() // what the proof needed is another measurement
					g := &memoryGauge{b: b}
					base := anonymousMemory(b)
					begun := cpuTime(b)
					switch form {
					case "csv":
						_, err = a.CSV(b.Context(), g, ',')
					case "xlsx":
						_, err = a.XLSX(b.Context(), g)
					case "page":
						_, err = a.Page(b.Context(), io.Discard, TableFile{"x.csv", a.NewCSV(g, ',')}, TableFile{"x.xlsx", a.NewXLSX(g)})
					}
					kit.Must(b, err)
					b.ReportMetric(float64(size)/(cpuTime(b)-begun).Seconds(), "rows/cpu-s")
					b.ReportMetric(float64(examined)/(1<<20), "MiB-examined")
					b.ReportMetric(float64(g.peak-base)/(1<<20), "MiB-rows")
					b.ReportMetric(float64(g.written)/float64(size), "B/row")
				}
			})
		}
	}
}

// benchShelf has so many archived folders in a real ledger, written in batches.
func benchShelf(b *testing.B, size int) *shelf {
	b.Helper()
	s := newShelf(b, "production")
	f := flood{size}
	for from := 0; from < size; from += 1000 {
		var all []ledger.Change
		for i := from; i < min(from+1000, size); i++ {
			at := noon.Add(-time.Duration(size-i) * time.Second)
			it := f.item(i)
			_, doc := it.Sealed()
			all = append(all, ledger.Change{Key: fill.Key(at, i), Events: slices.Concat(it.Life(at, at.Add(time.Hour))[:6]...), Document: doc, At: archive.Instant{Wall: at}})
		}
		s.Commit(all...)
	}
	return s
}
