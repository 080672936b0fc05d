package ledger

import "errors"

// ErrIllegal says that an event does not belong to the state an entry is in.
var ErrIllegal = errors.New("illegal transition")

// IllegalReason says why an event is not allowed for an entry. The set is closed. Code that
// talks to people has a text for each, and calls [Transition] instead of keeping rules of its own.
type IllegalReason uint8

// The reasons. They are never stored.
const (
	NotInThatState    IllegalReason = iota // the event has no meaning in the entry's state
	AlreadyHeld                            // it is on hold
	NotHeld                                // it is not on hold
	AlreadyResolved                        // nobody needs to look at it any more
	NothingToResolve                       // it has ended, and nothing came up against that
	ContentPossible                        // the service may have taken something of it
	NeedsReconcile                         // a part of its life is lost: the service must be asked before anybody decides
	SourceGone                             // its folder is not here any more
	SourceNotReturned                      // its folder was not given back, or not yet

	EndOfReasons // behind the last reason
)

var illegalWords = []string{
	"not in that state", "already on hold", "not on hold", "already resolved", "nothing to resolve",
	"content at the service is possible", "not reconciled", "its folder is gone", "its folder was not given back",
}

// String returns the reason in words for a log.
func (r IllegalReason) String() string { return wordOf(illegalWords, int(r)) }

// IllegalError is an [ErrIllegal] with its reason. Every event that a person causes is
// refused with one.
type IllegalError struct{ Reason IllegalReason }

func (e *IllegalError) Error() string { return ErrIllegal.Error() + ": " + e.Reason.String() }

// Unwrap gives ErrIllegal.
func (*IllegalError) Unwrap() error { return ErrIllegal }

// illegalBecause refuses an event for reason r.
func illegalBecause(r IllegalReason) error { return &IllegalError{r} }
