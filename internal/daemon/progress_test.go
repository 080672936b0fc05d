package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// idle makes a daemon with two drop folders and nothing to do.
func idle(t *testing.T) (*Daemon, Config) {
	t.Helper()
	dir := t.TempDir()
	cfg := Config{
		StateDir: filepath.Join(dir, "state"), Environment: "test", BaseURL: "https://archive.example", Location: time.UTC,
		Now: func() archive.Instant { return archive.Instant{Wall: time.Now(), BootID: "b"} }, Log: slog.New(slog.DiscardHandler),
		SpoolMax: 1 << 30, Workers: 2, BatchSize: 2, BatchWait: time.Second,
		PollMin: time.Minute, PollMax: time.Hour, Grace: 24 * time.Hour,
	}
	for _, name := range []string{"acme", "beta"} {
		d := dropwork.Settings{Name: name, Path: filepath.Join(dir, name), Vault: "V", Mode: watch.Poll, Settle: time.Second, Rescan: time.Minute,
			Rules: packager.Rules{Vault: "V", Sidecar: "metadata.json", Complete: "quiet"}}
		kit.Must(t, os.Mkdir(d.Path, 0o770))
		cfg.Drops = append(cfg.Drops, d)
	}
	kit.Must(t, os.Mkdir(cfg.StateDir, 0o700))
	kit.Must(t, boltledger.Create(cfg.StateDir, ledger.Info{ID: "L", Environment: "test", BaseURL: cfg.BaseURL, Created: time.Now()}))
	d := kit.Value(Open(t.Context(), cfg))(t)
	return d, cfg
}

// I26: loops that come round are progress, however little there is to do; loops that do not are a stall, however well the
// rest of the process does.
func TestProgress_I26_IsTheLoopsOwn(t *testing.T) {
	t.Parallel()
	kit.Bubble(t, "LoopsTurn", func(t *testing.T) {
		d, _ := idle(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		for range 30 {
			time.Sleep(time.Minute)
			p := d.Progress()
			kit.Need(t, !p.Hangs() && len(p.Stalls) <= 0 && p.Drops == 2, "progress = %+v, want two drops and no stall", p)
		}
		stop()
		kit.Must(t, <-done)
		kit.Must(t, d.Close())
	})
	kit.Bubble(t, "LoopsStandStill", func(t *testing.T) {
		d, _ := idle(t) // Run was never called: nothing turns
		time.Sleep(time.Minute)
		p := d.Progress()
		kit.Check(t, !p.Hangs(), "progress after a minute = %+v, want it not to hang yet", p)
		time.Sleep(10 * time.Minute)
		p = d.Progress()
		kit.Check(t, p.Hangs() && len(p.Stalls) == 1+2, "progress = %+v, want it to hang, with stalls of the engine and 2 drops", p)
		kit.Must(t, d.Close())
	})
}

// I23: one drop folder that hangs is told, and is no reason to start everything anew; all of them are.
func TestProgress_I23_OneDropAloneDoesNotHang(t *testing.T) {
	t.Parallel()
	one := Progress{Drops: 2, Stalls: []Stall{{What: "drop acme", Drop: true}}}
	all := Progress{Drops: 1, Stalls: one.Stalls}
	step := Progress{Drops: 2, Stalls: []Stall{{What: "the engine"}}}
	kit.Want(t, "hangs with one of two drops, with all, with the engine, with nothing", [4]bool{one.Hangs(), all.Hangs(), step.Hangs(), Progress{}.Hangs()}, [4]bool{false, true, true, false})
}

// I16: the lock never changes hands while a daemon is exchanged, whether the new configuration works or not.
func TestReopen_I16_KeepsLockAndLedger(t *testing.T) {
	t.Parallel()
	d, cfg := idle(t)
	held := func() {
		t.Helper()
		if other, err := Open(t.Context(), cfg); err == nil {
			t.Errorf("a second daemon got the lock (closed: %v), want an error", other.Close())
		}
	}
	bad := cfg
	bad.Drops = []dropwork.Settings{cfg.Drops[0]}
	bad.Drops[0].Group = "no-such-group-here"
	_, err := d.Reopen(bad)
	kit.Need(t, err != nil, "opened again with a group that does not exist, want an error")
	held()
	moved := cfg
	moved.StateDir = t.TempDir()
	kit.Fails(t, "opened again with another state directory", kit.Err(d.Reopen(moved)))
	next := kit.Value(d.Reopen(cfg))(t)
	held()
	if next.Ledger() != d.Ledger() {
		t.Errorf("opened again with ledger %p, want %p", next.Ledger(), d.Ledger())
	}
	if err := d.Close(); err != nil { // the old one has nothing any more
		t.Error(err)
	}
	held()
	kit.Must(t, next.Ledger().Err())
	kit.Must(t, next.Close())
	kit.Must(t, kit.Value(Open(t.Context(), cfg))(t).Close())
}

// G10: where nothing is left to do, nothing is written and nothing synced, whatever lies about in the drop folder.
func TestRest_G10_NothingIsWritten(t *testing.T) {
	var syncs durable.SyncCounter
	withConfiguredDaemon(t, func(c *Config) { c.FileFault = syncs.CountSync }, func(h *testDaemon) {
		h.drop("Huber 88", "88", "one", false)
		h.drop("Huber 89", "89", "two", true)
		h.must(os.Mkdir(filepath.Join(h.path, "no sidecar yet"), 0o770))
		time.Sleep(time.Hour)
		synctest.Wait()
		b := h.d.ledger.Balance()
		kit.Need(t, b.States[ledger.Archived] == 1 && b.States[ledger.Rejected] == 1, "balance = %v, want 1 archived and 1 rejected", b)
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
		e := h.becomes("Huber 88 archived")[0]
		n := damaged.Load()
		kit.Check(t, n == 2 && e.Posts == 1, "packed %d times and registered %d times, want 2 and 1", n, e.Posts)
		kit.Holds(t, "log", h.log.String(), "no longer what was sealed")
	})
}

// I5: before a package is registered its name is on disk; where that cannot be told nothing is sent and the process ends.
// The two packages share one sync, or the second is sealed after the first was registered and has one of its own.
func TestSpool_I5_OnDiskBeforeItIsSent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(*Config) {}, func(h *testDaemon) {
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
		h.dropAndPass("Huber 89", "89", "two", false)
		b := h.d.ledger.Balance()
		kit.Need(t, b.States[ledger.Archived] == 2, "balance = %v, want 2 archived", b)
		kit.Check(t, names >= 1 && names <= 2 && early == 0,
			"the spool was synced %d times, %d times too late for a registration, want 1 or 2 and 0", names, early)
	})
	inBubble(t, func(*Config) {}, func(h *testDaemon) {
		broken := durable.Hook(func(op, name string, do func() error) error {
			if op == "syncdir" && strings.HasSuffix(name, "spool") {
				return syscall.EIO
			}
			return do()
		})
		h.files.Store(&broken)
		h.dropAndPass("Huber 88", "88", "one", false)
		kit.Fails(t, "error", <-h.ended, durable.ErrSync)
		h.ended <- nil
		kit.Len(t, "registrations", h.want("Huber 88 packaged")[0].Registrations, 0)
	})
}
