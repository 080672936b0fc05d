package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Operator is who acted and why. Only the digest of the reason is journaled.
type Operator struct {
	UID    uint32
	Reason archive.Digest // Note.Digest of what was said; zero: no reason was given
}

// VaultdUID is the uid that stands for vaultd itself, where a rule of the configuration
// acts in a person's place.
const VaultdUID uint32 = 1<<32 - 1

// Note is what a person gave as the reason of an act. It is kept beside the document,
// where it can be erased while the journal still verifies.
type Note struct {
	Salt [16]byte `stored:"1"` // joins the text in the journal's digest: a short text cannot be guessed from it
	Text string   `stored:"2"`
}

// Digest returns what stands for the note in the journal.
func (n Note) Digest() archive.Digest {
	return archive.Sum(slices.Concat(n.Salt[:], []byte(n.Text)))
}

// ActorOf returns who did ev; ok is false where no person did.
func ActorOf(ev Event) (by Operator, ok bool) {
	switch ev := ev.(type) {
	case Held:
		return ev.By, true
	case Unheld:
		return ev.By, true
	case Closed:
		return ev.By, true
	case Released:
		return ev.By, true
	case Retried:
		return ev.By, true
	}
	return Operator{}, false
}

// Held stops every further step and the disposal.
type Held struct {
	By Operator
	// CutOff says which file of a claimed folder looks cut off; zero: the hold
	// has another reason. The folder is packed when the entry is let go on, as
	// it is then.
	CutOff Cause
}

// CauseLooksCutOff is the code of Held.CutOff.
const CauseLooksCutOff = "looks-cut-off"

// JournalName implements Event.
func (Held) JournalName() string { return "held" }

func (ev Held) apply(e *Entry, _ archive.Instant) error {
	switch {
	case e.State == None:
		return illegalBecause(NotInThatState)
	case e.Hold:
		return illegalBecause(AlreadyHeld)
	}
	if ev.CutOff.Code != "" {
		if e.State != Discovered || e.CutOff == CutOffTaken {
			return ErrIllegal
		}
		e.CutOff, e.Cause = CutOffFound, ev.CutOff
	}
	e.Hold = true
	return nil
}

// Unheld lets the entry go on. If it needs a review, this counts as one. A file
// that looks cut off is taken as it is.
type Unheld struct{ By Operator }

// JournalName implements Event.
func (Unheld) JournalName() string { return "unheld" }

func (ev Unheld) apply(e *Entry, _ archive.Instant) error {
	if !e.Hold {
		return illegalBecause(NotHeld)
	}
	e.Hold = false
	e.Reviewed = e.Reviewed || e.NeedsReview() // letting it go on counts as the review
	e.takeCutOff()
	return nil
}

// takeCutOff notes that an operator takes the entry as it is. The mark stays.
func (e *Entry) takeCutOff() {
	if e.CutOff == CutOffFound {
		e.CutOff = CutOffTaken
	}
}

// Closed is an operator's decision that nobody needs to act any more:
//
//   - a rejection, or a contradiction about an archived entry or its kept folder, a missing comparison, or a download with other content is resolved; the flags stay, and a
//     disposal that was stopped halfway ends there, the rest of the folder kept for good
//   - an archived entry that needs a review counts as reviewed
//   - an entry of which nothing was ever at the service ends as rejected, on hold or not
//   - an entry in doubt ends as rejected, flagged as in doubt for ever; so does one that was to be sent again in spite of a doubt
//
// An entry that needs to be reconciled must be reconciled first.
type Closed struct{ By Operator }

// JournalName implements Event.
func (Closed) JournalName() string { return "closed" }

func (ev Closed) apply(e *Entry, at archive.Instant) error {
	if err := e.checkMayClose(); err != nil {
		return err
	}
	switch e.State {
	case Archived, Delivered:
		// The first reason that people are told of is the one that this act resolves.
		switch a := e.Attention(); {
		case e.isHalfwayDisposed():
			// The disposal ends halfway for good. What is left of the folder stays; the next start removes nothing more.
			e.Source, e.DisposeAt = Kept, time.Time{}
		case a == LooksCutOff:
			e.takeCutOff()
			return nil // as below
		case a == RepeatedNumber || a == StrangeDate:
			e.Reviewed = true
			return nil // not resolved: a later contradiction still needs a person
		}
	case Discovered, Packaged:
		e.enterState(Rejected)
		e.Hold = false // it waited for this decision, and its folder must come back
		if e.repeatsWhatMayBeDelivered() {
			e.InDoubt, e.Cause = true, DeliveryUnknown("it was to be sent again, and was not; it may have been delivered before that")
			break
		}
		e.Cause = Cause{Code: CauseGivenBack}
	case Quarantined, Unclear:
		// The cause must outlive the change of state: it tells why the entry is in doubt.
		c := e.Cause
		e.closeTicket(at.Wall)
		e.enterState(Rejected)
		e.InDoubt, e.Cause = true, c
	}
	e.Resolved = true
	return nil
}

// ClosedInDoubt begins the note beside what was closed in doubt. If the ledger
// is lost, nothing else tells of that decision.
const ClosedInDoubt = "CLOSED IN DOUBT"

