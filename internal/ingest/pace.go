package ingest

import (
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// paces hold how many calls may go at once over each target that was used. After a
// restart they are found anew.
type paces struct {
	mu sync.Mutex
	by map[Target]*window.Pace // guarded by mu
}

// of returns the pace of a target that takes most calls at once; the caller holds mu.
func (p *paces) of(t Target, most int) *window.Pace {
	if p.by[t] == nil {
		p.by[t] = window.NewPace(most)
	}
	return p.by[t]
}

func (p *paces) limit(t Target, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(t, most).Limit()
}

func (p *paces) began(t Target, most int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(t, most).Began()
}

// went books a call that went well while that many were under way.
func (p *paces) went(t Target, under int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pace := p.by[t]; pace != nil {
		pace.Went(under >= pace.Limit())
	}
}

// strained books that call n met 429, 503 or no answer in time, and reports whether the
// route must rest.
func (p *paces) strained(t Target, n uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := p.by[t]
	return pace == nil || pace.Strained(n)
}

// strains reports whether a fault says that there is too much to do, and not that
// something is broken.
func strains(e *apicall.Error) bool {
	return e.Overloaded() || e.Outcome == apicall.OutcomeUnknown && e.Code == "timeout"
}

// strain slows a route down and pauses it where even one call at a time is too much, or
// where the other side said for how long it wants to be left alone.
func (c *Engine) strain(t Target, call uint64, err *apicall.Error) {
	if c.paces.strained(t, call) || err.RetryAfter > 0 || !c.breakers.isClosed(t) {
		c.openBreaker(t, causeOf(err), err.RetryAfter)
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
