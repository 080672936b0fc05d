package main

import "vaultd/internal/ledger"

// compareClock notes how far this machine's clock is from the service's. An answer's Date has a
// resolution of a second, and comes after the moment it is compared with.
func (t *entryCounts) compareClock(e ledger.Entry) {
	r := e.Current()
	if r == nil || r.Ticket.Date.IsZero() || !r.Ticket.Sent.Wall.After(t.clockComparedAt) {
		return
	}
	t.clockComparedAt, t.clockAhead = r.Ticket.Sent.Wall, r.Ticket.Sent.Wall.Sub(r.Ticket.Date)
}
