package ingest_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"strings"
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

// commitRegistered commits entries that hold a ticket from now on, or from some time ago.
func (r *running) commitRegistered(n int, sent archive.Instant) {
	r.t.Helper()
	for i := range n {
		r.commitPackaged("V", ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: archive.Ticket{Remote: numbered(1000 + i), URL: addressed(1000 + i), Sent: sent}})
	}
}

// intending counts the intents to upload that the engine commits.
type intending struct {
	ingest.Ledger
	first func() // called with the first of them, by the worker that commits it

	mu      sync.Mutex
	intents map[archive.Key]int // guarded by mu
}

func (l *intending) Submit(cs []ledger.Change, then func([]ledger.Result)) {
	l.mu.Lock()
	first := len(l.intents) == 0
	for _, c := range cs {
		if _, is := c.Events[0].(ledger.UploadIntended); is {
			l.intents[c.Key]++
		}
	}
	first = first && len(l.intents) > 0
	l.mu.Unlock()
	if first && l.first != nil {
		l.first()
	}
	l.Ledger.Submit(cs, then)
}

// I24: the store asks to be left alone while a worker takes ten documents to upload, and
// has committed the intent of the first. The worker takes no other.
func TestWorker_I24_APauseInTheMiddleOfARound(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		ends := make(chan struct{})
		s := &service{slow: true}
		r := build(t, s)
		l := &intending{Ledger: r.cfg.Ledger, intents: map[archive.Key]int{}}
		r.cfg.Ledger = l
		r.start()
		r.dropNamed("V", "before", 60) // speeds are learned: many may wait for a slot
		r.pass(time.Minute)
		s.upload = func(archive.RemoteID) error {
			<-ends
			return &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-429", Text: "429", Status: 429, RetryAfter: 4 * time.Minute}
		}
		r.dropNamed("V", "asks for the pause", 1)
		r.pass(10 * time.Second)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 60, ledger.Sending: 1})
		l.mu.Lock()
		clear(l.intents)
		l.first = func() {
			close(ends)
			for r.paused() == nil {
				time.Sleep(time.Millisecond)
			}
		}
		l.mu.Unlock()
		r.commitRegistered(10, s.now())
		r.Wake()
		r.pass(10 * time.Second)
		kit.Want(t, "paused targets", r.paused(), []string{"store of vault V"})
		kit.Want(t, "documents whose upload was intended", len(l.intents), 1)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 60, ledger.Sending: 1, ledger.Registered: 10})
	})
}

// forgetful is an index that finds each entry once more while it is under way.
type forgetful struct {
	ingest.Index
	again sync.Map // key → true
}

func (f *forgetful) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	if busy == nil || s != ledger.Upload {
		return f.Index.DueInQueue(s, queue, now, limit, busy, skip)
	}
	return f.Index.DueInQueue(s, queue, now, limit, func(k archive.Key) bool {
		is := busy(k)
		if is {
			_, again := f.again.LoadOrStore(k, true)
			return again
		}
		return is
	}, skip)
}

// I2: a search finds documents that are being uploaded. They are not uploaded a second
// time.
func TestPool_I2_NothingIsTakenTwice(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		uploads := map[archive.RemoteID]int{}
		r := build(t, &service{slow: true, hangs: func(_ context.Context, id archive.RemoteID) error {
			mu.Lock()
			uploads[id]++
			mu.Unlock()
			time.Sleep(10 * time.Second)
			return nil
		}})
		found := &forgetful{Index: r.cfg.Index}
		r.cfg.Index = found
		r.start()
		r.dropAndPass("V", 20, 10*time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 20})
		for id, n := range uploads {
			kit.Want(t, "uploads of "+string(id), n, 1)
		}
		n := 0
		found.again.Range(func(any, any) bool { n++; return true })
		kit.Check(t, n != 0, "no entry was found while it was under way, want some: the test shows nothing")
	})
}

