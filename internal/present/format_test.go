package present

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

var noon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

func TestSizesAndAges(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 999: "999 bytes", 1000: "1.0 kB", 1_009: "1.0 kB", 99_949: "99.9 kB", 99_950: "100 kB", 999_499: "999 kB", 999_949: "1.0 MB", 1_234_567: "1.2 MB",
		20_000_000_000: "20.0 GB", 210_000_000_000: "210 GB", 1<<63 - 1: "9.2 EB", -1: "unknown", 1: "1 byte", 2: "2 bytes",
	} {
		kit.Want(t, fmt.Sprint(n), FormatSize(n), want)
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 20 * time.Second: "20 s", 41 * time.Minute: "41 min", 5*time.Hour + 28*time.Minute: "5 h 28 min",
		9 * time.Hour: "9 h", 30 * time.Hour: "30 h", 48 * time.Hour: "48 h", 72 * time.Hour: "3 days",
	} {
		kit.Want(t, fmt.Sprint(d), FormatAge(d), want)
	}
}

func TestClock_TellsTheDayWhereItIsAnother(t *testing.T) {
	c := Clock{noon, time.FixedZone("CET", 3600)}
	for in, want := range map[time.Time]string{
		noon: "14:32", noon.Add(-14 * time.Hour): "00:32", noon.Add(-15 * time.Hour): "19 Nov 23:32",
		noon.AddDate(-1, 0, 0): "20 Nov 2025 14:32", {}: "-",
	} {
		kit.Want(t, fmt.Sprint(in), c.Brief(in), want)
	}
	kit.Check(t, !c.IsToday(noon.AddDate(-1, 0, 0)) && c.IsToday(noon) && !c.IsToday(time.Time{}),
		"another day is taken for today")
}

func TestWords_EveryStateAndFateHasThem(t *testing.T) {
	for _, s := range ledger.States() {
		kit.Check(t, vaultWords.means[s] != "", "no words for %s", s)
	}
	for src := ledger.Claimed; src <= ledger.Gone; src++ {
		kit.Check(t, DescribePlace(ledger.Entry{Source: src}) != "unknown", "no words for %s", src)
	}
	for f := ledger.Unsent; f <= ledger.Declined; f++ {
		for _, r := range ledger.Routes() {
			kit.Check(t, WordsOf(r).explainFate(f) != "unknown", "%s: no words for fate %d", r, f)
		}
	}
	kit.Lacks(t, "the state", explainState(ledger.Entry{State: ledger.Rejected, InDoubt: true}), "certainly")
}

// I26: how far the clock is off is told in a unit that people count in.
func TestDescribeClock_I26(t *testing.T) {
	for ahead, want := range map[float64]string{
		0.4: "0.4 s ahead of the service's", -2: "2.0 s behind the service's", 3 * 3600: "3 h ahead of the service's",
		-157679999.1: "1824 days behind the service's", 1e300: "24855 days ahead of the service's",
	} {
		kit.Want(t, fmt.Sprintf("describeClock(%v)", ahead), describeClock(ahead), want)
	}
}
