package ingest

import (
	"context"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// pool holds the slots of one step. A task has a slot while do runs; the commits before and after that need none.
// All queues together have width slots, and the queues that wait for one get it in turn. A queue that has no slot may
// always begin one task, even when all slots are taken: it waits for no other queue.
type pool struct {
	width int

	choosing sync.Mutex // held by a worker from what the step's limit allows until that is booked; taken before mu

	mu         sync.Mutex // guards the pool, and the fields of its workers that say so
	workers    []*worker
	lastServed int  // the worker whose task began last
	doing      int  // tasks of all queues that have a slot
	waiting    int  // tasks of all queues that have no slot yet
	committing int  // tasks whose outcomes are being committed
	closed     bool // the end was asked for: the intents of whatever waits are taken back
}

const (
	// readyTime is for how long tasks may wait for a slot with their intents committed: about as long as a commit takes, so
	// that quick work never waits for the disk.
	readyTime = 50 * time.Millisecond
	// maxCommitting bounds the outcomes that the ledger has not committed yet.
	maxCommitting = 512
)

// add makes a worker one of the pool's.
func (p *pool) add(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.workers = append(p.workers, w)
}

// slotLimit returns how many tasks of a queue may be done at once.
func (p *pool) slotLimit(w *worker) int {
	if w.maxTasks == nil {
		return p.width
	}
	return min(w.maxTasks(w.queue), p.width)
}

// freeTasks returns how many more tasks a worker may take: one that waits for its slot, and as many as there are free
// slots. Beyond that it may take as many as are done within readyTime. Without those a vault would upload small packages
// only as fast as the disk commits; BenchmarkEngine and the rows flat-100k and whole-S of the bench measure that.
func (p *pool) freeTasks(w *worker) int {
	most := p.slotLimit(w)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.committing >= maxCommitting {
		return 0
	}
	// Slow work takes no more than that: a crash would leave intents to upload of which no byte was sent.
	ahead := 0
	if w.usualTime > 0 {
		ahead = int(min(time.Duration(w.ahead), time.Duration(most)*readyTime/w.usualTime))
	}
	free := p.width - p.doing - p.waiting
	held := w.waiting + w.doing
	return max(0, ahead-w.waiting, min(max(free, 1-w.waiting), most-held))
}

// bookEntries books the entries of a task as busy; false: one of them is under way already.
func (p *pool) bookEntries(w *worker, t *task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range t.entries {
		if w.busy[e.Key] {
			return false
		}
	}
	for _, e := range t.entries {
		w.busy[e.Key] = true
	}
	w.waiting++
	p.waiting++
	return true
}

// makeReady lets a task wait for a slot.
func (p *pool) makeReady(w *worker, t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.ready = append(w.ready, t)
}

// startReady starts the tasks for which there is a slot. Each has a goroutine, which Run waits for.
func (p *pool) startReady(work context.Context) {
	for {
		w, t := p.giveNextSlot()
		if t == nil {
			return
		}
		go w.doTask(work, t)
	}
}

// giveNextSlot gives a slot to the next task. The queues get slots in turn, beginning after the queue that got the last one.
// nil: no task may begin.
func (p *pool) giveNextSlot() (*worker, *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.workers {
		n := (p.lastServed + 1 + i) % len(p.workers)
		w := p.workers[n]
		if len(w.ready) == 0 || !p.closed && !p.mayBegin(w, w.ready[0].acts[0]) {
			continue
		}
		// In the order in which the intents were committed: a ticket that came first ends first.
		t := w.ready[0]
		w.ready[0] = nil // the array behind the slice lives on, and would keep the task's entries in memory
		w.ready = w.ready[1:]
		p.lastServed = n
		p.giveSlot(w, t, time.Now())
		if w.waiting == 0 && w.lacksRoom.Load() {
			w.wakeUp() // it may take another task, which waits for the next slot
		}
		return w, t
	}
	return nil, nil
}

// mayBegin reports whether a task of w may begin beside the others. A queue that has no slot waits for none.
// The caller holds mu.
func (p *pool) mayBegin(w *worker, e ledger.Entry) bool {
	alone := w.doing == 0
	if !alone && (p.doing >= p.width || w.doing >= p.slotLimit(w)) {
		return false
	}
	return w.tryBegin == nil || w.tryBegin(e, alone)
}

// giveSlot moves a task from those that wait for a slot to those that have one. The caller holds mu.
func (p *pool) giveSlot(w *worker, t *task, now time.Time) {
	t.began = now
	w.waiting--
	p.waiting--
	w.doing++
	p.doing++
}

// releaseAfterWork is releaseSlot for a task that was done: how long that took is noted.
func (p *pool) releaseAfterWork(w *worker, t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := max(time.Since(t.began), time.Microsecond)
	if w.usualTime == 0 {
		w.usualTime = took
	} else {
		w.usualTime += (took - w.usualTime) / 4
	}
	p.releaseLocked(w, t)
}

// releaseSlot gives the slot of a task back, or its place among those that wait for one. Its entries stay busy until the outcome
// is committed.
func (p *pool) releaseSlot(w *worker, t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseLocked(w, t)
}

// releaseLocked is releaseSlot for a caller that holds mu.
func (p *pool) releaseLocked(w *worker, t *task) {
	// Counted until the outcome is committed: freeTasks stops where the disk does not keep up, and a crash loses few outcomes.
	p.committing++
	if t.began.IsZero() {
		w.waiting--
		p.waiting--
		return
	}
	w.doing--
	p.doing--
}

// releaseEntries makes the entries of a task free: their outcome is committed, or the end of the process kept it from
// being done.
func (p *pool) releaseEntries(w *worker, t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range t.entries {
		delete(w.busy, e.Key)
		w.ended[e.Key] = true
	}
	p.committing--
}

// forgetEnded is called when a worker begins to look for what is due: from then on it reads the outcomes of earlier tasks.
func (p *pool) forgetEnded(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(w.ended)
}

// doingOf returns how many tasks of a worker have a slot.
func (p *pool) doingOf(w *worker) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.doing
}

// close lets nothing begin any more: the intents of whatever waits, or will wait, are taken back.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

func (p *pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// isIdle reports whether nothing is under way.
func (p *pool) isIdle() bool { return !p.isAnyBusy(func(*worker) bool { return true }) }

// isAnyBusy reports whether anything of the workers that are meant is under way.
func (p *pool) isAnyBusy(meant func(*worker) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if len(w.busy) > 0 && meant(w) {
			return true
		}
	}
	return false
}

// newWorker returns a worker of a step and a queue; its loop is not started.
func newWorker(c *Engine, s step, p *pool, queue string) *worker {
	w := &worker{step: s, engine: c, pool: p, queue: queue, wake: make(chan struct{}, 1), busy: map[archive.Key]bool{}, ended: map[archive.Key]bool{}}
	if s.target != nil {
		w.queueTarget = s.target(queue)
	}
	now := time.Now()
	w.searchedAt.Store(&now)
	p.add(w)
	return w
}
