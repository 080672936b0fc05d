package daemon

import (
	"context"
	"errors"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/recovery"
)

// ErrComparing says that another comparison is under way.
var ErrComparing = errors.New("the ledger is just being compared with the archive")

// Reconcile compares the ledger with the archive. In safe mode it first gives an entry to
// every claimed folder that has none, waits a while for those to be packed, and it ends safe mode once everything was read and
// every drop folder was there. Its error is the first that kept something from being
// read; then safe mode stays. accept names the incomplete indexes that p lets count as complete.
func (d *Daemon) Reconcile(ctx context.Context, p operator.Person, accept ...operator.AcceptedIndex) (operator.Compared, error) {
	if !d.comparing.TryLock() {
		return operator.Compared{}, ErrComparing
	}
	defer d.comparing.Unlock()
	drops, done, why := d.openFolders()
	defer done()
	verify := func(ctx context.Context) ([]ledger.Problem, error) {
		v, err := d.verification().VerifyCopy(ctx, d.ledger, d.cfg.SpoolMinFree)
		return v.Problems, err
	}
	all := operator.Comparison{Ledger: d.ledger, Verify: verify, Archive: d.cfg.Archive, Drops: drops, Away: why, Accept: accept, Grace: d.cfg.Grace, Now: d.cfg.Now}
	c, err := operator.Reconcile(ctx, all, p)
	if err == nil && c.Unpacked > 0 && c.Safe && !c.Left {
		if err = d.awaitPacking(ctx); err == nil {
			c, err = operator.Reconcile(ctx, all, p)
		}
	}
	if err == nil && c.Waits > 0 && p.UID != ledger.VaultdUID {
		select {
		case d.compareSoon <- struct{}{}:
		default:
		}
	}
	if c.Heard > 0 {
		d.cfg.Log.Warn("the archive has content that the ledger did not count; its entries were told", "registrations", c.Heard)
		d.engine.Wake()
	}
	if c.Left {
		d.cfg.Log.Info("safe mode ends", "uid", p.UID, "cleared", c.Cleared, "waiting", c.Waits)
		d.engine.Wake()
		d.statusFiles.NoteChangeOfAll()
		for _, r := range d.drops {
			r.RequestRescan()
		}
	}
	return c, err
}

// minPackPatience is how long a comparison in safe mode waits, at least, for folders that were
// taken before: they settle once more before they are packed.
const minPackPatience = 90 * time.Second

// packingPatience is how long a comparison in safe mode waits. A folder that changes once more meanwhile must then be quiet
// for twice its settle time, and the wait allows for that.
func (d *Daemon) packingPatience() time.Duration {
	wait := minPackPatience
	for _, r := range d.drops {
		wait = max(wait, 4*r.Settings.Settle+30*time.Second)
	}
	return wait
}

// awaitPacking gives the folders in doubt the time to get their identities, without which
// the archive cannot speak for them. It does not wait for those that cannot be packed.
func (d *Daemon) awaitPacking(ctx context.Context) error {
	over := time.NewTimer(d.packingPatience())
	defer over.Stop()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		waiting, errFound := false, errors.New("found")
		err := d.ledger.OpenEntries(func(e ledger.Entry) error {
			if waiting = e.NeedsReconcile && e.State == ledger.Discovered && (e.Cause.Code == "" || e.Cause.Code == "still-changing"); waiting {
				return errFound
			}
			return nil
		})
		if !waiting || err != nil && !errors.Is(err, errFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return nil
		case <-look.C:
		}
	}
}

// openFolders returns the drop folders, keeps those that are open from being closed until done is called, and says why the
// others are away.
func (d *Daemon) openFolders() (drops []recovery.Origin, done func(), why []string) {
	var ends []func()
	for _, r := range d.drops {
		f, end, err := r.HoldOpen()
		if err == nil {
			err = f.CheckStillOurs()
			ends = append(ends, end)
		}
		if err != nil {
			why = append(why, "drop "+r.Settings.Name+" cannot be looked through: "+err.Error())
			f = nil
		}
		drops = append(drops, r.Settings.ForRecovery(f))
	}
	return drops, func() {
		for _, end := range ends {
			end()
		}
	}, why
}

const (
	firstComparisonWait   = 2 * time.Second // after a comparison that left entries in doubt: folders are being packed
	longestComparisonWait = time.Hour
)

// compareWhileInDoubt compares again and again while entries are in doubt that an earlier comparison
// could not speak for. A person makes the first one: it ends safe mode.
func (d *Daemon) compareWhileInDoubt(ctx context.Context) {
	wait, look := 15*firstComparisonWait, true
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-d.compareSoon:
			wait, look = firstComparisonWait, true
			continue
		case <-timer.C:
		}
		switch _, safe := d.ledger.SafeMode(); {
		case d.cfg.Archive == nil:
			return
		case safe: // a person makes the first one
		case look:
			look = d.compareOnce(ctx)
		}
		wait = min(2*wait, longestComparisonWait)
	}
}

// compareOnce compares if an entry is in doubt. It returns whether one still is.
func (d *Daemon) compareOnce(ctx context.Context) bool {
	doubt, err := operator.LastDoubt(d.ledger)
	if doubt == nil {
		return err != nil
	}
	c, err := d.Reconcile(ctx, operator.Person{UID: ledger.VaultdUID})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.cfg.Log.Warn("entries in doubt stay so", "err", err)
	case !c.Complete():
		d.cfg.Log.Warn("entries in doubt stay so", "why", c.Incomplete(nil))
	case c.Cleared > 0:
		d.cfg.Log.Info("compared with the archive", "cleared", c.Cleared, "still_in_doubt", c.Waits)
		d.engine.Wake()
	}
	return true
}
