package present

import (
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// A history has every day and every month once, without a gap, up to those of its time zone, over leap days and ends of years.
func TestNewHistory_NoDayIsMissing(t *testing.T) {
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)} {
		for day := time.Date(2027, 12, 1, 11, 0, 0, 0, time.UTC); day.Year() < 2029; day = day.AddDate(0, 0, 1) {
			h := NewHistory(Clock{Now: day, Location: zone})
			here := day.In(zone)
			y, m, d := here.Date()
			if last := h.Days[HistoryDays-1]; len(h.Days) != HistoryDays || last != (DayCounts{Year: y, Month: m, Day: d}) {
				t.Fatalf("%v: the last day is %+v", here, last)
			}
			if last := h.Months[HistoryMonths-1]; len(h.Months) != HistoryMonths || last != (MonthCounts{Year: y, Month: m}) {
				t.Fatalf("%v: the last month is %+v", here, last)
			}
			for i := 1; i < HistoryDays; i++ {
				a, b := h.Days[i-1], h.Days[i]
				if calendarDay(b.Year, b.Month, b.Day).Sub(calendarDay(a.Year, a.Month, a.Day)) != 24*time.Hour {
					t.Fatalf("%v: %+v follows %+v", here, b, a)
				}
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
		if d.Documents != 2 || i > 0 && d.From != h.Delays[i-1].Below || (d.Below == 0) != (i == len(DelayLimits)) {
			t.Errorf("part %d: %+v", i, d)
		}
	}
	if h.DelaysOf != len(delays) || h.DeliveredOf != 3 || h.Delays[0].Delivered != 2 || h.Delays[len(DelayLimits)].Delivered != 1 {
		t.Errorf("of %d and %d delays: %+v", h.DelaysOf, h.DeliveredOf, h.Delays)
	}
}
