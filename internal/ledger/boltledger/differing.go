package boltledger

import (
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// difference is a vault whose archive's index differed from the ledger at the
// last comparison that concluded something, and the journal line of that
// comparison.
type difference struct {
	Vault archive.VaultID `stored:"1"`
	Line  uint64          `stored:"2"`
}

// addComparison returns the vaults that differ after a line of the journal, in
// the order of their lines. A comparison that concluded nothing leaves what was
// found before.
func addComparison(all []difference, l ledger.Line) []difference {
	outcome, _, _ := ledger.ParseComparedCause(l.Cause)
	differs := ledger.IsDifference(outcome)
	if l.Key != "" || l.Event != ledger.MarkCompared || !differs && outcome != ledger.CompareSame {
		return all
	}
	vault := archive.VaultID(l.Vault)
	all = slices.DeleteFunc(slices.Clone(all), func(d difference) bool { return d.Vault == vault })
	if differs {
		all = append(all, difference{vault, l.N})
	}
	return all
}

// DifferingIndexes returns the journal lines of the last comparisons with the
// archive's index that concluded something, of the vaults where that differed.
// It is cheap to ask.
func (l *Ledger) DifferingIndexes() (all []ledger.Line, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		for _, d := range l.committed().Differing {
			line, err := lineAt(tx, d.Line)
			if err != nil {
				return err
			}
			all = append(all, line)
		}
		return nil
	})
	return all, err
}
