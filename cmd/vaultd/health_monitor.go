package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/watch"
	"vaultd/internal/web"
)

const (
	monitorInterval = 5 * time.Second  // between two looks at how things stand
	factsPatience   = 3 * time.Second  // for the facts; then the last ones are told
	probePatience   = 2 * time.Second  // for one read of the ledger
	probeLimit      = 30 * time.Second // without one the ledger counts as dead
	factsLimit      = 30 * time.Second // after which old facts are themselves a fault
	pausePatience   = 30 * time.Second // of a pause before it makes vaultd unfit: most end by themselves
)

// healthMonitor watches how the daemon stands, and tells it: to the service manager, to the pages, and
// once to the log where something began or ended.
type healthMonitor struct {
	h           *host
	facts       flight[healthFacts]
	ledgerProbe flight[error] // reads the ledger

	lastSuccess    lastSuccess    // used in facts alone
	stalled        bool           // no progress was logged; used in run alone
	warnedLevel    map[string]int // used in run alone: by vault, the billing level that was logged
	lastStatusLine string         // the last status line; used in run alone
}

// healthFacts is what one look found.
type healthFacts struct {
	web.Facts
	bills []Bill // of this year, as status shows them
}

func newHealthMonitor(h *host) *healthMonitor {
	p := &healthMonitor{h: h, warnedLevel: map[string]int{}}
	p.facts.do, p.ledgerProbe.do = p.gatherFacts, p.probeLedger
	return p
}

