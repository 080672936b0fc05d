package present

import (
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// No reason is without its own words.
func TestAction_EveryReasonHasWords(t *testing.T) {
	said := map[string]ledger.IllegalReason{}
	for _, r := range ledger.IllegalReasons() {
		text := explainIllegal(ledger.Entry{State: ledger.Quarantined}, r)
		before, twice := said[text]
		kit.Check(t, !twice && text != "", "%s and %s: %q", before, r, text)
		said[text] = r
	}
}
