package operator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/present"
	"vaultd/internal/recovery"
)

// Person is who acts, and what he gives as the reason; it may be empty.
type Person struct {
	UID    uint32
	Reason string
}

// Ledger is what people act on. A commit is durable when it returns.
type Ledger interface {
	recovery.EntryReader
	recovery.Committer
	Info() ledger.Info
	SafeMode() (ledger.SafeMode, bool)
	OpenEntries(fn func(ledger.Entry) error) error
	DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) (ready []ledger.Entry, next time.Time, err error)
	Lines(from uint64, fn func(n uint64, line []byte) error) error
	ApplyArrival(ctx context.Context, c arrival.Change) (arrival.Arrival, error)
	CommitMark(ctx context.Context, m ledger.Mark, note *ledger.Note) error
	IntendFetch(ctx context.Context, m ledger.Mark, note *ledger.Note, budget uint64) (used uint64, err error)
}

// Config is what the actions need.
type Config struct {
	Ledger  Ledger
	Now     func() archive.Instant
	Log     *slog.Logger
	Limit   *DisposalLimit
	Service recovery.Service // the archive, asked before a release; may be nil
	Grace   time.Duration    // after it nothing can be in flight any more

	// OpenDrop returns a drop folder by its name; close ends its use.
	OpenDrop func(name string) (d Claimer, close func() error, err error)
	// HeldReason says why nothing may be taken; empty: it may.
	HeldReason func() string
	// KeepOpen keeps the drop folders open until release is called.
	KeepOpen func() (release func())
	// AfterCommit is called after each commit, so that the engine goes on at once; nil while no daemon runs.
	AfterCommit func()
	// AfterRetry is called after a person asked that something that came in be tried now; nil while no daemon runs.
	AfterRetry func()
	// Resume lets the disposals of a drop go on; nil while no daemon runs.
	Resume func(drop string)
	// MayResumeUploads reports whether the uploads to a store are paused in such a way that a person can let them go on, and
	// ResumeUploads does that; both are nil while no daemon runs.
	MayResumeUploads, ResumeUploads func(store ingest.Target) bool
}

// Claimer is a drop folder from which a returned folder can be claimed again.
type Claimer interface {
	// ClaimAgain claims the returned folder of a rejected entry and gives the event that opens its new entry.
	ClaimAgain(old ledger.Entry) (ledger.ClaimedFolder, archive.Key, error)
}

// Actions lets people act on entries: inside a running daemon, or while none runs.
type Actions struct{ cfg Config }

// New returns the actions that work on cfg.
func New(cfg Config) *Actions {
	if cfg.AfterCommit == nil {
		cfg.AfterCommit = func() {}
	}
	if cfg.AfterRetry == nil {
		cfg.AfterRetry = func() {}
	}
	if cfg.Resume == nil {
		cfg.Resume = func(string) {}
	}
	if cfg.MayResumeUploads == nil {
		cfg.MayResumeUploads = func(ingest.Target) bool { return false }
	}
	return &Actions{cfg}
}

// DropNotConfigured is the error for a drop that the configuration does not name.
func DropNotConfigured(drop string) error {
	return fmt.Errorf("drop %q is not configured any more; put it back, or its folders stay where they are", drop)
}

// Act commits what a person decided about e. event makes the event of who acts and the
// digest of his reason; the text is kept beside the document, where it can be erased.
// The error wraps [ledger.ErrIllegal] where e is not in a state for it.
func (a *Actions) Act(ctx context.Context, e ledger.Entry, p Person, event func(ledger.Operator) ledger.Event) (ledger.Entry, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Entry{}, err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is committed, and its asker is told so
	by, note := p.Sign()
	after, err := a.applyChange(ctx, ledger.Change{Key: e.Key, Fact: true, Events: []ledger.Event{event(by)}, Note: note, At: a.cfg.Now()})
	if err == nil {
		a.logAct(after, event(by))
	}
	return after, err
}

// Sign gives the person for the journal, and his reason as the note beside it.
func (p Person) Sign() (ledger.Operator, *ledger.Note) {
	if p.Reason == "" {
		return ledger.Operator{UID: p.UID}, nil
	}
	n := ledger.Note{Text: p.Reason}
	rand.Read(n.Salt[:]) // never fails: the runtime stops the process instead
	return ledger.Operator{UID: p.UID, Reason: n.Digest()}, &n
}

// applyChange commits a change. After a crash before this commit the person's act
// was not given, and is given again.
func (a *Actions) applyChange(ctx context.Context, c ledger.Change) (ledger.Entry, error) {
	rs, err := a.cfg.Ledger.Apply(ctx, c)
	if err != nil {
		return ledger.Entry{}, err
	}
	return rs[0].Entry, rs[0].Err
}

// logAct logs the act and tells who must know.
func (a *Actions) logAct(e ledger.Entry, ev ledger.Event) {
	by, _ := ledger.ActorOf(ev)
	a.cfg.Log.Info("a person acted", "act", ev.JournalName(), "uid", by.UID, "key", e.Key, "state", e.State, "drop", e.Drop)
	a.cfg.AfterCommit()
}

// ErrNothingDue says that no archived folder of a drop is due for removal.
var ErrNothingDue = errors.New("nothing of it is due for removal")

