package ingest

import (
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// booked knows the uploads whose turn has come. The planner hears of each before the next one
// is held against it: of several that begin at the same moment each would find the line free.
type booked struct {
	mu sync.Mutex
	by map[archive.Key]*window.Upload // guarded by mu
}

// turn books an upload whose turn has come.
func (c *Engine) turn(e ledger.Entry) {
	c.booked.mu.Lock()
	defer c.booked.mu.Unlock()
	c.booked.by[e.Key] = c.cfg.Planner.Began(e.Current().Ticket, e.Package.Size, c.cfg.Now())
}

// turnOf returns the booking of an entry; nil: it has none.
func (c *Engine) turnOf(k archive.Key) *window.Upload {
	c.booked.mu.Lock()
	defer c.booked.mu.Unlock()
	return c.booked.by[k]
}

// turnOver ends a booking. Only from an upload that went well something is learned; of what has
// ended already nothing is left to end.
func (c *Engine) turnOver(k archive.Key, well bool) {
	c.booked.mu.Lock()
	defer c.booked.mu.Unlock()
	if u := c.booked.by[k]; u != nil {
		delete(c.booked.by, k)
		c.cfg.Planner.Ended(u, c.cfg.Now(), well)
	}
}
