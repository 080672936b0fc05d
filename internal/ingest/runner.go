package ingest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// step is one kind of work. The runner commits what intend says before it calls do,
// so write-ahead holds by construction.
type step struct {
	name   ledger.Step
	width  int // pieces of work at once
	batch  int // entries in one piece
	linger time.Duration

	// lane names what entries of one piece of work have in common.
	lane func(ledger.Entry) lane
	// admit returns a predicate, for one look, that lets an entry in; nil: all.
	admit func() func(ledger.Entry) bool
	// limit returns how many of the ready entries may go now.
	limit func([]ledger.Entry) (int, error)
	// intend returns the events to commit first; act says whether do follows.
	intend func(ledger.Entry, archive.Instant) (evs []ledger.Event, act bool, err error)
	// do reaches the world and returns one change for each entry, but for those it
	// was kept from by the end of ctx.
	do func(context.Context, []ledger.Entry) []ledger.Change
}

// lane is where a piece of work goes: over which route, and in what company.
type lane struct {
	route string // pauses together
	group string // is done together
	most  int    // entries in one piece; 0: the step's batch
}

// runner runs one step. It holds which entries are under way, and nothing else that
// a restart would miss.
type runner struct {
	step
	c    *Conductor
	wake chan struct{} // size 1: a hint that something may be due

	mu        sync.Mutex
	busy      map[archive.Key]bool // guarded by mu
	running   int                  // pieces of work under way; guarded by mu
	notBefore time.Time            // no far look before; only the loop
	spare     []archive.Key        // found by the last far look; only the loop
	since     time.Time            // when the first of a not yet full batch was seen; only the loop

	turned atomic.Pointer[time.Time] // when the loop last came round
}

func (c *Conductor) runner(s step) *runner {
	return &runner{step: s, c: c, wake: make(chan struct{}, 1), busy: map[archive.Key]bool{}}
}

func (r *runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop takes what is due until stop ends; work goes on under its own context.
func (r *runner) loop(stop, work context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-stop.Done():
			return nil
		case <-r.wake:
		case <-timer.C:
		}
		if stop.Err() != nil {
			return nil
		}
		next, err := r.take(work)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		r.turn()
		timer.Reset(r.sleep(next))
	}
}

// longestSleep bounds the wait between two looks at what is due, so that a wall
// clock that was set does not matter for long.
const longestSleep = time.Minute

func (r *runner) sleep(next time.Time) time.Duration {
	if next.IsZero() {
		return longestSleep
	}
	return min(longestSleep, max(5*time.Millisecond, next.Sub(r.c.cfg.Now().Wall)))
}

// take starts as much as there is room for and returns when to look again.
func (r *runner) take(work context.Context) (time.Time, error) {
	now := r.c.cfg.Now()
	free := r.free()
	if free == 0 {
		return time.Time{}, nil // the end of a piece of work wakes us
	}
	resting := earliest{}
	ready, err := r.look(free*r.batch, now.Wall, &resting)
	if err != nil || len(ready) == 0 {
		r.since = time.Time{}
		return resting.time, err
	}
	if r.linger > 0 && len(ready) < r.batch {
		if r.since.IsZero() {
			r.since = now.Wall
		}
		if full := r.since.Add(r.linger); now.Wall.Before(full) {
			resting.add(full)
			return resting.time, nil
		}
	}
	r.since = time.Time{}
	if r.limit != nil {
		n, err := r.limit(ready)
		if err != nil {
			return resting.time, err
		}
		ready = ready[:min(n, len(ready))]
	}
	r.group(work, ready, free, now)
	return resting.time, nil
}

// look returns up to n entries that are due and may go now. A step that does not let
// everything in looks far ahead, and seldom: what it found beyond n is kept for the
// next time, as keys that are asked about anew.
func (r *runner) look(n int, now time.Time, resting *earliest) ([]ledger.Entry, error) {
	ready, err := r.found(n, now, resting)
	if err != nil || len(ready) > 0 {
		return ready, err
	}
	if now.Before(r.notBefore) {
		resting.add(r.notBefore)
		return nil, nil
	}
	limit := n
	if r.admit != nil {
		limit = max(n, farLook)
	}
	ready, next, err := r.c.cfg.Ledger.Due(r.name, now, limit, r.skip(now, resting))
	resting.add(next)
	if err != nil || len(ready) <= n {
		return ready, err
	}
	for _, e := range ready[n:] {
		r.spare = append(r.spare, e.Key)
	}
	return ready[:n], nil
}

// found takes up to n entries from what an earlier look found.
func (r *runner) found(n int, now time.Time, resting *earliest) ([]ledger.Entry, error) {
	var ready []ledger.Entry
	skip := r.skip(now, resting)
	for len(r.spare) > 0 && len(ready) < n {
		k := r.spare[0]
		r.spare = r.spare[1:]
		e, ok, err := r.c.cfg.Ledger.Entry(k)
		if err != nil {
			return nil, err
		}
		if s, at, due := ledger.Due(e); ok && due && s == r.name && !at.After(now) && !skip(e) {
			ready = append(ready, e)
		}
	}
	return ready, nil
}

