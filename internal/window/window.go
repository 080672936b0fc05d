// Package window reckons with the time that upload tickets work: how much of it is
// left, whether an upload may still start, and how many documents to register at
// once so that each upload can follow in time. Each ticket has its own life. The
// uploads of all routes share one network link, so one planner serves them all.
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

// Left returns how long t still works at now. One that was used up has nothing left,
// nor has one from another boot or from before the machine was suspended: nobody can
// say what became of its connections and of whoever else runs this machine's image.
func Left(t archive.Ticket, now archive.Instant) time.Duration {
	gone, ok := now.Since(t.Sent)
	if !ok || gone < 0 || now.SleptSince(t.Sent) {
		return 0
	}
	return max(0, t.Life()-gone)
}
