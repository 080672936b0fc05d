package arrivals

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Ledger is where arrivals live and where every change is committed.
// ApplyArrival returns when the change is durable.
type Ledger interface {
	ApplyArrival(ctx context.Context, c arrival.Change) (arrival.Arrival, error)
	// DueArrivals returns what may have something due at a stage, and when the
	// next one may.
	DueArrivals(kind arrival.Kind, stage arrival.Stage, now time.Time, limit int, busy func(archive.Key) bool, skip func(arrival.Arrival) bool) (ready []arrival.Arrival, next time.Time, err error)
}

// Drop is the drop folder that files are put into, so that the archive gets
// them.
type Drop interface {
	// PutFolder puts a folder there. Without an error it is durable there, or
	// was taken from there. The same call may be made again at any time: it
	// then does nothing, or puts the folder there once more.
	PutFolder(ctx context.Context, f archive.DropFolder) error
}

// Config is what every engine works with. All but Room and IsHeld are needed.
type Config struct {
	Workers int // arrivals at once
	Now     func() archive.Instant
	Log     *slog.Logger

	Room   func() error // why nothing may be fetched just now: the disk is nearly full; nil: there is always room
	IsHeld func() bool  // nothing is fetched, said or deleted: in safe mode; nil: never
}

// Engine takes in what is of one kind. All of it needs one service, which is
// the target of one circuit breaker.
type Engine struct {
	Config
	ledger Ledger
	kind   arrival.Kind
	rules  arrival.Rules
	core   *engine.Engine[arrival.Arrival, arrival.Kind]
	stop   context.CancelCauseFunc // ends Run; set by it

	// prepare does what comes before a look at what is due, and returns when it
	// is to be done again.
	prepare func(ctx context.Context) (time.Time, error)
	do      func(ctx context.Context, w *work, step arrival.Step, file string) error

	mu      sync.Mutex
	refused string                    // guarded by mu: as Status says
	put     map[archive.Key]int       // guarded by mu: how many folders of an arrival are in the drop folder; a restart forgets it
	waits   map[archive.Key]time.Time // guarded by mu: until then one is left alone whose work left no line
}

// Status is how the engine and the service get on. A restart forgets it.
type Status struct {
	Why     string    // of a pause; empty: the service answered last
	Since   time.Time // when the first of the pauses began between which the service gave no answer
	Refused string    // why some downloads are not made until the configuration allows other hosts; empty: all may be made
}

func newEngine(cfg Config, l Ledger, kind arrival.Kind, rules arrival.Rules) *Engine {
	e := &Engine{Config: cfg, ledger: l, kind: kind, rules: rules, put: map[archive.Key]int{}, waits: map[archive.Key]time.Time{}}
	e.core = engine.New(engine.Config[arrival.Arrival, arrival.Kind]{
		Key: func(a arrival.Arrival) archive.Key { return a.Key }, Now: cfg.Now, LongestSleep: longestSleep,
		// One lane: an arrival goes from step to step in one task, and no other
		// takes it meanwhile.
		Steps: []engine.Step[arrival.Arrival, arrival.Kind]{{
			Name: string(kind), Width: max(cfg.Workers, 1), Due: e.findDue, Admit: e.admit, Start: e.start,
			Queues: func() ([]string, error) { return []string{""}, nil },
			Terms:  func(string) engine.Terms[arrival.Kind] { return engine.Terms[arrival.Kind]{Batch: 1} },
		}},
	})
	return e
}

// Status returns how the engine gets on.
func (e *Engine) Status() (s Status) {
	for _, p := range e.core.Breakers.List() {
		s.Why, s.Since = p.Cause.Text, p.Since
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s.Refused = e.refused
	return s
}

// Wake makes the engine look soon at what is due, as after a person's act.
func (e *Engine) Wake() { e.core.WakeAll() }

// TryNow makes the engine look at once, because a person asked for it: a pause
// after a fault of the service ends.
func (e *Engine) TryNow() {
	e.core.Breakers.Resume(e.kind)
	e.Wake()
}

// longestSleep is the longest wait between two looks at what is due.
const longestSleep = 10 * time.Minute

// Run works until ctx ends. Its error is one of the ledger, or of a file whose
// place on disk is not known: then the process must end, and the next start
// reads what is there. Nothing remote ends it. Calls under way end with ctx;
// their intents stand.
func (e *Engine) Run(ctx context.Context) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.stop = stop
	again, err := e.prepare(ctx)
	g, work := errgroup.WithContext(running)
	if err == nil {
		g.Go(func() error { defer e.core.Wait(); return e.core.Dispatch(work, work) })
	}
	g.Go(func() error {
		for ; err == nil; again, err = e.prepare(work) {
			e.Wake()
			select {
			case <-work.Done():
				return nil
			case <-time.After(min(max(again.Sub(e.now().Wall), time.Second), longestSleep)):
			}
		}
		return err
	})
	waited := g.Wait()
	// The fault of the task that ended the work comes first: it cancelled the others.
	if err := cmp.Or(context.Cause(running), waited); err != nil && ctx.Err() == nil {
		return fmt.Errorf("take in what is of the kind %s: %w", e.kind, err)
	}
	return nil
}