// ApproveDisposal lets go all archived folders of a drop that are due for removal now,
// however many they are, and returns their number. It is journaled before it holds.
func (a *Actions) ApproveDisposal(ctx context.Context, drop string, p Person) (n int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is committed, and its asker is told so
	at := a.cfg.Now().Wall
	_, _, err = a.cfg.Ledger.DueInQueue(ledger.Dispose, "drop "+drop, at, 1, nil, func(e ledger.Entry) bool {
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
	by, note := p.Sign()
	mark := ledger.Mark{Name: ledger.MarkDisposal, By: by, At: at, Cause: present.FormatCount(n, "folder", "folders") + " of drop " + drop}
	// After a crash behind this commit the approval is journaled and not yet in force: the person gives it again.
	if err := a.cfg.Ledger.CommitMark(ctx, mark, note); err != nil {
		return 0, err
	}
	// It holds from here on, also after a crash: it is written to the disk.
	if err := a.cfg.Limit.Approve(drop, n); err != nil {
		return 0, err
	}
	a.cfg.Log.Info("a person acted", "act", mark.Name, "uid", by.UID, "drop", drop, "folders", n)
	a.cfg.Resume(drop)
	return n, nil
}

// ErrNotPaused says that the uploads to a store are not paused, or not so that a person can let them go on.
var ErrNotPaused = errors.New("nothing of it waits for a person")

// ResumeUploads lets the uploads to a store go on at once that were paused because nobody knows what became of the last ones. It is
// journaled before it holds. The pause stands in memory alone: after a crash there is none, and a person need not act again.
func (a *Actions) ResumeUploads(ctx context.Context, store ingest.Target, p Person) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is committed, and its asker is told so
	if !a.cfg.MayResumeUploads(store) {
		return fmt.Errorf("resume %s: %w", store, ErrNotPaused)
	}
	by, note := p.Sign()
	mark := ledger.Mark{Name: ledger.MarkUploadsResumed, By: by, At: a.cfg.Now().Wall, Cause: store.String()}
	if err := a.cfg.Ledger.CommitMark(ctx, mark, note); err != nil {
		return err
	}
	a.cfg.Log.Info("a person acted", "act", mark.Name, "uid", by.UID, "target", store.String())
	a.cfg.ResumeUploads(store)
	return nil
}

// ErrNothingTaken says that nothing may be taken just now; its text goes on with why.
var ErrNothingTaken = errors.New("nothing is taken now")

// checkMayTake refuses to take a folder while that waits for a person.
func (a *Actions) checkMayTake() error {
	if _, safe := a.cfg.Ledger.SafeMode(); safe {
		return fmt.Errorf("%w: nothing is taken in safe mode: run vaultd reconcile first", ErrNothingTaken)
	}
	if why := a.cfg.HeldReason(); why != "" {
		return fmt.Errorf("%w: %s", ErrNothingTaken, why)
	}
	return nil
}

// Retry takes the returned folder of a rejected entry again, as a new entry
// that supersedes it, and resolves the old one. What was given back may have
// been corrected meanwhile: it is looked at and packed from the beginning. If
// nobody can be asked, it also sends what was closed in doubt, flagged as
// possibly processed twice.
//
// The folder is claimed, durably, before the ledger is asked. If the process
// ends in between, the next start adopts the folder as one that was dropped
// anew, and the old entry stays to be looked at. The error is a
// *drop.ClaimError where the folder could not be taken, and wraps
// [ErrNothingTaken] in safe mode and where another vaultd has taken the drop
// folders over; then nothing has changed.
func (a *Actions) Retry(ctx context.Context, old ledger.Entry, p Person) (next ledger.Entry, err error) {
	by, note := p.Sign()
	if _, err := ledger.Transition(old, ledger.Retried{By: by}, a.cfg.Now()); err != nil {
		return next, err
	}
	if err := a.checkMayTake(); err != nil {
		return next, err
	}
	release := a.cfg.KeepOpen()
	defer release()
	d, done, err := a.cfg.OpenDrop(old.Drop)
	if err != nil {
		return next, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := ctx.Err(); err != nil {
		return next, err
	}
	ctx = context.WithoutCancel(ctx) // a claimed folder gets its entry
	// After a crash behind this claim the next start adopts the folder, and the old entry stays unresolved.
	ev, key, err := d.ClaimAgain(old)
	if err != nil {
		return next, err
	}
	ev.PossibleDouble = old.IsSentAgainInDoubt()
	at := a.cfg.Now()
	resolved := ledger.Change{Key: old.Key, Fact: true, At: at, Note: note, Events: []ledger.Event{ledger.Retried{By: by, As: key}}}
	// Both changes go into one commit. After a crash before it the next start adopts the claimed folder.
	rs, err := a.cfg.Ledger.Apply(ctx, ledger.Change{Key: key, Events: []ledger.Event{ev}, At: at}, resolved)
	if err != nil || rs[0].Err != nil {
		return next, errors.Join(err, firstError(rs))
	}
	a.cfg.AfterCommit()
	if is, ok := errors.AsType[*ledger.IllegalError](rs[1].Err); ok && is.Reason == ledger.AlreadyResolved {
		return rs[0].Entry, nil // somebody closed it meanwhile; the new entry names it all the same
	}
	if rs[1].Err == nil {
		a.logAct(rs[1].Entry, resolved.Events[0])
	}
	return rs[0].Entry, rs[1].Err
}

func firstError(rs []ledger.Result) error {
	if len(rs) == 0 {
		return nil
	}
	return rs[0].Err
}
