package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// target is what the jobs of one queue need.
type target string

func (t target) String() string { return string(t) }

type task = engine.Task[archive.Key, target]

// desk has the jobs of two steps by queue, as a ledger has them: a job that was done
// first is due to be done second.
type desk struct {
	*engine.Engine[archive.Key, target]
	mu            sync.Mutex
	first, second map[string][]archive.Key // due, by queue; guarded by mu
	started       map[archive.Key]int      // tasks of the first step, by job; guarded by mu
	done          []archive.Key            // in the second step; guarded by mu

	act func(ctx context.Context, t *task) // of the first step, while it has its slot; nil: nothing
}

func newDesk(width int) *desk {
	d := &desk{first: map[string][]archive.Key{}, second: map[string][]archive.Key{}, started: map[archive.Key]int{}}
	admit := func(queue string, _ archive.Instant) (func(archive.Key) engine.Admission[target], error) {
		return func(archive.Key) engine.Admission[target] {
			return engine.Admission[target]{Target: target(queue), Most: 1}
		}, nil
	}
	step := func(name string, due map[string][]archive.Key, start func(*task) func(context.Context)) engine.Step[archive.Key, target] {
		return engine.Step[archive.Key, target]{Name: name, Width: width, Admit: admit, Start: start,
			Queues: func() (queues []string, err error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				for q, jobs := range due {
					if len(jobs) > 0 {
						queues = append(queues, q)
					}
				}
				return queues, nil
			},
			Due: func(queue string, _ time.Time, limit int, busy func(archive.Key) bool, skip func(archive.Key) bool) (found []archive.Key, _ time.Time, _ error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				for _, k := range due[queue] {
					if len(found) < limit && !busy(k) && !skip(k) {
						found = append(found, k)
					}
				}
				return found, time.Time{}, nil
			},
			Terms: func(queue string) engine.Terms[target] {
				return engine.Terms[target]{Target: target(queue), Batch: 1, Ahead: 16}
			}}
	}
	d.Engine = engine.New(engine.Config[archive.Key, target]{Key: func(k archive.Key) archive.Key { return k }, Now: now,
		Steps: []engine.Step[archive.Key, target]{
			step("first", d.first, func(t *task) func(context.Context) { return func(ctx context.Context) { d.doFirst(ctx, t) } }),
			step("second", d.second, func(t *task) func(context.Context) { return func(context.Context) { d.doSecond(t) } })}})
	return d
}

func now() archive.Instant {
	return archive.Instant{Wall: time.Now(), Boot: time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) + time.Hour}
}

// add makes n jobs of a queue due.
func (d *desk) add(queue string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range n {
		d.first[queue] = append(d.first[queue], archive.NewKey(time.Now()))
	}
}

func (d *desk) doFirst(ctx context.Context, t *task) {
	k := t.Jobs[0]
	d.mu.Lock()
	d.started[k]++
	d.mu.Unlock()
	if !t.Begin(k) {
		return
	}
	if d.act != nil {
		d.act(ctx, t)
	}
	next := t.HandOn("second", t.Queue, target(t.Queue), k)
	t.Leave(true)
	d.mu.Lock()
	d.first[t.Queue] = slices.DeleteFunc(d.first[t.Queue], func(other archive.Key) bool { return other == k })
	d.second[t.Queue] = append(d.second[t.Queue], k)
	d.mu.Unlock()
	if next == nil {
		d.Wake("second", t.Queue)
		return
	}
	next.Jobs = []archive.Key{k}
	next.Go(ctx, func(context.Context) { d.doSecond(next) })
}

func (d *desk) doSecond(t *task) {
	k := t.Jobs[0]
	if !t.Begin(k) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = append(d.done, k)
	d.second[t.Queue] = slices.DeleteFunc(d.second[t.Queue], func(other archive.Key) bool { return other == k })
}

// run runs the dispatcher until stop is called, which waits for the tasks.
func (d *desk) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Dispatch(ctx, t.Context()) }()
	return func() {
		cancel()
		kit.Must(t, <-ended)
		d.Wait()
	}
}

