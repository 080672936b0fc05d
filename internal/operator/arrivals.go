package operator

import (
	"context"
	"errors"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// ActOnArrival commits what a person decided about what came in. event makes the event of who acts and the digest of his reason. The error
// wraps [ledger.ErrIllegal] where x is not in a state for it.
func (a *Actions) ActOnArrival(ctx context.Context, x arrival.Arrival, p Person, event func(ledger.Operator) arrival.Event) (arrival.Arrival, error) {
	if err := ctx.Err(); err != nil {
		return x, err
	}
	ctx = context.WithoutCancel(ctx) // what is begun is committed, and its asker is told so
	by, note := p.Sign()
	after, err := a.applyToArrival(ctx, arrival.Change{Key: x.Key, Rev: x.Rev, Events: []arrival.Event{event(by)}, Note: note, At: a.cfg.Now()})
	if err != nil {
		return after, err
	}
	a.cfg.Log.Info("a person acted", "act", event(by).JournalName(), "uid", by.UID, "key", after.Key, "state", after.State)
	switch event(by).(type) {
	case arrival.RetryAsked, arrival.DoubtOverruled:
		a.cfg.AfterRetry()
	}
	return after, nil
}

// maxStaleTries bounds how often an act is decided anew because the arrival moved on meanwhile.
const maxStaleTries = 5

// applyToArrival commits a change of an arrival. If vaultd itself moved it on
// meanwhile, the change is offered again: whether it is still allowed, the
// transition decides.
func (a *Actions) applyToArrival(ctx context.Context, c arrival.Change) (arrival.Arrival, error) {
	for try := 0; ; try++ {
		// After a crash before this commit the person's act was not given, and is given again.
		after, err := a.cfg.Ledger.ApplyArrival(ctx, c)
		stale, moved := errors.AsType[*ledger.StaleError](err)
		if !moved || try == maxStaleTries {
			return after, err
		}
		c.Rev = stale.Have
	}
}
