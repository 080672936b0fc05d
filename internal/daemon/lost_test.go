package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

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
