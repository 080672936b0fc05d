package ingest

import (
	"context"
	"errors"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// disposeStep moves or deletes a kept source after its grace.
func (c *Engine) disposeStep() engine.Step[ledger.Entry, Target] {
	s := c.newStep(ledger.Dispose, 1)
	s.Terms = func(queue string) engine.Terms[Target] {
		return engine.Terms[Target]{Target: targetOf(queue), Batch: 1}
	}
	s.Admit = c.admitToDispose
	s.Start = func(t *task) func(context.Context) {
		intent := c.announce(t, func(e ledger.Entry) ([]ledger.Event, bool, error) { return c.intendToDispose(e, t.Now) })
		return func(ctx context.Context) { c.dispose(ctx, t, intent.wait()) }
	}
	return s
}

// dispose removes a kept source whose intent is committed. A crash from there
// on finds the intent, and the next start goes on.
func (c *Engine) dispose(ctx context.Context, t *task, acts []ledger.Entry) {
	if len(acts) > 0 && c.beginRisky(ctx, t, acts[0]) {
		c.finish(t, acts, c.disposeSource(ctx, acts[0]))
	}
}

// admitToDispose asks the disposal limit before a drop's first source goes: a clock that was set
// years ahead, or a changed configuration, makes all of them due at once. What the limit
// allowed is disposed of before it is asked again.
func (c *Engine) admitToDispose(queue string, now archive.Instant) (func(ledger.Entry) admission, error) {
	if c.isHeld() {
		return nil, nil
	}
	all := func(ledger.Entry) admission { return admission{Target: targetOf(queue), Most: 1} }
	name := dropOf(queue)
	target := DisposalTarget(name)
	if _, open := c.breakers.IsOpen(target, now.Wall); open {
		return nil, nil
	}
	if d, known := c.drops[name]; c.cfg.DisposalLimit == nil || !known || !d.Disposes {
		return all, nil
	}
	if left, err := c.isStillAllowed(name, queue, now); left || err != nil {
		if err != nil {
			return nil, nil // the next look counts again
		}
		return all, nil
	}
	// Counted before the first source goes. What was allowed is in memory alone: after a crash the limit is asked about what is left.
	due, err := c.countDueForDisposal(queue, now)
	if err == nil && due > 0 {
		err = c.cfg.DisposalLimit(name, due)
	}
	if stopped, ok := errors.AsType[*DisposalLimitError](err); ok {
		if c.breakers.LockOpen(target, ledger.Cause{Code: "unusually-many", Text: stopped.Error()}, now.Wall) {
			c.cfg.Log.Error("disposal stopped", "drop", name, "due", due, "err", err)
		}
		return nil, nil
	}
	if err != nil {
		c.openBreaker(target, localFaultCause(err), 0)
		return nil, nil
	}
	c.closeBreaker(target)
	c.disposable.set(name, due)
	return all, nil
}

// isStillAllowed reports whether the limit allowed more than went since. It allowed what was due then: once nothing is
// due, nothing is allowed any more.
func (c *Engine) isStillAllowed(name, queue string, now archive.Instant) (bool, error) {
	if c.disposable.count(name) == 0 {
		return false, nil
	}
	due, _, err := c.cfg.Index.DueInQueue(ledger.Dispose, queue, now.Wall, 1, nil, func(e ledger.Entry) bool { return e.Source != ledger.Kept })
	if err == nil && len(due) == 0 {
		c.disposable.set(name, 0)
	}
	return c.disposable.count(name) > 0, err
}

// countDueForDisposal counts the kept sources of a drop whose time is over.
func (c *Engine) countDueForDisposal(queue string, now archive.Instant) (n int, err error) {
	_, _, err = c.cfg.Index.DueInQueue(ledger.Dispose, queue, now.Wall, 1, nil, func(e ledger.Entry) bool {
		if e.Source == ledger.Kept {
			n++
		}
		return true
	})
	return n, err
}

// ResumeDisposals lets the disposals of a drop go on that the limit has stopped. The limit must have been told before.
func (c *Engine) ResumeDisposals(drop string) {
	c.breakers.Unlock(DisposalTarget(drop))
	c.lanes.Wake(ledger.Dispose.String(), DisposalTarget(drop).Queue())
}

const keptCheckInterval = 24 * time.Hour // between two checks of a source that the configuration now keeps

// intendToDispose holds the time of an entry against what is configured now: a source
// stays where people chose to keep them, or to keep them longer, since it was put there.
func (c *Engine) intendToDispose(e ledger.Entry, now archive.Instant) ([]ledger.Event, bool, error) {
	if e.Source == ledger.Disposing {
		return nil, true, nil // parts of it may be gone
	}
	d, err := c.configuredDrop(e)
	if err != nil {
		return nil, false, err
	}
	c.disposable.set(e.Drop, max(c.disposable.count(e.Drop)-1, 0)) // the limit counted it, whatever becomes of it
	if !d.Disposes {
		return []ledger.Event{ledger.Postponed{NotBefore: now.Wall.Add(keptCheckInterval), Cause: ledger.Cause{Code: "kept-by-configuration"}}}, false, nil
	}
	if until := e.CompletedAt().Add(d.Grace); now.Wall.Before(until) {
		return []ledger.Event{ledger.Postponed{NotBefore: until, Cause: ledger.Cause{Code: "grace-is-longer"}}}, false, nil
	}
	// Committed before the first file goes: a folder of which a part is missing is not mistaken for one that people changed.
	return []ledger.Event{ledger.DisposeIntended{}}, true, nil
}

func (c *Engine) disposeSource(ctx context.Context, e ledger.Entry) []ledger.Change {
	d, doc, err := c.dropAndDocument(e)
	if err != nil {
		c.endMountPauses(e)
		return c.dropFaultChanges(e, err)
	}
	// Files are unlinked, or moved, one by one: DisposeIntended is committed. After a crash the next start goes on with the
	// files that are left.
	dest, err := d.Mover.Dispose(ctx, e, doc)
	// A file that is not what was archived is not ours to remove.
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		c.noteSourceMoved(e) // nothing is mounted in it, and it stays for another reason
		c.cfg.Log.Error("source is not what was archived; it stays", "key", e.Key, "cause", refused.Cause.Code)
		return []ledger.Change{c.newChange(e, ledger.DisposalStopped{Cause: refused.Cause})}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return c.sourceFaultChanges(e, err)
	}
	c.noteSourceMoved(e)
	// After a crash before this commit the next start finds no file left, and commits it then.
	return []ledger.Change{c.newChange(e, ledger.Disposed{Dest: dest})}
}

// disposable counts the sources of each drop that the disposal limit allowed and that are not disposed of yet. Only the
// dispatcher changes the count.
type disposable struct {
	mu   sync.Mutex
	left map[string]int // by drop; guarded by mu
}

func (d *disposable) set(drop string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left[drop] = n
}

func (d *disposable) count(drop string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.left[drop]
}
