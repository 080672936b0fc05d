package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vaultd/internal/archive"
)

// Reason says why something in the drop folder is not taken yet.
type Reason string

// The reasons.
const (
	LooseFile   Reason = "loose file"     // a file, link or device directly in the drop folder
	NotFile     Reason = "not a file"     // a folder, link or device directly in a drop folder of single files
	NoSidecar   Reason = "no sidecar"     // no file with the sidecar's name at its top
	Copying     Reason = "still copying"  // changed less than Settle ago
	Temporary   Reason = "temporary name" // something like ".part" or "~$…" is in it
	Placeholder Reason = "not downloaded" // a cloud folder's placeholder is in it, in place of a file
	Incomplete  Reason = "incomplete"     // what the list names, or the marker, is missing
	StillOpen   Reason = "still open"     // a program has a file open for writing
	NoRight     Reason = "no right"       // EACCES, EPERM
	Busy        Reason = "busy"           // EBUSY, ETXTBSY, EAGAIN
	OtherDevice Reason = "other device"   // EXDEV
	ReadOnly    Reason = "read-only"      // EROFS
	NoRoom      Reason = "no room"        // ENOSPC, EDQUOT: a disk is too full to take it
	Failed      Reason = "failed"         // any other error of a scan or of taking it
	Queued      Reason = "queued"         // more than MaxObserved: it waits for a place
	Held        Reason = "held"           // no folder is taken before a person acts
)

// The reasons for leaving something alone. It is not among what is not taken.
const (
	IgnoredByRule   Reason = "by rule"   // Config.IsIgnored
	IgnoredBySystem Reason = "by system" // a system made it, and no folder of that name holds a sidecar
)

// ErrHeld is what take returns when it takes no folder until a person acts. That is no fault of the folder.
// [Watcher.RequestRescan] makes the watcher try such folders again at once.
var ErrHeld = errors.New("nothing is taken now")

// OpenError is what take returns when a program may still write to a file of
// the item: it has the file open.
type OpenError struct{ Path string } // in the folder; empty: the item is a single file

func (e *OpenError) Error() string {
	what := ""
	if e.Path != "" {
		what = strconv.Quote(e.Path) + " "
	}
	return what + "is still open in a program that may write to it"
}

// The Detail of a LooseFile or NotFile that is a link, and of a NotFile that is a folder.
const (
	LinkDetail   = "a link"
	FolderDetail = "a folder"
)

