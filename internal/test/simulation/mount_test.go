package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
)

// Something is mounted on a folder at one moment of its life after the other. Nothing of it is moved or removed while that is seen,
// and once it is gone everything ends.
func TestMount_I18_AtEveryMoment(t *testing.T) {
	quarantined, waited := 0, 0
	for n := range 36 {
		at := time.Duration(n) * 6 * time.Second // dropped, claimed, packed
		if n >= 20 {
			at = time.Duration(n-19) * 10 * time.Minute // sent, archived, kept, removed
		}
		synctest.Test(t, func(t *testing.T) {
			w := New(t, Config{Seed: uint64(n), Drop: func(_ int, d *dropwork.Settings, _ string) {
				d.Disposes, d.Grace = true, time.Hour
			}})
			w.Start()
			f := MakeFolder(uint64(n), 0, Good)
			w.DropFolders(0, f)
			w.Advance(at)
			w.MountOn(f.Name, 5*time.Hour)
			w.Advance(4 * time.Hour)
			if w.mounts.countMet() > 0 {
				waited++
			}
			w.RunUntilCalm(48 * time.Hour)
			o := w.Check(false)
			if o.Entries[0].State == ledger.Quarantined {
				quarantined++
			}
		})
	}
	if quarantined == 0 || waited < 20 {
		t.Errorf("vacuous: %d quarantined, %d met the mount", quarantined, waited)
	}
}
