package daemon

import (
	"time"

	"vaultd/internal/catalog"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
	"vaultd/internal/spool"
)

// State is what a running vaultd knows beside its ledger; a restart forgets it.
type State struct {
	Since       time.Time
	Pauses      []ingest.Pause // circuit breakers that are not closed, and why
	Drops       []dropwork.State
	Spool       SpoolState
	Progress    Progress
	HeldReason  string // why nothing may be taken, sent, moved or removed; empty: it may
	TakenOverBy uint64 // epoch of the vaultd that has taken over the drop folders; zero: none has
	LostLedger  string // why the open ledger is not the one in state_dir; empty: it is
	Check       selfcheck.Result
	Catalog     catalog.Status
	Incoming    []present.IncomingFault // why what the services tell does not come in

	HostsWithoutMD5 []string // object stores that take packages without Content-MD5 alone
}

// SpoolState is where sealed packages wait.
type SpoolState struct {
	Used          int64 // bytes
	IsCounted     bool  // Used is all that lies there
	Reserve       int64 // bytes set aside for the ledger
	ReserveWanted int64 // what should be

	Waiting []spool.Waiting // queues whose share is too full for their next package

	Full      time.Time // since when nothing new is taken or packed for want of room; zero: new folders are taken
	IsBlocked bool      // nothing at all is begun before there is room for the ledger
}

// State returns the present state. It touches no drop folder: what it tells of one was
// found by the folder's own probe, at most a minute ago.
func (d *Daemon) State() State {
	s := State{Since: d.since, Progress: d.Progress(), Pauses: d.engine.Pauses(), Spool: d.spoolState(), HostsWithoutMD5: d.engine.HostsWithoutMD5()}
	s.HeldReason, s.Check, s.TakenOverBy = d.heldReason(), d.checker.lastResult(), d.shared.Takeover.Epoch()
	if lost := d.lost.Load(); lost != nil {
		s.LostLedger = lost.why
	}
	s.Catalog, s.Incoming = d.catalog.Status(), d.incomingFaults()
	for _, r := range d.drops {
		s.Drops = append(s.Drops, r.StateWithScan())
	}
	return s
}

// incomingFaults says why what the services tell does not come in.
func (d *Daemon) incomingFaults() (all []present.IncomingFault) {
	if p := d.poller.Load(); p != nil {
		s := p.Status()
		if s.IgnoresType {
			all = append(all, present.IncomingFault{What: "notices", Text: "the business network lists notifications about sent documents where it is asked for received ones, so network.announced_by: type is not followed",
				Do: "set network.announced_by to code, and ask the provider how received documents are announced"})
		}
		switch {
		case s.Why != "":
			all = append(all, present.IncomingFault{What: "notices", Since: s.FailingSince, Text: "the notifications of the business network do not come in: " + s.Why,
				Do: "vaultd doctor tries the network; see docs/network.md. What becomes of sent documents is not known meanwhile"})
		case s.Unreadable > 0:
			all = append(all, present.IncomingFault{What: "notices", Text: present.FormatCount(s.Unreadable, "notification", "notifications") +
				" of the business network cannot be read, or said something else before; nothing is concluded, and their documents may wait for ever", Do: "ask the provider; the log has the time"})
		case s.IsCut:
			all = append(all, present.IncomingFault{What: "notices", Text: "the list of notifications of the business network does not reach its end; what lies behind is not heard of",
				Do: "ask the provider; see docs/network.md#limits"})
		}
	}
	if e := d.extracts.Load(); e != nil {
		if s := e.Status(); s.Why != "" {
			all = append(all, present.IncomingFault{What: "extracts-paused", Since: s.Since, Text: "extracts do not come in: " + s.Why, Do: "vaultd doctor tries their service; see docs/extracts.md"})
		} else if s.Refused != "" {
			all = append(all, present.IncomingFault{What: "extracts-paused", Text: "extracts are not downloaded: " + s.Refused,
				Do: "add the host where the provider confirms it, then reload; each further try would cost a download. What leads elsewhere comes in meanwhile"})
		}
	}
	if why := d.custodyFault.Load(); why != nil {
		all = append(all, present.IncomingFault{What: "extracts-paused", Text: "extracts do not come in: " + *why, Do: "look at extracts.custody; it is tried again by itself"})
	}
	return all
}

func (d *Daemon) spoolState() SpoolState {
	s := SpoolState{Used: d.spool.Used(), IsCounted: d.spool.IsCounted(), Full: d.disk.FullSince(), IsBlocked: d.disk.IsBlocked(), Waiting: d.spool.Waiting()}
	s.Reserve, s.ReserveWanted = d.disk.Reserved()
	return s
}
