package watch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// rescanState is what a session remembers of its rescans.
type rescanState struct {
	last        time.Time // when the last one began
	took        time.Duration
	isSoon      bool      // do not wait for the next regular one
	isRefill    bool      // half the places are free again, and folders wait for one
	cursor      int       // position in the directory from where folders are admitted while not all fit
	queued      int       // folders that found no place
	lastMtime   time.Time // mtime of the drop folder at the last one
	events      int       // since the last one
	ownEvents   int       // of them about what vaultd has made itself
	unannounced int       // rescans in a row that found changes no event told of
	eventsLost  bool      // hints were lost since the last one that read everything
	noSidecar   noSidecarCache
}

// gap keeps a storm of overflows from becoming a storm of rescans, which take at most a fifth of the time then. One that
// fills half the places again need not wait: so many folders are taken for each.
const minRescanGap = time.Second

func (l *rescanState) dueAt(rescan time.Duration) time.Time {
	switch {
	case l.last.IsZero() || l.isRefill:
		return l.last
	case l.isSoon:
		return l.last.Add(min(max(minRescanGap, 5*l.took), rescan))
	}
	return l.last.Add(rescan)
}

// startEvents starts events, or says why not.
func (s *session) startEvents() {
	fsName, err := networkFileSystem(s.cfg.Path)
	s.isLocal = err == nil && fsName == ""
	mode, why := Poll, "configured"
	if s.cfg.Mode != Poll {
		mode, why = s.openEventSource(fsName)
	}
	s.setMode(mode, why)
}

func (s *session) openEventSource(fsName string) (Mode, string) {
	if fsName != "" && s.cfg.Mode == Auto {
		return Poll, "no events on network file systems (" + fsName + ")"
	}
	source, err := s.cfg.OpenEvents(s.cfg.Path)
	if err != nil {
		return Poll, "events do not start: " + err.Error()
	}
	s.events, s.stop = source.C, source.Stop
	return Events, "events work here"
}

func (s *session) setMode(mode Mode, why string) {
	s.mu.Lock()
	s.mode, s.modeReason = mode, why
	s.mu.Unlock()
}

// stopEvents ends listening; from here on rescans alone find what is new.
func (s *session) stopEvents(why string) {
	s.stop()
	s.stop, s.events = func() {}, nil
	s.rescans.isSoon = true
	s.setMode(Poll, why)
}

// maxEventsPerPass bounds how many hints are heeded before looks and takes go on.
const maxEventsPerPass = 4096

// handleEvents acts on a hint and on those that wait behind it.
func (s *session) handleEvents(e Event) {
	for n := 1; ; n++ {
		s.rescans.events++
		if e.Name != "" && s.cfg.Reserved(e.Name) {
			s.rescans.ownEvents++
		}
		switch {
		case e.Dead != nil:
			s.stopEvents("events ended: " + e.Dead.Error())
			s.verified = time.Time{}
			return
		case e.Overflow:
			s.rescans.isSoon = true
			s.rescans.eventsLost = true // and so nobody knows what else happened
		case e.Name != "" && !e.IsOther:
			s.observeNew(e.Name)
		}
		if n == maxEventsPerPass {
			return
		}
		select {
		case next, ok := <-s.events:
			if e = next; !ok {
				e.Dead = errors.New("the source of events ended")
			}
		default:
			return
		}
	}
}

// observeNew puts a folder that just came, or whose rights changed, under observation even without a sidecar: the sidecar
// is often the last file to be copied.
func (s *session) observeNew(name string) {
	if s.cfg.Reserved(name) || s.cfg.Rules.Junk(name) { // a folder of such a name is found by a rescan
		return
	}
	info, err := s.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return
	}
	s.rescans.noSidecar.forgetFolder(name)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sched.observe(name, now) {
		s.rescans.queued++ // a rescan finds it when there is room
		return
	}
	s.sched.scanSoon(name, now)
}

