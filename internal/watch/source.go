package watch

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// Event is a hint that something changed.
type Event struct {
	Name     string // directly in the drop folder; empty: the drop folder itself
	IsOther  bool   // false: the name appeared or its rights changed; true: something else happened to it
	Overflow bool   // events were lost
	Dead     error  // not nil: no more events will come, and why
}

// EventSource delivers events on C until Stop is called, which ends its goroutine and waits for it. C need not be closed.
type EventSource struct {
	C    <-chan Event
	Stop func()
}

// errEventsEnded is for a source that closed its channel without an event that says why.
var errEventsEnded = errors.New("the source of events ended")

// kernelEvents listens with inotify.
func kernelEvents(path string) (EventSource, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return EventSource{}, explainLimit(err)
	}
	if err := w.Add(path); err != nil {
		return EventSource{}, errors.Join(explainLimit(err), w.Close())
	}
	// The buffer collects events while a pass runs, so that a burst is handled in few passes.
	c, done := make(chan Event, maxEventsPerPass), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { forwardEvents(w, filepath.Clean(path), c, done) })
	return EventSource{C: c, Stop: func() {
		close(done)
		_ = w.Close() // still unwritten
		wg.Wait()
	}}, nil
}

// forwardEvents translates the kernel's events until done is closed or no more will come.
func forwardEvents(w *fsnotify.Watcher, path string, c chan<- Event, done <-chan struct{}) {
	for {
		var out Event
		select {
		case <-done:
			return
		case e, ok := <-w.Events:
			switch {
			case !ok:
				out.Dead = errors.New("the kernel ended the watch")
			case e.Name == path && e.Has(fsnotify.Remove|fsnotify.Rename):
				out.Dead = errors.New("the watched folder was moved or removed")
			case e.Name != path:
				out.Name, out.IsOther = filepath.Base(e.Name), !e.Has(fsnotify.Create|fsnotify.Chmod)
			}
		case err, ok := <-w.Errors:
			// ErrEventOverflow or another error: events may be lost after any of them.
			_ = err
			out.Overflow = ok
			if !ok {
				out.Dead = errors.New("the kernel ended the watch")
			}
		}
		select {
		case c <- out:
		case <-done:
			return
		}
		if out.Dead != nil {
			return
		}
	}
}

// explainLimit names the kernel's limit that an error of inotify means.
func explainLimit(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the limit fs.inotify.max_user_watches is reached: %w", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("the limit fs.inotify.max_user_instances is reached: %w", err)
	}
	return err
}
