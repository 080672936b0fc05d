package ingest

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

// Pause is what people are told of a circuit breaker that is not closed.
type Pause struct {
	Target Target
	Since  time.Time
	Next   time.Time // of the next probe; zero: only a person or a restart closes it
	Asked  time.Time // until then the other side asked to be left alone; zero: it did not
	Cause  ledger.Cause
	// ConfigKey is where the drop of the target stands in the configuration, as "drops[2]"; empty: the target has none.
	ConfigKey string
}

const (
	firstPause = 2 * time.Second
	maxPause   = 5 * time.Minute
	tolerated  = 3 // faults in a row of one kind that only look like the environment's

	// If nobody can be asked what became of an upload, each probe that ends in
	// doubt costs a document that a person must look for. So these pauses are
	// far longer. From the tolerated number on a person is called, and only his
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
	if inARow < tolerated {
		return firstDoubtPause << (inARow - 1)
	}
	return min(personDoubtPause<<min(inARow-tolerated, 10), maxDoubtPause)
}

// breakers holds one circuit breaker for each target.
//
// A breaker is closed while its target works: work goes out. A fault of the environment opens it: nothing goes out for a
// while, which doubles with each fault. Then it is half-open: one task goes out as a probe. A success closes it,
// but not before the time that the other side asked for.
//
// Nothing of this is stored. After a restart all breakers are closed, and the first call finds out.
type breakers struct {
	mu     sync.Mutex
	by     map[Target]*breaker // those that are not closed; guarded by mu
	faults map[Target]int      // in a row, too few to open a breaker; guarded by mu
	doubts map[Target]int      // uploads in a row of which nobody knows what became; guarded by mu
}

// breaker is a circuit breaker that is open or half-open.
type breaker struct {
	Pause
	opened  int       // times in a row
	probing bool      // it is half-open, and its probe is under way
	locked  bool      // it stays open until a person acts or the process ends
	asOf    time.Time // the wall clock when Next was set
}

func newBreakers() *breakers {
	return &breakers{by: map[Target]*breaker{}, faults: map[Target]int{}, doubts: map[Target]int{}}
}

// open opens a breaker, for a while that doubles with each fault, or for as long as the other side asked for.
// It reports whether people must be told: the breaker was closed, or it needs a person only now.
func (b *breakers) open(t Target, c ledger.Cause, retryAfter time.Duration, now time.Time) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	// A breaker that is locked open keeps its first cause: people must see what locked it.
	br, known := b.get(t, now)
	if br.locked {
		return !known
	}
	br.followClock(now)
	news = !known || Pause{Target: t, Cause: c}.NeedsPerson() && !br.NeedsPerson()
	// Work that was under way when the breaker opened fails as well, and tells nothing new.
	isNew := !known || br.probing || !now.Before(br.Next)
	if isNew {
		br.opened++
		br.Next = now.Add(backoff(br.opened-1, firstPause, maxPause))
	}
	awaitsPerson := br.Cause.Code == CauseDoubtInARow && !isNew
	if br.probing = false; !awaitsPerson && (retryAfter > 0 || !now.Before(br.Asked)) { // otherwise people still see why the wait was asked for
		br.Cause = c
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

// openInDoubt opens the breaker of a store after an upload of which nobody knows what became, where nobody can be asked. It opens at the
// first one. It returns how many there were in a row; a success or a person ends the row, and no other fault does.
func (b *breakers) openInDoubt(t Target, c ledger.Cause, retryAfter time.Duration, now time.Time) (inARow int, news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.get(t, now)
	b.doubts[t]++
	inARow = b.doubts[t]
	if br.locked {
		return inARow, !known
	}
	br.followClock(now)
	if inARow >= tolerated {
		c = ledger.Cause{Code: CauseDoubtInARow, Text: fmt.Sprintf("%d uploads in a row ended without a word that says what became of them, the last one so: %s", inARow, c.Text)}
	}
	br.probing, br.Cause, br.asOf = false, c, now
	if asked := now.Add(retryAfter); retryAfter > 0 && asked.After(br.Asked) {
		br.Asked = asked
	}
	for _, next := range []time.Time{now.Add(doubtPause(inARow)), br.Asked} {
		if next.After(br.Next) {
			br.Next = next
		}
	}
	return inARow, !known || inARow == tolerated
}

// resume closes a breaker by the word of a person, and reports whether it was open. One that is locked open stays so.
func (b *breakers) resume(t Target) bool {
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

// mayResume reports whether resume would close a breaker.
func (b *breakers) mayResume(t Target) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.by[t]
	return known && !br.locked
}

// get returns the breaker of a target, which is not closed any more after that. The caller holds mu.
func (b *breakers) get(t Target, now time.Time) (br *breaker, known bool) {
	br, known = b.by[t]
	if !known {
		br = &breaker{Pause: Pause{Target: t, Since: now}}
		b.by[t] = br
	}
	return br, known
}

// askedUntil returns until when the other side asked to be left alone; zero: it did not.
func (b *breakers) askedUntil(t Target) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br := b.by[t]; br != nil {
		return br.Asked
	}
	return time.Time{}
}

