package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/recovery"
)

// ErrNotAsked says that nothing was released: the archive did not tell about every registration.
var ErrNotAsked = errors.New("nothing was changed, for the archive must be asked first")

// Release lets an entry in doubt be registered and sent again, by a person's decision. First the archive is asked
// about every registration that the entry lists. What it says is committed before the decision, and may make that
// needless: then the entry is returned as it stands, archived or on its way by itself, and nothing was decided.
//
// The error wraps [ErrNotAsked], and what kept an answer away (see [apicall.Error]), where not all were answered; it wraps
// [ledger.ErrIllegal] where e cannot be released. Then nothing has changed.
func (a *Actions) Release(ctx context.Context, e ledger.Entry, p Person) (ledger.Entry, error) {
	by, _ := p.Sign()
	if _, err := ledger.Transition(e, ledger.Released{By: by}, a.cfg.Now()); err != nil {
		return ledger.Entry{}, err
	}
	evs, err := a.askAboutAll(ctx, e)
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	if len(evs) > 0 {
		// A crash after this commit leaves an entry that knows more and was not released: the command is given again.
		heard, err := a.applyChange(context.WithoutCancel(ctx), ledger.Change{Key: e.Key, Fact: true, Events: evs, At: a.cfg.Now()})
		if err != nil {
			return heard, err
		}
		a.cfg.AfterCommit()
		if e = heard; e.State != ledger.Unclear && e.State != ledger.Quarantined {
			return e, nil
		}
	}
	return a.Act(ctx, e, p, func(by ledger.Operator) ledger.Event { return ledger.Released{By: by} })
}

// askAboutAll asks about each registration of e, and returns what the archive says of them all.
func (a *Actions) askAboutAll(ctx context.Context, e ledger.Entry) (evs []ledger.Event, err error) {
	var numbers []archive.RemoteID
	for _, r := range e.Listed() { // where nobody can be asked, the person alone decides
		if !slices.Contains(numbers, r.Ticket.Remote) {
			numbers = append(numbers, r.Ticket.Remote)
		}
	}
	if len(numbers) > 0 && a.cfg.Service == nil {
		return nil, errors.New("no archive is configured")
	}
	// These calls only read. After a crash here nothing has changed, and the person gives the command again.
	told, err := recovery.AskEach(ctx, a.cfg.Service, e.Vault, numbers)
	if err != nil {
		return nil, err
	}
	for i, number := range numbers {
		rc := told[i]
		if _, ours := e.GenerationOf(rc.ID); rc.Remote != number || !rc.ID.IsZero() && !ours {
			return nil, fmt.Errorf("ask about bumId %s: the archive answers about another document; ask its provider", number)
		}
		evs = append(evs, ledger.StatusSeen{Receipt: rc, Grace: a.cfg.Grace, NotBefore: a.cfg.Now().Wall})
	}
	return evs, nil
}
