package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// G10: where nothing is left to do, nothing is written and nothing synced, whatever lies about in the drop folder.
func TestRest_G10_NothingIsWritten(t *testing.T) {
	t.Parallel()
	var syncs durable.SyncCounter
	withConfiguredDaemon(t, func(c *Config) { c.FileFault = syncs.CountSync }, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.drop("Huber 89", "89", "two", true)
		h.must(os.Mkdir(filepath.Join(h.path, "no sidecar yet"), 0o770))
		time.Sleep(time.Hour)
		synctest.Wait()
		if b := h.d.ledger.Balance(); b.States[ledger.Archived] != 1 || b.States[ledger.Rejected] != 1 {
			t.Fatalf("balance = %v, want 1 archived and 1 rejected", b)
		}
		type written struct{ commits, changes, syncs, files, dirs uint64 }
		all := func() (w written) {
			w.commits, w.changes = h.d.ledger.CommitCounts()
			w.syncs = h.d.ledger.SyncCount()
			w.files, w.dirs = syncs.FileAndDirSyncs()
			return w
		}
		before := all()
		kit.Need(t, before.commits != 0 && before.files >= 2 && before.dirs != 0,
			"writes before the rest = %+v, want some: the test shows nothing", before)
		time.Sleep(12 * time.Hour)
		synctest.Wait()
		kit.Want(t, "writes after twelve hours without work", all(), before)
	})
}

// I4: a package whose bytes on disk were changed is made again, once, and goes to the address that was open.
func TestSpool_I4_DamagedOnDisk(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		var damaged atomic.Int32
		spoil := durable.Hook(func(op, name string, do func() error) error {
			err := do()
			if op == "rename" && strings.HasSuffix(name, ".zip") && damaged.Add(1) == 1 {
				path := filepath.Join(h.cfg.StateDir, "spool", name)
				zip, readErr := os.ReadFile(path)
				h.must(readErr)
				zip[len(zip)/2] ^= 1
				h.must(os.WriteFile(path, zip, 0o600))
			}
			return err
		})
		h.files.Store(&spoil)
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		e := h.want("Huber 88 archived")[0]
		n := damaged.Load()
		kit.Check(t, n == 2 && e.Posts == 1, "packed %d times and registered %d times, want 2 and 1", n, e.Posts)
		kit.Holds(t, "log", h.log.String(), "no longer what was sealed")
	})
}

// I5: before a package is registered its name is on disk; where that cannot be told nothing is sent and the process ends.
// The two packages share one sync, or the second is sealed after the first was registered and has one of its own.
func TestSpool_I5_OnDiskBeforeItIsSent(t *testing.T) {
	t.Parallel()
	withDaemon(t, nil, func(h *testDaemon) {
		var names, early int
		watch := durable.Hook(func(op, name string, do func() error) error {
			if op == "syncdir" && strings.HasSuffix(name, "spool") {
				_, all := h.entries()
				sent := 0
				for _, e := range all {
					sent += len(e.Registrations)
				}
				if sent > names { // more were registered than syncs have been made
					early++
				}
				names++
			}
			return do()
		})
		h.files.Store(&watch)
		h.drop("Huber 88", "88", "one", false)
		h.drop("Huber 89", "89", "two", false)
		h.pass()
		b := h.d.ledger.Balance()
		kit.Need(t, b.States[ledger.Archived] == 2, "balance = %v, want 2 archived", b)
		kit.Check(t, names >= 1 && names <= 2 && early == 0,
			"the spool was synced %d times, %d times too late for a registration, want 1 or 2 and 0", names, early)
	})
	withDaemon(t, nil, func(h *testDaemon) {
		broken := durable.Hook(func(op, name string, do func() error) error {
			if op == "syncdir" && strings.HasSuffix(name, "spool") {
				return syscall.EIO
			}
			return do()
		})
		h.files.Store(&broken)
		h.drop("Huber 88", "88", "one", false)
		h.pass()
		kit.Fails(t, "error", <-h.ended, durable.ErrSync)
		h.ended <- nil
		kit.Len(t, "registrations", h.want("Huber 88 packaged")[0].Registrations, 0)
	})
}
