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
	many int           // manyBare, but for tests
	wake chan struct{} // size 1: something to do before the timer

	mu     sync.Mutex
	book   *book       // guarded by mu
	asked  bool        // guarded by mu: somebody wants a rescan
	mode   Mode        // guarded by mu
	why    string      // guarded by mu
	paused *Pause      // guarded by mu
	listed time.Time   // guarded by mu
	self   fs.FileInfo // the drop folder as first seen; used by Run alone
}

// New checks the configuration. It does not touch the drop folder.
func New(cfg Config) (*Watcher, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	return &Watcher{cfg: cfg, many: manyBare, wake: make(chan struct{}, 1), book: newBook(cfg)}, nil
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
		if err := w.session(ctx, &takes, take); err != nil {
			w.pause(err)
		}
		w.wait(ctx, nil, min(w.cfg.Rescan, 15*time.Second))
	}
	return context.Cause(ctx)
}

// RequestRescan asks for a rescan now.
func (w *Watcher) RequestRescan() {
	w.mu.Lock()
	w.asked = true
	w.mu.Unlock()
	w.poke()
}

// Snapshot tells the present state. It does not touch the drop folder.
func (w *Watcher) Snapshot() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Snapshot{
		Mode: w.mode, ModeReason: w.why, Paused: w.paused, LastRescan: w.listed,
		Observed: len(w.book.subjects), NotTaken: w.book.notTaken(),
	}
}

func (w *Watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watcher) pause(err error) {
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
	local    bool      // nobody changes the drop folder from another machine, so what the kernel says of it is so
	verified time.Time // when the drop folder was last found to be the right one
	listing  listing
}

func (w *Watcher) session(ctx context.Context, takes *sync.WaitGroup, take func(context.Context, Folder) error) error {
	root, err := os.OpenRoot(w.cfg.Path)
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	defer root.Close()
	s := &session{Watcher: w, root: root, stop: func() {}, listing: listing{bare: newBare(w.many)}}
	if err := s.verify(time.Now()); err != nil {
		return err
	}
	s.listen()
	defer func() { s.stop() }()
	w.mu.Lock()
	w.paused = nil
	w.mu.Unlock()
	for ctx.Err() == nil {
		if err := s.pass(ctx); err != nil {
			return err
		}
		w.dispatch(ctx, takes, take)
		if e, ok := w.wait(ctx, s.events, time.Until(s.next())); ok {
			s.heed(e)
		}
	}
	return nil
}

// pass does what is due.
func (s *session) pass(ctx context.Context) error {
	now := time.Now()
	if now.Sub(s.verified) >= time.Second {
		if err := s.verify(now); err != nil {
			return err
		}
	}
	if asked := s.takeAsked(); asked || !s.listing.due(s.cfg.Rescan).After(now) {
		if err := s.rescan(ctx, now, asked); err != nil {
			return err
		}
	}
	if s.lookAround(ctx) > 0 {
		s.cfg.OnChange()
	}
	return nil
}

// next tells when there is something to do again, if nobody wakes us.
func (s *session) next() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing.left > 0 && len(s.book.subjects) <= s.cfg.Max/2 {
		s.listing.refill = true // there is room for those that found none
	}
	next := s.listing.due(s.cfg.Rescan)
	if at, ok := s.book.next(); ok {
		next = earlier(next, at)
	}
	return next
}

func (w *Watcher) takeAsked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = false
	if asked {
		w.book.release(time.Now())
	}
	return asked
}

// These bound how long events, takes and the rescan wait for looks.
const (
	looksPerPass = 1024
	looksAtMost  = 20 * time.Millisecond
)

// lookAround makes the looks that are due and tells how many were.
func (s *session) lookAround(ctx context.Context) int {
	began := time.Now()
	s.mu.Lock()
	due := s.book.due(began, looksPerPass)
	s.mu.Unlock()
	for _, sub := range due {
		if ctx.Err() != nil || time.Since(began) > looksAtMost {
			break
		}
		s.lookAt(ctx, sub)
	}
	return len(due)
}

// lookAt reads sub without the lock: nobody but Run's goroutine changes a subject that is not being taken.
func (s *session) lookAt(ctx context.Context, sub *subject) {
	began := time.Now()
	look, err := s.cfg.Rules.ScanFolder(s.root, sub.Name)
	var verdict error
	changed := !sub.judged || look.Fingerprint != sub.Scan.Fingerprint
	if err == nil && s.cfg.Complete == List && look.Sidecar != "" && changed {
		verdict = s.cfg.IsComplete(ctx, s.root, Folder{Name: sub.Name, FirstSeen: sub.FirstSeen, Scan: look})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.book.unseen(sub, err, time.Now())
		return
	}
	s.book.saw(sub, look, verdict, began, time.Now())
}

// dispatch starts takers, as far as there is something to take and room. Each goes on by itself until nothing is ready, so
// that a long rescan does not hold up what has settled.
func (w *Watcher) dispatch(ctx context.Context, takes *sync.WaitGroup, take func(context.Context, Folder) error) {
	for ctx.Err() == nil {
		f, ok := w.nextToTake()
		if !ok {
			return
		}
		takes.Go(func() {
			for ; ok; f, ok = w.nextToTake() {
				err := take(ctx, f)
				w.mu.Lock()
				w.book.taken(f.Name, err, time.Now())
				w.mu.Unlock()
				w.cfg.OnChange()
				if ctx.Err() != nil {
					return
				}
			}
			w.poke()
		})
	}
}

func (w *Watcher) nextToTake() (Folder, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused != nil {
		return Folder{}, false
	}
	return w.book.nextToTake(time.Now())
}

// wait ends at a hint, a wake-up, the end of ctx or after d.
func (w *Watcher) wait(ctx context.Context, events <-chan Event, d time.Duration) (Event, bool) {
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

// verify finds out whether path still leads to the folder that root holds open, and whether it is the right one.
func (s *session) verify(now time.Time) error {
	there, err := os.Stat(s.cfg.Path)
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	here, err := s.root.Stat(".")
	if err != nil {
		return &Pause{Kind: Vanished, Err: err}
	}
	another := s.self != nil && !os.SameFile(s.self, there)
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
	s.self, s.verified = there, now
	return nil
}
