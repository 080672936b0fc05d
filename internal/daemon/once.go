package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/spool"
	"vaultd/internal/watch"
)

const (
	passInterval = 200 * time.Millisecond // between two looks at whether all is done
	quietChecks  = 3                      // looks in a row that must find nothing to do
	triesInPass  = 3                      // failed attempts after which a single pass gives up on an entry
	stallAfter   = 15 * time.Second       // of a pause of some route, after which a single pass ends
)

// RunOnce works until everything that lies in the drop folders was taken or has a
// reason not to be, was sent, and was asked about once, and until what the business network
// announces was received; with wait, until everything is final or needs a person, but for
// documents that the network has: what it tells of them takes days. It returns earlier when ctx ends.
func (d *Daemon) RunOnce(ctx context.Context, wait bool) error {
	if !d.disk.CanBegin() {
		return fmt.Errorf("nothing was begun: %w", &spool.NoSpaceError{Free: d.disk.Free(), MinFree: d.disk.MinFree()})
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(run) }()
	tick := time.NewTicker(passInterval)
	defer tick.Stop()
	for calm := 0; calm < quietChecks; {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
		}
		done, err := d.isPassComplete(wait)
		if err != nil {
			stop()
			return errors.Join(err, <-ended)
		}
		calm++
		if !done {
			calm = 0
		}
	}
	stop()
	return <-ended
}

// isPassComplete reports whether a single pass has nothing left to do.
func (d *Daemon) isPassComplete(wait bool) (bool, error) {
	for _, r := range d.drops {
		s := r.WatcherSnapshot()
		if r.State().Paused != "" {
			continue
		}
		if s.LastRescan.IsZero() || s.Taking > 0 {
			return false, nil
		}
		for _, w := range s.NotTaken {
			if w.Reason == watch.Copying || w.Reason == watch.Queued || w.Reason == watch.Busy {
				return false, nil
			}
			isFresh := func(n watch.NotTakenItem) bool { return d.cfg.Now().Wall.Sub(n.LastChanged) < stallAfter }
			if w.Reason == watch.StillOpen && slices.ContainsFunc(w.Items, isFresh) {
				return false, nil
			}
		}
	}
	if heard, err := d.hasHeardNetwork(wait); !heard || err != nil {
		return false, err
	}
	stalled := d.stalledTargets()
	if wait {
		stalled = nil
	}
	for s := ledger.Seal; s <= ledger.Place; s++ {
		if s != ledger.Seal && s != ledger.Ask && d.heldReason() != "" {
			continue // it does not begin before a person acts
		}
		if left, err := d.hasDueWork(s, wait, stalled); left || err != nil {
			return false, err
		}
	}
	return d.engine.Idle() || len(stalled) > 0, nil
}

// hasHeardNetwork reports whether a single pass has taken in what the business network tells, and has put what it announces into the drop folder:
// each document once, or with wait until that is done or has failed several times.
func (d *Daemon) hasHeardNetwork(wait bool) (bool, error) {
	if d.cfg.Notices == nil || d.heldReason() != "" {
		return true, nil
	}
	if p := d.poller.Load(); d.usesNetwork() && (p == nil || !p.HasPolled()) {
		return false, nil
	}
	e := d.receiver.Load()
	if e == nil {
		return true, nil
	}
	var most uint16
	if wait {
		most = triesInPass
	}
	left, err := e.HasWork(most)
	return !left, err
}

// hasDueWork reports whether a single pass has something left to do for a step, beside what
// waits for a target that is stalled.
func (d *Daemon) hasDueWork(s ledger.Step, wait bool, stalled []ingest.Target) (bool, error) {
	far := d.cfg.Now().Wall.AddDate(100, 0, 0)
	queues, err := d.ledger.Queues(s)
	if err != nil {
		return false, err
	}
	for _, queue := range queues {
		if slices.ContainsFunc(stalled, func(t ingest.Target) bool {
			return t.Queue() == queue && t.Purpose != ingest.ToDispose || t == ingest.SpoolTarget() && s == ledger.Seal
		}) {
			continue
		}
		es, _, err := d.ledger.DueInQueue(s, queue, far, 1, nil, func(e ledger.Entry) bool { return isDoneInPass(e, wait) })
		if err != nil || len(es) > 0 {
			return true, err
		}
	}
	return false, nil
}

// stalledTargets returns what has been paused for so long that waiting for it is not what a single pass is for.
func (d *Daemon) stalledTargets() (targets []ingest.Target) {
	for _, p := range d.engine.Pauses() {
		if d.cfg.Now().Wall.Sub(p.Since) > stallAfter {
			targets = append(targets, p.Target)
		}
	}
	return targets
}

// isDoneInPass reports whether a single pass is through with e.
func isDoneInPass(e ledger.Entry, wait bool) bool {
	step, _, _ := ledger.Due(e)
	switch {
	case e.State.IsFinal():
		return step == ledger.Ask // an old registration's end is not waited for
	case e.State == ledger.Quarantined:
		return true
	case wait:
		return false
	case e.State == ledger.Uploaded || e.State == ledger.Unclear:
		return e.Current() != nil && e.Current().EqualAnswers > 0
	}
	return e.Attempt >= triesInPass
}
