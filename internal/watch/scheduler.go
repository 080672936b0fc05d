package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Reason says why something in the drop folder is not taken yet.
type Reason string

// The reasons.
const (
	LooseFile   Reason = "loose file"     // a file, link or device directly in the drop folder
	NoSidecar   Reason = "no sidecar"     //
	Copying     Reason = "still copying"  // changed less than Settle ago
	Temporary   Reason = "temporary name" // something like ".part" or "~$…" is in it
	Incomplete  Reason = "incomplete"     // what the list names, or the marker, is missing
	NoRight     Reason = "no right"       // EACCES, EPERM
	Busy        Reason = "busy"           // EBUSY, ETXTBSY, EAGAIN
	OtherDevice Reason = "other device"   // EXDEV
	ReadOnly    Reason = "read-only"      // EROFS
	NoRoom      Reason = "no room"        // ENOSPC, EDQUOT: a disk is too full to take it
	Failed      Reason = "failed"         // any other error of a look or of taking it
	Queued      Reason = "queued"         // more than Max: its turn comes
	Held        Reason = "held"           // whoever takes folders takes none before a person acts
)

// ErrHeld is take's where it takes nothing before a person acts: that is no fault of the folder. [Watcher.RequestRescan] has
// such folders tried again at once.
var ErrHeld = errors.New("nothing is taken now")

// LinkDetail is the Detail of a link among what is loose.
const LinkDetail = "a link"

func reasonFor(err error) Reason {
	for _, c := range []struct {
		is     error
		reason Reason
	}{
		{ErrHeld, Held}, {fs.ErrPermission, NoRight}, {syscall.EBUSY, Busy}, {syscall.ETXTBSY, Busy}, {syscall.EAGAIN, Busy},
		{syscall.EXDEV, OtherDevice}, {syscall.EROFS, ReadOnly}, {syscall.ENOSPC, NoRoom}, {syscall.EDQUOT, NoRoom},
	} {
		if errors.Is(err, c.is) {
			return c.reason
		}
	}
	return Failed
}

// candidate is one folder under observation.
type candidate struct {
	Folder
	observedSince  time.Time
	unchangedSince time.Time // the first of the looks that saw what the last one saw; zero: not looked at yet
	lastScan       time.Time // the last look
	nextScan       time.Time // the next look
	reason         Reason
	detail         error
	refusals       int // of taking it in a row
	isReady        bool
	isBeingTaken   bool
	hasListErr     bool  // verdict belongs to the present fingerprint
	listErr        error // of IsComplete
}

// scheduler holds what is under observation and decides, given the time, what to look at and what to take. It does no I/O.
type scheduler struct {
	cfg        Config
	candidates map[string]*candidate
	ready      []*candidate // in the order they became so; entries whose ready is false are stale
	taking     int
	counts     notTakenCounts          // of the last complete listing: what is not under observation
	known      map[string]NotTakenItem // what tally names; before the first listing: what Config.FirstSeen says
	removedAny bool                    // the observation of one ended since the last rescan, which alone tells what it is now
}

func newScheduler(cfg Config) *scheduler {
	b := &scheduler{cfg: cfg, candidates: map[string]*candidate{}, counts: notTakenCounts{}, known: map[string]NotTakenItem{}}
	for name, since := range cfg.FirstSeen {
		b.known[name] = NotTakenItem{Name: name, FirstSeen: since}
	}
	return b
}

// setCounts replaces what the last complete listing counted.
func (b *scheduler) setCounts(t notTakenCounts) {
	b.counts, b.known = t, map[string]NotTakenItem{}
	for _, w := range t {
		for _, n := range w.Items {
			b.known[n.Name] = n
		}
	}
}

