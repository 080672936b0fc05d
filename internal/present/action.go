package present

import (
	"errors"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Action is an act of a person on one entry.
type Action struct {
	Name        string // of the command
	NeedsReason bool
	Event       func(ledger.Operator) ledger.Event
}

// The actions. What retry does beside its event, the command knows.
var (
	Close   = Action{"close", true, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} }}
	Release = Action{"release", true, func(by ledger.Operator) ledger.Event { return ledger.Released{By: by} }}
	Hold    = Action{"hold", false, func(by ledger.Operator) ledger.Event { return ledger.Held{By: by} }}
	Unhold  = Action{"unhold", true, func(by ledger.Operator) ledger.Event { return ledger.Unheld{By: by} }}
	Retry   = Action{"retry", false, func(by ledger.Operator) ledger.Event { return ledger.Retried{By: by} }}
)

// Check says why the action is not allowed on e; nil: it is. It asks the ledger's own rule, and nothing else decides:
// neither what a command refuses nor what an explanation offers.
func (one Action) Check(e ledger.Entry) error {
	_, err := ledger.Transition(e, one.Event(ledger.Operator{}), archive.Instant{})
	return err
}

// Command is the command line of the action on e.
func (one Action) Command(e ledger.Entry) string {
	line := "vaultd " + one.Name + " " + e.Key.String()
	if one.NeedsReason {
		line += ` --reason "…"`
	}
	return line
}

// ExplainRefusal says why the action is not allowed on e, and what can be done instead. err is what Check returned.
func (one Action) ExplainRefusal(e ledger.Entry, err error) string {
	reason := ledger.NotInThatState
	if is, ok := errors.AsType[*ledger.IllegalError](err); ok {
		reason = is.Reason
	}
	text := explainIllegal(e, reason)
	if one.Name == Retry.Name && reason == ledger.NotInThatState && e.State.IsFinal() {
		text = "it has ended as " + e.State.String() + "; only a rejected folder can be taken again"
	}
	for _, instead := range insteadOf(one, e.State) {
		if instead.action.Check(e) == nil {
			return text + "; " + instead.what + ": " + instead.action.Command(e)
		}
	}
	return text
}

// alternative is an action that may do what another one cannot.
type alternative struct {
	what   string
	action Action
}

// explainIllegal says in words why an act is not allowed for e.
func explainIllegal(e ledger.Entry, r ledger.IllegalReason) string {
	switch r {
	case ledger.AlreadyHeld:
		return "it is on hold already; nothing was changed"
	case ledger.NotHeld:
		return "it is not on hold; nothing was changed"
	case ledger.AlreadyResolved:
		return "it is resolved already: it was closed, or taken again as another entry; nothing was changed"
	case ledger.NothingToResolve:
		return "it has ended as " + e.State.String() + "; there is nothing to close"
	case ledger.NeedsReconcile:
		return "it is " + e.State.String() + ", and a part of its life is lost with the old ledger; " + WordsOf(e.Route).refusals.reconcile + ": vaultd reconcile"
	case ledger.SourceGone:
		return "its folder is not here any more, so nothing can be sent"
	case ledger.SourceNotReturned:
		return "its folder is on its way back to people; try again in a moment"
	case ledger.ContentPossible:
		return "it is on its way (" + e.State.String() + "), and " + WordsOf(e.Route).refusals.knownAlready
	}
	if e.State.IsOpen() && e.State != ledger.Unclear {
		return "it is on its way (" + e.State.String() + ") and goes on by itself"
	}
	return "it is " + e.State.String()
}

// insteadOf lists what may help a person who was refused one, the best first. Which of
// them is allowed, only [Action.Check] says.
func insteadOf(one Action, s ledger.State) []alternative {
	var all []alternative
	switch one.Name {
	case "close":
		if s.IsOpen() {
			all = append(all, alternative{"to stop it", Hold})
		}
	case "release":
		all = append(all, alternative{"to take the returned folder again", Retry})
		if s == ledger.Quarantined || s == ledger.Unclear {
			all = append(all, alternative{"to give it up", Close})
		}
	case "retry":
		all = append(all, alternative{"to send it again by decision", Release})
	}
	return all
}
