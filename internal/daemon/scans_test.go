package daemon

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/report"
	"vaultd/internal/test/kit"
)

// audit examines the ledger as the command does; running says whether the daemon answers.
func (h *testDaemon) audit(running bool) report.Summary {
	h.t.Helper()
	l := h.d.Ledger()
	var scan ledger.Scan
	stored := kit.Value(l.Scans())(h.t)
	if len(stored) > 0 {
		scan = stored[0]
	}
	if running {
		scan = h.d.State().Drops[0].Scan
	}
	replay := proof.NewReplay(l, nil)
	checked := kit.Value(l.Check(h.t.Context(), nil, replay))(h.t)
	kit.Len(h.t, "problems", checked.Problems, 0)
	balance := l.Balance()
	a, err := report.Examine(h.t.Context(), report.Config{
		Ledger: l, Info: l.Info(), Head: l.Head(), Examined: report.Examined{Proof: replay.Finish(l.Head(), &balance)}, Made: time.Now(), Running: running,
		Drops: []present.DropScan{{Name: h.cfg.Drops[0].Name, Vault: "V", Configured: true, RemindAfter: h.d.drops[0].Settings.Reminder(), Rescan: time.Minute, Scan: scan}},
	})
	h.must(err)
	return a.Summary
}

// reload has another configuration read, which says the same.
func (h *testDaemon) reload() {
	h.t.Helper()
	h.stop()
	h.must(<-h.ended)
	time.Sleep(commitInterval) // the ledger has just committed the last scan, and a commit waits so long for more
	next := kit.Value(h.d.Reopen(h.cfg))(h.t)
	h.d = next
	h.run()
}

// pendingWorld is a drop folder in which random things come and go.
type pendingWorld struct {
	*testDaemon
	r     *rand.Rand
	n     int
	there map[string]time.Time // what nobody will take, since when a running daemon could see it
	away  time.Time            // since when the drop folder is not there; zero: it is
	green int                  // audits that were complete
}

const slowScan = 3 * time.Minute // a rescan, and what the reading and the probe add

// add drops something that is not taken.
func (w *pendingWorld) add() {
	w.n++
	name := fmt.Sprintf("thing %d", w.n)
	path := filepath.Join(w.path, name)
	switch w.r.IntN(5) {
	case 0:
		w.must(os.WriteFile(path+".pdf", []byte("%PDF"), 0o660))
		name += ".pdf"
	case 1:
		w.must(os.Mkdir(path, 0o770))
	case 2:
		w.must(os.Symlink("/nowhere", path))
	case 3:
		w.drop(name, name, name, false)
		w.must(os.WriteFile(filepath.Join(path, "~$rechnung.docx"), nil, 0o660))
	case 4:
		w.must(os.Mkdir(path, 0o770))
		w.must(os.WriteFile(filepath.Join(path, "metadata.json.txt"), []byte("{}"), 0o660))
	}
	w.there[name] = time.Now()
}

// remove has a person take one thing away.
func (w *pendingWorld) remove() {
	for name := range w.there {
		w.must(os.RemoveAll(filepath.Join(w.path, name)))
		delete(w.there, name)
		return
	}
}

// step does something random and lets time go by.
func (w *pendingWorld) step() {
	switch w.r.IntN(8) {
	case 0, 1, 2:
		if w.away.IsZero() {
			w.add()
		}
	case 3:
		if w.away.IsZero() {
			w.remove()
		}
	case 4:
		if w.away.IsZero() {
			w.drop(fmt.Sprintf("good %d", w.n), fmt.Sprint(w.n), fmt.Sprint(w.n), false)
			w.n++
		}
	case 5:
		down := time.Duration(w.r.IntN(120)) * time.Minute
		w.halt()
		time.Sleep(down)
		if w.r.IntN(3) == 0 {
			w.cfg.Drops[0].Name = fmt.Sprint("drop ", w.n)
		}
		w.again()
	case 7:
		w.reload()
	case 6:
		if w.away.IsZero() {
			w.must(os.Rename(w.path, w.path+" away"))
			w.away = time.Now()
		} else {
			w.must(os.Rename(w.path+" away", w.path))
			w.away = time.Time{}
		}
	}
	time.Sleep(time.Duration(1+w.r.IntN(50)) * time.Minute)
	synctest.Wait()
}

