package ingest

import (
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// limiterOf returns the target whose limiter counts the calls to a target: all drops of a service without vaults share one. gently: the
// service takes few calls when they begin (for PDFs TestReading_I21_PDFsBeginSlowly).
func limiterOf(t Target) (counted Target, gently bool) {
	row, is := dropServiceOfTarget(t)
	if is {
		t.Drop = ""
	}
	return t, row.startsGently
}

// callsAtOnce returns how many calls may go to a target now, at most most.
func (c *Engine) callsAtOnce(t Target, most int) int {
	counted, gently := limiterOf(t)
	return c.lanes.Limiters.Limit(counted, most, gently)
}

// beginCall counts a call to a target that takes most at once, and returns its number.
func (c *Engine) beginCall(t Target, most int) uint64 {
	counted, _ := limiterOf(t)
	return c.lanes.Limiters.Begin(counted, most)
}

// noteWentWell notes a call that went well while that many were under way.
func (c *Engine) noteWentWell(t Target, under int) {
	counted, _ := limiterOf(t)
	c.lanes.Limiters.Succeeded(counted, under)
}

// isTooMuch notes that a call met 429, 503 or no answer in time, and reports
// whether the breaker must open.
func (c *Engine) isTooMuch(t Target, call uint64) bool {
	counted, _ := limiterOf(t)
	return c.lanes.Limiters.Overloaded(counted, call)
}

// isOverload reports whether a fault says that there is too much to do, and not that
// something is broken.
func isOverload(e *apicall.Error) bool {
	return e.Overloaded() || e.Outcome == apicall.OutcomeUnknown && e.Code == "timeout"
}

// slowDown lets fewer calls go at once, and opens the breaker where even one call at a time is too much, or
// where the other side said for how long it wants to be left alone.
func (c *Engine) slowDown(t Target, call uint64, err *apicall.Error) {
	if c.isTooMuch(t, call) || err.RetryAfter > 0 || !c.breakers.IsClosed(t) {
		c.openBreaker(t, causeOf(err), err.RetryAfter)
	}
}

// quickRetry is the first wait of a document whose target has only too much to do for a
// moment: fewer calls go at once, and the document itself does not wait.
const quickRetry = 200 * time.Millisecond

func (c *Engine) quickRetryAt(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(engine.Backoff(int(e.Attempt), quickRetry, maxRetry))
}

// vaultCalls is how many registrations of one vault may be under way at once.
const vaultCalls = 2

// registrationsAtOnce returns how many registrations of a service queue may be
// under way at once. A document that is registered alone is uploaded by the
// worker's next slot, so there are as many as workers.
func (c *Engine) registrationsAtOnce(queue string) int {
	if _, is := dropServiceOfRoute(ledger.Route(queue)); is {
		return c.row(routeOfQueue(queue)).Workers
	}
	return vaultCalls
}
