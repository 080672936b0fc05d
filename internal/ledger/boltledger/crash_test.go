package boltledger_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// The files are copied at every commit, just before and just after it, as a
// kill would leave them. Every copy opens, is sound, and holds what was
// acknowledged.
func TestCrash_I5_AtEveryCommit(t *testing.T) {
	dir := newLedger(t)
	type copied struct {
		dir   string
		after bool
		n     uint64
	}
	var copies []copied
	var l *boltledger.Ledger
	l = open(t, boltledger.Config{Dir: dir, Fault: func(op string) error {
		copies = append(copies, copied{copyLedger(t, dir, fileName, headName), op == "committed", l.Head().N})
		return nil
	}})
	d := newDoc(t, l, 1).archived()
	l.Close()
	kit.Need(t, len(copies) == 2*8, "%d copies, want 16", len(copies))
	for i, c := range copies {
		l := open(t, boltledger.Config{Dir: c.dir})
		n := l.Head().N
		kit.Check(t, (n > c.n) == c.after, "copy %d ends at line %d, want more than the acknowledged %d: %v", i, n, c.n, c.after)
		sound(t, l)
		e, ok, err := l.Entry(d.e.Key)
		kit.Need(t, err == nil && ok == (i > 0), "copy %d: entry found %v (%v), want %v", i, ok, err, i > 0)
		if _, _, due := ledger.Due(e); ok && due != (e.State != ledger.Archived || e.Source != ledger.Kept) {
			t.Errorf("copy %d: %s/%s is due: %v, want %v", i, e.State, e.Source, due, !due)
		}
		l.Close()
	}
}

// Each commit fails once, in both forms. The ledger refuses all further
// changes, each caller that waits gets the error, and the next start finds the
// change wholly or not at all.
func TestFail_I5_StopsAtTheFirstFailedCommit(t *testing.T) {
	for op, want := range map[string]ledger.State{"commit": ledger.Discovered, "committed": ledger.Packaged} {
		t.Run(op, func(t *testing.T) {
			eachStore(t, func(t *testing.T, open opener) { stopsAtTheFirstFailedCommit(t, open, op, want) })
		})
	}
}

func stopsAtTheFirstFailedCommit(t *testing.T, open opener, op string, want ledger.State) {
	broken := errors.New("input/output error")
	fail := false
	l := open(func(now string) error {
		if fail && now == op {
			return broken
		}
		return nil
	})
	d := newDoc(t, l, 1)
	d.do(d.claim())
	fail = true
	if rs, err := l.Apply(t.Context(), d.change(d.sealed())); !errors.Is(err, broken) || !errors.Is(rs[0].Err, broken) {
		t.Fatalf("the change that failed: %v (%v), want %v for both", rs, err, broken)
	}
	fail = false
	<-l.Failed()
	if err := d.try(ledger.Held{}); !errors.Is(err, broken) || !errors.Is(l.Err(), broken) {
		t.Errorf("after a failed commit: %v, %v, want %v for both", err, l.Err(), broken)
	}
	kit.Want(t, "last line", l.Head().N, 2)
	l.Close()
	l = open()
	sound(t, l)
	e, _, err := l.Entry(d.e.Key)
	kit.Want(t, "the error", err, nil)
	kit.Want(t, "state after a restart", e.State, want)
}

func TestClose_CommitsWhatIsQueuedThenRefuses(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	done := 0
	for n := range 2000 {
		d := newDoc(t, l, n)
		l.Submit([]ledger.Change{d.change(d.claim())}, func(rs []ledger.Result) {
			if rs[0].Err == nil {
				done++
			}
		})
	}
	err := l.Close()
	kit.Check(t, err == nil && done == 2000, "%d changes were made (%v), want 2000", done, err)
	commits, _ := l.CommitCounts()
	kit.Check(t, commits <= 200, "%d commits for 2000 queued changes, want at most 200", commits)
	var late error
	l.Submit([]ledger.Change{{}}, func(rs []ledger.Result) { late = rs[0].Err })
	err = l.Close()
	kit.Check(t, errors.Is(late, ledger.ErrClosed) && err == nil, "a change after the end: %v, want %v; closed again: %v", late, ledger.ErrClosed, err)
}