func reasonFor(err error) Reason {
	if _, is := errors.AsType[*OpenError](err); is {
		return StillOpen
	}
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

// candidate is one item under observation.
type candidate struct {
	Item
	observedSince  time.Time
	unchangedSince time.Time // the first scan that saw the present state; zero: not scanned yet
	lastScan       time.Time
	nextScan       time.Time
	reason         Reason
	detail         error
	refusals       int // failed takes in a row
	isReady        bool
	isBeingTaken   bool
	hasListErr     bool  // listErr belongs to the present fingerprint
	listErr        error // what IsComplete returned
}

// scheduler holds the folders under observation. Given the time, it decides which to scan and which to take. It does no I/O.
type scheduler struct {
	cfg        Config
	candidates map[string]*candidate
	ready      []*candidate // in the order in which they became ready; entries whose isReady is false are stale
	taking     int
	counts     notTakenCounts          // of the last rescan: what is not under observation
	ignored    notTakenCounts          // of the last rescan: what is left alone for its name
	known      map[string]NotTakenItem // the items of counts by name; before the first rescan those of Config.FirstSeen
}

func newScheduler(cfg Config) *scheduler {
	s := &scheduler{cfg: cfg, candidates: map[string]*candidate{}, counts: notTakenCounts{}, known: map[string]NotTakenItem{}}
	for name, since := range cfg.FirstSeen {
		s.known[name] = NotTakenItem{Name: name, FirstSeen: since}
	}
	return s
}

// setCounts replaces the counts by those of a new rescan, and reports whether they differ.
func (s *scheduler) setCounts(counts, ignored notTakenCounts) (hasChanged bool) {
	isSame := func(a, b *NotTakenGroup) bool { return a.Count == b.Count && slices.Equal(a.Items, b.Items) }
	hasChanged = !maps.EqualFunc(s.counts, counts, isSame) || !maps.EqualFunc(s.ignored, ignored, isSame)
	s.counts, s.ignored, s.known = counts, ignored, map[string]NotTakenItem{}
	for _, group := range counts {
		for _, item := range group.Items {
			s.known[item.Name] = item
		}
	}
	return hasChanged
}

// observe puts name under observation if there is a free place. It reports whether name is under observation now.
func (s *scheduler) observe(name string, now time.Time) bool {
	if s.candidates[name] != nil {
		return true
	}
	if len(s.candidates) >= s.cfg.MaxObserved {
		return false
	}
	c := &candidate{observedSince: now, nextScan: now, reason: Copying, Item: Item{Name: name, FirstSeen: now}}
	if before, ok := s.known[name]; ok {
		c.FirstSeen = before.FirstSeen
	}
	s.candidates[name] = c
	return true
}

// scanSoon makes the next scan of name due now, or one interval after the last scan: events can come faster than scans.
func (s *scheduler) scanSoon(name string, now time.Time) {
	c := s.candidates[name]
	if c == nil || c.isBeingTaken || c.isReady {
		return
	}
	at := now
	if again := c.lastScan.Add(s.cfg.scanInterval()); again.After(now) {
		at = again
	}
	c.nextScan = earlierOf(c.nextScan, at)
}

// due returns up to limit candidates that are to be scanned, the longest overdue first.
func (s *scheduler) due(now time.Time, limit int) []*candidate {
	var due []*candidate
	for _, c := range s.candidates {
		if !c.isBeingTaken && !c.isReady && !c.nextScan.After(now) {
			due = append(due, c)
		}
	}
	slices.SortFunc(due, func(a, b *candidate) int { return a.nextScan.Compare(b.nextScan) })
	return due[:min(len(due), limit)]
}

// next returns when the next scan is due.
func (s *scheduler) next() (at time.Time, ok bool) {
	for _, c := range s.candidates {
		if !c.isBeingTaken && !c.isReady && (!ok || c.nextScan.Before(at)) {
			at, ok = c.nextScan, true
		}
	}
	return at, ok
}

// recordScan records a scan of c that began at began and ended at now. A scan can be slow: only the time from the end of one to
// the start of the next is known to be quiet. listErr is what IsComplete returned; it counts for a new state of the folder only.
func (s *scheduler) recordScan(c *candidate, scan Scan, listErr error, began, now time.Time) {
	if c.unchangedSince.IsZero() || scan.Fingerprint != c.Scan.Fingerprint {
		c.unchangedSince, c.refusals, c.hasListErr = now, 0, false
	}
	c.Scan, c.lastScan = scan, began
	reason, detail := s.decideReason(c, listErr, began)
	if s.cfg.Kind == Files {
		reason, detail = s.decideFileReason(c, listErr, began)
	}
	if reason != "" || c.refusals == 0 { // else the last refusal stands until the next take has ended
		c.reason, c.detail = reason, detail
	}
	switch reason {
	case "":
		c.isReady = true
		s.ready = append(s.ready, c)
	case Copying:
		c.nextScan = earlierOf(now.Add(s.cfg.scanInterval()), c.unchangedSince.Add(s.cfg.Settle))
	default:
		// An item that has been quiet for long is scanned rarely, one that changes is scanned often.
		c.nextScan = now.Add(s.clampWait(now.Sub(c.unchangedSince)))
		if patienceEnds := c.unchangedSince.Add(incompletePatience * s.cfg.Settle); s.cfg.Kind == Files && patienceEnds.After(now) {
			c.nextScan = earlierOf(c.nextScan, patienceEnds)
		}
	}
}

// clampWait keeps a wait between one scan interval and one rescan.
func (s *scheduler) clampWait(d time.Duration) time.Duration {
	return min(max(d, s.cfg.scanInterval()), s.cfg.Rescan)
}

// decideReason decides whether a folder is complete and settled. An empty reason means that it can be taken.
func (s *scheduler) decideReason(c *candidate, listErr error, now time.Time) (Reason, error) {
	scan := c.Scan
	switch {
	case scan.Problem != nil:
		return reasonFor(scan.Problem), scan.Problem
	case scan.Sidecar == "":
		return NoSidecar, describeNear(scan.NearSidecar, s.cfg.Rules.Sidecar)
	}
	if err := s.checkList(c, listErr); err != nil {
		return Incomplete, err
	}
	switch {
	case scan.Temporary != "":
		return reasonToWait(scan.Temporary)
	case archive.IsUnfinished(c.Name):
		return reasonToWait(c.Name)
	case s.cfg.Complete == Marker && !scan.HasMarker:
		return Incomplete, errors.New("no .done file yet")
	case (s.cfg.Complete == Quiet || errors.Is(c.listErr, ErrNoFileList)) && now.Sub(c.unchangedSince) < s.cfg.Settle:
		return Copying, nil
	}
	return "", nil
}

// reasonToWait returns the reason and the detail for a file that is not finished.
func reasonToWait(name string) (Reason, error) {
	if archive.IsPlaceholder(path.Base(name)) {
		return Placeholder, errors.New(name)
	}
	return Temporary, errors.New(name)
}

// decideFileReason decides whether a single file is complete and has settled. incomplete is what IsComplete returned.
func (s *scheduler) decideFileReason(c *candidate, incomplete error, now time.Time) (Reason, error) {
	quiet := now.Sub(c.unchangedSince)
	_, isFault := errors.AsType[syscall.Errno](incomplete)
	switch {
	case c.Scan.Problem != nil:
		return reasonFor(c.Scan.Problem), c.Scan.Problem
	case c.Scan.Temporary != "":
		return reasonToWait(c.Scan.Temporary)
	case quiet < s.cfg.Settle:
		return Copying, nil
	case isFault: // the file could not be looked into
		return reasonFor(incomplete), incomplete
	case incomplete != nil && quiet < incompletePatience*s.cfg.Settle:
		return Incomplete, incomplete
	}
	return "", nil
}

// checkList returns, for List, what is missing. listErr is of this scan; it counts for a new state of the folder only.
func (s *scheduler) checkList(c *candidate, listErr error) error {
	if s.cfg.Complete != List {
		return nil
	}
	if !c.hasListErr {
		c.hasListErr, c.listErr = true, listErr
	}
	if errors.Is(c.listErr, ErrNoFileList) {
		return nil
	}
	if c.listErr != nil && c.Scan.Temporary != "" {
		return fmt.Errorf("%w, and still has %s", c.listErr, c.Scan.Temporary)
	}
	return c.listErr
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

// recordScanError records that the folder itself could not be scanned.
func (s *scheduler) recordScanError(c *candidate, err error, now time.Time) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		// It is gone, was taken by somebody, or is a file now: the next rescan counts it.
		delete(s.candidates, c.Name)
		return
	}
	if c.unchangedSince.IsZero() {
		c.unchangedSince = now
	}
	c.lastScan = now
	c.reason, c.detail = reasonFor(err), err
	c.nextScan = now.Add(s.clampWait(now.Sub(c.observedSince)))
}

