package ingest

import (
	"cmp"
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
	width  int // pieces of work at once; beyond that, one in each lane that has none
	batch  int // entries in one piece
	linger time.Duration
	risky  bool // it sends, moves or removes something: not in safe mode

	// route names the route that a lane's work goes over; nil: called as the lane.
	route func(lane string) string
	// routeOf names an entry's own route, where entries of a lane differ in it; nil: route.
	routeOf func(ledger.Entry, archive.Instant) string
	// admit returns what lets an entry of a lane in, and whether anything of it may go;
	// nil: all may.
	admit func(lane string, now archive.Instant) (func(ledger.Entry) bool, bool)
	// most returns how many entries a piece of work with this one may hold; nil: batch.
	most func(ledger.Entry) int
	// limit returns how many of a lane's ready entries may go now; nil: all.
	limit func(lane string, ready []ledger.Entry) (int, error)
	// intend returns the events to commit first; act says whether do follows.
	intend func(ledger.Entry, archive.Instant) (evs []ledger.Event, act bool, err error)
	// do reaches the world and returns one change for each entry, but for those it
	// was kept from by the end of ctx.
	do func(context.Context, []ledger.Entry) []ledger.Change
}

// runner runs one step. It holds which entries are under way, and nothing else that
// a restart would miss.
//
// It serves the lanes in turn, one piece of work each, and a lane in which nothing is
// under way may always begin one: whatever hangs, rests or piles up in one lane costs
// the others nothing, not even that they are looked for behind it.
type runner struct {
	step
	c    *Conductor
	wake chan struct{} // size 1: a hint that something may be due

	mu      sync.Mutex
	busy    map[archive.Key]bool // guarded by mu
	running map[string]int       // pieces of work under way, by lane; guarded by mu
	total   int                  // of them; guarded by mu

	last  string               // the lane that was served last; only the loop
	since map[string]time.Time // when the first of a lane's not yet full batch was seen; only the loop

	turned atomic.Pointer[time.Time] // when the loop last came round
}

