package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

const (
	askBatch   = 500 // entries in one round of questions
	askSingles = 4   // single questions at once
	listWorth  = 3   // due entries for which the list is asked first
)

// askStep asks the service what became of documents: the list of the last 500 first,
// then one by one what the list does not hold.
func (c *Conductor) askStep() step {
	return step{
		name: ledger.Ask, width: 2, batch: askBatch,
		lane:   func(e ledger.Entry) lane { return lane{route: vaultRoute(e.Vault), group: string(e.Vault)} },
		intend: func(ledger.Entry, archive.Instant) ([]ledger.Event, bool, error) { return nil, true, nil },
		do:     c.ask,
	}
}

// lists remembers when each vault's list was asked for last.
type lists struct {
	mu   sync.Mutex
	last map[archive.VaultID]time.Time // guarded by mu
}

func (l *lists) due(v archive.VaultID, now time.Time, every time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.last[v]) < every/2 && !l.last[v].IsZero() {
		return false
	}
	l.last[v] = now
	return true
}

func (c *Conductor) ask(ctx context.Context, es []ledger.Entry) []ledger.Change {
	vault := es[0].Vault
	heard := map[archive.RemoteID]archive.Receipt{}
	if len(es) >= listWorth && c.lists.due(vault, c.cfg.Now().Wall, c.cfg.PollMin) {
		list, err := c.cfg.Vault.StatusList(ctx, vault)
		if err != nil {
			return c.askFault(ctx, vault, es, asRemote(err))
		}
		for _, r := range list {
			heard[r.Remote] = r
		}
	}
	if err := c.askSingly(ctx, vault, es, heard); err != nil {
		return c.askFault(ctx, vault, es, asRemote(err))
	}
	if c.routes.opens(vaultRoute(vault)) {
		c.cfg.Log.Info("route open again", "vault", vault)
	}
	var cs []ledger.Change
	for _, e := range es {
		if evs := c.answers(e, heard); len(evs) > 0 {
			cs = append(cs, c.change(e, evs...))
		} else {
			cs = append(cs, c.change(e, ledger.Postponed{NotBefore: c.pollAt(e), Cause: ledger.Cause{Code: "no-answer"}}))
		}
	}
	return cs
}

// askSingly asks about every registration that heard does not hold.
func (c *Conductor) askSingly(ctx context.Context, vault archive.VaultID, es []ledger.Entry, heard map[archive.RemoteID]archive.Receipt) error {
	var mu sync.Mutex // guards heard
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askSingles)
	for _, e := range es {
		for _, r := range e.Questions() {
			mu.Lock()
			_, known := heard[r]
			mu.Unlock()
			if known {
				continue
			}
			g.Go(func() error {
				rc, err := c.cfg.Vault.Status(ctx, vault, r)
				if err != nil && asRemote(err).Missing {
					rc, err = archive.Receipt{Remote: r, Word: archive.Absent}, nil
				}
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				heard[r] = rc
				return nil
			})
		}
	}
	return g.Wait()
}

// answers returns what was heard about an entry's registrations.
func (c *Conductor) answers(e ledger.Entry, heard map[archive.RemoteID]archive.Receipt) []ledger.Event {
	var evs []ledger.Event
	for _, r := range e.Questions() {
		rc, ok := heard[r]
		if !ok || rc.Remote != r {
			continue
		}
		if !rc.ID.IsZero() && !ours(e, rc.ID) {
			c.cfg.Log.Error("status answer names another document; it is not believed", "key", e.Key, "bumId", r)
			continue
		}
		if rc.Word == archive.Unfamiliar {
			if _, known := c.words.LoadOrStore(rc.Raw, true); !known {
				c.cfg.Log.Error("the service said a status word that vaultd does not know; it counts as still in progress", "word", fmt.Sprintf("%.60q", rc.Raw))
			}
		}
		evs = append(evs, ledger.StatusSeen{Receipt: rc, Grace: c.cfg.Grace, NotBefore: c.pollAt(e)})
	}
	return evs
}

// ours reports whether an identity in an answer is one the entry ever had.
func ours(e ledger.Entry, id archive.ID) bool {
	if id == e.ID || id == e.Base {
		return true
	}
	for n := 1; n < int(e.Generation); n++ {
		if id == e.Base.Generation(n) {
			return true
		}
	}
	return false
}

func (c *Conductor) askFault(ctx context.Context, vault archive.VaultID, es []ledger.Entry, err *RemoteError) []ledger.Change {
	if ctx.Err() != nil {
		return nil
	}
	if err.Outcome != Unanswered || err.Overload || c.routes.doubt(vaultRoute(vault)) {
		c.pause(vaultRoute(vault), err.cause(), err.RetryAfter)
	}
	return c.each(es, func(e ledger.Entry) ledger.Event {
		return ledger.Postponed{NotBefore: c.retryAt(e, err.RetryAfter), Cause: err.cause()}
	})
}

// pollAt returns when to ask about e next: seldom and more seldom, and in doubt
// never so often that two answers could not count as two.
func (c *Conductor) pollAt(e ledger.Entry) time.Time {
	n := min(int(e.Attempt), 20)
	wait := min(c.cfg.PollMax, c.cfg.PollMin<<n)
	if wait <= 0 {
		wait = c.cfg.PollMax
	}
	if e.State != ledger.Uploaded && e.State != ledger.Sending {
		wait = max(wait, c.cfg.Grace/24)
	}
	return c.cfg.Now().Wall.Add(wait)
}
