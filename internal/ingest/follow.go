package ingest

import (
	"context"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// sendAtOnce adds to the tickets that an answer brought the intent to upload, for as many
// as there are places: ticket and intent are one commit then. It returns the outcome to
// commit, and the places that it has taken.
func (c *Engine) sendAtOnce(acts []ledger.Entry, outcome []ledger.Change) ([]ledger.Change, map[archive.Key]*piece) {
	up := c.runners[ledger.Upload]
	lane := ledger.QueueOf(acts[0])
	now := c.cfg.Now()
	if _, rests := c.breakers.isOpen(UploadTarget(vaultOf(lane)), now.Wall); rests || !c.breakers.isClosed(UploadTarget(vaultOf(lane))) || c.safe() {
		return outcome, nil
	}
	sizes := map[archive.Key]int64{}
	for _, e := range acts {
		sizes[e.Key] = e.Package.Size
	}
	with, places := slices.Clone(outcome), map[archive.Key]*piece{}
	for i, change := range with {
		got, ok := change.Events[0].(ledger.TicketReceived)
		if !ok || up.room(lane) == 0 || !c.cfg.Planner.MayStart(got.Ticket, sizes[change.Key], nil, now) {
			continue
		}
		p := &piece{lane: lane, target: UploadTarget(vaultOf(lane)), es: []ledger.Entry{{Key: change.Key}}}
		if !up.gate.take(p) {
			continue
		}
		c.wg.Add(1)
		places[change.Key] = p
		with[i].Events = []ledger.Event{got, ledger.UploadIntended{}}
	}
	return with, places
}

// enterFollowed lets the uploads begin whose intent was committed with their ticket. The
// others give their places back: what was not committed is offered again as a ticket alone.
func (c *Engine) enterFollowed(work context.Context, places map[archive.Key]*piece, rs []ledger.Result) {
	for _, res := range rs {
		p := places[res.Key]
		if p == nil {
			continue
		}
		if res.Err == nil {
			p.es[0], p.acts = res.Entry, []ledger.Entry{res.Entry}
		}
		c.runners[ledger.Upload].enter(work, p)
	}
}
