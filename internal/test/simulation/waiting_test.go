package simulation

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/ledger"
)

// TestWaiting_I21 leaves the same invoice waiting for a person's decision about the first
// one: that must not cost a package every half hour.
func TestWaiting_I21(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 10})
		packages := 0
		w.SetPlan(func(op Op) Strike {
			if op.Seam == Files && op.Name == "create" && op.On[len(op.On)-4:] == ".zip" {
				packages++
			}
			return Strike{}
		})
		w.Start()
		w.DropFolders(0, MakeFolder(10, 0, Fails))
		w.Advance(24 * time.Hour)
		w.DropFolders(0, MakeFolder(10, 0, Fails).CopyToDropAgain())
		w.Advance(24 * time.Hour)
		if b := w.d.Ledger().Balance(); b.States[ledger.Quarantined] != 1 || b.States[ledger.Discovered] != 1 {
			t.Errorf("%v, want b.States[ledger.Quarantined] = 1, b.States[ledger.Discovered] = 1", b)
		}
		if packages > 4 {
			t.Errorf("packed %d times", packages)
		}
		claimed := listNames(filepath.Join(w.DropPath(0), ".vaultd/claimed"))
		late := filepath.Join(w.DropPath(0), ".vaultd/claimed", claimed[len(claimed)-1], MakeFolder(10, 0, Fails).CopyToDropAgain().Name, "more.pdf")
		w.failOn(os.WriteFile(late, []byte("it is another invoice now"), 0o660))
		w.Advance(24 * time.Hour)
		if o := w.Check(false); len(o.EntriesIn(ledger.Quarantined)) != 2 {
			t.Errorf("%v, want len(o.EntriesIn(ledger.Quarantined)) = 2", o)
		}
	})
}
