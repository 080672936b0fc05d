package daemon

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// I15: a vaultd that was taken over stays so while its share is away, after a restart, and where somebody takes the mark
// away: whoever took it over sends what is open here.
func TestTakenOver_I15_SticksUntilALaterEpoch(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.lost.Store(true) // nothing can be registered
		h.dropAndPass("Otto 19", "19", "one", false)
		file := h.backup()
		later := h.d.shared.Takeover.Mark()
		later.Epoch += 6
		h.must(drop.TakeOverFolder(h.path, later))
		h.pass()
		h.lost.Store(false)
		silent := func(when string) {
			t.Helper()
			kit.Holds(t, when+": reason why work is held", h.d.State().HeldReason, "(epoch 7)")
			kit.Want(t, when+": registrations", len(h.emu.Registrations()), 0)
		}
		silent("taken over")
		away := h.path + ".away"
		h.must(os.Rename(h.path, away))
		h.pass()
		h.pass()
		silent("the share is away")
		h.halt()
		h.again()
		h.pass()
		silent("started again while it is away")
		h.must(os.Remove(filepath.Join(away, ".vaultd", "drop.json")))
		h.must(os.Rename(away, h.path))
		h.pass()
		silent("the mark is gone")

		h.halt()
		h.must(os.Rename(h.path, away)) // nobody can read the mark: what was met tells the epoch
		_, err := Restore(h.t.Context(), h.cfg, h.opened(file), true, operator.Person{})
		h.must(err)
		h.must(os.Rename(away, h.path))
		h.must(drop.TakeOverFolder(h.path, later))
		h.again()
		if e := h.d.Ledger().Info().Epoch; e != 8 || h.d.shared.Takeover.Epoch() != 0 {
			t.Errorf("after taking over in turn: epoch = %d, taken over by %d, want 8, 0", e, h.d.shared.Takeover.Epoch())
		}
	})
}

// What cannot be read is no leave to send.
func TestTakenOver_SpoiledFileEndsTheStart(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.halt()
		name := filepath.Join(h.cfg.StateDir, "taken-over")
		h.must(os.WriteFile(name, nil, 0o600))
		if d, err := Open(h.t.Context(), h.cfg); err == nil {
			t.Error("the daemon was opened, want an error")
			h.must(d.Close())
		}
		h.must(os.Remove(name))
		h.again()
	})
}

// I15: nobody takes a folder again in safe mode: it might have been sent.
func TestRetry_I15_NotInSafeMode(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.dropAndPass("Huber 88", "88", "one", true)
		h.pass()
		h.restored(h.backup())
		_, all := h.entries()
		head := h.d.Ledger().Head()
		_, err := h.d.Actions().Retry(h.t.Context(), all[0], operator.Person{})
		kit.Check(t, errors.Is(err, operator.ErrNothingTaken) && strings.Contains(err.Error(), "run vaultd reconcile first"),
			"error of the daemon = %v, want %v, with the way out", err, operator.ErrNothingTaken)
		kit.Want(t, "end of the journal", h.d.Ledger().Head(), head)
		h.reconcile()
		_, err = h.d.Actions().Retry(h.t.Context(), all[0], operator.Person{})
		h.must(err)
		h.must(os.WriteFile(filepath.Join(h.cfg.StateDir, "taken-over"), []byte("9\n"), 0o600))
		if _, err := NewActions(h.cfg, h.d.Ledger()).Retry(h.t.Context(), all[0], operator.Person{}); !errors.Is(err, operator.ErrNothingTaken) || !strings.Contains(err.Error(), "epoch 9") {
			t.Errorf("error without a daemon = %v, want %v for epoch 9", err, operator.ErrNothingTaken)
		}
	})
}

// damage spoils what the ledger's file says of a folder.
func (h *testDaemon) damage(word string) {
	h.t.Helper()
	name := filepath.Join(h.cfg.StateDir, "ledger.db")
	text := kit.Value(os.ReadFile(name))(h.t)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	h.must(err)
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], []byte(word))
		if i < 0 {
			break
		}
		at += i
		_, err = f.WriteAt([]byte("X"), int64(at))
		h.must(err)
	}
	h.must(f.Close())
}

// I15: damage that somebody met is not sent over until the next regular check.
func TestCheckNow_I15_SafeModeAtOnce(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]time.Duration{"Regular": 24 * time.Hour, "Never": 0}, func(t *testing.T, every time.Duration) {
		withConfiguredDaemon(t, func(c *Config) { c.CheckEvery = every }, func(h *testDaemon) {
			h.dropAndPass("Otto 19", "19", "one", false)
			h.damage("Otto 19")
			h.pass()
			_, is := h.d.Ledger().SafeMode()
			kit.Need(t, !is, "the damage was found before, want it found by the check: the test shows nothing")
			h.d.CheckNow()
			time.Sleep(time.Minute)
			safe, _ := h.d.Ledger().SafeMode()
			kit.Check(t, safe.Mark == ledger.MarkDamaged && h.d.State().HeldReason != "", "safe mode a minute later = %+v, want it for the damage", safe)
		})
	})
}

