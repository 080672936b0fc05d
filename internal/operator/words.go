package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Network is what a person's word is said to. Its errors are *apicall.Error.
type Network interface {
	// PostNotification says something about a document, in one POST. It is not known whether the network takes two of them for one.
	PostNotification(ctx context.Context, n archive.Notification) error
}

// SpokenWord is what a person wants to say about a received document.
type SpokenWord struct {
	Word  arrival.Word
	Again bool // it may have been said before, and the person says it once more
	Tell  bool // its sender is told the reason as well; the network takes at most 4096 bytes of it
}

// ErrNothingSaid says that nothing may be said just now; its text goes on with why.
var ErrNothingSaid = errors.New("nothing is said now")

// longestSaying bounds one call.
const longestSaying = time.Minute

// SayWord says a person's word about a received document to the network, once. It commits the intent before, and what became of it after. It
// never repeats a call: after an unknown outcome only the person may.
//
// answer is how the call failed; nil: the network took the word. err is why nothing was said, or why the outcome could not be committed. It
// wraps [ErrNothingSaid] in safe mode and where another vaultd has taken over, and one of the errors of package arrival where the word is not
// possible now.
func (a *Actions) SayWord(ctx context.Context, x arrival.Arrival, p Person, w SpokenWord, to Network) (after arrival.Arrival, answer, err error) {
	if why := a.cfg.HeldReason(); why != "" {
		return x, nil, fmt.Errorf("%w: %s", ErrNothingSaid, why)
	}
	// The intent: a crash after it leaves a word of which nobody knows whether it was said. Nothing repeats it by itself.
	intended, err := a.ActOnArrival(ctx, x, p, func(by ledger.Operator) arrival.Event {
		return arrival.WordIntended{By: by, Word: w.Word, Again: w.Again, Tell: w.Tell}
	})
	if err != nil {
		return x, nil, err
	}
	ctx = context.WithoutCancel(ctx) // what is announced is said, and its outcome is committed, though the asker went away
	noting, request := apicall.NoteRequests(ctx)
	answer = a.postWord(noting, intended, w, p.Reason, to)
	said := arrival.WordAnswered{Intent: intended.Said[len(intended.Said)-1].Rev, Outcome: arrival.Taken, Request: request.Last()}
	if e := *apicall.AsError(answer); answer != nil {
		if w.Tell {
			e.Message = "" // it may repeat the reason, which must stay erasable here
		}
		said.Outcome, said.Cause = arrival.NotTaken, ledger.Cause{Code: e.Code, Text: e.Error()}
		if e.Outcome == apicall.OutcomeUnknown {
			said.Outcome = arrival.Unanswered
		}
	}
	// A crash before this commit leaves the word unanswered, as after a lost answer.
	after, err = a.applyToArrival(ctx, arrival.Change{Key: intended.Key, Rev: intended.Rev, Events: []arrival.Event{said}, At: a.cfg.Now()})
	if err != nil {
		return intended, answer, fmt.Errorf("the word was said, and what became of it could not be recorded: %w", err)
	}
	return after, answer, nil
}

// postWord says the word in one call.
func (a *Actions) postWord(ctx context.Context, x arrival.Arrival, w SpokenWord, reason string, to Network) error {
	ctx, cancel := context.WithTimeout(ctx, longestSaying)
	defer cancel()
	n := archive.Notification{Document: x.Document(), Kind: archive.NetworkKind(x.Type), Created: a.cfg.Now().Wall}
	n.Response, n.Action = w.Word.Codes()
	if w.Tell {
		n.Description = reason
	}
	return to.PostNotification(ctx, n)
}
