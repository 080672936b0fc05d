package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/operator"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// backup copies the ledger as it stands.
func (h *testDaemon) backup() string {
	h.t.Helper()
	var b bytes.Buffer
	_, err := h.d.Ledger().Backup(h.t.Context(), &b, nil)
	h.must(err)
	name := filepath.Join(filepath.Dir(h.path), "backup.db")
	h.must(os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

// opened opens a backup for the test.
func (h *testDaemon) opened(file string) *os.File {
	h.t.Helper()
	f := kit.Value(os.Open(file))(h.t)
	h.t.Cleanup(func() { f.Close() })
	return f
}

// restored stops the daemon, loses its ledger, puts a backup back and goes on.
func (h *testDaemon) restored(file string) {
	h.t.Helper()
	h.halt()
	h.must(os.Rename(h.cfg.StateDir, h.cfg.StateDir+".lost"))
	h.must(os.Mkdir(h.cfg.StateDir, 0o700))
	_, err := Restore(h.t.Context(), h.cfg, h.opened(file), false, operator.Person{})
	h.must(err)
	h.again()
}

func (h *testDaemon) halt() {
	h.t.Helper()
	h.stop()
	h.must(<-h.ended)
	h.must(h.d.Close())
}

func (h *testDaemon) again() {
	h.t.Helper()
	var err error
	h.d, err = Open(h.t.Context(), h.cfg)
	h.must(err)
	h.run()
}

// archived counts the documents that the service has archived, by the invoice's number.
func (h *testDaemon) archived() map[string]int {
	n := map[string]int{}
	for _, s := range h.emu.Registrations() {
		if s.State == "ArchivingSuccessful" {
			n[s.DocumentID]++
		}
	}
	return n
}

func (h *testDaemon) onceEach(numbers ...string) {
	h.t.Helper()
	got := h.archived()
	for _, n := range numbers {
		kit.Want(h.t, "times that "+n+" is archived", got[n], 1)
	}
	for _, v := range h.emu.Violations() {
		h.t.Errorf("the service saw a violation, want none: %s", v)
	}
}

// registered makes n registrations that are none of ours.
func (h *testDaemon) registered(n int) {
	h.t.Helper()
	var batch []archive.RegisterRequest
	for i := range n {
		doc := archive.Document{Type: "Invoice", Number: fmt.Sprint("foreign ", i), Date: "2026-10-31T00:00:00Z"}
		id := archive.DeriveID("V", archive.Sum([]byte(doc.Number)), archive.Digest{})
		if batch = append(batch, archive.RegisterRequest{ID: id, Metadata: doc.Metadata()}); len(batch) == 50 || i == n-1 {
			_, err := h.client.Register(h.t.Context(), "V", batch)
			h.must(err)
			batch = nil
		}
	}
}

func (h *testDaemon) reconcile() operator.Compared {
	h.t.Helper()
	c := kit.Value(h.d.Reconcile(h.t.Context(), operator.Person{UID: 7, Reason: "test"}))(h.t)
	return c
}

// I15, I2: while a folder that had been taken is not packed, nobody knows which invoice it is. Safe mode ends only then: the same
// invoice, dropped again at that moment, would pass for a new one.
func TestReconcile_I15_I2_NotBeforeWhatWasTakenIsPacked(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.pass()
		file := h.backup()
		h.dropAndPass("Otto 19", "19", "one", false)
		h.pass()
		h.onceEach("19")
		claimed, err := filepath.Glob(filepath.Join(h.path, "_archived", "*", "Otto 19"))
		h.must(err)
		key := archive.NewKey(time.Now())
		h.halt() // as if it had died before its folder was moved
		place := filepath.Join(h.path, ".vaultd", "claimed", key.String())
		h.must(os.Mkdir(place, 0o700))
		h.must(os.Rename(claimed[0], filepath.Join(place, "Otto 19")))
		h.must(os.Remove(filepath.Join(place, "Otto 19", "_RECEIPT.json")))
		h.must(os.Rename(h.cfg.StateDir, h.cfg.StateDir+".lost"))
		h.must(os.Mkdir(h.cfg.StateDir, 0o700))
		_, err = Restore(h.t.Context(), h.cfg, h.opened(file), false, operator.Person{})
		h.must(err)
		h.again()
		c := h.reconcile() // at once: the folder settles once more first
		if e, ok, err := h.d.Ledger().Entry(key); err != nil || !ok || e.State == ledger.Discovered {
			t.Errorf("state after the comparison = %v (known %t, error %v), want the folder packed before", e.State, ok, err)
		}
		kit.Check(t, c.Left && c.Unpacked == 0, "reconciled = %+v, want safe mode left and no folder unpacked", c)
		h.drop("Otto 19", "19", "one", false)
		time.Sleep(48 * time.Hour)
		synctest.Wait()
		h.onceEach("19")
	})
}