// I15, I2: a claim made before the backup was put back, in a drop folder that comes back after safe mode has ended: it may be
// archived long since.
func TestAdopt_I15_I2_ClaimOlderThanTheRestore(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.pass()
		file := h.backup()
		key := archive.NewKey(time.Now())
		h.dropAndPass("Otto 19", "19", "one", false)
		h.pass()
		h.onceEach("19")
		old := kit.Value(filepath.Glob(filepath.Join(h.path, "_archived", "*", "Otto 19")))(h.t)
		aside := filepath.Join(filepath.Dir(h.path), "aside")
		h.halt()
		h.must(os.Rename(old[0], aside))
		h.again()
		h.restored(file)
		h.pass()
		c := h.reconcile()
		kit.Need(t, c.Left, "reconciled = %+v, want safe mode left", c)
		deadClock(h)
		h.halt()
		place := filepath.Join(h.path, ".vaultd", "claimed", key.String())
		h.must(os.Mkdir(place, 0o700))
		h.must(os.Rename(aside, filepath.Join(place, "Otto 19")))
		h.must(os.Remove(filepath.Join(place, "Otto 19", "_RECEIPT.json")))
		h.again()
		time.Sleep(10 * time.Second)
		e, ok, err := h.d.Ledger().Entry(key)
		kit.Check(t, err == nil && ok && e.NeedsReconcile, "adopted entry = %+v (known %t, error %v), want it to need the comparison", e, ok, err)
		time.Sleep(48 * time.Hour)
		h.onceEach("19")
	})
}

// deadClock fills the journal as a start does whose clock has lost its time.
func deadClock(h *testDaemon) {
	h.t.Helper()
	evs := []ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "elsewhere", Folder: "f"}}
	for range 600 {
		evs = append(evs, ledger.Held{}, ledger.Unheld{})
	}
	change := ledger.Change{Key: archive.Key{1}, Events: append(evs, ledger.Held{}), At: archive.Instant{Wall: time.Unix(0, 0)}}
	rs := kit.Value(h.d.Ledger().Apply(h.t.Context(), change))(h.t)
	h.must(rs[0].Err)
}

// I15: a folder that waits for the end of safe mode has no fault, and is taken as soon as that ends.
func TestTake_I15_HeldIsNoFault(t *testing.T) {
	withConfiguredDaemon(t, func(c *Config) { c.Drops[0].Rescan = time.Hour }, func(h *testDaemon) {
		h.restored(h.backup())
		h.drop("Otto 19", "19", "one", false)
		h.log.Reset()
		time.Sleep(3 * time.Hour)
		waiting := h.d.State().Drops[0].Watch.NotTaken
		kit.Check(t, len(waiting) == 1 && waiting[0].Reason == watch.Held && strings.Contains(waiting[0].Items[0].Detail, "safe mode"),
			"not taken = %+v, want one, held because of safe mode", waiting)
		kit.Holds(t, "status file", h.status(), "WAITING FOR IT'S CHECK WITH THE ARCHIVE (1)")
		kit.Lacks(t, "status file", h.status(), "PLEASE FIX")
		kit.Lacks(t, "log", h.log.String(), "level=ERROR")
		h.reconcile()
		time.Sleep(2 * time.Minute)
		h.becomes("Otto 19 archived")
	})
}

// TestTakenOver_I16_TheOtherOneHoldsTheLock: the vaultd that took the folder over
// works in it and holds its lock. The one that starts after that reads the mark
// all the same, and remembers it when the share is away.
func TestTakenOver_I16_TheOtherOneHoldsTheLock(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.pass()
		m := h.d.shared.Takeover.Mark()
		h.halt()
		other, err := drop.Open(drop.Config{Path: h.path, Name: "acme-in", LedgerID: m.LedgerID, Environment: m.Environment, Epoch: m.Epoch + 6})
		h.must(err)
		d, err := Open(h.t.Context(), h.cfg)
		foreign, ok := errors.AsType[*drop.ForeignError](err)
		kit.Check(t, ok && foreign.IsLaterEpoch(), "error = %v, want a ForeignError of a later epoch", err)
		if err == nil {
			h.must(d.Close())
		}
		h.must(other.Close())
		h.must(os.Rename(h.path, h.path+".away"))
		h.again()
		h.pass()
		kit.Holds(h.t, "why nothing is sent", h.d.State().HeldReason, "(epoch 7)")
	})
}

