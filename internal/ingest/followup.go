package ingest

import (
	"context"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// uploadAtOnce adds to the tickets that an answer brought the intent to upload, for as many as there are free slots.
// Ticket and intent are one commit then: without that a document costs one commit more, which the rows flat-100k and
// whole-S of the bench measure. It returns the outcome to commit, and the upload tasks that it has taken.
func (c *Engine) uploadAtOnce(queue string, acts []ledger.Entry, outcome []ledger.Change) ([]ledger.Change, map[archive.Key]*task) {
	w, store, now := c.workerOf(ledger.Upload, queue), uploadTargetOf(queue), c.cfg.Now()
	if !c.breakers.isClosed(store) || c.isHeld() || c.isDraining(ledger.Upload, queue) {
		return outcome, nil
	}
	sizes := map[archive.Key]int64{}
	for _, e := range acts {
		sizes[e.Key] = e.Package.Size
	}
	with, tasks := slices.Clone(outcome), map[archive.Key]*task{}
	for i, change := range with {
		got, ok := change.Events[0].(ledger.TicketReceived)
		if !ok || w.pool.freeTasks(w) == 0 || !c.cfg.Planner.MayStart(got.Ticket, sizes[change.Key], nil, now) {
			continue
		}
		t := &task{handling: handling{target: store, most: 1}, entries: []ledger.Entry{{Key: change.Key}}, announced: true}
		// The upload counts as under way before its intent is committed: the upload worker must not take the entry as well.
		if !w.pool.bookEntries(w, t) {
			continue
		}
		// A crash after this commit finds "sending" although no byte was sent: the next start sends the same bytes to the same
		// address while it works, and asks for evidence when it does not.
		c.tasks.Add(1)
		tasks[change.Key] = t
		with[i].Events = []ledger.Event{got, uploadIntent(c.routeOfQueue(queue), got.Ticket)}
	}
	return with, tasks
}

// queueFollowUps lets the uploads wait for a slot whose intent was committed with their ticket. The
// others end: what was not committed is offered again as a ticket alone.
func (c *Engine) queueFollowUps(work context.Context, queue string, tasks map[archive.Key]*task, rs []ledger.Result) {
	for _, res := range rs {
		t := tasks[res.Key]
		if t == nil {
			continue
		}
		if res.Err == nil && res.Entry.State == ledger.Sending { // an entry that moved on has its ticket alone
			t.entries[0], t.acts = res.Entry, []ledger.Entry{res.Entry}
		}
		c.workerOf(ledger.Upload, queue).queueTask(work, t)
	}
}
