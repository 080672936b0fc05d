package simulation

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// transient are the ways of failing that pass by themselves.
var transient = []emulator.Fault{
	{Kind: emulator.Abort}, {Kind: emulator.Abort, IsAfterWork: true}, {Kind: emulator.Status, Status: 500},
	{Kind: emulator.Status, Status: 503, RetryAfter: 5 * time.Second}, {Kind: emulator.Status, Status: 504, IsAfterWork: true},
	{Kind: emulator.Status, Status: 429, RetryAfter: 10 * time.Second}, {Kind: emulator.Refuse}, {Kind: emulator.HTML},
	{Kind: emulator.HTML, IsAfterWork: true}, {Kind: emulator.Cut}, {Kind: emulator.Garble}, {Kind: emulator.Truncate}, {Kind: emulator.Empty},
	{Delay: 5 * time.Second, DelayAfter: 70 * time.Second}, {Kind: emulator.Trickle, DelayAfter: 40 * time.Second},
	{Kind: emulator.CutRequest}, {Kind: emulator.MissingAnswer}, {Kind: emulator.MissingURL}, {Kind: emulator.Status, Status: 502},
}

// TestThousand archives a thousand folders while one call in twenty fails and the process
// dies three times: each exactly once.
func TestThousand(t *testing.T) {
	n := 1000
	if isSampled(t, "1,000 folders") {
		n = 200
	}
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 9})
		r := rand.New(rand.NewPCG(9, 9))
		w.SetPlan(func(op Op) Strike {
			if op.Seam != Calls || r.IntN(20) > 0 {
				return Strike{}
			}
			return Strike{Call: transient[r.IntN(len(transient))]}
		})
		w.Start()
		for i := range n {
			w.DropFolders(0, MakeFolder(9, i, Good))
			if i == n/2 {
				w.Advance(70 * time.Second)
			}
		}
		for _, after := range []time.Duration{31 * time.Second, 40 * time.Second, 3 * time.Minute} {
			w.Advance(after)
			w.Restart(Death)
		}
		w.RunUntilCalm(7 * 24 * time.Hour)
		o := w.Check(true)
		t.Logf("%v: %s", o, listCounts(o.Fired))
		once := map[string]int{}
		for _, s := range w.emulator.Registrations() {
			if s.Archivable {
				once[s.ClientUUID]++
			}
		}
		for _, e := range o.Entries {
			if e.State != ledger.Archived || e.PossibleDouble || once[e.ID.String()] != 1 {
				t.Errorf("%q is %s, double %v, %d contents", e.Folder, e.State, e.PossibleDouble, once[e.ID.String()])
			}
		}
		kit.Want(t, "documents archived of", len(once), n)
	})
}