// check holds the audit against what lies there.
func (w *pendingWorld) check(when string) {
	w.t.Helper()
	s, now := w.audit(true), time.Now()
	green := s.Result.Code == "complete-as-dropped"
	if green {
		w.green++
	}
	remind := w.d.drops[0].Settings.Reminder()
	overdue := 0
	for name, since := range w.there {
		if now.Sub(since) > remind+slowScan {
			overdue++
			kit.Check(w.t, !green,
				"%s: the audit is complete, want it incomplete: %q was not taken for %s", when, name, now.Sub(since))
		}
	}
	kit.Check(w.t, w.away.IsZero() || now.Sub(w.away) <= remind+slowScan || !green,
		"%s: the audit is complete, want it incomplete: the drop folder is missing for %s", when, now.Sub(w.away))
	kit.Check(w.t, len(w.there) != 0 || !w.away.IsZero() || s.NotTaken.Overdue <= 0,
		"%s: %d overdue, want 0: the drop folder is empty", when, s.NotTaken.Overdue)
	kit.Check(w.t, !w.away.IsZero() || s.NotTaken.Overdue >= uint64(overdue),
		"%s: %d overdue, want at least %d", when, s.NotTaken.Overdue, overdue)
	for _, d := range s.NotTaken.Drops {
		for _, i := range d.Items {
			since, lies := w.there[i.Name]
			kit.Check(w.t, !lies || i.Since.Sub(since) <= slowScan, "%s: %q is there since %s by the audit, want %s", when, i.Name, i.Since, since)
		}
	}
}

// TestScans_I32_NoAuditIsGreenWhileSomethingLiesThere lets random things come to a drop folder that are not taken, be mended or taken
// away, over restarts, hours without vaultd and a share that goes away: whatever lies there for longer than remind_after keeps the
// audit from being complete, and since when it lies there is never forgotten.
func TestScans_I32_NoAuditIsGreenWhileSomethingLiesThere(t *testing.T) {
	t.Parallel()
	audits, green, seeds := 0, 0, uint64(8)
	if kit.Sampled(t, "eight random days") {
		seeds = 3
	}
	for seed := range seeds {
		inBubble(t, func(*Config) {}, func(h *testDaemon) {
			w := &pendingWorld{testDaemon: h, r: rand.New(rand.NewPCG(seed, 17)), there: map[string]time.Time{}}
			h.dropAndPass("first", "1", "1", false)
			for i := range 40 {
				w.step()
				w.check(fmt.Sprintf("seed %d, step %d", seed, i))
				audits++
			}
			green += w.green
			if !w.away.IsZero() {
				h.must(os.Rename(h.path+" away", h.path))
			}
		})
	}
	kit.Check(t, green != 0 && green != audits,
		"%d of %d audits were complete, want some and not all: the worlds show nothing", green, audits)
}