// run looks again and again until ctx ends, and then waits for what it began.
func (p *healthMonitor) run(ctx context.Context) error {
	defer p.facts.wait()
	defer p.ledgerProbe.wait()
	every := monitorInterval
	watchdog := p.h.notify.watchdog()
	if watchdog > 0 {
		every = min(every, watchdog/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.beat(ctx, watchdog > 0)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

func (p *healthMonitor) beat(ctx context.Context, watchdog bool) {
	f := p.latestFacts(ctx)
	if ctx.Err() != nil {
		return
	}
	dead := len(f.Dead) > 0
	if dead != p.stalled {
		p.stalled = dead
		if dead {
			p.h.log.Error("no progress", "why", strings.Join(f.Dead, "; "))
		} else {
			p.h.log.Info("progress again")
		}
	}
	if watchdog && !dead {
		p.h.notify.alive()
	}
	p.warnOfBills(f.bills)
	if line := p.h.statusLine(f); line != p.lastStatusLine {
		p.lastStatusLine = line
		p.h.notify.status(line)
	}
}

// warnOfBills logs each step that an average has come nearer to its limit, once.
func (p *healthMonitor) warnOfBills(bills []Bill) {
	for _, b := range bills {
		id := strconv.Itoa(b.Year) + " " + b.Vault
		if b.Level <= p.warnedLevel[id] {
			continue
		}
		p.warnedLevel[id] = b.Level
		what := "included storage is nearly used"
		if b.Level >= 100 {
			what = "included storage is used up"
		}
		p.h.log.Warn(what, "vault", b.Vault, "year", b.Year, "level", b.Level, "percent", b.Percent, "average_mb", b.AverageMB, "transactions", b.Transactions)
	}
}

// reopenPatience is how long drops may rest for a new configuration before it counts
// as standing still.
const reopenPatience = 30 * time.Second

// isReopening reports whether drops rest because the configuration is just being changed.
func (g generation) isReopening() bool {
	return !g.reopening.IsZero() && time.Since(g.reopening) <= reopenPatience
}

// latestFacts returns the newest facts that can be had without hanging.
func (p *healthMonitor) latestFacts(ctx context.Context) healthFacts {
	f, at := p.facts.get(ctx, factsPatience)
	f.Dead = p.findStalls(ctx)
	f.Unfit = append([]string(nil), f.Unfit...)
	if at.IsZero() {
		f.Unfit = append(f.Unfit, "how it stands is not known yet")
	} else if old := time.Since(at); old > factsLimit {
		f.Unfit = append(f.Unfit, "this is how it stood "+present.FormatAge(old)+" ago: something hangs, perhaps a drop folder's file server")
	}
	return f
}

// factsForPages is look for the pages.
func (p *healthMonitor) factsForPages(ctx context.Context) func() web.Facts {
	return func() web.Facts { return p.latestFacts(ctx).Facts }
}

// findStalls says why the daemon makes no progress. It is fed by the loops themselves and by a read
// of the ledger, never by this timer alone.
func (p *healthMonitor) findStalls(ctx context.Context) []string {
	var why []string
	err, at := p.ledgerProbe.get(ctx, probePatience)
	switch {
	case !at.IsZero() && time.Since(at) > probeLimit:
		why = append(why, "the ledger has not answered for "+present.FormatAge(time.Since(at)))
	case err != nil:
		why = append(why, "the ledger cannot be read: "+err.Error())
	}
	now := p.h.current()
	if !now.reopening.IsZero() {
		if took := time.Since(now.reopening); took > reopenPatience {
			why = append(why, "the reload has stood still for "+present.FormatAge(took))
		}
		return why
	}
	if progress := now.d.Progress(); progress.Hangs() {
		for _, s := range progress.Stalls {
			why = append(why, s.What+" has stood still for "+present.FormatAge(time.Since(s.Since)))
		}
	}
	return why
}

// probeLedger is the smallest read that goes all the way into the ledger.
func (p *healthMonitor) probeLedger() error {
	l := p.h.current().d.Ledger()
	if err := l.Err(); err != nil {
		return err
	}
	_, _, err := l.Entry(archive.NewKey(time.Now()))
	return err
}

// gatherFacts asks the ledger and the daemon. Nothing is counted here that a restart would forget.
func (p *healthMonitor) gatherFacts() healthFacts {
	now := p.h.current()
	l, cfg := now.d.Ledger(), now.cfg
	info, head := l.Info(), l.Head()
	g := healthFacts{Facts: web.Facts{
		At: time.Now(), Version: buildVersion(), Go: runtime.Version(), Environment: info.Environment,
		Balance: l.Balance(), SpoolMax: cfg.Spool.Max, StateFree: diskFree(cfg.StateDir), LedgerSize: fileSize(filepath.Join(cfg.StateDir, "ledger.db")),
		Lines: head.N, Syncs: l.SyncCount(),
	}}
	g.Commits, g.Changes = l.CommitCounts()
	g.FileSyncs, g.DirectorySyncs = p.h.a.syncs.FileAndDirSyncs()
	g.Reloaded, g.ReloadGood = p.h.reloaded()
	v := view{Clock: present.Clock{Now: g.At, Location: cfg.Location}, cfg: cfg, ledger: l}
	t := newEntryCounts(v)
	err := t.countAttention(l)
	if err == nil {
		g.LastSuccess, err = p.lastSuccess.find(l, t, head.N)
	}
	g.OldestOpen = t.oldest
	g.NeedsPerson = map[string]int{"rejected": t.rejected.count, "quarantined": t.quarantined.count, "undecided": t.undecided.count, "unreadable": t.unreadable.count,
		"contradicted": t.contradicted.count, "archived-twice": t.archivedTwice.count, "kept-differs": t.keptDiffers.count, "overdue": t.overdue.count,
		"same-number": t.sameNumber.count, "strange-date": t.strangeDate.count}
	for _, d := range now.d.State().Drops {
		named, more := d.Scan.ItemsForPerson(g.At, d.RemindAfter)
		g.NeedsPerson["not-taken"] += len(named) + int(more)
	}
	if err == nil {
		g.bills, err = billsOfThisYear(v)
	}
	for _, b := range g.bills {
		if b.Percent == "" { // no size is known
			continue
		}
		percent, _ := strconv.ParseFloat(b.Percent, 64) // billing writes decimals
		g.Bills = append(g.Bills, web.Bill{Vault: b.Vault, Used: percent / 100})
	}
	g.addLiveState(now)
	g.addUnfitReasons(t, cfg.Status.AlertAfter, err)
	return g
}

// addLiveState adds what only a running daemon knows.
func (g *healthFacts) addLiveState(now generation) {
	s := now.d.State()
	g.addSafety(now.d.Ledger(), s.Check)
	g.SpoolUsed = s.Spool.Used
	if s.Taken > 0 {
		g.Unfit = append(g.Unfit, takenOverWords(s.Taken))
	}
	switch {
	case s.Spool.Stands:
		g.Unfit = append(g.Unfit, "the disk of state_dir is full: nothing is taken, sent or asked")
	case !s.Spool.Full.IsZero():
		g.Unfit = append(g.Unfit, "the disk of state_dir has less than min_free: nothing new is taken")
	}
	for _, r := range s.Pauses {
		g.Pauses = append(g.Pauses, web.Pause{Route: r.Target.String(), Code: r.Cause.Code, Since: r.Since})
	}
	for _, d := range s.Drops {
		g.Drops = append(g.Drops, web.Drop{Name: d.Name, Paused: !now.isReopening() && (d.Paused != "" || d.Watch.Paused != nil), Listed: d.Watch.LastRescan, Free: d.Free})
		for _, n := range d.Watch.NotTaken {
			g.NotTaken = append(g.NotTaken, web.NotTaken{Drop: d.Name, Reason: string(n.Reason), Count: n.Count})
		}
	}
	for _, stall := range now.d.Progress().Stalls {
		if stall.Drop && !now.isReopening() {
			g.Unfit = append(g.Unfit, stall.What+" has not been looked through for "+present.FormatAge(g.At.Sub(stall.Since)))
		}
	}
}

// addUnfitReasons says what keeps folders from being archived.
func (g *healthFacts) addUnfitReasons(t *entryCounts, alertAfter time.Duration, err error) {
	add := func(format string, a ...any) { g.Unfit = append(g.Unfit, fmt.Sprintf(format, a...)) }
	if err != nil {
		add("the ledger cannot be read: %v", err)
	}
	if !g.Balance.IsBalanced() {
		add("the balance does not agree")
	}
	for _, r := range g.Pauses {
		target, _ := ingest.ParseTarget(r.Route) // these are the words of a target
		person := ingest.Pause{Target: target, Cause: ledger.Cause{Code: r.Code}}.NeedsPerson()
		if person || g.At.Sub(r.Since) >= pausePatience {
			add("%s paused since %s (%s)", r.Route, t.Brief(r.Since), r.Code)
		}
	}
	for _, d := range g.Drops {
		if d.Paused {
			add("drop %s paused", d.Name)
		}
	}
	for _, n := range g.NotTaken {
		switch watch.Reason(n.Reason) {
		case watch.NoRight, watch.ReadOnly, watch.OtherDevice, watch.NoRoom, watch.Failed:
			add("drop %s: %d not taken (%s)", n.Drop, n.Count, n.Reason)
		}
	}
	if n := t.overdue.count; n > 0 {
		add("%s open for longer than %s", present.FormatCount(n, "folder", "folders"), present.FormatAge(alertAfter))
	}
	if n := t.contradicted.count; n > 0 {
		add("%s contradicted by the archive", present.FormatCount(n, "folder", "folders"))
	}
}

// billsOfThisYear are the bills of this year.
func billsOfThisYear(v view) ([]Bill, error) {
	all, err := calculateBills(v.ledger, v.cfg, v.Now)
	var lines []Bill
	for _, b := range all {
		if b.Year == v.Now.In(v.Location).Year() {
			lines = append(lines, NewBill(b))
		}
	}
	return lines, err
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// lastSuccess finds when the journal last told of a folder that was archived. It reads only
// lines that are new; what was before them the ledger's totals tell.
type lastSuccess struct {
	mu   sync.Mutex
	upTo uint64    // guarded by mu
	at   time.Time // guarded by mu
}

// find looks at the lines up to head.
func (s *lastSuccess) find(l *boltledger.Ledger, t *entryCounts, head uint64) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.upTo == 0 {
		if err := t.findLastSuccess(l); err != nil {
			return s.at, err
		}
		s.at, s.upTo = t.lastSuccess, head
	}
	const first = 1000
	upper := head
	for span := uint64(first); upper > s.upTo; span *= 4 {
		from := max(s.upTo, upper-min(span, upper)) + 1
		at, err := newestSuccess(l, from, upper)
		if err != nil {
			return s.at, err
		}
		if !at.IsZero() {
			s.at = at
			break
		}
		upper = from - 1
	}
	s.upTo = head
	return s.at, nil
}

// newestSuccess returns the time of the last line in a range by which an entry became archived.
func newestSuccess(l *boltledger.Ledger, from, to uint64) (at time.Time, err error) {
	err = l.Lines(from, func(n uint64, line []byte) error {
		if n > to {
			return errEnough
		}
		if !bytes.Contains(line, []byte(`"event":"status-seen"`)) || !bytes.Contains(line, []byte(`"state":"archived"`)) {
			return nil
		}
		parsed, err := ledger.ParseLine(line)
		if err != nil {
			return err
		}
		at, err = time.Parse(time.RFC3339, parsed.At)
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return at, err
}
