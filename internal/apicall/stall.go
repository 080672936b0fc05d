package apicall

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// watchdog cancels a transfer that stands still. A time limit on the whole would have to know the size and the line;
// progress needs to know neither.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer   // guarded by mu
	limit   time.Duration // without progress; guarded by mu
	last    time.Time     // of the last progress, or of setLimit; guarded by mu
	why     error         // guarded by mu
	stopped bool          // guarded by mu
	began   time.Time     // of the present stretch of a transfer; zero: none began; guarded by mu
	moved   int           // bytes in it; guarded by mu
}

// A transfer that moves so little in so long would not end: it is left like one that stands still.
const (
	stretch    = 10 * time.Minute
	leastMoved = 64 << 10
)

// startWatchdog returns a context that ends with why after limit, unless there is progress or setLimit changes the limit.
func startWatchdog(parent context.Context, limit time.Duration, why error) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watchdog{ctx: ctx, cancel: cancel, limit: limit, why: why, last: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(limit, w.cancelIfStalled)
	return ctx, w
}

// cancelIfStalled ends the transfer unless there was progress. Progress does not reset the timer each time, so this does it.
func (w *watchdog) cancelIfStalled() {
	w.mu.Lock()
	why, off := w.why, w.stopped
	left := w.limit - time.Since(w.last)
	if !off && left > 0 {
		w.timer.Reset(left)
	}
	w.mu.Unlock()
	if !off && left <= 0 {
		w.cancel(why)
	}
}

// setLimit sets how long the transfer may stand still from now on, and why it is ended then.
func (w *watchdog) setLimit(limit time.Duration, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.why, w.last = limit, why, time.Now()
	if !w.stopped {
		w.timer.Reset(limit) // it may be less than before
	}
}

func (w *watchdog) addProgress(n int) {
	now := time.Now()
	w.mu.Lock()
	w.last = now
	if w.began.IsZero() {
		w.began = now
	}
	w.moved += n
	over := now.Sub(w.began) >= stretch
	crawls := over && w.moved < leastMoved && !w.stopped
	if over {
		w.began, w.moved = now, 0
	}
	w.mu.Unlock()
	if crawls {
		w.cancel(errCrawls)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	w.stopped = true
	w.timer.Stop()
	w.mu.Unlock()
	w.cancel(nil)
}

// watchReader counts every byte read from r as progress and says why it was cut off.
func (w *watchdog) watchReader(r io.Reader) io.Reader { return &watched{r, w} }

type watched struct {
	r io.Reader
	w *watchdog
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if n > 0 {
		r.w.addProgress(n)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = contextCause(r.w.ctx, err)
	}
	return n, err
}
