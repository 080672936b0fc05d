package archive

import (
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestLife_I6_EarlierOfWindowAndOwnExpiry(t *testing.T) {
	for name, row := range map[string]struct {
		ticket         Ticket
		alone, limited time.Duration // without a limit, and with one of 15 minutes
	}{
		"NothingKnown":              {Ticket{}, 15 * time.Minute, 15 * time.Minute},
		"SignedAtAlone":             {Ticket{Date: noon, SignedAt: noon.Add(-time.Hour)}, 15 * time.Minute, 15 * time.Minute},
		"ServiceClockAheadByAnHour": {Ticket{Date: noon.Add(time.Hour), SignedAt: noon.Add(time.Hour), Validity: 15 * time.Minute}, 15*time.Minute - time.Second, 15*time.Minute - time.Second},
		"SignedLongBeforeAnswer":    {Ticket{Date: noon.Add(5 * time.Minute), SignedAt: noon, Validity: 15 * time.Minute}, 10*time.Minute - time.Second, 10*time.Minute - time.Second},
		"SignedAfterTheAnswer":      {Ticket{Date: noon, SignedAt: noon.Add(3 * time.Second), Validity: 15 * time.Minute}, 15*time.Minute + 2*time.Second, 15 * time.Minute},
		"ShortValidity":             {Ticket{Date: noon, SignedAt: noon, Validity: 6 * time.Second}, 5 * time.Second, 5 * time.Second},
		"LongerThanTheLimit":        {Ticket{Date: noon, SignedAt: noon, Validity: time.Hour}, time.Hour - time.Second, 15 * time.Minute},
		"NoDateInAnswer":            {Ticket{SignedAt: noon, Validity: time.Minute}, time.Minute, time.Minute},
		"LongWithoutADate":          {Ticket{SignedAt: noon, Validity: time.Hour}, time.Hour, 15 * time.Minute},
		"ValidityAlone":             {Ticket{Date: noon, Validity: 5 * time.Minute}, 5 * time.Minute, 5 * time.Minute},
		"ExpiredOnArrival":          {Ticket{Date: noon.Add(time.Hour), SignedAt: noon, Validity: time.Minute}, -59*time.Minute - time.Second, -59*time.Minute - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Want(t, "the life", row.ticket.Life(), row.alone)
			limited := row.ticket.LimitLife(15 * time.Minute)
			if got := limited.Life(); got != row.limited || limited.LimitLife(15*time.Minute).Life() != got {
				t.Errorf("limited: Life = %v, want %v", got, row.limited)
			}
		})
	}
}
