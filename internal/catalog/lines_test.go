package catalog

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// A line about what comes in tells of no entry, and is no fault.
func TestKeyOf_PassesArrivalsOver(t *testing.T) {
	key := archive.NewKey(time.Unix(1_790_000_000, 0))
	a := arrival.Arrival{Key: key, Rev: 1, Kind: arrival.Extract, State: arrival.Announced, Item: "4711"}
	line := arrival.NewLine(2, a, arrival.Listed{}, archive.Instant{}).Encode()
	if _, is, err := keyOf(line); is || err != nil {
		t.Errorf("the line of an arrival: %t, %v", is, err)
	}
	line = ledger.NewLine(2, ledger.Entry{Key: key, Rev: 1, State: ledger.Discovered}, ledger.ClaimedFolder{}, archive.Instant{}).Encode()
	if k, is, err := keyOf(line); !is || err != nil || k != key {
		t.Errorf("the line of an entry: %s, %t, %v", k, is, err)
	}
}
