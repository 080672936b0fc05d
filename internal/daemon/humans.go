package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/recovery"
	"vaultd/internal/spool"
	"vaultd/internal/watch"
)

// Person is who acts, and what he gives as the reason; it may be empty.
type Person struct {
	UID    uint32
	Reason string
}

// Humans lets people act on entries: inside a running daemon, or beside none.
type Humans struct {
	ledger *boltledger.Ledger
	now    func() archive.Instant
	log    *slog.Logger
	drop   func(name string) (r *room, done func() error, err error)
	heard  func(ledger.Entry) // whoever else must know what was committed
	brake  *brake
	resume func(drop string)   // lets its disposals go on
	begin  func() (end func()) // keeps the drop folders open in between
	held   func() string       // why nothing may be taken; empty: it may
	asks   recovery.Service    // the archive, asked before a release; nil: there is none
	grace  time.Duration       // after it nothing can be in flight any more
}

// Humans lets people act while the daemon runs: it goes on with what they decided at
// once.
func (d *Daemon) Humans() *Humans {
	heard := func(e ledger.Entry) { d.heard(e); d.conductor.Wake() }
	return &Humans{ledger: d.ledger, now: d.cfg.Now, log: d.cfg.Log, heard: heard, brake: d.brake, resume: d.conductor.Released, begin: d.begin, held: d.held, asks: d.cfg.Archive, grace: d.cfg.Grace, drop: func(name string) (*room, func() error, error) {
		for _, r := range d.drops {
			if r.cfg.Name == name {
				return r, func() error { return nil }, r.unavailable()
			}
		}
		return nil, nil, notConfigured(name)
	}}
}

// NewHumans lets people act while no daemon runs. The next run goes on with what they
// decided. Of cfg it needs StateDir, Now, Log, SpoolMinFree and Drops; for a release Archive
// and Grace too. A drop folder is opened, and so locked, only while something is done in it.
func NewHumans(cfg Config, l *boltledger.Ledger) *Humans {
	d := &Daemon{cfg: cfg, ledger: l, fatal: make(chan error, 1)}
	brake := newBrake(cfg.StateDir, func() time.Time { return cfg.Now().Wall }, cfg.Log)
	return &Humans{ledger: l, now: cfg.Now, log: cfg.Log, heard: func(ledger.Entry) {}, brake: brake, resume: func(string) {}, begin: d.begin, held: d.heldAlone, asks: cfg.Archive, grace: cfg.Grace, drop: func(name string) (*room, func() error, error) {
		for _, dc := range cfg.Drops {
			if dc.Name == name {
				r := &room{d: d, cfg: dc, look: watch.Rules{Sidecar: dc.Rules.Sidecar, Junk: packager.IsJunkName}}
				return r, r.close, r.open()
			}
		}
		return nil, nil, notConfigured(name)
	}}
}

// begin keeps a reload from closing the drop folders until end.
func (d *Daemon) begin() (end func()) {
	d.acts.RLock()
	return d.acts.RUnlock
}

func notConfigured(drop string) error {
	return fmt.Errorf("drop %q is not configured any more; put it back, or its folders stay where they are", drop)
}

// Act commits what a person decided about e. event makes the event of who acts and the
// digest of his reason; the text is kept beside the document, where it can be erased.
// The error wraps [ledger.ErrIllegal] where e is not in a state for it.
func (h *Humans) Act(ctx context.Context, e ledger.Entry, p Person, event func(ledger.Operator) ledger.Event) (ledger.Entry, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Entry{}, err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is committed, and its asker is told so
	by, note := p.signed()
	after, err := h.apply(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{event(by)}, Note: note, At: h.now()})
	if err == nil {
		h.committed(after, event(by))
	}
	return after, err
}

// signed gives the person for the journal, and what he said for beside it.
func (p Person) signed() (ledger.Operator, *ledger.Note) {
	if p.Reason == "" {
		return ledger.Operator{UID: p.UID}, nil
	}
	n := ledger.Note{Text: p.Reason}
	rand.Read(n.Salt[:]) // never fails: the runtime stops the process instead
	return ledger.Operator{UID: p.UID, Reason: n.Digest()}, &n
}

// maxStale bounds how often an act is decided anew because the entry moved on meanwhile.
const maxStale = 5

// apply commits a change. Where vaultd itself moved the entry on meanwhile, it is offered
// again: whether it is still allowed, the transition decides.
func (h *Humans) apply(ctx context.Context, c ledger.Change) (ledger.Entry, error) {
	for try := 0; ; try++ {
		rs, err := h.ledger.Apply(ctx, c)
		if err != nil {
			return ledger.Entry{}, err
		}
		stale, moved := errors.AsType[*ledger.StaleError](rs[0].Err)
		if !moved || try == maxStale {
			return rs[0].Entry, rs[0].Err
		}
		c.Rev = stale.Have
	}
}

// committed logs the act and tells who must know.
func (h *Humans) committed(e ledger.Entry, ev ledger.Event) {
	by, _ := ledger.ActorOf(ev)
	h.log.Info("a person acted", "act", ev.JournalName(), "uid", by.UID, "key", e.Key, "state", e.State, "drop", e.Drop)
	h.heard(e)
}

// ErrNothingDue says that no archived folder of a drop is due for removal.
var ErrNothingDue = errors.New("nothing of it is due for removal")

