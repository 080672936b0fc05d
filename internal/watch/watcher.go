package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Watcher observes one drop folder.
type Watcher struct {
	cfg  Config
	wake chan struct{} // size 1: there is work before the timer ends

	mu              sync.Mutex
	sched           *scheduler  // guarded by mu
	rescanRequested bool        // guarded by mu: RequestRescan was called
	mode            Mode        // guarded by mu
	modeReason      string      // guarded by mu
	paused          *Pause      // guarded by mu
	lastRescan      time.Time   // guarded by mu
	openedAs        fs.FileInfo // the drop folder as first seen; used by Run alone
}

// New checks the configuration. It does not touch the drop folder.
func New(cfg Config) (*Watcher, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, wake: make(chan struct{}, 1), sched: newScheduler(cfg)}, nil
}

// Run observes until ctx ends, then waits for the running takes and returns the cause of ctx. It is called once.
//
// It calls take for each settled item, from up to MaxTakes goroutines, one call at a time for an item. When take returns nil
// or fs.ErrNotExist the observation ends. After any other error the item stays, with a reason made from the error's errno; it
// is scanned and tried again later, at growing intervals up to Rescan.
func (w *Watcher) Run(ctx context.Context, take func(context.Context, Item) error) error {
	var takes sync.WaitGroup
	defer takes.Wait()
	for ctx.Err() == nil {
		if err := w.runSession(ctx, &takes, take); err != nil {
			w.setPaused(err)
		}
		w.waitForWork(ctx, nil, min(w.cfg.Rescan, 15*time.Second))
	}
	return context.Cause(ctx)
}

// RequestRescan makes the watcher read the whole drop folder now, after CheckDropFolder.
func (w *Watcher) RequestRescan() {
	w.mu.Lock()
	w.rescanRequested = true
	w.mu.Unlock()
	w.wakeUp()
}

// Snapshot returns the present state. It does not touch the drop folder.
func (w *Watcher) Snapshot() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Snapshot{
		Mode: w.mode, ModeReason: w.modeReason, Paused: w.paused, LastRescan: w.lastRescan,
		Observed: len(w.sched.candidates), Taking: w.sched.countTaking(), NotTaken: w.sched.notTaken(), Ignored: w.sched.ignored.clone().sorted(),
	}
}

