package watch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// rescanState is what a session remembers of its rescans.
type rescanState struct {
	last        time.Time // when the last one began
	took        time.Duration
	isSoon      bool      // the next one does not wait for its regular time
	isRefill    bool      // half the places are free again, and folders are queued for one: the next one is due now
	cursor      int       // position in the directory from which folders are put under observation, while not all fit
	queued      int       // folders that found no place
	lastMtime   time.Time // mtime of the drop folder at the last one
	events      int       // since the last one
	unannounced int       // rescans in a row that found changes without an event
	noSidecar   noSidecarFolders
}

// minRescanGap keeps a storm of overflows from becoming a storm of rescans. Rescans then take at most a fifth of the time. A
// refill need not wait, because each one takes half of MaxObserved folders.
const minRescanGap = time.Second

// dueAt returns when the next rescan is due. rescan is the regular time between
// two. isHeard says that the kernel reports each change: then rescans take at
// most a thousandth of the time, up to three times the regular one, after which
// the drop would count as stalled. Otherwise rescans alone find new folders, and
// keep the regular time.
func (l *rescanState) dueAt(rescan time.Duration, isHeard bool) time.Time {
	switch {
	case l.last.IsZero() || l.isRefill:
		return l.last
	case l.isSoon:
		return l.last.Add(min(max(minRescanGap, 5*l.took), rescan))
	}
	if isHeard {
		rescan = min(max(rescan, 1000*l.took), 3*rescan)
	}
	return l.last.Add(rescan)
}

