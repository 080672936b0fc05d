package ingest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// worker does the work of one step in one queue: it takes what is due, commits the intents, does it and commits the
// outcomes. Whatever hangs, waits or piles up in its queue costs the workers of other queues nothing: they share the
// pool's slots alone, and a worker that has none may always take one.
//
// It remembers which entries are under way, and nothing else that a restart would miss.
type worker struct {
	step
	engine      *Engine
	pool        *pool
	queue       string
	queueTarget Target        // what all work of the queue needs; zero: nothing
	wake        chan struct{} // size 1: a hint that something may be due

	running    atomic.Bool               // its loop runs; supervise starts it
	searchedAt atomic.Pointer[time.Time] // when the loop last found out what to start
	lacksRoom  atomic.Bool               // something that is due was not taken: there was no room for it
	batchSince archive.Instant           // when the first entry of a batch that is not full was seen; only the loop

	// Guarded by pool.mu:
	busy      map[archive.Key]bool // from being taken until the outcome is committed
	ended     map[archive.Key]bool // tasks of them ended since the loop began to look: what it read of them may be too old
	ready     []*task              // tasks that wait for a slot; their intents are committed
	waiting   int                  // tasks without a slot: their intents are being committed, or they are ready
	doing     int                  // tasks that have a slot
	usualTime time.Duration        // how long a task takes; 0: none was done yet
}

// wakeUp makes the loop look at what is due, and starts it where it does not run. It never waits.
func (w *worker) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
	if !w.running.Load() {
		w.engine.wakeSupervisor()
	}
}

// stopWhenIdle ends the loop of a worker whose queue has been empty for a while. A hint that came meanwhile starts it again.
func (w *worker) stopWhenIdle() {
	w.running.Store(false)
	if len(w.wake) > 0 {
		w.engine.wakeSupervisor()
	}
}

// run takes what is due until stop ends, or until nothing was due for the longest sleep; work goes on under its own
// context.
func (w *worker) run(stop, work context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for waits := true; ; {
		slept := false
		select {
		case <-stop.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
			slept = true
		}
		if stop.Err() != nil {
			return nil
		}
		if slept && !waits {
			w.stopWhenIdle() // a thousand queues that are empty cost nothing
			return nil
		}
		next, err := w.takeDue(work)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		waits = !next.IsZero() || w.lacksRoom.Load()
		now := time.Now() // it keeps its monotonic part: a wall clock that was set makes no loop look stalled
		w.searchedAt.Store(&now)
		timer.Reset(w.engine.sleepUntil(next))
	}
}

// takeDue takes as many tasks as there is room for, and returns when to look again.
func (w *worker) takeDue(work context.Context) (time.Time, error) {
	if w.risky && w.engine.isHeld() || w.engine.isDraining(w.name, w.queue) {
		return time.Time{}, nil
	}
	// Set before anything is decided: what makes room meanwhile wakes the loop once more.
	w.lacksRoom.Store(true)
	w.pool.forgetEnded(w)
	now, next, lacksRoom := w.engine.cfg.Now(), earliest{}, false
	var found []ledger.Entry
	for {
		free := w.pool.freeTasks(w)
		if free == 0 {
			lacksRoom = true // the end of a task makes room
			break
		}
		if until, open := w.engine.breakers.isOpen(w.queueTarget, now.Wall); open {
			next.add(until)
			break
		}
		if len(found) == 0 {
			var err error
			if found, lacksRoom, err = w.findDue(now, max(w.batch, free), &next); err != nil {
				return next.time, err
			}
		}
		if len(found) == 0 {
			w.batchSince = archive.Instant{}
			break
		}
		if full := w.batchWaitsUntil(len(found), now); now.Wall.Before(full) {
			next.add(full)
			break
		}
		rest, again, taken := w.takeTask(work, found, now)
		next.add(again)
		if !taken {
			lacksRoom = true
			break
		}
		w.batchSince, found = archive.Instant{}, rest
	}
	w.lacksRoom.Store(lacksRoom)
	return next.time, nil
}

