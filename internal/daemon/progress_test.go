package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
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
	d := kit.Value(Open(cfg))(t)
	return d, cfg
}

// I26: loops that come round are progress, however little there is to do; loops that do not are a stall, however well the
// rest of the process does.
func TestProgress_I26_IsTheLoopsOwn(t *testing.T) {
	t.Parallel()
	t.Run("LoopsTurn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
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
	})
	t.Run("LoopsStandStill", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, _ := idle(t) // Run was never called: nothing turns
			time.Sleep(time.Minute)
			p := d.Progress()
			kit.Check(t, !p.Hangs(), "progress after a minute = %+v, want it not to hang yet", p)
			time.Sleep(10 * time.Minute)
			if p := d.Progress(); !p.Hangs() || len(p.Stalls) != 6+2 {
				t.Errorf("progress = %+v, want it to hang, with stalls of 6 steps and 2 drops", p)
			}
			kit.Must(t, d.Close())
		})
	})
}

// I23: one drop folder that hangs is told, and is no reason to start everything anew; all of them are.
func TestProgress_I23_OneDropAloneDoesNotHang(t *testing.T) {
	t.Parallel()
	one := Progress{Drops: 2, Stalls: []Stall{{What: "drop acme", Drop: true}}}
	all := Progress{Drops: 1, Stalls: one.Stalls}
	step := Progress{Drops: 2, Stalls: []Stall{{What: "step upload"}}}
	kit.Want(t, "hangs with one of two drops, with all, with a step, with nothing", [4]bool{one.Hangs(), all.Hangs(), step.Hangs(), Progress{}.Hangs()}, [4]bool{false, true, true, false})
}

// I16: the lock never changes hands while a daemon is exchanged, whether the new configuration works or not.
func TestReopen_I16_KeepsLockAndLedger(t *testing.T) {
	t.Parallel()
	d, cfg := idle(t)
	held := func() {
		t.Helper()
		if other, err := Open(cfg); err == nil {
			t.Errorf("a second daemon got the lock (closed: %v), want an error", other.Close())
		}
	}
	bad := cfg
	bad.Drops = []dropwork.Settings{cfg.Drops[0]}
	bad.Drops[0].Group = "no-such-group-here"
	if _, err := d.Reopen(bad); err == nil {
		t.Fatal("opened again with a group that does not exist, want an error")
	}
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
	again := kit.Value(Open(cfg))(t)
	kit.Must(t, again.Close())
}
