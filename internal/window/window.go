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
	"time"

	"vaultd/internal/archive"
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
