package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
)

// TestWindow_I6 tampers with the clocks while a ticket is held that cannot be used yet:
// no upload may start on it once it is over.
func TestWindow_I6(t *testing.T) {
	for name, tamper := range map[string]func(*World){
		"ClockSetBack":     func(w *World) { w.clock.setMachineClock(-12 * time.Minute) },
		"ClockSetForward":  func(w *World) { w.clock.setMachineClock(3 * time.Hour) },
		"Suspended":        func(w *World) { w.clock.suspend(20 * time.Minute) },
		"SetBackAndReboot": func(w *World) { w.clock.setMachineClock(-12 * time.Minute); w.Restart(Reboot) },
		"Died":             func(w *World) { w.Restart(Death) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := New(t, Config{Seed: 11})
				w.SetPlan(forUntil(w, "upload", 22*time.Minute, emulator.Fault{Kind: emulator.Refuse}))
				w.Start()
				w.DropFolders(0, MakeFolder(11, 0, Good), MakeFolder(11, 1, Good))
				w.Advance(13 * time.Minute)
				tamper(w)
				w.Advance(time.Hour)
				w.RunUntilCalm(72 * time.Hour)
				if o := w.Check(true); len(o.EntriesIn(ledger.Archived)) != 2 {
					t.Errorf("o = %v, want len(o.EntriesIn(ledger.Archived)) = 2", o)
				}
			})
		})
	}
}
