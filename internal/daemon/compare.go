package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/recovery"
)

// Compared is what a comparison of the ledger with the archive came to.
type Compared struct {
	recovery.Report
	Safe bool     // the ledger was in safe mode when it began
	Left bool     // and is not any more
	Why  []string // why it still is, in words
}

// ErrComparing says that another comparison is under way.
var ErrComparing = errors.New("the ledger is just being compared with the archive")

// Reconcile holds the ledger against the archive. In safe mode it first gives an entry to
// every claimed folder that has none, waits a while for those to be packed, and it ends safe mode once everything was read and
// every drop folder was there. Its error is the first that kept something from being
// read; then safe mode stays. accept names the incomplete indexes that p lets count as complete.
func (d *Daemon) Reconcile(ctx context.Context, p Person, accept ...AcceptedIndex) (Compared, error) {
	if !d.comparing.TryLock() {
		return Compared{}, ErrComparing
	}
	defer d.comparing.Unlock()
	drops, done, why := d.openFolders()
	defer done()
	all := Comparison{Ledger: d.ledger, Archive: d.cfg.Archive, Drops: drops, Away: why, Accept: accept, Grace: d.cfg.Grace, Now: d.cfg.Now}
	c, err := Reconcile(ctx, all, p)
	if err == nil && c.Unpacked > 0 && c.Safe && !c.Left {
		if err = d.awaitPacking(ctx); err == nil {
			c, err = Reconcile(ctx, all, p)
		}
	}
	if err == nil && c.Waits > 0 && p.UID != ledger.VaultdUID {
		select {
		case d.compared <- struct{}{}:
		default:
		}
	}
	if c.Heard > 0 {
		d.cfg.Log.Warn("the archive has content that the ledger did not count; its entries were told", "registrations", c.Heard)
		d.conductor.Wake()
	}
	if c.Left {
		d.cfg.Log.Info("safe mode ends", "uid", p.UID, "cleared", c.Cleared, "waiting", c.Waits)
		d.conductor.Wake()
		for _, r := range d.drops {
			r.clerk.poke()
			r.watcher.RequestRescan()
		}
	}
	return c, err
}

// packPatience is how long a comparison in safe mode waits, at least, for the folders that
// had been taken: they settle once more before they are packed.
const packPatience = 90 * time.Second

// packPatience allows for a folder that was seen to change once more meanwhile: then it must
// be quiet for twice as long.
func (d *Daemon) packPatience() time.Duration {
	wait := packPatience
	for _, r := range d.drops {
		wait = max(wait, 4*r.cfg.Settle+30*time.Second)
	}
	return wait
}

