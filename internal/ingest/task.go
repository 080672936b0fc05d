package ingest

import (
	"context"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// task is a number of entries of a queue that are worked on together.
type task struct {
	handling
	entries []ledger.Entry
	acts    []ledger.Entry // those whose intents are committed, and that are to be done
	probe   bool           // it finds out whether a target works again
	began   time.Time      // when it got its slot; zero: it has none yet

	announced bool // intents were committed for it
}

// intendTask commits the intents of a task, and lets it wait for a slot then.
func (w *worker) intendTask(work context.Context, t *task, now archive.Instant) {
	// An entry that is under way is never taken twice, whatever an older search found.
	if !w.pool.bookEntries(w, t) {
		w.endProbe(t)
		return
	}
	var intents []ledger.Change
	acting := map[archive.Key]bool{}
	for _, e := range t.entries {
		evs, act, err := w.intend(e, t.handling, now)
		if err != nil {
			evs, act = []ledger.Event{w.engine.postpone(e, localFaultCause(err))}, false
		}
		if acting[e.Key] = act; len(evs) > 0 {
			intents = append(intents, ledger.Change{Key: e.Key, Rev: e.Rev, Events: evs, At: now})
		} else if act {
			t.acts = append(t.acts, e)
		}
	}
	// From here on Run waits for the task, whichever goroutine has it.
	w.engine.tasks.Add(1)
	if t.announced = len(intents) > 0; !t.announced {
		w.queueTask(work, t)
		return
	}
	// Nothing is done before this commit is durable. A crash before it changes nothing. A crash after it finds the intent,
	// and the next start goes on as if the work had begun.
	w.engine.cfg.Ledger.Submit(intents, func(rs []ledger.Result) {
		for _, res := range rs {
			w.engine.noteResult(res)
			if res.Err == nil && acting[res.Key] {
				t.acts = append(t.acts, res.Entry)
			}
		}
		w.queueTask(work, t)
	})
}

// queueTask makes a task whose intents are committed wait for a slot. A task that has nothing to do ends here.
func (w *worker) queueTask(work context.Context, t *task) {
	if len(t.acts) > 0 {
		w.pool.makeReady(w, t)
		w.pool.startReady(work)
		return
	}
	defer w.engine.tasks.Done()
	w.endProbe(t)
	w.pool.releaseSlot(w, t)
	w.endTask(t)
}

// doTask does a task that has a slot, and commits its outcome.
func (w *worker) doTask(work context.Context, t *task) {
	defer w.engine.tasks.Done()
	var outcome []ledger.Change
	acted := false
	switch {
	case w.pool.isClosed() || w.risky && w.engine.isHeld() || w.engine.isDraining(w.name, w.queue) || w.isStopped(t):
		outcome = w.takeBackIntents(t)
	case work.Err() != nil:
	case !t.announced && w.doUnannounced != nil:
		outcome, acted = w.doUnannounced(work, t.acts), true
	default:
		outcome, acted = w.do(work, t.acts), true
	}
	w.endProbe(t)
	// The slot is free before the outcome is committed: the next task does not wait for the disk.
	if acted {
		w.pool.releaseAfterWork(w, t)
	} else {
		w.pool.releaseSlot(w, t)
	}
	w.pool.startReady(work)
	if len(outcome) == 0 {
		w.endTask(t) // nothing was done. Intents stand, and what is due is found again: now, or by the next start
		return
	}
	submit, next := outcome, map[archive.Key]*task(nil)
	if w.followUp != nil && acted {
		submit, next = w.followUp(w.queue, t.acts, outcome)
	}
	// A crash before this commit loses what the other side said. The intents stand, and the next start asks, or does it
	// again where that is safe.
	w.engine.cfg.Ledger.Submit(submit, func(rs []ledger.Result) {
		w.engine.queueFollowUps(work, w.queue, next, rs)
		w.noteOutcome(t, rs)
	})
	// After the submission: the next intents go into the commit of this outcome, or into one behind it.
	if w.eager && w.lacksRoom.Load() {
		w.wakeUp()
	}
}

// isStopped reports whether the breaker of a task's target opened while it waited for its slot.
func (w *worker) isStopped(t *task) bool {
	_, open := w.engine.breakers.isOpen(t.target, w.engine.cfg.Now().Wall)
	return open && !t.probe
}

// takeBackIntents returns the outcome of a task's intents, where they are committed and nobody acts upon them.
func (w *worker) takeBackIntents(t *task) []ledger.Change {
	if w.takeBack == nil || !t.announced {
		return nil
	}
	return w.engine.changeEach(t.acts, w.takeBack)
}

// noteOutcome takes note of the results of an outcome's commit. What was refused is corrected and committed once more.
func (w *worker) noteOutcome(t *task, rs []ledger.Result) {
	var more []ledger.Change
	for _, res := range rs {
		w.engine.noteResult(res)
		if again, is := w.engine.correctOutcome(t.acts, res); is {
			more = append(more, again)
		}
	}
	if len(more) == 0 {
		w.endTask(t)
		return
	}
	// A crash before this commit is one before the first: see doTask.
	w.engine.cfg.Ledger.Submit(more, func(rs []ledger.Result) {
		for _, res := range rs {
			w.engine.noteResult(res)
		}
		w.endTask(t)
	})
}

// endTask makes the entries of a task free for what is due next. It may have made room for other queues as well.
func (w *worker) endTask(t *task) {
	w.pool.releaseEntries(w, t)
	w.wakeUp()
	w.engine.wakeWorkersWithoutRoom(w.name)
}

// endProbe ends a probe that may have said nothing about its target.
func (w *worker) endProbe(t *task) {
	if t.probe {
		w.engine.breakers.endProbe(t.target, w.engine.cfg.Now().Wall)
	}
}
