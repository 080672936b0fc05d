package simulation

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
)

// TestAsked_I24 restarts the daemon while the service wants to be left alone for an hour: nothing of that wait is
// stored, so that a restart asks again at once, and no document stays behind.
func TestAsked_I24(t *testing.T) {
	for name, op := range map[string]string{"Registering": "register", "Asking": "status"} {
		for _, kind := range []Kind{Graceful, Death} {
			t.Run(name+map[Kind]string{Graceful: "Stopped", Death: "Killed"}[kind], func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := New(t, Config{Seed: 17, Emulator: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = time.Minute, 2*time.Minute }})
					var first time.Time
					var again atomic.Int64
					w.SetPlan(func(o Op) Strike {
						if o.Seam != Calls || o.Name != op {
							return Strike{}
						}
						if first.IsZero() {
							first = time.Now()
						}
						if time.Since(first) >= time.Second { // two may be under way at once
							again.Add(1)
							return Strike{}
						}
						return Strike{Call: emulator.Fault{Kind: emulator.Status, Status: 429, RetryAfter: 24 * time.Hour}}
					})
					w.Start()
					w.DropFolders(0, MakeFolder(17, 0, Good), MakeFolder(17, 1, Good))
					w.Advance(30 * time.Minute)
					if b := w.d.Ledger().Balance(); again.Load() > 0 || b.States[ledger.Archived] != 0 {
						t.Errorf("asked %d times more although the service wants to be left alone: %v", again.Load(), b)
					}
					w.Restart(kind)
					w.Advance(10 * time.Minute)
					if b := w.d.Ledger().Balance(); b.States[ledger.Archived] != 2 {
						t.Errorf("ten minutes after a restart: %v", b)
					}
					w.RunUntilCalm(72 * time.Hour)
					w.Check(true)
				})
			})
		}
	}
}
