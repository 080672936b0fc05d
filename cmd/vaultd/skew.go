package main

import (
	"time"

	"vaultd/internal/ledger"
)

// clockTolerance is how far a clock may be off before somebody should set it.
const clockTolerance = time.Minute

// compare notes how far this machine's clock is from the service's. An answer's Date has a
// resolution of a second, and comes after the moment it is compared with.
func (t *tally) compare(e ledger.Entry) {
	r := e.Current()
	if r == nil || r.Ticket.Date.IsZero() || !r.Ticket.Sent.Wall.After(t.told) {
		return
	}
	t.told, t.ahead = r.Ticket.Sent.Wall, r.Ticket.Sent.Wall.Sub(r.Ticket.Date)
}