// I15: what was registered after the backup is found, by the index where the status list is too short; of what nobody can speak
// for nothing is sent before nothing can be under way any more.
func TestReconcile_I15_ListTooShortWaitsForTheGrace(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.lost.Store(true) // nothing can be registered
		h.drop("Otto 19", "19", "one", false)
		h.dropAndPass("Huber 88", "88", "two", false)
		file := h.backup()
		_, all := h.entries()
		for _, e := range all { // only Otto goes on before the end
			if e.Folder == "Huber 88" {
				_, err := h.d.Actions().Act(h.t.Context(), e, operator.Person{}, func(by ledger.Operator) ledger.Event { return ledger.Held{By: by} })
				h.must(err)
			}
		}
		h.lost.Store(false)
		h.pass()
		h.pass()
		h.onceEach("19")
		h.registered(600)

		h.restored(file)
		h.pass()
		calls := h.emu.CountCalls("register")
		kit.Holds(t, "reason why work is held", h.d.State().HeldReason, "safe mode")
		c := h.reconcile()
		if !c.Left || c.Vaults[0].Reaches || c.Vaults[0].Found.Count != 1 || c.Waits != 1 || c.Waiting[0].Folder != "Huber 88" || c.Waiting[0].Until.IsZero() {
			t.Errorf("reconciled = %+v, want safe mode left, one found where the list does not reach, and Huber 88 waiting for a time", c)
		}
		time.Sleep(time.Until(c.Waiting[0].Until) - time.Minute)
		synctest.Wait()
		n := h.emu.CountCalls("register")
		kit.Need(t, n == calls, "%d registrations before the list could name the document, want 0", n-calls)
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		words, _ := h.entries()
		slices.Sort(words)
		kit.Want(t, "entries", words, []string{"Huber 88 archived", "Otto 19 archived"})
		h.onceEach("19", "88")
		c = h.reconcile()
		kit.Check(t, c.Differences() == 0 && c.Waits == 0, "the comparison after that = %+v, want no difference and none that waits", c)
	})
}

// I15: a list that lags behind proves nothing by what it leaves out, and a comparison without safe mode changes nothing.
func TestReconcile_I15_LagAndPlainComparison(t *testing.T) {
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		h.lost.Store(true)
		h.dropAndPass("Otto 19", "19", "one", false)
		file := h.backup()
		h.restored(file)
		h.lost.Store(false)
		if c := h.reconcile(); c.Waits != 1 || c.Vaults[0].Reaches {
			t.Errorf("the comparison right after the restore = %+v, want one that waits, because the list does not reach", c)
		}
		time.Sleep(8 * time.Hour) // a quarter of the grace, and the comparison after that
		synctest.Wait()
		h.becomes("Otto 19 archived")
		head := h.d.Ledger().Head() // but for the line that says that it was compared
		h.registered(3)
		if c := h.reconcile(); c.Safe || c.Differences() != 0 || h.d.Ledger().Head().N != head.N+1 {
			t.Errorf("a comparison outside safe mode = %+v, want no difference and one line in the journal", c)
		}
		h.onceEach("19")
	})
}

// I15: damage that the check finds enters safe mode, and no comparison ends it while it is there.
func TestCheck_I15_DamageFoundWhileRunning(t *testing.T) {
	withConfiguredDaemon(t, func(c *Config) { c.CheckEvery = time.Hour }, func(h *testDaemon) {
		h.drop("Otto 19", "19", "one", false)
		h.becomes("Otto 19 archived")
		if c := h.d.State().Check; c.At.IsZero() || !c.OK() {
			t.Fatalf("the first check = %+v, want it done and good", c)
		}
		h.damage("Otto 19")
		time.Sleep(time.Hour)
		synctest.Wait()
		safe, is := h.d.Ledger().SafeMode()
		if s := h.d.State(); !is || safe.Mark != ledger.MarkDamaged || s.HeldReason == "" || len(s.Check.Ledger) == 0 {
			t.Fatalf("after the damage: safe mode = %+v, check = %+v, want safe mode for the damage", safe, s.Check)
		}
		h.dropAndPass("Huber 88", "88", "two", false)
		kit.Want(t, "a folder was taken in safe mode", kit.Err(os.Stat(filepath.Join(h.path, "Huber 88"))), nil)
		kit.Holds(t, "status file", h.status(), "DELAYED", "no folder is taken")
		c, err := h.d.Reconcile(h.t.Context(), operator.Person{})
		kit.Check(t, err != nil || !c.Left && len(c.Why) != 0,
			"reconciled = %+v, want safe mode to stay, with reasons", c)
	})
}

