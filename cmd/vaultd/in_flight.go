package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// inFlightCall makes one call for all who ask at the same time, and lets nobody wait longer than he wants to: when the call hangs, on a
// dead disk, whoever asks gets the result of the call before, and when that began.
type inFlightCall[T any] struct {
	do func(context.Context) T

	calls singleflight.Group
	mu    sync.Mutex
	last  T         // guarded by mu
	at    time.Time // when the call for last began; guarded by mu
}

// getResult returns what do finds now, or what it found last when it takes longer than patience or ctx. at is when that call began; it is
// zero when nothing was found yet.
func (f *inFlightCall[T]) getResult(ctx context.Context, patience time.Duration) (found T, at time.Time) {
	done := f.calls.DoChan("", func() (any, error) {
		began := time.Now()
		found := f.do(context.WithoutCancel(ctx)) // others may wait for it too
		f.mu.Lock()
		defer f.mu.Unlock()
		f.last, f.at = found, began
		return nil, nil
	})
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

// waitForEnd returns when no call is in flight. Nobody may ask any more.
func (f *inFlightCall[T]) waitForEnd() {
	f.calls.Do("", func() (any, error) { return nil, nil }) //lint:ignore errcheck it joins the call in flight, or makes an empty one
}
