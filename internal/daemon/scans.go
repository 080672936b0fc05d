package daemon

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/watch"
)

const (
	scanEvery = 30 * time.Second // between two looks at whether something new is to be stored
	scanEnd   = 10 * time.Second // for the last one, when vaultd ends
)

// scans keeps in the ledger what the drop folders hold that was not taken. The watchers forget it with the process; the
// ledger knows since when each thing lies there.
type scans struct {
	warned map[string]bool      // overdue things that were logged, by drop and name; the loop's alone
	noted  map[string]time.Time // when vaultd looked into a drop, as its mark says; the loop's alone

	mu     sync.Mutex
	stored map[string]ledger.Scan // by drop, as the ledger has it; guarded by mu
}

// recallScans reads what an earlier process saw. Records that cannot be read keep nobody from working: the check of the
// whole ledger tells of the damage, and the watchers look again.
func (d *Daemon) recallScans() {
	all, err := d.ledger.Scans()
	if err != nil {
		d.cfg.Log.Error("since when things lie in the drop folders is not known any more", "err", err)
	}
	d.scans.stored, d.scans.warned, d.scans.noted = map[string]ledger.Scan{}, map[string]bool{}, map[string]time.Time{}
	for _, s := range all {
		d.scans.stored[s.Drop] = s
	}
}

// seen says since when what is in a drop folder is known, for a new watcher.
func (s *scans) seen(drop Drop) map[string]time.Time {
	scan, _ := s.of(drop)
	since := map[string]time.Time{}
	for _, p := range scan.Pending {
		since[p.Name] = p.Since
	}
	return since
}

// keepScans stores what changed, again and again until ctx ends, and then once more: so that the ledger knows how the drop
// folders were left, and when. While nothing changes nothing is committed: when vaultd looked stands outside the ledger then.
func (d *Daemon) keepScans(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(d.cfg.StatusLook, scanEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), scanEnd)
			defer stop()
			_ = d.storeScans(last, true) // a ledger that failed says so itself
			return
		case <-tick.C:
		}
		d.warnPending()
		if d.storeScans(ctx, false) == nil && !d.disk.IsBlocked() { // a ledger that failed says so itself
			d.noteLooks()
		}
	}
}

// noteEvery is how often the time of the last look is noted outside the ledger.
const noteEvery = 10 * time.Minute

// noteLooks notes when vaultd last looked into each drop folder: as the time of change of the folder's mark in the state
// directory, which costs no sync. It runs after what was seen is stored, so that the ledger is never behind it.
func (d *Daemon) noteLooks() {
	for _, r := range d.drops {
		stored, known := d.scans.of(r.cfg)
		looked := inStored(r.watcher.Snapshot().LastRescan)
		if !known || stored.Fault != "" || looked.Sub(d.scans.noted[r.cfg.Name]) < noteEvery || looked.After(d.cfg.Now().Wall) {
			continue
		}
		d.scans.noted[r.cfg.Name] = looked
		// A time that a power cut loses makes the last look seem earlier than it was, never later.
		if err := os.Chtimes(r.marker(), looked, looked); err != nil {
			d.cfg.Log.Warn("when vaultd last looked is not noted", "drop", r.cfg.Name, "err", err)
		}
	}
}

