package simulation

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// tourRow has the states that a step of docs/tour.md names: those that it
// commits, and those that its last column says a crash leaves.
type tourRow struct{ commits, leaves []string }

// readTour reads the first table of the tour, and with it that of single PDFs.
func readTour(t *testing.T) (way, pdfs map[string]tourRow) {
	t.Helper()
	page := kit.Value(os.ReadFile("../../../docs/tour.md"))(t)
	_, text, _ := strings.Cut(string(page), "## The way\n")
	text, rest, _ := strings.Cut(text, "A single PDF goes")
	rest, _, _ = strings.Cut(rest, "A folder for the business network goes")
	return readTourTable(text), readTourTable(rest)
}

func readTourTable(text string) map[string]tourRow {
	states := func(cell string) (named []string) {
		for _, m := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(cell, -1) {
			if _, err := ledger.ParseState(m[1]); err == nil {
				named = append(named, m[1])
			}
		}
		return named
	}
	rows := map[string]tourRow{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+)\. (.*?) \| .* \| (.*) \|$`).FindAllStringSubmatch(text, -1) {
		rows[m[1]] = tourRow{states(m[2]), states(m[3])}
	}
	return rows
}

func isCommit(op Op) bool { return op.Seam == Commits }

// crash drops one thing and lets time pass until the plan has killed the daemon.
// It returns the state of its entry in the ledger that is left.
func (w *World) crash(p Plan, drop int, f Folder) string {
	w.t.Helper()
	w.SetPlan(p)
	w.Start()
	w.DropFolders(drop, f)
	for began := time.Now(); !w.life.isDead(); time.Sleep(time.Second) {
		kit.Need(w.t, time.Since(began) <= time.Hour, "the daemon did not die within an hour")
	}
	synctest.Wait() // what its last call did at the service is done
	w.deaths++
	w.tearDown()
	w.SetPlan(nil)
	return w.onlyState()
}

// onlyState returns the state of the only entry. The daemon is stopped.
func (w *World) onlyState() (state string) {
	w.t.Helper()
	l, done := w.openLedger()
	n := 0
	w.failOn(l.EntriesOldestFirst(func(e ledger.Entry) error {
		state, n = e.State.String(), n+1
		return nil
	}))
	w.failOn(done())
	kit.Need(w.t, n == 1, "entries = %d, want 1", n)
	return state
}

// TestTour_I5_WhatACrashLeaves holds the sentences of docs/tour.md on what a
// crash leaves to a ledger in which it happened: after the commit of each step,
// and after its act. Each document is archived once all the same.
func TestTour_I5_WhatACrashLeaves(t *testing.T) {
	way, _ := readTour(t)
	for name, row := range map[string]struct {
		plan Plan
		want []string // the first counts
	}{
		"4_Committed":          {StrikeAt(1, DieDone, isCommit), way["4"].commits},
		"5_BeforeTheNext":      {StrikeAt(2, Die, isCommit), way["5"].leaves},
		"6_Committed":          {StrikeAt(2, DieDone, isCommit), way["6"].commits},
		"7_Committed":          {StrikeAt(3, DieDone, isCommit), way["7"].commits},
		"7_BeforeThePOST":      {StrikeAt(1, Die, isCall("register")()), way["7"].leaves},
		"7_AfterThePOST":       {StrikeAt(1, DieDone, isCall("register")()), way["7"].leaves},
		"8_CommittedAlone":     {StrikeAt(4, DieDone, isCommit), way["8"].commits},
		"8_CommittedWith9":     {StrikeAt(4, DieDone, isCommit), way["9"].commits},
		"9_InThePUT":           {StrikeAt(1, Die, isCall("upload")()), way["9"].commits},
		"10_AfterThePUT":       {StrikeAt(1, DieDone, isCall("upload")()), way["10"].leaves},
		"10_BeforeTheCommit":   {StrikeAt(5, Die, isCommit), way["10"].leaves},
		"10_Committed":         {StrikeAt(5, DieDone, isCommit), way["10"].commits},
		"11_BeforeTheQuestion": {StrikeAt(1, Die, func(op Op) bool { return strings.HasPrefix(op.Name, "status") }), way["10"].commits},
	} {
		t.Run(name, func(t *testing.T) {
			kit.ParallelBubble(t, func(t *testing.T) {
				kit.Need(t, len(row.want) != 0, "the tour names no state there")
				cfg := soon(1)
				if name == "8_CommittedAlone" {
					cfg.Emulator = func(c *emulator.Config) { c.Window = time.Second } // too short to begin an upload
				}
				w := New(t, cfg)
				kit.Want(t, "state after the crash", w.crash(row.plan, 0, MakeFolder(1, 0, Good)), row.want[0])
				if name == "8_CommittedAlone" {
					return // the crash precedes any upload
				}
				w.Start()
				w.RunUntilCalm(72 * time.Hour)
				kit.Want(t, "archived", len(w.Check(true).EntriesIn(ledger.Archived)), 1)
				if name == "7_AfterThePOST" { // it is registered again, and the first registration stays empty
					all := w.emulator.Registrations()
					kit.Want(t, "registrations", len(all), 2)
					kit.Want(t, "uploads to the first", all[0].PUTs, 0)
				}
			})
		})
	}
}

// TestTour_I2_WhenTheAddressIsOver holds the sentences on a crash after the
// PUT: once the address has expired, an unconfirmed document waits for
// evidence, and an unconfirmed PDF for an operator.
func TestTour_I2_WhenTheAddressIsOver(t *testing.T) {
	way, pdfs := readTour(t)
	type row struct {
		call string
		drop int
		f    Folder
		want []string
	}
	kit.Rows(t, map[string]row{
		"Folder": {"upload", 0, MakeFolder(1, 0, Good), way["10"].leaves},
		"PDF":    {"pdf-upload", 1, MakePDF(1, 0, Scan), pdfs["9"].leaves},
	}, func(t *testing.T, row row) {
		kit.ParallelBubble(t, func(t *testing.T) {
			cfg := soon(1)
			cfg.PDFs = onePDFDrop()
			w := New(t, cfg)
			kit.Want(t, "state after the crash", w.crash(StrikeAt(1, DieDone, isCall(row.call)()), row.drop, row.f), ledger.Sending.String())
			time.Sleep(20 * time.Minute)
			w.SetPlan(func(op Op) Strike {
				if op.Seam == Calls {
					return Strike{Blow: Fail} // evidence is missing
				}
				return Strike{}
			})
			w.Start()
			w.Advance(time.Minute)
			w.Stop()
			if got := w.onlyState(); len(row.want) == 0 || got != row.want[len(row.want)-1] {
				t.Errorf("state once the address is over = %s, want the last of %q", got, row.want)
			}
		})
	})
}
