package daemon

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I26: a share that does not answer is told within a minute, by whoever asks, at once; and
// I23: nobody touches it meanwhile, so that nothing else waits for it.
func TestProbe_I26_AShareThatHangs(t *testing.T) {
	t.Parallel()
	var hangs atomic.Pointer[chan struct{}]
	counted := func() {}
	withConfiguredDaemon(t, func(c *Config) {
		c.FreeBytes = func(path string) int64 {
			if dead := hangs.Load(); dead != nil {
				counted()
				<-*dead
			}
			return durable.FreeBytes(path)
		}
	}, func(h *testDaemon) {
		h.drop("Huber 1", "INV-1", "content 1", false)
		h.pass()
		if s := h.d.State().Drops[0]; s.Paused != "" || s.Free <= 0 {
			t.Fatalf("drop before the fault = %+v, want no pause and free space", s)
		}
		looks, dead := 0, make(chan struct{})
		counted = func() { looks++ }
		hangs.Store(&dead)
		time.Sleep(time.Minute)
		synctest.Wait()
		began := time.Now()
		s := h.d.State().Drops[0]
		if !strings.Contains(s.Paused, "has not been answering since") || time.Since(began) > 0 {
			t.Errorf("drop after a minute = %+v, read in %v, want a pause because it does not answer, at once", s, time.Since(began))
		}
		if err := h.d.drops[0].Unavailable(); err == nil || !strings.Contains(err.Error(), "answering") {
			t.Errorf("error of its use = %v, want one that says that it does not answer", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		kit.Want(t, "checks that hang", looks, 1)
		hangs.Store(nil)
		close(dead)
		h.drop("Huber 2", "INV-2", "content 2", false)
		h.pass()
		if s := h.d.State().Drops[0]; s.Paused != "" || s.Free <= 0 {
			t.Errorf("drop after the fault = %+v, want no pause and free space", s)
		}
		kit.Want(t, "archived", h.d.Ledger().Balance().States[ledger.Archived], 2)
	})
}
