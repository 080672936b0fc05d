package daemon

import (
	"context"
	"errors"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

const (
	mostRecalled = 200_000 // entries that a start looks back at, for what happened today
	mostReturned = 20_000  // of a drop's unresolved rejections that are known by their names, the latest
)

// recall finds, beside the work, what people should know of before the start: what they
// may correct, for which the drop folders wait, and then what happened today.
func (d *Daemon) recall(ctx context.Context) {
	err := d.ledger.VisitAttention(ledger.RejectedUnresolved, time.Time{}, mostReturned, func(e ledger.Entry) {
		d.clerks(e.Drop, func(c *clerk) { c.note(e) })
	})
	close(d.recalled)
	err = errors.Join(err, d.recallToday(ctx))
	if err == nil || ctx.Err() != nil {
		return
	}
	d.cfg.Log.Error("_STATUS.txt does not tell of all that happened before the start", "err", err)
	if _, damaged := errors.AsType[*ledger.DamageError](err); damaged {
		d.CheckNow()
	}
}

// recallToday counts what happened on this calendar day. What is heard meanwhile counts once.
func (d *Daemon) recallToday(ctx context.Context) error {
	errEnough := errors.New("enough")
	y, m, day := d.cfg.Now().Wall.In(d.location()).Date()
	horizon, seen := time.Date(y, m, day-1, 0, 0, 0, 0, d.location()), 0
	err := d.ledger.Entries(archive.Key{}, true, func(e ledger.Entry) error {
		if seen++; seen > mostRecalled || e.Key.Time().Before(horizon) {
			return errEnough
		}
		d.clerks(e.Drop, func(c *clerk) { c.day.recall(e, d.cfg.Now().Wall.In(c.r.location())) })
		return context.Cause(ctx)
	})
	for _, r := range d.drops {
		r.clerk.mu.Lock()
		r.clerk.day.recalled()
		r.clerk.mu.Unlock()
		r.clerk.poke()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// clerks calls fn with the clerk of a drop, its lock held.
func (d *Daemon) clerks(drop string, fn func(*clerk)) {
	for _, r := range d.drops {
		if r.cfg.Name == drop {
			r.clerk.mu.Lock()
			fn(r.clerk)
			r.clerk.mu.Unlock()
		}
	}
}

// recalling reports whether it is not known yet what happened earlier today.
func (c *clerk) recalling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.day.recalling
}
