package dropwork

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

// lastScanTimeout is for the last scan to be stored, when vaultd ends.
const lastScanTimeout = 10 * time.Second

// Scans keeps in the ledger what the drop folders hold that was not taken. The watchers forget it with the process; the
// ledger knows since when each thing lies there.
type Scans struct {
	shared  *Shared
	warned  map[string]bool      // overdue things that were logged, by drop and name; the loop's alone
	notedAt map[string]time.Time // when vaultd looked into a drop, as its marker says; the loop's alone

	mu     sync.Mutex
	stored map[string]ledger.Scan // by drop, as the ledger has it; guarded by mu
}

// NewScans reads what an earlier process saw. Records that cannot be read keep nobody from working: the check of the
// whole ledger logs the damage, and the watchers look again.
func NewScans(shared *Shared) *Scans {
	s := &Scans{shared: shared, warned: map[string]bool{}, notedAt: map[string]time.Time{}, stored: map[string]ledger.Scan{}}
	all, err := shared.Ledger.Scans()
	if err != nil {
		shared.Log.Error("since when things lie in the drop folders is not known any more", "err", err)
	}
	for _, scan := range all {
		s.stored[scan.Drop] = scan
	}
	return s
}

// firstSeen says since when what is in a drop folder is known, for a new watcher.
func (s *Scans) firstSeen(drop Settings) map[string]time.Time {
	scan, _ := s.scanOf(drop)
	since := map[string]time.Time{}
	for _, p := range scan.Pending {
		since[p.Name] = p.Since
	}
	return since
}

// Run stores what changed, again and again until ctx ends, and then once more: so that the ledger knows how the drop
// folders were left, and when. While nothing changes nothing is committed: when vaultd looked stands outside the ledger then.
func (s *Scans) Run(ctx context.Context, drops []*Drop) {
	tick := time.NewTicker(cmp.Or(s.shared.ProbeEvery, probeEvery))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastScanTimeout)
			defer stop()
			_ = s.storeScans(last, drops, changesAndTimes) // a ledger that failed says so itself
			return
		case <-tick.C:
		}
		s.warnOverdue(drops)
		if s.storeScans(ctx, drops, changesOnly) == nil && !s.shared.Disk.IsBlocked() { // a ledger that failed says so itself
			s.noteScanTimes(drops)
		}
	}
}

// noteInterval is how often the time of the last look is noted outside the ledger.
const noteInterval = 10 * time.Minute

// noteScanTimes notes when vaultd last looked into each drop folder: as the time of change of the folder's marker in the state
// directory, which costs no sync. It runs after what was seen is stored, so that the ledger is never behind it.
func (s *Scans) noteScanTimes(drops []*Drop) {
	for _, r := range drops {
		stored, known := s.scanOf(r.Settings)
		looked := asStored(r.WatcherSnapshot().LastRescan)
		if !known || stored.Fault != "" || looked.Sub(s.notedAt[r.Settings.Name]) < noteInterval || looked.After(s.shared.Now().Wall) {
			continue
		}
		s.notedAt[r.Settings.Name] = looked
		// A time that a power cut loses makes the last look seem earlier than it was, never later.
		if err := os.Chtimes(r.markerPath(), looked, looked); err != nil {
			s.shared.Log.Warn("when vaultd last looked is not noted", "drop", r.Settings.Name, "err", err)
		}
	}
}

