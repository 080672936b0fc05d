package present

import (
	"testing"

	"vaultd/internal/ledger"
)

// No reason is without its own words.
func TestAction_EveryReasonHasWords(t *testing.T) {
	said := map[string]ledger.IllegalReason{}
	for _, r := range ledger.IllegalReasons() {
		text := explainIllegal(ledger.Entry{State: ledger.Quarantined}, r)
		if before, twice := said[text]; twice || text == "" {
			t.Errorf("%s and %s: %q", before, r, text)
		}
		said[text] = r
	}
}
