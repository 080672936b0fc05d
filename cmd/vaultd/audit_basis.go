package main

import (
	"context"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/report"
	"vaultd/internal/selfcheck"
)

// examineLedger examines a ledger that nobody changes meanwhile as verify does,
// for a report, and puts it into c with what it found. notes say what people
// should know of the checkpoint. If something was found, the report examines
// everything itself: it names what verify need not name.
func (v view) examineLedger(ctx context.Context, a *app, l *boltledger.Ledger, c *report.Config, what extent) (notes []string, err error) {
	how := selfcheck.Verification{StateDir: v.cfg.StateDir, Program: buildVersion(), Whole: bool(what), Now: time.Now}
	c.Ledger, c.Head, c.Balance = l, l.Head(), l.Balance()
	found, err := how.Verify(ctx, l)
	if err != nil {
		return nil, err
	}
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
		return notes, nil
	}
	c.Examined = &report.Examined{Proof: found.Report}
	if b := found.Basis; b != nil {
		c.Examined.RestsOn = &report.RestsOn{Line: b.Line, Hash: b.Hash, At: b.At, Whole: b.Whole, ToLine: b.ToLine, Entries: found.Resting}
	}
	return notes, nil
}