// A hundred documents a window, for ten windows: a commit for each window, the
// first change at once, and a full commit at once.
func TestCommitInterval_OneCommitEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, boltledger.Config{Dir: newLedger(t), CommitInterval: 10 * time.Millisecond})
		time.Sleep(time.Second)
		start := time.Now()
		newDoc(t, l, 0).do(ledger.ClaimedFolder{Vault: "V1"})
		kit.Want(t, "wait of the first change", time.Since(start), 0)
		for n := range 1000 {
			d := newDoc(t, l, n+1)
			l.Submit([]ledger.Change{d.change(d.claim())}, nil)
			time.Sleep(100 * time.Microsecond)
		}
		synctest.Wait()
		commits, changes := l.CommitCounts()
		kit.Check(t, commits >= 10 && commits <= 12 && changes >= 900, "%d commits for %d changes in ten windows, want about 11 for 1000", commits, changes)
		start = time.Now()
		var cs []ledger.Change
		for n := range 512 { // as many as one commit has
			d := newDoc(t, l, n+2000)
			cs = append(cs, d.change(d.claim()))
		}
		if _, err := l.Apply(t.Context(), cs...); err != nil || time.Since(start) >= 10*time.Millisecond {
			t.Errorf("a full commit waited %v (%v), want no wait", time.Since(start), err)
		}
	})
}

func TestApply_StopsWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		l := open(t, boltledger.Config{Dir: newLedger(t), Fault: func(string) error { <-hold; return nil }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d := newDoc(t, l, 1)
		kit.Fails(t, "the caller whose time is over",
			kit.Err(l.Apply(ctx, d.change(d.claim()))), context.DeadlineExceeded)
		close(hold)
		l.Close()
		kit.Want(t, "changes made all the same", l.Balance().Seen, 1)
	})
}

// While busy the outside head is synced once a second; after the last commit
// once more; then never.
func TestHead_SyncedOnceASecondNeverAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, boltledger.Config{Dir: newLedger(t)})
		heads := func() uint64 {
			synctest.Wait()
			commits, _ := l.CommitCounts()
			return l.SyncCount() - 2*commits
		}
		time.Sleep(time.Minute)
		d := newDoc(t, l, 1)
		d.do(d.claim())
		for range 52 {
			d.do(ledger.Held{})
			time.Sleep(100 * time.Millisecond)
			d.do(ledger.Unheld{})
			time.Sleep(100 * time.Millisecond)
		}
		busy := heads()
		kit.Check(t, busy >= 9 && busy <= 12, "%d syncs in ten busy seconds, want 9 to 12", busy)
		time.Sleep(time.Hour)
		kit.Want(t, "syncs after the last commit", heads()-busy, 1)
		l.Close() // the bubble fails the test if anything still runs
		kit.Want(t, "syncs after the last commit and Close", heads()-busy, 1)
	})
}

// A process that commits as fast as it can is killed. Each change whose commit
// it reported is there.
func TestCrash_I5_KilledProcess(t *testing.T) {
	if dir := os.Getenv("BOLTLEDGER_TEST_DIR"); dir != "" {
		childThatCommits(t, dir)
		return
	}
	dir := newLedger(t)
	seen := 0
	for round := range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestCrash_I5_KilledProcess")
		cmd.Env = append(os.Environ(), "BOLTLEDGER_TEST_DIR="+dir)
		out := kit.Value(cmd.StdoutPipe())(t)
		kit.Must(t, cmd.Start())
		var acknowledged []archive.Key
		for s := bufio.NewScanner(out); s.Scan(); {
			if k, err := archive.ParseKey(strings.TrimPrefix(s.Text(), "key ")); err == nil {
				acknowledged = append(acknowledged, k)
			}
			if len(acknowledged) == 40+30*round {
				cmd.Process.Signal(syscall.SIGKILL)
			}
		}
		cmd.Wait()
		l := open(t, boltledger.Config{Dir: dir})
		for _, k := range acknowledged {
			_, ok, err := l.Entry(k)
			kit.Need(t, ok && err == nil, "round %d: %s was acknowledged; found %v (%v), want it", round, k, ok, err)
		}
		if seen += len(acknowledged); l.Balance().Seen < uint64(seen) || len(acknowledged) < 40 {
			t.Errorf("round %d: seen %d, want the acknowledged %d, 40 of them in this round (%d)", round, l.Balance().Seen, seen, len(acknowledged))
		}
		sound(t, l)
		l.Close()
	}
}

func childThatCommits(t *testing.T, dir string) {
	l := open(t, boltledger.Config{Dir: dir})
	for n := range 100_000 {
		d := newDoc(t, l, n)
		d.e.Key = archive.NewKey(d.at)
		l.Submit([]ledger.Change{d.change(d.claim())}, func(rs []ledger.Result) {
			if rs[0].Err == nil {
				fmt.Println("key", rs[0].Key)
			}
		})
		if n%20 == 0 {
			runtime.Gosched()
		}
	}
	t.Error("100000 changes were made, want the process killed before")
}
