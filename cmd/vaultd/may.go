package main

import (
	"errors"
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// retryAct has no words of what is so now: "retry" tells them itself.
var retryAct = act{name: "retry", event: func(by ledger.Operator) ledger.Event { return ledger.Retried{By: by} }}

// may says why a person may not do one to e; nil: he may. It asks the ledger's own rule,
// and nothing else decides: neither what a command refuses nor what "why" offers.
func may(e ledger.Entry, one act) error {
	_, err := ledger.Transition(e, one.event(ledger.Operator{}), archive.Instant{})
	return err
}

// command is the command line that does one to e.
func (one act) command(e ledger.Entry) string {
	line := "vaultd " + one.name + " " + e.Key.String()
	if one.needsReason {
		line += ` --reason "…"`
	}
	return line
}

// refusal says why e is not in a state for one, and what can be done instead.
func refusal(e ledger.Entry, one act, err error) error {
	reason := ledger.NotInThatState
	if is, ok := errors.AsType[*ledger.IllegalError](err); ok {
		reason = is.Reason
	}
	text := reasonWords(e, reason)
	if one.name == retryAct.name && reason == ledger.NotInThatState && e.State.IsFinal() {
		text = "it has ended as " + e.State.String() + "; only a rejected folder can be taken again"
	}
	for _, instead := range insteadOf(one, e.State) {
		if may(e, instead.act) == nil {
			text += "; " + instead.what + ": " + instead.act.command(e)
			break
		}
	}
	return fail(exitFailed, fmt.Errorf("%s %q: %s", one.name, e.Folder, text), "see vaultd why "+e.Key.String())
}

// reasonWords says in words why an act is not allowed for e.
func reasonWords(e ledger.Entry, r ledger.IllegalReason) string {
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
		return "it is " + e.State.String() + ", and a part of its life is lost with the old ledger; the archive must be asked about it before anybody decides: vaultd reconcile"
	case ledger.SourceGone:
		return "its folder is not here any more, so nothing can be sent"
	case ledger.SourceNotReturned:
		return "its folder is on its way back to people; try again in a moment"
	case ledger.ContentPossible:
		return "it is on its way (" + e.State.String() + "), and the archive knows it already, or may"
	}
	if e.State.IsOpen() && e.State != ledger.Unclear {
		return "it is on its way (" + e.State.String() + ") and goes on by itself"
	}
	return "it is " + e.State.String()
}

// alternative is an act that may do what another one cannot.
type alternative struct {
	what string
	act  act
}

// insteadOf lists what may help a person who was refused one, the best first. Which of
// them is allowed, only [may] says.
func insteadOf(one act, s ledger.State) []alternative {
	var all []alternative
	switch one.name {
	case "close":
		if s.IsOpen() {
			all = append(all, alternative{"to stop it", holdAct()})
		}
	case "release":
		all = append(all, alternative{"to take the returned folder again", retryAct})
		if s == ledger.Quarantined || s == ledger.Unclear {
			all = append(all, alternative{"to give it up", closeAct()})
		}
	case "retry":
		all = append(all, alternative{"to send it again by decision", releaseAct()})
	}
	return all
}
