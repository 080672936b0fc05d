package simulation

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
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
				w.DropFolders(0, MakeFolder(14, 0, Good))
				w.DropFolders(1, MakeFolder(14, 1, Good))
				w.Advance(3 * time.Hour)
				w.DropFolders(0, MakeFolder(14, 2, Good))
				w.Advance(70 * time.Second)
				w.Snapshot()
				w.DropFolders(0, MakeFolder(14, 3, Good))
				w.DropFolders(1, MakeFolder(14, 4, Good))
				w.Advance(30 * time.Minute)
				w.SetBack(how)
				posts, puts := w.emulator.CountCalls("register"), w.emulator.CountCalls("upload")
				w.DropFolders(0, MakeFolder(14, 5, Good))
				w.Advance(2 * time.Hour)
				kit.Check(t, w.emulator.CountCalls("register") == posts && w.emulator.CountCalls("upload") == puts,
					"sent before the archive was asked")
				w.RunUntilCalm(72 * time.Hour)
				o := w.Check(false)
				kit.Check(t, len(o.EntriesIn(ledger.Archived)) == 6,
					"o = %v, want len(o.EntriesIn(ledger.Archived)) = 6", o)
				once := map[string]int{}
				for _, s := range w.emulator.Registrations() {
					if s.Archivable {
						once[s.ClientUUID]++
					}
				}
				kit.Want(t, "documents archived", len(once), 6)
				for id, n := range once {
					kit.Want(t, id+" is archived", n, 1)
				}
			})
		})
	}
}

// TestSetBack_I2_I32_IndexThatEndsEarly sets the machine back after an invoice was archived of which the old ledger knows
// nothing but its folder, and the archive's list does not go back so far: the index alone knows of it. For days the index
// ends early. Nothing is concluded from that, and once the index is whole everything goes on, each invoice archived once.
func TestSetBack_I2_I32_IndexThatEndsEarly(t *testing.T) {
	for name, kind := range map[string]emulator.Kind{
		"ShortPage": emulator.ShortPage, "EmptyPages": emulator.EmptyPage, "SamePageAgain": emulator.RepeatPage, "CirclingCursors": emulator.CirclePage,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := several(15)
				cfg.Vaults, cfg.Emulator = 1, func(c *emulator.Config) { c.Readings.IndexPage = 2 }
				w := New(t, cfg)
				w.Intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
					resp, err := next.RoundTrip(r)
					if err == nil && strings.HasSuffix(r.URL.Path, "/documents/status") {
						resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), 2
					}
					return resp, err
				})
				w.Start()
				for n := range 5 {
					w.DropFolders(0, MakeFolder(15, n, Good))
				}
				w.Advance(3 * time.Hour)
				w.SetPlan(func(op Op) Strike { // what is taken now is registered only after the copy
					if op.Name == "register" {
						return Strike{Blow: Fail}
					}
					return Strike{}
				})
				w.DropFolders(0, MakeFolder(15, 5, Good))
				w.Advance(3 * time.Minute)
				w.Snapshot()
				w.SetPlan(nil)
				for range 60 { // set back before the ledger hears that it is archived: its folder still lies where it was taken to
					if w.emulator.CountCalls("upload") == 6 {
						break
					}
					w.Advance(time.Minute)
				}
				w.SetBack(LedgerAlone)
				w.SetPlan(func(op Op) Strike {
					if op.Name != "index" {
						return Strike{}
					}
					return Strike{Call: emulator.Fault{Kind: kind}}
				})
				posts := w.emulator.CountCalls("register")
				for range 4 {
					w.Administer()
					w.Advance(12 * time.Hour)
				}
				if _, safe := w.d.Ledger().SafeMode(); !safe || w.emulator.CountCalls("register") != posts {
					t.Errorf("safe mode: %v, %d registrations", safe, w.emulator.CountCalls("register")-posts)
				}
				w.SetPlan(nil)
				w.RunUntilCalm(72 * time.Hour)
				kit.Want(t, "o", len(w.Check(false).EntriesIn(ledger.Archived)), 6)
				for _, s := range w.emulator.Registrations() {
					kit.Check(t, s.PUTs <= 0 || !s.ArchivedAt.IsZero(), "%s was sent and is not archived", s.DocumentID)
				}
			})
		})
	}
}