// findDue returns up to limit entries that are due and may go now. lacksRoom: others are due for which there is no room.
func (w *worker) findDue(now archive.Instant, limit int, next *earliest) (found []ledger.Entry, lacksRoom bool, err error) {
	admitted := func(ledger.Entry) bool { return true }
	if w.admit != nil {
		if admitted, err = w.admit(w.queue, now); admitted == nil || err != nil {
			return nil, true, err
		}
	}
	found, at, err := w.engine.cfg.Index.DueInQueue(w.name, w.queue, now.Wall, limit, w.isBusy, func(e ledger.Entry) bool {
		how := w.handling(e, now)
		if now.Wall.Before(how.from) {
			next.add(how.from)
			return true
		}
		if until, open := w.engine.breakers.isOpen(how.target, now.Wall); open {
			next.add(until)
			return true
		}
		if !admitted(e) {
			lacksRoom = true
			return true
		}
		return false
	})
	next.add(at)
	return found, lacksRoom, err
}

// batchWaitsUntil returns until when a batch of n entries waits for more; zero: it does not wait. The boot clock measures
// the wait, so that a wall clock that is set back does not lengthen it.
func (w *worker) batchWaitsUntil(n int, now archive.Instant) time.Time {
	if w.linger == 0 || n >= w.batch {
		return time.Time{}
	}
	if w.batchSince == (archive.Instant{}) {
		w.batchSince = now
	}
	return now.Wall.Add(w.linger - (now.Boot - w.batchSince.Boot))
}

// takeTask makes a task of entries that were found, commits its intents, and returns the other entries. taken: there was one.
func (w *worker) takeTask(work context.Context, found []ledger.Entry, now archive.Instant) (rest []ledger.Entry, again time.Time, taken bool) {
	if w.limit != nil {
		// What the limit allows one worker depends on what the others have taken: one decides after the other.
		w.pool.choosing.Lock()
		defer w.pool.choosing.Unlock()
	}
	t, rest, again := w.chooseTask(found, now)
	if t != nil {
		w.intendTask(work, t, now)
	}
	return rest, again, t != nil
}

// chooseTask makes a task of the first entry and of those that are handled like it, and returns the rest. nil: nothing may go
// now, and more may go again later.
func (w *worker) chooseTask(found []ledger.Entry, now archive.Instant) (t *task, rest []ledger.Entry, again time.Time) {
	if w.limit != nil {
		n, again := w.limit(found)
		if n == 0 {
			return nil, nil, again
		}
		found = found[:min(n, len(found))]
	}
	how := w.handling(found[0], now)
	probe, allowed := w.engine.breakers.allow(how.target, now.Wall)
	if !allowed { // it opened since findDue; the next search finds what needs another target
		return nil, nil, now.Wall
	}
	entries, rest := w.splitByHandling(how, found, now)
	if probe {
		entries, rest = entries[:1], nil
	}
	if w.limit != nil {
		rest = nil // each task uses up what the limit allows
	}
	return &task{handling: how, entries: entries, probe: probe}, rest, time.Time{}
}

func (w *worker) handling(e ledger.Entry, now archive.Instant) handling {
	if w.handle != nil {
		return w.handle(e, now)
	}
	return handling{target: w.queueTarget, most: w.batch}
}

// splitByHandling returns those of the found entries that are handled as the first one is, and the rest.
func (w *worker) splitByHandling(how handling, found []ledger.Entry, now archive.Instant) (entries, rest []ledger.Entry) {
	if how.most == 1 {
		return found[:1:1], found[1:]
	}
	for i, e := range found {
		if i == 0 || len(entries) < how.most && w.handling(e, now) == how {
			entries = append(entries, e)
		} else {
			rest = append(rest, e)
		}
	}
	return entries, rest
}

// isBusy reports whether findDue skips an entry: it is under way, or was when the search began. What is read of it may
// then be older than its outcome. The end of its task wakes the loop, which then looks anew.
func (w *worker) isBusy(k archive.Key) bool {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	return w.busy[k] || w.ended[k]
}

// earliest keeps the earliest of the times that are not zero.
type earliest struct{ time time.Time }

func (e *earliest) add(t time.Time) {
	if !t.IsZero() && (e.time.IsZero() || t.Before(e.time)) {
		e.time = t
	}
}
