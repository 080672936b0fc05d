package main

import (
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/report"
	"vaultd/internal/selfcheck"
)

// addChecked puts a ledger that stays as it is into c, with what its check
// found. notes are about the checkpoint, for people. If something was found, the
// report examines everything itself: it names what verify may omit.
func (a *app) addChecked(c *report.Config, l *boltledger.Ledger, found selfcheck.Verified) (notes []string) {
	c.Ledger, c.Head, c.Balance = l, l.Head(), l.Balance()
	if found.NotUsed != "" {
		notes = append(notes, "The checkpoint was not used: "+found.NotUsed)
	}
	if found.NotSaved != "" {
		notes = append(notes, "The next report will examine everything again: no checkpoint is left: "+found.NotSaved)
	}
	if !found.OK() {
		if a.inside != nil {
			a.inside.CheckNow()
		}
		c.Problems = found.Problems
		if found.OtherPast != "" {
			c.Problems = append(c.Problems, ledger.Problem{Where: "journal", What: found.OtherPast})
		}
		return notes
	}
	c.Examined = &report.Examined{Proof: found.Report}
	if b := found.Basis; b != nil {
		c.Examined.RestsOn = &report.RestsOn{Line: b.Line, Hash: b.Hash, At: b.At, Whole: b.Whole, ToLine: b.ToLine, Entries: found.Resting}
	}
	return notes
}
