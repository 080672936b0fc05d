package window

// Limiter limits how many calls go to one target at once. It begins with few. While all goes well and the limit is
// reached, it grows: by one for each call until the first overload, and after that by one for each round of calls. An
// overload (429, 503, time-out) halves it, at most once for all calls that were under way together.
//
// A few overloaded calls among many are forgiven: eight calls that went well pay for one, up to a handful of them.
//
// It is not safe for concurrent use.
type Limiter struct {
	most           float64
	limit          float64
	credit         float64
	overloadedOnce bool   // since it began
	begun          uint64 // calls
	halved         uint64 // the last call begun before the last halving
	floored        bool   // halved down to one, and nothing went well since
}

const (
	firstLimit   = 2
	creditEarned = 0.125 // by a call that went well; one that was overloaded costs 1
	maxCredit    = 4
)

// NewLimiter returns a limiter that never allows more than most calls at once.
func NewLimiter(most int) *Limiter {
	m := float64(max(most, 1))
	return &Limiter{most: m, limit: min(firstLimit, m)}
}

// Limit is how many calls may be under way now, at least one.
func (l *Limiter) Limit() int { return int(l.limit) }

// Begin counts a call. Its end is told with the number that comes back.
func (l *Limiter) Begin() uint64 {
	l.begun++
	return l.begun
}

// Succeeded notes that a call went well. full: no more calls could have been under way.
func (l *Limiter) Succeeded(full bool) {
	l.floored = false
	l.credit = min(l.credit+creditEarned, maxCredit+l.limit/8)
	switch {
	case !full:
	case l.overloadedOnce:
		l.limit = min(l.limit+1/l.limit, l.most)
	default:
		l.limit = min(l.limit+1, l.most)
	}
}

// Overloaded notes that call n met a target that has too much to do. It reports whether nothing may go there for a while,
// because one call at a time is still too much.
func (l *Limiter) Overloaded(n uint64) (mustPause bool) {
	if n <= l.halved {
		return false // it was under way together with the call that halved the limit
	}
	if l.credit >= 1 {
		l.credit--
		return false
	}
	mustPause = l.floored
	l.overloadedOnce, l.halved = true, l.begun
	l.limit = max(l.limit/2, 1)
	l.floored = l.limit == 1
	return mustPause
}
