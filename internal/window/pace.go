package window

// Pace says how many calls may go over one route at once. It begins small. As long as
// all goes well and its room is used up it grows, by one for each call until the first
// strain and from then on by one for each round of calls. Strain (429, 503, time-out)
// halves it, at most once for all calls that were under way together.
//
// A few strained calls among many are no strain of the route: each eight calls that went
// well pay for one, up to a handful of them.
//
// It is not safe for concurrent use.
type Pace struct {
	most     float64
	limit    float64
	credit   float64
	strained bool   // at least once since it began
	begun    uint64 // calls
	halved   uint64 // the last call begun before the last halving
	barren   bool   // halved to the floor, and nothing went well since
}

const (
	firstPace = 2
	earned    = 0.125 // credit for a call that went well; one that was strained costs 1
	forgiven  = 4
)

// NewPace returns a pace that ends at most calls at once.
func NewPace(most int) *Pace {
	m := float64(max(most, 1))
	return &Pace{most: m, limit: min(firstPace, m)}
}

// Limit is how many calls may be under way now, at least one.
func (p *Pace) Limit() int { return int(p.limit) }

// Began books a call; its end is told with the number that comes back.
func (p *Pace) Began() uint64 {
	p.begun++
	return p.begun
}

// Went books that a call went well; full says that no more could have been under way.
func (p *Pace) Went(full bool) {
	p.barren = false
	p.credit = min(p.credit+earned, forgiven+p.limit/8)
	switch {
	case !full:
	case p.strained:
		p.limit = min(p.limit+1/p.limit, p.most)
	default:
		p.limit = min(p.limit+1, p.most)
	}
}

// Strained books that call n met a route that has too much to do. It reports whether
// the route has nothing to give at all: one call at a time is still too much.
func (p *Pace) Strained(n uint64) (rest bool) {
	if n <= p.halved {
		return false // it was under way with the one that told of the strain first
	}
	if p.credit >= 1 {
		p.credit--
		return false
	}
	rest = p.barren
	p.strained, p.halved = true, p.begun
	p.limit = max(p.limit/2, 1)
	p.barren = p.limit == 1
	return rest
}
