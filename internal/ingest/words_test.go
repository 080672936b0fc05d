package ingest

import (
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// I12: what the engine says of a document of a route names nothing that belongs to another one.
func TestWords_I12_EachRouteHasItsOwn(t *testing.T) {
	t.Parallel()
	for _, r := range ledger.Routes() {
		if _, ok := wordsByRoute[r]; !ok {
			t.Errorf("route %s has no words", r)
		}
		w := wordsOf(r)
		first := ledger.Entry{Route: r, Folder: "Otto 9"}
		texts := []string{w.claimed, w.underWay, conflictCause(first, ledger.Sealed{ID: archive.ID{1}}).Text}
		first.InDoubt = true
		texts = append(texts, conflictCause(first, ledger.Sealed{}).Text)
		for _, text := range texts {
			for _, word := range map[ledger.Route][]string{ledger.PDF: {"archive", "clientUUID", "network"}, ledger.Network: {"archive", "clientUUID", "PDF", "accounts-payable"}}[r] {
				if strings.Contains(text, word) {
					t.Errorf("%s says %q: %s", r, word, text)
				}
			}
			if text == "" || strings.Contains(text, "%!") {
				t.Errorf("%s: %q", r, text)
			}
		}
	}
}
