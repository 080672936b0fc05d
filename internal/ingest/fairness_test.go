package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I23: a vault that takes nothing fills its own share of the spool. Its backlog is
// not packed, and another vault's folders are archived as usual.
func TestSeal_I23_AFullVaultHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{}, "FULL", "B")
		r.cfg.SpoolSpace = func(queue string) error {
			if queue == "vault FULL" {
				return ingest.ErrFull
			}
			return nil
		}
		r.start()
		r.drop("FULL", 3000)
		r.pass(time.Minute)
		r.drop("B", 300)
		r.pass(5 * time.Minute)
		kit.Want(t, "states of the other vault", r.statesOf("B"), states{ledger.Archived: 300})
		kit.Want(t, "states of the full vault", r.statesOf("FULL"), states{ledger.Discovered: 3000})
	})
}

// I23: packing the backlog of one drop takes most of an hour. A single folder of
// another drop is packed within minutes.
func TestSeal_I23_ABacklogDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{}, "BIG", "B")
		for _, drop := range []string{"BIG", "B"} {
			r.folders(drop).takes = time.Second
		}
		r.start()
		r.drop("BIG", 3000)
		r.pass(time.Minute)
		r.drop("B", 1)
		r.pass(6 * time.Minute) // behind what one search found, and not behind everything
		kit.Want(t, "folders of the other drop that wait", r.statesOf("B")[ledger.Discovered], 0)
		n := r.statesOf("BIG")[ledger.Discovered]
		kit.Check(t, n >= 1500, "%d folders of the backlog wait, want at least 1500: the test shows nothing", n)
	})
}
