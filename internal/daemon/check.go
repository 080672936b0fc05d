package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/selfcheck"
)

// checker holds the ledger to its promises beside the work: at once after the start, and
// then again and again.
type checker struct {
	wake chan struct{} // size 1: somebody else met damage

	mu   sync.Mutex
	last selfcheck.Result // guarded by mu
}

const (
	checkRetry   = time.Hour      // after a check that could not be made
	longestBlind = 24 * time.Hour // without a check, before want of time, memory or room is reported: an hour may bring them
)

func newChecker() *checker { return &checker{wake: make(chan struct{}, 1)} }

// CheckNow has the whole ledger checked at once: somebody met damage in it. It never
// blocks, and does nothing where the ledger is known to be damaged.
func (d *Daemon) CheckNow() {
	if s, is := d.ledger.SafeMode(); is && s.Mark == ledger.MarkDamaged {
		return
	}
	select {
	case d.checker.wake <- struct{}{}:
	default:
	}
}

func (c *checker) lastResult() selfcheck.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

func (c *checker) runChecks(ctx context.Context, d *Daemon) {
	every, checks := d.cfg.CheckEvery, d.selfChecker()
	checked := checks.LastChecked()
	timer := time.NewTimer(0)
	defer timer.Stop()
	if every <= 0 {
		timer.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
		found := checks.Check(ctx)
		if ctx.Err() != nil {
			return
		}
		if found.Failed == "" || found.At.Before(checked) { // the clock was ahead
			checked = found.At
		}
		if !found.MayPass || found.At.Sub(checked) >= longestBlind {
			c.mu.Lock()
			c.last = found
			c.mu.Unlock()
		}
		d.recordFindings(ctx, found)
		switch {
		case every <= 0:
		case found.Failed != "":
			timer.Reset(min(every, checkRetry))
		default:
			timer.Reset(every)
		}
	}
}

// selfChecker returns what makes one check.
func (d *Daemon) selfChecker() *selfcheck.Checker {
	return &selfcheck.Checker{Verification: d.verification(), Ledger: d.ledger, Spool: d.spool, Drops: d.drops, MinFree: d.cfg.SpoolMinFree, KeptFound: d.recordKept}
}

// verification says how the whole ledger is verified.
func (d *Daemon) verification() selfcheck.Verification {
	return selfcheck.Verification{StateDir: d.cfg.StateDir, Program: d.cfg.Program, Executable: d.cfg.Executable, Whole: true, Now: func() time.Time { return d.cfg.Now().Wall }}
}

// recordKept commits what a check found of a kept folder. An entry that changed
// meanwhile is looked at again by the next check.
func (d *Daemon) recordKept(ctx context.Context, e ledger.Entry, found ledger.SourceChecked) (isNew bool, err error) {
	rs, err := d.ledger.Apply(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{found}, At: d.cfg.Now()})
	if err != nil || rs[0].Err != nil {
		return false, err
	}
	if found.Cause.Code == "" {
		d.cfg.Log.Info("a kept folder is there again as it was archived", "key", e.Key, "drop", e.Drop)
		return true, nil
	}
	d.cfg.Log.Error("a kept folder is not what was archived", "key", e.Key, "drop", e.Drop, "cause", found.Cause.Code)
	return true, nil
}

// recordFindings tells what a check found. Damage in the ledger enters safe mode: what it says of
// the folders cannot be relied on any more.
func (d *Daemon) recordFindings(ctx context.Context, found selfcheck.Result) {
	log := d.cfg.Log
	switch {
	case found.Failed != "":
		log.Error("the ledger was not checked", "err", found.Failed)
		return
	case found.OK():
		log.Info("the ledger was checked: nothing differs", "head", d.ledger.Head().String())
		return
	}
	for _, what := range found.Files {
		log.Error("a file is not what the ledger says", "what", what)
	}
	for _, what := range found.Unread {
		log.Warn("a file could not be checked", "what", what)
	}
	if len(found.Ledger) == 0 {
		return
	}
	for _, what := range found.Ledger {
		log.Error("the ledger is damaged", "what", what)
	}
	if s, is := d.ledger.SafeMode(); is && s.Mark == ledger.MarkDamaged {
		return
	}
	cause := found.Ledger[0]
	if more := len(found.Ledger) - 1; more > 0 {
		cause += fmt.Sprintf(", and %d more", more)
	}
	// After a crash before this commit the next start checks again, at once, and finds the same damage.
	err := d.ledger.CommitMark(ctx, ledger.Mark{Name: ledger.MarkDamaged, By: ledger.Operator{UID: ledger.VaultdUID}, Cause: truncateText(cause, 500), At: d.cfg.Now().Wall}, nil)
	if err != nil {
		d.endProcess(fmt.Errorf("the ledger is damaged, and the damage could not be recorded: %w", err))
		return
	}
	d.logSafeMode()
	d.statusFiles.NoteChangeOfAll()
}

func truncateText(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
