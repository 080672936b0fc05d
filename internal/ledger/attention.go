package ledger

import "time"

// Attention says what people are told of an entry when they ask how vaultd stands.
// Each entry counts once.
type Attention uint8

// The classes. Their numbers are stored and never change.
const (
	Unremarkable Attention = iota // at its end, and nobody needs to look at it
	Waiting                       // on its way; overdue when that takes too long
	Undecided                     // on hold until a person decides about its content
	Uncorrected                   // rejected, and not corrected or closed since
	Stuck                         // quarantined
	Disputed                      // the service contradicts its end
	Barred                        // on its way, and waits for rights on its files
	Doubled                       // the service archived it more than once
	Differing                     // archived, and its kept folder is not what was archived
	SameNumbered                  // archived with the invoice number of another one, and nobody has looked at it
	Misdated                      // archived with a date that it can hardly be of, and nobody has looked at it
)

// UnusualFor is how long after it was taken an archived document is told of that is SameNumbered or Misdated. After that
// only the audit names it, so that what is usual in a company does not cover what is not.
const UnusualFor = 30 * 24 * time.Hour

// CauseBarred is the code of the cause of an entry that waits for rights on its files.
const CauseBarred = "cannot-be-read"

// CauseDiffers is the code of the cause of an archived entry whose kept folder is not what was archived.
const CauseDiffers = "source-changed"

// Differs reports whether something in the kept folder is not what was archived; the cause says what. It stays true when a person has
// closed it.
func (e Entry) Differs() bool {
	return e.State == Archived && e.Source == Kept && e.Cause.Code == CauseDiffers
}

// Attention returns the entry's class.
func (e Entry) Attention() Attention {
	switch {
	case e.Contradicted && !e.Resolved:
		return Disputed
	case e.ArchivedTwice() && !e.Resolved:
		return Doubled
	case e.State == Quarantined:
		return Stuck
	case e.State == Rejected && !e.Resolved:
		return Uncorrected
	case e.Hold && (!e.SameContent.IsZero() || e.IsUnusual()) && e.State.Open():
		return Undecided
	case e.State == Discovered && e.Cause.Code == CauseBarred:
		return Barred
	case e.State.Open():
		return Waiting
	case e.Differs() && !e.Resolved:
		return Differing
	case e.State == Archived && !e.SameNumber.IsZero() && !e.Checked:
		return SameNumbered
	case e.State == Archived && e.StrangeDate && !e.Checked:
		return Misdated
	}
	return Unremarkable
}