func (w *Watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// setPaused records why the drop folder is not looked at, and since when.
func (w *Watcher) setPaused(err error) {
	var p *Pause
	if !errors.As(err, &p) {
		p = &Pause{Kind: Vanished, Err: err}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p.Since = time.Now()
	if w.paused != nil && w.paused.Kind == p.Kind {
		p.Since = w.paused.Since
	}
	w.paused = p
	w.cfg.OnChange()
}

// session is the work on one opened drop folder. It ends when ctx ends or when the folder is no longer the right one.
type session struct {
	*Watcher
	root    *os.Root
	here    fs.FileInfo  // root
	events  <-chan Event // nil: polling
	stop    func()
	isLocal bool // no other machine changes the drop folder, so the kernel sees each change
	rescans rescanState
}

// runSession works on the drop folder until ctx ends, and returns nil then. Any other return says why it has to pause.
func (w *Watcher) runSession(ctx context.Context, takes *sync.WaitGroup, take func(context.Context, Item) error) error {
	root, err := os.OpenRoot(w.cfg.Path)
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	defer root.Close() // read-only
	here, err := root.Stat(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	s := &session{Watcher: w, root: root, here: here, stop: func() {}}
	if err := s.checkDropFolder(); err != nil {
		return err
	}
	// Both start before the first rescan: what changes while it reads is announced.
	s.watchOpens()
	s.startEvents()
	defer func() { s.stop() }()
	w.mu.Lock()
	w.paused = nil
	w.mu.Unlock()
	w.cfg.OnChange()
	for ctx.Err() == nil {
		if err := s.doDueWork(ctx); err != nil {
			return err
		}
		w.startTakers(ctx, takes, take)
		if e, ok := w.waitForWork(ctx, s.events, time.Until(s.nextWorkAt())); ok {
			s.handleEvents(e)
		}
	}
	return nil
}

// watchOpens watches the drop folder for single files that programs open: the
// first scan of one may come too late for it.
func (s *session) watchOpens() {
	if s.cfg.Kind != Files || s.cfg.Rules.Opens == nil {
		return
	}
	if dir, err := s.root.Open("."); err == nil {
		s.cfg.Rules.Opens.watchFolder(dir)
		_ = dir.Close() // read-only
	}
}

// doDueWork verifies the drop folder, then makes a rescan and folder scans as far as they are due.
func (s *session) doDueWork(ctx context.Context) error {
	now := time.Now()
	if err := s.verifyPath(); err != nil {
		return err
	}
	requested := s.takeRescanRequest()
	if requested {
		if err := s.checkDropFolder(); err != nil {
			return err
		}
	}
	if requested || !s.rescanDueAt().After(now) {
		if err := s.rescan(ctx, now); err != nil {
			return err
		}
	}
	if s.scanDueFolders(ctx) > 0 {
		s.cfg.OnChange()
	}
	return nil
}

// nextWorkAt returns when there is something to do again, if nothing wakes the session before.
func (s *session) nextWorkAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rescans.queued > 0 && len(s.sched.candidates) <= s.cfg.MaxObserved/2 {
		// Half the places are free: queued folders get them now.
		s.rescans.isRefill = true
	}
	next := s.rescanDueAt()
	if at, ok := s.sched.next(); ok {
		next = earlierOf(next, at)
	}
	return next
}

func (s *session) rescanDueAt() time.Time {
	return s.rescans.dueAt(s.cfg.Rescan, s.isLocal && s.events != nil)
}

func (w *Watcher) takeRescanRequest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	requested := w.rescanRequested
	w.rescanRequested = false
	if requested {
		w.sched.retryHeld(time.Now())
	}
	return requested
}

// These bound how long events, takes and the rescan wait for folder scans.
const (
	maxScansPerPass = 1024
	maxScanTime     = 20 * time.Millisecond
)

// scanDueFolders scans the folders that are due, and returns how many were due.
func (s *session) scanDueFolders(ctx context.Context) int {
	began := time.Now()
	s.mu.Lock()
	due := s.sched.due(began, maxScansPerPass)
	s.mu.Unlock()
	for _, c := range due {
		if ctx.Err() != nil || time.Since(began) > maxScanTime {
			break
		}
		s.scanCandidate(ctx, c)
	}
	return len(due)
}

// scanCandidate scans one folder and records the outcome. It reads c without the lock: only Run's goroutine changes a candidate
// that is not being taken.
func (s *session) scanCandidate(ctx context.Context, c *candidate) {
	began := time.Now()
	scan, err := s.scanItem(c.Name)
	var listErr error
	if err == nil && s.mustAskIfComplete(c, scan, began) {
		listErr = s.cfg.IsComplete(ctx, s.root, Item{Name: c.Name, FirstSeen: c.FirstSeen, Scan: scan})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.sched.recordScanError(c, err, time.Now())
		return
	}
	s.sched.recordScan(c, scan, listErr, began, time.Now())
}

func (s *session) scanItem(name string) (Scan, error) {
	if s.cfg.Kind == Files {
		return s.cfg.Rules.scanFile(s.root, name)
	}
	return s.cfg.Rules.ScanFolder(s.root, name)
}

// mustAskIfComplete reports whether IsComplete has to be asked about what a scan that began at began saw: for a list where the
// folder changed, for a single file once it has settled and until it is taken for the first time.
func (s *session) mustAskIfComplete(c *candidate, scan Scan, began time.Time) bool {
	isUnchanged := scan.Fingerprint == c.Scan.Fingerprint
	if s.cfg.Kind == Files {
		return s.cfg.IsComplete != nil && isUnchanged && !c.unchangedSince.IsZero() && began.Sub(c.unchangedSince) >= s.cfg.Settle && c.refusals == 0
	}
	return s.cfg.Complete == List && scan.Sidecar != "" && !(c.hasListErr && isUnchanged)
}

// startTakers starts goroutines that take settled folders, as many as there are folders and free places. Each goes on until
// nothing is ready, so that a long rescan does not delay folders that have settled. Run waits for them.
func (w *Watcher) startTakers(ctx context.Context, takes *sync.WaitGroup, take func(context.Context, Item) error) {
	for ctx.Err() == nil {
		f, ok := w.nextToTake()
		if !ok {
			return
		}
		takes.Go(func() {
			for ; ok; f, ok = w.nextToTake() {
				// A crash in take leaves the folder in the drop folder or in a claim. The next start finds it in either place.
				err := take(ctx, f)
				w.mu.Lock()
				w.sched.recordTaken(f.Name, err, time.Now())
				w.mu.Unlock()
				w.cfg.OnChange()
				if ctx.Err() != nil {
					return
				}
			}
			w.wakeUp()
		})
	}
}

func (w *Watcher) nextToTake() (Item, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused != nil {
		return Item{}, false
	}
	return w.sched.nextToTake(time.Now())
}

// waitForWork returns at an event, at a wake-up, when ctx ends, or after d.
func (w *Watcher) waitForWork(ctx context.Context, events <-chan Event, d time.Duration) (Event, bool) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case e, ok := <-events:
		if !ok {
			e.Dead = errEventsEnded
		}
		return e, true
	case <-w.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	return Event{}, false
}

// verifyPath checks that the path still leads to the folder that is open.
func (s *session) verifyPath() error {
	there, err := os.Stat(s.cfg.Path)
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	if !os.SameFile(s.here, there) {
		return &Pause{Kind: Replaced, Err: s.errAnother()}
	}
	return nil
}

// checkDropFolder checks that the open folder is the one seen first, or one
// that CheckDropFolder accepts.
func (s *session) checkDropFolder() (err error) {
	kind := Refused
	if s.openedAs != nil && !os.SameFile(s.openedAs, s.here) {
		kind, err = Replaced, s.errAnother()
	}
	if s.cfg.CheckDropFolder != nil {
		err = s.cfg.CheckDropFolder()
	}
	if err != nil {
		return &Pause{Kind: kind, Err: err}
	}
	s.openedAs = s.here
	return nil
}

func (s *session) errAnother() error {
	return fmt.Errorf("%q is another folder than the one seen first", s.cfg.Path)
}
