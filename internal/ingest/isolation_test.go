package ingest_test

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
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I23: the bucket of one vault takes nothing. The uploads of another vault continue.
func TestStore_I23_ABucketThatRefusesHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]apicall.Outcome{"NotSent": apicall.NotSent, "Refused": apicall.Refused, "Unanswered": apicall.OutcomeUnknown} {
		kit.Bubble(t, name, func(t *testing.T) {
			s := &service{}
			s.upload = func(r archive.RemoteID) error {
				if s.of(r) == "AWAY" {
					return fault(o, "store-fault")
				}
				return nil
			}
			r := run(t, s, "AWAY", "B")
			r.dropAndPass("AWAY", 100, 10*time.Minute)
			r.dropAndPass("B", 100, 10*time.Minute)
			kit.Want(t, "states of the other vault", r.statesOf("B"), states{ledger.Archived: 100})
			kit.Want(t, "paused targets", r.paused(), []string{"store of vault AWAY"})
		})
	}
}

// I23: the uploads of one vault hang. Those of another vault continue.
func TestStore_I23_ABucketThatHangsHoldsUpNoOther(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{}
		s.hangs = func(ctx context.Context, r archive.RemoteID) error {
			if s.of(r) == "HANGS" {
				<-ctx.Done()
				return fault(apicall.OutcomeUnknown, "timeout")
			}
			return nil
		}
		r := run(t, s, "HANGS", "B")
		r.dropAndPass("HANGS", 50, 2*time.Minute)
		r.dropAndPass("B", 50, 5*time.Minute)
		kit.Want(t, "states of the other vault", r.statesOf("B"), states{ledger.Archived: 50})
	})
}

// I23: a share hangs in the middle of a move. The folders of another drop are moved.
func TestPlace_I23_ADeadShareHoldsUpNoOther(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{}, "DEAD", "B")
		dead := make(chan struct{})
		defer close(dead)
		r.folders("DEAD").dead = dead
		r.start()
		r.dropAndPass("DEAD", 30, 30*time.Minute)
		r.dropAndPass("B", 30, 30*time.Minute)
		kit.Want(t, "folders of the other drop", r.sourcesOf("B"), sources{ledger.Kept: 30})
	})
}

// counting counts the entries that searches for what is due came across.
type counting struct {
	ingest.Index
	mu       sync.Mutex
	searches int            // guarded by mu
	seen     map[string]int // by step and queue; guarded by mu
}

func (c *counting) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	c.mu.Lock()
	c.searches++
	c.mu.Unlock()
	return c.Index.DueInQueue(s, queue, now, limit, busy, func(e ledger.Entry) bool {
		c.mu.Lock()
		c.seen[s.String()+" "+queue]++
		c.mu.Unlock()
		return skip != nil && skip(e)
	})
}

// reset begins to count again, and returns how many searches there were.
func (c *counting) reset() (searches int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	searches, c.searches = c.searches, 0
	clear(c.seen)
	return searches
}

// I23: the service asked not to be called for one vault. The documents that wait for
// that are not read while another vault works.
func TestQueues_I23_PausedOnesAreNotScanned(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &registering{service: &service{}, answer: func(_ int32, v archive.VaultID, _ []archive.RegisterRequest) (a archive.RegisterResult, mine bool, err error) {
			return a, v == "AWAY", &apicall.Error{Outcome: apicall.NotProcessed, Code: "http-429", Text: "429", Status: 429, RetryAfter: 24 * time.Hour}
		}}
		r := build(t, s.service, "AWAY", "B")
		row := r.cfg.Routes[ledger.Vault]
		row.Client = s
		r.cfg.Routes[ledger.Vault] = row
		looks := &counting{Index: r.cfg.Index, seen: map[string]int{}}
		r.cfg.Index = looks
		r.start()
		r.dropAndPass("AWAY", 300, 10*time.Minute)
		kit.Want(t, "states of the paused vault", r.statesOf("AWAY"), states{ledger.Packaged: 300})
		looks.reset()
		r.dropAndPass("B", 50, time.Hour)
		kit.Want(t, "states of the other vault", r.statesOf("B"), states{ledger.Archived: 50})
		kit.Want(t, "entries read of the paused vault", looks.seen["register vault AWAY"], 0)
	})
}

// I15: in safe mode folders are sealed and questions are asked. Nothing else begins.
func TestSafe_I15_OnlySealAndAsk(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var safe atomic.Bool
		s := &service{slow: true}
		r := build(t, s)
		r.cfg.IsHeld = safe.Load
		r.start()
		r.dropAndPass("V", 10, 10*time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 10})
		safe.Store(true)
		r.pass(2 * time.Minute)
		posts, _ := s.counts()
		s.mu.Lock()
		asked := maps.Clone(s.asked)
		s.slow = false // the next answers are successes
		s.mu.Unlock()
		r.dropNamed("V", "late", 10)
		r.pass(2 * time.Hour)
		now, _ := s.counts()
		kit.Want(t, "registrations in safe mode", now-posts, 0)
		kit.Check(t, !maps.Equal(asked, s.asked),
			"questions in safe mode: %v before, %v after, want more", asked, s.asked)
		kit.Want(t, "states", r.states(), states{ledger.Packaged: 10, ledger.Archived: 10})
		kit.Want(t, "folders in safe mode", r.sourcesOf("V"), sources{ledger.Claimed: 20})
		safe.Store(false)
		r.Wake()
		r.pass(2 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 20})
		kit.Want(t, "folders", r.sourcesOf("V"), sources{ledger.Kept: 20})
	})
}

