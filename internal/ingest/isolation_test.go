package ingest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// I23: a vault whose bucket takes nothing costs another vault's uploads nothing.
func TestStore_I23_ABucketThatRefusesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]apicall.Outcome{"NotSent": apicall.NotSent, "Refused": apicall.Refused, "Unanswered": apicall.OutcomeUnknown} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{}
				s.upload = func(r archive.RemoteID) error {
					if s.of(r) == "AWAY" {
						return fault(o, "store-fault")
					}
					return nil
				}
				r := run(t, s, "AWAY", "B")
				r.drop("AWAY", 100)
				r.pass(10 * time.Minute)
				r.drop("B", 100)
				r.pass(10 * time.Minute)
				if n := r.stateOf("B", ledger.Archived); n != 100 {
					t.Errorf("%d of 100 of the other vault are archived", n)
				}
				if p := r.Pauses(); len(p) != 1 || p[0].Target.String() != "store of vault AWAY" {
					t.Error(p)
				}
			})
		})
	}
}

// I23: uploads that hang take no place from another vault's.
func TestStore_I23_ABucketThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		s.hangs = func(ctx context.Context, r archive.RemoteID) error {
			if s.of(r) == "HANGS" {
				<-ctx.Done()
				return fault(apicall.OutcomeUnknown, "timeout")
			}
			return nil
		}
		r := run(t, s, "HANGS", "B")
		r.drop("HANGS", 50)
		r.pass(2 * time.Minute)
		r.drop("B", 50)
		r.pass(5 * time.Minute)
		if n := r.stateOf("B", ledger.Archived); n != 50 {
			t.Errorf("%d of 50 of the other vault are archived", n)
		}
	})
}

// I23: a share that hangs in the middle of a move keeps no other drop's folders from
// being moved.
func TestPlace_I23_ADeadShareHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{}, "DEAD", "B")
		dead := make(chan struct{})
		defer close(dead)
		r.drops["DEAD"].Mover.(*folders).dead = dead
		r.drop("DEAD", 30)
		r.pass(30 * time.Minute)
		r.drop("B", 30)
		r.pass(30 * time.Minute)
		kept := 0
		if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
			if e.Vault == "B" && e.Source == ledger.Kept {
				kept++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if kept != 30 {
			t.Errorf("%d of 30 folders of the other drop are kept", kept)
		}
	})
}

// counting counts the entries that looks at what is due came across.
type counting struct {
	Index
	mu   sync.Mutex
	seen map[string]int // by step and queue; guarded by mu
}

func (c *counting) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	return c.Index.DueInQueue(s, queue, now, limit, busy, func(e ledger.Entry) bool {
		c.mu.Lock()
		c.seen[s.String()+" "+queue]++
		c.mu.Unlock()
		return skip != nil && skip(e)
	})
}

// I23: what waits in a queue whose breaker is open is not even looked at for another one's sake.
func TestQueues_I23_PausedOnesAreNotScanned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{}, "AWAY", "B")
		away := &counting{Index: r.cfg.Index, seen: map[string]int{}}
		r.cfg.Index = away
		r.start()
		r.breakers.lockOpen(RegisterTarget("AWAY"), ledger.Cause{Code: "test"}, time.Now())
		r.drop("AWAY", 300)
		r.pass(10 * time.Minute)
		if n := r.stateOf("AWAY", ledger.Packaged); n != 300 {
			t.Fatalf("vacuous: %d wait", n)
		}
		away.mu.Lock()
		clear(away.seen)
		away.mu.Unlock()
		r.drop("B", 50)
		r.pass(time.Hour)
		if n := r.stateOf("B", ledger.Archived); n != 50 {
			t.Errorf("%d of 50 of the other vault are archived", n)
		}
		if n := away.seen["register vault AWAY"]; n != 0 {
			t.Errorf("%d looks at entries that rest: %v", n, away.seen)
		}
	})
}

