package ingest

import (
	"context"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// task is some entries of a queue that are worked on together.
type task = engine.Task[ledger.Entry, Target]

// admission is how an entry may go now.
type admission = engine.Admission[Target]

// intents are those of a task, on their way to the ledger.
type intents struct {
	task      *task
	acts      []ledger.Entry       // of which nothing is to be committed first
	acting    []archive.Key        // of which something is done once their intents are committed
	committed chan []ledger.Result // nil: nothing is committed
}

// announce submits what is to be committed before anything is done for the
// entries of a task. intend returns the events of an entry, and whether
// anything is done then.
func (c *Engine) announce(t *task, intend func(ledger.Entry) (evs []ledger.Event, act bool, err error)) *intents {
	i := &intents{task: t}
	var changes []ledger.Change
	for _, e := range t.Jobs {
		evs, act, err := intend(e)
		if err != nil {
			evs, act = []ledger.Event{c.postpone(e, localFaultCause(err))}, false
		}
		if len(evs) > 0 {
			changes = append(changes, ledger.Change{Key: e.Key, Rev: e.Rev, Events: evs, At: t.Now})
		}
		switch {
		case act && len(evs) > 0:
			i.acting = append(i.acting, e.Key)
		case act:
			i.acts = append(i.acts, e)
		}
	}
	if len(changes) > 0 {
		i.committed = c.submit(changes)
	}
	return i
}

// wait waits until the intents are durable, and returns the entries that
// something is done for. A crash before that changes nothing. A crash after it
// finds the intents, and the next start goes on as if the work had begun.
func (i *intents) wait() (acts []ledger.Entry) {
	if i.committed == nil {
		return i.acts
	}
	for _, res := range <-i.committed {
		if res.Err == nil && slices.Contains(i.acting, res.Key) {
			i.acts = append(i.acts, res.Entry)
		}
	}
	return i.acts
}

// submit hands changes to the ledger. The results come when they are durable.
func (c *Engine) submit(cs []ledger.Change) chan []ledger.Result {
	answered := make(chan []ledger.Result, 1)
	c.cfg.Ledger.Submit(cs, func(rs []ledger.Result) {
		for _, res := range rs {
			c.noteResult(res)
		}
		answered <- rs
	})
	return answered
}

// begin waits for a slot, and reports whether anything may be done for the
// entry and what goes with it.
func (c *Engine) begin(ctx context.Context, t *task, e ledger.Entry) bool {
	return t.Begin(e) && ctx.Err() == nil
}

// beginRisky is begin for what sends, moves or removes something: it does nothing in safe mode.
func (c *Engine) beginRisky(ctx context.Context, t *task, e ledger.Entry) bool {
	return c.begin(ctx, t, e) && !c.isHeld()
}

// finish commits the outcome of a task.
func (c *Engine) finish(t *task, acts []ledger.Entry, outcome []ledger.Change) {
	t.Leave(true)
	c.commitOutcome(acts, outcome)
}

// takeBack commits that nobody acts upon the intents of a task.
func (c *Engine) takeBack(t *task, acts []ledger.Entry, ev func(ledger.Entry) ledger.Event) {
	t.Leave(false)
	c.commitOutcome(acts, c.changeEach(acts, ev))
}

// commitOutcome commits what became of the entries. A crash before it loses
// what the other side said: the intents stand, and the next start asks, or does
// it again where that is safe. What the ledger refuses is corrected and
// committed once more.
func (c *Engine) commitOutcome(acts []ledger.Entry, outcome []ledger.Change) {
	if len(outcome) == 0 {
		return // nothing was done; what is due is found again, now or by the next start
	}
	c.correct(acts, <-c.submit(outcome))
}

// correct commits once more what the ledger refused of an outcome.
func (c *Engine) correct(acts []ledger.Entry, rs []ledger.Result) {
	var more []ledger.Change
	for _, res := range rs {
		more = append(more, c.correctOutcome(acts, res)...)
	}
	if len(more) > 0 {
		<-c.submit(more)
	}
}

// changeEach returns one change for each entry.
func (c *Engine) changeEach(es []ledger.Entry, ev func(ledger.Entry) ledger.Event) []ledger.Change {
	var cs []ledger.Change
	for _, e := range es {
		cs = append(cs, c.newChange(e, ev(e)))
	}
	return cs
}