// What lies in the drop keeps the result from being complete, is told in status file and log, and is known without a daemon.
func TestScans_I32_ThingsNeverTaken(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("good", "1", "1", false)
		h.must(os.WriteFile(filepath.Join(h.path, "scan7.pdf"), []byte("%PDF"), 0o660))
		h.must(os.Mkdir(filepath.Join(h.path, "Meier 12"), 0o770))
		h.pass()
		if s := h.audit(true); s.Result.Code != "complete-as-dropped" || s.NotTaken.Count != 2 {
			t.Errorf("before remind_after: result = %+v, %d not taken, want complete-as-dropped, 2", s.Result, s.NotTaken.Count)
		}
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		s := h.audit(true)
		kit.Check(t, s.Result.Code == "not-complete" && strings.HasPrefix(s.Result.Text, "2 things in the drop folders were never taken. "),
			"after remind_after: result = %+v, want not-complete for 2 things", s.Result)
		if n := s.Needs; len(n) != 1 || n[0].What != "not-taken" || n[0].Count != 2 || len(n[0].Names) != 2 {
			t.Errorf("needs = %+v, want one of 2 things not taken, with their names", n)
		}
		kit.Want(t, "log lines about what was not taken", strings.Count(h.log.String(), "not taken for longer than remind_after"), 2)
		kit.Lacks(t, "log", h.log.String(), "Meier")
		kit.Holds(t, "status file", h.status(), "PLEASE FIX (2)")
		began := time.Now()
		h.stop()
		h.must(<-h.ended)
		time.Sleep(24 * time.Hour)
		s = h.audit(false)
		kit.Check(t, s.Result.Code == "not-complete" && s.NotTaken.Overdue == 2 && !s.NotTaken.Drops[0].Scanned.Before(began.Add(-2*time.Minute)),
			"without a daemon: result = %+v, not taken = %+v, want not-complete, 2 overdue, as of the last scan", s.Result, s.NotTaken)
		h.must(os.Remove(filepath.Join(h.path, "scan7.pdf")))
		h.must(os.Remove(filepath.Join(h.path, "Meier 12")))
		h.must(h.d.Close())
		h.again()
		h.pass()
		h.stop()
		h.must(<-h.ended)
		s = h.audit(false)
		kit.Check(t, s.Result.Code == "complete-as-dropped" && strings.HasPrefix(s.Result.Title, "COMPLETE AS DROPPED, AS OF "),
			"once they are removed: result = %+v, want complete-as-dropped, as of a time", s.Result)
		h.must(h.d.Close())
		h.again()
	})
}

// More things than are named are counted; the ledger keeps a thousand names.
func TestScans_I32_MoreThanAreNamed(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		for i := range ledger.MaxPending + 500 {
			h.must(os.WriteFile(filepath.Join(h.path, fmt.Sprintf("%d.pdf", i)), nil, 0o660))
		}
		time.Sleep(45 * time.Minute)
		synctest.Wait()
		scans := kit.Value(h.d.Ledger().Scans())(h.t)
		kit.Need(t, len(scans) == 1 && len(scans[0].Pending) == ledger.MaxPending && scans[0].Unnamed == 500,
			"scans in the ledger = %+v, want one with %d names and 500 more", scans, ledger.MaxPending)
		if s := h.audit(true); s.NotTaken.Overdue != ledger.MaxPending+500 || !strings.HasPrefix(s.Result.Text, "1,500 things") {
			t.Errorf("%d overdue, result = %+v, want %d, and 1,500 things", s.NotTaken.Overdue, s.Result, ledger.MaxPending+500)
		}
	})
}

// Names of what lies in the drop never stand in the journal, and are gone from the ledger with the thing.
func TestScans_I7_NamesAreErasable(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.must(os.Mkdir(filepath.Join(h.path, "Frau Schmidt"), 0o770))
		time.Sleep(time.Hour)
		synctest.Wait()
		h.must(h.d.Ledger().Lines(1, func(_ uint64, line []byte) error {
			kit.Lacks(t, "line of the journal", string(line), "Schmidt")
			return nil
		}))
		h.must(os.Remove(filepath.Join(h.path, "Frau Schmidt")))
		h.pass()
		if scans, err := h.d.Ledger().Scans(); err != nil || len(scans) != 1 || scans[0].CountPending() != 0 {
			t.Errorf("scans in the ledger after it was removed = %+v (error %v), want one with nothing pending", scans, err)
		}
		found, err := h.d.Ledger().Verify(h.t.Context())
		kit.Check(t, err == nil && len(found) <= 0, "findings = %v (error %v), want none", found, err)
	})
}

// What a comparison came to is a line of the journal, and the audit tells it.
func TestReconcile_I32_OutcomeIsALine(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.dropAndPass("good", "1", "1", false)
		kit.Len(t, "compared", h.audit(true).Compared, 0)
		_, err := h.d.Reconcile(h.t.Context(), operator.Person{UID: 1000})
		h.must(err)
		s := h.audit(true)
		kit.Check(t, len(s.Compared) == 1 && s.Compared[0].Vault == "V" && s.Compared[0].Outcome == ledger.CompareSame && s.Check.Agrees,
			"compared = %+v, check = %+v, want vault V with the same documents, and agreement", s.Compared, s.Check)
	})
}

