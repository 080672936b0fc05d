package main

import "vaultd/internal/ledger"

// compareClock notes by how much this machine's clock was ahead of the service's at the current registration of e. The
// service's time has a resolution of a second.
func (t *entryCounts) compareClock(e ledger.Entry) {
	r := e.Current()
	if r == nil || r.Ticket.Date.IsZero() || !r.Ticket.Sent.Wall.After(t.clockComparedAt) {
		return
	}
	t.clockComparedAt, t.clockAhead = r.Ticket.Sent.Wall, r.Ticket.Sent.Wall.Sub(r.Ticket.Date)
}