// ApproveDisposal lets go all archived folders of a drop that are due for removal now,
// however many they are, and returns their number. It is journaled before it holds.
func (h *Humans) ApproveDisposal(ctx context.Context, drop string, p Person) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is committed, and its asker is told so
	at := h.now().Wall
	_, _, err = h.ledger.DueInQueue(ledger.Dispose, "drop "+drop, at, 1, nil, func(e ledger.Entry) bool {
		if e.Source == ledger.Kept {
			n++
		}
		return true
	})
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, fmt.Errorf("approve disposal of %s: %w", drop, ErrNothingDue)
	}
	by, note := p.signed()
	mark := ledger.Mark{Name: ledger.MarkDisposal, By: by, At: at, Cause: many(n, "folder", "folders") + " of drop " + drop}
	if err := h.ledger.CommitMark(ctx, mark, note); err != nil {
		return 0, err
	}
	if err := h.brake.approve(drop, n); err != nil {
		return 0, err
	}
	h.log.Info("a person acted", "act", mark.Name, "uid", by.UID, "drop", drop, "folders", n)
	h.resume(drop)
	return n, nil
}

// ErrHeld says that nothing may be taken just now; its text goes on with why.
var ErrHeld = errors.New("nothing is taken now")

// mayTake refuses to take a folder while that waits for a person.
func (h *Humans) mayTake() error {
	if _, safe := h.ledger.SafeMode(); safe {
		return fmt.Errorf("%w: nothing is taken in safe mode: run vaultd reconcile first", ErrHeld)
	}
	if why := h.held(); why != "" {
		return fmt.Errorf("%w: %s", ErrHeld, why)
	}
	return nil
}

// heldAlone is held for a command beside no daemon.
func (d *Daemon) heldAlone() string {
	if err := d.recallSuccessor(); err != nil {
		return err.Error()
	}
	return d.held()
}

// Retry takes the returned folder of a rejected entry again, as a new entry that
// supersedes it, and resolves the old one. What was given back may have been corrected
// meanwhile: it is looked at and packed from the beginning.
//
// The folder is claimed, durably, before the ledger is asked. Where the process ends in
// between, the next start adopts the folder as one that was dropped anew, and the old
// entry stays to be looked at. The error is a *drop.ClaimError where the folder could
// not be taken, and wraps [ErrHeld] in safe mode and where another vaultd has taken the
// drop folders over; then nothing has changed.
func (h *Humans) Retry(ctx context.Context, old ledger.Entry, p Person) (next ledger.Entry, err error) {
	by, note := p.signed()
	if _, err := ledger.Transition(old, ledger.Retried{By: by}, h.now()); err != nil {
		return next, err
	}
	if err := h.mayTake(); err != nil {
		return next, err
	}
	defer h.begin()()
	r, done, err := h.drop(old.Drop)
	if err != nil {
		return next, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := ctx.Err(); err != nil {
		return next, err
	}
	ctx = context.WithoutCancel(ctx) // a claimed folder gets its entry
	ev, key, err := r.takeAgain(old)
	if err != nil {
		return next, err
	}
	at := h.now()
	resolved := ledger.Change{Key: old.Key, Rev: old.Rev, At: at, Note: note, Events: []ledger.Event{ledger.Retried{By: by, As: key}}}
	rs, err := h.ledger.Apply(ctx, ledger.Change{Key: key, Events: []ledger.Event{ev}, At: at}, resolved)
	if err != nil || rs[0].Err != nil {
		return next, errors.Join(err, errorOf(rs))
	}
	h.heard(rs[0].Entry)
	if stale, moved := errors.AsType[*ledger.StaleError](rs[1].Err); moved {
		resolved.Rev = stale.Have
		after, err := h.apply(ctx, resolved)
		if err == nil {
			h.committed(after, resolved.Events[0])
		} else if is, ok := errors.AsType[*ledger.IllegalError](err); ok && is.Reason == ledger.AlreadyResolved {
			err = nil // somebody closed it meanwhile; the new entry names it all the same
		}
		return rs[0].Entry, err
	}
	if rs[1].Err == nil {
		h.committed(rs[1].Entry, resolved.Events[0])
	}
	return rs[0].Entry, rs[1].Err
}

func errorOf(rs []ledger.Result) error {
	if len(rs) == 0 {
		return nil
	}
	return rs[0].Err
}

// takeAgain claims a returned folder and gives the event that opens its new entry.
func (r *room) takeAgain(old ledger.Entry) (ev ledger.ClaimedFolder, key archive.Key, err error) {
	f, letGo, err := r.hold()
	if err != nil {
		return ev, key, err
	}
	defer letGo()
	if err := spool.CheckMinFree(r.d.cfg.StateDir, r.d.cfg.SpoolMinFree); err != nil {
		return ev, key, fmt.Errorf("nothing is taken: %w", err)
	}
	now := r.d.cfg.Now().Wall
	c, err := f.ClaimReturned(old.Dest, now)
	if errors.Is(err, durable.ErrSync) {
		r.d.die(fmt.Errorf("drop %s: %w", r.cfg.Name, err))
	}
	if err != nil {
		return ev, key, err
	}
	look, err := r.lookAt(f, c.Key)
	if err != nil { // it is looked at again before it is sealed
		r.d.cfg.Log.Warn("claimed folder cannot be looked at yet", "key", c.Key, "err", err)
	}
	return ledger.ClaimedFolder{
		Route: ledger.Vault, Vault: r.cfg.Vault, Drop: r.cfg.Name, Folder: c.Folder, Owner: c.Owner, Node: ledger.Node(c.Inode),
		Look: look, NotBefore: now.Add(r.cfg.Settle), Supersedes: old.Key,
	}, c.Key, nil
}
