package receive

import (
	"testing"
	"time"

	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// I4: bytes that look wrong must come often enough and for long enough; what a person decided needs neither.
func TestIsBelieved_I4(t *testing.T) {
	for name, r := range map[string]struct {
		d    arrival.Doubt
		want bool
	}{
		"OftenAndLong": {arrival.Doubt{Times: leastFetches, For: time.Hour}, true},
		"OnlyOften":    {arrival.Doubt{Times: 1000, For: time.Hour - 1}, false},
		"OnlyLong":     {arrival.Doubt{Times: leastFetches - 1, For: 100 * time.Hour}, false},
		"APerson":      {arrival.Doubt{Times: 1, Overruled: true}, true},
	} {
		kit.Want(t, name, isBelieved(r.d, time.Hour), r.want)
	}
}
