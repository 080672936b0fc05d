package daemon

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// I1: a person takes a folder again at the very moment of a reload. What was claimed has
// its entry before the drop folders are closed.
func TestReopen_I1_WhileAFolderIsTakenAgain(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("Huber 1", "INV-1", "content 1", true)
		old := h.becomes("Huber 1 rejected")[0]
		h.stop()
		h.must(<-h.ended)
		time.Sleep(commitInterval) // the ledger has just committed the last scan, and a commit waits so long for more

		renamed, goOn := make(chan struct{}), make(chan struct{})
		var met atomic.Bool
		var slow durable.Hook = func(op, name string, do func() error) error {
			err := do()
			if op == "rename" && name == "Huber 1" && met.CompareAndSwap(false, true) {
				close(renamed)
				<-goOn
			}
			return err
		}
		h.files.Store(&slow)
		type retried struct {
			e   ledger.Entry
			err error
		}
		again, reopened := make(chan retried, 1), make(chan error, 1)
		d := h.d
		go func() {
			e, err := d.Actions().Retry(t.Context(), old, operator.Person{UID: 1000})
			again <- retried{e, err}
		}()
		<-renamed
		go func() {
			next, err := d.Reopen(h.cfg)
			if err == nil {
				h.d = next
			}
			reopened <- err
		}()
		for began := monotonic(); monotonic()-began < 100_000_000 && len(reopened) == 0; { // real time: the bubble's stands still
			runtime.Gosched()
		}
		kit.Check(t, len(reopened) <= 0,
			"the drop folder was closed while a folder in it was taken again, want the reload to wait")
		close(goOn)
		r := <-again
		h.files.Store(nil)
		h.must(<-reopened)
		h.run()
		h.must(r.err)
		h.pass()
		if e, ok, err := h.d.Ledger().Entry(r.e.Key); err != nil || !ok || e.Supersedes != old.Key {
			t.Errorf("entry of the folder = %+v (known %t, error %v), want one that supersedes %s", e, ok, err, old.Key)
		}
		if e, _, err := h.d.Ledger().Entry(old.Key); err != nil || !e.Resolved {
			t.Errorf("the old entry = %+v (error %v), want it resolved", e, err)
		}
	})
}

func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