// nextToTake returns the next settled folder, if one may be taken. A folder whose scan is too old by now is scanned again first.
func (s *scheduler) nextToTake(now time.Time) (Item, bool) {
	for len(s.ready) > 0 && s.taking < s.cfg.MaxTakes {
		c := s.ready[0]
		s.ready[0] = nil // the array behind the slice lives on, and would keep the candidate in memory
		s.ready = s.ready[1:]
		if !c.isReady || s.candidates[c.Name] != c {
			continue
		}
		c.isReady = false
		if now.Sub(c.lastScan) > max(s.cfg.Settle, s.cfg.Rescan) {
			c.nextScan = now
			continue
		}
		c.isBeingTaken = true
		s.taking++
		return c.Item, true
	}
	return Item{}, false
}

// recordTaken records the outcome of taking name. After an error the folder waits longer each time, and is scanned again before
// the next try.
func (s *scheduler) recordTaken(name string, err error, now time.Time) {
	s.taking--
	c := s.candidates[name]
	if c == nil {
		return
	}
	c.isBeingTaken = false
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		delete(s.candidates, name)
		return
	}
	c.reason, c.detail = reasonFor(err), err
	c.nextScan = now.Add(s.clampWait(s.cfg.scanInterval() << min(c.refusals, 16)))
	c.refusals++
}

// retryHeld makes folders that were held due now, and so tried again.
func (s *scheduler) retryHeld(now time.Time) {
	for _, c := range s.candidates {
		if c.reason == Held {
			c.nextScan, c.refusals = earlierOf(c.nextScan, now), 0
		}
	}
}

// removeIdle ends the observation of folders that are not about to be taken. Folders without a sidecar go once they are quiet:
// a rescan sees cheaply when one appears. When more folders are queued for a place, those go too that were under
// observation long enough.
func (s *scheduler) removeIdle(queued int, now time.Time) {
	longEnough := 2*s.cfg.Rescan + 4*s.cfg.Settle
	for name, c := range s.candidates {
		idle := c.reason == NoSidecar && now.Sub(c.unchangedSince) > s.cfg.Rescan
		if c.isBeingTaken || c.isReady || !(idle || queued > 0 && now.Sub(c.observedSince) > longEnough) {
			continue
		}
		s.counts.add(c.reason, name, c.FirstSeen, c.detail)
		s.known[name] = NotTakenItem{Name: name, FirstSeen: c.FirstSeen, Detail: errorText(c.detail)}
		delete(s.candidates, name)
	}
}

func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
