package present

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// A history has every day and every month once, without a gap, up to those of its time zone, over leap days and ends of years.
func TestNewHistory_NoDayIsMissing(t *testing.T) {
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)} {
		for day := time.Date(2027, 12, 1, 11, 0, 0, 0, time.UTC); day.Year() < 2029; day = day.AddDate(0, 0, 1) {
			h := NewHistory(Clock{Now: day, Location: zone})
			here := day.In(zone)
			y, m, d := here.Date()
			last := h.Days[HistoryDays-1]
			kit.Need(t, len(h.Days) == HistoryDays && last == (DayCounts{Year: y, Month: m, Day: d}), "%v: the last day is %+v", here, last)
			if last := h.Months[HistoryMonths-1]; len(h.Months) != HistoryMonths || last != (MonthCounts{Year: y, Month: m}) {
				t.Fatalf("%v: the last month is %+v", here, last)
			}
			for i := 1; i < HistoryDays; i++ {
				a, b := h.Days[i-1], h.Days[i]
				kit.Need(t, calendarDay(b.Year, b.Month, b.Day).Sub(calendarDay(a.Year, a.Month, a.Day)) == 24*time.Hour,
					"%v: %+v follows %+v", here, b, a)
			}
			for i := 1; i < HistoryMonths; i++ {
				a, b := h.Months[i-1], h.Months[i]
				kit.Need(t, 12*b.Year+int(b.Month) == 12*a.Year+int(a.Month)+1, "%v: %+v follows %+v", here, b, a)
			}
			for _, at := range []time.Time{here, here.AddDate(0, 0, -29), here.AddDate(0, 0, -30), here.AddDate(0, 0, 1), here.AddDate(-3, 0, 0)} {
				h.AddRejected(at)
			}
			kit.Need(t, h.Days[HistoryDays-1].Rejected == 1 && h.Days[0].Rejected == 1,
				"%v: %+v, want h.Days[HistoryDays-1].Rejected = 1, h.Days[0].Rejected = 1", here, h.Days)
		}
	}
}

// A delay belongs to one part, from its lower limit on.
func TestSetDelays_PartsAreHalfOpen(t *testing.T) {
	var h History
	delays := []time.Duration{0, 365 * 24 * time.Hour}
	for _, limit := range DelayLimits {
		delays = append(delays, limit-1, limit)
	}
	h.SetDelays(delays, delays[:3])
	for i, d := range h.Delays {
		kit.Check(t, d.Documents == 2 && (i <= 0 || d.From == h.Delays[i-1].Below) && (d.Below == 0) == (i == len(DelayLimits)), "part %d: %+v", i, d)
	}
	kit.Check(t, h.DelaysOf == len(delays) && h.DeliveredOf == 3 && h.Delays[0].Delivered == 2 && h.Delays[len(DelayLimits)].Delivered == 1,
		"of %d and %d delays: %+v", h.DelaysOf, h.DeliveredOf, h.Delays)
}

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

// I26: the error of the clock is shown in a unit that people use.
func TestDescribeClock_I26(t *testing.T) {
	for ahead, want := range map[float64]string{
		0.4: "0.4 s ahead of the service's", -2: "2.0 s behind the service's", 3 * 3600: "3 h ahead of the service's",
		-157679999.1: "1824 days behind the service's", 1e300: "24855 days ahead of the service's",
	} {
		kit.Want(t, fmt.Sprintf("describeClock(%v)", ahead), describeClock(ahead), want)
	}
}
