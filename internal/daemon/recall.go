package daemon

import (
	"context"
	"errors"
	"time"

	"vaultd/internal/ledger"
)

const (
	mostRecalled = 200_000 // entries that a start looks back at, for what happened today
)

// recall finds, beside the work, what people should know of before the start: what they
// may correct, for which the drop folders wait, and then what happened today.
func (d *Daemon) recall(ctx context.Context) {
	err := d.shared.Returned.Load(d.ledger)
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
	err := d.ledger.EntriesNewestFirst(func(e ledger.Entry) error {
		if seen++; seen > mostRecalled || e.Key.Time().Before(horizon) {
			return errEnough
		}
		if c := d.clerks[e.Drop]; c != nil {
			c.mu.Lock()
			c.day.recall(e, d.cfg.Now().Wall.In(d.location()))
			c.mu.Unlock()
		}
		return context.Cause(ctx)
	})
	for _, c := range d.clerks {
		c.mu.Lock()
		c.day.recalled()
		c.mu.Unlock()
		c.poke()
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// recalling reports whether it is not known yet what happened earlier today.
func (c *clerk) recalling() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.day.recalling
}