// observe puts name under observation unless it is or there is no room. It reports whether it is under observation now.
func (b *scheduler) observe(name string, now time.Time) bool {
	if s := b.candidates[name]; s != nil {
		return true
	}
	if len(b.candidates) >= b.cfg.Max {
		return false
	}
	s := &candidate{observedSince: now, nextScan: now, reason: Copying, Folder: Folder{Name: name, FirstSeen: now}}
	if before, ok := b.known[name]; ok {
		s.FirstSeen = before.FirstSeen
	}
	b.candidates[name] = s
	return true
}

// scanSoon makes the next look at name happen now, or one step after the last: hints can come faster than looks.
func (b *scheduler) scanSoon(name string, now time.Time) {
	s := b.candidates[name]
	if s == nil || s.isBeingTaken || s.isReady {
		return
	}
	at := now
	if again := s.lastScan.Add(b.cfg.scanInterval()); again.After(now) {
		at = again
	}
	s.nextScan = earlierOf(s.nextScan, at)
}

// due gives up to limit subjects to look at, the longest overdue first.
func (b *scheduler) due(now time.Time, limit int) []*candidate {
	var due []*candidate
	for _, s := range b.candidates {
		if !s.isBeingTaken && !s.isReady && !s.nextScan.After(now) {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *candidate) int { return a.nextScan.Compare(b.nextScan) })
	return due[:min(len(due), limit)]
}

// next tells when the next look is due.
func (b *scheduler) next() (at time.Time, ok bool) {
	for _, s := range b.candidates {
		if !s.isBeingTaken && !s.isReady && (!ok || s.nextScan.Before(at)) {
			at, ok = s.nextScan, true
		}
	}
	return at, ok
}

// recordScan records a look at s that began and ended at those times (a look can be slow, and only what lies between two looks is
// known to be quiet). verdict is what IsComplete said; it counts for a new state of the folder only.
func (b *scheduler) recordScan(s *candidate, l Scan, verdict error, began, now time.Time) {
	if s.unchangedSince.IsZero() || l.Fingerprint != s.Scan.Fingerprint {
		s.unchangedSince, s.refusals, s.hasListErr = now, 0, false
	}
	s.Scan, s.lastScan = l, began
	reason, detail := b.decideReason(s, verdict, began)
	if reason != "" || s.refusals == 0 { // else the last refusal stands until the next try is over
		s.reason, s.detail = reason, detail
	}
	switch reason {
	case "":
		s.isReady = true
		b.ready = append(b.ready, s)
	case Copying:
		s.nextScan = earlierOf(now.Add(b.cfg.scanInterval()), s.unchangedSince.Add(b.cfg.Settle))
	default:
		// What has been quiet for long is looked at seldom, what changes is looked at often.
		s.nextScan = now.Add(b.clampWait(now.Sub(s.unchangedSince)))
	}
}

// clampWait keeps a wait between one step and one rescan.
func (b *scheduler) clampWait(d time.Duration) time.Duration {
	return min(max(d, b.cfg.scanInterval()), b.cfg.Rescan)
}

func (b *scheduler) decideReason(s *candidate, verdict error, now time.Time) (Reason, error) {
	l := s.Scan
	switch {
	case l.Problem != nil:
		return reasonFor(l.Problem), l.Problem
	case l.Sidecar == "":
		return NoSidecar, describeNear(l.NearSidecar, b.cfg.Rules.Sidecar)
	}
	if err := b.checkList(s, verdict); err != nil {
		return Incomplete, err
	}
	switch {
	case l.Temporary != "" || isTemporary(s.Name):
		return Temporary, nil
	case b.cfg.Complete == Marker && !l.HasMarker:
		return Incomplete, errors.New("no .done file yet")
	case (b.cfg.Complete == Quiet || errors.Is(s.listErr, ErrNoFileList)) && now.Sub(s.unchangedSince) < b.cfg.Settle:
		return Copying, nil
	}
	return "", nil
}

