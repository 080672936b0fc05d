package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Names come from people who may wish to steer an administrator's terminal.
func TestSafe_NothingSteersATerminal(t *testing.T) {
	for in, want := range map[string]string{
		"Müller 4711 €": "Müller 4711 €", "日本 e\u0301": "日本 e\u0301", `\\files\acme`: `\\files\acme`,
		"a\x1b[2Jb": `a\x1b[2Jb`, "a\nb\tc\r": `a\x0ab\x09c\x0d`, "\x7f\u0080\u009b": `\x7f\u{80}\u{9b}`,
		"gpj\u202eexe": `gpj\u{202e}exe`, "\u2066a\u2069": `\u{2066}a\u{2069}`, "a\u200bb\ufeff": `a\u{200b}b\u{feff}`,
		"a\u2028b": `a\u{2028}b`, "\xff\xfeok": `\xff\xfeok`, "\ufffd": `\u{fffd}`, "\U000e0041": `\u{e0041}`,
	} {
		if got := sanitize.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("a\x1b[0m\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := sanitize.Text(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !sanitize.IsPrintable(r) }) || sanitize.Text(got) != got {
			t.Errorf("%q: %q", s, got)
		}
	})
}

func TestSizesAndAges(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 1_009: "1.0 kB", 99_949: "99.9 kB", 99_950: "100 kB", 999_499: "999 kB", 999_949: "1.0 MB", 1_234_567: "1.2 MB",
		20_000_000_000: "20.0 GB", 210_000_000_000: "210 GB", 1<<63 - 1: "9.2 EB", -1: "unknown", 1: "1 byte", 2: "2 bytes",
	} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 20 * time.Second: "20 s", 41 * time.Minute: "41 min", 5*time.Hour + 28*time.Minute: "5 h 28 min",
		9 * time.Hour: "9 h", 30 * time.Hour: "30 h", 48 * time.Hour: "48 h", 72 * time.Hour: "3 days",
	} {
		if got := ageText(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestClock_TellsTheDayWhereItIsAnother(t *testing.T) {
	c := clock{noon, time.FixedZone("CET", 3600)}
	for in, want := range map[time.Time]string{
		noon: "14:32", noon.Add(-14 * time.Hour): "00:32", noon.Add(-15 * time.Hour): "19 Nov 23:32",
		noon.AddDate(-1, 0, 0): "20 Nov 2025 14:32", {}: "-",
	} {
		if got := c.brief(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	if c.today(noon.AddDate(-1, 0, 0)) || !c.today(noon) || c.today(time.Time{}) {
		t.Error("another day is taken for today")
	}
}

func TestWords_EveryStateAndFateHasThem(t *testing.T) {
	for _, s := range ledger.States() {
		if stateMeans[s] == "" {
			t.Errorf("no words for %s", s)
		}
	}
	for src := ledger.Claimed; src <= ledger.Gone; src++ {
		if whereabouts(ledger.Entry{Source: src}) == "unknown" {
			t.Errorf("no words for %s", src)
		}
	}
	for f := ledger.Unsent; f <= ledger.Declined; f++ {
		if fateMeans(f) == "unknown" {
			t.Errorf("no words for fate %d", f)
		}
	}
	if doubt := meaning(ledger.Entry{State: ledger.Rejected, InDoubt: true}); strings.Contains(doubt, "certainly") {
		t.Error(doubt)
	}
}

// uncounted is a number in front of a plural that nobody has counted: one of them would be "1 bytes".
var uncounted = regexp.MustCompile(`%d (?:bytes|lines|entries|folders|documents|files|registrations|times)\b`)

// What a person reads says "1 byte" and "2 bytes": counted things go through many.
func TestWords_OneIsNoPlural(t *testing.T) {
	limits := []string{"the path is longer than %d bytes", "at most %d files", "has %d files; one invoice", "is %d bytes; the service takes", "archived %d times"} // never one
	for _, dir := range []string{".", "../../internal/daemon", "../../internal/packager", "../../internal/report", "../../internal/recovery"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatal(err, dir)
		}
		for _, name := range names {
			for line := range strings.Lines(readPage(t, name)) {
				told := uncounted.MatchString(line) && !strings.Contains(line, "fmt.Errorf") && !strings.HasSuffix(name, "_test.go")
				if told && !slices.ContainsFunc(limits, func(l string) bool { return strings.Contains(line, l) }) {
					t.Errorf("%s: a plural for any number: %s", name, strings.TrimSpace(line))
				}
			}
		}
	}
}