// I15: in safe mode folders are sealed and questions asked, and nothing else begins.
func TestSafe_I15_OnlySealAndAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var safe atomic.Bool
		s := &service{slow: true}
		r := build(t, s)
		r.cfg.IsHeld = safe.Load
		r.start()
		r.drop("V", 10)
		r.pass(10 * time.Minute)
		if n := r.states(); n[ledger.Uploaded] != 10 {
			t.Fatal(n)
		}
		safe.Store(true)
		r.pass(2 * time.Minute)
		posts, _ := s.counts()
		s.mu.Lock()
		asked := maps.Clone(s.asked)
		s.slow = false // the next answers are successes
		s.mu.Unlock()
		r.dropNamed("V", "late", 10)
		r.pass(2 * time.Hour)
		if now, _ := s.counts(); now != posts {
			t.Errorf("%d registrations in safe mode", now-posts)
		}
		if maps.Equal(asked, s.asked) {
			t.Error("nothing was asked in safe mode")
		}
		if n := r.states(); n[ledger.Packaged] != 10 || n[ledger.Archived] != 10 {
			t.Error(n)
		}
		if src := r.sources(); src[ledger.Claimed] != 20 {
			t.Errorf("sources were moved in safe mode: %v", src)
		}
		safe.Store(false)
		r.Wake()
		r.pass(2 * time.Hour)
		if n, src := r.states(), r.sources(); n[ledger.Archived] != 20 || src[ledger.Kept] != 20 {
			t.Error(n, src)
		}
	})
}

func (r *running) sources() map[ledger.Source]int {
	r.t.Helper()
	n := map[ledger.Source]int{}
	if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error { n[e.Source]++; return nil }); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// I8: documents that are mixed up in one vault stop that vault, and no other.
func TestCrossWired_I8_OneVaultsMixUpsStopNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{crosses: "A"}
		r := run(t, s, "A", "B")
		r.drop("A", 2)
		r.pass(10 * time.Minute) // once
		s.mu.Lock()
		s.crosses = "B"
		s.mu.Unlock()
		r.drop("B", 2)
		r.pass(10 * time.Minute) // once as well
		if p := r.Pauses(); len(p) != 0 {
			t.Errorf("each vault mixed up documents once: %v", p)
		}
		r.dropNamed("B", "late", 2)
		r.pass(10 * time.Minute)
		if p := r.Pauses(); len(p) != 1 || p[0].Target.String() != "vault B" {
			t.Error(p)
		}
	})
}

// I6: an upload ends with its ticket by the boot clock, which goes on while timers stand
// still; and no suspended machine's ticket is used again.
func TestUpload_I6_SuspendedWhileSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		var begun, ended []time.Duration
		var used []archive.RemoteID
		s.hangs = func(ctx context.Context, r archive.RemoteID) error {
			begun, used = append(begun, s.now().Boot), append(used, r)
			<-ctx.Done()
			ended = append(ended, s.now().Boot)
			return fault(apicall.OutcomeUnknown, "timeout")
		}
		r := run(t, s)
		r.drop("V", 1)
		r.pass(30 * time.Second)
		if len(begun) != 1 {
			t.Fatalf("vacuous: %v", begun)
		}
		s.suspend(20 * time.Minute)
		r.pass(2 * time.Second)
		if len(ended) != 1 {
			t.Error("the upload goes on though its window is over")
		}
		s.suspend(time.Minute)
		r.pass(10 * time.Minute)
		if n := r.states(); n[ledger.Unclear] != 1 || len(slices.Compact(used)) != 1 {
			t.Errorf("%v, uploads to %v", n, used)
		}
	})
}

