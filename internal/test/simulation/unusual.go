package simulation

import (
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// findUnsaid names pairs of documents with one invoice number of which neither says so.
func findUnsaid(entries []ledger.Entry) (all []string) {
	silent := map[archive.NumberDigest]string{}
	for _, e := range entries {
		if e.Number.IsZero() || e.State == ledger.Rejected || !e.SameNumber.IsZero() || !e.Supersedes.IsZero() {
			continue
		}
		if other, ok := silent[e.Number]; ok {
			all = append(all, fmt.Sprintf("%q and %q have one invoice number, and neither says so", other, e.Folder))
		}
		silent[e.Number] = e.Folder
	}
	return all
}
