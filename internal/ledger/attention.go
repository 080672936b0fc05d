package ledger

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
)

// CauseBarred is the code of the cause of an entry that waits for rights on its files.
const CauseBarred = "cannot-be-read"

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
	case e.Hold && !e.SameContent.IsZero() && e.State.Open():
		return Undecided
	case e.State == Discovered && e.Cause.Code == CauseBarred:
		return Barred
	case e.State.Open():
		return Waiting
	}
	return Unremarkable
}
