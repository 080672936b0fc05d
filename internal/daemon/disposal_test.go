package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// I3, I29: what the disposal limit stopped goes on by a person's decision, which is journaled.
func TestApproveDisposal_I29(t *testing.T) {
	t.Parallel()
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.Grace = true, 24*time.Hour }, func(h *testDaemon) {
		h.d.disposalLimit.AlwaysUsual = 1
		for _, n := range []string{"1", "2", "3"} {
			h.drop("Huber "+n, "INV-"+n, "content "+n, false)
		}
		h.pass()
		kit.Fails(t, "approval before anything is due: error",
			kit.Err(h.d.Actions().ApproveDisposal(t.Context(), "acme-in", operator.Person{UID: 1000, Reason: "too early"})), operator.ErrNothingDue)
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		p := h.d.State().Pauses
		if len(p) != 1 || p[0].Target.String() != "disposal of acme-in" || !p[0].Next.IsZero() || h.sources()[ledger.Kept] < 2 {
			t.Fatalf("pauses = %+v, sources = %v, want the disposal of acme-in paused and at least 2 kept", p, h.sources())
		}
		stopped := h.sources()[ledger.Kept] // the first may have been due alone, and gone
		n, err := h.d.Actions().ApproveDisposal(t.Context(), "acme-in", operator.Person{UID: 1000, Reason: "it is right"})
		kit.Need(t, err == nil && n == stopped, "approved = %d (error %v), want %d", n, err, stopped)
		h.pass()
		if len(h.d.State().Pauses) != 0 || h.sources()[ledger.Gone] != 3 {
			t.Errorf("pauses = %v, sources = %v, want no pause and 3 gone", h.d.State().Pauses, h.sources())
		}
		journaled := 0
		h.must(h.d.Ledger().Lines(1, func(_ uint64, line []byte) error {
			if s := string(line); strings.Contains(s, ledger.MarkDisposal) && strings.Contains(s, `"uid":1000`) && !strings.Contains(s, "it is right") {
				journaled++
			}
			return nil
		}))
		kit.Want(t, "journal lines about the approval", journaled, 1)
	})
}

// TestDispose_I18_AFolderThatIsLostIsNotCalledMoved: a user took the kept
// folder away before it was due. Its place is unknown, so the entry does not say
// that vaultd moved it.
func TestDispose_I18_AFolderThatIsLostIsNotCalledMoved(t *testing.T) {
	to := t.TempDir()
	withDaemon(t, func(d *dropwork.Settings) { d.Disposes, d.DisposeTo, d.Grace = true, to, time.Hour }, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.drop("Otto 19", "19", "two", false)
		h.pass()
		lost := h.byFolder()["Otto 19"]
		kit.Want(t, "the source before its grace is over", lost.Source, ledger.Kept)
		h.must(os.Rename(filepath.Join(h.path, lost.Dest), filepath.Join(h.t.TempDir(), "taken away")))
		for range 8 {
			h.pass()
		}
		all := h.byFolder()
		kit.Want(t, "the source of the other folder", all["Huber 88"].Source, ledger.Moved)
		kit.Want(t, "the source of the lost folder", all["Otto 19"].Source, ledger.Kept)
		kit.Want(t, "the cause of the lost folder", all["Otto 19"].Cause.Code, "source-missing")
	})
}

func (h *testDaemon) sources() map[ledger.Source]int {
	h.t.Helper()
	n := map[ledger.Source]int{}
	h.must(h.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error { n[e.Source]++; return nil }))
	return n
}

// A ledger that is deleted under a running daemon is noticed within a minute.
// From then on nothing is taken. What is open is put back, and the daemon ends;
// the next start knows every document, and takes what waits.
func TestLost_I15_I26_DeletedWhileItRuns(t *testing.T) {
	t.Parallel()
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.drop("Otto 1", "1", "one", false)
		h.pass()
		h.onceEach("1")
		h.must(os.Remove(filepath.Join(h.cfg.StateDir, "ledger.db")))
		time.Sleep(time.Minute)
		err := <-h.ended
		lost, ok := errors.AsType[*ledger.LostError](err)
		kit.Need(t, ok && lost.PutBack, "ended with %v, want a ledger that was put back", err)
		h.must(h.d.Close())
		h.drop("Otto 2", "2", "two", false)
		h.again()
		h.pass()
		h.onceEach("1", "2")
	})
}

// If another file is in its place nothing is replaced: the daemon holds
// everything, says so, and keeps what it has open until the place is free.
func TestLost_I15_I26_ReplacedWhileItRuns(t *testing.T) {
	t.Parallel()
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.drop("Otto 1", "1", "one", false)
		h.pass()
		place := filepath.Join(h.cfg.StateDir, "ledger.db")
		h.must(errors.Join(os.Remove(place), os.WriteFile(place, []byte("another"), 0o600)))
		time.Sleep(time.Minute)
		kit.Holds(t, "held", h.d.State().HeldReason, "another file is in the place of ledger.db")
		kit.Holds(t, "state", h.d.State().LostLedger, "another file is in the place of ledger.db")
		h.drop("Otto 2", "2", "two", false)
		h.pass()
		kit.Want(t, "entries", h.d.Ledger().Balance().Seen, 1)
		kit.Holds(t, "_STATUS.txt", h.status(), "DELAYED", "no folder is taken")
		text, err := os.ReadFile(place)
		kit.Want(t, "the other file", string(text), "another")
		saved := h.backup() // the evidence can be saved
		h.must(errors.Join(err, os.Remove(place)))
		time.Sleep(time.Minute)
		if err := <-h.ended; err == nil || !strings.Contains(err.Error(), "a copy of what vaultd had open is in its place") {
			t.Fatalf("ended with %v, want a ledger that was put back", err)
		}
		h.must(h.d.Close())
		info, err := os.Stat(saved)
		kit.Check(t, err == nil && info.Size() != 0, "backup: %v (%v), want one", info, err)
		h.again()
		h.pass()
		h.onceEach("1", "2")
	})
}
