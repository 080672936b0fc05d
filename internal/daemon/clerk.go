package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/watch"
)

const (
	statusShare   = 10               // of them may be written between two looks, however much happens
	statusAtLeast = 5 * time.Minute  // its time tells whether vaultd lives
	statusLook    = 30 * time.Second // for what nobody tells of: a person's act, a pause that lasts
	delayedAfter  = 30 * time.Second // a shorter pause is no delay that a person should read of
	remindAfter   = 30 * time.Minute // where the drop does not say
)

// clerk keeps one drop folder's _STATUS.txt: what people who drop folders should know.
// It has no say in anything. What it remembers is counted anew at the next start.
type clerk struct {
	d    *Daemon
	drop *dropwork.Drop
	wake chan struct{} // size 1: something may have changed

	looked  time.Time       // when it was last made up, written or not; the loop's alone
	written time.Time       // of the last _STATUS.txt; the loop's alone
	body    string          // what it said beside the time; the loop's alone
	told    map[string]told // faults that were logged, by folder; the loop's alone
	failed  string          // why the last one could not be written; the loop's alone
	formIn  *drop.Folder    // where the template was looked after; the loop's alone

	mu  sync.Mutex
	day today // guarded by mu
}

func newClerk(d *Daemon, drop *dropwork.Drop) *clerk {
	return &clerk{d: d, drop: drop, wake: make(chan struct{}, 1), told: map[string]told{}, day: today{recalling: true}}
}

// poke says that something may have changed. It never blocks.
func (c *clerk) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// listenToCommits tells everybody who must know of what the ledger commits, until stop is called. A new reader of commits is one line here.
func (d *Daemon) listenToCommits() (stop func()) {
	stops := []func(){
		d.ledger.Listen(func(rs []ledger.Result) { d.disk.LedgerGrew(len(rs)) }),
		d.ledger.Listen(d.shared.Returned.Committed),
		d.ledger.Listen(d.updateStatusFiles),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// paused tells the clerks of a pause, and asks for the list of vaults where the service refuses one of them.
func (d *Daemon) paused(p ingest.Pause) {
	for _, r := range d.drops {
		if d.clerks[r.Settings.Name].concerns(p.Target) {
			d.clerks[r.Settings.Name].poke()
		}
		if p.Target == ingest.RegisterTarget(r.Settings.Vault) && (p.NeedsPerson() || p.Cause.Code == "http-404") {
			d.listed.hurry(r.Settings.Account)
		}
	}
}

func (d *Daemon) updateStatusFiles(rs []ledger.Result) {
	for _, res := range rs {
		if res.Err != nil {
			continue
		}
		for _, r := range d.drops {
			if r.Settings.Name == res.Entry.Drop {
				d.clerks[r.Settings.Name].hear(res.Entry, d.cfg.Now().Wall)
			}
		}
	}
}

// hear takes note of a committed entry.
func (c *clerk) hear(e ledger.Entry, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.day.count(e, now.In(c.d.location()))
	c.poke()
}

// run keeps _STATUS.txt true until ctx ends, and leaves it as things stand then.
func (c *clerk) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			c.inform()
			return
		case <-timer.C:
		case <-c.wake:
			if wait := time.Until(c.looked.Add(c.d.cfg.statusLook() / statusShare)); wait > 0 {
				timer.Reset(wait)
				c.wait(ctx, timer)
			}
		}
		c.inform()
		timer.Reset(c.d.cfg.statusLook())
	}
}

func (c Config) statusLook() time.Duration { return cmp.Or(c.StatusLook, statusLook) }

