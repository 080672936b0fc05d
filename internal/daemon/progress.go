package daemon

import (
	"time"

	"vaultd/internal/ledger"
)

// Stall is a loop that has not finished a round for too long.
type Stall struct {
	What  string    // such as "the engine" or "drop acme-in"
	Since time.Time // when it last did, or the start of the daemon
	Drop  bool      // it looks at one drop folder
}

const (
	stepPatience = 3 * time.Minute // of the engine, which looks at least once a minute
	dropPatience = 2 * time.Minute // of a drop folder, beside three times its rescan
)

// Progress is what the loops of a running daemon did lately. Its times are the loops' own: none
// of them is set by a timer that goes on while they hang.
type Progress struct {
	Stalls []Stall
	Drops  int // drop folders that are watched, those that stall included
}

// Hangs reports whether the daemon as a whole makes no progress, so that only a new start can
// help: a step stands still, or no drop folder at all is looked at. One drop folder alone that
// hangs, most often on a dead file server, is no reason: it must not stop the others.
func (p Progress) Hangs() bool {
	dropStalls := 0
	for _, s := range p.Stalls {
		if !s.Drop {
			return true
		}
		dropStalls++
	}
	return dropStalls > 0 && dropStalls == p.Drops
}

// Progress looks at the stamps of the loops. It touches no disk and never waits for one.
func (d *Daemon) Progress() Progress {
	var p Progress
	if d.disk.IsBlocked() { // it says so itself
		return p
	}
	if since := ledger.LaterOf(d.engine.LastLook(), d.since); time.Since(since) > stepPatience {
		p.Stalls = append(p.Stalls, Stall{What: "the engine", Since: since})
	}
	for _, r := range d.drops {
		snap := r.WatcherSnapshot()
		if snap.Paused != nil { // it says so itself, and tries again
			continue
		}
		p.Drops++
		since := ledger.LaterOf(snap.LastRescan, d.since)
		if time.Since(since) > dropPatience+3*r.Settings.Rescan && !r.IsAway() {
			p.Stalls = append(p.Stalls, Stall{What: "drop " + r.Settings.Name, Since: since, Drop: true})
		}
	}
	return p
}
