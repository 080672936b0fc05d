package dropwork

import (
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// Entries that a person must decide about are never resolved by a name.
func TestReturned_WhatOnlyAPersonResolves(t *testing.T) {
	ok := ledger.Entry{State: ledger.Rejected, Source: ledger.Returned}
	kit.Check(t, isCorrectable(ok), "a plain rejection cannot be corrected, want it correctable")
	for name, change := range map[string]func(e *ledger.Entry){
		"InDoubt":      func(e *ledger.Entry) { e.InDoubt = true },
		"Contradicted": func(e *ledger.Entry) { e.Contradicted = true },
		"Resolved":     func(e *ledger.Entry) { e.Resolved = true },
		"OnHold":       func(e *ledger.Entry) { e.Hold = true },
		"QuestionOpen": func(e *ledger.Entry) {
			e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "b"}, Fate: ledger.MaybeStored}}
		},
		"NotReturned": func(e *ledger.Entry) { e.Source = ledger.Claimed },
		"Quarantined": func(e *ledger.Entry) { e.State = ledger.Quarantined },
		"Duplicate":   func(e *ledger.Entry) { e.State = ledger.Duplicate },
	} {
		e := ok
		if change(&e); isCorrectable(e) {
			t.Errorf("%s: correctable by dropping it again, want not", name)
		}
	}
}