// skip leaves out what is under way, what goes over a route that rests, and what is
// not let in. A look that met many of the last kind is not repeated at once.
func (r *runner) skip(now time.Time, resting *earliest) func(ledger.Entry) bool {
	admit := func(ledger.Entry) bool { return true }
	if r.admit != nil {
		admit = r.admit()
	}
	kept := 0
	return func(e ledger.Entry) bool {
		if r.isBusy(e.Key) {
			return true
		}
		if until, rests := r.c.routes.rests(r.lane(e).route, now); rests {
			resting.add(until)
			return true
		}
		if admit(e) {
			return false
		}
		if kept++; kept == manyKept {
			r.notBefore = now.Add(lookAgain)
			resting.add(r.notBefore)
		}
		return true
	}
}

const (
	manyKept  = 1000        // entries not let in, after which a look counts as dear
	lookAgain = time.Second // after a dear look
	farLook   = 2048        // entries that a far look finds at most
)

// group starts pieces of work, each of one lane, as long as there is room. The end
// of each of them makes us look again.
func (r *runner) group(work context.Context, ready []ledger.Entry, free int, now archive.Instant) {
	byLane := map[lane][]ledger.Entry{}
	var order []lane
	for _, e := range ready {
		l := r.lane(e)
		if byLane[l] == nil {
			order = append(order, l)
		}
		byLane[l] = append(byLane[l], e)
	}
	for _, l := range order {
		size := r.batch
		if l.most > 0 {
			size = min(size, l.most)
		}
		for es := byLane[l]; len(es) > 0 && free > 0; free-- {
			if _, rests := r.c.routes.rests(l.route, now.Wall); rests {
				break
			}
			if r.c.routes.probe(l.route) {
				size = 1 // a resting route is tried with one
			}
			n := min(size, len(es))
			r.start(work, l, es[:n], now)
			es = es[n:]
		}
	}
}

// start commits the intents of one piece of work and then does it.
func (r *runner) start(work context.Context, l lane, es []ledger.Entry, now archive.Instant) {
	r.mu.Lock()
	r.running++
	for _, e := range es {
		r.busy[e.Key] = true
	}
	r.mu.Unlock()
	var intents []ledger.Change
	var acts []ledger.Entry
	acting := map[archive.Key]bool{}
	for _, e := range es {
		evs, act, err := r.intend(e, now)
		if err != nil {
			evs, act = []ledger.Event{r.c.later(e, localFault(err))}, false
		}
		if acting[e.Key] = act; len(evs) > 0 {
			intents = append(intents, ledger.Change{Key: e.Key, Rev: e.Rev, Events: evs, At: now})
		} else if act {
			acts = append(acts, e)
		}
	}
	r.c.wg.Add(1)
	run := func(rs []ledger.Result) {
		for _, res := range rs {
			r.c.note(res)
			if res.Err == nil && acting[res.Key] {
				acts = append(acts, res.Entry)
			}
		}
		go func() {
			defer r.c.wg.Done()
			r.work(work, l, es, acts)
		}()
	}
	if len(intents) == 0 {
		run(nil)
		return
	}
	r.c.cfg.Ledger.Submit(intents, run)
}

// work does one piece and commits its outcome. es are all entries that were taken
// for it, acts those whose intent is committed.
func (r *runner) work(ctx context.Context, l lane, es, acts []ledger.Entry) {
	var outcome []ledger.Change
	if len(acts) > 0 && ctx.Err() == nil {
		outcome = r.do(ctx, acts)
	}
	r.c.routes.settle(l.route, r.c.cfg.Now().Wall)
	if len(outcome) == 0 {
		r.end(es)
		return
	}
	r.c.cfg.Ledger.Submit(outcome, func(rs []ledger.Result) {
		var more []ledger.Change
		for _, res := range rs {
			r.c.note(res)
			if c, again := r.c.collision(acts, outcome, res); again {
				more = append(more, c)
			} else if c, again := r.c.refusedOutcome(acts, res); again {
				more = append(more, c)
			}
		}
		if len(more) == 0 {
			r.end(es)
			return
		}
		r.c.cfg.Ledger.Submit(more, func(rs []ledger.Result) {
			for _, res := range rs {
				r.c.note(res)
			}
			r.end(es)
		})
	})
}

// end gives the entries free for what is due next.
func (r *runner) end(es []ledger.Entry) {
	r.mu.Lock()
	for _, e := range es {
		delete(r.busy, e.Key)
	}
	r.running--
	r.mu.Unlock()
	r.nudge()
}

func (r *runner) free() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.width - r.running
}

func (r *runner) isBusy(k archive.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.busy[k]
}

// idle reports whether nothing is under way.
func (r *runner) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running == 0
}

// earliest keeps the earliest of the times that are not zero.
type earliest struct{ time time.Time }

func (e *earliest) add(t time.Time) {
	if !t.IsZero() && (e.time.IsZero() || t.Before(e.time)) {
		e.time = t
	}
}
