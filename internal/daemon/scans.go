package daemon

import (
	"cmp"
	"context"
	"maps"
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
	storing sync.Mutex      // held while scans are being stored: one after the other
	warned  map[string]bool // overdue things that were logged, by drop and name; the loop's alone

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
	d.scans.stored, d.scans.warned = map[string]ledger.Scan{}, map[string]bool{}
	for _, s := range all {
		d.scans.stored[s.Drop] = s
	}
}

// seen says since when what lies in a drop folder is known, for a new watcher.
func (s *scans) seen(drop string) map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := map[string]time.Time{}
	for _, p := range s.stored[drop].Pending {
		since[p.Name] = p.Since
	}
	return since
}

// keepScans stores what changed, again and again until ctx ends, and then once more: so that the ledger knows how the drop
// folders were left, and when. While nothing changes nothing is written: after a crash the ledger knows of the last change, and
// not of the looks since.
func (d *Daemon) keepScans(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(d.cfg.StatusLook, scanEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), scanEnd)
			defer stop()
			_ = d.StoreScans(last, true) // a ledger that failed says so itself
			return
		case <-tick.C:
		}
		d.warnPending()
		_ = d.StoreScans(ctx, false) // a ledger that failed says so itself
	}
}

// StoreScans stores what the drop folders hold that was not taken, where it is not what the ledger has; with all, also how
// recently that was seen. It waits for the commit. Where the disk is kept for what is under way it stores nothing.
func (d *Daemon) StoreScans(ctx context.Context, all bool) error {
	if d.disk.idle() {
		return nil
	}
	d.scans.storing.Lock()
	defer d.scans.storing.Unlock()
	var fresh []ledger.Scan
	for _, now := range d.Scans() {
		before, known := d.scans.of(now.Drop)
		if !known || all && now.Looked.After(before.Looked) || !sameScan(now, before) {
			fresh = append(fresh, now)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := d.ledger.PutScans(ctx, fresh...); err != nil {
		return err
	}
	d.scans.mu.Lock()
	defer d.scans.mu.Unlock()
	for _, s := range fresh {
		d.scans.stored[s.Drop] = s
	}
	return nil
}

// of returns the scan of a drop as the ledger has it.
func (s *scans) of(drop string) (ledger.Scan, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scan, ok := s.stored[drop]
	return scan, ok
}

// sameScan reports whether two scans tell the same. When vaultd looked does not count, nor do the words about a thing:
// those of a failed attempt may differ each time.
func sameScan(a, b ledger.Scan) bool {
	return (a.Fault == "") == (b.Fault == "") && a.More == b.More && slices.EqualFunc(a.Pending, b.Pending, func(x, y ledger.PendingItem) bool {
		return x.Name == y.Name && x.Reason == y.Reason && x.Since.Equal(y.Since)
	})
}

// Scans returns what the drop folders hold that was not taken, as the watchers know it now.
func (d *Daemon) Scans() []ledger.Scan {
	var all []ledger.Scan
	for _, r := range d.drops {
		all = append(all, r.scan(r.standing()))
	}
	return all
}

// scan makes of what the watcher and the probe know what the ledger keeps. Before the first look, and while the drop folder
// cannot be read, what was known before stays: nobody knows better.
func (r *room) scan(now DropState) ledger.Scan {
	before, _ := r.d.scans.of(r.cfg.Name)
	s := ledger.Scan{Drop: r.cfg.Name, Looked: inStored(now.Watch.Listed), Fault: now.Paused}
	if s.Fault == "" && now.Watch.Paused != nil {
		s.Fault = now.Watch.Paused.Error()
	}
	if s.Fault != "" {
		s.Failed = inStored(r.d.cfg.Now().Wall)
		if before.Fault != "" {
			s.Failed = before.Failed
		}
	}
	if s.Looked.IsZero() {
		s.Looked, s.Pending, s.More, s.Since = before.Looked, before.Pending, before.More, before.Since
		return s
	}
	for _, w := range now.Watch.NotTaken {
		for _, n := range w.Names {
			s.Pending = append(s.Pending, ledger.PendingItem{
				Name: n.Name, Reason: string(w.Reason), Detail: n.Detail, Since: inStored(n.Since), Person: needsHand(w.Reason),
			})
		}
		s.More += uint64(w.Count - len(w.Names))
	}
	slices.SortFunc(s.Pending, func(a, b ledger.PendingItem) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name))
	})
	if n := len(s.Pending); n > ledger.MostPending {
		s.Pending, s.More = slices.Clone(s.Pending[:ledger.MostPending]), s.More+uint64(n-ledger.MostPending)
	}
	if s.More > 0 {
		s.Since = inStored(r.d.cfg.Now().Wall)
		if before.More > 0 {
			s.Since = before.Since
		}
	}
	return s
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
		named, more := r.scan(r.standing()).NeedsPerson(now, r.remind())
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