// checkList says for List what is missing; verdict is of this look, and counts for a new state of the folder only.
func (b *scheduler) checkList(s *candidate, verdict error) error {
	if b.cfg.Complete != List {
		return nil
	}
	if !s.hasListErr {
		s.hasListErr, s.listErr = true, verdict
	}
	if errors.Is(s.listErr, ErrNoFileList) {
		return nil
	}
	if s.listErr != nil && s.Scan.Temporary != "" {
		return fmt.Errorf("%w, and still has %s", s.listErr, s.Scan.Temporary)
	}
	return s.listErr
}

// describeNear says what to do about a file that was probably meant to be the sidecar, or about a folder of invoice folders.
func describeNear(near, sidecar string) error {
	folder, _, inside := strings.Cut(near, "/")
	switch {
	case near == "":
		return nil
	case inside:
		return fmt.Errorf("has invoice folders in it, as %s: move the folders inside up one level", folder)
	case strings.EqualFold(near, sidecar):
		return fmt.Errorf("%s is a folder, not a file: take the file out of it", near)
	}
	return fmt.Errorf("has %s: rename it to %s (Explorer: View > File name extensions)", near, sidecar)
}

// recordScanError records that the look itself failed.
func (b *scheduler) recordScanError(s *candidate, err error, now time.Time) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		b.removeCandidate(s.Name) // gone, taken by someone, or a file now: the next listing counts it
		return
	}
	if s.unchangedSince.IsZero() {
		s.unchangedSince = now
	}
	s.lastScan = now
	s.reason, s.detail = reasonFor(err), err
	s.nextScan = now.Add(b.clampWait(now.Sub(s.observedSince)))
}

// nextToTake gives the next settled folder, when one may be taken. A look that is too old by now is repeated first.
func (b *scheduler) nextToTake(now time.Time) (Folder, bool) {
	for len(b.ready) > 0 && b.taking < b.cfg.Parallel {
		s := b.ready[0]
		b.ready = b.ready[1:]
		if !s.isReady || b.candidates[s.Name] != s {
			continue
		}
		s.isReady = false
		if now.Sub(s.lastScan) > max(b.cfg.Settle, b.cfg.Rescan) {
			s.nextScan = now
			continue
		}
		s.isBeingTaken = true
		b.taking++
		return s.Folder, true
	}
	return Folder{}, false
}

// recordTaken records what came of taking name. A refusal backs off; the folder is looked at again before the next try.
func (b *scheduler) recordTaken(name string, err error, now time.Time) {
	b.taking--
	s := b.candidates[name]
	if s == nil {
		return
	}
	s.isBeingTaken = false
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		b.removeCandidate(name)
		return
	}
	s.reason, s.detail = reasonFor(err), err
	s.nextScan = now.Add(b.clampWait(b.cfg.scanInterval() << min(s.refusals, 16)))
	s.refusals++
}

// retryHeld makes what was held be looked at now, and so be tried again.
func (b *scheduler) retryHeld(now time.Time) {
	for _, s := range b.candidates {
		if s.reason == Held {
			s.nextScan, s.refusals = earlierOf(s.nextScan, now), 0
		}
	}
}

// removeIdle ends the observation of folders that had their turn and are not about to be taken. Those without a sidecar go
// once they are quiet: a listing finds out cheaply when one appears. Others go only when more folders wait for a place.
func (b *scheduler) removeIdle(pressed bool, now time.Time) {
	turn := 2*b.cfg.Rescan + 4*b.cfg.Settle
	for name, s := range b.candidates {
		idle := s.reason == NoSidecar && now.Sub(s.unchangedSince) > b.cfg.Rescan
		if s.isBeingTaken || s.isReady || !(idle || pressed && now.Sub(s.observedSince) > turn) {
			continue
		}
		b.counts.add(s.reason, name, s.FirstSeen, s.detail)
		b.known[name] = NotTakenItem{Name: name, FirstSeen: s.FirstSeen, Detail: errorText(s.detail)}
		b.removeCandidate(name)
	}
}

// removeCandidate ends the observation of name.
func (b *scheduler) removeCandidate(name string) {
	delete(b.candidates, name)
	b.removedAny = true
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
