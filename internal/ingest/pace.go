package ingest

import (
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// paces hold how many calls may go at once over each route that was used. After a
// restart they are found anew.
type paces struct {
	mu sync.Mutex
	by map[string]*window.Pace // by route; guarded by mu
}

// of returns the pace of a route that takes most calls at once; the caller holds mu.
func (p *paces) of(route string, most int) *window.Pace {
	if p.by[route] == nil {
		p.by[route] = window.NewPace(most)
	}
	return p.by[route]
}

func (p *paces) limit(route string, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(route, most).Limit()
}

func (p *paces) began(route string, most int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(route, most).Began()
}

// went books a call that went well while that many were under way.
func (p *paces) went(route string, under int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pace := p.by[route]; pace != nil {
		pace.Went(under >= pace.Limit())
	}
}

// strained books that call n met 429, 503 or no answer in time, and reports whether the
// route must rest.
func (p *paces) strained(route string, n uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := p.by[route]
	return pace == nil || pace.Strained(n)
}

// strains reports whether a fault says that there is too much to do, and not that
// something is broken.
func strains(e *apicall.Error) bool {
	return e.Overloaded() || e.Outcome == apicall.OutcomeUnknown && e.Code == "timeout"
}

// strain slows a route down and pauses it where even one call at a time is too much, or
// where the other side said for how long it wants to be left alone.
func (c *Engine) strain(route string, call uint64, err *apicall.Error) {
	if c.paces.strained(route, call) || err.RetryAfter > 0 || c.routes.isPaused(route) {
		c.pause(route, causeOf(err), err.RetryAfter)
	}
}

// quickRetry is the first wait of a document whose route has only too much to do for a
// moment: how much goes over the route at once is slowed down, not the document.
const quickRetry = 200 * time.Millisecond

func (c *Engine) quickly(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(backoff(int(e.Attempt), quickRetry, maxRetry))
}

// vaultCalls is how many registrations of one vault may be under way at once.
const vaultCalls = 2
