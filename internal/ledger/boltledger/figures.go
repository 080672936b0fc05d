package boltledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vaultd/internal/ledger"
)

// The figures are the totals and the counts. They are derived: nothing but answers depends on them.
// One that cannot be read must not end the process, which would meet it again after each start.

// leaveDamagedFigure returns err, unless it says that a figure cannot be read: then the figure stays as it is, for the check to
// tell of it, and the commit goes on.
func (g *groupCommit) leaveDamagedFigure(err error) error {
	var broken *ledger.DamageError
	if !errors.As(err, &broken) {
		return err
	}
	select {
	case g.ledger.damaged <- struct{}{}:
	default: // it is known already
	}
	return nil
}

// RecountFigures makes all totals and counts anew, from the entries. It takes about as long as reading the whole
// ledger on one core, and no commit is made meanwhile. The error is a [ledger.DamageError] where an entry or a page
// cannot be read; then nothing was changed.
func (l *Ledger) RecountFigures(ctx context.Context) error {
	if err := l.askCommitter(ctx, recountFigures); err != nil {
		return fmt.Errorf("count the ledger's figures anew: %w", err)
	}
	return nil
}

func recountFigures(g *groupCommit) (refused, err error) {
	// Entries as they are stored: what this commit changes of them is added when it writes them.
	r := newRecount()
	err = visitEntries(g.tx, func(e ledger.Entry, err error) error { r.addEntry(e); return err })
	if err != nil {
		return err, nil
	}
	// All in one transaction: a crash leaves the figures as they were.
	for _, bucket := range [][]byte{totalsBucket, countsBucket} {
		if err := g.tx.DeleteBucket(bucket); err != nil {
			return nil, err
		}
		if _, err := g.tx.CreateBucket(bucket); err != nil {
			return nil, err
		}
	}
	for _, k := range sortedKeys(r.totals) {
		t := r.totals[k]
		err = errors.Join(err, putValue(g.tx, totalsBucket, []byte(k), totalForm.encode(&t)))
	}
	for _, k := range sortedKeys(r.counts) {
		err = errors.Join(err, putValue(g.tx, countsBucket, []byte(k), countForm.encode(&count{r.counts[k]})))
	}
	g.touched = true
	return nil, err
}

// AreOfFigures reports whether all problems are ones that RecountFigures ends.
func AreOfFigures(problems []ledger.Problem) bool {
	return !slices.ContainsFunc(problems, func(p ledger.Problem) bool {
		return p.Where != string(totalsBucket) && p.Where != string(countsBucket)
	})
}
