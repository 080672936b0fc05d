package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// placeStep moves the source of an ended entry: back to people, or to the kept ones.
func (c *Engine) placeStep() engine.Step[ledger.Entry, Target] {
	s := c.newStep(ledger.Place, 2)
	s.Terms = func(queue string) engine.Terms[Target] {
		return engine.Terms[Target]{Target: targetOf(queue), Batch: 1, Ahead: 64}
	}
	s.Admit = func(queue string, _ archive.Instant) (func(ledger.Entry) admission, error) {
		if c.isHeld() {
			return nil, nil
		}
		return func(ledger.Entry) admission { return admission{Target: targetOf(queue), Most: 1} }, nil
	}
	s.Start = func(t *task) func(context.Context) { return func(ctx context.Context) { c.place(ctx, t) } }
	return s
}

// place does what is due next with the source of an ended entry. A free place
// is found by looking at the disk, which may hang: that is work too, and its
// outcome is the intent. Only the next task moves anything.
func (c *Engine) place(ctx context.Context, t *task) {
	e := t.Jobs[0]
	if c.beginRisky(ctx, t, e) {
		c.finish(t, t.Jobs, c.placeSource(ctx, e))
	}
}

func (c *Engine) placeSource(ctx context.Context, e ledger.Entry) []ledger.Change {
	// A drop folder that is away or replaced is paused: its entries stay as they are.
	d, doc, err := c.dropAndDocument(e)
	if err != nil {
		c.endMountPauses(e)
		return c.dropFaultChanges(e, err)
	}
	if e.Source == ledger.Claimed {
		return c.leaveClaimed(ctx, d, e, doc)
	}
	// The folder is renamed to its destination, which PlaceIntended has committed. After a crash the next start finds it
	// there and does nothing twice.
	err = d.Mover.Place(ctx, e, doc)
	differs, changed := errors.AsType[*RefusedError](err)
	switch {
	case changed:
	case errors.Is(err, archive.ErrDestinationTaken):
		// Somebody put another folder there since the destination was committed: nothing was moved, and a free place is chosen anew.
		return c.chooseDestination(d, e)
	case err != nil && ctx.Err() != nil:
		return nil
	case err != nil:
		return c.sourceFaultChanges(e, err)
	}
	c.noteSourceMoved(e)
	// The package is unlinked after the move: a crash between the two places the folder again, which changes nothing, and
	// comes here.
	if err := d.Packer.RemovePackage(e); err != nil {
		return []ledger.Change{c.newChange(e, c.postpone(e, localFaultCause(err)))}
	}
	var disposeAt time.Time
	if e.Source == ledger.Keeping && d.Disposes {
		disposeAt = c.cfg.Now().Wall.Add(d.Grace)
	}
	if !changed {
		return []ledger.Change{c.newChange(e, ledger.Placed{DisposeAt: disposeAt})}
	}
	// Both in one commit: between them the folder would have a time to be disposed of.
	c.cfg.Log.Error("folder changed after it was packed; the archive has what was packed, and the folder stays", "key", e.Key, "drop", e.Drop, "err", differs.Cause.Text)
	return []ledger.Change{c.newChange(e, ledger.Placed{}, ledger.DisposalStopped{Cause: differs.Cause})}
}

// leaveClaimed does what must be done before the source leaves the claimed area:
// the archive gets its copy of what was sent, if it is to have one. The next task
// moves the source.
func (c *Engine) leaveClaimed(ctx context.Context, d Drop, e ledger.Entry, doc ledger.Document) []ledger.Change {
	if !c.isToBeCopied(e) {
		return c.chooseDestination(d, e)
	}
	if err := c.putCopy(ctx, d, e, doc); err != nil {
		return c.postponeCopy(ctx, e, err)
	}
	e.Attempt = 0 // as the event does: what follows begins its own tries
	return c.chooseDestination(d, e, ledger.CopyPut{})
}

// chooseDestination says where the source is to go; the next task takes it there. The events before are committed with that.
func (c *Engine) chooseDestination(d Drop, e ledger.Entry, before ...ledger.Event) []ledger.Change {
	dest, err := d.Mover.Destination(e, c.cfg.Now().Wall)
	if err != nil {
		changes := c.sourceFaultChanges(e, err)
		for i := range changes { // done again, it would be there once more
			changes[i].Events = slices.Concat(before, changes[i].Events)
		}
		return changes
	}
	// The destination is committed before the move: after a crash the next start knows where the folder may lie.
	return []ledger.Change{c.newChange(e, append(before, ledger.PlaceIntended{Dest: dest})...)}
}

func (c *Engine) dropAndDocument(e ledger.Entry) (Drop, ledger.Document, error) {
	d, err := c.availableDrop(e)
	if err != nil {
		return d, ledger.Document{}, err
	}
	doc, _, err := c.cfg.Ledger.Document(e.Key) // of a refused folder it has nothing that is needed here
	return d, doc, err
}