// checkMayClose returns why e may not be closed; nil: it may.
func (e *Entry) checkMayClose() error {
	switch e.State {
	case Rejected:
		if e.Resolved {
			return illegalBecause(AlreadyResolved)
		}
		return nil
	case Archived, Delivered:
		switch {
		case e.NeedsPerson() || e.Attention() != NoAttention:
			return nil
		case e.Contradicted || e.IsArchivedTwice() || e.SourceDiffers() || e.NeedsReview() || e.NeedsComparison() || e.ContentDiffers() || e.CutOff != NotCutOff:
			return illegalBecause(AlreadyResolved)
		}
		return illegalBecause(NothingToResolve)
	case Duplicate:
		return illegalBecause(NothingToResolve)
	case Discovered, Packaged, Quarantined, Unclear:
		if e.NeedsReconcile {
			return illegalBecause(NeedsReconcile) // a decision needs the part of its life that the ledger lost
		}
		if e.State.IsOpen() && e.State != Unclear && !e.HasNothingAtService() {
			return illegalBecause(ContentPossible)
		}
		return nil
	}
	return illegalBecause(NotInThatState)
}

// Released is an operator's decision to register an entry in doubt again; it is
// flagged as a possible double. If the service archived it meanwhile, the entry
// is archived instead; where the service is working on it by its last answer,
// that is waited for. An entry whose folder is not here any more cannot be sent
// again.
type Released struct{ By Operator }

// JournalName implements Event.
func (Released) JournalName() string { return "released" }

func (ev Released) apply(e *Entry, at archive.Instant) error {
	if e.NeedsReconcile {
		return illegalBecause(NeedsReconcile)
	}
	e.closeTicket(at.Wall)
	// The answer of the service wins over the decision: what is archived must not be sent again.
	for i, r := range e.Registrations {
		if r.Fate == Succeeded {
			e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
			e.evidence().succeed(e, i, at)
			return nil
		}
	}
	// The service is working on a copy. Waiting for it costs nothing; a new registration would be a second copy.
	if i := slices.IndexFunc(e.Registrations, Registration.isUnderWay); i >= 0 {
		e.PossibleDouble = e.PossibleDouble || e.countHolders() > 1
		e.makeCurrent(i)
		e.enterUploaded(at)
		return nil
	}
	if e.Source != Claimed {
		return illegalBecause(SourceGone)
	}
	e.evidence().release(e)
	return nil
}

// releaseFlagged lets the document be sent again, flagged where it may be at
// the service already.
func (e *Entry) releaseFlagged() {
	// The flag is committed before anything is sent again: after a crash the audit still names the possible second copy.
	unknown := e.Cause.Code == CauseDeliveryUnknown // also where a ledger that was put back does not know of the upload
	e.PossibleDouble = e.PossibleDouble || e.countHolders() > 0 || unknown
	e.DuplicateConfirmed = e.PossibleDouble
	if e.Package.IsZero() {
		e.enterState(Discovered)
		return
	}
	e.enterState(Packaged)
	e.Failures = 0
}

// releaseToNetwork lets the document go under its number again: where the
// network has that, it refuses it, and no second document comes of it. If the
// number is known to be taken the next one is used, and the network may then
// have the document twice.
func (e *Entry) releaseToNetwork() {
	taken := e.Cause.Code == CauseNumberTaken && e.Generation < archive.MaxGeneration
	if e.Package.IsZero() {
		e.enterState(Discovered)
		return
	}
	e.enterState(Packaged)
	if taken {
		// The flag is committed before anything is sent again: after a crash the audit still names the possible second document.
		e.PossibleDouble, e.DuplicateConfirmed = true, true
		e.Generation++
		e.ID = e.FirstID.Generation(int(e.Generation))
		// Files belong to a number, too. No document will name these, so they count as ones of which nothing is known.
		e.LostFiles += uint32(len(e.StoredFiles))
		e.StoredFiles, e.Body = nil, archive.Digest{}
	}
}

// Superseded says that the folder of a rejection was dropped again, which resolves the rejection.
type Superseded struct{ By archive.Key }

// JournalName implements Event.
func (Superseded) JournalName() string { return "superseded" }

func (ev Superseded) apply(e *Entry, _ archive.Instant) error {
	e.Resolved = true
	return nil
}

// Retried says that an operator let vaultd take the returned folder of a rejection again, as a
// new entry, which resolves the rejection.
type Retried struct {
	By Operator
	As archive.Key // the new entry
}

// JournalName implements Event.
func (Retried) JournalName() string { return "retaken" }

func (ev Retried) apply(e *Entry, _ archive.Instant) error {
	switch {
	case e.Resolved && !(e.InDoubt && e.IsSentAgainInDoubt()): // a close in doubt may have been a mistake, and nothing else undoes it
		return illegalBecause(AlreadyResolved)
	case e.Source == Gone:
		return illegalBecause(SourceGone)
	case e.Source != Returned:
		return illegalBecause(SourceNotReturned)
	}
	// Committed with the new entry where nothing changed meanwhile. After a crash the rejection may be open still; the new
	// entry names it.
	e.Resolved = true
	return nil
}
