// The test of this file is inside the package: it reads the words of all routes, where
// a test from outside would have to bring about each situation in each route.
package ingest

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I12: the words about a document of a route name nothing that belongs to another route.
func TestWords_I12_EachRouteHasItsOwn(t *testing.T) {
	t.Parallel()
	for _, r := range ledger.Routes() {
		_, ok := wordsByRoute[r]
		kit.Check(t, ok, "route %s has no words, want some", r)
		w := wordsOf(r)
		first := ledger.Entry{Route: r, Folder: "Otto 9"}
		texts := []string{w.claimed, w.underWay, conflictCause(first, ledger.Sealed{ID: archive.ID{1}}).Text}
		first.InDoubt = true
		texts = append(texts, conflictCause(first, ledger.Sealed{}).Text)
		for _, text := range texts {
			for _, word := range map[ledger.Route][]string{ledger.PDF: {"archive", "clientUUID", "network"}, ledger.Network: {"archive", "clientUUID", "PDF", "accounts-payable"}}[r] {
				kit.Lacks(t, fmt.Sprintf("text of route %s", r), text, word)
			}
			kit.Check(t, text != "" && !strings.Contains(text, "%!"),
				"text of route %s = %q, want a complete one", r, text)
		}
	}
}
