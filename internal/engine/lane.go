package engine

import (
	"context"
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Lane is the work of one step in one queue.
type Lane[J any, T Target] struct {
	*slots[J, T]
	Terms[T]
	Queue string

	// Of the dispatcher alone:
	next       time.Duration       // when to look again, on the boot clock; 0: when woken
	batchSince archive.Instant     // when the first job of a batch that is not full was seen
	running    []*Task[J, T]       // tasks that it started, until their ends were taken note of
	busy       map[archive.Key]int // tasks with a job, until their ends were taken note of: what was read may be older than their outcomes

	// Guarded by the engine's mu:
	woken     bool
	handedOn  map[archive.Key]bool // jobs of tasks of which the dispatcher has yet to take note
	lacksRoom bool                 // something that is due was not taken: there was no room for it
	inFlight  int                  // tasks under way
	before    int                  // of them, those before their slot
	doing     int                  // of them, those that have a slot
	waiting   []*Task[J, T]        // for a slot
	usualTime time.Duration        // that a task has its slot; 0: none had one yet
}

// look takes as many tasks of a lane as there is room for.
func (e *Engine[J, T]) look(l *Lane[J, T], work context.Context) error {
	// Before anything is decided: what makes room meanwhile wakes the lane once more.
	e.setLacksRoom(l, true)
	now, next, lacksRoom := e.cfg.Now(), time.Time{}, false
	var admit func(J) Admission[T]
	var found []J
	for {
		free := e.freeTasks(l)
		if free == 0 {
			lacksRoom = true // the end of a task makes room
			break
		}
		if until, open := e.Breakers.IsOpen(l.Target, now.Wall); open {
			next = earliest(next, until)
			break
		}
		if len(found) == 0 {
			var at time.Time
			var err error
			if admit, err = l.Admit(l.Queue, now); err != nil {
				return err
			}
			if admit == nil {
				lacksRoom = true
				break
			}
			if found, at, lacksRoom, err = e.findDue(l, admit, now, max(l.Batch, free)); err != nil {
				return err
			}
			next = earliest(next, at)
		}
		if len(found) == 0 {
			l.batchSince = archive.Instant{}
			break
		}
		if full := l.batchWaitsUntil(len(found), now); now.Wall.Before(full) {
			next = earliest(next, full)
			break
		}
		t, rest, again, err := e.choose(l, admit, found, now)
		if err != nil {
			return err
		}
		if next = earliest(next, again); t == nil {
			lacksRoom = true
			break
		}
		e.start(t, work)
		l.batchSince, found = archive.Instant{}, rest
	}
	e.setLacksRoom(l, lacksRoom)
	// The wait is on the boot clock: a wall clock that is set back does not lengthen it.
	if l.next = 0; !next.IsZero() {
		l.next = max(now.Boot+next.Sub(now.Wall), 1)
	}
	e.next = sooner(e.next, l.next)
	return nil
}

func (e *Engine[J, T]) setLacksRoom(l *Lane[J, T], lacks bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.lacksRoom = lacks
}

// findDue returns up to limit jobs that are due and may go now, and when the next
// one may. lacksRoom: others are due for which there is no room.
func (e *Engine[J, T]) findDue(l *Lane[J, T], admit func(J) Admission[T], now archive.Instant, limit int) (found []J, next time.Time, lacksRoom bool, err error) {
	isBusy := func(k archive.Key) bool { return e.isBusy(l, k) }
	found, at, err := l.Due(l.Queue, now.Wall, limit, isBusy, func(j J) bool {
		a := admit(j)
		if a.No {
			lacksRoom = true
			return true
		}
		if now.Wall.Before(a.From) {
			next = earliest(next, a.From)
			return true
		}
		until, open := e.Breakers.IsOpen(a.Target, now.Wall)
		if open {
			next = earliest(next, until)
		}
		return open
	})
	// A job that is under way is never taken twice, whatever was found.
	found = slices.DeleteFunc(found, func(j J) bool { return isBusy(e.cfg.Key(j)) })
	return found, earliest(next, at), lacksRoom, err
}

// batchWaitsUntil returns until when a batch of n jobs waits for more; zero: it does
// not wait. The boot clock measures the wait, so that a wall clock that is set back
// does not lengthen it.
func (l *Lane[J, T]) batchWaitsUntil(n int, now archive.Instant) time.Time {
	if l.Linger == 0 || n >= l.Batch {
		return time.Time{}
	}
	if l.batchSince == (archive.Instant{}) {
		l.batchSince = now
	}
	return now.Wall.Add(l.Linger - (now.Boot - l.batchSince.Boot))
}

// choose makes a task of the first job and of those that are admitted like it, and
// returns the other jobs. nil: none may go now, and more may go again later.
func (e *Engine[J, T]) choose(l *Lane[J, T], admit func(J) Admission[T], found []J, now archive.Instant) (t *Task[J, T], rest []J, again time.Time, err error) {
	if l.Limit != nil {
		n, again, err := l.Limit(found)
		if n == 0 || err != nil {
			return nil, nil, again, err
		}
		found = found[:min(n, len(found))]
	}
	// Decided once for the task: a clock or a speed that is read twice may give two answers.
	how := admit(found[0])
	probe, allowed := e.Breakers.allow(how.Target, now.Wall)
	if !allowed { // it opened since findDue; the next search finds what needs another target
		return nil, nil, now.Wall, nil
	}
	jobs, rest := found[:1:1], found[1:]
	if how.Most > 1 && !probe {
		jobs, rest = nil, nil
		for i, j := range found {
			if i == 0 || len(jobs) < how.Most && admit(j) == how {
				jobs = append(jobs, j)
			} else {
				rest = append(rest, j)
			}
		}
	}
	if probe || l.Limit != nil {
		rest = nil // each task uses up what the limit allows
	}
	return &Task[J, T]{Admission: how, Jobs: jobs, Now: now, Queue: l.Queue, engine: e, lane: l, probe: probe}, rest, time.Time{}, nil
}

// start books a task, begins it, and lets it run.
func (e *Engine[J, T]) start(t *Task[J, T], work context.Context) {
	for _, j := range t.Jobs {
		k := e.cfg.Key(j)
		t.keys = append(t.keys, k)
		t.lane.busy[k]++
	}
	t.lane.running = append(t.lane.running, t)
	e.mu.Lock()
	e.book(t)
	e.mu.Unlock()
	// What it takes of a limit, and what its intents say, is booked before the next
	// lane is looked at.
	t.Go(work, t.lane.Start(t))
}

// UnderWay calls fn with each job of a step that the dispatcher took and that has not
// ended, as it was then. Only functions that the dispatcher calls may call it.
func (e *Engine[J, T]) UnderWay(step string, fn func(queue string, j J)) {
	e.mu.Lock()
	lanes := slices.Clone(e.slotsOf(step).lanes) // a commit may add one meanwhile
	e.mu.Unlock()
	for _, l := range lanes {
		for _, t := range l.running {
			for _, j := range t.Jobs {
				fn(l.Queue, j)
			}
		}
	}
}

// book counts a task that has no slot yet. The caller holds mu.
func (e *Engine[J, T]) book(t *Task[J, T]) {
	l := t.lane
	l.inFlight++
	l.before++
	l.slots.before++
	e.tasks.Add(1)
}

// readyTime is for how long tasks may wait for a slot with their intents committed:
// about as long as a commit takes, so that quick work never waits for the disk.
// Without it a vault uploads small packages only as fast as the disk commits: 75
// documents a second in place of 530, and 0.96 syncs a document in place of 0.046
// (BenchmarkEngine).
const readyTime = 50 * time.Millisecond

// maxAhead bounds the tasks of a step that wait for a slot, of all lanes together,
// beside one for each lane: each has a goroutine.
const maxAhead = 512

// maxCommitting bounds the outcomes of a step that the ledger has not committed yet.
const maxCommitting = 512

// freeTasks returns how many more tasks a lane may take: one that waits for its
// slot, and as many as there are free slots; beyond that as many as have their slot
// within readyTime. Slow work takes no more than that: a crash would leave intents
// of which no byte was sent.
func (e *Engine[J, T]) freeTasks(l *Lane[J, T]) int {
	most := l.slotLimit()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.freeTasksOf(l, most)
}

// freeTasksOf is freeTasks for a caller that holds mu.
func (e *Engine[J, T]) freeTasksOf(l *Lane[J, T], most int) int {
	if e.closed || l.committing >= maxCommitting {
		return 0
	}
	ahead := 0
	if l.usualTime > 0 {
		ahead = int(min(time.Duration(l.Ahead), time.Duration(most)*readyTime/l.usualTime))
	}
	free := l.Width - l.slots.doing - l.slots.before
	return max(0, min(ahead-l.before, maxAhead-l.slots.before), min(max(free, 1-l.before), most-l.before-l.doing))
}

// slotLimit returns how many tasks of the lane may have a slot at once.
func (l *Lane[J, T]) slotLimit() int {
	if l.Slots == nil {
		return l.Width
	}
	return min(l.Slots(), l.Width)
}
