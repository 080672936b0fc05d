package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// Attention is the class under which status and the status files tell people of an entry.
// Each entry counts once.
type Attention uint8

// The classes. Their numbers are stored and never change.
const (
	NoAttention           Attention = iota // at its end, and nobody needs to look at it
	Waiting                                // on its way; overdue when that takes too long
	AwaitingDecision                       // on hold until a person decides about its content
	RejectedUnresolved                     // rejected, and not corrected or closed since
	InQuarantine                           // quarantined
	ContradictedByService                  // the service contradicts its end
	WaitingForRights                       // on its way, and waits for rights on its files
	ArchivedTwice                          // the service archived it more than once
	SourceChanged                          // archived or delivered, and its kept folder is not what was archived, or is missing
	RepeatedNumber                         // archived with the invoice number of another one, and not reviewed
	StrangeDate                            // archived with a date that is hardly possible, and not reviewed
	RefusedByRecipient                     // delivered, and its recipient rejected it
	RecipientNotListed                     // on its way, and nothing is sent: the directory does not list its recipient
	CopyNotMade                            // sent, and the archive does not have its copy: it could not be made yet
	NotCompared                            // archived by the service's status alone, and not compared, see [Entry.NeedsComparison]
	AskedByService                         // sent, and a service that pays early asks for something, or has a credit note
	LooksCutOff                            // archived or delivered with a file that looks cut off, and not reviewed
	RejectedLate                           // delivered, and the network rejected it after that
	ContentDiffers                         // archived, and the last download that was compared differs from what was sent
	ByReceiptAlone                         // only an unsigned receipt calls it archived, see [Entry.RestsOnReceipt]

	EndOfAttention // behind the last class; not stored
)

// ReviewPeriod is how long after it was taken a document is told of that is
// RepeatedNumber, StrangeDate or LooksCutOff. After that only the audit names it,
// so that what is usual in a company does not cover what is not.
const ReviewPeriod = 30 * 24 * time.Hour

// CauseCannotBeRead is the code of the cause of an entry that waits for rights on its files.
const CauseCannotBeRead = "cannot-be-read"

// The codes of the causes of an archived or delivered entry whose kept folder is
// not what was archived, is not in its place any more, or is there again.
const (
	CauseSourceChanged  = "source-changed"
	CauseSourceMissing  = "source-missing"
	CauseSourceRestored = "source-restored"
)

// SourceDiffers reports whether the kept folder was found to be another one than
// what was archived, or missing; the cause says what was found. It stays true when
// a person has closed it, and when a later look found the folder whole again.
func (e Entry) SourceDiffers() bool {
	switch e.Cause.Code {
	case CauseSourceChanged, CauseSourceMissing, CauseSourceRestored:
		return (e.State == Archived || e.State == Delivered) && e.Source == Kept
	}
	return false
}

// IsSourceMissing reports whether the kept folder was not in its place when it was
// looked at last.
func (e Entry) IsSourceMissing() bool {
	return e.SourceDiffers() && e.Cause.Code == CauseSourceMissing
}

// Attention returns the entry's class.
func (e Entry) Attention() Attention {
	switch {
	case e.Contradicted && !e.Resolved:
		return e.evidence().contradicted(e.State)
	case e.ContentDiffers() && !e.Resolved:
		return ContentDiffers
	case e.IsArchivedTwice() && !e.Resolved:
		return ArchivedTwice
	case e.RestsOnReceipt():
		return ByReceiptAlone
	case e.State == Quarantined:
		return InQuarantine
	case e.State == Delivered && e.Recipient == RecipientRejected && !e.Resolved:
		return RefusedByRecipient
	case e.State == Rejected && !e.Resolved:
		return RejectedUnresolved
	case e.State == Delivered && e.Asks != "" && !e.Resolved:
		return AskedByService
	case e.Hold && (!e.SameContent.IsZero() || e.NeedsReview() || e.CutOff == CutOffFound) && e.State.IsOpen():
		return AwaitingDecision
	case e.State == Discovered && e.Cause.Code == CauseCannotBeRead:
		return WaitingForRights
	case e.State == Packaged && e.Cause.Code == CauseRecipientNotListed:
		return RecipientNotListed
	case e.State == Delivered && e.Source == Claimed && e.Cause.Code == CauseCopyWaits:
		return CopyNotMade
	case e.State.IsOpen():
		return Waiting
	case e.NeedsComparison() && !e.Resolved:
		return NotCompared
	case e.SourceDiffers() && !e.Resolved:
		return SourceChanged
	case (e.State == Archived || e.State == Delivered) && e.CutOff == CutOffFound:
		return LooksCutOff
	case e.State == Archived && !e.SameNumber.IsZero() && !e.Reviewed:
		return RepeatedNumber
	case e.State == Archived && e.StrangeDate && !e.Reviewed:
		return StrangeDate
	}
	return NoAttention
}

// AttentionCount counts the entries of one class that came from one drop folder
// and go one way to one vault.
type AttentionCount struct {
	Drop    string
	Route   Route
	Vault   archive.VaultID
	Entries int       // as many as were asked for
	Oldest  time.Time // when the first of them all was taken
}