// LastLook returns when vaultd last looked into the drop folder at path, as far as its mark in the state directory tells; zero:
// it tells nothing. It is good for ledgers that have a scan of the drop: the mark is made before the first look.
func LastLook(stateDir, path string) time.Time {
	info, err := os.Lstat(markerOf(stateDir, path))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// storeScans stores what the drop folders hold that was not taken, where it is not what the ledger has; with all, also how
// recently that was seen. It waits for the commit. Where the disk is kept for what is under way it stores nothing.
func (d *Daemon) storeScans(ctx context.Context, all bool) error {
	if d.disk.IsBlocked() {
		return nil
	}
	var fresh []ledger.Scan
	for _, r := range d.drops {
		now := r.scan(r.standing())
		before, known := d.scans.of(r.cfg)
		if !known || all && now.LastScan.After(before.LastScan) || !sameScan(now, before) {
			fresh = append(fresh, now)
		}
	}
	if len(fresh) > 0 {
		// After a crash before this commit the ledger has the scan before: the next start looks again, and what was first seen since
		// then counts as first seen at that start.
		if err := d.ledger.PutScans(ctx, fresh...); err != nil {
			return err
		}
	}
	d.scans.mu.Lock()
	defer d.scans.mu.Unlock()
	for _, s := range fresh {
		d.scans.stored[s.Drop] = s
	}
	return nil
}

// of returns the scan of a drop as the ledger has it; known is false where the ledger has none of that name. A drop that has
// another name now is known by its path.
func (s *scans) of(drop Drop) (scan ledger.Scan, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if scan, known = s.stored[drop.Name]; known {
		return scan, true
	}
	for _, former := range s.stored {
		if former.Path == drop.Path {
			return former, false
		}
	}
	return ledger.Scan{}, false
}

// sameScan reports whether two scans tell the same. When vaultd looked does not count, nor do the words of a failed attempt,
// which may differ each time.
func sameScan(a, b ledger.Scan) bool {
	same := a.Path == b.Path && a.Vault == b.Vault && a.RemindAfter == b.RemindAfter && (a.Fault == "") == (b.Fault == "") && a.Unnamed == b.Unnamed
	return same && slices.EqualFunc(a.Pending, b.Pending, func(x, y ledger.PendingItem) bool {
		words := x.Detail == y.Detail || x.Reason == string(watch.Failed) || x.Reason == string(watch.Busy)
		return x.Name == y.Name && x.Reason == y.Reason && words && x.Since.Equal(y.Since)
	})
}

// scan makes of what the watcher and the probe know what the ledger keeps. Before the first look, and while the drop folder
// cannot be read, what was known before stays: nobody knows better.
func (r *room) scan(now DropState) ledger.Scan {
	before, _ := r.d.scans.of(r.cfg)
	at := inStored(r.d.cfg.Now().Wall)
	s := ledger.Scan{Drop: r.cfg.Name, Path: r.cfg.Path, Vault: r.cfg.Vault, RemindAfter: r.remind(), LastScan: earlier(inStored(now.Watch.LastRescan), at), Fault: now.Paused}
	if s.Fault == "" && now.Watch.Paused != nil {
		s.Fault = now.Watch.Paused.Error()
	}
	if s.Fault != "" {
		s.FaultSince = at
		if before.Fault != "" {
			s.FaultSince = earlier(before.FaultSince, at)
		}
	}
	if s.LastScan.IsZero() {
		s.LastScan, s.Pending, s.Unnamed, s.UnnamedSince = before.LastScan, before.Pending, before.Unnamed, before.UnnamedSince
		return s
	}
	for _, w := range now.Watch.NotTaken {
		for _, n := range w.Items {
			p := ledger.PendingItem{Name: n.Name, Reason: string(w.Reason), Detail: n.Detail, Since: inStored(n.FirstSeen), NeedsPerson: needsHand(w.Reason)}
			if p.Detail == "" && w.Reason == watch.NoSidecar {
				p.Detail = "no " + r.cfg.Rules.Sidecar
			}
			s.Pending = append(s.Pending, p)
		}
		s.Unnamed += uint64(w.Count - len(w.Items))
	}
	firstSightings(&s, before, at)
	slices.SortFunc(s.Pending, func(a, b ledger.PendingItem) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name))
	})
	if n := len(s.Pending); n > ledger.MaxPending {
		s.Pending, s.Unnamed = slices.Clone(s.Pending[:ledger.MaxPending]), s.Unnamed+uint64(n-ledger.MaxPending)
	}
	if s.UnnamedSince = (time.Time{}); s.Unnamed > 0 {
		s.UnnamedSince = at
		if before.Unnamed > 0 {
			s.UnnamedSince = earlier(before.UnnamedSince, at)
		}
	}
	return s
}

// firstSightings corrects since when things are there. No time is in the future: a clock was set back then. And a thing that has a
// name only now, where there were more than have names before, may have been among those all the time.
func firstSightings(now *ledger.Scan, before ledger.Scan, at time.Time) {
	known := map[string]time.Time{}
	for _, p := range before.Pending {
		known[p.Name] = p.Since
	}
	for i := range now.Pending {
		p := &now.Pending[i]
		p.Since = earlier(p.Since, at)
		if since, ok := known[p.Name]; ok {
			p.Since = earlier(p.Since, since)
		} else if before.Unnamed > 0 {
			p.Since = earlier(p.Since, before.UnnamedSince)
		}
	}
}

// earlier returns the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// inStored is a time as the ledger gives it back.
func inStored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// needsHand reports whether what is not taken for that reason waits for a person. The others are taken by themselves, or
// what holds them up is told on its own.
func needsHand(r watch.Reason) bool {
	switch r {
	case watch.Copying, watch.Queued, watch.Held, watch.NoRoom:
		return false
	}
	return true
}

// warnPending logs what has come to need a person because it was not taken for longer than remind_after: each thing once,
// and by its reason. Names of folders never stand in the log.
func (d *Daemon) warnPending() {
	now, still := d.cfg.Now().Wall, map[string]bool{}
	for _, r := range d.drops {
		named, more := r.scan(r.standing()).ItemsForPerson(now, r.remind())
		fresh := map[string]int{}
		for _, p := range named {
			id := r.cfg.Name + "/" + p.Name
			if still[id] = true; !d.scans.warned[id] {
				fresh[p.Reason]++
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(fresh)) {
			d.cfg.Log.Warn("not taken for longer than remind_after", "drop", r.cfg.Name, "reason", reason, "new", fresh[reason],
				"all", uint64(len(named))+more, "remind_after", r.remind().String())
		}
	}
	d.scans.warned = still
}