// I23: very many quick uploads wait in one vault's queue. Another vault has its share
// of the slots.
func TestStore_I23_QuickOnesLeaveOthersTheirShare(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{slow: true}
		var mu sync.Mutex
		under, most := 0, 0
		s.hangs = func(_ context.Context, id archive.RemoteID) error {
			if s.of(id) == "QUICK" {
				time.Sleep(40 * time.Millisecond)
				return nil
			}
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			under--
			mu.Unlock()
			return nil
		}
		r := build(t, s, "QUICK", "B")
		row := r.cfg.Routes[ledger.Vault]
		row.Workers = 8
		r.cfg.Routes[ledger.Vault] = row
		r.cfg.Planner.Workers = 8
		r.start()
		r.dropAndPass("QUICK", 1800, 3*time.Second)
		r.dropAndPass("B", 20, 7*time.Second)
		n := r.statesOf("QUICK")
		kit.Check(t, n[ledger.Uploaded] != 1800, "states of the quick vault = %v, want some to wait: the test shows nothing", n)
		mu.Lock()
		kit.Check(t, most >= 4, "at most %d uploads of the other vault at once, want its share of 4", most)
		mu.Unlock()
		r.pass(time.Minute)
	})
}

// I6: the turns of several uploads come at the same moment. Each is compared with those
// before it. Where two would keep each other from ending in time, one begins.
func TestUpload_I6_OfSeveralAtOnceEachCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		took   time.Duration
		atOnce int32
	}{"SlowLine": {200 * time.Second, 1}, "QuickLine": {time.Second, 2}} { // two are what a limiter begins with
		kit.Bubble(t, name, func(t *testing.T) {
			var under, most atomic.Int32
			r := build(t, &service{slow: true, hangs: func(context.Context, archive.RemoteID) error {
				n := under.Add(1)
				defer under.Add(-1)
				most.Store(max(n, most.Load()))
				time.Sleep(row.took)
				return nil
			}})
			r.commitRegistered(4, r.s.now())
			r.learn(row.took)
			r.start()
			r.pass(row.took / 2)
			kit.Want(t, "uploads at once", most.Load(), row.atOnce)
			r.pass(2 * time.Hour)
			kit.Want(t, "states", r.states(), states{ledger.Uploaded: 4})
		})
	}
}

// slowRead is an index that gives the engine what it reads of all tickets in use only
// after meanwhile returned.
type slowRead struct {
	ingest.Index
	meanwhile atomic.Pointer[func()]
	read      atomic.Int32 // entries that were given late
}

func (i *slowRead) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	if busy != nil || s != ledger.Upload {
		return i.Index.DueInQueue(s, queue, now, limit, busy, skip)
	}
	var all []ledger.Entry
	es, at, err := i.Index.DueInQueue(s, queue, now, limit, nil, func(e ledger.Entry) bool { all = append(all, e); return true })
	if meanwhile := i.meanwhile.Swap(nil); meanwhile != nil {
		(*meanwhile)()
		i.read.Add(int32(len(all)))
	}
	for _, e := range all {
		skip(e)
	}
	return es, at, err
}

// I6: the engine reads the ledger after an act that it did not see, and the documents
// that hold tickets are uploaded meanwhile. What was read of their tickets counts no
// more: on a slow line they would keep the vault from registering anything for a while.
func TestBacklog_I6_UploadedWhileTheLedgerIsRead(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		ends := make(chan struct{})
		r := build(t, &service{slow: true, hangs: func(context.Context, archive.RemoteID) error { <-ends; return nil }})
		learnLine := func(took time.Duration) {
			for range 60 {
				r.learn(took)
			}
		}
		learnLine(time.Minute)
		index := &slowRead{Index: r.cfg.Index}
		r.cfg.Index = index
		r.start()
		r.dropNamed("V", "first", 3)
		r.pass(time.Minute)
		first := r.states()
		uploaded := func() { // no time passes: a worker that waits for the engine's lock keeps the bubble's clock from moving
			close(ends)
			for r.states()[ledger.Uploaded] < first[ledger.Sending]+first[ledger.Registered] {
				runtime.Gosched()
			}
		}
		index.meanwhile.Store(&uploaded)
		r.Wake()
		synctest.Wait()
		learnLine(4 * time.Minute)
		n := index.read.Load()
		kit.Check(t, n >= 2, "%d entries with tickets were read late, want at least 2: the test shows nothing", n)
		r.dropNamed("V", "second", 3)
		r.pass(30 * time.Second) // the first question about an uploaded document comes later
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 6})
	})
}

