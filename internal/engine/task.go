package engine

import (
	"context"
	"time"

	"vaultd/internal/archive"
)

// Task is some jobs of a lane that are done together.
type Task[J any, T Target] struct {
	Admission[T]
	Jobs  []J
	Now   archive.Instant // when it was taken
	Queue string

	engine *Engine[J, T]
	lane   *Lane[J, T]
	keys   []archive.Key // busy until it ends
	first  J             // that MayBegin is asked about
	probe  bool          // it finds out whether its target works again
	turn   chan struct{} // closed when it has a slot; nil: it had one at once
	began  time.Time     // when it got its slot; zero: it has none yet
	left   bool          // its slot was given back, or is not needed any more
}

// slots are those of one step: all its lanes share them, and a lane that has none
// may always take one.
type slots[J any, T Target] struct {
	Step[J, T]

	// Guarded by the engine's mu:
	lanes      []*Lane[J, T]
	last       int // the lane that got the last slot
	doing      int // tasks that have a slot
	before     int // tasks that have none yet
	committing int // tasks that gave theirs back and have not ended
}

// Go runs the rest of a task on a goroutine of its own, which ends it.
func (t *Task[J, T]) Go(work context.Context, rest func(context.Context)) {
	go func() {
		defer t.end()
		rest(work)
	}()
}

// Begin waits for a slot for the job j and what goes with it. false: nothing may be
// done: the engine ends, or the breaker of the task's target opened meanwhile.
func (t *Task[J, T]) Begin(j J) bool {
	e := t.engine
	e.mu.Lock()
	t.first = j
	t.lane.waiting = append(t.lane.waiting, t)
	e.giveSlots(t.lane.slots)
	waits := t.began.IsZero()
	if waits {
		t.turn = make(chan struct{})
	}
	closed := e.closed
	e.mu.Unlock()
	if waits {
		<-t.turn
		e.mu.Lock()
		closed = e.closed
		e.mu.Unlock()
	}
	_, open := e.Breakers.IsOpen(t.Target, e.cfg.Now().Wall)
	return !closed && (!open || t.probe)
}

// Leave gives the slot back, before the outcome is committed: the next task does not
// wait for the disk. done: the work was done, and its time counts.
func (t *Task[J, T]) Leave(done bool) {
	if t.left {
		return
	}
	t.left = true
	e, l := t.engine, t.lane
	if t.probe { // it may have said nothing about its target
		e.Breakers.endProbe(t.Target, e.cfg.Now().Wall)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.committing++
	if t.began.IsZero() {
		l.before--
		l.slots.before--
	} else {
		l.doing--
		l.slots.doing--
	}
	if took := max(time.Since(t.began), time.Microsecond); done && l.usualTime == 0 {
		l.usualTime = took
	} else if done {
		l.usualTime += (took - l.usualTime) / 4
	}
	if l.lacksRoom && l.before == 0 {
		e.wakeLane(l) // nothing waits for the slot
	}
	e.giveSlots(l.slots)
}

// HandOn takes a job of the task on to another step at once, where that has room for
// it: its intent can then be committed with this task's outcome. The new task ends by
// its own [Task.Go]. nil: there is no room; the job is due again after the outcome.
func (t *Task[J, T]) HandOn(step, queue string, target T, k archive.Key) *Task[J, T] {
	e := t.engine
	if !e.Breakers.IsClosed(target) {
		return nil
	}
	e.mu.Lock()
	l := e.lane(step, queue)
	e.mu.Unlock()
	most := l.slotLimit()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.freeTasksOf(l, most) == 0 {
		return nil
	}
	// It counts as under way before its intent is committed: no look takes it as well.
	next := &Task[J, T]{Admission: Admission[T]{Target: target, Most: 1}, Now: e.cfg.Now(), Queue: queue, engine: e, lane: l, keys: []archive.Key{k}}
	l.handedOn[k] = true
	e.handedOn = append(e.handedOn, next)
	e.book(next)
	return next
}

// end makes the jobs of a task free for what is due next. It may have made room for
// other queues as well.
func (t *Task[J, T]) end() {
	e := t.engine
	t.Leave(false)
	e.mu.Lock()
	e.ended = append(e.ended, t)
	t.lane.inFlight--
	t.lane.committing--
	e.wakeLane(t.lane)
	e.wakeWithoutRoom(t.lane.slots)
	e.mu.Unlock()
	e.tasks.Done()
}

// giveSlots gives slots to the tasks that wait for one. The lanes get them in turn,
// beginning after the lane that got the last one. The caller holds mu.
func (e *Engine[J, T]) giveSlots(s *slots[J, T]) {
	for e.giveNextSlot(s) {
	}
}

func (e *Engine[J, T]) giveNextSlot(s *slots[J, T]) bool {
	for i := range s.lanes {
		n := (s.last + 1 + i) % len(s.lanes)
		l := s.lanes[n]
		if len(l.waiting) == 0 || !e.closed && !l.mayBegin(l.waiting[0].first) {
			continue
		}
		// In the order in which they came: a ticket that came first ends first.
		t := l.waiting[0]
		l.waiting[0] = nil // the array behind the slice lives on, and would keep the task's jobs in memory
		l.waiting = l.waiting[1:]
		s.last = n
		t.began = time.Now()
		l.before--
		s.before--
		l.doing++
		s.doing++
		if l.before == 0 && l.lacksRoom {
			e.wakeLane(l) // it may take another task, which waits for the next slot
		}
		if t.turn != nil {
			close(t.turn)
		}
		return true
	}
	return false
}

// mayBegin reports whether a task of the lane may begin beside the others. A lane
// that has no slot waits for no other.
func (l *Lane[J, T]) mayBegin(first J) bool {
	alone := l.doing == 0
	if !alone && (l.slots.doing >= l.Width || l.doing >= l.slotLimit()) {
		return false
	}
	return l.MayBegin == nil || l.MayBegin(first, alone)
}

// IsClosed reports whether nothing begins any more.
func (e *Engine[J, T]) IsClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// close lets nothing begin any more: what waits for a slot, or will, is told so.
func (e *Engine[J, T]) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, s := range e.steps {
		e.giveSlots(s)
	}
}
