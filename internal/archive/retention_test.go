package archive

import (
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// The day before the end, the day of the end and the day after it, with and without leap days.
func TestRetention_Ended(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		when := kit.Value(time.Parse(time.RFC3339, s))(t)
		return when
	}
	for name, row := range map[string]struct {
		years         Retention
		archived, end string
	}{
		"TenYears":                 {10, "2026-11-20T13:32:00Z", "2036-11-20T00:00:00Z"},
		"OneYear":                  {1, "2026-11-20T00:00:00Z", "2027-11-20T00:00:00Z"},
		"Longest":                  {MaxRetention, "2026-12-31T23:59:59Z", "2041-12-31T00:00:00Z"},
		"LeapDay_ToALeapYear":      {8, "2028-02-29T12:00:00Z", "2036-02-29T00:00:00Z"},
		"LeapDay_ToNoLeapYear":     {10, "2028-02-29T12:00:00Z", "2038-03-01T00:00:00Z"},
		"DayBeforeLeapDay":         {10, "2028-02-28T12:00:00Z", "2038-02-28T00:00:00Z"},
		"AcrossLeapDays":           {10, "2027-03-01T12:00:00Z", "2037-03-01T00:00:00Z"},
		"Over2100_WhichIsNoLeap":   {12, "2088-02-29T12:00:00Z", "2100-03-01T00:00:00Z"},
		"TheServiceTellsItsZone":   {10, "2026-11-21T00:30:00+01:00", "2036-11-20T00:00:00Z"},
		"TheServiceIsBehindOfUTC":  {10, "2026-11-19T23:30:00-02:00", "2036-11-20T00:00:00Z"},
		"AFractionBeforeMidnight":  {10, "2026-11-19T23:59:59.999Z", "2036-11-19T00:00:00Z"},
		"AtMidnightOfTheFirstOfIt": {10, "2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			archived, end := at(row.archived), at(row.end)
			for _, one := range []struct {
				off  time.Duration
				over bool
			}{{-24 * time.Hour, false}, {-1, false}, {0, true}, {24 * time.Hour, true}, {400 * 24 * time.Hour, true}} {
				got := row.years.Ended(archived, end.Add(one.off))
				kit.Check(t, got == one.over, "%v from its end: ended %t", one.off, got)
			}
		})
	}
	if Retention(0).Ended(at("1990-01-01T00:00:00Z"), at("2090-01-01T00:00:00Z")) || Retention(10).Ended(time.Time{}, at("2090-01-01T00:00:00Z")) {
		t.Error("what nobody knows has ended")
	}
}