// I6: a machine that slept for a moment only has lost its connections all the same: the
// ticket that it held is not used any more.
func TestUpload_I6_SuspendVoidsATicketThatWasNotUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		r := run(t, s)
		var once sync.Once
		f := r.drops["V"].Packer.(*folders)
		f.finds = func() { once.Do(func() { s.suspend(5 * time.Second) }) } // between the intent and the first byte
		r.drop("V", 1)
		r.pass(time.Hour)
		if _, granted := s.counts(); granted != 2 {
			t.Errorf("registered %d times", granted)
		}
		if _, ok := s.uploaded["bum-1"]; ok || len(s.uploaded) != 1 {
			t.Errorf("uploads on %v", s.uploaded)
		}
		if n := r.states(); n[ledger.Archived] != 1 {
			t.Error(n)
		}
	})
}

// I3: when far more than usual is due for disposal at once, nothing goes before a person
// says so; and what people chose to keep since stays.
func TestDispose_I3_DisposalLimit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*Drop)
		after  time.Duration // after the grace was over
		stops  bool
		gone   int
	}{
		"Usual":         {func(*Drop) {}, time.Hour, false, 30},
		"UnusuallyMany": {func(*Drop) {}, time.Hour, true, 0},
		"NowKept":       {func(d *Drop) { d.Disposes = false }, time.Hour, false, 0},
		"NowKeptLonger": {func(d *Drop) { d.Grace = 60 * 24 * time.Hour }, time.Hour, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := build(t, &service{})
				d := r.drops["V"]
				d.Disposes, d.Grace = true, 30*24*time.Hour
				r.drops["V"] = d
				var asked []int
				r.cfg.DisposalLimit = func(drop string, due int) error {
					if asked = append(asked, due); row.stops {
						return &DisposalLimitError{Drop: drop, Due: due, Usual: 10}
					}
					return nil
				}
				r.start()
				r.drop("V", 30)
				r.pass(10 * 24 * time.Hour)
				if src := r.sources(); src[ledger.Kept] != 30 || len(asked) != 0 {
					t.Fatalf("vacuous: %v, asked %v", src, asked)
				}
				row.change(&d)
				r.drops["V"] = d
				r.s.suspend(21 * 24 * time.Hour) // all at once
				r.pass(row.after)
				if src := r.sources(); src[ledger.Gone] != row.gone || src[ledger.Kept] != 30-row.gone {
					t.Error(src)
				}
				if p := r.Pauses(); row.stops && (len(p) != 1 || p[0].Target.String() != "disposal of V") || !row.stops && len(p) != 0 {
					t.Error(p)
				}
				if !row.stops {
					return
				}
				row.stops = false
				r.pass(24 * time.Hour)
				if src := r.sources(); src[ledger.Gone] != 0 {
					t.Errorf("it went on by itself: %v", src)
				}
				r.ResumeDisposals("V")
				r.pass(time.Hour)
				if src := r.sources(); src[ledger.Gone] != 30 {
					t.Error(src)
				}
			})
		})
	}
}

// I3: what the limit allowed is used up by sources whose time was put off as well: the next that are due are asked for.
func TestDispose_I3_PostponedUseUpTheLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		d := r.drops["V"]
		d.Disposes, d.Grace = true, 30*24*time.Hour
		r.drops["V"] = d
		var asked []int
		r.cfg.DisposalLimit = func(_ string, due int) error { asked = append(asked, due); return nil }
		r.start()
		r.drop("V", 30)
		r.pass(10 * 24 * time.Hour)
		d.Grace = 60 * 24 * time.Hour
		r.drops["V"] = d
		r.s.suspend(21 * 24 * time.Hour)
		r.pass(time.Hour)
		if src := r.sources(); src[ledger.Kept] != 30 || !slices.Equal(asked, []int{30}) {
			t.Fatalf("vacuous: %v, asked %v", src, asked)
		}
		r.s.suspend(31 * 24 * time.Hour)
		r.pass(time.Hour)
		if src := r.sources(); src[ledger.Gone] != 30 || !slices.Equal(asked, []int{30, 30}) {
			t.Errorf("%v, asked %v", src, asked)
		}
	})
}
