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

	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// Config is what an engine works with. A field that may be left out says what nil or zero means.
type Config struct {
	Ledger  Ledger
	Index   Index
	Routes  map[ledger.Route]Route
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

// Engine runs the steps of every entry. It has one worker for each step and queue.
type Engine struct {
	cfg      Config
	drops    map[string]Drop
	breakers *breakers
	limiters limiters
	tasks    sync.WaitGroup // tasks that have not ended
	unasked  chan struct{}  // closed when uploads that nobody can be asked about must end
	draining atomic.Bool    // no upload that nobody can be asked about begins any more

	steps          map[ledger.Step]step
	pools          map[ledger.Step]*pool
	supervisorWake chan struct{}             // size 1: a hint that a worker is to be started
	queuesReadAt   atomic.Pointer[time.Time] // when supervise last read the queues

	mu      sync.Mutex
	workers map[ledger.Step]map[string]*worker // by queue; guarded by mu

	// What the engine remembers of this run. A restart forgets it; the types say what that costs.
	checksSilentUntil atomic.Int64 // no file of a check is asked for before that, on the clock of the boot; see validationSilence
	md5ETags          atomic.Bool  // the store was seen to answer with MD5 ETags
	refusals          refusals
	mixUps            mixUps
	recipientFaults   recipientFaults
	expiredBatches    expiredBatches
	sharedTickets     sharedTickets
	underWay          bookings
	statusLists       statusLists
	backlog           backlog
	recalling         sync.Mutex  // held while the backlog is read anew
	woken             atomic.Bool // Wake was called, and the backlog was not read anew since
	disposable        disposable
	unknownWords      unknownWords
}

// New returns an engine; it does nothing before Run.
func New(cfg Config) *Engine {
	c := &Engine{cfg: cfg, drops: map[string]Drop{}, breakers: newBreakers(), supervisorWake: make(chan struct{}, 1), unasked: make(chan struct{}),
		steps: map[ledger.Step]step{}, pools: map[ledger.Step]*pool{}, workers: map[ledger.Step]map[string]*worker{}}
	c.backlog.clear()
	c.limiters.by = map[Target]*limiter{}
	c.refusals.by = map[string]map[archive.Key]bool{}
	c.statusLists.byVault, c.statusLists.last = map[archive.VaultID]*statusList{}, map[archive.VaultID]archive.RemoteID{}
	c.expiredBatches.batches = map[batchID]time.Duration{}
	c.sharedTickets.at = map[archive.Key]archive.Instant{}
	c.underWay.by = map[archive.Key]*window.Upload{}
	c.mixUps.n = map[string]int{}
	c.disposable.left = map[string]int{}
	c.unknownWords.logged = map[string]bool{}
	for _, d := range cfg.Drops {
		c.drops[d.Name] = d
	}
	for _, s := range []step{c.sealStep(), c.registerStep(), c.uploadStep(), c.askStep(), c.placeStep(), c.disposeStep()} {
		c.steps[s.name], c.pools[s.name], c.workers[s.name] = s, &pool{width: s.width}, map[string]*worker{}
	}
	return c
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
// The loops of the workers and supervise end with ctx or with the first error; that of a worker whose queue is empty ends
// earlier, and supervise starts it again. The tasks, each in a goroutine or in a
// commit that is waited for, end after the grace at the latest.
func (c *Engine) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := c.recallBacklog(); err != nil {
		return err
	}
	// ctx ends the taking of new tasks at once; work ends those under way after the grace.
	g, stop := errgroup.WithContext(ctx)
	g.Go(func() error { return c.supervise(g, stop, work) })
	err := g.Wait()
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
		c.tasks.Wait()
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
	if c.routeOf(e).Asker != nil {
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
	for c.pools[ledger.Upload].isAnyBusy(func(w *worker) bool { return c.isDraining(w.step.name, w.queue) }) {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// isDraining reports whether nothing of a step begins in a queue any more.
func (c *Engine) isDraining(s ledger.Step, queue string) bool {
	return c.draining.Load() && s == ledger.Upload && c.routeOfQueue(queue).Asker == nil
}

// supervise starts a worker for each queue that the ledger has, also for those that appear later, and starts again
// those that ended because their queues were empty. At the end it takes back the tasks that wait for a slot.
func (c *Engine) supervise(g *errgroup.Group, stop, work context.Context) error {
	defer func() {
		for _, p := range c.pools {
			p.close()
			p.startReady(work)
		}
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop.Done():
			return nil
		case <-c.supervisorWake:
		case <-timer.C:
		}
		if err := c.recallBacklogIfAsked(); err != nil {
			return err
		}
		// Whatever a restart finds has its queues here: going on after a crash needs no other code.
		for s := range c.steps {
			queues, err := c.cfg.Index.Queues(s)
			if err != nil {
				return err
			}
			for _, queue := range queues {
				if w := c.workerOf(s, queue); !w.running.Load() {
					w.wakeUp()
				}
			}
		}
		now := time.Now()
		for _, w := range c.wokenWhileIdle() {
			w.searchedAt.Store(&now)
			w.running.Store(true)
			g.Go(func() error { return w.run(stop, work) })
		}
		c.queuesReadAt.Store(&now)
		timer.Reset(c.longestSleep())
	}
}

// wokenWhileIdle returns the workers whose loops do not run and are to look at what is due.
func (c *Engine) wokenWhileIdle() (all []*worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, workers := range c.workers {
		for _, w := range workers {
			if !w.running.Load() && len(w.wake) > 0 {
				all = append(all, w)
			}
		}
	}
	return all
}

// workerOf returns the worker of a step and a queue. It begins to run when it is woken.
func (c *Engine) workerOf(s ledger.Step, queue string) *worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.workers[s][queue]
	if w == nil {
		w = newWorker(c, c.stepIn(s, queue), c.pools[s], queue)
		c.workers[s][queue] = w
	}
	return w
}

// wakeSupervisor makes supervise look at once for workers that are to run. It never waits.
func (c *Engine) wakeSupervisor() {
	select {
	case c.supervisorWake <- struct{}{}:
	default:
	}
}

// wakeWorkersWithoutRoom wakes the workers of a step that left something undone for want of room.
func (c *Engine) wakeWorkersWithoutRoom(s ledger.Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.workers[s] {
		if w.lacksRoom.Load() {
			w.wakeUp()
		}
	}
}

// wakeWorkers makes all workers that run look at what is due.
func (c *Engine) wakeWorkers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, workers := range c.workers {
		for _, w := range workers {
			if w.running.Load() {
				w.wakeUp()
			}
		}
	}
}

// Wake makes every worker look at once at what is due: a person acted on an entry, and
// the engine did not see it. It waits for nothing, so that whoever is told of a commit
// may call it.
func (c *Engine) Wake() {
	c.woken.Store(true)
	// In this order: a worker that does not run, or ends after it was passed by, is found by supervise then.
	c.wakeWorkers()
	c.wakeSupervisor()
}

// LastSearches tells when the slowest worker of each step last searched for what is due and found out what to
// start; zero: never. Only the loops themselves set it: one that hangs does not search any more, however
// well the rest of the process does. An idle worker searches once a minute, or does not run.
func (c *Engine) LastSearches() map[ledger.Step]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	searches := make(map[ledger.Step]time.Time, len(c.workers))
	for s, workers := range c.workers {
		if at := c.queuesReadAt.Load(); at != nil {
			searches[s] = *at
		} else {
			searches[s] = time.Time{}
		}
		for _, w := range workers {
			if at := w.searchedAt.Load(); w.running.Load() && at.Before(searches[s]) {
				searches[s] = *at
			}
		}
	}
	return searches
}

