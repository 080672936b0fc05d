package fill

import (
	"errors"
	"slices"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

// Checked opens the ledger in dir between two lives, checks its records, its
// chain and its history, and returns the arrivals. The caller closes it.
func Checked(t testing.TB, dir string) (_ *boltledger.Ledger, all []arrival.Arrival) {
	t.Helper()
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: dir}))(t)
	problems, err := l.Verify(t.Context())
	kit.Check(t, err == nil && len(problems) <= 0, "problems of the ledger = %v (error %v), want none", problems, err)
	kit.Must(t, l.Arrivals(func(a arrival.Arrival) error { all = append(all, a); return nil }, arrival.States()...))
	report := proof.Check(proof.Journal{Head: l.Head(), Arrivals: slices.Values(all), Lines: func(yield func(uint64, []byte) bool) {
		_ = l.Lines(1, func(n uint64, line []byte) error {
			if !yield(n, line) {
				return errors.New("enough")
			}
			return nil
		})
	}}, func(func(ledger.Entry) bool) {})
	kit.Check(t, report.OK(), "findings = %v, want none", report.Findings)
	return l, all
}