func (c *clerk) wait(ctx context.Context, timer *time.Timer) {
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// inform writes _STATUS.txt where it would say something new, or is old. Where the drop
// folder cannot be worked in, nothing is written: it may be another one; nor while it is not
// known yet what happened earlier today.
func (c *clerk) inform() {
	if c.recalling() {
		return
	}
	now := time.Now()
	c.looked = now
	f, done, err := c.drop.Hold()
	if err != nil {
		return
	}
	defer done()
	c.template(f)
	p, err := c.page()
	if err != nil {
		return // the ledger has failed, and the process is about to end for it
	}
	body := p.body()
	if body == c.body && now.Sub(c.written) < statusAtLeast-statusLook || f.CheckStillOurs() != nil {
		return
	}
	err = f.WriteStatusFile(p.head() + body)
	if text := fmt.Sprint(err); err != nil && text != c.failed {
		c.d.cfg.Log.Error("status for people not written", "drop", c.drop.Settings.Name, "err", err)
	}
	c.failed = ""
	if err != nil {
		c.failed = err.Error()
		return
	}
	c.body, c.written = body, now
}

// page gathers what people should know.
func (c *clerk) page() (page, error) {
	now := c.d.cfg.Now().Wall.In(c.d.location())
	p := page{Drop: c.drop.Settings.Name, Now: now, Test: c.d.cfg.Environment != "production", Sidecar: c.drop.Settings.Rules.Sidecar}
	part, err := c.d.survey.of(c.d.ledger, c.drop.Settings.Name)
	if err != nil {
		return p, err
	}
	p.ledger(part)
	c.mu.Lock()
	p.Today = c.day.on(now)
	c.mu.Unlock()
	full := c.d.disk.FullSince()
	p.Delayed = full
	if safe, is := c.d.ledger.SafeMode(); is {
		p.Delayed, p.Stopped = first(p.Delayed, safe.Since), true
	}
	for _, pause := range c.d.conductor.Pauses() {
		if c.concerns(pause.Target) && (pause.NeedsPerson() || now.Sub(pause.Since) >= delayedAfter) {
			p.Delayed = first(p.Delayed, pause.Since)
		}
	}
	snap := c.drop.Snapshot()
	c.tell(snap)
	p.notTaken(snap, c.drop.Settings.Reminder(), !full.IsZero())
	if p.Duplicates, err = c.duplicates(p.Today); err != nil {
		return p, err
	}
	err = c.unusual(&p, part)
	return p, err
}

// tell logs each fault of rights or devices once, and once for all folders that the
// drop's own disk has no room: an administrator must act.
func (c *clerk) tell(s watch.Snapshot) {
	now := c.d.cfg.Now().Wall
	for name, t := range c.told {
		if now.Sub(t.seen) > forgotten {
			delete(c.told, name)
		}
	}
	for _, w := range s.NotTaken {
		switch w.Reason {
		case watch.NoRight, watch.OtherDevice, watch.ReadOnly, watch.Failed:
		case watch.NoRoom:
			c.tellFull(w, now)
			continue
		default:
			continue
		}
		for _, n := range w.Items {
			if c.news(n.Name, w.Reason, now) {
				c.d.cfg.Log.Error("folder not taken", "drop", c.drop.Settings.Name, "reason", string(w.Reason), "since", n.FirstSeen, "err", n.Detail)
			}
		}
	}
}

// told is a fault that was logged. It is remembered a while after it was last seen: between two tries a folder is being
// looked at, or taken, and bears no fault.
type told struct {
	reason watch.Reason
	seen   time.Time
}

const forgotten = 10 * time.Minute

// news notes that a folder has a fault, and tells whether that was not told yet.
func (c *clerk) news(name string, r watch.Reason, now time.Time) bool {
	before := c.told[name]
	c.told[name] = told{r, now}
	return before.reason != r
}

// tellFull logs once for all folders that the drop's own disk is full; that vaultd's is
// was told elsewhere.
func (c *clerk) tellFull(w watch.NotTakenGroup, now time.Time) {
	const all = "\x00" // the name of no folder
	if !c.d.disk.FullSince().IsZero() || len(w.Items) == 0 {
		return
	}
	if c.news(all, w.Reason, now) {
		c.d.cfg.Log.Error("nothing is taken: the disk of the drop folder is full", "drop", c.drop.Settings.Name, "err", w.Items[0].Detail)
	}
}

// duplicates says for today's last duplicates what they repeat.
func (c *clerk) duplicates(t today) (lines []line, err error) {
	for _, d := range t.doubles {
		first, ok, err := c.d.ledger.Entry(d.first)
		if err != nil {
			return nil, err
		}
		text := "nothing to do"
		if ok && !first.ArchivedAt.IsZero() {
			text = "archived " + first.ArchivedAt.In(c.d.location()).Format("2 Jan 2006") + ", nothing to do"
		}
		lines = append(lines, line{d.folder, text})
	}
	return lines, nil
}

// unusual says of what was archived of late what a person should look at, the newest first.
func (c *clerk) unusual(p *page, part *part) error {
	for _, e := range slices.Backward(part.checks) {
		lines, err := c.drop.DescribeUnusual(e)
		if err != nil {
			return err
		}
		p.Unusual.add(e.Folder, strings.Join(lines, "; "))
	}
	p.Unusual.count = part.unusual
	return nil
}

// first returns the earlier of two times; zero is none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// concerns reports whether the folders of this drop wait while the circuit breaker of t is open.
func (c *clerk) concerns(t ingest.Target) bool {
	switch t {
	case ingest.RegisterTarget(c.drop.Settings.Vault), ingest.UploadTarget(c.drop.Settings.Vault), ingest.SpoolTarget(), ingest.DropTarget(c.drop.Settings.Name):
		return true
	}
	return false
}
