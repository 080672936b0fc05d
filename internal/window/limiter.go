package window

// Limiter says how many calls may go over one route at once. It begins small. As long as
// all goes well and its room is used up it grows, by one for each call until the first
// strain and from then on by one for each round of calls. Strain (429, 503, time-out)
// halves it, at most once for all calls that were under way together.
//
// A few strained calls among many are no strain of the route: each eight calls that went
// well pay for one, up to a handful of them.
//
// It is not safe for concurrent use.
type Limiter struct {
	most           float64
	limit          float64
	credit         float64
	overloadedOnce bool   // at least once since it began
	begun          uint64 // calls
	halved         uint64 // the last call begun before the last halving
	floored        bool   // halved to the floor, and nothing went well since
}

const (
	firstLimit   = 2
	creditEarned = 0.125 // credit for a call that went well; one that was strained costs 1
	maxCredit    = 4
)

// NewLimiter returns a pace that ends at most calls at once.
func NewLimiter(most int) *Limiter {
	m := float64(max(most, 1))
	return &Limiter{most: m, limit: min(firstLimit, m)}
}

// Limit is how many calls may be under way now, at least one.
func (p *Limiter) Limit() int { return int(p.limit) }

// Begin books a call; its end is told with the number that comes back.
func (p *Limiter) Begin() uint64 {
	p.begun++
	return p.begun
}

// Succeeded books that a call went well; full says that no more could have been under way.
func (p *Limiter) Succeeded(full bool) {
	p.floored = false
	p.credit = min(p.credit+creditEarned, maxCredit+p.limit/8)
	switch {
	case !full:
	case p.overloadedOnce:
		p.limit = min(p.limit+1/p.limit, p.most)
	default:
		p.limit = min(p.limit+1, p.most)
	}
}

// Overloaded books that call n met a route that has too much to do. It reports whether
// the route has nothing to give at all: one call at a time is still too much.
func (p *Limiter) Overloaded(n uint64) (rest bool) {
	if n <= p.halved {
		return false // it was under way with the one that told of the strain first
	}
	if p.credit >= 1 {
		p.credit--
		return false
	}
	rest = p.floored
	p.overloadedOnce, p.halved = true, p.begun
	p.limit = max(p.limit/2, 1)
	p.floored = p.limit == 1
	return rest
}
