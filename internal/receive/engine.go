package receive

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger/arrival"
)

// Ledger is where arrivals live and where every change is committed. ApplyArrival returns when the change is durable.
type Ledger interface {
	ApplyArrival(ctx context.Context, c arrival.Change) (arrival.Arrival, error)
	Arrival(key archive.Key) (a arrival.Arrival, ok bool, err error)
	DueArrivals(kind arrival.Kind, stage arrival.Stage, now time.Time, limit int, busy func(archive.Key) bool, skip func(arrival.Arrival) bool) (ready []arrival.Arrival, next time.Time, err error)
}

// Service is the business network. Its errors are *apicall.Error.
type Service interface {
	// FetchDocument returns a document as it came, and its files.
	FetchDocument(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID) (raw []byte, files []archive.FileRef, err error)
	// FetchFile writes a file to w as it came, and returns what the answer
	// tells of it. An error of w has the code "local".
	FetchFile(ctx context.Context, id archive.FileID, w io.Writer) (archive.FileTold, error)
	// ConfirmReceipt says that a document was received. To repeat it does no harm.
	ConfirmReceipt(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID, at time.Time) error
	// Acknowledge deletes a notification. One that the network does not know is no error.
	Acknowledge(ctx context.Context, id archive.AcknowledgementID) error
}

// Drop is the drop folder that received documents are put into, so that the archive gets them.
type Drop interface {
	// PutFolder puts a folder there. Without an error it is durable there, or was taken from there. The same call may be made again at
	// any time: it then does nothing, or puts the folder there once more.
	PutFolder(ctx context.Context, f archive.DropFolder) error
}

// Config is what an engine works with. All but Room and IsHeld are needed.
type Config struct {
	Ledger     Ledger
	Service    Service
	Describe   func(kind archive.NetworkKind, raw []byte) (archive.Document, error) // what a document says of itself
	Dir        *durable.Dir                                                         // the folder that files are kept in until they are archived
	Drop       Drop
	IsArchived func(id archive.ID) (bool, error) // the archive has the document of that identity
	Confirm    bool                              // say of each document that it was received
	Workers    int                               // documents at once
	Now        func() archive.Instant
	Log        *slog.Logger

	Room   func() error // why nothing may be fetched just now; nil: there is always room
	IsHeld func() bool  // nothing is fetched, said or deleted: in safe mode; nil: never
}

// Engine takes in what notifications announced.
type Engine struct {
	cfg  Config
	wake chan struct{} // size 1: a hint that something may be due

	mu          sync.Mutex
	pausedUntil time.Time // guarded by mu
	faults      int       // guarded by mu: in a row, of the network as a whole
	swept       time.Time // used by one round at a time

	checking sync.Mutex // held while the form of a file is checked: XML of a stranger may take a lot of memory
}

// New returns an engine; it does nothing before Run.
func New(cfg Config) *Engine {
	cfg.Workers = max(cfg.Workers, 1)
	return &Engine{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Wake makes the engine look soon at what is due.
func (e *Engine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// TryNow makes the engine look at once, because a person asked for it: a pause after a fault of the network ends.
func (e *Engine) TryNow() {
	e.mu.Lock()
	e.pausedUntil = time.Time{}
	e.mu.Unlock()
	e.Wake()
}

const (
	longestSleep = 10 * time.Minute
	sweepEvery   = time.Hour
)

// Run works until ctx ends. Its error is one of the ledger, or of a file whose place on disk is not known: then the process must end, and
// the next start reads what is there. Nothing remote ends it.
func (e *Engine) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		next, err := e.round(ctx)
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("receive documents: %w", err)
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

// mostDue is how many arrivals are looked up at once: a backlog of any length takes no more memory.
const mostDue = 200

// round does what is due, and removes what is archived. It returns when to look again.
func (e *Engine) round(ctx context.Context) (next time.Time, err error) {
	if now := e.now().Wall; now.Sub(e.swept) >= sweepEvery {
		e.swept = now
		if err := e.removeArchived(ctx); err != nil {
			return next, err
		}
	}
	for ctx.Err() == nil && e.mayAct() {
		var due []arrival.Arrival
		if due, next, err = e.findDue(); err != nil || len(due) == 0 {
			break
		}
		if err = e.workOn(ctx, due); err != nil {
			break
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pausedUntil.After(e.now().Wall) {
		next = e.pausedUntil
	}
	if next.IsZero() {
		next = e.now().Wall.Add(longestSleep)
	}
	return next, err
}

// workOn does what is due for some documents, several at once.
func (e *Engine) workOn(ctx context.Context, due []arrival.Arrival) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(e.cfg.Workers)
	for _, a := range due {
		g.Go(func() error { return (&work{Engine: e, a: a}).doDueSteps(ctx) })
	}
	return g.Wait()
}

// findDue returns received documents that have something due: those of which nothing failed since their last step, or else the others, the first that
// are due first. The fault of one may look like one of the network as a whole, which then keeps back all that come after it. next is when the
// next of the others has something due; zero: none will by itself.
func (e *Engine) findDue() (due []arrival.Arrival, next time.Time, err error) {
	for _, until := range []time.Time{time.Unix(0, 0), e.now().Wall} {
		next = time.Time{}
		for _, stage := range e.rules().Stages(arrival.Received) {
			some, at, err := e.cfg.Ledger.DueArrivals(arrival.Received, stage, until, mostDue-len(due), nil, nil)
			if err != nil {
				return nil, next, err
			}
			due = append(due, some...)
			if next.IsZero() || !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if len(due) > 0 {
			break
		}
	}
	return due, next, nil
}

// HasWork reports whether a received document has something due that may be tried now. With most above 0 one that waits after fewer than that many
// failures counts as well, and no other.
func (e *Engine) HasWork(most uint16) (bool, error) {
	until := e.now().Wall
	if most == 0 && !e.mayAct() {
		return false, nil
	}
	if most > 0 {
		until = until.AddDate(100, 0, 0)
	}
	for _, stage := range e.rules().Stages(arrival.Received) {
		left, _, err := e.cfg.Ledger.DueArrivals(arrival.Received, stage, until, 1, nil, func(a arrival.Arrival) bool { return most > 0 && a.Attempt >= most })
		if err != nil || len(left) > 0 {
			return len(left) > 0, err
		}
	}
	return false, nil
}

func (e *Engine) rules() arrival.Rules { return arrival.Rules{Confirm: e.cfg.Confirm} }

// mayAct reports whether anything may be fetched, said and deleted.
func (e *Engine) mayAct() bool {
	held := e.cfg.IsHeld != nil && e.cfg.IsHeld()
	e.mu.Lock()
	defer e.mu.Unlock()
	return !held && !e.now().Wall.Before(e.pausedUntil)
}

func (e *Engine) now() archive.Instant { return e.cfg.Now() }

// pauseCalls stops all calls for a while: the fault is not that of one document.
func (e *Engine) pauseCalls(step string, err *apicall.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := max(arrival.DelayAfter(e.faults), err.RetryAfter)
	e.faults++
	e.pausedUntil = e.now().Wall.Add(wait)
	e.cfg.Log.Warn("receiving over the business network pauses", "step", step, "for", wait, "code", err.Code, "err", err.Error())
}

// noteAnswer notes that the network works.
func (e *Engine) noteAnswer() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults, e.pausedUntil = 0, time.Time{}
}
