package ingest

import (
	"cmp"
	"context"
	"fmt"
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
	ahead  int // pieces of a lane, at most, that may wait for their turn with their intents committed
	batch  int // entries in one piece
	linger time.Duration
	risky  bool // it sends, moves or removes something: not in safe mode

	// target returns what the work of a lane needs; nil: the drop of the lane, or the registration of its vault.
	target func(lane string) Target
	// way returns how an entry is gone about; nil: over the lane's route, batch at once.
	way func(ledger.Entry, archive.Instant) way
	// admit returns what lets an entry of a lane in, and whether anything of it may go;
	// nil: all may.
	admit func(lane string, now archive.Instant) (func(ledger.Entry) bool, bool)
	// limit returns how many of a lane's ready entries may go now, and when more may where
	// no outcome of what is under way wakes the step for that; nil: all.
	limit func(ready []ledger.Entry) (n int, again time.Time)
	// pace returns how many pieces of a lane may be done at once; nil: width.
	pace func(lane string) int
	// joins reports whether a piece may be done beside others of its lane; nil: yes.
	joins func(ledger.Entry) bool
	// turn is told of a piece whose turn has come, before joins is asked about the next; nil: nothing.
	turn func(ledger.Entry)
	// before brings up to date what the step decides by, before anything is taken; nil: nothing.
	before func() error
	// intend returns the events to commit first; act says whether do follows.
	intend func(ledger.Entry, archive.Instant) (evs []ledger.Event, act bool, err error)
	// tooLate returns what is committed instead where way says so.
	tooLate func(ledger.Entry) ledger.Event
	// do reaches the world and returns one change for each entry, but for those it
	// was kept from by the end of ctx.
	do func(context.Context, []ledger.Entry) []ledger.Change
	// follow adds to an outcome the intents of the next step where that follows at once,
	// and returns the places it has taken for that; nil: nothing follows.
	follow func(acts []ledger.Entry, outcome []ledger.Change) ([]ledger.Change, map[archive.Key]*piece)
	// recall returns the outcome where the intent is committed and nothing will be done
	// of it before the end; nil: the intent stands, and the next start goes on from it.
	recall func(ledger.Entry) ledger.Event
}

// way is how an entry is gone about. It is decided once for each piece of work: clocks and
// speeds that are asked twice may answer twice.
type way struct {
	target Target    // that it needs
	most   int       // entries, at most, that are done with it
	late   bool      // nothing can be done any more
	from   time.Time // it waits until then; zero: it need not
}

// runner runs one step. It holds which entries are under way, and nothing else that
// a restart would miss.
//
// It serves the lanes in turn, one piece of work each, and a lane in which nothing is
// under way may always begin one: whatever hangs, rests or piles up in one lane costs
// the others nothing, not even that they are looked for behind it.
type runner struct {
	step
	*gate
	c    *Engine
	wake chan struct{} // size 1: a hint that something may be due

	last  string               // the lane that was served last; only the loop
	since map[string]time.Time // when the first of a lane's not yet full batch was seen; only the loop

	turned atomic.Pointer[time.Time] // when the loop last came round
}

func (c *Engine) runner(s step) *runner {
	if s.target == nil {
		s.target = targetOf
	}
	return &runner{step: s, gate: newGate(s), c: c, wake: make(chan struct{}, 1), since: map[string]time.Time{}}
}