func (d *desk) doneOnce() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortFunc(d.done, func(a, b archive.Key) int { return slices.Compare(a[:], b[:]) })
	return len(slices.Compact(slices.Clone(d.done)))
}

// I2: each job is taken once in each step, also where a task hands it on to the next
// step before the dispatcher sees it there.
func TestEngine_I2_EachJobOnce(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		d := newDesk(4)
		d.act = func(context.Context, *task) { time.Sleep(time.Millisecond) }
		for q := range 3 {
			d.add(fmt.Sprint(q), 100)
		}
		stop := d.run(t)
		time.Sleep(10 * time.Second)
		stop()
		kit.Want(t, "jobs that were done", d.doneOnce(), 300)
		kit.Want(t, "times that they were done", len(d.done), 300)
		for k, n := range d.started {
			kit.Want(t, "tasks of "+k.String(), n, 1)
		}
	})
}

// I23: the jobs of one queue hang and have all slots. Each other queue has one task
// done all the same.
func TestEngine_I23_AHangingQueueHoldsUpNoOther(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		d := newDesk(2)
		release := make(chan struct{})
		d.act = func(_ context.Context, t *task) {
			if t.Queue == "hangs" {
				<-release
			}
		}
		d.add("hangs", 10)
		stop := d.run(t)
		time.Sleep(time.Second)
		d.add("a", 5)
		d.add("b", 5)
		d.WakeAll()
		time.Sleep(time.Second)
		kit.Want(t, "jobs of the other queues that were done", d.doneOnce(), 10)
		close(release)
		stop()
	})
}

// I24: the target of a queue fails. Nothing of it begins during the pause; then one job
// finds out alone, and its success lets the others go.
func TestEngine_I24_OneJobProbes(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		d := newDesk(4)
		d.Breakers.Open("a", ledger.Cause{Code: "test"}, false, time.Minute, now().Wall)
		var acted []time.Duration
		began := now().Boot
		d.act = func(context.Context, *task) {
			d.mu.Lock()
			acted = append(acted, now().Boot-began)
			d.mu.Unlock()
			time.Sleep(10 * time.Second)
			d.Breakers.Close("a", now().Wall)
		}
		d.add("a", 5)
		stop := d.run(t)
		time.Sleep(3 * time.Minute)
		stop()
		kit.Want(t, "jobs that were done", d.doneOnce(), 5)
		kit.Check(t, acted[0] >= time.Minute, "the first began after %s, want the pause of a minute before it", acted[0])
		kit.Check(t, acted[1] >= acted[0]+10*time.Second, "the second began after %s, want it after the end of the probe that began after %s", acted[1], acted[0])
	})
}

// I16: at the end nothing that waits for a slot begins, and Wait returns once what has
// one has ended.
func TestEngine_I16_TheEndBeginsNothing(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		d := newDesk(1)
		d.act = func(context.Context, *task) { time.Sleep(time.Minute) }
		d.add("a", 20)
		stop := d.run(t)
		time.Sleep(time.Second)
		stop()
		kit.Want(t, "jobs that were done", d.doneOnce(), 0)
		kit.Check(t, d.IsIdle(func(string, string) bool { return true }), "something is under way after the end, want nothing")
		left := 0
		for _, jobs := range d.first {
			left += len(jobs)
		}
		kit.Want(t, "jobs that are due still, and due in the second step", []int{left, len(d.second["a"])}, []int{19, 1})
	})
}

// I21: the work of 200 queues leaves no goroutine behind but the dispatcher.
func TestEngine_I21_QueuesLeaveNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	d := newDesk(8)
	for q := range 200 {
		d.add(fmt.Sprint("vault ", q), 20)
	}
	stop := d.run(t)
	defer stop()
	for end := time.Now().Add(time.Minute); d.doneOnce() < 4000 && time.Now().Before(end); {
		runtime.Gosched()
	}
	kit.Want(t, "jobs that were done", d.doneOnce(), 4000)
	left := runtime.NumGoroutine() - before
	for end := time.Now().Add(10 * time.Second); left > 1 && time.Now().Before(end); left = runtime.NumGoroutine() - before {
		runtime.Gosched()
	}
	kit.Want(t, "goroutines more than before, with 200 queues at rest", left, 1)
}