// startEvents starts to listen for events, or records why it does not.
func (s *session) startEvents() {
	fsName, err := durable.NetworkFileSystem(s.cfg.Path)
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

// stopEvents ends listening. From then on only rescans find what is new.
func (s *session) stopEvents(why string) {
	s.stop()
	s.stop, s.events = func() {}, nil
	s.rescans.isSoon = true
	s.setMode(Poll, why)
}

// maxEventsPerPass bounds how many events are handled before scans and takes go on.
const maxEventsPerPass = 4096

// handleEvents handles an event and those that wait behind it.
func (s *session) handleEvents(e Event) {
	for n := 1; ; n++ {
		s.rescans.events++
		switch {
		case e.Dead != nil:
			s.stopEvents("events ended: " + e.Dead.Error())
			return
		case e.Overflow:
			s.rescans.isSoon = true
		case e.Name != "" && !e.IsOther:
			s.observeNew(e.Name)
		}
		if n == maxEventsPerPass {
			return
		}
		select {
		case next, ok := <-s.events:
			if e = next; !ok {
				e.Dead = errEventsEnded
			}
		default:
			return
		}
	}
}

// observeNew puts an item that appeared, or whose rights changed, under observation. A folder need not have a sidecar, which is often
// the last file to be copied.
func (s *session) observeNew(name string) {
	if s.cfg.IsReserved(name) || s.cfg.IsIgnored(name) || s.cfg.Rules.IsJunk(name) || archive.IsSystemName(name) {
		// A rescan finds a folder of such a name.
		return
	}
	info, err := s.root.Lstat(name)
	if err != nil || !s.isItem(info.Mode()) {
		return
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.sched.observe(name, now) {
		// A rescan finds it when there is a free place.
		s.rescans.queued++
		return
	}
	s.sched.scanSoon(name, now)
}

// isItem reports whether something of that mode, directly in the drop folder, can be taken.
func (s *session) isItem(mode fs.FileMode) bool {
	if s.cfg.Kind == Files {
		return mode.IsRegular()
	}
	return mode.IsDir()
}

// rescan brings the watcher up to date with what really lies in the drop folder:
// it reads all names in it.
func (s *session) rescan(ctx context.Context, now time.Time) error {
	l := &s.rescans
	// The time is read before the names: a change while they are read shows at the next rescan.
	drop, err := s.root.Stat(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	s.checkEvents(drop.ModTime())
	s.mu.Lock()
	s.sched.removeIdle(l.queued, now)
	s.mu.Unlock()
	l.last, l.isSoon, l.isRefill, l.events = now, false, false, 0
	r := rescanPass{session: s, counts: notTakenCounts{}, ignored: notTakenCounts{}, now: now, firstQueued: -1, noSidecar: make(noSidecarFolders, len(l.noSidecar))}
	if err := r.readAll(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		// The reading was interrupted: what it counted is only a part.
		return nil
	}
	// All behind the cursor found a place: those before it are next.
	l.isRefill = l.cursor > 0 && r.firstQueued < 0
	l.cursor, l.queued = max(r.firstQueued, 0), r.counts.count(Queued)
	l.isRefill = l.isRefill && l.queued > 0
	l.noSidecar = r.noSidecar
	s.mu.Lock()
	hasChanged := s.sched.setCounts(r.counts, r.ignored)
	s.mu.Unlock()
	s.recordRescan(now)
	if hasChanged {
		s.cfg.OnChange()
	}
	return nil
}

func (s *session) recordRescan(began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastRescan, s.rescans.took = began, time.Since(began)
}

// checkEvents notices when events do not arrive. Each entry that comes or goes changes the mtime of the drop folder, so a change
// without an event, twice in a row, means that the kernel does not report changes here.
func (s *session) checkEvents(mtime time.Time) {
	l := &s.rescans
	if !l.last.IsZero() && l.events == 0 && !mtime.Equal(l.lastMtime) {
		l.unannounced++
	} else {
		l.unannounced = 0
	}
	l.lastMtime = mtime
	if l.unannounced >= 2 && s.events != nil {
		s.stopEvents("events do not arrive: rescans found changes that none told of")
	}
}

// rescanPass is one reading of the whole drop folder.
type rescanPass struct {
	*session
	counts      notTakenCounts
	ignored     notTakenCounts
	now         time.Time
	dir         *os.File
	position    int              // in the directory
	firstQueued int              // position of the first folder at or after the cursor that found no place; -1 if missing
	noSidecar   noSidecarFolders // found in this pass
}

func (r *rescanPass) readAll(ctx context.Context) error {
	dir, err := r.root.Open(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	defer dir.Close()
	r.dir = dir
	for ctx.Err() == nil {
		names, err := dir.Readdirnames(namesPerRead)
		for _, name := range names {
			r.handleName(name)
			r.position++
		}
		if err == io.EOF || (err == nil && len(names) == 0) {
			return nil
		}
		if err != nil {
			return &Pause{Kind: Vanished, Err: err}
		}
	}
	return nil
}

func (r *rescanPass) handleName(name string) {
	switch {
	case r.cfg.IsReserved(name):
		return
	case r.cfg.IsIgnored(name):
		r.ignored.add(IgnoredByRule, name, time.Time{}, nil)
		return
	}
	info, err := durable.Lstat(r.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // gone since
	case err != nil:
		r.countNotTaken(reasonFor(err), name, err)
	case (!info.IsDir() || r.cfg.Kind == Files) && r.isLeftAlone(name):
	case r.cfg.Kind == Files:
		r.handleFile(name, info.Mode())
	case info.IsDir():
		r.handleFolder(name, info.ID())
	default:
		r.countNotTaken(LooseFile, name, describeLoose(info.Mode()))
	}
}

func (r *rescanPass) handleFolder(name string, id durable.FileID) {
	r.mu.Lock()
	_, observed := r.sched.candidates[name]
	r.mu.Unlock()
	// Only on a local file system does a change by another machine show in the ctime at once.
	if observed || r.isLocal && r.rescans.noSidecar.has(id) && r.countUnchanged(name, id) {
		return
	}
	switch has, near, err := r.cfg.Rules.findSidecar(r.dir, name); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR): // gone since
	case has:
		r.observe(name)
	case r.isLeftAlone(name): // lost+found, which cannot be read, or a name for which only a sidecar counts
	case err != nil:
		r.countNotTaken(reasonFor(err), name, err)
	default:
		if isOldEnough(id, time.Now()) {
			r.noSidecar.add(id)
		}
		r.countNotTaken(NoSidecar, name, describeNear(near, r.cfg.Rules.Sidecar))
	}
}

// isLeftAlone reports whether something is left alone for its name, and counts
// it where a system made it. A folder without a sidecar is asked for alone.
func (r *rescanPass) isLeftAlone(name string) bool {
	if archive.IsSystemName(name) {
		r.ignored.add(IgnoredBySystem, name, time.Time{}, nil)
		return true
	}
	return r.cfg.Rules.IsJunk(name)
}

// handleFile puts a file under observation, and counts what is none.
func (r *rescanPass) handleFile(name string, mode fs.FileMode) {
	switch {
	case r.isItem(mode):
		r.observe(name)
	case mode.IsDir():
		r.countNotTaken(NotFile, name, errors.New(FolderDetail))
	default:
		r.countNotTaken(NotFile, name, describeLoose(mode))
	}
}

// countUnchanged counts the folder name, which has no sidecar and is unchanged,
// with what was probably meant to be a sidecar. It returns false for the first
// such folders, which are looked into at each rescan all the same: a sidecar that
// appears in a folder inside changes nothing out here.
func (r *rescanPass) countUnchanged(name string, id durable.FileID) bool {
	var near error
	if r.counts.hasRoom(NoSidecar) {
		r.mu.Lock()
		before, ok := r.sched.known[name]
		r.mu.Unlock()
		if !ok || r.counts.count(NoSidecar) < alwaysScanned {
			return false
		}
		if before.Detail != "" {
			near = errors.New(before.Detail)
		}
	}
	r.noSidecar.add(id)
	r.countNotTaken(NoSidecar, name, near)
	return true
}

// alwaysScanned is how many unchanged folders without a sidecar are looked into at each rescan.
const alwaysScanned = 100

func describeLoose(mode fs.FileMode) error {
	switch mode.Type() {
	case 0:
		return nil
	case fs.ModeSymlink:
		return errors.New(LinkDetail)
	}
	return errors.New("neither file nor folder")
}

// observe puts a folder with a sidecar, or a file, under observation. While not all fit, each rescan goes on at the first folder that found
// no place before.
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