// I26: a check that fails for want of means is tried again, and reported after a
// day without a check, however often vaultd was started meanwhile. Any other
// reason is reported at once.
func TestCheck_I26_NotCheckedForADay(t *testing.T) {
	killed := filepath.Join(t.TempDir(), "killed")
	kit.Must(t, os.WriteFile(killed, []byte("#!/bin/sh\nkill -9 $$\n"), 0o700))
	for name, row := range map[string]struct {
		executable string
		told       [4]bool
		ahead      time.Duration // of the clock, at the first check
	}{
		"Killed": {killed, [4]bool{false, false, false, true}, 0}, "NoProgram": {"/there/is/none", [4]bool{true, true, true, true}, 0},
		"ClockWasAhead": {killed, [4]bool{false, false, false, true}, 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			withConfiguredDaemon(t, func(c *Config) {
				now, began := c.Now, time.Now()
				c.CheckEvery, c.Now = 24*time.Hour, func() archive.Instant {
					at := now()
					if time.Since(began) < time.Hour {
						at.Wall = at.Wall.Add(row.ahead)
					}
					return at
				}
			}, func(h *testDaemon) {
				synctest.Wait()
				kit.Want(t, "the first check is good", h.d.State().Check.OK(), true)
				time.Sleep(10 * time.Hour)
				h.cfg.Executable = row.executable
				for i, after := range []time.Duration{0, 10 * time.Hour, 3 * time.Hour, 2 * time.Hour} {
					time.Sleep(after)
					h.reload()
					time.Sleep(time.Second)
					synctest.Wait()
					c := h.d.State().Check
					kit.Check(t, (c.Failed != "") == row.told[i] && len(c.Ledger) == 0, "after another %s: %+v, want that it failed: %t", after, c, row.told[i])
				}
				_, is := h.d.Ledger().SafeMode()
				kit.Want(t, "safe mode", is, false)
			})
		})
	}
}

// I26: the marker of an open ledger goes with a check that finds it sound, and
// stays while it is unchecked or damaged.
func TestCheck_I26_TheMarkerOfAnOpenLedger(t *testing.T) {
	for name, row := range map[string]struct {
		executable string
		damaged    bool
		stays      bool
	}{"Sound": {}, "Unchecked": {executable: "/there/is/none", stays: true}, "Damaged": {damaged: true, stays: true}} {
		t.Run(name, func(t *testing.T) {
			withConfiguredDaemon(t, func(c *Config) {
				c.CheckEvery, c.Executable = 24*time.Hour, row.executable
			}, func(h *testDaemon) {
				marker := filepath.Join(h.d.cfg.StateDir, "ledger.opening")
				synctest.Wait()
				if row.damaged {
					h.must(os.WriteFile(marker, nil, 0o600)) // as after another kill
					h.dropAndPass("Huber 88", "88", "one", false)
					h.damage("Huber 88")
					h.d.CheckNow()
					synctest.Wait()
				}
				kit.Want(t, "the marker", kit.Err(os.Lstat(marker)) == nil, row.stays)
			})
		})
	}
}

// I15: a ledger that a process left open, and whose pages cannot be checked in
// time, may be made anew; where they can be, and are sound, it may not.
func TestRebuild_I15_ALedgerThatIsTooSlow(t *testing.T) {
	dir, program := t.TempDir(), filepath.Join(t.TempDir(), "hangs")
	kit.Must(t, boltledger.Create(dir, ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "http://127.0.0.1", Created: time.Now()}))
	kit.Must(t, errors.Join(os.WriteFile(program, []byte("#!/bin/sh\nexec sleep 60\n"), 0o700), os.WriteFile(filepath.Join(dir, "ledger.opening"), nil, 0o600)))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, selfcheck.ErrSlow)
	defer cancel()
	kit.Must(t, checkReplaceable(ctx, Config{StateDir: dir, Executable: program}))
	kit.Fails(t, "a sound one", checkReplaceable(t.Context(), Config{StateDir: dir}), ledger.ErrExists)
}

// I23: a drop folder that does not answer holds up neither the start nor the others.
func TestOpen_I23_HangingDropDelaysNobody(t *testing.T) {
	var release chan struct{}
	var hung atomic.Bool
	other := ""
	withConfiguredDaemon(t, func(c *Config) {
		release = make(chan struct{}) // of the bubble
		other = filepath.Join(filepath.Dir(c.Drops[0].Path), "other")
		kit.Must(t, os.Mkdir(other, 0o770))
		second := c.Drops[0]
		second.Name, second.Path = "beta-in", other
		c.Drops = append(c.Drops, second)
		inner := c.FileFault
		c.FileFault = durable.Hook(func(op, name string, do func() error) error {
			if hung.CompareAndSwap(false, true) {
				<-release
			}
			return inner(op, name, do)
		})
	}, func(h *testDaemon) {
		paused := 0
		for _, d := range h.d.State().Drops {
			if d.Paused != "" {
				paused++
			}
		}
		kit.Want(t, "paused drops", paused, 1)
		for i, dir := range []string{h.path, other} {
			was := h.path
			h.path = dir
			h.drop("Otto 19", fmt.Sprint(i), fmt.Sprint("one ", i), false)
			h.path = was
		}
		h.becomes("Otto 19 archived")
		close(release)
		h.becomes("Otto 19 archived", "Otto 19 archived")
	})
}
