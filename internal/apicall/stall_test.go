package apicall

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// I24: a transfer ends so long after its last progress, neither before nor later, and by the terms that hold then.
func TestWatchdog_I24_CountsFromTheLastProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := startWatchdog(t.Context(), time.Minute, errStalled)
		defer w.stop()
		for range 9 {
			time.Sleep(59 * time.Second)
			w.addProgress(leastMoved)
		}
		time.Sleep(time.Minute - time.Millisecond)
		if ctx.Err() != nil {
			t.Fatalf("ended within a minute of progress: %v", context.Cause(ctx))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if context.Cause(ctx) != errStalled {
			t.Errorf("a minute without progress: %v", context.Cause(ctx))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, w := startWatchdog(t.Context(), time.Minute, errSlow)
		time.Sleep(50 * time.Second)
		w.setLimit(5*time.Second, errStalled)
		time.Sleep(4 * time.Second)
		w.addProgress(1)
		time.Sleep(4 * time.Second)
		if ctx.Err() != nil {
			t.Fatalf("ended 4 s after progress: %v", context.Cause(ctx))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if context.Cause(ctx) != errStalled {
			t.Errorf("5 s without progress: %v", context.Cause(ctx))
		}
		w.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, w := startWatchdog(t.Context(), time.Minute, errStalled)
		time.Sleep(30 * time.Second)
		w.addProgress(1)
		w.stop()
		time.Sleep(time.Hour)
		kit.Want(t, "the cause of the end", context.Cause(ctx), context.Canceled)
	})
}