// TestTakenOver_I16_TheFolderIsLetGo: the vaultd that was taken over closes the
// folder, so that the other one gets its lock.
func TestTakenOver_I16_TheFolderIsLetGo(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.pass()
		later := h.d.shared.Takeover.Mark()
		later.Epoch += 6
		h.must(drop.TakeOverFolder(h.path, later))
		h.pass()
		other, err := drop.Open(drop.Config{Path: h.path, Name: "acme-in", LedgerID: later.LedgerID, Environment: later.Environment, Epoch: later.Epoch})
		h.must(err)
		h.must(other.Close())
	})
}

// TestTakenOver_I16_AllFoldersAreLetGo: the vaultd that was taken over lets all
// drop folders go when it meets the mark in one of them.
func TestTakenOver_I16_AllFoldersAreLetGo(t *testing.T) {
	withConfiguredDaemon(t, func(c *Config) {
		second := c.Drops[0]
		second.Name, second.Path = "beta-in", second.Path+".beta"
		c.Drops = append(c.Drops, second)
		kit.Must(t, os.Mkdir(second.Path, 0o770))
	}, func(h *testDaemon) {
		h.pass()
		time.Sleep(5 * time.Second) // the next inspections are 25 seconds away
		later := h.d.shared.Takeover.Mark()
		later.Epoch += 6
		for _, d := range h.d.drops {
			h.must(drop.TakeOverFolder(d.Settings.Path, later))
		}
		h.d.drops[0].RequestRescan()
		time.Sleep(time.Second)
		for _, d := range h.d.drops {
			other, err := drop.Open(drop.Config{Path: d.Settings.Path, Name: d.Settings.Name, LedgerID: later.LedgerID, Environment: later.Environment, Epoch: later.Epoch})
			h.must(err)
			h.must(other.Close())
		}
	})
}

// TestTakenOver_I16_WaitsForTheFolder: the start of the vaultd that takes over
// waits until the other one, which may be idle, has read the mark and let the
// folder go.
func TestTakenOver_I16_WaitsForTheFolder(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.pass()
		file := h.backup()
		m := h.d.shared.Takeover.Mark()
		h.halt()
		other, err := drop.Open(drop.Config{Path: h.path, Name: "acme-in", LedgerID: m.LedgerID, Environment: m.Environment, Epoch: m.Epoch})
		h.must(err)
		_, err = Restore(h.t.Context(), h.cfg, h.opened(file), true, operator.Person{})
		h.must(err)
		time.AfterFunc(31*time.Second, func() { h.must(other.Close()) })
		h.again()
	})
}

// TestTakenOver_I16_KnownAfterAReload: the disk does not take the note of a
// takeover, and the share is away when the configuration is read again. The
// takeover is still known.
func TestTakenOver_I16_KnownAfterAReload(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.pass()
		note := filepath.Join(h.cfg.StateDir, "taken-over")
		h.must(os.Mkdir(note, 0o700)) // no file gets this name
		later := h.d.shared.Takeover.Mark()
		later.Epoch += 6
		h.must(drop.TakeOverFolder(h.path, later))
		h.pass()
		kit.Holds(h.t, "why nothing is sent", h.d.State().HeldReason, "(epoch 7)")
		h.must(os.Rename(h.path, h.path+".away"))
		h.stop()
		h.must(<-h.ended)
		h.must(os.Remove(note))
		next := kit.Value(h.d.Reopen(h.cfg))(h.t)
		h.d = next
		h.run()
		h.pass()
		kit.Holds(h.t, "why nothing is sent after the reload", h.d.State().HeldReason, "(epoch 7)")
	})
}

// TestRestore_I16_TakesOverEachFolder: a folder that is away keeps no other one
// from being taken over.
func TestRestore_I16_TakesOverEachFolder(t *testing.T) {
	withConfiguredDaemon(t, func(c *Config) {
		away := c.Drops[0]
		away.Name, away.Path = "away", away.Path+"-away"
		c.Drops = append([]dropwork.Settings{away}, c.Drops...)
	}, func(h *testDaemon) {
		h.pass()
		file := h.backup()
		before := h.d.shared.Takeover.Mark()
		h.halt()
		out := kit.Value(Restore(h.t.Context(), h.cfg, h.opened(file), true, operator.Person{}))(h.t)
		kit.Want(h.t, "folders that are away", out.Away, []string{"away"})
		mark, _, err := drop.ReadMark(h.path)
		h.must(err)
		kit.Want(h.t, "epoch of the folder that is there", mark.Epoch, before.Epoch+1)
		h.again()
	})
}
