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

func reasonOf(err error) Reason {
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

// subject is one folder under observation.
type subject struct {
	Folder
	admitted time.Time
	stable   time.Time // the first of the looks that saw what the last one saw; zero: not looked at yet
	looked   time.Time // the last look
	due      time.Time // the next look
	reason   Reason
	detail   error
	refusals int // of taking it in a row
	ready    bool
	taking   bool
	judged   bool  // verdict belongs to the present fingerprint
	verdict  error // of IsComplete
}

// book holds what is under observation and decides, given the time, what to look at and what to take. It does no I/O.
type book struct {
	cfg      Config
	subjects map[string]*subject
	ready    []*subject // in the order they became so; entries whose ready is false are stale
	inFlight int
	tally    tally                   // of the last complete listing: what is not under observation
	seen     map[string]NotTakenItem // what tally names; before the first listing: what Config.FirstSeen says
	forgot   bool                    // the observation of one ended since the last rescan, which alone tells what it is now
}

func newBook(cfg Config) *book {
	b := &book{cfg: cfg, subjects: map[string]*subject{}, tally: tally{}, seen: map[string]NotTakenItem{}}
	for name, since := range cfg.FirstSeen {
		b.seen[name] = NotTakenItem{Name: name, FirstSeen: since}
	}
	return b
}

// listed replaces what the last complete listing counted.
func (b *book) listed(t tally) {
	b.tally, b.seen = t, map[string]NotTakenItem{}
	for _, w := range t {
		for _, n := range w.Items {
			b.seen[n.Name] = n
		}
	}
}

// admit puts name under observation unless it is or there is no room. It reports whether it is under observation now.
func (b *book) admit(name string, now time.Time) bool {
	if s := b.subjects[name]; s != nil {
		return true
	}
	if len(b.subjects) >= b.cfg.Max {
		return false
	}
	s := &subject{admitted: now, due: now, reason: Copying, Folder: Folder{Name: name, FirstSeen: now}}
	if before, ok := b.seen[name]; ok {
		s.FirstSeen = before.FirstSeen
	}
	b.subjects[name] = s
	return true
}

// hint makes the next look at name happen now, or one step after the last: hints can come faster than looks.
func (b *book) hint(name string, now time.Time) {
	s := b.subjects[name]
	if s == nil || s.taking || s.ready {
		return
	}
	at := now
	if again := s.looked.Add(b.cfg.step()); again.After(now) {
		at = again
	}
	s.due = earlier(s.due, at)
}

// due gives up to limit subjects to look at, the longest overdue first.
func (b *book) due(now time.Time, limit int) []*subject {
	var due []*subject
	for _, s := range b.subjects {
		if !s.taking && !s.ready && !s.due.After(now) {
			due = append(due, s)
		}
	}
	slices.SortFunc(due, func(a, b *subject) int { return a.due.Compare(b.due) })
	return due[:min(len(due), limit)]
}

// next tells when the next look is due.
func (b *book) next() (at time.Time, ok bool) {
	for _, s := range b.subjects {
		if !s.taking && !s.ready && (!ok || s.due.Before(at)) {
			at, ok = s.due, true
		}
	}
	return at, ok
}

// saw records a look at s that began and ended at those times (a look can be slow, and only what lies between two looks is
// known to be quiet). verdict is what IsComplete said; it counts for a new state of the folder only.
func (b *book) saw(s *subject, l Scan, verdict error, began, now time.Time) {
	if s.stable.IsZero() || l.Fingerprint != s.Scan.Fingerprint {
		s.stable, s.refusals, s.judged = now, 0, false
	}
	s.Scan, s.looked = l, began
	reason, detail := b.judge(s, verdict, began)
	if reason != "" || s.refusals == 0 { // else the last refusal stands until the next try is over
		s.reason, s.detail = reason, detail
	}
	switch reason {
	case "":
		s.ready = true
		b.ready = append(b.ready, s)
	case Copying:
		s.due = earlier(now.Add(b.cfg.step()), s.stable.Add(b.cfg.Settle))
	default:
		// What has been quiet for long is looked at seldom, what changes is looked at often.
		s.due = now.Add(b.patience(now.Sub(s.stable)))
	}
}

// patience keeps a wait between one step and one rescan.
func (b *book) patience(d time.Duration) time.Duration {
	return min(max(d, b.cfg.step()), b.cfg.Rescan)
}

func (b *book) judge(s *subject, verdict error, now time.Time) (Reason, error) {
	l := s.Scan
	switch {
	case l.Problem != nil:
		return reasonOf(l.Problem), l.Problem
	case l.Sidecar == "":
		return NoSidecar, nearWords(l.NearSidecar, b.cfg.Rules.Sidecar)
	}
	if err := b.listVerdict(s, verdict); err != nil {
		return Incomplete, err
	}
	switch {
	case l.Temporary != "" || temporary(s.Name):
		return Temporary, nil
	case b.cfg.Complete == Marker && !l.HasMarker:
		return Incomplete, errors.New("no .done file yet")
	case (b.cfg.Complete == Quiet || errors.Is(s.verdict, ErrNoFileList)) && now.Sub(s.stable) < b.cfg.Settle:
		return Copying, nil
	}
	return "", nil
}

// listVerdict says for List what is missing; verdict is of this look, and counts for a new state of the folder only.
func (b *book) listVerdict(s *subject, verdict error) error {
	if b.cfg.Complete != List {
		return nil
	}
	if !s.judged {
		s.judged, s.verdict = true, verdict
	}
	if errors.Is(s.verdict, ErrNoFileList) {
		return nil
	}
	if s.verdict != nil && s.Scan.Temporary != "" {
		return fmt.Errorf("%w, and still has %s", s.verdict, s.Scan.Temporary)
	}
	return s.verdict
}

// nearWords says what to do about a file that was probably meant to be the sidecar, or about a folder of invoice folders.
func nearWords(near, sidecar string) error {
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

// unseen records that the look itself failed.
func (b *book) unseen(s *subject, err error, now time.Time) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		b.forget(s.Name) // gone, taken by someone, or a file now: the next listing counts it
		return
	}
	if s.stable.IsZero() {
		s.stable = now
	}
	s.looked = now
	s.reason, s.detail = reasonOf(err), err
	s.due = now.Add(b.patience(now.Sub(s.admitted)))
}

