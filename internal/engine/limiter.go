package engine

import (
	"sync"
	"time"

	"vaultd/internal/window"
)

// Limiters hold how many calls may go at once over each target that was used. After a
// restart they are found again.
//
// They learn, because a service names no number: with room for 4 calls a fixed limit
// takes 17 documents a second in place of 207, and with room for 1 it takes 14 in place
// of 54. A few faults cost little speed (G13: TestPace_G13_FewFaultsCostLittle in
// internal/window, the rows fault-… of the bench).
type Limiters[T Target] struct {
	mu sync.Mutex
	by map[T]*limiter // guarded by mu
}

// limiter is that of one target.
type limiter struct {
	*window.Limiter
	firstSuccess time.Time // since the calls began; zero: none yet
	lastUsed     time.Time // when a call began or went well
}

// A service that starts gently takes few calls at once when they begin: its interface
// says that high concurrency at the start may cause time-outs, and that too frequent
// calls may be blocked. So they have two calls each until one went well and a second
// has passed, and again after a pause. A call that went well had arrived, however
// long its way was.
const (
	startCalls = 2
	startTime  = time.Second
	startPause = 5 * time.Minute
)

func newLimiters[T Target]() *Limiters[T] { return &Limiters[T]{by: map[T]*limiter{}} }

// get returns the limiter of a target that takes most calls at once. The caller holds mu.
func (p *Limiters[T]) get(t T, most int) *limiter {
	if p.by[t] == nil {
		p.by[t] = &limiter{Limiter: window.NewLimiter(most)}
	}
	return p.by[t]
}

// Limit returns how many calls may be under way now, at most most. gently: the service
// takes few calls when they begin.
func (p *Limiters[T]) Limit(t T, most int, gently bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, now := p.get(t, most), time.Now()
	if now.Sub(l.lastUsed) > startPause {
		l.firstSuccess = time.Time{} // the calls begin again
	}
	if isStarting := l.firstSuccess.IsZero() || now.Sub(l.firstSuccess) <= startTime; gently && isStarting {
		return min(l.Limit(), startCalls)
	}
	return l.Limit()
}

// Begin counts a call that Limit allowed. Its end is told with the number that comes back.
func (p *Limiters[T]) Begin(t T, most int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.get(t, most)
	l.lastUsed = time.Now()
	return l.Begin()
}

// Succeeded notes a call that went well while that many were under way.
func (p *Limiters[T]) Succeeded(t T, under int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.by[t]
	if l == nil {
		return
	}
	l.Succeeded(under >= l.Limit())
	l.lastUsed = time.Now()
	if l.firstSuccess.IsZero() {
		l.firstSuccess = l.lastUsed
	}
}

// Overloaded notes that call n met a target that has too much to do, and reports whether
// its breaker must open.
func (p *Limiters[T]) Overloaded(t T, n uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.by[t]
	return l == nil || l.Overloaded(n)
}
