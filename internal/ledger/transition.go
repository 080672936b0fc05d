package ledger

import (
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Event is something that happened or is about to. The set is closed: every event
// is a type of this package, and how it changes an entry is written beside it.
type Event interface {
	// apply changes e or says why it must not.
	apply(e *Entry, at archive.Instant) error
	// JournalName is the event's name in journal lines.
	JournalName() string
}

// Transition returns the entry that ev makes of e at the given instant. e
// itself is not changed, and no other function changes a state. The error wraps
// ErrIllegal where the event is not allowed in this state. If a person would
// cause the event, the error is an *IllegalError with the reason. To learn
// whether an act is allowed, call Transition and drop the entry that it
// returns.
//
// Each new revision has a journal line. An event that only changes when the step is tried
// again, for a reason that is known already, leaves the revision as it is.
func Transition(e Entry, ev Event, at archive.Instant) (Entry, error) {
	// The slice is copied because an event changes registrations in place: e must stay as it is stored.
	next := e
	next.Registrations = slices.Clone(e.Registrations)
	err := illegalBecause(NotInThatState)
	if slices.Contains(statesFor(ev), e.State) && e.evidence().allows(&next, ev) {
		err = ev.apply(&next, at)
	}
	if err != nil {
		return e, fmt.Errorf("%s %s in %s/%s: %w", ev.JournalName(), e.Key, e.State, e.Source, err)
	}
	if isIntent(ev) || isOutcome(ev) {
		next.Acts++
	}
	// Each revision has one journal line. A crash before the commit loses both; the next start decides again from the stored entry.
	if !tellsNothingNew(e, next, ev) {
		next.Rev++
	}
	return next, nil
}

// statesFor are the states in which an event is possible at all; each event has more to say.
func statesFor(ev Event) []State {
	switch ev := ev.(type) {
	case ClaimedFolder, Recovered:
		return []State{None}
	case StillChanging, FoundDuplicate:
		return []State{Discovered}
	case Unsealed:
		return []State{Packaged}
	case RegisterIntended:
		return []State{Packaged, Registering}
	case Resealed:
		return []State{Packaged, Registering, Registered, Sending}
	case FilesIntended, DocumentIntended:
		return []State{Packaged, Sending}
	case RegisterUnanswered, RegisterNotTaken, BatchRefused, RegisterRefused, TicketReceived, AnswerMixedUp:
		return []State{Registering}
	case UploadIntended, WindowClosed:
		return []State{Registered, Sending}
	case UploadNotSent, UploadUnanswered, UploadRefused, UploadAccepted, DeliveryConfirmed,
		FilesStored, DocumentTaken, DocumentRefused:
		return []State{Sending}
	case Released:
		return []State{Unclear, Quarantined}
	case Superseded, Retried:
		return []State{Rejected}
	case SourceChecked, DisposalStopped:
		return []State{Archived, Delivered}
	case RegistrationFound:
		return []State{Packaged, Registering, Registered, Sending, Uploaded, Unclear, Archived, Rejected, Quarantined}
	case OutcomeLate, TicketShared:
		return States()
	case SourceFound:
		switch ev.Source {
		case Kept, Moved:
			return []State{Archived, Delivered, Quarantined}
		case Gone:
			return []State{Archived, Delivered, Duplicate, Rejected, Quarantined}
		case Returned:
			return []State{Duplicate, Rejected, Quarantined}
		}
		return nil
	}
	return append(States(), None)
}

// tellsNothingNew reports whether ev changed nothing that the journal tells. A document is asked
// about for hours; a journal line for each answer "still in progress" would prove nothing.
func tellsNothingNew(before, after Entry, ev Event) bool {
	switch ev := ev.(type) {
	case StillChanging:
		return true
	case RegistrationFound:
		return before.findRegistration(ev.Remote) != nil
	case TicketShared:
		r := before.findRegistration(ev.Remote)
		return r != nil && r.Shared
	case Postponed:
		return before.Cause.Code == after.Cause.Code && before.WaitsFor == after.WaitsFor
	case StatusSeen:
		// An answer that counts as evidence of absence is journaled: a later POST rests on it.
		r, was := after.findRegistration(ev.Receipt.Remote), before.findRegistration(ev.Receipt.Remote)
		proof := (r.LastStatus == archive.WaitingForPackage || r.LastStatus == archive.Failed) && r.EqualAnswers > was.EqualAnswers
		return !proof && before.State == after.State && before.Source == after.Source && before.FlagWords() == after.FlagWords() &&
			r.Fate == was.Fate && r.LastStatus == was.LastStatus
	}
	return false
}

// Step is one kind of work that an entry can need next.
type Step uint8

// The steps. Their numbers are stored in the due index and never change.
const (
	NoStep   Step = iota
	Seal          // settle once more, pack, read back
	Register      // ask for a ticket
	Upload        // send the package, or see that the window is over
	Ask           // ask the service what became of it
	Place         // return the source to people, or keep it with its receipt
	Dispose       // move or delete the kept source after its grace
)

var stepWords = []string{"none", "seal", "register", "upload", "ask", "place", "dispose"}

// String returns the step's word.
func (s Step) String() string { return wordOf(stepWords, int(s)) }

// Due says which step e needs next and from when on; ok is false when nothing is
// left to do without a person. Recovery is this function: after a restart it is called
// again, and an entry whose intent was committed gets the same step again.
func Due(e Entry) (step Step, at time.Time, ok bool) {
	switch {
	case e.Hold:
		return NoStep, time.Time{}, false
	// Until the service was asked, the usual steps could send a document again whose first copy the ledger lost.
	case e.NeedsReconcile:
		return dueUnreconciled(e)
	}
	switch e.State {
	case Discovered:
		return Seal, e.NotBefore, true
	// A crash after the intent leaves registering. The POST may have been taken; its ticket is lost, so nothing can have been
	// uploaded with it, and registering again is safe. The other registration shows up as an orphan.
	case Packaged, Registering:
		return e.evidence().begin(e), e.NotBefore, true
	// A crash during the PUT leaves sending. The upload step sends the same bytes to the same address while the window is open,
	// and else commits that it closed.
	case Registered, Sending:
		return Upload, e.NotBefore, true
	case Uploaded, Unclear:
		if step = e.evidence().await(); step != NoStep {
			return step, e.NotBefore, true
		}
		return NoStep, time.Time{}, false
	}
	return dueAfterEnd(e)
}

// dueUnreconciled is Due for an entry that needs to be reconciled: it is sealed, so that the
// service can be asked for its identity, and then asked about. Nothing of it is sent, moved or removed.
func dueUnreconciled(e Entry) (Step, time.Time, bool) {
	switch {
	case e.State == Discovered:
		return Seal, e.NotBefore, true
	// Placing and disposing wait too: the ledger may have lost where the folder was moved.
	case len(e.OpenQuestions()) > 0 && e.State != None:
		return Ask, e.NotBefore, true
	}
	return dueLate(e)
}

// dueLate is Due for an entry that has no question left but those about registrations that were given up.
func dueLate(e Entry) (Step, time.Time, bool) {
	if at, ok := e.nextLateQuestion(); ok {
		return Ask, LaterOf(at, e.NotBefore), true
	}
	return NoStep, time.Time{}, false
}

// dueAfterEnd is Due for the final states and for quarantined ones: the source is
// placed first, then open questions and the disposal go by their times. A disposal waits
// for a late question that is due before it, and not for those that come after.
func dueAfterEnd(e Entry) (Step, time.Time, bool) {
	ended := e.State.IsFinal()
	switch {
	// Returning and keeping are intents: a crash during the move leaves one, and the same step finds the folder at either end.
	case ended && (e.Source == Claimed || e.Source == Returning || e.Source == Keeping):
		return Place, e.NotBefore, true
	// A crash left the disposal half done. It goes on before any question: half a folder is of no use to people.
	case e.Source == Disposing && e.mayDispose():
		return Dispose, e.NotBefore, true
	case len(e.OpenQuestions()) > 0 && e.State != None: // a disposal waits for the answer
		return Ask, e.NotBefore, true
	case e.Source == Kept && e.mayDispose():
		at := LaterOf(e.DisposeAt, e.NotBefore)
		if asked, ok := e.nextLateQuestion(); ok && asked.Before(at) {
			return dueLate(e)
		}
		return Dispose, at, true
	}
	return dueLate(e)
}

// QueueOf names the queue in which the step that is due waits: a drop folder for what is
// done on its disk, that of [ServiceQueueOf] for calls to the service. A queue that makes no progress delays
// no other queue.
func QueueOf(e Entry) string {
	switch step, _, ok := Due(e); {
	case !ok:
		return ""
	case step == Register || step == Upload || step == Ask:
		return ServiceQueueOf(e)
	}
	queue := "drop " + e.Drop
	return queue[:min(len(queue), longestQueue)] // see ServiceQueue
}

// mayDispose reports whether the source may be disposed of as soon as its grace is over.
func (e *Entry) mayDispose() bool {
	done := e.State == Archived && e.ArchivedRemote != "" || e.State == Delivered
	unhappy := e.Contradicted || e.Recipient == RecipientRejected && !e.Resolved
	return done && !e.NeedsReconcile && !e.DisposeAt.IsZero() && !e.Hold && !e.PossibleDouble && !unhappy && !e.NeedsComparison() && !e.ContentDiffers()
}

// LaterOf returns the later of two times.
func LaterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