func (c *Conductor) runner(s step) *runner {
	if s.route == nil {
		s.route = func(lane string) string { return lane }
	}
	return &runner{step: s, c: c, wake: make(chan struct{}, 1), busy: map[archive.Key]bool{}, running: map[string]int{}, since: map[string]time.Time{}}
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

func (c *Conductor) longestSleep() time.Duration { return cmp.Or(c.cfg.LongestSleep, longestSleep) }

func (r *runner) sleep(next time.Time) time.Duration {
	if next.IsZero() {
		return r.c.longestSleep()
	}
	return min(r.c.longestSleep(), max(5*time.Millisecond, next.Sub(r.c.cfg.Now().Wall)))
}

// take starts as much as there is room for and returns when to look again.
func (r *runner) take(work context.Context) (time.Time, error) {
	if r.risky && r.c.safe() {
		return time.Time{}, nil
	}
	lanes, err := r.c.cfg.Index.Lanes(r.name)
	if err != nil {
		return time.Time{}, err
	}
	now := r.c.cfg.Now()
	next := earliest{}
	for lanes = after(lanes, r.last); len(lanes) > 0; {
		var again []string
		for _, l := range lanes {
			started, err := r.serve(work, l, now, &next)
			if err != nil {
				return next.time, err
			}
			if started {
				r.last, again = l, append(again, l)
			}
		}
		lanes = again
	}
	return next.time, nil
}

// after turns the order of lanes so that it begins behind last.
func after(lanes []string, last string) []string {
	for i, l := range lanes {
		if l > last {
			return append(append([]string(nil), lanes[i:]...), lanes[:i]...)
		}
	}
	return lanes
}

// serve begins one piece of work of a lane, if there is any and room for it.
func (r *runner) serve(work context.Context, lane string, now archive.Instant, next *earliest) (started bool, err error) {
	if !r.room(lane) {
		return false, nil // the end of a piece of work wakes us
	}
	if until, rests := r.c.routes.rests(r.route(lane), now.Wall); rests {
		next.add(until)
		return false, nil
	}
	ready, err := r.look(lane, now, next)
	if err != nil || len(ready) == 0 {
		delete(r.since, lane)
		return false, err
	}
	if full := r.fills(lane, len(ready), now.Wall); now.Wall.Before(full) {
		next.add(full)
		return false, nil
	}
	if r.limit != nil {
		n, err := r.limit(lane, ready)
		if err != nil || n == 0 {
			return false, err
		}
		ready = ready[:min(n, len(ready))]
	}
	delete(r.since, lane)
	route := r.entryRoute(lane, ready[0], now)
	r.start(work, lane, route, r.piece(lane, route, ready, now), now)
	return true, nil
}

// room reports whether another piece of a lane may begin.
func (r *runner) room(lane string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total < r.width || r.running[lane] == 0
}

// look returns entries of a lane that are due and may go now, as many as fill a piece.
func (r *runner) look(lane string, now archive.Instant, next *earliest) ([]ledger.Entry, error) {
	admitted := func(ledger.Entry) bool { return true }
	if r.admit != nil {
		admit, any := r.admit(lane, now)
		if !any {
			return nil, nil
		}
		admitted = admit
	}
	ready, at, err := r.c.cfg.Index.DueIn(r.name, lane, now.Wall, r.batch, func(e ledger.Entry) bool {
		if r.isBusy(e.Key) {
			return true
		}
		if until, rests := r.c.routes.rests(r.entryRoute(lane, e, now), now.Wall); rests {
			next.add(until)
			return true
		}
		return !admitted(e)
	})
	next.add(at)
	return ready, err
}

func (r *runner) entryRoute(lane string, e ledger.Entry, now archive.Instant) string {
	if r.routeOf != nil {
		return r.routeOf(e, now)
	}
	return r.route(lane)
}

// fills returns until when a lane's piece of n entries waits for more; zero: it need not.
func (r *runner) fills(lane string, n int, now time.Time) time.Time {
	if r.linger == 0 || n >= r.batch {
		return time.Time{}
	}
	if r.since[lane].IsZero() {
		r.since[lane] = now
	}
	return r.since[lane].Add(r.linger)
}

// piece returns those of the ready entries that are done together: the first one, and
// what goes with it. A resting route is tried with one.
func (r *runner) piece(lane, route string, ready []ledger.Entry, now archive.Instant) []ledger.Entry {
	if r.c.routes.probe(route) {
		return ready[:1]
	}
	if r.most == nil {
		return ready
	}
	var es []ledger.Entry
	most := r.most(ready[0])
	for _, e := range ready {
		if len(es) < most && r.most(e) == most && r.entryRoute(lane, e, now) == route {
			es = append(es, e)
		}
	}
	return es
}

// start commits the intents of one piece of work and then does it.
func (r *runner) start(work context.Context, lane, route string, es []ledger.Entry, now archive.Instant) {
	r.mu.Lock()
	r.total++
	r.running[lane]++
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
			r.work(work, lane, route, es, acts)
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
func (r *runner) work(ctx context.Context, lane, route string, es, acts []ledger.Entry) {
	var outcome []ledger.Change
	if len(acts) > 0 && ctx.Err() == nil {
		outcome = r.do(ctx, acts)
	}
	r.c.routes.settle(route, r.c.cfg.Now().Wall)
	if len(outcome) == 0 {
		r.end(lane, es)
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
			r.end(lane, es)
			return
		}
		r.c.cfg.Ledger.Submit(more, func(rs []ledger.Result) {
			for _, res := range rs {
				r.c.note(res)
			}
			r.end(lane, es)
		})
	})
}

// end gives the entries free for what is due next.
func (r *runner) end(lane string, es []ledger.Entry) {
	r.mu.Lock()
	for _, e := range es {
		delete(r.busy, e.Key)
	}
	r.total--
	if r.running[lane]--; r.running[lane] == 0 {
		delete(r.running, lane)
	}
	r.mu.Unlock()
	r.nudge()
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
	return r.total == 0
}

// earliest keeps the earliest of the times that are not zero.
type earliest struct{ time time.Time }

func (e *earliest) add(t time.Time) {
	if !t.IsZero() && (e.time.IsZero() || t.Before(e.time)) {
		e.time = t
	}
}
