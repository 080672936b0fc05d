package ingest

import (
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// bookings knows the uploads that have a slot. The planner hears of each before the next one is compared with it: of
// several that begin at the same moment each would find the link free.
//
// Promise I6 needs it: without it two uploads begin on a slow line that only one can end in time (TestUpload_I6_OfSeveralAtOnceEachCounts).
type bookings struct {
	mu sync.Mutex
	by map[archive.Key]*window.Upload // guarded by mu
}

// beginUpload books an upload unless it would keep others from ending in time. One that is alone in its queue always
// begins.
func (c *Engine) beginUpload(e ledger.Entry, alone bool) bool {
	if e.Route.IsNotified() {
		return true // it has no window in which it must end
	}
	if !alone && !c.cfg.Planner.MayJoin(e.Package.Size, c.cfg.Now()) {
		return false
	}
	c.underWay.mu.Lock()
	defer c.underWay.mu.Unlock()
	c.underWay.by[e.Key] = c.cfg.Planner.BeginUpload(e.Current().Ticket, e.Package.Size, c.cfg.Now())
	return true
}

// bookingOf returns the booking of an entry; nil: it has none.
func (c *Engine) bookingOf(k archive.Key) *window.Upload {
	c.underWay.mu.Lock()
	defer c.underWay.mu.Unlock()
	return c.underWay.by[k]
}

// learnFromUpload ends the booking of an upload that went well: the planner learns its speed.
func (c *Engine) learnFromUpload(k archive.Key) { c.endBooking(k, true) }

// dropBooking ends a booking from which nothing is learned. One that has ended before is left alone.
func (c *Engine) dropBooking(k archive.Key) { c.endBooking(k, false) }

func (c *Engine) endBooking(k archive.Key, wentWell bool) {
	c.underWay.mu.Lock()
	defer c.underWay.mu.Unlock()
	if u := c.underWay.by[k]; u != nil {
		delete(c.underWay.by, k)
		c.cfg.Planner.EndUpload(u, c.cfg.Now(), wentWell)
	}
}
