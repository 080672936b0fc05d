package simulation

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/test/kit"
)

// held is what a daemon holds while it has nothing to do.
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
	if many.files > few.files+2 {
		t.Errorf("%d open files, %d at first", many.files, few.files)
	}
	if many.goroutines > few.goroutines+2 {
		t.Errorf("%d goroutines, %d at first", many.goroutines, few.goroutines)
	}
	if many.heap > few.heap+few.heap/2+1<<20 {
		t.Errorf("%d bytes of heap, %d at first", many.heap, few.heap)
	}
}

// work archives waves of folders and tells what the daemon held after the last: heap is
// what its end gives back, for the world itself grows.
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
