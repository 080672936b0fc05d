package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// Config is what an engine works with. A field that may be left out says what nil or zero means.
type Config struct {
	Ledger  Ledger
	Index   Index
	Routes  map[ledger.Route]Route
	Copies  Copies // of what a Sender sent, for the archive; nil: none are made
	Drops   []Drop
	Planner *window.Planner
	Now     func() archive.Instant
	Log     *slog.Logger
	// Location is the time zone of the times in texts; nil: that of the machine.
	Location *time.Location

	PollMin time.Duration // between two questions about one document
	PollMax time.Duration
	Grace   time.Duration // unclear_grace
	// LongestSleep bounds the wait between two looks at what is due; 0: a minute.
	LongestSleep time.Duration
	// SpoolSpace returns why nothing of a service queue may be packed just now: its share of the spool
	// is full (ErrFull), or the disk nearly is.
	SpoolSpace func(queue string) error
	// SyncPackages makes the packages in the spool durable. Nothing of them is sent before it returned.
	SyncPackages func() error
	// DisposalLimit books that many disposals of a drop, or returns a *DisposalLimitError when that is too many at
	// once. nil: there is no limit.
	DisposalLimit func(drop string, due int) error
	// IsHeld reports whether nothing may be sent, moved or removed: in safe mode, and when another vaultd has taken
	// over the drop folders. Folders are still sealed and questions are still asked. Calls under way go on. nil: never.
	IsHeld func() bool
	// Failed is closed once nothing can be committed any more; nil: never.
	Failed <-chan struct{}
	// OnPause is told of each pause that begins, or that now needs a person. It must not block. nil: nobody is told.
	OnPause func(Pause)
}

// Engine runs the steps of every entry.
type Engine struct {
	cfg       Config
	drops     map[string]Drop
	lanes     *engine.Engine[ledger.Entry, Target]
	breakers  *engine.Breakers[Target] // those of the lanes
	unasked   chan struct{}            // closed when uploads that nobody can be asked about must end
	composing sync.Mutex               // held while what is to be announced is read out of a package of the network
	draining  atomic.Bool              // no upload that nobody can be asked about begins any more

	// What the engine remembers of this run. A restart forgets it; the types say what that costs.
	md5ETags        atomic.Bool // the store was seen to answer with MD5 ETags
	refusals        refusals
	mixUps          mixUps
	recipientFaults recipientFaults
	expiredBatches  expiredBatches
	underWay        bookings
	statusLists     statusLists
	disposable      disposable
	unknownWords    unknownWords
}

// New returns an engine; it does nothing before Run.
func New(cfg Config) *Engine {
	c := &Engine{cfg: cfg, drops: map[string]Drop{}, unasked: make(chan struct{})}
	c.refusals.by = map[string]map[archive.Key]bool{}
	c.statusLists.asked, c.statusLists.last = map[archive.VaultID]time.Time{}, map[archive.VaultID]archive.RemoteID{}
	c.expiredBatches.batches = map[batchID]time.Duration{}
	c.underWay.by = map[archive.Key]*window.Upload{}
	c.mixUps.n = map[string]int{}
	c.disposable.left = map[string]int{}
	c.unknownWords.logged = map[string]bool{}
	for _, d := range cfg.Drops {
		d.Route = cmp.Or(d.Route, ledger.Vault)
		c.drops[d.Name] = d
	}
	c.lanes = engine.New(engine.Config[ledger.Entry, Target]{Key: func(e ledger.Entry) archive.Key { return e.Key }, Now: cfg.Now, LongestSleep: cfg.LongestSleep,
		Steps: []engine.Step[ledger.Entry, Target]{c.sealStep(), c.registerStep(), c.uploadStep(), c.askStep(), c.placeStep(), c.disposeStep()}})
	c.breakers = c.lanes.Breakers
	return c
}

// newStep returns a step without what is its own.
func (c *Engine) newStep(s ledger.Step, width int) engine.Step[ledger.Entry, Target] {
	return engine.Step[ledger.Entry, Target]{Name: s.String(), Width: width,
		Queues: func() ([]string, error) { return c.cfg.Index.Queues(s) },
		Due: func(queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
			return c.cfg.Index.DueInQueue(s, queue, now, limit, busy, skip)
		}}
}

const (
	// stopGrace is how long calls under way may go on after the stop was asked for.
	stopGrace = 4 * time.Second
	// unaskedGrace is that of an upload of which nobody can be asked what became: cut off, it waits for a person. The service manager
	// waits longer (TimeoutStopSec).
	unaskedGrace = 45 * time.Second
	// DrainLimit bounds how long a reload waits for such uploads, while all other work goes on. It is less than the service manager
	// gives a reload (TimeoutStartSec). What is not through by then has unaskedGrace: no other work stands still for longer.
	DrainLimit = 4 * time.Minute
)

