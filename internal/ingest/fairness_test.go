package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// stateOf counts the entries of a vault in a state.
func (r *running) stateOf(v archive.VaultID, s ledger.State) int {
	n := 0
	if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.Vault == v && e.State == s {
			n++
		}
		return nil
	}); err != nil {
		r.t.Error(err)
	}
	return n
}

// I23: a vault that takes nothing fills its own share of the spool. Its backlog is not
// packed, and another vault's folders go on as if it were not there.
func TestSeal_I23_AFullVaultHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{}, "FULL", "B")
		r.cfg.SpoolSpace = func(queue string) error {
			if queue == "vault FULL" {
				return ErrFull
			}
			return nil
		}
		r.drop("FULL", 3000)
		r.pass(time.Minute)
		r.drop("B", 300)
		r.pass(5 * time.Minute)
		if n := r.stateOf("B", ledger.Archived); n != 300 {
			t.Errorf("%d of 300 folders of the other vault are archived", n)
		}
		if n := r.stateOf("FULL", ledger.Discovered); n != 3000 {
			t.Errorf("%d of 3000 folders wait as folders", n)
		}
	})
}

// I23: the backlog of one drop does not stand before a single folder of another.
func TestSeal_I23_ABacklogStandsBeforeNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{}, "BIG", "B")
		for _, d := range r.drops {
			d.Packer.(*folders).takes = time.Second // 3000 folders: most of an hour
		}
		r.drop("BIG", 3000)
		r.pass(time.Minute)
		r.drop("B", 1)
		r.pass(6 * time.Minute) // behind what one look let in, not behind everything
		if n := r.stateOf("B", ledger.Discovered); n != 0 {
			t.Error("the single folder still waits")
		}
		if n := r.stateOf("BIG", ledger.Discovered); n < 1500 {
			t.Errorf("vacuous: of the backlog only %d folders were left", n)
		}
	})
}
