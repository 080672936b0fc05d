package ingest

import (
	"errors"
	"slices"

	"vaultd/internal/ledger"
)

// correctOutcome returns the changes to commit in the place of one that the
// ledger refused.
func (c *Engine) correctOutcome(es []ledger.Entry, res ledger.Result) []ledger.Change {
	i := slices.IndexFunc(es, func(e ledger.Entry) bool { return e.Key == res.Key })
	if i < 0 || res.Err == nil {
		return nil
	}
	if taken, ok := errors.AsType[*ledger.TakenError](res.Err); ok {
		return c.correctCollision(es[i], taken)
	}
	if errors.Is(res.Err, ledger.ErrIllegal) { // there should be no reason for it; the entry must not be due again at once
		return []ledger.Change{c.newChange(es[i], c.postpone(es[i], localFaultCause(res.Err)))}
	}
	return nil
}

// correctCollision answers an outcome that was not committed because an
// identity, a number or an upload address belongs elsewhere: the entry is
// examined again, or stopped.
func (c *Engine) correctCollision(e ledger.Entry, taken *ledger.TakenError) []ledger.Change {
	if e.State != ledger.Registering || taken.What == ledger.TakenID {
		// Another entry got the identity, the number or the files first. The step is due again, and decides by what is committed now.
		code := "identity-taken"
		if taken.What == ledger.TakenNumber || taken.What == ledger.TakenFiles {
			code = "another-sealed-meanwhile"
		}
		return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.quickRetryAt(e), Cause: ledger.Cause{Code: code}})}
	}
	// The answer gave this document a number or an address that another entry,
	// or another generation of it, has: no byte may ever go there.
	c.noteMixUp(e)
	cause := ledger.Cause{Code: "bumid-taken", Text: "the service gave this document a number that belongs to entry " + taken.By.String()}
	if taken.What == ledger.TakenObject {
		cause = ledger.Cause{Code: "address-taken", Text: "the service gave this document an upload address that belongs to entry " + taken.By.String() +
			"; nothing was uploaded to it. Ask the provider what it has under both"}
	}
	changes := []ledger.Change{c.newChange(e, ledger.AnswerMixedUp{Cause: cause})}
	// The first owner hears of it in the same commit: after a crash before it
	// the answer is lost for both of them.
	if taken.By != e.Key && taken.Remote != "" {
		changes = append(changes, ledger.Change{Key: taken.By, Fact: true, Events: []ledger.Event{ledger.TicketShared{Remote: taken.Remote}}, At: c.cfg.Now()})
	}
	return changes
}

// stopForSharedTicket is the end of an entry whose ticket was given to another document too.
func stopForSharedTicket() ledger.SentToQuarantine {
	return ledger.SentToQuarantine{Cause: ledger.Cause{Code: "ticket-shared",
		Text: "the service gave this document's number or upload address to another document too, before anything was uploaded; nothing is. Ask the provider which of them it belongs to"}}
}
