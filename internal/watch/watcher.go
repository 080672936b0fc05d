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
	cfg       Config
	roundSize int           // maxCheckedPerRound, but for tests
	wake      chan struct{} // size 1: something to do before the timer

	mu              sync.Mutex
	sched           *scheduler  // guarded by mu
	rescanRequested bool        // guarded by mu: somebody wants a rescan
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
	return &Watcher{cfg: cfg, roundSize: maxCheckedPerRound, wake: make(chan struct{}, 1), sched: newScheduler(cfg)}, nil
}

// Run observes until ctx ends, then waits for the takes under way and returns ctx's cause. It is called once.
//
// take is called for each settled folder, from up to Parallel goroutines, one call at a time for a folder. nil or
// fs.ErrNotExist ends the observation; any other error keeps the folder, with a reason made from the error's errno, and it
// is looked at and tried again later, at growing intervals up to Rescan.
func (w *Watcher) Run(ctx context.Context, take func(context.Context, Folder) error) error {
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

// RequestRescan asks for a rescan now.
func (w *Watcher) RequestRescan() {
	w.mu.Lock()
	w.rescanRequested = true
	w.mu.Unlock()
	w.wakeUp()
}

// Snapshot tells the present state. It does not touch the drop folder.
func (w *Watcher) Snapshot() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Snapshot{
		Mode: w.mode, ModeReason: w.modeReason, Paused: w.paused, LastRescan: w.lastRescan,
		Observed: len(w.sched.candidates), NotTaken: w.sched.notTaken(),
	}
}

func (w *Watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

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

// session is one stretch of work on the right drop folder. It returns nil when ctx ended, else why it has to pause.
type session struct {
	*Watcher
	root     *os.Root
	events   <-chan Event // nil: polling
	stop     func()
	isLocal  bool      // nobody changes the drop folder from another machine, so what the kernel says of it is so
	verified time.Time // when the drop folder was last found to be the right one
	rescans  rescanState
}

func (w *Watcher) runSession(ctx context.Context, takes *sync.WaitGroup, take func(context.Context, Folder) error) error {
	root, err := os.OpenRoot(w.cfg.Path)
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	defer root.Close()
	s := &session{Watcher: w, root: root, stop: func() {}, rescans: rescanState{noSidecar: newNoSidecarCache(w.roundSize)}}
	if err := s.verifyDropFolder(time.Now()); err != nil {
		return err
	}
	s.startEvents()
	defer func() { s.stop() }()
	w.mu.Lock()
	w.paused = nil
	w.mu.Unlock()
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

// doDueWork does what is due.
func (s *session) doDueWork(ctx context.Context) error {
	now := time.Now()
	if now.Sub(s.verified) >= time.Second {
		if err := s.verifyDropFolder(now); err != nil {
			return err
		}
	}
	if asked := s.takeRescanRequest(); asked || !s.rescans.dueAt(s.cfg.Rescan).After(now) {
		if err := s.rescan(ctx, now, asked); err != nil {
			return err
		}
	}
	if s.scanDueFolders(ctx) > 0 {
		s.cfg.OnChange()
	}
	return nil
}

// nextWorkAt tells when there is something to do again, if nobody wakes us.
func (s *session) nextWorkAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rescans.queued > 0 && len(s.sched.candidates) <= s.cfg.Max/2 {
		s.rescans.isRefill = true // there is room for those that found none
	}
	next := s.rescans.dueAt(s.cfg.Rescan)
	if at, ok := s.sched.next(); ok {
		next = earlierOf(next, at)
	}
	return next
}

func (w *Watcher) takeRescanRequest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.rescanRequested
	w.rescanRequested = false
	if asked {
		w.sched.retryHeld(time.Now())
	}
	return asked
}

// These bound how long events, takes and the rescan wait for looks.
const (
	maxScansPerPass = 1024
	maxScanTime     = 20 * time.Millisecond
)

// scanDueFolders makes the looks that are due and tells how many were.
func (s *session) scanDueFolders(ctx context.Context) int {
	began := time.Now()
	s.mu.Lock()
	due := s.sched.due(began, maxScansPerPass)
	s.mu.Unlock()
	for _, sub := range due {
		if ctx.Err() != nil || time.Since(began) > maxScanTime {
			break
		}
		s.scanCandidate(ctx, sub)
	}
	return len(due)
}

// scanCandidate reads sub without the lock: nobody but Run's goroutine changes a subject that is not being taken.
func (s *session) scanCandidate(ctx context.Context, sub *candidate) {
	began := time.Now()
	look, err := s.cfg.Rules.ScanFolder(s.root, sub.Name)
	var verdict error
	changed := !sub.hasListErr || look.Fingerprint != sub.Scan.Fingerprint
	if err == nil && s.cfg.Complete == List && look.Sidecar != "" && changed {
		verdict = s.cfg.IsComplete(ctx, s.root, Folder{Name: sub.Name, FirstSeen: sub.FirstSeen, Scan: look})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.sched.recordScanError(sub, err, time.Now())
		return
	}
	s.sched.recordScan(sub, look, verdict, began, time.Now())
}

// startTakers starts takers, as far as there is something to take and room. Each goes on by itself until nothing is ready, so
// that a long rescan does not hold up what has settled.
func (w *Watcher) startTakers(ctx context.Context, takes *sync.WaitGroup, take func(context.Context, Folder) error) {
	for ctx.Err() == nil {
		f, ok := w.nextToTake()
		if !ok {
			return
		}
		takes.Go(func() {
			for ; ok; f, ok = w.nextToTake() {
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

func (w *Watcher) nextToTake() (Folder, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused != nil {
		return Folder{}, false
	}
	return w.sched.nextToTake(time.Now())
}

// waitForWork ends at a hint, a wake-up, the end of ctx or after d.
func (w *Watcher) waitForWork(ctx context.Context, events <-chan Event, d time.Duration) (Event, bool) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case e, ok := <-events:
		if !ok {
			e.Dead = errors.New("the source of events ended")
		}
		return e, true
	case <-w.wake:
	case <-timer.C:
	case <-ctx.Done():
	}
	return Event{}, false
}

// verifyDropFolder finds out whether path still leads to the folder that root holds open, and whether it is the right one.
func (s *session) verifyDropFolder(now time.Time) error {
	there, err := os.Stat(s.cfg.Path)
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	here, err := s.root.Stat(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	another := s.openedAs != nil && !os.SameFile(s.openedAs, there)
	if !os.SameFile(here, there) || another && s.cfg.Check == nil {
		return &Pause{Kind: Replaced, Err: fmt.Errorf("%q is another folder than the one seen first", s.cfg.Path)}
	}
	if s.cfg.Check != nil {
		if err := s.cfg.Check(); err != nil && another {
			return &Pause{Kind: Replaced, Err: err}
		} else if err != nil {
			return &Pause{Kind: Refused, Err: err}
		}
	}
	s.openedAs, s.verified = there, now
	return nil
}