// I8: the service mixed up documents of one vault twice, and of another one once.
// Only the first vault stops.
func TestCrossWired_I8_OneVaultsMixUpsStopNoOther(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{crosses: "A"}
		r := run(t, s, "A", "B")
		r.drop("A", 2)
		r.pass(10 * time.Minute) // once
		s.mu.Lock()
		s.crosses = "B"
		s.mu.Unlock()
		r.drop("B", 2)
		r.pass(10 * time.Minute) // once as well
		kit.Want(t, "paused targets", r.paused(), nil)
		r.dropNamed("B", "late", 2)
		r.pass(10 * time.Minute)
		kit.Want(t, "paused targets", r.paused(), []string{"vault B"})
	})
}

// I6: the machine is suspended during an upload. The upload ends with its ticket by the
// boot clock, which counts the suspend though timers do not, and the ticket is not used
// again.
func TestUpload_I6_SuspendedWhileSending(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
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
		r.dropAndPass("V", 1, 30*time.Second)
		kit.Want(t, "uploads under way", len(begun), 1)
		s.suspend(20 * time.Minute)
		r.pass(2 * time.Second)
		kit.Want(t, "uploads that ended with their window", len(ended), 1)
		s.suspend(time.Minute)
		r.pass(10 * time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Unclear: 1})
		kit.Want(t, "tickets used", slices.Compact(used), []archive.RemoteID{"bum-1"})
	})
}

// I6: the machine slept for a moment between the intent and the first byte. It has
// lost its connections, so the ticket that it held is used no more.
func TestUpload_I6_SuspendVoidsATicketThatWasNotUsed(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{}
		r := build(t, s)
		var once sync.Once
		r.folders("V").finds = func() { once.Do(func() { s.suspend(5 * time.Second) }) }
		r.start()
		r.dropAndPass("V", 1, time.Hour)
		_, granted := s.counts()
		kit.Want(t, "registrations", granted, 2)
		kit.Want(t, "tickets used", slices.Collect(maps.Keys(s.uploaded)), []archive.RemoteID{"bum-2"})
		kit.Want(t, "states", r.states(), states{ledger.Archived: 1})
	})
}

// I3: more folders than usual are due for disposal at once. None goes before an
// operator allows it, and folders that are to be kept since then stay.
func TestDispose_I3_DisposalLimit(t *testing.T) {
	t.Parallel()
	type row struct {
		change func(*ingest.Drop)
		stops  bool
		gone   int
	}
	kit.Rows(t, map[string]row{
		"Usual":         {func(*ingest.Drop) {}, false, 30},
		"UnusuallyMany": {func(*ingest.Drop) {}, true, 0},
		"NowKept":       {func(d *ingest.Drop) { d.Disposes = false }, false, 0},
		"NowKeptLonger": {func(d *ingest.Drop) { d.Grace = 60 * 24 * time.Hour }, false, 0},
	}, func(t *testing.T, row row) {
		synctest.Test(t, func(t *testing.T) {
			r := build(t, &service{})
			d := r.configured("V")
			d.Disposes, d.Grace = true, 30*24*time.Hour
			var asked []int
			r.cfg.DisposalLimit = func(drop string, due int) error {
				if asked = append(asked, due); row.stops {
					return &ingest.DisposalLimitError{Drop: drop, Due: due, Usual: 10}
				}
				return nil
			}
			r.start()
			r.dropAndPass("V", 30, 10*24*time.Hour)
			kit.Want(t, "folders before they are due", r.sourcesOf("V"), sources{ledger.Kept: 30})
			kit.Want(t, "disposals that the limit was asked for", asked, nil)
			r.stop()
			row.change(d)
			r.start()
			r.s.suspend(21 * 24 * time.Hour) // all are due at once
			r.pass(time.Hour)
			if !row.stops {
				kit.Want(t, "folders that went", r.sourcesOf("V")[ledger.Gone], row.gone)
				kit.Want(t, "folders that stayed", r.sourcesOf("V")[ledger.Kept], 30-row.gone)
				kit.Want(t, "paused targets", r.paused(), nil)
				return
			}
			kit.Want(t, "folders", r.sourcesOf("V"), sources{ledger.Kept: 30})
			kit.Want(t, "paused targets", r.paused(), []string{"disposal of V"})
			row.stops = false
			r.pass(24 * time.Hour)
			kit.Want(t, "folders before an operator allows it", r.sourcesOf("V"), sources{ledger.Kept: 30})
			r.ResumeDisposals("V")
			r.pass(time.Hour)
			kit.Want(t, "folders", r.sourcesOf("V"), sources{ledger.Gone: 30})
		})
	})
}

// I3: the time of folders is postponed that the limit had allowed. They use up what it
// allowed, so it is asked again when they are due again.
func TestDispose_I3_PostponedUseUpTheLeave(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{})
		d := r.configured("V")
		d.Disposes, d.Grace = true, 30*24*time.Hour
		var asked []int
		r.cfg.DisposalLimit = func(_ string, due int) error { asked = append(asked, due); return nil }
		r.start()
		r.dropAndPass("V", 30, 10*24*time.Hour)
		r.stop()
		d.Grace = 60 * 24 * time.Hour
		r.start()
		r.s.suspend(21 * 24 * time.Hour)
		r.pass(time.Hour)
		kit.Want(t, "folders", r.sourcesOf("V"), sources{ledger.Kept: 30})
		kit.Want(t, "disposals that the limit was asked for", asked, []int{30})
		r.s.suspend(31 * 24 * time.Hour)
		r.pass(time.Hour)
		kit.Want(t, "folders", r.sourcesOf("V"), sources{ledger.Gone: 30})
		kit.Want(t, "disposals that the limit was asked for", asked, []int{30, 30})
	})
}