// findDue returns arrivals that have something due: first those of which nothing
// failed since their last step, then the others, the first that are due first. The
// fault of one may look like one of the service, and then one alone is tried for a
// while: so it is not always the same. next is when the next one has something due;
// zero: none will by itself.
func (e *Engine) findDue(_ string, now time.Time, limit int, busy func(archive.Key) bool, skip func(arrival.Arrival) bool) (due []arrival.Arrival, next time.Time, err error) {
	hasNothing := func(a arrival.Arrival) bool {
		step, _, _ := e.dueOf(a)
		return step == arrival.NoStep || step == arrival.Person || skip(a)
	}
	for _, stage := range e.rules.Stages(e.kind) {
		some, at, err := e.ledger.DueArrivals(e.kind, stage, now, limit, busy, hasNothing)
		if err != nil {
			return nil, next, err
		}
		due = append(due, some...)
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	slices.SortStableFunc(due, func(a, b arrival.Arrival) int { return a.NotBefore.Compare(b.NotBefore) })
	return due[:min(len(due), limit)], next, nil
}

// admit returns how an arrival may go now. The drop folder needs no service.
func (e *Engine) admit(string, archive.Instant) (func(arrival.Arrival) engine.Admission[arrival.Kind], error) {
	if e.isHeld() {
		return nil, nil
	}
	return func(a arrival.Arrival) engine.Admission[arrival.Kind] {
		how := engine.Admission[arrival.Kind]{Target: e.kind, Most: 1}
		if step, _, _ := e.dueOf(a); step == arrival.HandOn {
			how.Target = ""
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		how.From = e.waits[a.Key]
		return how
	}, nil
}

// start begins the work on one arrival. Each step commits its own intent.
func (e *Engine) start(t *engine.Task[arrival.Arrival, arrival.Kind]) func(context.Context) {
	return func(ctx context.Context) {
		w := &work{Engine: e, a: t.Jobs[0]}
		if !t.Begin(w.a) {
			return
		}
		if err := w.doDueSteps(ctx); err != nil {
			// Before the arrival is free: what may be done on disk is not tried again
			// before the next start.
			e.stop(err)
		}
	}
}

// HasWork reports whether an arrival has something due that may be tried now.
// With most above 0 one that waits after fewer than that many failures counts
// as well, and no other.
func (e *Engine) HasWork(most uint16) (bool, error) {
	until := e.now().Wall
	if most == 0 && (e.isHeld() || e.isPaused()) {
		return false, nil
	}
	if most > 0 {
		until = until.AddDate(100, 0, 0)
	}
	left, _, err := e.findDue("", until, 1, nil, func(a arrival.Arrival) bool { return most > 0 && a.Attempt >= most })
	return len(left) > 0, err
}

// dueOf is [arrival.Due]. An extract that the service dropped by its age is not
// acknowledged any more.
func (e *Engine) dueOf(a arrival.Arrival) (arrival.Step, string, time.Time) {
	step, file, at := arrival.Due(a, e.rules)
	if end := a.EndsAt(); step == arrival.Acknowledge && !end.IsZero() && e.now().Wall.After(end) {
		return arrival.NoStep, "", time.Time{}
	}
	return step, file, at
}

// isHeld reports whether nothing is fetched, said and deleted.
func (e *Engine) isHeld() bool { return e.IsHeld != nil && e.IsHeld() }

// isPaused reports whether the service is left alone for a while.
func (e *Engine) isPaused() bool {
	_, open := e.core.Breakers.IsOpen(e.kind, e.now().Wall)
	return open
}

func (e *Engine) now() archive.Instant { return e.Now() }

// pauseCalls stops all calls for a while: the fault is not that of one arrival.
func (e *Engine) pauseCalls(op string, err *apicall.Error) {
	if e.core.Breakers.Open(e.kind, ledger.Cause{Code: err.Code, Text: err.Error()}, false, err.RetryAfter, e.now().Wall) {
		e.Log.Warn("what comes in pauses", "kind", e.kind, "step", op, "code", err.Code, "err", err.Error())
	}
}

// noteAnswer notes that the service works.
func (e *Engine) noteAnswer() { e.core.Breakers.Close(e.kind, e.now().Wall) }