// nextToTake gives the next settled folder, when one may be taken. A look that is too old by now is repeated first.
func (b *book) nextToTake(now time.Time) (Folder, bool) {
	for len(b.ready) > 0 && b.inFlight < b.cfg.Parallel {
		s := b.ready[0]
		b.ready = b.ready[1:]
		if !s.ready || b.subjects[s.Name] != s {
			continue
		}
		s.ready = false
		if now.Sub(s.looked) > max(b.cfg.Settle, b.cfg.Rescan) {
			s.due = now
			continue
		}
		s.taking = true
		b.inFlight++
		return s.Folder, true
	}
	return Folder{}, false
}

// taken records what came of taking name. A refusal backs off; the folder is looked at again before the next try.
func (b *book) taken(name string, err error, now time.Time) {
	b.inFlight--
	s := b.subjects[name]
	if s == nil {
		return
	}
	s.taking = false
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		b.forget(name)
		return
	}
	s.reason, s.detail = reasonOf(err), err
	s.due = now.Add(b.patience(b.cfg.step() << min(s.refusals, 16)))
	s.refusals++
}

// release makes what was held be looked at now, and so be tried again.
func (b *book) release(now time.Time) {
	for _, s := range b.subjects {
		if s.reason == Held {
			s.due, s.refusals = earlier(s.due, now), 0
		}
	}
}

// makeRoom ends the observation of folders that had their turn and are not about to be taken. Those without a sidecar go
// once they are quiet: a listing finds out cheaply when one appears. Others go only when more folders wait for a place.
func (b *book) makeRoom(pressed bool, now time.Time) {
	turn := 2*b.cfg.Rescan + 4*b.cfg.Settle
	for name, s := range b.subjects {
		idle := s.reason == NoSidecar && now.Sub(s.stable) > b.cfg.Rescan
		if s.taking || s.ready || !(idle || pressed && now.Sub(s.admitted) > turn) {
			continue
		}
		b.tally.add(s.reason, name, s.FirstSeen, s.detail)
		b.seen[name] = NotTakenItem{Name: name, FirstSeen: s.FirstSeen, Detail: words(s.detail)}
		b.forget(name)
	}
}

// forget ends the observation of name.
func (b *book) forget(name string) {
	delete(b.subjects, name)
	b.forgot = true
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
