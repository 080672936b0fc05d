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
//
// The service asks for it: it names no number, and wants few calls at the start and fewer when it says 429 or 503
// (TestUpload_I6_OfSeveralAtOnceEachCounts; for PDFs TestReading_I21_PDFsBeginSlowly). That a few faults cost little speed is
// goal G13: TestPace_G13_FewFaultsCostLittle in internal/window, the rows fault-… of the bench.
type limiters struct {
	mu sync.Mutex
	by map[Target]*limiter // guarded by mu
}

// limiter is that of one target, or of the registrations of all drops with one service.
type limiter struct {
	*window.Limiter
	firstSuccess time.Time // since the calls began; zero: none yet
	lastUsed     time.Time // when a call began or went well
}

// A service that starts gently takes few calls at once when they begin: its interface says that high concurrency at the start may cause
// time-outs, and that too frequent calls may be blocked. It names no number. So registrations and uploads have two calls each until
// one went well and a second has passed, and again after a pause. A call that went well had arrived, however long its way was.
const (
	startCalls = 2
	startTime  = time.Second
	startPause = 5 * time.Minute
)

// isStarting reports whether the calls have only just begun.
func (l *limiter) isStarting(now time.Time) bool {
	return l.firstSuccess.IsZero() || now.Sub(l.firstSuccess) <= startTime || now.Sub(l.lastUsed) > startPause
}

// limiterOf returns the target whose limiter counts the calls to a target: all drops of a service without vaults share one. gently: the
// service takes few calls when they begin.
func limiterOf(t Target) (counted Target, gently bool) {
	row, is := dropServiceOfTarget(t)
	if is {
		t.Drop = ""
	}
	return t, row.startsGently
}

// get returns the limiter of a target that takes most calls at once. The caller holds mu.
func (p *limiters) get(t Target, most int) *limiter {
	t, _ = limiterOf(t)
	if p.by[t] == nil {
		p.by[t] = &limiter{Limiter: window.NewLimiter(most)}
	}
	return p.by[t]
}

func (p *limiters) limit(t Target, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.get(t, most)
	if _, gently := limiterOf(t); gently && l.isStarting(time.Now()) {
		return min(l.Limit(), startCalls)
	}
	return l.Limit()
}

func (p *limiters) begin(t Target, most int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.get(t, most), time.Now()
	// Before lastUsed is set: the call that ends a pause begins gently again.
	if now.Sub(l.lastUsed) > startPause {
		l.firstSuccess = time.Time{}
	}
	l.lastUsed = now
	return l.Begin()
}

// succeeded notes a call that went well while that many were under way.
func (p *limiters) succeeded(t Target, under int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted, _ := limiterOf(t)
	l := p.by[counted]
	if l == nil {
		return
	}
	l.Succeeded(under >= l.Limit())
	l.lastUsed = time.Now()
	if l.firstSuccess.IsZero() {
		l.firstSuccess = l.lastUsed
	}
}

// overloaded notes that call n met 429, 503 or no answer in time, and reports whether the breaker must open.
func (p *limiters) overloaded(t Target, n uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	counted, _ := limiterOf(t)
	l := p.by[counted]
	return l == nil || l.Overloaded(n)
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
