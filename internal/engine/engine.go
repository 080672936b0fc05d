package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"vaultd/internal/archive"
)

// Target is what one circuit breaker guards: one thing that work needs and that
// can fail by itself. The zero value stands for nothing: its breaker never opens.
type Target interface {
	comparable
	String() string
}

// Config is what an Engine for jobs J works with.
type Config[J any, T Target] struct {
	Steps []Step[J, T]
	Key   func(J) archive.Key // what makes a job the same one as before
	Now   func() archive.Instant
	// LongestSleep bounds the wait between two looks at what is due; 0: a minute.
	LongestSleep time.Duration
}

// Step is one kind of work.
type Step[J any, T Target] struct {
	Name  string
	Width int // tasks of all its lanes that may have a slot at once
	// Queues returns the queues that hold anything for the step, due or not yet.
	Queues func() ([]string, error)
	// Due returns jobs of a queue that are due, at most limit, but for those that busy
	// or skip names, and when the next one will be.
	Due func(queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(J) bool) ([]J, time.Time, error)
	// Terms returns the terms of a queue's work. It is asked once in a run.
	Terms func(queue string) Terms[T]
	// Admit returns how a job of a queue may go now; nil: none may, and a change
	// will wake the lane.
	Admit func(queue string, now archive.Instant) (func(J) Admission[T], error)
	// Limit returns how many of the admitted jobs may go now, and when to ask again
	// where no change will wake the lane; nil: all may.
	Limit func(admitted []J) (n int, again time.Time, err error)
	// MayBegin reports whether a job may begin beside the others of its lane, or
	// alone, and books it if so; nil: it may.
	MayBegin func(j J, alone bool) bool
	// Start begins a task on the dispatcher's goroutine: it submits the intents and
	// books what the next look must know. It waits for nothing. The function that it
	// returns does the rest of the task on a goroutine of its own.
	Start func(*Task[J, T]) (rest func(context.Context))
}

// Terms are what is special to the work of one queue.
type Terms[T Target] struct {
	Target T             // that all of it needs
	Batch  int           // jobs in one task, at most
	Linger time.Duration // how long a batch that is not full waits for more
	Ahead  int           // tasks, at most, that wait for a slot with their intents committed; see freeTasks
	// Slots returns how many of its tasks may have a slot at once; nil: the step's width.
	Slots func() int
}

// Admission is how a job may go now.
type Admission[T Target] struct {
	No     bool      // there is no room for it; a change will wake the lane
	From   time.Time // not before then; zero: at once
	Target T         // that must work
	Most   int       // jobs in its task, at most
	Kind   uint8     // the step's own: jobs of one kind go together
}

// Engine takes what is due, and starts a task for it.
type Engine[J any, T Target] struct {
	Breakers *Breakers[T]
	Limiters *Limiters[T]

	cfg      Config[J, T]
	steps    []*slots[J, T]
	wake     chan struct{}             // size 1: a lane was woken
	relist   atomic.Bool               // queues may have appeared, and every lane is looked at
	lookedAt atomic.Pointer[time.Time] // when the dispatcher last found out what to start
	tasks    sync.WaitGroup            // tasks under way

	next time.Duration // when the first lane has something due, or earlier, on the boot clock; 0: none has. Of the dispatcher alone

	mu       sync.Mutex // guards all below, the slots of the steps, and what the lanes say
	lanes    map[laneID]*Lane[J, T]
	handedOn []*Task[J, T] // of which the dispatcher has yet to take note
	ended    []*Task[J, T] // of whose ends it has yet to take note
	woken    []*Lane[J, T] // to be looked at
	closed   bool          // nothing begins any more
}

type laneID struct{ step, queue string }

// New returns an engine; it does nothing before Dispatch.
func New[J any, T Target](cfg Config[J, T]) *Engine[J, T] {
	e := &Engine[J, T]{Breakers: newBreakers[T](), Limiters: newLimiters[T](), cfg: cfg, wake: make(chan struct{}, 1), lanes: map[laneID]*Lane[J, T]{}}
	for _, s := range cfg.Steps {
		e.steps = append(e.steps, &slots[J, T]{Step: s})
	}
	return e
}

// Dispatch takes what is due until stop ends; work goes on under its own context.
// Its error is one of the ledger.
func (e *Engine[J, T]) Dispatch(stop, work context.Context) error {
	defer e.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for listed := (time.Time{}); ; {
		select {
		case <-stop.Done():
			return nil
		case <-e.wake:
			// Tasks whose outcomes one commit made durable end together: one look serves all.
			runtime.Gosched()
		case <-timer.C:
		}
		// Queues that a restart finds have their lanes from here: going on after a
		// crash needs no other code.
		if now := time.Now(); e.relist.Swap(false) || now.Sub(listed) >= e.longestSleep() {
			if err := e.listLanes(); err != nil {
				return err
			}
			listed = now
		}
		for _, l := range e.takeWoken() {
			if stop.Err() != nil {
				return nil
			}
			if err := e.look(l, work); err != nil {
				return fmt.Errorf("%s: %w", l.Name, err)
			}
		}
		now := time.Now() // it keeps its monotonic part: a wall clock that was set makes no dispatcher look stalled
		e.lookedAt.Store(&now)
		timer.Reset(e.sleep())
	}
}

