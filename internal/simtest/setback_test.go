package simtest

import (
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/ledger"
)

// TestSetBack_I15 sets the machine back while some folders are through, some under way and
// some not yet dropped when the copy was taken: nothing is sent or removed before the
// archive was asked, and then each is archived once.
func TestSetBack_I15(t *testing.T) {
	for name, how := range map[string]SetBack{"LedgerAlone": LedgerAlone, "WholeState": WholeState} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := New(t, several(14))
				w.Start()
				w.Drop(0, Make(14, 0, Good))
				w.Drop(1, Make(14, 1, Good))
				w.Advance(3 * time.Hour)
				w.Drop(0, Make(14, 2, Good))
				w.Advance(70 * time.Second)
				w.Snapshot()
				w.Drop(0, Make(14, 3, Good))
				w.Drop(1, Make(14, 4, Good))
				w.Advance(30 * time.Minute)
				w.SetBack(how)
				posts, puts := w.emulator.Calls("register"), w.emulator.Calls("upload")
				w.Drop(0, Make(14, 5, Good))
				w.Advance(2 * time.Hour)
				if w.emulator.Calls("register") != posts || w.emulator.Calls("upload") != puts {
					t.Error("sent before the archive was asked")
				}
				w.Calm(72 * time.Hour)
				o := w.Check(false)
				if len(o.In(ledger.Archived)) != 6 {
					t.Error(o)
				}
				once := map[string]int{}
				for _, s := range w.emulator.Seen() {
					if s.Archivable {
						once[s.ClientUUID]++
					}
				}
				if len(once) != 6 {
					t.Errorf("%d documents archived", len(once))
				}
				for id, n := range once {
					if n != 1 {
						t.Errorf("%s is archived %d times", id, n)
					}
				}
			})
		})
	}
}