// longestSleep bounds the wait between two looks at what is due, so that a wall
// clock that was set does not matter for long.
const longestSleep = time.Minute

func (c *Engine) longestSleep() time.Duration { return cmp.Or(c.cfg.LongestSleep, longestSleep) }

// sleepUntil returns how long a worker sleeps whose next entry is due at that time; zero: none is known.
func (c *Engine) sleepUntil(next time.Time) time.Duration {
	if next.IsZero() {
		return c.longestSleep()
	}
	return min(c.longestSleep(), max(5*time.Millisecond, next.Sub(c.cfg.Now().Wall)))
}

// Pauses lists the circuit breakers that are not closed. One that nothing waits for is closed: nobody would ever find out
// that its target works again.
func (c *Engine) Pauses() []Pause {
	now := c.cfg.Now().Wall
	for _, p := range c.breakers.list() {
		if !p.Next.IsZero() && p.Next.Before(now) && !c.isAwaited(p.Target) {
			c.breakers.forget(p.Target)
		}
	}
	all := c.breakers.list()
	for i := range all {
		all[i].ConfigKey = c.configKeyOf(all[i].Target)
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
func (c *Engine) Idle() bool {
	for _, p := range c.pools {
		if !p.isIdle() {
			return false
		}
	}
	return true
}

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

// noteResult logs a result once and wakes the worker whose step is due next.
func (c *Engine) noteResult(res ledger.Result) {
	// A grant was booked before its commit. It is taken back where the commit came to nothing: a vault would lack that ticket for ever.
	if _, stale := errors.AsType[*ledger.StaleError](res.Err); stale {
		c.backlog.revoke(res.Key)
		return // somebody else was faster; what is due is asked anew
	}
	if res.Err != nil {
		c.backlog.revoke(res.Key)
		if _, taken := errors.AsType[*ledger.TakenError](res.Err); !taken {
			c.cfg.Log.Error("change not committed", "key", res.Key, "err", res.Err)
		}
		return
	}
	e := res.Entry
	c.backlog.update(e)
	c.logState(e)
	// The ledger alone says what is next. This only tells the worker sooner than its timer would.
	if s, _, ok := ledger.Due(e); ok {
		c.workerOf(s, ledger.QueueOf(e)).wakeUp()
	}
	if e.State != ledger.Registered && e.State != ledger.Sending {
		c.wakeWorkersWithoutRoom(ledger.Register) // one ticket less may be in use
	}
	if e.State >= ledger.Uploaded {
		c.wakeWorkersWithoutRoom(ledger.Seal) // a package waits no more, or has left the spool
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
	return c.cfg.Now().Wall.Add(backoff(int(e.Attempt), firstRetry, maxRetry))
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
	if route := cmp.Or(e.Route, ledger.Vault); cmp.Or(d.Route, ledger.Vault) != route {
		return Drop{}, fmt.Errorf("drop %q is configured with route %s; what it took before goes by route %s. Put that back until all of it has ended", e.Drop, d.Route, route)
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
	if c.breakers.close(DropTarget(e.Drop), c.cfg.Now().Wall) {
		c.cfg.Log.Info("drop works again", "drop", e.Drop)
	}
	return d, nil
}

func (c *Engine) isHeld() bool { return c.cfg.IsHeld != nil && c.cfg.IsHeld() }
