package archive

import (
	"bytes"
	"encoding/json"
	"strings"
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
	type row struct {
		years         Retention
		archived, end string
	}
	kit.Rows(t, map[string]row{
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
	}, func(t *testing.T, row row) {
		archived, end := at(row.archived), at(row.end)
		for _, one := range []struct {
			off  time.Duration
			over bool
		}{{-24 * time.Hour, false}, {-1, false}, {0, true}, {24 * time.Hour, true}, {400 * 24 * time.Hour, true}} {
			got := row.years.Ended(archived, end.Add(one.off))
			kit.Check(t, got == one.over, "%v from its end: ended %t", one.off, got)
		}
	})
	if Retention(0).Ended(at("1990-01-01T00:00:00Z"), at("2090-01-01T00:00:00Z")) || Retention(10).Ended(time.Time{}, at("2090-01-01T00:00:00Z")) {
		t.Error("what nobody knows has ended")
	}
}

// What is taken for an identifier is written again as it was meant, and fits a path, a line and a URL.
func FuzzIdentifiers(f *testing.F) {
	for _, s := range []string{"10d90000-0000-4000-8000-00000000000A", "06gzjdqx1hf98hs4xds9252kmc", "06gzjdqx1hf9Ths4xds9252kmc", "06gzjdqx1hf98hs4xds9252\u212amc", "bum/../1", strings.Repeat("ab", 32), "{10d90000-0000-4000-8000-00000000000a}", "\u212a", "", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		kit.Check(t, err != nil || strings.EqualFold(id.String(), s), "%q is the ID %s", s, id)
		k, err := ParseKey(s)
		kit.Check(t, err != nil || len(s) == 26 && k.String() == strings.ToLower(s), "%q is the key %s", s, k)
		d, err := ParseDigest(s)
		kit.Check(t, err != nil || strings.EqualFold(d.String(), s), "%q is the digest %s", s, d)
		if r, err := ParseRemoteID(s); err == nil && (!strings.EqualFold(string(r), s) || strings.ContainsAny(s, "\r\n\x00 ") || s == "" || s == "." || s == "..") {
			t.Errorf("%q is the number %q", s, string(r))
		}
	})
}

// An amount keeps its value, digit by digit, from the text to the request.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"9007199254740993.10", "-0.0", "1e5", "00", ".5", "1.", "+1", "1_0", "٣", "0x1", strings.Repeat("9", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDecimal(s)
		if err != nil {
			return
		}
		kit.Check(t, string(d) == s && d.Rat() != nil && json.Valid([]byte(s)), "%q is taken for %q", s, string(d))
		doc := Document{Type: "Invoice", Number: "1", Date: "2026-10-31T00:00:00Z", Amount: d}
		back, err := ParseMetadata(doc.Metadata())
		kit.Check(t, err == nil && back.Amount == d && bytes.Equal(back.Metadata(), doc.Metadata()),
			"%q became %q: %v", s, string(back.Amount), err)
	})
}
