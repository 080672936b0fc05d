package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger/arrival"
)

// Ledger is where arrivals live and where every change is committed. ApplyArrival returns when the change is durable.
type Ledger interface {
	ApplyArrival(ctx context.Context, c arrival.Change) (arrival.Arrival, error)
	FindArrival(kind arrival.Kind, item archive.ExtractID) (arrival.Arrival, bool, error)
	Arrivals(fn func(arrival.Arrival) error, states ...arrival.State) error
	DueArrivals(kind arrival.Kind, stage arrival.Stage, now time.Time, limit int, busy func(archive.Key) bool, skip func(arrival.Arrival) bool) (ready []arrival.Arrival, next time.Time, err error)
	// LastAlarm returns when the ledger last lost something; zero: never.
	LastAlarm() time.Time
}

// Service has the extracts. Its errors are *apicall.Error.
type Service interface {
	List(ctx context.Context, status string) (archive.ExtractList, error)
	Files(ctx context.Context, id archive.ExtractID) ([]archive.ExtractFile, error)
	// Download makes exactly one download, however it ends. An error of w has the code "local".
	Download(ctx context.Context, f archive.ExtractFile, w io.Writer) (int64, error)
	Definition(ctx context.Context) (archive.TableDefinition, error)
}

// Acknowledger tells the service that an extract is held. The service then hides it from every other program. To repeat it does no harm.
type Acknowledger interface {
	Acknowledge(ctx context.Context, id archive.ExtractID, message string) error
}

// Drop is the drop folder that files of extracts are put into, so that the archive gets them.
type Drop interface {
	// PutFolder puts a folder there. Without an error it is durable there, or was taken from there. The same call may be made again at
	// any time: it then does nothing, or puts the folder there once more.
	PutFolder(ctx context.Context, f archive.DropFolder) error
}

// HandOn says that the files of an extract are archived, and as what.
type HandOn struct {
	Drop         Drop
	DropName     string
	DocumentType string // one of archive.DocumentTypes
	LedgerID     string // part of the identity of each document
}

// Config is what an engine works with.
type Config struct {
	Ledger       Ledger
	Service      Service
	Acknowledger Acknowledger // nil: nothing is acknowledged, and what is held is at its end
	HandOn       *HandOn      // nil: nothing is archived
	Custody      *custody.Custody
	Every        time.Duration // between two lists
	Workers      int           // extracts at once, at most two
	MaxDownloads uint16        // of one file, before a person must look
	Hosts        string        // digest of the hosts that redirects may lead to: a download that led elsewhere is tried again once it changes
	Now          func() archive.Instant
	Log          *slog.Logger

	Room   func() error // why nothing may be downloaded just now: the disk of the custody is nearly full; nil: there is always room
	IsHeld func() bool  // nothing is downloaded and acknowledged: in safe mode; nil: never
}

// mostWorkers is how many extracts are worked on at once, and so how many downloads there are: the service blocks who asks for much.
const mostWorkers = 2

// Engine takes in what the service lists.
type Engine struct {
	cfg  Config
	wake chan struct{} // size 1: a hint that something may be due
	way  chan struct{} // size 1: full from before a download until its first byte

	mu     sync.Mutex
	status Status                     // guarded by mu
	faults int                        // guarded by mu: in a row, of the service as a whole
	listed map[archive.ExtractID]bool // guarded by mu: by the last list that was whole; nil: none was in this run
	put    map[archive.Key]int        // guarded by mu: how many files of an arrival are in the drop folder; a restart forgets it
}

// Status is how the engine and the service get on. A restart forgets it.
type Status struct {
	ListedAt    time.Time // of the last list that came; zero: none did in this run
	PausedUntil time.Time // nothing is asked before; zero: no pause
	Why         string    // of the pause; empty: the service answered last
	// FailingSince is when the first of the pauses began between which the service gave no answer; zero: it answered last.
	FailingSince time.Time
	Refused      string // why some downloads are not made until the configuration allows other hosts; empty: all may be made
}

// New returns an engine; it does nothing before Run.
func New(cfg Config) *Engine {
	cfg.Workers = min(max(cfg.Workers, 1), mostWorkers)
	return &Engine{cfg: cfg, wake: make(chan struct{}, 1), way: make(chan struct{}, 1), put: map[archive.Key]int{}}
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

// Run works until ctx ends. Its error is one of the ledger, or of a file whose place on disk is not known: then the process must end,
// and the next start reads what is there. Nothing remote ends it. Calls under way end with ctx; their intents stand.
func (e *Engine) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := e.round(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("take extracts in: %w", err)
		}
		t := time.NewTimer(max(next.Sub(e.now().Wall), time.Second))
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-t.C:
		}
		t.Stop()
	}
	return nil
}

