package ingest

import (
	"time"

	"vaultd/internal/ledger"
)

// Turned tells when the loop of each step last looked at what is due and found out what to
// start; zero: never. Only the loops themselves set it: one that hangs stops turning, however
// well the rest of the process does. An idle loop turns once a minute.
func (c *Engine) Turned() map[ledger.Step]time.Time {
	turned := make(map[ledger.Step]time.Time, len(c.runners))
	for s, r := range c.runners {
		if at := r.turned.Load(); at != nil {
			turned[s] = *at
		} else {
			turned[s] = time.Time{}
		}
	}
	return turned
}

// turn notes that the loop came round. The time keeps its monotonic part, so that a wall clock
// that was set makes no loop look stalled.
func (r *runner) turn() {
	now := time.Now()
	r.turned.Store(&now)
}
