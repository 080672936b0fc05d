package daemon

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
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
			t.Fatalf("before: %+v", s)
		}
		looks, dead := 0, make(chan struct{})
		counted = func() { looks++ }
		hangs.Store(&dead)
		time.Sleep(time.Minute)
		synctest.Wait()
		began := time.Now()
		s := h.d.State().Drops[0]
		if !strings.Contains(s.Paused, "has not been answering since") || time.Since(began) > 0 {
			t.Errorf("after a minute: %+v, told after %v", s, time.Since(began))
		}
		if err := h.d.drops[0].Unavailable(); err == nil || !strings.Contains(err.Error(), "answering") {
			t.Errorf("work would touch it: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if looks != 1 {
			t.Errorf("%d looks hang", looks)
		}
		hangs.Store(nil)
		close(dead)
		h.drop("Huber 2", "INV-2", "content 2", false)
		h.pass()
		if s := h.d.State().Drops[0]; s.Paused != "" || s.Free <= 0 {
			t.Errorf("afterwards: %+v", s)
		}
		if b := h.d.Ledger().Balance(); b.States[ledger.Archived] != 2 {
			t.Errorf("%v", b)
		}
	})
}
