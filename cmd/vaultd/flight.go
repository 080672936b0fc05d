package main

import (
	"context"
	"sync"
	"time"
)

// flight does one thing for all who ask at the same time, and lets nobody wait longer than he
// wants to: when it hangs, on a dead disk, whoever asks gets what it found last, and when.
type flight[T any] struct {
	do func() T

	mu    sync.Mutex
	under chan struct{} // closed at the end of what is under way; nil: nothing is; guarded by mu
	last  T             // guarded by mu
	at    time.Time     // when the last one began; guarded by mu
	wg    sync.WaitGroup
}

// get returns what do finds now, or found last when it takes longer than patience or ctx; at is
// when that began, zero when nothing was found yet.
func (f *flight[T]) get(ctx context.Context, patience time.Duration) (found T, at time.Time) {
	f.mu.Lock()
	if f.under == nil {
		f.under = make(chan struct{})
		f.wg.Go(f.run)
	}
	done := f.under
	f.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last, f.at
}

func (f *flight[T]) run() {
	began := time.Now()
	found := f.do()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.at = found, began
	close(f.under)
	f.under = nil
}

// wait returns when nothing is under way; nobody may ask any more.
func (f *flight[T]) wait() { f.wg.Wait() }
