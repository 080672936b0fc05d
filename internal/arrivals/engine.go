package arrivals

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
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

// Engine takes in what is of one kind.
type Engine struct {
	Config
	ledger Ledger
	kind   arrival.Kind
	rules  arrival.Rules

	// prepare does what comes before a look at what is due, and returns when it
	// is to be done again.
	prepare func(ctx context.Context) (time.Time, error)
	do      func(ctx context.Context, w *work, step arrival.Step, file string) error

	wake chan struct{} // size 1: a hint that something may be due

	mu     sync.Mutex
	status Status // guarded by mu
	faults int    // guarded by mu: in a row, of the service as a whole

	put map[archive.Key]int // guarded by mu: how many folders of an arrival are in the drop folder; a restart forgets it
}

// Status is how the engine and the service get on. A restart forgets it.
type Status struct {
	ListedAt    time.Time // of the last list of extracts that came; zero: none did in this run
	PausedUntil time.Time // nothing is asked before; zero: no pause
	Why         string    // of the pause; empty: the service answered last
	// FailingSince is when the first of the pauses began between which the
	// service gave no answer; zero: it answered last.
	FailingSince time.Time
	Refused      string // why some downloads are not made until the configuration allows other hosts; empty: all may be made
}

func newEngine(cfg Config, l Ledger, kind arrival.Kind, rules arrival.Rules) *Engine {
	cfg.Workers = max(cfg.Workers, 1)
	return &Engine{Config: cfg, ledger: l, kind: kind, rules: rules, wake: make(chan struct{}, 1), put: map[archive.Key]int{}}
}

// Status returns how the engine gets on.
func (e *Engine) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

// Wake makes the engine look soon at what is due, as after a person's act.
func (e *Engine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// TryNow makes the engine look at once, because a person asked for it: a pause
// after a fault of the service ends.
func (e *Engine) TryNow() {
	e.mu.Lock()
	e.status.PausedUntil = time.Time{}
	e.mu.Unlock()
	e.Wake()
}

const (
	longestSleep = 10 * time.Minute
	mostDue      = 200 // arrivals that are looked up at once: a backlog of any length takes no more memory
)

// Run works until ctx ends. Its error is one of the ledger, or of a file whose
// place on disk is not known: then the process must end, and the next start
// reads what is there. Nothing remote ends it. Calls under way end with ctx;
// their intents stand.
func (e *Engine) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := e.round(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("take in what is of the kind %s: %w", e.kind, err)
		}
		t := time.NewTimer(min(max(next.Sub(e.now().Wall), time.Second), longestSleep))
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-t.C:
		}
		t.Stop()
	}
	return nil
}

// round does what is due, and returns when to look again.
func (e *Engine) round(ctx context.Context) (next time.Time, err error) {
	again, err := e.prepare(ctx)
	tried := map[archive.Key]uint32{} // in this round, at which revision: one whose work leaves no line is not tried again
	for err == nil && ctx.Err() == nil && e.mayAct() {
		var due []arrival.Arrival
		if due, next, err = e.findDue(tried); err != nil || len(due) == 0 {
			break
		}
		for _, a := range due {
			tried[a.Key] = a.Rev
		}
		err = e.workOn(ctx, due)
	}
	if until := e.Status().PausedUntil; until.After(e.now().Wall) {
		return until, err
	}
	return earlier(again, next), err
}

// findDue returns what has something due: that of which nothing failed since
// its last step, or else the others, the first that are due first. The fault of
// one may look like one of the service as a whole, which then keeps back all
// that come after it. next is when the next of the others has something due;
// zero: none will by itself.
func (e *Engine) findDue(tried map[archive.Key]uint32) (due []arrival.Arrival, next time.Time, err error) {
	skip := func(a arrival.Arrival) bool {
		rev, isTried := tried[a.Key]
		step, _, _ := e.dueOf(a)
		return isTried && rev == a.Rev || step == arrival.NoStep || step == arrival.Person
	}
	for _, until := range []time.Time{time.Unix(0, 0), e.now().Wall} {
		next = time.Time{}
		for _, stage := range e.rules.Stages(e.kind) {
			some, at, err := e.ledger.DueArrivals(e.kind, stage, until, mostDue-len(due), nil, skip)
			if err != nil {
				return nil, next, err
			}
			due, next = append(due, some...), earlier(next, at)
		}
		if len(due) > 0 {
			break
		}
	}
	return due, next, nil
}

// HasWork reports whether an arrival has something due that may be tried now.
// With most above 0 one that waits after fewer than that many failures counts
// as well, and no other.
func (e *Engine) HasWork(most uint16) (bool, error) {
	until := e.now().Wall
	if most == 0 && !e.mayAct() {
		return false, nil
	}
	if most > 0 {
		until = until.AddDate(100, 0, 0)
	}
	for _, stage := range e.rules.Stages(e.kind) {
		left, _, err := e.ledger.DueArrivals(e.kind, stage, until, 1, nil, func(a arrival.Arrival) bool { return most > 0 && a.Attempt >= most })
		if err != nil || len(left) > 0 {
			return len(left) > 0, err
		}
	}
	return false, nil
}

// workOn does what is due for some arrivals, several at once.
func (e *Engine) workOn(ctx context.Context, due []arrival.Arrival) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.Workers)
	for _, a := range due {
		g.Go(func() error { return (&work{Engine: e, a: a}).doDueSteps(ctx) })
	}
	return g.Wait()
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

// mayAct reports whether anything may be fetched, said and deleted.
func (e *Engine) mayAct() bool {
	held := e.IsHeld != nil && e.IsHeld()
	return !held && !e.now().Wall.Before(e.Status().PausedUntil)
}

func (e *Engine) now() archive.Instant { return e.Now() }

// pauseCalls stops all calls for a while: the fault is not that of one arrival.
func (e *Engine) pauseCalls(op string, err *apicall.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := max(arrival.DelayAfter(e.faults), err.RetryAfter)
	e.faults++
	e.status.PausedUntil, e.status.Why = e.now().Wall.Add(wait), err.Error()
	if e.status.FailingSince.IsZero() {
		e.status.FailingSince = e.now().Wall
	}
	e.Log.Warn("what comes in pauses", "kind", e.kind, "step", op, "for", wait, "code", err.Code, "err", err.Error())
}

// noteAnswer notes that the service works.
func (e *Engine) noteAnswer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults, e.status = 0, Status{ListedAt: e.status.ListedAt, Refused: e.status.Refused}
}

// earlier returns the earlier of two times of which each may be missing.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
