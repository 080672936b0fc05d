package arrivals

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Codes of causes that begin here. Others are those of [apicall.Error].
const (
	CauseDrop     = "drop"      // the drop folder is away or cannot be written, or a file in custody is not what it was
	causeDropFull = "drop-full" // its disk is full

	// Of extracts.
	CauseCustodyLost  = "custody-lost"    // custody has lost it, and the service does not have it any more
	causeCustody      = "custody"         // the custody cannot be written, or has something else
	causeCustodyFull  = "custody-full"    // its disk is full
	causeDamagedFile  = "damaged-file"    // what came is no whole file
	causeDefinition   = "no-definition"   // the table definition does not come
	causeFilesUnclear = "files-not-clear" // the list of files cannot be used, or names too few
	causeGone         = "gone-at-service" // the service does not have it any more

	// Of received documents.
	CauseFolder = "receive-folder" // the folder of what comes cannot be used
	CauseLost   = "receive-lost"   // a file that was held is missing or is another one
	CauseDoubt  = "receive-doubt"  // what came for a file looks like a part of it, or like an answer of somebody else
	causeFull   = "receive-full"   // there is no room for what comes
)

// whenFull are the codes that stand for others where the disk is full.
var whenFull = map[string]string{CauseDrop: causeDropFull, causeCustody: causeCustodyFull, CauseFolder: causeFull, CauseLost: causeFull}

// errStale ends the work on an arrival that somebody else changed: the next
// look decides anew.
var errStale = errors.New("the arrival was changed by somebody else")

// work is the work on one arrival in one round.
type work struct {
	*Engine
	a     arrival.Arrival
	files []archive.ExtractFile // of an extract, as listed in this round; nil: not yet. Addresses are never stored.
}

// doDueSteps does what is due of the arrival, one step after the other, until
// one has to wait. The first may be the one that finds out whether a pause is
// over.
func (w *work) doDueSteps(ctx context.Context) error {
	for isFirst := true; ctx.Err() == nil && !w.isHeld() && (isFirst || !w.isPaused()); isFirst = false {
		step, file, at := w.dueOf(w.a)
		if step == arrival.NoStep || step == arrival.Person || at.After(w.now().Wall) {
			return nil
		}
		err := w.do(ctx, w, step, file)
		if errors.Is(err, errRefused) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.waits[w.a.Key] = w.now().Wall.Add(longestSleep)
			return nil
		}
		if errors.Is(err, errStale) {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.put, w.a.Key) // it may be fetched again: what is in the drop folder is asked again
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s of %s %s: %w", step, w.kind, w.a.Item, err)
		}
	}
	return nil
}

// apply commits events of one arrival, and waits until they are durable.
func (e *Engine) apply(ctx context.Context, a arrival.Arrival, evs ...arrival.Event) (arrival.Arrival, error) {
	// An outcome is recorded even while the program ends: a lost outcome
	// would cost another download. However slow the disk is, it is waited for.
	ctx = context.WithoutCancel(ctx)
	next, err := e.ledger.ApplyArrival(ctx, arrival.Change{Key: a.Key, Rev: a.Rev, Events: evs, At: e.now()})
	stale, is := errors.AsType[*ledger.StaleError](err)
	if !is {
		return next, err
	}
	// Facts are recorded all the same: a list that was read during a download may
	// have changed the arrival. The next look decides the rest.
	facts := slices.DeleteFunc(slices.Clone(evs), func(ev arrival.Event) bool { return !isFact(ev) })
	for tries := 0; is && len(facts) > 0 && tries < 5; tries++ {
		_, err = e.ledger.ApplyArrival(ctx, arrival.Change{Key: a.Key, Rev: stale.Have, Events: facts, At: e.now()})
		stale, is = errors.AsType[*ledger.StaleError](err)
	}
	if len(facts) > 0 && err != nil {
		e.Log.Warn("what became of an arrival could not be recorded, because it was changed meanwhile; it is done again", "kind", e.kind, "item", a.Item, "err", err)
	}
	if err != nil && !is && !errors.Is(err, ledger.ErrIllegal) {
		return a, err
	}
	return a, errStale
}

// isFact reports whether an event says what certainly happened outside.
func isFact(ev arrival.Event) bool {
	switch ev.(type) {
	case arrival.DocumentHeld, arrival.FileHeld, arrival.ConfirmationTaken, arrival.AcknowledgementTaken:
		return true
	}
	return false
}

// commit commits events and goes on with the arrival that they made.
func (w *work) commit(ctx context.Context, evs ...arrival.Event) error {
	a, err := w.apply(ctx, w.a, evs...)
	if err == nil {
		w.a = a
	}
	return err
}

