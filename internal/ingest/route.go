package ingest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/ledger"
)

// Pause is a route that rests because of a fault of the environment.
type Pause struct {
	Route string // "vault NAME", "status of vault NAME", "store of vault NAME", "drop NAME", "disposal of NAME", "PLACE of drop NAME", "spool", "folder KEY"
	Since time.Time
	Next  time.Time // of the next probe; zero: it does not open by itself
	Asked time.Time // until then the other side asked to be left alone; zero: it did not
	Cause ledger.Cause
}

const (
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute
	tolerated  = 3 // faults in a row of one kind that only look like the environment's
)

// routes holds the pauses. A route rests after a fault, then lets one piece of work
// through to probe; a success opens it, but not before the time that the other side asked
// for. Nothing of it is stored: after a restart the first call asks again.
type routes struct {
	mu     sync.Mutex
	paused map[string]*pause // guarded by mu
	doubts map[string]int    // faults in a row that are not yet a pause; guarded by mu
}

type pause struct {
	Pause
	faults  int
	probing bool
	locked  bool // rests until the process ends
}

func newRoutes() *routes {
	return &routes{paused: map[string]*pause{}, doubts: map[string]int{}}
}

// trip pauses a route for a while that doubles with each fault, or as long as the
// other side asked for. It reports whether that is news: the pause has just begun, or it needs a person only now.
func (r *routes) trip(name string, c ledger.Cause, retryAfter time.Duration, now time.Time) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.paused[name]
	if !known {
		p = &pause{Pause: Pause{Route: name, Since: now}}
		r.paused[name] = p
	}
	if p.locked {
		return !known
	}
	news = !known || Pause{Route: name, Cause: c}.NeedsPerson() && !p.NeedsPerson()
	// What was under way when the route was paused fails as well, and tells nothing new.
	if !known || p.probing || !now.Before(p.Next) {
		p.faults++
		p.Next = now.Add(backoff(p.faults-1, firstPause, maxPause))
	}
	if p.probing = false; retryAfter > 0 || !now.Before(p.Asked) { // else the cause of the wait stays to be shown
		p.Cause = c
	}
	if asked := now.Add(retryAfter); retryAfter > 0 && asked.After(p.Asked) {
		p.Asked = asked
	}
	if p.Asked.After(p.Next) {
		p.Next = p.Asked
	}
	return news
}

// asked returns until when the other side asked to be left alone; zero: it did not.
func (r *routes) asked(name string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.paused[name]; p != nil {
		return p.Asked
	}
	return time.Time{}
}

// isPaused reports whether a route is paused, resting or about to be probed.
func (r *routes) isPaused(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused[name] != nil
}

// lock lets a route rest until the process ends or a person acts, whatever is heard on
// it meanwhile.
func (r *routes) lock(name string, c ledger.Cause, now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, known := r.paused[name]
	if !known {
		p = &pause{Pause: Pause{Route: name, Since: now}}
		r.paused[name] = p
	}
	p.Cause, p.Next, p.locked = c, time.Time{}, true
	return !known
}

// unlock opens a route that was locked.
func (r *routes) unlock(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.paused, name)
}

// doubt counts a fault that is the environment's only when it repeats; it reports
// whether it now counts as one.
func (r *routes) doubt(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.doubts[name]++
	return r.doubts[name] >= tolerated
}

// opens books a success and reports whether it opened the route. What was under way when
// the other side asked to be left alone opens nothing before that time.
func (r *routes) opens(name string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.doubts, name)
	p, was := r.paused[name]
	if was && (p.locked || now.Before(p.Asked)) {
		return false
	}
	delete(r.paused, name)
	return was
}

// rests reports whether no work may go out now; while it rests, next is the time of
// the next probe.
func (r *routes) rests(name string, now time.Time) (next time.Time, rests bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.paused[name]
	if !ok {
		return time.Time{}, false
	}
	return p.rests(now)
}

func (p *pause) rests(now time.Time) (next time.Time, rests bool) {
	switch {
	case p.locked:
		return time.Time{}, true
	case p.probing:
		return now.Add(firstPause), true
	}
	return p.Next, now.Before(p.Next)
}

// enter lets a piece of work onto a route unless that rests. probe: it goes out alone, to
// see whether the route is back.
func (r *routes) enter(name string, now time.Time) (probe, rests bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.paused[name]
	if !ok {
		return false, false
	}
	if _, rests := p.rests(now); rests {
		return false, true
	}
	p.probing = true
	return true, false
}

// forget ends a pause that was not locked, as if it had never been.
func (r *routes) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.paused[name]; ok && !p.locked && !p.probing {
		delete(r.paused, name)
		delete(r.doubts, name)
	}
}

// settle ends a probe that said nothing about the route.
func (r *routes) settle(name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.paused[name]; ok && p.probing {
		p.probing = false
		p.Next = now.Add(firstPause)
	}
}

// list leaves out that a vault cannot be asked where nothing else reaches it either.
func (r *routes) list() []Pause {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Pause
	for p := range maps.Values(r.paused) {
		if vault, asking := strings.CutPrefix(p.Route, askPrefix); asking && r.paused[vault] != nil {
			continue
		}
		all = append(all, p.Pause)
	}
	slices.SortFunc(all, func(a, b Pause) int { return strings.Compare(a.Route, b.Route) })
	return all
}

// backoff returns a wait with full jitter for the n-th repetition: between a
// quarter of first and first doubled n times, never above most.
func backoff(n int, first, most time.Duration) time.Duration {
	top := most
	if n < 20 && first<<n < most {
		top = first << n
	}
	return first/4 + rand.N(top)
}