// Wait returns when all tasks have ended. Dispatch must have returned.
func (e *Engine[J, T]) Wait() { e.tasks.Wait() }

// WakeAll has the dispatcher look soon at what is due in every queue. It waits for
// nothing.
func (e *Engine[J, T]) WakeAll() {
	e.relist.Store(true)
	e.wakeDispatcher()
}

// Wake has the dispatcher look soon at one queue of a step.
func (e *Engine[J, T]) Wake(step, queue string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakeLane(e.lane(step, queue))
}

// WakeWithoutRoom has the dispatcher look soon at the lanes of a step that left
// something undone for want of room.
func (e *Engine[J, T]) WakeWithoutRoom(step string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakeWithoutRoom(e.slotsOf(step))
}

// LookedAt returns when the dispatcher last found out what to start; zero: never.
// An idle one looks once in the longest sleep.
func (e *Engine[J, T]) LookedAt() time.Time {
	if at := e.lookedAt.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// IsIdle reports whether nothing of the lanes that are meant is under way.
func (e *Engine[J, T]) IsIdle(meant func(step, queue string) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if l.inFlight > 0 && meant(l.Name, l.Queue) {
			return false
		}
	}
	return true
}

// Doing returns how many tasks of a lane have a slot.
func (e *Engine[J, T]) Doing(step, queue string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lane(step, queue).doing
}

// longestSleep bounds the wait between two looks, so that a wall clock that was
// set does not matter for long.
func (e *Engine[J, T]) longestSleep() time.Duration {
	return cmp.Or(e.cfg.LongestSleep, time.Minute)
}

// sleep returns how long the dispatcher may sleep.
func (e *Engine[J, T]) sleep() time.Duration {
	if e.next == 0 {
		return e.longestSleep()
	}
	return min(e.longestSleep(), max(5*time.Millisecond, e.next-e.cfg.Now().Boot))
}

func (e *Engine[J, T]) wakeDispatcher() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// wakeLane has the dispatcher look at a lane. The caller holds mu.
func (e *Engine[J, T]) wakeLane(l *Lane[J, T]) {
	if !l.woken {
		l.woken = true
		e.woken = append(e.woken, l)
		e.wakeDispatcher()
	}
}

// wakeWithoutRoom is WakeWithoutRoom for a caller that holds mu.
func (e *Engine[J, T]) wakeWithoutRoom(s *slots[J, T]) {
	for _, l := range s.lanes {
		if l.lacksRoom {
			e.wakeLane(l)
		}
	}
}

// listLanes has the lanes of all queues looked at that hold anything: empty ones
// cost nothing, however many there have been.
func (e *Engine[J, T]) listLanes() error {
	for _, s := range e.steps {
		queues, err := s.Queues()
		if err != nil {
			return err
		}
		e.mu.Lock()
		for _, queue := range queues {
			e.wakeLane(e.lane(s.Name, queue))
		}
		e.mu.Unlock()
	}
	return nil
}

// slotsOf returns the slots of a step.
func (e *Engine[J, T]) slotsOf(step string) *slots[J, T] {
	for _, s := range e.steps {
		if s.Name == step {
			return s
		}
	}
	panic("engine: no step " + step)
}

// lane returns the lane of a step and a queue. The caller holds mu.
func (e *Engine[J, T]) lane(step, queue string) *Lane[J, T] {
	id := laneID{step, queue}
	l := e.lanes[id]
	if l == nil {
		s := e.slotsOf(step)
		l = &Lane[J, T]{slots: s, Terms: s.Terms(queue), Queue: queue, busy: map[archive.Key]int{}, handedOn: map[archive.Key]bool{}}
		e.lanes[id] = l
		s.lanes = append(s.lanes, l)
	}
	return l
}

// takeWoken returns the lanes to look at now, and forgets the jobs that ended: what
// is read of them from here on has their outcomes.
func (e *Engine[J, T]) takeWoken() []*Lane[J, T] {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.handedOn {
		t.lane.busy[t.keys[0]]++
		delete(t.lane.handedOn, t.keys[0])
	}
	for _, t := range e.ended {
		t.lane.running = slices.DeleteFunc(t.lane.running, func(other *Task[J, T]) bool { return other == t })
		for _, k := range t.keys {
			if t.lane.busy[k]--; t.lane.busy[k] == 0 {
				delete(t.lane.busy, k)
			}
		}
	}
	e.handedOn, e.ended = nil, nil
	if now := e.cfg.Now().Boot; e.next != 0 && now >= e.next {
		e.next = 0
		for _, l := range e.lanes {
			if l.next != 0 && now >= l.next {
				if !l.woken {
					l.woken = true
					e.woken = append(e.woken, l)
				}
			} else {
				e.next = sooner(e.next, l.next)
			}
		}
	}
	all := e.woken
	e.woken = nil
	for _, l := range all {
		l.woken = false
	}
	return all
}

// earliest returns the earlier of two times; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// sooner is earliest for times on the boot clock.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// isBusy reports whether a job is under way in the lane, or was when the dispatcher
// began to look.
func (e *Engine[J, T]) isBusy(l *Lane[J, T], k archive.Key) bool {
	if l.busy[k] > 0 {
		return true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return l.handedOn[k]
}
