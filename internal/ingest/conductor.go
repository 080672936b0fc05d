package ingest

import (
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

// Config is what a conductor works with. All fields are needed.
type Config struct {
	Ledger  Ledger
	Index   Index
	Vault   Vault
	Drops   []Drop
	Planner *window.Planner
	Now     func() archive.Instant
	Log     *slog.Logger

	Workers   int           // uploads at once; a vault in which none runs may always begin one
	BatchSize int           // documents in one registration
	BatchWait time.Duration // for a batch to fill
	PollMin   time.Duration // between two questions about one document
	PollMax   time.Duration
	Grace     time.Duration // unclear_grace
	// LongestSleep bounds the wait between two looks at what is due; 0: a minute.
	LongestSleep time.Duration
	// SpoolSpace returns why nothing of a vault may be packed just now: its share of the spool
	// is full (ErrFull), or the disk nearly is.
	SpoolSpace func(archive.VaultID) error
	// Settle makes packages survive a power cut that were made before; nothing of them is sent before that.
	Settle func() error
	// DisposalLimit returns a *DisposalLimitError where so many sources of a drop may not be disposed of at
	// once, and otherwise books them as if they were. nil: any number may.
	DisposalLimit func(drop string, due int) error
	// Safe reports whether nothing may be sent, moved or removed before the service was
	// asked: then only folders are sealed and questions asked; what is under way ends as it
	// may. nil: never.
	Safe func() bool
	// Paused is told of each pause that begins, or that now needs a person. It must not block. nil: nobody is told.
	Paused func(Pause)
}

// Engine runs the steps of every entry.
type Engine struct {
	cfg      Config
	drops    map[string]Drop
	breakers *breakers
	paces    paces
	runners  map[ledger.Step]*runner
	wg       sync.WaitGroup // pieces of work under way

	md5ETags atomic.Bool // the store was seen to answer with MD5 ETags
	refusals refusals
	crossed  crossings
	spoilt   spoilt
	shared   shared
	booked   booked
	lists    lists
	asking   turn
	backlog  backlog
	woken    atomic.Bool    // Wake was called, and the backlog not recalled since
	pass     map[string]int // sources that the brake let go, by drop; only the loop of Dispose
	words    sync.Map       // unfamiliar words that were reported: word → true
}

// New returns a conductor; it does nothing before Run.
func New(cfg Config) *Engine {
	c := &Engine{cfg: cfg, drops: map[string]Drop{}, breakers: newBreakers(), runners: map[ledger.Step]*runner{}, pass: map[string]int{}}
	c.backlog.clear()
	c.paces.by = map[Target]*window.Pace{}
	c.refusals.by = map[archive.VaultID]map[archive.Key]bool{}
	c.lists.of, c.lists.last = map[archive.VaultID]*list{}, map[archive.VaultID]archive.RemoteID{}
	c.spoilt.posts = map[post]bool{}
	c.shared.at = map[archive.Key]archive.Instant{}
	c.booked.by = map[archive.Key]*window.Upload{}
	c.crossed.n = map[archive.VaultID]int{}
	for _, d := range cfg.Drops {
		c.drops[d.Name] = d
	}
	for _, s := range []step{c.sealStep(), c.registerStep(), c.uploadStep(), c.askStep(), c.placeStep(), c.disposeStep()} {
		c.runners[s.name] = c.runner(s)
	}
	return c
}

// stopGrace is how long calls under way may go on after the stop was asked for.
const stopGrace = 4 * time.Second

// Run works until ctx ends, then gives what is under way a few seconds, and returns
// when nothing runs any more. Its error is one of the ledger; nothing remote ends it.
func (c *Engine) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := c.recallBacklog(); err != nil {
		return err
	}
	g, stop := errgroup.WithContext(ctx)
	for _, r := range c.runners {
		g.Go(func() error { return r.loop(stop, work) })
	}
	err := g.Wait()
	grace := time.AfterFunc(stopGrace, cancel)
	defer grace.Stop()
	c.wg.Wait()
	return err
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
	return c.breakers.list()
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

// Idle reports whether no piece of work is under way.
func (c *Engine) Idle() bool {
	for _, r := range c.runners {
		if !r.idle() {
			return false
		}
	}
	return true
}

// Claimed commits the entry of a folder that lies in the claimed area: at the claim,
// and again for each folder found there without an entry. What follows from it for
// other entries is committed with it.
func (c *Engine) Claimed(k archive.Key, ev ledger.ClaimedFolder, more ...ledger.Change) {
	first := ledger.Change{Key: k, Events: []ledger.Event{ev}, At: c.cfg.Now()}
	c.cfg.Ledger.Submit(append([]ledger.Change{first}, more...), func(rs []ledger.Result) {
		for _, res := range rs {
			c.note(res)
		}
	})
}

// note logs a result once and wakes the step that is due next.
func (c *Engine) note(res ledger.Result) {
	if _, stale := errors.AsType[*ledger.StaleError](res.Err); stale {
		c.backlog.refuse(res.Key)
		return // somebody else was faster; what is due is asked anew
	}
	if res.Err != nil {
		c.backlog.refuse(res.Key)
		if _, taken := errors.AsType[*ledger.TakenError](res.Err); !taken {
			c.cfg.Log.Error("change not committed", "key", res.Key, "err", res.Err)
		}
		return
	}
	e := res.Entry
	c.backlog.book(e)
	c.logState(e)
	if s, _, ok := ledger.Due(e); ok {
		c.runners[s].nudge()
	}
	if e.State != ledger.Registered && e.State != ledger.Sending {
		c.runners[ledger.Register].nudge() // a ticket's place may be free
	}
	if e.State >= ledger.Uploaded {
		c.runners[ledger.Seal].nudge() // a package waits no more, or has left the spool
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
	case e.State == ledger.Rejected || e.State == ledger.Unclear:
		log = c.cfg.Log.Warn
	case e.State == ledger.Archived && e.Source == ledger.Claimed:
		log = c.cfg.Log.Info
	}
	if e.Cause.Code != "" {
		attrs = append(attrs, "cause", e.Cause.Code)
	}
	log("entry", attrs...)
}

// later postpones the step that is due, longer each time.
func (c *Engine) later(e ledger.Entry, cause ledger.Cause) ledger.Postponed {
	return ledger.Postponed{NotBefore: c.retryAt(e), Cause: cause}
}

const (
	firstRetry = 2 * time.Second
	maxRetry   = 5 * time.Minute
)

// retryAt returns when a failed attempt may be repeated: later each time. What the other
// side asked to wait holds for the route, which keeps it in memory; an entry stores nothing
// of it.
func (c *Engine) retryAt(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(backoff(int(e.Attempt), firstRetry, maxRetry))
}

func localFault(err error) ledger.Cause {
	if e, ok := errors.AsType[*UnreadableError](err); ok {
		return ledger.Cause{Code: Unreadable, Text: e.Text}
	}
	return ledger.Cause{Code: "local-fault", Text: err.Error()}
}

// change wraps events that follow from what was just done.
func (c *Engine) change(e ledger.Entry, evs ...ledger.Event) ledger.Change {
	return ledger.Change{Key: e.Key, Rev: e.Rev, Events: evs, At: c.cfg.Now()}
}

// collision answers an outcome that was not committed. Where a person acted on the
// entry meanwhile, what happened is still what happened, and is offered again. Where
// an identity, a number or an upload address belongs elsewhere, the entry is looked at again, or stopped.
func (c *Engine) collision(es []ledger.Entry, outcome []ledger.Change, res ledger.Result) (ledger.Change, bool) {
	if stale, ok := errors.AsType[*ledger.StaleError](res.Err); ok {
		for _, change := range outcome {
			if change.Key == res.Key {
				change.Rev = stale.Have
				return change, true
			}
		}
	}
	taken, ok := errors.AsType[*ledger.TakenError](res.Err)
	if !ok {
		return ledger.Change{}, false
	}
	for _, e := range es {
		if e.Key != res.Key {
			continue
		}
		if e.State == ledger.Registering && taken.What != ledger.TakenID {
			return c.change(e, c.crossedBy(e, taken)), true
		}
		code := "identity-taken"
		if taken.What == ledger.TakenNumber || taken.What == ledger.TakenFiles {
			code = "another-sealed-meanwhile"
		}
		return c.change(e, ledger.Postponed{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: code}}), true
	}
	return ledger.Change{}, false
}

// refusedOutcome puts off an entry whose outcome the ledger refused for a reason that
// should not exist: it must not be due again at once.
func (c *Engine) refusedOutcome(es []ledger.Entry, res ledger.Result) (ledger.Change, bool) {
	if res.Err == nil || !errors.Is(res.Err, ledger.ErrIllegal) {
		return ledger.Change{}, false
	}
	for _, e := range es {
		if e.Key == res.Key {
			return c.change(e, c.later(e, localFault(res.Err))), true
		}
	}
	return ledger.Change{}, false
}

// configured returns the drop that an entry came from.
func (c *Engine) configured(e ledger.Entry) (Drop, error) {
	d, ok := c.drops[e.Drop]
	if !ok {
		return Drop{}, fmt.Errorf("drop %q is not configured any more; put it back, or its folders stay claimed", e.Drop)
	}
	return d, nil
}

// drop returns the drop that an entry came from where its folder can be worked in.
func (c *Engine) drop(e ledger.Entry) (Drop, error) {
	d, err := c.configured(e)
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

func (c *Engine) safe() bool { return c.cfg.Safe != nil && c.cfg.Safe() }