// Run works until ctx ends, then gives what is under way a few seconds, and longer to uploads that nobody can be asked about. It returns
// when nothing runs any more. Its error is one of the ledger; nothing remote ends it.
//
// The dispatcher ends with ctx or with the first error; the tasks, each in a
// goroutine of its own, end after the grace at the latest.
func (c *Engine) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// ctx ends the taking of new tasks at once; work ends those under way after the grace.
	err := c.lanes.Dispatch(ctx, work)
	grace := time.AfterFunc(stopGrace, cancel)
	defer grace.Stop()
	endUnasked := sync.OnceFunc(func() { close(c.unasked) })
	unasked := time.AfterFunc(unaskedGrace, endUnasked)
	defer unasked.Stop()
	if err != nil {
		endUnasked() // no outcome can be committed, so none is worth the wait
	}
	// Outcomes are committed even now. What does not end within its grace is cancelled: its intent stands, and the next
	// start goes on from it.
	ended := make(chan struct{})
	go func() {
		c.lanes.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-c.cfg.Failed:
		endUnasked()
		<-ended
	}
	return err
}

// outlivesStop returns a context for the upload of an entry. It ends with ctx, or, where nobody can be asked what became of the upload, only
// when all such uploads must end.
func (c *Engine) outlivesStop(ctx context.Context, e ledger.Entry) (context.Context, context.CancelFunc) {
	if wayOf(e).isAsked() {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { // it ends with the upload
		defer cancel()
		select {
		case <-ctx.Done():
		case <-c.unasked:
		}
	}()
	return ctx, cancel
}

// drainLook is how often DrainUploads looks whether all have ended.
const drainLook = 100 * time.Millisecond

// DrainUploads lets no upload begin any more that nobody can be asked about, and returns when none is under way, after DrainLimit, or
// with ctx. All other work goes on meanwhile. It is for an engine that is stopped next.
func (c *Engine) DrainUploads(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, DrainLimit)
	defer cancel()
	c.draining.Store(true)
	look := time.NewTicker(drainLook)
	defer look.Stop()
	for !c.lanes.IsIdle(func(step, queue string) bool { return step == ledger.Upload.String() && c.isDraining(queue) }) {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// isDraining reports whether no upload begins in a queue any more.
func (c *Engine) isDraining(queue string) bool {
	return c.draining.Load() && !wayOfRoute(routeOfQueue(queue)).isAsked()
}

// Wake has the engine look at once at what is due: a person acted on an entry, and
// the engine did not see it. It waits for nothing, so that whoever is told of a commit
// may call it.
func (c *Engine) Wake() {
	c.lanes.WakeAll()
}

// LastLook returns when the engine last looked at what is due and found out what to
// start; zero: never. Its dispatcher alone sets it: one that hangs does not look any
// more, however well the rest of the process does. An idle one looks once a minute.
func (c *Engine) LastLook() time.Time { return c.lanes.LookedAt() }

// Pauses lists the circuit breakers that are not closed. One that nothing waits for is closed: nobody would ever find out
// that its target works again.
func (c *Engine) Pauses() []Pause {
	now := c.cfg.Now().Wall
	var all []Pause
	for _, p := range c.breakers.List() {
		if !p.Next.IsZero() && p.Next.Before(now) && !c.isAwaited(p.Target) && c.breakers.Forget(p.Target) {
			continue
		}
		// That a vault cannot be asked is left out where nothing else reaches it either.
		if p.Target.Purpose == ToAsk && !c.breakers.IsClosed(RegisterTarget(p.Target.Vault)) {
			continue
		}
		all = append(all, Pause{Target: p.Target, Since: p.Since, Next: p.Next, Asked: p.Asked, Cause: p.Cause, ConfigKey: c.configKeyOf(p.Target)})
	}
	return all
}

// configKeyOf returns where the drop of a target stands in the configuration; empty: it has none. The drops come in that order.
func (c *Engine) configKeyOf(t Target) string {
	if i := slices.IndexFunc(c.cfg.Drops, func(d Drop) bool { return t.Drop != "" && d.Name == t.Drop }); i >= 0 {
		return fmt.Sprintf("drops[%d]", i)
	}
	return ""
}

// isAwaited reports whether something waits for a target.
func (c *Engine) isAwaited(t Target) bool {
	if !t.Entry.IsZero() {
		return c.folderWaits(t.Entry)
	}
	for _, s := range t.steps() {
		queues, err := c.cfg.Index.Queues(s)
		if err != nil || slices.Contains(queues, t.Queue()) || t.Queue() == "" && len(queues) > 0 {
			return true
		}
	}
	return false
}

// Idle reports whether no task is under way.
func (c *Engine) Idle() bool { return c.lanes.IsIdle(func(string, string) bool { return true }) }

// EnterClaimed commits the entry of a folder that lies in the claimed area: at the claim,
// and again for each folder found there without an entry. What follows from it for
// other entries is committed with it.
func (c *Engine) EnterClaimed(k archive.Key, ev ledger.ClaimedFolder, more ...ledger.Change) {
	// The folder lies in the claimed area already. A crash before this commit leaves it there without an entry, and the
	// next start adopts it under its key.
	first := ledger.Change{Key: k, Events: []ledger.Event{ev}, At: c.cfg.Now()}
	c.cfg.Ledger.Submit(append([]ledger.Change{first}, more...), func(rs []ledger.Result) {
		for _, res := range rs {
			c.noteResult(res)
		}
	})
}

// NoteCommitted takes note of an entry that somebody else committed, as of one that the engine did: it is logged, and what is due next begins
// at once. It never waits.
func (c *Engine) NoteCommitted(e ledger.Entry) { c.noteResult(ledger.Result{Key: e.Key, Entry: e}) }

// noteResult logs a result once and wakes the lane whose step is due next.
func (c *Engine) noteResult(res ledger.Result) {
	if res.Err != nil {
		_, stale := errors.AsType[*ledger.StaleError](res.Err) // somebody else was faster; what is due is asked anew
		if _, taken := errors.AsType[*ledger.TakenError](res.Err); !taken && !stale {
			c.cfg.Log.Error("change not committed", "key", res.Key, "err", res.Err)
		}
		return
	}
	e := res.Entry
	c.logState(e)
	// The ledger alone says what is next. This only tells the dispatcher sooner
	// than its timer would.
	if s, _, ok := ledger.Due(e); ok {
		c.lanes.Wake(s.String(), ledger.QueueOf(e))
	}
	if e.State != ledger.Registered && e.State != ledger.Sending {
		c.lanes.WakeWithoutRoom(ledger.Register.String()) // one ticket less may be in use
	}
	if e.State >= ledger.Uploaded {
		c.lanes.WakeWithoutRoom(ledger.Seal.String()) // a package waits no more, or has left the spool
	}
}

func (c *Engine) logState(e ledger.Entry) {
	attrs := []any{"key", e.Key, "state", e.State, "source", e.Source, "drop", e.Drop, "attempt", e.Attempt}
	if r := e.Current(); r != nil {
		attrs = append(attrs, "bumId", r.Ticket.Remote)
	}
	log := c.cfg.Log.Debug
	switch {
	case e.State == ledger.Quarantined || e.Contradicted:
		log = c.cfg.Log.Error
	case e.State == ledger.Rejected || e.State == ledger.Unclear || e.Attention() == ledger.RefusedByRecipient:
		log = c.cfg.Log.Warn
	case (e.State == ledger.Archived || e.State == ledger.Delivered) && e.Source == ledger.Claimed:
		log = c.cfg.Log.Info
	}
	if e.Cause.Code != "" {
		attrs = append(attrs, "cause", e.Cause.Code)
	}
	log("entry", attrs...)
}

// postpone postpones the step that is due, longer each time.
func (c *Engine) postpone(e ledger.Entry, cause ledger.Cause) ledger.Postponed {
	return ledger.Postponed{NotBefore: c.retryAt(e), Cause: cause}
}

const (
	firstRetry = 2 * time.Second
	maxRetry   = 5 * time.Minute
)

// retryAt returns when a failed attempt may be repeated: later each time. What the other
// side asked to wait holds for the target, whose breaker keeps it in memory; an entry stores nothing
// of it.
func (c *Engine) retryAt(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(engine.Backoff(int(e.Attempt), firstRetry, maxRetry))
}

func localFaultCause(err error) ledger.Cause {
	if e, ok := errors.AsType[*UnreadableError](err); ok {
		return ledger.Cause{Code: Unreadable, Text: e.Text}
	}
	return ledger.Cause{Code: "local-fault", Text: err.Error()}
}

// newChange wraps events that follow from what was just done: of e, if an act was announced.
func (c *Engine) newChange(e ledger.Entry, evs ...ledger.Event) ledger.Change {
	return ledger.Change{Key: e.Key, Rev: e.Rev, Fact: true, Act: e.ActUnderWay(), Events: evs, At: c.cfg.Now()}
}

// configuredDrop returns the drop that an entry came from.
func (c *Engine) configuredDrop(e ledger.Entry) (Drop, error) {
	d, ok := c.drops[e.Drop]
	if !ok {
		return Drop{}, fmt.Errorf("drop %q is not configured any more; put it back, or its folders stay claimed", e.Drop)
	}
	if d.Route != e.Route {
		return Drop{}, fmt.Errorf("drop %q is configured with route %s; what it took before goes by route %s. Put that back until all of it has ended", e.Drop, d.Route, e.Route)
	}
	return d, nil
}

// availableDrop returns the drop that an entry came from where its folder can be worked in.
func (c *Engine) availableDrop(e ledger.Entry) (Drop, error) {
	d, err := c.configuredDrop(e)
	if err != nil {
		return d, err
	}
	if err := d.Unavailable(); err != nil {
		return d, err
	}
	if c.breakers.Close(DropTarget(e.Drop), c.cfg.Now().Wall) {
		c.cfg.Log.Info("drop works again", "drop", e.Drop)
	}
	return d, nil
}

func (c *Engine) isHeld() bool { return c.cfg.IsHeld != nil && c.cfg.IsHeld() }