func (r *runner) nudge() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// loop takes what is due until stop ends; work goes on under its own context.
func (r *runner) loop(stop, work context.Context) error {
	defer r.begin(work) // what waits for its turn is handed back
	defer r.close()
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

func (c *Engine) longestSleep() time.Duration { return cmp.Or(c.cfg.LongestSleep, longestSleep) }

func (r *runner) sleep(next time.Time) time.Duration {
	if next.IsZero() {
		return r.c.longestSleep()
	}
	return min(r.c.longestSleep(), max(5*time.Millisecond, next.Sub(r.c.cfg.Now().Wall)))
}

// take starts as much as there is room for and returns when to look again.
func (r *runner) take(work context.Context) (time.Time, error) {
	if r.before != nil {
		if err := r.before(); err != nil {
			return time.Time{}, err
		}
	}
	if r.risky && r.c.safe() {
		return time.Time{}, nil
	}
	r.round()
	lanes, err := r.c.cfg.Index.Queues(r.name)
	if err != nil {
		return time.Time{}, err
	}
	now := r.c.cfg.Now()
	next := earliest{}
	found := map[string][]ledger.Entry{}
	for lanes = after(lanes, r.last); len(lanes) > 0; {
		var again []string
		for _, l := range lanes {
			started, err := r.serve(work, l, now, found, &next)
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

// serve begins one piece of work of a lane, if there is any and room for it. found holds
// what this round has found in each lane and not begun yet.
func (r *runner) serve(work context.Context, lane string, now archive.Instant, found map[string][]ledger.Entry, next *earliest) (started bool, err error) {
	room := r.room(lane)
	if room == 0 {
		return false, nil // the end of a piece of work wakes us
	}
	if until, rests := r.c.breakers.isOpen(r.target(lane), now.Wall); rests {
		next.add(until)
		return false, nil
	}
	ready := found[lane]
	if len(ready) == 0 {
		if ready, err = r.look(lane, now, max(r.batch, room), next); err != nil || len(ready) == 0 {
			delete(r.since, lane)
			return false, err
		}
	}
	if full := r.fills(lane, len(ready), now.Wall); now.Wall.Before(full) {
		next.add(full)
		return false, nil
	}
	if r.limit != nil {
		n, again := r.limit(ready)
		if next.add(again); n == 0 {
			return false, nil
		}
		ready = ready[:min(n, len(ready))]
	}
	way := r.wayOf(lane, ready[0], now)
	probe, allowed := r.c.breakers.allow(way.target, now.Wall)
	if !allowed { // it opened since this was found
		delete(found, lane)
		next.add(now.Wall) // the lane may hold what goes over another route
		return false, nil
	}
	delete(r.since, lane)
	es, rest := r.split(lane, way, ready, now)
	if probe {
		es, rest = es[:1], nil
	}
	if r.limit == nil {
		found[lane] = rest
	}
	r.start(work, &piece{lane: lane, target: way.target, es: es, probe: probe, late: way.late}, now)
	return true, nil
}

// look returns up to limit entries of a lane that are due and may go now.
func (r *runner) look(lane string, now archive.Instant, limit int, next *earliest) ([]ledger.Entry, error) {
	admitted := func(ledger.Entry) bool { return true }
	if r.admit != nil {
		admit, any := r.admit(lane, now)
		if !any {
			return nil, nil
		}
		admitted = admit
	}
	ready, at, err := r.c.cfg.Index.DueInQueue(r.name, lane, now.Wall, limit, r.isBusy, func(e ledger.Entry) bool {
		way := r.wayOf(lane, e, now)
		if now.Wall.Before(way.from) {
			next.add(way.from)
			return true
		}
		if until, rests := r.c.breakers.isOpen(way.target, now.Wall); rests {
			next.add(until)
			return true
		}
		return !admitted(e)
	})
	next.add(at)
	return ready, err
}

func (r *runner) wayOf(lane string, e ledger.Entry, now archive.Instant) way {
	if r.way != nil {
		return r.way(e, now)
	}
	return way{target: r.target(lane), most: r.batch}
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

// split returns those of the ready entries that are done together, the first one and
// what goes the same way, and the rest.
func (r *runner) split(lane string, first way, ready []ledger.Entry, now archive.Instant) (es, rest []ledger.Entry) {
	if first.most == 1 {
		return ready[:1:1], ready[1:]
	}
	for i, e := range ready {
		if i == 0 || len(es) < first.most && r.wayOf(lane, e, now) == first {
			es = append(es, e)
		} else {
			rest = append(rest, e)
		}
	}
	return es, rest
}

// start commits the intents of one piece of work and then lets it wait for its turn.
func (r *runner) start(work context.Context, p *piece, now archive.Instant) {
	if !r.gate.take(p) {
		if p.probe {
			r.c.breakers.endProbe(p.target, now.Wall)
		}
		return
	}
	var intents []ledger.Change
	acting := map[archive.Key]bool{}
	for _, e := range p.es {
		evs, act, err := r.intends(p, e, now)
		if err != nil {
			evs, act = []ledger.Event{r.c.later(e, localFault(err))}, false
		}
		if acting[e.Key] = act; len(evs) > 0 {
			intents = append(intents, ledger.Change{Key: e.Key, Rev: e.Rev, Events: evs, At: now})
		} else if act {
			p.acts = append(p.acts, e)
		}
	}
	run := func(rs []ledger.Result) {
		for _, res := range rs {
			r.c.note(res)
			if res.Err == nil && acting[res.Key] {
				p.acts = append(p.acts, res.Entry)
			}
		}
		r.enter(work, p)
	}
	r.c.wg.Add(1)
	if len(intents) == 0 {
		run(nil)
		return
	}
	r.c.cfg.Ledger.Submit(intents, run)
}

func (r *runner) intends(p *piece, e ledger.Entry, now archive.Instant) (evs []ledger.Event, act bool, err error) {
	if p.late {
		return []ledger.Event{r.tooLate(e)}, false, nil
	}
	return r.intend(e, now)
}

// earliest keeps the earliest of the times that are not zero.
type earliest struct{ time time.Time }

func (e *earliest) add(t time.Time) {
	if !t.IsZero() && (e.time.IsZero() || t.Before(e.time)) {
		e.time = t
	}
}
