package simulation

import (
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// transient are the ways of failing that pass by themselves.
var transient = []emulator.Fault{
	{Kind: emulator.Abort}, {Kind: emulator.Abort, IsAfterWork: true}, {Kind: emulator.Status, Status: 500},
	{Kind: emulator.Status, Status: 503, RetryAfter: 5 * time.Second}, {Kind: emulator.Status, Status: 504, IsAfterWork: true},
	{Kind: emulator.Status, Status: 429, RetryAfter: 10 * time.Second}, {Kind: emulator.Refuse}, {Kind: emulator.HTML},
	{Kind: emulator.HTML, IsAfterWork: true}, {Kind: emulator.Cut}, {Kind: emulator.Garble}, {Kind: emulator.Truncate}, {Kind: emulator.Empty},
	{Delay: 5 * time.Second, DelayAfter: 70 * time.Second}, {Kind: emulator.Trickle, DelayAfter: 40 * time.Second},
	{Kind: emulator.CutRequest}, {Kind: emulator.MissingAnswer}, {Kind: emulator.MissingURL}, {Kind: emulator.Status, Status: 502},
}

// TestThousand archives a thousand folders while one call in twenty fails and the process
// dies three times: each exactly once.
func TestThousand(t *testing.T) {
	n := 1000
	if isSampled(t, "1,000 folders") {
		n = 200
	}
	synctest.Test(t, func(t *testing.T) {
		w := New(t, Config{Seed: 9})
		r := rand.New(rand.NewPCG(9, 9))
		w.SetPlan(func(op Op) Strike {
			if op.Seam != Calls || r.IntN(20) > 0 {
				return Strike{}
			}
			return Strike{Call: transient[r.IntN(len(transient))]}
		})
		w.Start()
		for i := range n {
			w.DropFolders(0, MakeFolder(9, i, Good))
			if i == n/2 {
				w.Advance(70 * time.Second)
			}
		}
		for _, after := range []time.Duration{31 * time.Second, 40 * time.Second, 3 * time.Minute} {
			w.Advance(after)
			w.Restart(Death)
		}
		w.RunUntilCalm(7 * 24 * time.Hour)
		o := w.Check(true)
		t.Logf("%v: %s", o, listCounts(o.Fired))
		once := map[string]int{}
		for _, s := range w.emulator.Registrations() {
			if s.Archivable {
				once[s.ClientUUID]++
			}
		}
		for _, e := range o.Entries {
			kit.Check(t, e.State == ledger.Archived && !e.PossibleDouble && once[e.ID.String()] == 1,
				"%q is %s, double %v, %d contents", e.Folder, e.State, e.PossibleDouble, once[e.ID.String()])
		}
		kit.Want(t, "documents archived of", len(once), n)
	})
}

// held is what a daemon holds while it is idle.
type held struct{ heap, files, goroutines int }

// TestFlat_I21 archives thousands of folders in one life of the daemon: it holds as
// little at the end as one that archived few.
func TestFlat_I21(t *testing.T) {
	if kit.Race {
		t.Skip("the race detector holds memory of its own: counted without it")
	}
	waves, size := 10, 150
	if isSampled(t, "1,500 folders in one life") {
		size = 30
	}
	few, many := work(t, 2, size), work(t, waves, size)
	t.Logf("after %d folders %+v, after %d %+v", 2*size, few, waves*size, many)
	kit.Check(t, many.files <= few.files+2, "%d open files, %d at first", many.files, few.files)
	kit.Check(t, many.goroutines <= few.goroutines+2, "%d goroutines, %d at first", many.goroutines, few.goroutines)
	kit.Check(t, many.heap <= few.heap+few.heap/2+1<<20, "%d bytes of heap, %d at first", many.heap, few.heap)
}

// work archives waves of folders and returns what the daemon held after the
// last: heap is what its end frees, for the world itself grows.
func work(t *testing.T, waves, size int) (h held) {
	synctest.Test(t, func(t *testing.T) {
		cfg := soon(13)
		cfg.Daemon = func(c *daemon.Config) { c.ProbeEvery = time.Hour }
		w := New(t, cfg)
		w.Start()
		for wave := range waves {
			for i := range size {
				w.DropFolders(0, MakeFolder(13, wave*size+i, Good))
			}
			w.Advance(6 * time.Hour)
			w.Administer()
			w.Advance(2 * time.Hour)
		}
		if left := w.unfinished(true); len(left) > 0 {
			t.Errorf("%d not through: %v", len(left), left[:min(len(left), 5)])
		}
		h = held{files: len(listNames("/proc/self/fd")), goroutines: runtime.NumGoroutine()}
		before := heap()
		w.Stop()
		h.heap = before - heap()
		w.Check(false)
	})
	return h
}

func heap() int {
	var m runtime.MemStats
	for range 2 { // what had a finalizer goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) // far below 2^63
}

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