// isClosed reports whether a breaker is closed.
func (b *breakers) isClosed(t Target) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[t] == nil
}

// causeOf returns why a breaker is not closed.
func (b *breakers) causeOf(t Target) (c ledger.Cause, isOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br := b.by[t]; br != nil {
		return br.Cause, true
	}
	return ledger.Cause{}, false
}

// lockOpen opens a breaker until the process ends or a person acts, whatever is heard of its target meanwhile.
func (b *breakers) lockOpen(t Target, c ledger.Cause, now time.Time) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.get(t, now)
	br.Cause, br.Next, br.locked = c, time.Time{}, true
	return !known
}

// unlock closes a breaker that was locked open.
func (b *breakers) unlock(t Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.by, t)
}

// countFault counts a fault that is the environment's only when it repeats. It reports whether the breaker must open.
func (b *breakers) countFault(t Target) (mustOpen bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults[t]++
	return b.faults[t] >= tolerated
}

// close notes a success, and reports whether that closed the breaker. Work that was under way when the other side asked
// to be left alone closes nothing before that time.
func (b *breakers) close(t Target, now time.Time) (closed bool) {
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

// isOpen reports whether nothing may go out now. If so, next is the time of the next probe.
func (b *breakers) isOpen(t Target, now time.Time) (next time.Time, open bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	br, known := b.by[t]
	if !known {
		return time.Time{}, false
	}
	return br.isOpen(now)
}

func (br *breaker) isOpen(now time.Time) (next time.Time, open bool) {
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
// again. Less than a minute may also be a worker that decides by the time at which it began to look.
func (br *breaker) followClock(now time.Time) {
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
func (b *breakers) allow(t Target, now time.Time) (probe, allowed bool) {
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

// forget closes a breaker that nothing waits for, as if it had never been opened.
func (b *breakers) forget(t Target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br, known := b.by[t]; known && !br.locked && !br.probing && b.doubts[t] < tolerated {
		delete(b.by, t)
		delete(b.faults, t)
	}
}

// endProbe ends a probe that said nothing about the target: another one follows soon.
func (b *breakers) endProbe(t Target, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if br, known := b.by[t]; known && br.probing {
		br.probing = false
		br.Next, br.asOf = now.Add(firstPause), now
	}
}

// list returns all breakers that are not closed. It leaves out that a vault cannot be asked where nothing else reaches it either.
func (b *breakers) list() []Pause {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Pause
	for br := range maps.Values(b.by) {
		if br.Target.Purpose == ToAsk && b.by[RegisterTarget(br.Target.Vault)] != nil {
			continue
		}
		all = append(all, br.Pause)
	}
	slices.SortFunc(all, func(a, b Pause) int { return strings.Compare(a.Target.String(), b.Target.String()) })
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
