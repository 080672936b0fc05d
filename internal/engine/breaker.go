package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/ledger"
)

// Pause says why a circuit breaker is open or half-open.
type Pause[T Target] struct {
	Target T
	Since  time.Time
	Next   time.Time // of the next probe; zero: only an operator or a restart closes it
	Asked  time.Time // until then the other side asked to be left alone; zero: it did not
	Cause  ledger.Cause
}

const (
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute
	Tolerated  = 3 // faults in a row of one kind that only look like the environment's

	// If nobody can be asked what became of an upload, each probe that ends in
	// doubt costs a document that a person must look for. So these pauses are
	// far longer. From the Tolerated number on a person is called, and only his
	// word ends the pause sooner. In eight hours two uploads that were under
	// way when the outage began end in doubt, and three probes.
	firstDoubtPause  = 5 * time.Minute
	personDoubtPause = 2 * time.Hour
	maxDoubtPause    = 8 * time.Hour
)

// CauseDoubtInARow is the code of a pause after so many uploads in doubt that a person must look.
const CauseDoubtInARow = "doubt-in-a-row"

// doubtPause returns how long a store is left alone after that many uploads in a row of which nobody knows what became.
func doubtPause(inARow int) time.Duration {
	if inARow < Tolerated {
		return firstDoubtPause << (inARow - 1)
	}
	return min(personDoubtPause<<min(inARow-Tolerated, 10), maxDoubtPause)
}

// Breakers holds one circuit breaker for each target.
//
// A breaker is closed while its target works: work goes out. A fault of the environment opens it: nothing goes out for a
// while, which doubles with each fault. Then it is half-open: one task goes out as a probe. A success closes it,
// but not before the time that the other side asked for.
//
// It is all in memory. After a restart all breakers are closed, and the first call finds out.
type Breakers[T Target] struct {
	mu     sync.Mutex
	by     map[T]*breaker[T] // open and half-open ones; guarded by mu
	faults map[T]int         // in a row, too few to open a breaker; guarded by mu
	doubts map[T]int         // uploads in a row of which nobody knows what became; guarded by mu
}

// breaker is a circuit breaker that is open or half-open.
type breaker[T Target] struct {
	Pause[T]
	needsPerson bool      // its cause shows that no waiting helps
	opened      int       // times in a row
	probing     bool      // it is half-open, and its probe is under way
	locked      bool      // it stays open until a person acts or the process ends
	asOf        time.Time // the wall clock when Next was set
}

func newBreakers[T Target]() *Breakers[T] {
	return &Breakers[T]{by: map[T]*breaker[T]{}, faults: map[T]int{}, doubts: map[T]int{}}
}

// Open opens a breaker, for a while that doubles with each fault, or for as
// long as the other side asked for. needsPerson: the cause shows that no
// waiting helps. It reports whether people must be told: the breaker was
// closed, or it needs a person only now.
func (b *Breakers[T]) Open(t T, c ledger.Cause, needsPerson bool, retryAfter time.Duration, now time.Time) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A breaker that is locked open keeps its first cause: people must see what locked it.
	br, known := b.get(t, now)
	if br.locked {
		return !known
	}
	br.followClock(now)
	news = !known || needsPerson && !br.needsPerson
	// Work that was under way when the breaker opened fails as well, and tells nothing new.
	isNew := !known || br.probing || !now.Before(br.Next)
	if isNew {
		br.opened++
		br.Next = now.Add(Backoff(br.opened-1, firstPause, maxPause))
	}
	awaitsPerson := br.Cause.Code == CauseDoubtInARow && !isNew
	if br.probing = false; !awaitsPerson && (retryAfter > 0 || !now.Before(br.Asked)) { // otherwise people still see why the wait was asked for
		br.Cause, br.needsPerson = c, needsPerson
	}
	if asked := now.Add(retryAfter); retryAfter > 0 && asked.After(br.Asked) {
		br.Asked = asked
	}
	if br.Asked.After(br.Next) {
		br.Next = br.Asked
	}
	br.asOf = now
	return news
}

// OpenInDoubt opens the breaker of a store after an upload of which nobody
// knows what became, where nobody can be asked. It opens at the first one. It
// returns how many there were in a row; a success or a person ends the row, and
// no other fault does.
func (b *Breakers[T]) OpenInDoubt(t T, c ledger.Cause, retryAfter time.Duration, now time.Time) (inARow int, news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.get(t, now)
	b.doubts[t]++
	inARow = b.doubts[t]
	if br.locked {
		return inARow, !known
	}
	br.followClock(now)
	if inARow >= Tolerated {
		c = ledger.Cause{Code: CauseDoubtInARow, Text: fmt.Sprintf("%d uploads in a row ended without a word that says what became of them, the last one so: %s", inARow, c.Text)}
	}
	br.probing, br.Cause, br.needsPerson, br.asOf = false, c, inARow >= Tolerated, now
	if asked := now.Add(retryAfter); retryAfter > 0 && asked.After(br.Asked) {
		br.Asked = asked
	}
	for _, next := range []time.Time{now.Add(doubtPause(inARow)), br.Asked} {
		if next.After(br.Next) {
			br.Next = next
		}
	}
	return inARow, !known || inARow == Tolerated
}