// round adopts what is in custody, asks for the list where that is due, and does what is due. It returns when to look again.
func (e *Engine) round(ctx context.Context) (next time.Time, err error) {
	s := e.Status()
	if e.now().Wall.Before(s.PausedUntil) {
		return s.PausedUntil, nil
	}
	if s.ListedAt.IsZero() || !e.now().Wall.Before(s.ListedAt.Add(e.cfg.Every)) {
		// Before the list: what custody has whole is not announced as unknown, and not downloaded again.
		if err := e.adoptCustody(ctx); err != nil {
			return next, err
		}
		if err := e.findLost(ctx); err != nil {
			return next, err
		}
		if err := e.doubtCounts(ctx); err != nil {
			return next, err
		}
		if err := e.takeList(ctx); err != nil {
			return next, err
		}
	}
	if err := e.readRefusals(); err != nil {
		return next, err
	}
	next, err = e.workOnDue(ctx)
	s = e.Status()
	if s.PausedUntil.After(e.now().Wall) {
		return s.PausedUntil, err
	}
	if again := s.ListedAt.Add(e.cfg.Every); next.IsZero() || again.Before(next) {
		next = again
	}
	return next, err
}

// mostDue is how many extracts are looked up at once: a backlog of any length takes no more memory.
const mostDue = 200

// workOnDue works on every extract that has something due, and returns when the next one has; zero: none will by itself.
func (e *Engine) workOnDue(ctx context.Context) (next time.Time, err error) {
	tried := map[archive.Key]uint32{} // in this round, at which revision: one whose work leaves no line is not tried again
	for ctx.Err() == nil && e.mayAct() {
		var due []arrival.Arrival
		if due, next, err = e.findDue(tried); err != nil || len(due) == 0 {
			return next, err
		}
		for _, a := range due {
			tried[a.Key] = a.Rev
		}
		if err := e.workOn(ctx, due); err != nil {
			return next, err
		}
	}
	return next, nil
}

// findDue returns extracts that have something due: those of which nothing failed since their last step, or else the others, the first that are due first.
// The fault of one may look like one of the service as a whole, which then keeps back all that come after it. next is when the next of the
// others has something due; zero: none will by itself.
func (e *Engine) findDue(tried map[archive.Key]uint32) (due []arrival.Arrival, next time.Time, err error) {
	skip := func(a arrival.Arrival) bool {
		rev, isTried := tried[a.Key]
		step, _, _ := e.dueOf(a)
		return isTried && rev == a.Rev || step == arrival.NoStep || step == arrival.Person
	}
	for _, until := range []time.Time{time.Unix(0, 0), e.now().Wall} {
		next = time.Time{}
		for _, stage := range e.rules().Stages(arrival.Extract) {
			some, at, err := e.cfg.Ledger.DueArrivals(arrival.Extract, stage, until, mostDue-len(due), nil, skip)
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

// workOn does what is due for some extracts, several at once.
func (e *Engine) workOn(ctx context.Context, due []arrival.Arrival) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.cfg.Workers)
	for _, a := range due {
		g.Go(func() error { return (&work{Engine: e, a: a}).doDueSteps(ctx) })
	}
	return g.Wait()
}

// eachExtract calls fn with every extract in one of the states. Arrivals of another kind have an engine of their own.
func (e *Engine) eachExtract(fn func(arrival.Arrival) error, states ...arrival.State) error {
	return e.cfg.Ledger.Arrivals(func(a arrival.Arrival) error {
		if a.Kind != arrival.Extract {
			return nil
		}
		return fn(a)
	}, states...)
}

// dueOf is [arrival.Due]. What the service dropped by its age is not acknowledged any more.
func (e *Engine) dueOf(a arrival.Arrival) (arrival.Step, string, time.Time) {
	step, file, at := arrival.Due(a, e.rules())
	if end := a.EndsAt(); step == arrival.Acknowledge && !end.IsZero() && e.now().Wall.After(end) {
		return arrival.NoStep, "", time.Time{}
	}
	return step, file, at
}

func (e *Engine) rules() arrival.Rules {
	return arrival.Rules{Acknowledge: e.cfg.Acknowledger != nil, HandOn: e.cfg.HandOn != nil, MaxDownloads: e.cfg.MaxDownloads}
}

// mayAct reports whether anything may be downloaded and acknowledged.
func (e *Engine) mayAct() bool {
	held := e.cfg.IsHeld != nil && e.cfg.IsHeld()
	return !held && !e.now().Wall.Before(e.Status().PausedUntil)
}

func (e *Engine) now() archive.Instant { return e.cfg.Now() }

// pauseCalls stops all calls for a while: the fault is not that of one extract.
func (e *Engine) pauseCalls(op string, err *apicall.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := max(arrival.DelayAfter(e.faults), err.RetryAfter)
	e.faults++
	e.status.PausedUntil, e.status.Why = e.now().Wall.Add(wait), err.Error()
	if e.status.FailingSince.IsZero() {
		e.status.FailingSince = e.now().Wall
	}
	e.cfg.Log.Warn("extracts pause", "step", op, "for", wait, "code", err.Code, "err", err.Error())
}

// isGeneral reports whether a fault is that of the service or of the way to it, and not of one extract.
func isGeneral(err *apicall.Error) bool {
	return err.Denied || err.Overloaded() || err.Outcome == apicall.NotSent || err.IsUnlisted()
}

// noteAnswer notes that the service works.
func (e *Engine) noteAnswer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults, e.status = 0, Status{ListedAt: e.status.ListedAt, Refused: e.status.Refused}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// errStale ends the work on an arrival that somebody else changed: the next look decides anew.
var errStale = errors.New("the arrival was changed by somebody else")