// awaitPacking gives the folders in doubt the time to get their identities, without which
// the archive cannot speak for them. It does not wait for those that cannot be packed.
func (d *Daemon) awaitPacking(ctx context.Context) error {
	over := time.NewTimer(d.packPatience())
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

// openFolders lends the drop folders that are open, and says of the others why they are
// not.
func (d *Daemon) openFolders() (drops []recovery.Drop, done func(), why []string) {
	var ends []func()
	for _, r := range d.drops {
		f, end, err := r.hold()
		if err == nil {
			err = f.CheckStillOurs()
			ends = append(ends, end)
		}
		if err != nil {
			why = append(why, "drop "+r.cfg.Name+" cannot be looked through: "+err.Error())
			f = nil
		}
		drops = append(drops, recovery.Drop{Name: r.cfg.Name, Vault: r.cfg.Vault, Rules: r.cfg.Rules, Folder: f, Retention: r.cfg.Retention})
	}
	return drops, func() {
		for _, end := range ends {
			end()
		}
	}, why
}

// Comparison is what [Reconcile] works on.
type Comparison struct {
	Ledger  *boltledger.Ledger
	Archive recovery.Service
	Drops   []recovery.Drop // every configured one; those that are away without their folder
	Away    []string        // why they are; while there are some, safe mode stays
	Accept  []AcceptedIndex // what the person lets count as complete
	Grace   time.Duration
	Now     func() archive.Instant
}

// Reconcile does what [Daemon.Reconcile] does, for a command that has ledger and drop
// folders to itself.
func Reconcile(ctx context.Context, c Comparison, p Person) (Compared, error) {
	if c.Archive == nil {
		return Compared{}, errors.New("no service to compare with")
	}
	safe, is := c.Ledger.SafeMode()
	out := Compared{Safe: is, Why: c.Away}
	doubt, err := lastDoubt(c.Ledger)
	if err == nil && safe.Mark == ledger.MarkDamaged {
		var found []ledger.Problem
		if found, err = c.Ledger.Verify(ctx); len(found) > 0 { // what it says of its own entries cannot be trusted
			doubt, out.Why = nil, append(out.Why, fmt.Sprintf("the ledger is damaged (%s: %s): restore a backup, or rebuild it", found[0].Where, found[0].What))
		}
	}
	if err != nil {
		return out, err
	}
	out.Report, err = recovery.Reconcile(ctx, recovery.Config{
		Book: c.Ledger, Committer: c.Ledger, Service: c.Archive, Drops: c.Drops, Grace: c.Grace, Now: c.Now,
		Environment: c.Ledger.Info().Environment, Doubt: doubt, Adopt: is && doubt != nil, Accept: c.accept(p),
	})
	if err != nil {
		return out, fmt.Errorf("compare with the archive: %w", err)
	}
	if err := c.note(ctx, out.Report, p); err != nil {
		return out, err
	}
	if out.Unpacked > 0 { // dropped once more, such an invoice would pass for a new one
		out.Why = append(out.Why, many(out.Unpacked, "folder that had been taken is", "folders that had been taken are")+" not packed yet; see vaultd list, and compare again in a minute")
	}
	if out.Withheld > 0 {
		out.Why = append(out.Why, many(out.Withheld, "document in the archive may be of a folder", "documents in the archive may be of folders")+" that cannot be read now; see why, then compare again")
	}
	out.Why = append(out.Why, out.incomplete(c.Accept)...)
	if now, _ := c.Ledger.SafeMode(); is && now != safe {
		out.Why = append(out.Why, "something else was found meanwhile ("+now.Mark+"); compare again")
	}
	if !is || len(out.Why) > 0 {
		return out, nil
	}
	by, note := p.signed()
	err = c.Ledger.CommitMark(context.WithoutCancel(ctx), ledger.Mark{ // all was read; that is committed
		Name: ledger.MarkReconciled, By: by, At: c.Now().Wall, ServiceTime: out.Told, Cause: "after " + safe.Mark,
	}, note)
	out.Left = err == nil
	return out, err
}

// note puts into the journal what a person's comparison came to, one line for each vault. The audit rests on it. What vaultd
// compares by itself after a restore is told by the end of safe mode.
func (c Comparison) note(ctx context.Context, r recovery.Report, p Person) error {
	if p.UID == ledger.VaultdUID {
		return nil
	}
	for _, v := range r.Vaults {
		// The reason stands with the acts that need one, not here. What was read was read: the line is not given up half-way.
		// After a crash between two vaults the audit tells the earlier comparison of the second one; a person compares again.
		err := c.Ledger.CommitMark(context.WithoutCancel(ctx), ledger.Mark{
			Name: ledger.MarkCompared, Vault: v.Vault, By: ledger.Operator{UID: p.UID}, At: c.Now().Wall, ServiceTime: r.Told,
			Cause: ledger.ComparedCause(v.Outcome(), v.Gave(), v.Differences()),
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// InDoubt reports whether the ledger may not know everything of some entry: then drop
// folders are looked through when it is compared.
func InDoubt(l *boltledger.Ledger) (bool, error) {
	doubt, err := lastDoubt(l)
	return doubt != nil, err
}

// lastDoubt says of which time the ledger knows nothing; nil where no entry is in doubt
// and it is not in safe mode. It reads the journal's marks: what happened once stays
// true for the entries that are still in doubt, long after safe mode ended.
func lastDoubt(l *boltledger.Ledger) (*recovery.Doubt, error) {
	s, safe := l.SafeMode()
	if safe && s.KnownUntil.IsZero() {
		return &recovery.Doubt{Since: s.Since}, nil // nothing is sure, whatever happened before
	}
	suspect, errEnough := safe, errors.New("enough")
	err := l.OpenEntries(func(e ledger.Entry) error {
		if suspect = suspect || e.NeedsReconcile; suspect {
			return errEnough
		}
		return nil
	})
	if !suspect || err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	var all doubts
	err = l.Lines(1, func(_ uint64, line []byte) error { return all.line(line) })
	return all.last, err
}

// doubts follows a journal: what is unknown since the last moment at which no entry was
// in doubt and the ledger not in safe mode.
type doubts struct {
	last    *recovery.Doubt
	safe    bool
	suspect map[string]bool // keys
	before  time.Time       // of the line before
}

func (d *doubts) line(line []byte) error {
	x, err := ledger.ParseLine(line)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, x.At)
	if err != nil {
		return err
	}
	switch {
	case x.Key != "" && slices.Contains(strings.Fields(x.Flags), "suspect"):
		if d.suspect == nil {
			d.suspect = map[string]bool{}
		}
		d.suspect[x.Key] = true
	case x.Key != "":
		delete(d.suspect, x.Key)
	case x.Event == ledger.MarkReconciled:
		if d.safe = false; d.last != nil && d.last.Told.IsZero() {
			if d.last.Told, err = time.Parse(time.RFC3339Nano, x.Time); err != nil {
				d.last.Told = at // the archive did not say, or nobody listened then
			}
		}
	case (ledger.Mark{Name: x.Event}).EntersSafeMode():
		from := d.before
		if x.Event == ledger.MarkRebuilt || x.Event == ledger.MarkDamaged {
			from = time.Time{} // nothing is sure
		}
		if (d.safe || len(d.suspect) > 0) && d.last != nil && d.last.From.Before(from) {
			from = d.last.From
		}
		d.last, d.safe = &recovery.Doubt{From: from, Since: at}, true
	}
	d.before = at
	return nil
}

const (
	firstFollow = 2 * time.Second // after a comparison that left entries in doubt: folders are being packed
	lastFollow  = time.Hour
)

// follow compares again and again while entries are in doubt that an earlier comparison
// could not speak for. A person makes the first one: it ends safe mode.
func (d *Daemon) follow(ctx context.Context) {
	wait, look := 15*firstFollow, true
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-d.compared:
			wait, look = firstFollow, true
			continue
		case <-timer.C:
		}
		switch _, safe := d.ledger.SafeMode(); {
		case d.cfg.Archive == nil:
			return
		case safe: // a person makes the first one
		case look:
			look = d.followOnce(ctx)
		}
		wait = min(2*wait, lastFollow)
	}
}

// followOnce compares if an entry is in doubt. It returns whether one still is.
func (d *Daemon) followOnce(ctx context.Context) bool {
	doubt, err := lastDoubt(d.ledger)
	if doubt == nil {
		return err != nil
	}
	c, err := d.Reconcile(ctx, Person{UID: ledger.VaultdUID})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.cfg.Log.Warn("entries in doubt stay so", "err", err)
	case !c.Complete():
		d.cfg.Log.Warn("entries in doubt stay so", "why", c.incomplete(nil))
	case c.Cleared > 0:
		d.cfg.Log.Info("compared with the archive", "cleared", c.Cleared, "still_in_doubt", c.Waits)
		d.conductor.Wake()
	}
	return true
}
