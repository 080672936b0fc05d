package simulation

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/daemon"
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

// held is what a daemon holds while it is idle.
type held struct{ heap, files, goroutines int }

// TestFlat_I21 archives thousands of folders in one life of the daemon: it holds as
// little at the end as one that archived few.
func TestFlat_I21(t *testing.T) {
	if kit.Race {
		t.Skip("the race detector holds memory of its own: counted without it")
	}
	waves, size := 10, 150
	if isSampled(t, "1,500 folders in one life") {
		size = 30
	}
	few, many := work(t, 2, size), work(t, waves, size)
	t.Logf("after %d folders %+v, after %d %+v", 2*size, few, waves*size, many)
	kit.Check(t, many.files <= few.files+2, "%d open files, %d at first", many.files, few.files)
	kit.Check(t, many.goroutines <= few.goroutines+2, "%d goroutines, %d at first", many.goroutines, few.goroutines)
	kit.Check(t, many.heap <= few.heap+few.heap/2+1<<20, "%d bytes of heap, %d at first", many.heap, few.heap)
}

// work archives waves of folders and returns what the daemon held after the
// last: heap is what its end frees, for the world itself grows.
func work(t *testing.T, waves, size int) (h held) {
	synctest.Test(t, func(t *testing.T) {
		cfg := soon(13)
		cfg.Daemon = func(c *daemon.Config) { c.ProbeEvery = time.Hour }
		w := New(t, cfg)
		w.Start()
		for wave := range waves {
			for i := range size {
				w.DropFolders(0, MakeFolder(13, wave*size+i, Good))
			}
			w.Advance(6 * time.Hour)
			w.Administer()
			w.Advance(2 * time.Hour)
		}
		if left := w.unfinished(true); len(left) > 0 {
			t.Errorf("%d not through: %v", len(left), left[:min(len(left), 5)])
		}
		h = held{files: len(listNames("/proc/self/fd")), goroutines: runtime.NumGoroutine()}
		before := heap()
		w.Stop()
		h.heap = before - heap()
		w.Check(false)
	})
	return h
}

func heap() int {
	var m runtime.MemStats
	for range 2 { // what had a finalizer goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) // far below 2^63
}
