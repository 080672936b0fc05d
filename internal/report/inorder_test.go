package report

import (
	"errors"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I21: entries that are read on all cores are used in their order, each once, and the first error in that order ends it, wherever it is from.
func TestInOrder_I21_KeepsTheOrder(t *testing.T) {
	failed := errors.New("failed")
	const count = 1000
	for name, at := range map[string]struct{ walk, read, use int }{ // each fails at that entry; count: never
		"None": {count, count, count}, "First": {count, 0, count}, "Read": {count, 700, 900}, "Use": {count, 701, 300}, "Walk": {500, count, count}, "ReadBeforeWalk": {500, 3, count},
	} {
		walk := func(fn func(ledger.Entry) error) error {
			for i := range count {
				if i == at.walk {
					return failed
				}
				if err := fn(ledger.Entry{Rev: uint32(i)}); err != nil {
					return err
				}
			}
			return nil
		}
		read := func(e ledger.Entry) (int, error) {
			if int(e.Rev) >= at.read {
				return 0, failed
			}
			return int(e.Rev), nil
		}
		used := 0
		err := inOrder(walk, read, func(n int) error {
			kit.Want(t, name+": entry", n, used)
			if used++; n == at.use {
				return failed
			}
			return nil
		})
		want := min(at.walk, at.read, at.use+1)
		isNone := want >= count
		kit.Check(t, used == min(want, count) && (err == nil) == isNone, "%s: %d were used, want %d: %v", name, used, want, err)
	}
}