// Of 1,500 loose files a clerk takes the thousand away that are named: the others are as old as they were.
func TestScans_I32_TheRestOfManyIsNotYoung(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		for i := range ledger.MaxPending + 500 {
			h.must(os.WriteFile(filepath.Join(h.path, fmt.Sprintf("%d.pdf", i)), nil, 0o660))
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for _, p := range h.d.State().Drops[0].Scan.Pending {
			h.must(os.Remove(filepath.Join(h.path, p.Name)))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		s := h.audit(true)
		kit.Check(t, s.NotTaken.Count == 500 && s.NotTaken.Overdue == 500,
			"the audit says %q, %d overdue of %d, want 500 of 500", s.Result.Title, s.NotTaken.Overdue, s.NotTaken.Count)
	})
}

// The drop gets another name in the configuration; the folder is the same.
func TestScans_I32_RenamedDrop(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.must(os.WriteFile(filepath.Join(h.path, "scan7.pdf"), nil, 0o660))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		h.halt()
		h.cfg.Drops[0].Name = "acme-invoices"
		h.again()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		scan := h.d.State().Drops[0].Scan
		named, _ := scan.OverdueItems(time.Now(), h.d.drops[0].Settings.Reminder())
		kit.Check(t, len(named) != 0, "the renamed drop has nothing overdue, want the thing that was there before")
		if scans, err := h.d.Ledger().Scans(); err != nil || len(scans) != 1 || scans[0].Drop != "acme-invoices" {
			t.Errorf("scans in the ledger = %+v (error %v), want one of the drop acme-invoices", scans, err)
		}
	})
}

// After kill -9 it is known when vaultd last looked, though nothing was written for hours.
func TestScans_I32_LastLookAfterACrash(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.drop("good", "1", "1", false)
		time.Sleep(5*time.Hour + 5*time.Minute + 7*time.Second)
		synctest.Wait()
		looked := dropwork.LastScanTime(h.cfg.StateDir, h.path)
		if time.Since(looked) > 12*time.Minute || time.Since(looked) < 0 {
			t.Errorf("time of the last scan = %s, want at most 12 minutes before %s", looked, time.Now())
		}
		h.halt()
		h.again()
		again := dropwork.LastScanTime(h.cfg.StateDir, h.path)
		kit.Check(t, again.Equal(looked), "time of the last scan after the drop folder was opened = %s, want %s", again, looked)
	})
}

// The machine began with a clock of 2037 (no RTC), saw the thing, and was set right: the ledger has the future time.
func TestScans_I32_ClockWasAhead(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.must(os.WriteFile(filepath.Join(h.path, "scan7.pdf"), nil, 0o660))
		h.dropAndPass("good", "1", "1", false)
		h.halt()
		var err error
		h.d, err = Open(h.t.Context(), h.cfg)
		h.must(err)
		future := time.Now().AddDate(10, 0, 0).UTC()
		h.must(h.d.Ledger().PutScans(h.t.Context(), ledger.Scan{Drop: "acme-in", LastScan: future, Pending: []ledger.PendingItem{{Name: "scan7.pdf", Reason: "loose file", Since: future, NeedsPerson: true}}}))
		h.must(h.d.Close())
		h.again()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s := h.audit(true)
		if s.Result.Code == "complete-as-dropped" {
			t.Errorf("after two hours: result = %s, not taken = %+v, want it incomplete", s.Result.Title, s.NotTaken.Drops[0].Items)
		}
	})
}

// What people read on the share keeps "since" over a restart, and calls for a hand at once where the time is over.
func TestScans_I26_StatusFileKeepsSince(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		h.must(os.Mkdir(filepath.Join(h.path, "Meier 12"), 0o770))
		time.Sleep(time.Hour)
		synctest.Wait()
		const line = "no metadata.json since 00:00"
		kit.Holds(t, "status file", h.status(), line)
		h.halt()
		time.Sleep(3 * time.Hour)
		h.again()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		kit.Holds(t, "status file after a restart", h.status(), line, "PLEASE FIX (1)")
	})
}
