package ingest

import (
	"context"
	"errors"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// placeStep moves the source of an ended entry: back to people, or to the kept ones.
func (c *Conductor) placeStep() step {
	return step{
		name: ledger.Place, width: 2, batch: 1, lane: dropLane,
		// A free place is found by looking at the disk, which may hang: that is work too,
		// and its outcome is the intent. Only the next piece of work moves anything.
		intend: func(ledger.Entry, archive.Instant) ([]ledger.Event, bool, error) { return nil, true, nil },
		do:     func(ctx context.Context, es []ledger.Entry) []ledger.Change { return c.place(ctx, es[0]) },
	}
}

func (c *Conductor) place(ctx context.Context, e ledger.Entry) []ledger.Change {
	d, doc, err := c.dropAndDocument(e)
	if err != nil {
		return c.dropFault(e, err)
	}
	if e.Source == ledger.Claimed {
		return c.chooseDestination(d, e)
	}
	err = d.Mover.Place(ctx, e, doc)
	switch {
	case errors.Is(err, ErrTaken):
		return c.chooseDestination(d, e)
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return []ledger.Change{c.change(e, c.later(e, localFault(err)))}
	}
	if err := d.Packer.Drop(e); err != nil {
		return []ledger.Change{c.change(e, c.later(e, localFault(err)))}
	}
	var disposeAt time.Time
	if e.Source == ledger.Keeping && d.Disposes {
		disposeAt = c.cfg.Now().Wall.Add(d.Grace)
	}
	return []ledger.Change{c.change(e, ledger.Placed{DisposeAt: disposeAt})}
}

// chooseDestination says where the source is to go; the next piece of work takes it there.
func (c *Conductor) chooseDestination(d Drop, e ledger.Entry) []ledger.Change {
	dest, err := d.Mover.Destination(e, c.cfg.Now().Wall)
	if err != nil {
		return []ledger.Change{c.change(e, c.later(e, localFault(err)))}
	}
	return []ledger.Change{c.change(e, ledger.PlaceIntended{Dest: dest})}
}

// disposeStep moves or deletes a kept source after its grace.
func (c *Conductor) disposeStep() step {
	return step{
		name: ledger.Dispose, width: 1, batch: 1, lane: dropLane,
		intend: func(e ledger.Entry, _ archive.Instant) ([]ledger.Event, bool, error) {
			if e.Source == ledger.Disposing {
				return nil, true, nil
			}
			return []ledger.Event{ledger.DisposeIntended{}}, true, nil
		},
		do: func(ctx context.Context, es []ledger.Entry) []ledger.Change { return c.dispose(ctx, es[0]) },
	}
}

func (c *Conductor) dispose(ctx context.Context, e ledger.Entry) []ledger.Change {
	d, doc, err := c.dropAndDocument(e)
	if err != nil {
		return c.dropFault(e, err)
	}
	dest, err := d.Mover.Dispose(ctx, e, doc)
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		c.cfg.Log.Error("source is not what was archived; it stays", "key", e.Key, "cause", refused.Cause.Code)
		return []ledger.Change{c.change(e, ledger.SourceUntouchable{Cause: refused.Cause})}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return []ledger.Change{c.change(e, c.later(e, localFault(err)))}
	}
	return []ledger.Change{c.change(e, ledger.Disposed{Dest: dest})}
}

func (c *Conductor) dropAndDocument(e ledger.Entry) (Drop, ledger.Document, error) {
	d, err := c.drop(e)
	if err != nil {
		return d, ledger.Document{}, err
	}
	doc, _, err := c.cfg.Ledger.Document(e.Key) // a refused folder has none
	return d, doc, err
}