// LastScanTime returns when vaultd last looked into the drop folder at path, as far as its marker in the state directory tells; zero:
// it tells nothing. Use it only for a ledger that has a scan of the drop: before the first scan the time is that of the marker itself.
func LastScanTime(stateDir, path string) time.Time {
	info, err := os.Lstat(markerPathOf(stateDir, path))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// scansToStore says which scans are stored.
type scansToStore int

const (
	changesOnly     scansToStore = iota // those that differ from what the ledger has
	changesAndTimes                     // also those that saw the same more recently
)

// storeScans stores what the drop folders hold that was not taken, as far as
// the ledger does not have it. It waits for the commit. If the disk is kept for
// what is under way it stores nothing.
func (s *Scans) storeScans(ctx context.Context, drops []*Drop, which scansToStore) error {
	if s.shared.Disk.IsBlocked() {
		return nil
	}
	var fresh []ledger.Scan
	for _, r := range drops {
		now := r.StateWithScan().Scan
		before, known := s.scanOf(r.Settings)
		if !known || which == changesAndTimes && now.LastScan.After(before.LastScan) || !isSameScan(now, before) {
			fresh = append(fresh, now)
		}
	}
	if len(fresh) > 0 {
		// After a crash before this commit the ledger has the scan before: the next start looks again, and what was first seen since
		// then counts as first seen at that start.
		if err := s.shared.Ledger.PutScans(ctx, fresh...); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, scan := range fresh {
		s.stored[scan.Drop] = scan
	}
	return nil
}

// scanOf returns the scan of a drop as the ledger has it; known is false where the ledger has none of that name. A drop that has
// another name now is known by its path.
func (s *Scans) scanOf(drop Settings) (scan ledger.Scan, known bool) {
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

// isSameScan reports whether two scans tell the same. When vaultd looked does not count, nor do the words of a failed attempt,
// which may differ each time.
func isSameScan(a, b ledger.Scan) bool {
	isMissed := func(x, y ledger.MissingFolder) bool { return x.Key == y.Key && x.Since.Equal(y.Since) }
	same := a.KeptScan.Equal(b.KeptScan) && a.KeptUnread == b.KeptUnread && a.KeptSince.Equal(b.KeptSince) && slices.EqualFunc(a.Missing, b.Missing, isMissed) && a.Path == b.Path && a.Vault == b.Vault && a.RemindAfter == b.RemindAfter && (a.Fault == "") == (b.Fault == "") && a.Unnamed == b.Unnamed &&
		isSameIgnored(a.IgnoredByRule, b.IgnoredByRule) && isSameIgnored(a.IgnoredBySystem, b.IgnoredBySystem)
	return same && slices.EqualFunc(a.Pending, b.Pending, func(x, y ledger.PendingItem) bool {
		words := x.Detail == y.Detail || x.Reason == string(watch.Failed) || x.Reason == string(watch.Busy)
		return x.Name == y.Name && x.Reason == y.Reason && words && x.Since.Equal(y.Since)
	})
}

func isSameIgnored(a, b ledger.IgnoredNames) bool {
	return a.Count == b.Count && slices.Equal(a.Names, b.Names)
}

// ignoredNames returns what of the ignored names is kept.
func ignoredNames(groups []watch.NotTakenGroup, reason watch.Reason) (all ledger.IgnoredNames) {
	for _, group := range groups {
		if group.Reason != reason {
			continue
		}
		all.Count = uint64(group.Count)
		for _, n := range group.Items[:min(len(group.Items), ledger.MaxIgnored)] {
			all.Names = append(all.Names, n.Name)
		}
	}
	return all
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
		p.Since = earlierOf(p.Since, at)
		if since, ok := known[p.Name]; ok {
			p.Since = earlierOf(p.Since, since)
		} else if before.Unnamed > 0 {
			p.Since = earlierOf(p.Since, before.UnnamedSince)
		}
	}
}

// earlierOf returns the earlier of two times.
func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// asStored is a time as the ledger gives it back.
func asStored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

// needsPerson reports whether what is not taken for that reason waits for a person. The others are taken by themselves, or
// what holds them up is told on its own.
func needsPerson(r watch.Reason) bool {
	switch r {
	case watch.Copying, watch.Queued, watch.Held, watch.NoRoom:
		return false
	}
	return true
}

// warnOverdue logs what has come to need a person because it was not taken for longer than remind_after: each thing once,
// and by its reason. Names of folders never stand in the log.
func (s *Scans) warnOverdue(drops []*Drop) {
	now, still := s.shared.Now().Wall, map[string]bool{}
	for _, r := range drops {
		named, more := r.StateWithScan().Scan.ItemsForPerson(now, r.Settings.Reminder())
		fresh := map[string]int{}
		for _, p := range named {
			id := r.Settings.Name + "/" + p.Name
			if still[id] = true; !s.warned[id] {
				fresh[p.Reason]++
			}
		}
		for _, reason := range slices.Sorted(maps.Keys(fresh)) {
			s.shared.Log.Warn("not taken for longer than remind_after", "drop", r.Settings.Name, "reason", reason, "new", fresh[reason],
				"all", uint64(len(named))+more, "remind_after", r.Settings.Reminder().String())
		}
	}
	s.warned = still
}

// makeScan makes of what the watcher and the probe know what the ledger keeps. Before the first look, and while the drop folder
// cannot be read, what was known before stays: nobody knows better.
func (d *Drop) makeScan(now State) ledger.Scan {
	before, _ := d.shared.Scans.scanOf(d.Settings)
	at := asStored(d.shared.Now().Wall)
	s := ledger.Scan{Drop: d.Settings.Name, Path: d.Settings.Path, Vault: d.Settings.Vault, RemindAfter: d.Settings.Reminder(), LastScan: earlierOf(asStored(now.Watch.LastRescan), at), Fault: now.Paused}
	if s.Fault == "" && now.Watch.Paused != nil {
		s.Fault = now.Watch.Paused.Error()
	}
	if s.Fault != "" {
		s.FaultSince = at
		if before.Fault != "" {
			s.FaultSince = earlierOf(before.FaultSince, at)
		}
	}
	kept := d.LastKeptScan()
	s.KeptScan, s.KeptUnread, s.KeptSince, s.Missing = kept.At, kept.Unread, kept.Since, before.Missing
	if now.looksForMissing {
		s.Missing = nil
		for _, k := range now.missing {
			since := before.MissingSince(k)
			if since.IsZero() {
				since = at
			}
			s.Missing = append(s.Missing, ledger.MissingFolder{Key: k, Since: earlierOf(since, at)})
		}
	}
	if s.LastScan.IsZero() {
		s.LastScan, s.Pending, s.Unnamed, s.UnnamedSince = before.LastScan, before.Pending, before.Unnamed, before.UnnamedSince
		s.IgnoredByRule, s.IgnoredBySystem = before.IgnoredByRule, before.IgnoredBySystem
		return s
	}
	for _, w := range now.Watch.NotTaken {
		for _, n := range w.Items {
			p := ledger.PendingItem{Name: n.Name, Reason: string(w.Reason), Detail: n.Detail, Since: asStored(n.FirstSeen), NeedsPerson: needsPerson(w.Reason)}
			if p.Detail == "" && w.Reason == watch.NoSidecar {
				p.Detail = "no " + d.Settings.Rules.Sidecar
			}
			s.Pending = append(s.Pending, p)
		}
		s.Unnamed += uint64(w.Count - len(w.Items))
	}
	s.IgnoredByRule, s.IgnoredBySystem = ignoredNames(now.Watch.Ignored, watch.IgnoredByRule), ignoredNames(now.Watch.Ignored, watch.IgnoredBySystem)
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
			s.UnnamedSince = earlierOf(before.UnnamedSince, at)
		}
	}
	return s
}

// StateWithScan is State with what lies in the drop folder and was not taken.
func (d *Drop) StateWithScan() State {
	s := d.State()
	s.Scan, s.RemindAfter = d.makeScan(s), d.Settings.Reminder()
	return s
}