// rescan finds out the truth about what is in the drop folder: it reads all of it, but for the parts that are surely as they were.
func (s *session) rescan(ctx context.Context, now time.Time, asked bool) error {
	if err := s.verifyDropFolder(now); err != nil {
		return err
	}
	l := &s.rescans
	before, err := s.dropState()
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	s.checkEvents(before)
	s.mu.Lock()
	s.sched.removeIdle(l.queued > 0, now)
	known := l.noSidecar.dropState == before || l.ownEvents > 0 && now.Sub(l.noSidecar.lastFullRead) < maxFullReadAge
	same := !asked && l.events == l.ownEvents && l.queued == 0 && !s.sched.removedAny && s.events != nil && s.isLocal && l.noSidecar.isComplete && known
	own := l.ownEvents
	l.events, l.ownEvents, s.sched.removedAny = 0, 0, false
	s.mu.Unlock()
	l.last, l.isSoon, l.isRefill = now, false, false
	l.noSidecar.beginRound(!asked && s.events != nil && s.isLocal && !l.eventsLost && l.unannounced == 0)
	if same && l.noSidecar.allUnchanged(s.root) {
		if !l.noSidecar.acceptOwnChange(before, now) {
			l.events, l.ownEvents = own, own
		}
		s.recordRescan(now)
		return nil
	}
	l.noSidecar.beginFullRead()
	r := rescanPass{session: s, counts: notTakenCounts{}, now: now, firstQueued: -1}
	if err := r.readAll(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil { // the reading was cut off: a part of the drop folder is not the drop folder
		return nil
	}
	l.isRefill = l.cursor > 0 && r.firstQueued < 0 // there was a place for all behind the cursor: now for those before it
	l.cursor, l.queued = max(r.firstQueued, 0), r.counts.count(Queued)
	l.isRefill = l.isRefill && l.queued > 0
	l.eventsLost = false
	l.noSidecar.endFullRead(before, now, !r.isIncomplete)
	s.mu.Lock()
	s.sched.setCounts(r.counts)
	s.mu.Unlock()
	s.recordRescan(now)
	s.cfg.OnChange()
	return nil
}

// dropState is the drop folder's own.
func (s *session) dropState() (dirState, error) {
	info, err := s.root.Stat(".")
	if err != nil {
		return dirState{}, err
	}
	return dirStateOf(info), nil
}

func (s *session) recordRescan(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastRescan, s.rescans.took = began, time.Since(began)
}

// checkEvents finds out that events do not arrive: the drop folder's own mtime moves with every entry that comes or goes, so a
// change without any event, twice in a row, means that nobody tells us.
func (s *session) checkEvents(now dirState) {
	l := &s.rescans
	if !l.last.IsZero() && l.events == 0 && !now.mtime.Equal(l.lastMtime) {
		l.unannounced++
	} else {
		l.unannounced = 0
	}
	l.lastMtime = now.mtime
	if l.unannounced >= 2 && s.events != nil {
		s.stopEvents("events do not arrive: rescans found changes that none told of")
	}
}

// rescanPass is one rescan under way.
type rescanPass struct {
	*session
	counts      notTakenCounts
	now         time.Time
	dir         *os.File
	position    int // position in the directory
	firstQueued int // position of the first folder at or after the cursor that found no place; -1: none

	isIncomplete bool // something could not be looked at: the next rescan tries again
}

func (r *rescanPass) readAll(ctx context.Context) error {
	dir, err := r.root.Open(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	defer dir.Close()
	r.dir = dir
	for ctx.Err() == nil {
		entries, err := dir.ReadDir(namesPerRead)
		for _, e := range entries {
			r.handleEntry(e)
			r.position++
		}
		if err == io.EOF || (err == nil && len(entries) == 0) {
			return nil
		}
		if err != nil {
			return &Pause{Kind: Vanished, Err: err}
		}
	}
	return nil
}

func (r *rescanPass) handleEntry(e os.DirEntry) {
	name := e.Name()
	if r.cfg.Reserved(name) || !e.IsDir() && r.cfg.Rules.Junk(name) {
		return
	}
	if !e.IsDir() {
		r.countNotTaken(LooseFile, name, describeLoose(e))
		return
	}
	r.mu.Lock()
	_, observed := r.sched.candidates[name]
	r.mu.Unlock()
	if observed {
		return
	}
	if r.isLocal && r.rescans.noSidecar.stillHasNone(r.dir, name) {
		if known, near := r.knownNear(name); known {
			r.countNoSidecar(name, near)
			return
		}
	}
	switch has, near, at, err := r.cfg.Rules.findSidecar(r.dir, name); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // gone since
	case err != nil:
		r.isIncomplete = true
		r.countNotTaken(reasonFor(err), name, err)
	case !has:
		r.isIncomplete = !r.rescans.noSidecar.noteNoSidecar(name, at) || r.isIncomplete
		r.countNoSidecar(name, describeNear(near, r.cfg.Rules.Sidecar))
	default:
		r.observe(name)
	}
}

// knownNear reports whether it is known what is in the folder name, which has no sidecar and is as it was, and what was probably meant
// to be one. The first of them are looked into at each rescan all the same: a sidecar in a folder inside changes nothing out here.
func (r *rescanPass) knownNear(name string) (known bool, near error) {
	if !r.counts.hasRoom(NoSidecar) {
		return true, nil
	}
	r.mu.Lock()
	before, ok := r.sched.known[name]
	r.mu.Unlock()
	if before.Detail != "" {
		near = errors.New(before.Detail)
	}
	return ok && r.counts.count(NoSidecar) >= alwaysScanned, near
}

// alwaysScanned is how many folders without a sidecar are looked into at each rescan though they are as they were.
const alwaysScanned = 100

// countNoSidecar counts a folder that has no sidecar, unless it is one of those that file servers make.
func (r *rescanPass) countNoSidecar(name string, near error) {
	if !r.cfg.Rules.Junk(name) {
		r.countNotTaken(NoSidecar, name, near)
	}
}

func describeLoose(e os.DirEntry) error {
	switch e.Type() {
	case 0:
		return nil
	case fs.ModeSymlink:
		return errors.New(LinkDetail)
	}
	return errors.New("neither file nor folder")
}

// observe puts a folder with a sidecar under observation. While not all fit, each rescan goes on where the one before found no place.
func (r *rescanPass) observe(name string) {
	r.mu.Lock()
	ok := r.position >= r.rescans.cursor && r.sched.observe(name, r.now)
	r.mu.Unlock()
	if ok {
		return
	}
	if r.position >= r.rescans.cursor && r.firstQueued < 0 {
		r.firstQueued = r.position
	}
	r.countNotTaken(Queued, name, nil)
}

func (r *rescanPass) countNotTaken(reason Reason, name string, detail error) {
	since := r.now
	if r.counts.hasRoom(reason) {
		r.mu.Lock()
		if before, ok := r.sched.known[name]; ok {
			since = before.FirstSeen
		}
		r.mu.Unlock()
	}
	r.counts.add(reason, name, since, detail)
}

func (t notTakenCounts) count(r Reason) int {
	if w := t[r]; w != nil {
		return w.Count
	}
	return 0
}
