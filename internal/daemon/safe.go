package daemon

import (
	"cmp"
	"errors"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
)

const (
	// openPatience is how long a start waits for its drop folders. One that hangs is opened
	// by its own loop, and shown as paused until then.
	openPatience = 3 * time.Second
	lockedCheck  = 200 * time.Millisecond // between two looks at whether a locked drop folder was let go
)

// openDrops opens all drop folders at once. Only what no waiting can mend ends the
// start: one bad drop must not keep the others from working. Drop.Run opens it later, and
// Drop.State says meanwhile why it is paused.
func (d *Daemon) openDrops() error {
	type outcome struct {
		i   int
		err error
	}
	opened := make(chan outcome, len(d.drops)) // nobody may be left to listen
	for i, r := range d.drops {
		go func() { opened <- outcome{i, r.OpenForStart()} }() // Drop.Run waits while the folder is being opened; Close closes what is opened too late
	}
	patience := time.NewTimer(openPatience)
	defer patience.Stop()
	errs := make([]error, len(d.drops))
	for waiting := len(d.drops); waiting > 0; {
		select {
		case o := <-opened:
			errs[o.i] = o.err
			waiting--
		case <-patience.C:
			if !d.waitsForLock(errs) {
				return firstUnrecoverable(errs)
			}
			patience.Reset(lockedCheck)
		}
	}
	return firstUnrecoverable(errs)
}

// waitsForLock reports whether a drop folder is not open yet because another vaultd has it.
func (d *Daemon) waitsForLock(errs []error) bool {
	for i, r := range d.drops {
		_, err := r.Current()
		if _, locked := errors.AsType[*drop.LockedError](err); locked && errs[i] == nil {
			return true
		}
	}
	return false
}

// firstUnrecoverable returns the first error that no waiting can mend.
func firstUnrecoverable(errs []error) error {
	for _, err := range errs {
		_, locked := errors.AsType[*drop.LockedError](err)
		_, foreign := errors.AsType[*drop.ForeignError](err)
		if locked || foreign || errors.Is(err, drop.ErrGroupUnusable) {
			return err
		}
	}
	return nil
}

// heldReason says why nothing may be taken, sent, moved or removed now; empty: it may. What is
// packed and what is asked goes on.
func (d *Daemon) heldReason() string {
	if lost := d.lost.Load(); lost != nil {
		return lost.why
	}
	return heldReasonOf(d.shared.Takeover, d.ledger, d.cfg.Location)
}

// heldReasonOf is heldReason, for a command that works while no daemon runs as well.
func heldReasonOf(takeover *dropwork.Takeover, l *boltledger.Ledger, zone *time.Location) string {
	if epoch := takeover.Epoch(); epoch > 0 {
		return present.AdviseOnTakeover(epoch)
	}
	if safe, is := l.SafeMode(); is {
		return "safe mode since " + safe.Since.In(cmp.Or(zone, time.UTC)).Format("2 Jan 15:04 MST") + " (" + present.DescribeSafeMode(safe) + ")"
	}
	return ""
}

// logSafeMode logs at a start that nothing will be sent.
func (d *Daemon) logSafeMode() {
	if safe, is := d.ledger.SafeMode(); is {
		d.cfg.Log.Error("SAFE MODE: nothing is taken, sent or removed before the archive was asked", "why", present.DescribeSafeMode(safe),
			"since", safe.Since, "unknown_after", safe.KnownUntil, "do", "vaultd reconcile")
	}
}

// enterDoubted gives an entry to a claimed folder that was found without one while the ledger
// is not sure of anything: it may have been sent.
func (d *Daemon) enterDoubted(k archive.Key, evs []ledger.Event) {
	// After a crash before this commit the next start finds the claimed folder without an entry again.
	change := ledger.Change{Key: k, Events: evs, At: d.cfg.Now()}
	d.ledger.Submit([]ledger.Change{change}, func(rs []ledger.Result) {
		if _, known := errors.AsType[*ledger.StaleError](rs[0].Err); rs[0].Err != nil && !known {
			d.cfg.Log.Error("claimed folder got no entry", "key", k, "err", rs[0].Err)
			return
		}
		d.engine.Wake()
		select {
		case d.compareSoon <- struct{}{}: // outside safe mode the comparison needs no person
		default:
		}
	})
}
