package main

import (
	"context"
	"errors"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/report"
	"vaultd/internal/selfcheck"
)

// examine verifies the ledger, counts its entries for the report that c
// describes, and calls do with the report. notes are about the checkpoint, for
// people.
func (v view) examine(ctx context.Context, a *app, c report.Config, what extent, do func(r *report.Audit, notes []string) error) error {
	err := v.readChecked(ctx, what, func(l *boltledger.Ledger, found selfcheck.Verified) error {
		if !found.OK() && a.inside != nil {
			a.inside.CheckNow()
		}
		if !found.Proven {
			return &ledger.DamageError{What: found.Problems[len(found.Problems)-1].What}
		}
		c.Ledger, c.Head, c.Problems = l, l.Head(), found.Problems
		if found.OtherPast != "" {
			c.Problems = append(c.Problems, ledger.Problem{Where: "journal", What: found.OtherPast})
		}
		c.Examined = report.Examined{Proof: found.Report}
		if b := found.Basis; b != nil {
			c.Examined.RestsOn = &report.RestsOn{Line: b.Line, Hash: b.Hash, At: b.At, Whole: b.Whole, ToLine: b.ToLine, Entries: found.Resting}
		}
		r, err := report.Examine(ctx, c)
		if err != nil {
			return err
		}
		return do(r, notesOf(found))
	})
	if what != wholeLedger && errors.Is(err, report.ErrExaminedBefore) {
		return v.examine(ctx, a, c, wholeLedger, do)
	}
	return err
}

// notesOf says what people should know of the checkpoint.
func notesOf(found selfcheck.Verified) (notes []string) {
	if found.NotUsed != "" {
		notes = append(notes, "The checkpoint was not used: "+found.NotUsed)
	}
	if found.NotSaved != "" {
		notes = append(notes, "The next report will examine everything again: no checkpoint is left: "+found.NotSaved)
	}
	return notes
}
