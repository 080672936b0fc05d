package daemon

import (
	"time"

	"vaultd/internal/catalog"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
)

// State is what a running vaultd knows beside its ledger; a restart forgets it.
type State struct {
	Since       time.Time
	Pauses      []ingest.Pause // circuit breakers that are not closed, and why
	Drops       []dropwork.State
	Spool       SpoolState
	HeldReason  string // why nothing may be taken, sent, moved or removed; empty: it may
	TakenOverBy uint64 // epoch of the vaultd that has taken over the drop folders; zero: none has
	Check       selfcheck.Result
	Advice      []present.UnlistedVault
	Catalog     catalog.Status
}

// SpoolState is where sealed packages wait.
type SpoolState struct {
	Used          int64 // bytes
	IsCounted     bool  // Used is all that lies there
	Reserve       int64 // bytes set aside for the ledger
	ReserveWanted int64 // what should be

	Full      time.Time // since when nothing new is taken or packed for want of room; zero: new folders are taken
	IsBlocked bool      // nothing at all is begun before there is room for the ledger
}

// State returns the present state. It touches no drop folder: what it tells of one was
// found by the folder's own probe, at most a minute ago.
func (d *Daemon) State() State {
	s := State{Since: d.since, Pauses: d.engine.Pauses(), Spool: d.spoolState()}
	s.HeldReason, s.Check, s.TakenOverBy = d.heldReason(), d.checker.lastResult(), d.shared.Takeover.Epoch()
	s.Catalog = d.catalog.Status()
	s.Advice = d.vaultLists.currentAdvice(d.cfg.Drops)
	for _, r := range d.drops {
		s.Drops = append(s.Drops, r.StateWithScan())
	}
	return s
}

func (d *Daemon) spoolState() SpoolState {
	s := SpoolState{Used: d.spool.Used(), IsCounted: d.spool.IsCounted(), Full: d.disk.FullSince(), IsBlocked: d.disk.IsBlocked()}
	s.Reserve, s.ReserveWanted = d.disk.Reserved()
	return s
}
