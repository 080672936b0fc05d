package boltledger

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
)

// The files are copied at every commit, just before and just after it, as a kill
// would leave them. Every copy opens, is sound, and holds what was acknowledged.
func TestCrash_I5_AtEveryCommit(t *testing.T) {
	dir := newLedger(t)
	type copied struct {
		dir   string
		after bool
		n     uint64
	}
	var copies []copied
	var l *Ledger
	l = open(t, Config{Dir: dir, Fault: func(op string) error {
		copies = append(copies, copied{copyLedger(t, dir, fileName, headName), op == "committed", l.Head().N})
		return nil
	}})
	d := newDoc(t, l, 1).archived()
	l.Close()
	if len(copies) != 2*8 {
		t.Fatalf("%d copies: the test is vacuous", len(copies))
	}
	for i, c := range copies {
		l := open(t, Config{Dir: c.dir})
		if n := l.Head().N; (n > c.n) != c.after {
			t.Errorf("copy %d: journal ends at %d, acknowledged was %d", i, n, c.n)
		}
		sound(t, l)
		e, ok, err := l.Entry(d.e.Key)
		if err != nil || ok != (i > 0) {
			t.Fatalf("copy %d: %v %v", i, ok, err)
		}
		if _, _, due := ledger.Due(e); ok && due != (e.State != ledger.Archived || e.Source != ledger.Kept) {
			t.Errorf("copy %d: %s/%s is due: %v", i, e.State, e.Source, due)
		}
		l.Close()
	}
}

// Each commit fails once, in both forms. Nothing more is accepted, everybody who
// waits is told, and the next start finds the change wholly or not at all.
func TestFail_I5_StopsAtTheFirstFailedCommit(t *testing.T) {
	for _, op := range []string{"commit", "committed"} {
		t.Run(op, func(t *testing.T) {
			dir := newLedger(t)
			broken := errors.New("input/output error")
			fail := false
			l := open(t, Config{Dir: dir, Fault: func(now string) error {
				if fail && now == op {
					return broken
				}
				return nil
			}})
			d := newDoc(t, l, 1)
			d.do(d.claim())
			fail = true
			if rs, err := l.Apply(t.Context(), d.change(d.sealed())); !errors.Is(err, broken) || !errors.Is(rs[0].Err, broken) {
				t.Fatalf("%v %v", rs, err)
			}
			fail = false
			<-l.Failed()
			if err := d.try(ledger.Held{}); !errors.Is(err, broken) || !errors.Is(l.Err(), broken) {
				t.Errorf("it went on after a failed commit: %v, %v", err, l.Err())
			}
			if l.Head().N != 2 {
				t.Errorf("head %d", l.Head().N)
			}
			l.Close()
			l = open(t, Config{Dir: dir})
			sound(t, l)
			want := ledger.Discovered
			if op == "committed" {
				want = ledger.Packaged
			}
			if e, _, _ := l.Entry(d.e.Key); e.State != want {
				t.Errorf("state %s, want %s", e.State, want)
			}
		})
	}
}

func TestClose_CommitsWhatIsQueuedThenRefuses(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	done := 0
	for n := range 2000 {
		d := newDoc(t, l, n)
		l.Submit([]ledger.Change{d.change(d.claim())}, func(rs []ledger.Result) {
			if rs[0].Err == nil {
				done++
			}
		})
	}
	if err := l.Close(); err != nil || done != 2000 {
		t.Errorf("%d of 2000 done, %v", done, err)
	}
	if commits, _ := l.CommitCounts(); commits > 200 {
		t.Errorf("%d commits for 2000 queued changes", commits)
	}
	var late error
	l.Submit([]ledger.Change{{}}, func(rs []ledger.Result) { late = rs[0].Err })
	if !errors.Is(late, ledger.ErrClosed) || l.Close() != nil {
		t.Error(late)
	}
}

// A hundred documents a window, for ten windows: a commit for each window, the first
// change at once, and a full gather at once.
func TestCommitInterval_OneCommitEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Config{Dir: newLedger(t), CommitInterval: 10 * time.Millisecond})
		time.Sleep(time.Second)
		start := time.Now()
		newDoc(t, l, 0).do(ledger.ClaimedFolder{Vault: "V1"})
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the first change waited %v", waited)
		}
		for n := range 1000 {
			d := newDoc(t, l, n+1)
			l.Submit([]ledger.Change{d.change(d.claim())}, nil)
			time.Sleep(100 * time.Microsecond)
		}
		synctest.Wait()
		if commits, changes := l.CommitCounts(); commits < 10 || commits > 12 || changes < 900 {
			t.Errorf("%d commits for %d changes in ten windows", commits, changes)
		}
		start = time.Now()
		var cs []ledger.Change
		for n := range maxChangesPerCommit {
			d := newDoc(t, l, n+2000)
			cs = append(cs, d.change(d.claim()))
		}
		if _, err := l.Apply(t.Context(), cs...); err != nil || time.Since(start) >= 10*time.Millisecond {
			t.Errorf("a full gather waited %v (%v)", time.Since(start), err)
		}
	})
}

func TestApply_StopsWaitingWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		l := open(t, Config{Dir: newLedger(t), Fault: func(string) error { <-hold; return nil }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		d := newDoc(t, l, 1)
		if _, err := l.Apply(ctx, d.change(d.claim())); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(hold)
		l.Close()
		if n := l.Balance().Seen; n != 1 {
			t.Errorf("seen %d: a change was lost with its caller's patience", n)
		}
	})
}

// While busy the outside head is synced once a second; after the last commit once
// more; then never.
func TestHead_SyncedOnceASecondNeverAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, Config{Dir: newLedger(t)})
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
		if busy < 9 || busy > 12 {
			t.Errorf("%d syncs in ten busy seconds", busy)
		}
		time.Sleep(time.Hour)
		if rest := heads() - busy; rest != 1 {
			t.Errorf("%d syncs after the last commit", rest)
		}
		l.Close() // the bubble fails the test if anything still runs
		if total := heads() - busy; total != 1 {
			t.Errorf("%d syncs after the last commit and Close", total)
		}
	})
}

// The real thing: a process that commits as fast as it can is killed; whatever it
// said was committed is there.
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
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
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
		l := open(t, Config{Dir: dir})
		for _, k := range acknowledged {
			if _, ok, err := l.Entry(k); !ok || err != nil {
				t.Fatalf("round %d: %s was acknowledged and is gone (%v)", round, k, err)
			}
		}
		if seen += len(acknowledged); l.Balance().Seen < uint64(seen) || len(acknowledged) < 40 {
			t.Errorf("round %d: seen %d, acknowledged %d", round, l.Balance().Seen, seen)
		}
		sound(t, l)
		l.Close()
	}
}

func childThatCommits(t *testing.T, dir string) {
	l := open(t, Config{Dir: dir})
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
	t.Error("nobody killed it")
}