// Resume closes a breaker because an operator says so, and reports whether it was
// open. A breaker that is locked open stays so.
func (b *Breakers[T]) Resume(t T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.by[t]
	if !known || br.locked {
		return false
	}
	delete(b.by, t)
	delete(b.doubts, t)
	return true
}

// MayResume reports whether resume would close a breaker.
func (b *Breakers[T]) MayResume(t T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.by[t]
	return known && !br.locked
}

// get returns the breaker of a target, which is not closed any more after that. The caller holds mu.
func (b *Breakers[T]) get(t T, now time.Time) (br *breaker[T], known bool) {
	br, known = b.by[t]
	if !known {
		br = &breaker[T]{Pause: Pause[T]{Target: t, Since: now}}
		b.by[t] = br
	}
	return br, known
}

// AskedUntil returns until when the other side asked to be left alone; zero: it did not.
func (b *Breakers[T]) AskedUntil(t T) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br := b.by[t]; br != nil {
		return br.Asked
	}
	return time.Time{}
}

// IsClosed reports whether a breaker is closed.
func (b *Breakers[T]) IsClosed(t T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[t] == nil
}

// CauseOf returns why a breaker is open.
func (b *Breakers[T]) CauseOf(t T) (c ledger.Cause, isOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br := b.by[t]; br != nil {
		return br.Cause, true
	}
	return ledger.Cause{}, false
}

// LockOpen opens a breaker until the process ends or a person acts, whatever is
// heard of its target meanwhile.
func (b *Breakers[T]) LockOpen(t T, c ledger.Cause, now time.Time) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.get(t, now)
	br.Cause, br.Next, br.locked = c, time.Time{}, true
	return !known
}

// Unlock closes a breaker that was locked open.
func (b *Breakers[T]) Unlock(t T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, t)
}

// CountFault counts a fault that is the environment's only when it repeats. It
// reports whether the breaker must open.
func (b *Breakers[T]) CountFault(t T) (mustOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[t]++
	return b.faults[t] >= Tolerated
}

// Close notes a success, and reports whether that closed the breaker. Work that
// was under way when the other side asked to be left alone closes nothing
// before that time.
func (b *Breakers[T]) Close(t T, now time.Time) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// One success ends a row of faults.
	delete(b.faults, t)
	delete(b.doubts, t)
	br, known := b.by[t]
	if known {
		br.followClock(now)
	}
	if known && (br.locked || now.Before(br.Asked)) {
		return false
	}
	delete(b.by, t)
	return known
}

// IsOpen reports whether nothing may go out now. If so, next is the time of the next probe.
func (b *Breakers[T]) IsOpen(t T, now time.Time) (next time.Time, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.by[t]
	if !known {
		return time.Time{}, false
	}
	return br.isOpen(now)
}

func (br *breaker[T]) isOpen(now time.Time) (next time.Time, open bool) {
	br.followClock(now)
	switch {
	case br.locked:
		return time.Time{}, true
	case br.probing: // the one probe is out; what is said of it decides
		return now.Add(firstPause), true
	}
	return br.Next, now.Before(br.Next)
}

// followClock keeps a wait as long as it was where the wall clock was set back: it would last until the clock is there
// again. Less than a minute may also be a look that decides by the time at which it began.
func (br *breaker[T]) followClock(now time.Time) {
	back := br.asOf.Sub(now)
	if back < time.Minute || br.locked {
		return
	}
	br.Next, br.asOf = br.Next.Add(-back), now
	if !br.Asked.IsZero() {
		br.Asked = br.Asked.Add(-back)
	}
}

// allow reports whether a task may go out now. probe: the breaker is half-open, and this one alone finds out
// whether its target works again.
func (b *Breakers[T]) allow(t T, now time.Time) (probe, allowed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.by[t]
	if !known {
		return false, true
	}
	if _, open := br.isOpen(now); open {
		return false, false
	}
	br.probing = true
	return true, true
}

// Forget closes a breaker that nothing waits for, as if it had never been
// opened, and reports whether it did.
func (b *Breakers[T]) Forget(t T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br, known := b.by[t]; known && !br.locked && !br.probing && b.doubts[t] < Tolerated {
		delete(b.by, t)
		delete(b.faults, t)
		return true
	}
	return false
}

// endProbe ends a probe that said nothing about the target: another one follows soon.
func (b *Breakers[T]) endProbe(t T, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br, known := b.by[t]; known && br.probing {
		br.probing = false
		br.Next, br.asOf = now.Add(firstPause), now
	}
}

// List returns all breakers that are open or half-open, in the order of their targets.
func (b *Breakers[T]) List() []Pause[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Pause[T]
	for br := range maps.Values(b.by) {
		all = append(all, br.Pause)
	}
	slices.SortFunc(all, func(a, b Pause[T]) int { return strings.Compare(a.Target.String(), b.Target.String()) })
	return all
}

// Backoff returns a wait with full jitter for the n-th repetition: between a
// quarter of first and first doubled n times, never above most.
func Backoff(n int, first, most time.Duration) time.Duration {
	top := most
	if n < 20 && first<<n < most {
		top = first << n
	}
	return first/4 + rand.N(top)
}
