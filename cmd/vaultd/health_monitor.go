package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/web"
)

const (
	monitorInterval = 5 * time.Second  // between two looks at how things stand
	factsPatience   = 3 * time.Second  // for the facts; then the last ones are told
	probePatience   = 2 * time.Second  // for one read of the ledger
	probeLimit      = 30 * time.Second // without one the ledger counts as dead
	factsLimit      = 30 * time.Second // after which old facts are themselves a fault
)

// healthMonitor gathers the state of the daemon every few seconds for the service manager and the health pages, and
// logs what began or ended, once.
type healthMonitor struct {
	h           *host
	facts       inFlightCall[healthFacts]
	ledgerProbe inFlightCall[error] // reads the ledger

	stalled        bool           // no progress was logged; used in run alone
	warnedLevel    map[string]int // used in run alone: by vault, the billing level that was logged
	lastStatusLine string         // the last status line; used in run alone
}

// healthFacts is what was gathered at one moment.
type healthFacts struct {
	web.Facts
	status present.StatusSummary
}

func newHealthMonitor(h *host) *healthMonitor {
	p := &healthMonitor{h: h, warnedLevel: map[string]int{}}
	p.facts.do, p.ledgerProbe.do = p.gatherFacts, p.probeLedger
	return p
}

// run checks again and again until ctx ends, and then waits for the calls that it started.
func (p *healthMonitor) run(ctx context.Context) error {
	defer p.facts.waitForEnd()
	defer p.ledgerProbe.waitForEnd()
	every := monitorInterval
	watchdog := p.h.notify.watchdogTimeout()
	if watchdog > 0 {
		every = min(every, watchdog/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.checkHealth(ctx, watchdog > 0)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return nil
}

func (p *healthMonitor) checkHealth(ctx context.Context, watchdog bool) {
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
	// Without this message the service manager kills and restarts vaultd. The next start goes on from the ledger.
	if watchdog && !dead {
		p.h.notify.notifyWatchdog()
	}
	p.warnOfBills(f.status.Billing)
	if line := p.h.statusLine(f); line != p.lastStatusLine {
		p.lastStatusLine = line
		p.h.notify.notifyStatus(line)
	}
}

// warnOfBills logs each step that an average has come nearer to its limit, once.
func (p *healthMonitor) warnOfBills(bills []present.Bill) {
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

// reopenPatience is how long a reload may keep the drops closed before it counts as a
// standstill: longer than an upload that nobody can be asked about may go on after all else has ended.
const reopenPatience = time.Minute

// isReopening reports whether drops are closed because the configuration is being reloaded.
func (g generation) isReopening() bool {
	return !g.reopening.IsZero() && time.Since(g.reopening) <= reopenPatience
}

// latestFacts returns the newest facts that can be had without hanging.
func (p *healthMonitor) latestFacts(ctx context.Context) healthFacts {
	f, at := p.facts.getResult(ctx, factsPatience)
	f.Dead = p.findStalls(ctx)
	f.Unfit = append([]string(nil), f.Unfit...)
	if at.IsZero() {
		f.Unfit = append(f.Unfit, "how it stands is not known yet")
	} else if old := time.Since(at); old > factsLimit {
		f.Unfit = append(f.Unfit, "this is how it stood "+present.FormatAge(old)+" ago: something hangs, perhaps a drop folder's file server")
	}
	return f
}

// findStalls says why the daemon makes no progress. It asks the loops themselves and reads the ledger: that
// this timer runs proves nothing about them.
func (p *healthMonitor) findStalls(ctx context.Context) []string {
	var why []string
	err, at := p.ledgerProbe.getResult(ctx, probePatience)
	switch {
	case !at.IsZero() && time.Since(at) > probeLimit:
		why = append(why, "the ledger has not answered for "+present.FormatAge(time.Since(at)))
	case err != nil:
		why = append(why, "the ledger cannot be read: "+err.Error())
	}
	now := p.h.currentGeneration()
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
func (p *healthMonitor) probeLedger(context.Context) error {
	l := p.h.currentGeneration().d.Ledger()
	if err := l.Err(); err != nil {
		return err
	}
	_, _, err := l.Entry(archive.NewKey(time.Now()))
	return err
}

// gatherFacts asks the ledger and the daemon. Nothing is counted here that a restart would forget.
func (p *healthMonitor) gatherFacts(ctx context.Context) healthFacts {
	now := p.h.currentGeneration()
	l, cfg, state := now.d.Ledger(), now.cfg, now.d.State()
	v := view{Clock: present.Clock{Now: time.Now(), Location: cfg.Location}, cfg: cfg, ledger: l, state: func() daemon.State { return state }}
	t := newEntryCounts(v)
	s, err := v.collectFacts(t, t.findLastSuccess, func(*boltledger.Ledger) error {
		if t.figuresLack = state.Catalog.Describe(); t.figuresLack != "" { // bills of the past
			return nil
		}
		return v.readBills(ctx, now.d.Catalog(), t)
	})
	head := l.Head()
	if err != nil {
		s.Damage = err.Error()
	}
	if now.isReopening() { // drop folders are closed for a moment, which is no fault
		for i := range s.Drops {
			s.Drops[i].IsPaused, s.Drops[i].Paused = false, ""
		}
		s.StalledDrops = nil
	}
	s.AddNeeds(v.Clock)
	g := healthFacts{status: s, Facts: web.Facts{
		At: v.Now, Version: s.Version, Go: runtime.Version(), Environment: l.Info().Environment,
		Balance: l.Balance(), LastSuccess: t.lastSuccess, SpoolUsed: state.Spool.Used, SpoolMax: s.Disk.SpoolMax, StateFree: s.Disk.LedgerFree,
		LedgerSize: fileSize(filepath.Join(cfg.StateDir, "ledger.db")), Lines: head.N, Syncs: l.SyncCount(),
		CatalogComplete: s.Figures == "", SafeMode: s.Safe != nil, Unfit: s.UnfitReasons(), NeedsPerson: s.CountNeeds(),
	}}
	g.Commits, g.Changes = l.CommitCounts()
	g.FileSyncs, g.DirectorySyncs = p.h.a.syncs.FileAndDirSyncs()
	g.Reloaded, g.ReloadGood = p.h.lastReload()
	g.addStatus()
	return g
}

// addStatus turns the summary into the numbers of the metrics.
func (g *healthFacts) addStatus() {
	s := g.status
	if s.Open.Oldest != nil {
		g.OldestOpen = *s.Open.Oldest
	}
	if k := s.Check; k != nil {
		g.Checked, g.CheckFindings = k.At, len(k.Ledger)+len(k.Files)
	}
	for _, p := range s.Pauses {
		g.Pauses = append(g.Pauses, web.Pause{Route: p.Route, Code: p.Code, Since: p.Since})
	}
	for _, d := range s.Drops {
		g.Drops = append(g.Drops, web.DropFacts{Name: d.Name, Paused: d.IsPaused, Listed: d.Listed, Free: d.Free})
	}
	for _, n := range s.NotTaken {
		g.NotTaken = append(g.NotTaken, web.NotTaken{Drop: n.Drop, Reason: n.Reason, Count: n.Count})
	}
	for _, b := range s.Billing {
		if b.Percent == "" { // no size is known
			continue
		}
		percent, _ := strconv.ParseFloat(b.Percent, 64) // billing writes decimals
		g.Bills = append(g.Bills, web.Bill{Vault: b.Vault, Used: percent / 100})
	}
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}
