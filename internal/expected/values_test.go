package expected

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// I31: amounts and days are read exactly, and what cannot be read in one way is
// never guessed.
func TestParse_I31_ReadsExactly(t *testing.T) {
	for text, want := range map[string]string{"119.00": "119.00", "+0119.5": "119.5", "-0.00": "0.00", "-1.10": "-1.10", "1.19e2": "119", "12E-1": "1.2", " 7 ": "7",
		"1.234,50": "1234.50", "1,234.50": "1234.50", "1.234.567": "1234567", "12 EUR": "12", "9007199254740993.10": "9007199254740993.10", "−5,5": "-5.5", "0,125": "0.125"} {
		got, _, err := ParseAmount(text, 0)
		kit.Check(t, err == nil && string(got) == want, "amount %q: %q, %v, want %q", text, got, err, want)
	}
	for _, text := range []string{"", "1.23,4,5", "1e999999999", "0x10", "1/3", "--1", ".", "NaN", "Inf", "1.2.3", "12.34.567", strings.Repeat("9", 61)} {
		got, _, err := ParseAmount(text, 0)
		kit.Check(t, err != nil && !errors.Is(err, ErrTwoWays), "amount %q: %q, %v, want an error", text, got, err)
	}
	for _, text := range []string{"1.234", "12,345", "999.999", "-1.234"} {
		got, _, err := ParseAmount(text, Mixed)
		kit.Check(t, errors.Is(err, ErrTwoWays), "amount %q: %q, %v, want ErrTwoWays", text, got, err)
	}
	for text, want := range map[string]string{"1e2": "100", "-1.50": "-1.50", "12E-1": "1.2"} {
		if got, err := ParseNumber(text); err != nil || string(got) != want && string(got) != strings.TrimSuffix(want, "0") {
			t.Errorf("number %q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"1,5", "1e999999999", "0x10", "1/3", "true", "", strings.Repeat("9", 61)} {
		kit.Fails(t, fmt.Sprintf("number %q is read", text), kit.Err(ParseNumber(text)))
	}
	berlin := kit.Value(time.LoadLocation("Europe/Berlin"))(t)
	for text, want := range map[string]string{"2026-10-05": "2026-10-05", "2026-10-05T00:00:00Z": "2026-10-05", "2026-10-05T00:00:00+05:00": "2026-10-05", "2026-10-05T22:30:00Z": "2026-10-06",
		"2026-10-05T23:59:59": "2026-10-05", "2026-10-05T23:59:59.25": "2026-10-05", "13/10/2026, 10:17:02": "2026-10-13", "10/13/2026 10:17 PM": "2026-10-13", "05.10.2026": "2026-10-05", "5.10.26": "2026-10-05", "20261005": "2026-10-05"} {
		kit.Want(t, fmt.Sprintf("date %q", text), kit.Value(ParseDay(text, 0, berlin))(t), want)
	}
	for _, text := range []string{"", "soon", "2026-02-30", "13/13/2026", "2026", "13/10/2026 noon", "1000-2-3-4"} {
		got, err := ParseDay(text, 0, berlin)
		kit.Check(t, err != nil && !errors.Is(err, ErrTwoWays), "date %q: %q, %v, want an error", text, got, err)
	}
}
