// Package window reckons with the fifteen minutes that an upload ticket works:
// how much of them is left, whether an upload may still start, and how many
// documents to register at once so that each upload can follow in time.
//
// It never asks a clock and never reaches the network: callers bring the instant.
// It never trusts the wall clock of this machine; what counts is the boot clock
// since before the POST left, and the service's own clock where the ticket's
// address carries its expiry.
//
// Nothing in it outlives the process: after a restart speeds are learned anew, and
// a ticket from another boot, or from before a suspend, has no time left.
package window

import (
	"sync"
	"time"

	"vaultd/internal/archive"
)

const (
	firstRate   = 1 << 20         // bytes per second of one upload before any was seen
	firstCost   = 2 * time.Second // of an upload beside its bytes, before any was seen
	forget      = 0.2             // weight of the newest observation
	caution     = 2               // a prediction allows for half the speed seen
	largestLoad = 2               // the part of a ticket's life that planned uploads may fill: one half
)

// Life returns how long t works, counted from t.Sent: the window, or less where
// the address expires earlier on the service's clock. A second is taken off for the
// resolution of the service's Date.
func Life(t archive.Ticket, window time.Duration) time.Duration {
	if t.SignedAt.IsZero() || t.Validity <= 0 {
		return window
	}
	if t.Date.IsZero() {
		return min(window, t.Validity)
	}
	return min(window, t.SignedAt.Add(t.Validity).Sub(t.Date)-time.Second)
}

// Left returns how long t still works at now. One that was used up has nothing left,
// nor has one from another boot or from before the machine was suspended: nobody can
// say what became of its connections and of whoever else runs this machine's image.
func Left(t archive.Ticket, window time.Duration, now archive.Instant) time.Duration {
	gone, ok := now.Since(t.Sent)
	if !ok || gone < 0 || now.SleptSince(t.Sent) {
		return 0
	}
	return max(0, Life(t, window)-gone)
}

// Planner predicts uploads from those it saw. Its methods may be called from
// several goroutines.
type Planner struct {
	Window  time.Duration // the longest a ticket works
	Workers int           // uploads at once

	mu   sync.Mutex
	rate float64       // bytes per second of one upload; guarded by mu
	cost time.Duration // of an upload beside its bytes; guarded by mu
	seen int           // guarded by mu
}

// small is the size up to which an upload tells of the cost beside its bytes.
const small = 64 << 10

// Observe books one upload that succeeded.
func (p *Planner) Observe(bytes int64, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == 0 {
		p.rate, p.cost = firstRate, firstCost
	}
	p.seen++
	if bytes <= small {
		p.cost += time.Duration(forget * float64(took-p.cost))
		return
	}
	if took > 0 {
		p.rate += forget * (float64(bytes)/took.Seconds() - p.rate)
	}
}

// predict returns how long an upload of that many bytes may take. It is never
// more than half of a ticket's life: a package that a fresh ticket could not carry
// would otherwise never be tried, and speeds never learned anew.
func (p *Planner) predict(bytes int64, life time.Duration) time.Duration {
	p.mu.Lock()
	rate, cost := p.rate, p.cost
	if p.seen == 0 {
		rate, cost = firstRate, firstCost
	}
	p.mu.Unlock()
	t := caution * (cost + time.Duration(float64(bytes)/rate*float64(time.Second)))
	return min(t, life/largestLoad)
}

// MayStart reports whether an upload of bytes that starts now is predicted to end,
// with a margin, before t does.
func (p *Planner) MayStart(t archive.Ticket, bytes int64, now archive.Instant) bool {
	life := Life(t, p.Window)
	left := Left(t, p.Window, now)
	margin := min(30*time.Second, life/10)
	return left > 0 && p.predict(bytes, life)+margin <= left
}

// Plan returns how many of the waiting documents, in their order, may be registered
// now so that their uploads fill no more than half of a ticket's life. granted are
// the sizes of those that hold a ticket already. Until an upload was seen, no more
// are registered than there are workers.
func (p *Planner) Plan(waiting, granted []int64) int {
	p.mu.Lock()
	seen, workers := p.seen, max(p.Workers, 1)
	p.mu.Unlock()
	budget := time.Duration(workers) * p.Window / largestLoad
	for _, b := range granted {
		budget -= p.predict(b, p.Window)
	}
	n := 0
	for _, b := range waiting {
		budget -= p.predict(b, p.Window)
		idle := n == 0 && len(granted) == 0 // one document can always go
		if (budget < 0 || seen == 0 && n+len(granted) >= workers) && !idle {
			break
		}
		n++
	}
	return n
}
