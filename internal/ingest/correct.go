package ingest

import (
	"errors"

	"vaultd/internal/ledger"
)

// correctOutcome returns the change to commit in the place of one that the ledger refused.
func (c *Engine) correctOutcome(es []ledger.Entry, res ledger.Result) (ledger.Change, bool) {
	if again, is := c.correctCollision(es, res); is {
		return again, true
	}
	return c.postponeIllegal(es, res)
}

// correctCollision answers an outcome that was not committed because an
// identity, a number or an upload address belongs elsewhere: the entry is
// examined again, or stopped.
func (c *Engine) correctCollision(es []ledger.Entry, res ledger.Result) (ledger.Change, bool) {
	taken, ok := errors.AsType[*ledger.TakenError](res.Err)
	if !ok {
		return ledger.Change{}, false
	}
	for _, e := range es {
		if e.Key != res.Key {
			continue
		}
		// The answer gave this document a number or an address that another one has: no byte may ever go there.
		if e.State == ledger.Registering && taken.What != ledger.TakenID {
			return c.newChange(e, c.mixedUpWith(e, taken)), true
		}
		// Another entry got the identity, the number or the files first. The step is due again, and decides by what is committed now.
		code := "identity-taken"
		if taken.What == ledger.TakenNumber || taken.What == ledger.TakenFiles {
			code = "another-sealed-meanwhile"
		}
		return c.newChange(e, ledger.Postponed{NotBefore: c.quickRetryAt(e), Cause: ledger.Cause{Code: code}}), true
	}
	return ledger.Change{}, false
}

// postponeIllegal puts off an entry whose outcome the ledger refused for a reason that
// should not exist: it must not be due again at once.
func (c *Engine) postponeIllegal(es []ledger.Entry, res ledger.Result) (ledger.Change, bool) {
	if res.Err == nil || !errors.Is(res.Err, ledger.ErrIllegal) {
		return ledger.Change{}, false
	}
	for _, e := range es {
		if e.Key == res.Key {
			return c.newChange(e, c.postpone(e, localFaultCause(res.Err))), true
		}
	}
	return ledger.Change{}, false
}
