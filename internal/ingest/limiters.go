package ingest

import (
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// limiters hold how many calls may go at once over each target that was used. After a
// restart they are found anew.
type limiters struct {
	mu sync.Mutex
	by map[Target]*window.Limiter // guarded by mu
}

// get returns the limiter of a target that takes most calls at once. The caller holds mu.
func (p *limiters) get(t Target, most int) *window.Limiter {
	if p.by[t] == nil {
		p.by[t] = window.NewLimiter(most)
	}
	return p.by[t]
}

func (p *limiters) limit(t Target, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(t, most).Limit()
}

func (p *limiters) begin(t Target, most int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(t, most).Begin()
}

// succeeded notes a call that went well while that many were under way.
func (p *limiters) succeeded(t Target, under int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pace := p.by[t]; pace != nil {
		pace.Succeeded(under >= pace.Limit())
	}
}

// overloaded notes that call n met 429, 503 or no answer in time, and reports whether the breaker must open.
func (p *limiters) overloaded(t Target, n uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := p.by[t]
	return pace == nil || pace.Overloaded(n)
}

// isOverload reports whether a fault says that there is too much to do, and not that
// something is broken.
func isOverload(e *apicall.Error) bool {
	return e.Overloaded() || e.Outcome == apicall.OutcomeUnknown && e.Code == "timeout"
}

// slowDown lets fewer calls go at once, and opens the breaker where even one call at a time is too much, or
// where the other side said for how long it wants to be left alone.
func (c *Engine) slowDown(t Target, call uint64, err *apicall.Error) {
	if c.limiters.overloaded(t, call) || err.RetryAfter > 0 || !c.breakers.isClosed(t) {
		c.openBreaker(t, causeOf(err), err.RetryAfter)
	}
}

// quickRetry is the first wait of a document whose target has only too much to do for a
// moment: fewer calls go at once, and the document itself does not wait.
const quickRetry = 200 * time.Millisecond

func (c *Engine) quickRetryAt(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(backoff(int(e.Attempt), quickRetry, maxRetry))
}

// vaultCalls is how many registrations of one vault may be under way at once.
const vaultCalls = 2