// lagging is an index whose first search that finds something to seal takes a minute: the
// entry may be sealed and committed meanwhile.
type lagging struct {
	ingest.Index
	found []ledger.Entry
	times int
}

func (l *lagging) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	es, at, err := l.Index.DueInQueue(s, queue, now, limit, busy, skip)
	if s != ledger.Seal {
		return es, at, err
	}
	if l.times++; len(es) > 0 && l.found == nil {
		l.found, l.times = es, 0
	}
	if l.found == nil || l.times != 1 {
		return es, at, err
	}
	time.Sleep(time.Minute)
	return slices.DeleteFunc(l.found, func(e ledger.Entry) bool { return busy(e.Key) }), at, err
}

// I11: a search began before the end of the work on an entry, and finds it as it was.
// The work is not done again.
func TestWorker_I11_ALookThatIsOld(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		var errs strings.Builder
		r.cfg.Log = slog.New(slog.NewTextHandler(&errs, &slog.HandlerOptions{Level: slog.LevelError}))
		old := &lagging{Index: r.cfg.Index}
		r.cfg.Index = old
		f := r.folders("V")
		f.takes = time.Second
		r.start()
		r.dropAndPass("V", 1, 5*time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 1})
		kit.Check(t, old.times >= 1, "no search was late, want one: the test shows nothing")
		f.mu.Lock()
		defer f.mu.Unlock()
		kit.Want(t, "times that it was packed", f.packed, 1)
		kit.Want(t, "errors in the log", errs.String(), "")
	})
}

// I23: more packages than a vault may have waiting are held for a decision. Other
// folders of the vault are packed and uploaded, also after the ledger was read again.
func TestBacklog_I23_HeldCountsForNothing(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		f := r.folders("V")
		f.same = true
		r.configured("V").Holds.SameContent = true
		r.start()
		const held = 2010 // 2000 may wait
		r.dropNamed("V", "first", 1)
		r.pass(time.Minute)
		r.dropAndPass("V", held, 10*time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 1, ledger.Packaged: held})
		f.mu.Lock()
		f.same = false
		f.mu.Unlock()
		for n, name := range []string{"good", "good after a reading"} {
			r.dropNamed("V", name, 10)
			r.pass(10 * time.Minute)
			kit.Want(t, "states", r.states(), states{ledger.Uploaded: 11 + 10*n, ledger.Packaged: held})
			r.Wake()
		}
	})
}

// The packages of documents with tickets are missing, and the spool is full. They are
// not made again before there is room.
func TestReseal_WaitsForRoom(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		var full atomic.Bool
		full.Store(true)
		r.cfg.SpoolSpace = func(string) error {
			if full.Load() {
				return ingest.ErrFull
			}
			return nil
		}
		r.commitRegistered(1, r.s.now())
		f := r.folders("V")
		clear(f.sealed)
		f.packed = 0
		r.start()
		r.pass(2 * time.Minute)
		kit.Want(t, "times that it was packed without room", f.packed, 0)
		kit.Want(t, "states", r.states(), states{ledger.Registered: 1})
		full.Store(false)
		r.pass(time.Hour)
		kit.Want(t, "times that it was packed", f.packed, 1)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 1})
	})
}
