package fill

import (
	"testing"

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
	replay := proof.NewReplay(nil, nil)
	checked := kit.Value(l.Check(t.Context(), nil, replay))(t)
	balance := l.Balance()
	report := replay.Finish(l.Head(), &balance)
	kit.Check(t, report.OK() && len(checked.Problems) == 0, "problems of the ledger = %v, findings = %v, want none", checked.Problems, report.Findings)
	kit.Must(t, l.Arrivals(func(a arrival.Arrival) error { all = append(all, a); return nil }, arrival.States()...))
	return l, all
}