// postpone commits that what is due failed, and when it is tried again.
func (w *work) postpone(ctx context.Context, c ledger.Cause) error {
	w.logWait(c)
	return w.commit(ctx, arrival.Postponed{Until: w.now().Wall.Add(arrival.DelayAfter(int(w.a.Attempt))), Cause: c})
}

// logWait logs once for each cause that the arrival has to wait.
func (w *work) logWait(c ledger.Cause) {
	if w.a.Cause.Code != c.Code {
		w.Log.Warn("what comes in has to wait; it is tried again", "kind", w.kind, "item", w.a.Item, "cause", c.Code, "why", c.Text)
	}
}

// postponeAfterFault postpones after a failed call, and pauses all calls where
// the fault is not that of one arrival.
func (w *work) postponeAfterFault(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return nil // the program ends; the step stays due, or its intent stands
	}
	e := apicall.AsError(err)
	if isGeneral(e) {
		w.pauseCalls(op, e)
	}
	return w.postpone(ctx, ledger.Cause{Code: e.Code, Text: e.Error()})
}

// isGeneral reports whether a fault is that of the service or of the way to it,
// and not of one arrival.
func isGeneral(err *apicall.Error) bool {
	return err.Denied || err.Overloaded() || err.IsUnlisted() || err.Outcome == apicall.NotSent && err.Code != "request"
}

// postponeLocal postpones for a fault of a disk, with its code, or of what
// came. A file whose place is not known stops the process.
func (w *work) postponeLocal(ctx context.Context, code string, err error) error {
	damaged, isDamaged := errors.AsType[*custody.DamagedError](err)
	switch {
	case errors.Is(err, custody.ErrUnknownPlace):
		return err
	case ctx.Err() != nil:
		return nil
	case isDamaged:
		code, err = causeDamagedFile, damaged
	case durable.IsFull(err):
		code = whenFull[code]
	}
	return w.postpone(ctx, ledger.Cause{Code: code, Text: err.Error()})
}

// hasRoom says whether something may be fetched; where not, that was committed
// with the code.
func (w *work) hasRoom(ctx context.Context, code string) (ok bool, err error) {
	if w.Room == nil {
		return true, nil
	}
	if err := w.Room(); err != nil {
		return false, w.postpone(ctx, ledger.Cause{Code: code, Text: err.Error()})
	}
	return true, nil
}

// handOn puts folders with what is held into the drop folder, and commits that
// they are there. If that fails, everything stays held, and the service is told
// later.
func (w *work) handOn(ctx context.Context, to Drop, folders ...archive.DropFolder) error {
	for i := w.notePut(0); i < len(folders); i = w.notePut(1) {
		// A crash after this leaves a folder that is there, or that was taken
		// from there. The next start puts it there again: it is found, or it
		// ends as a duplicate of the first, because both have one identity.
		if err := to.PutFolder(ctx, folders[i]); err != nil {
			return w.postponeLocal(ctx, CauseDrop, err)
		}
	}
	// Every folder is durable there, or was taken from there. A crash before
	// this commit puts them there again.
	err := w.commit(ctx, arrival.HandedOn{})
	if err == nil {
		w.notePut(-len(folders))
	}
	return err
}

// notePut adds to how many folders of the arrival this run has put into the
// drop folder, and returns the sum; 0 forgets the arrival. Without it a full
// disk would fill with duplicates: each try would begin with the first file.
// Only after a restart it does.
func (w *work) notePut(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n += w.put[w.a.Key]
	if w.put[w.a.Key] = n; n == 0 {
		delete(w.put, w.a.Key)
	}
	return n
}

// tell tells the service something of the arrival, between its intent and its
// outcome. wasHeard says of a refusal that it shows an earlier one was taken.
func (w *work) tell(ctx context.Context, intent arrival.Event, call func(context.Context) error, wasHeard func(*apicall.Error) bool, outcome func(archive.RequestID) arrival.Event) error {
	// The intent: a crash after it leaves word that may have been taken, and
	// the next start repeats it.
	if err := w.commit(ctx, intent); err != nil {
		return err
	}
	noting, request := apicall.NoteRequests(ctx)
	switch err := call(noting); {
	case err == nil:
		w.noteAnswer()
	case !wasHeard(apicall.AsError(err)): // a page that says so may be a proxy's, so it ends no pause
		return w.postponeAfterFault(ctx, intent.JournalName(), err)
	}
	return w.commit(ctx, outcome(request.Last()))
}
