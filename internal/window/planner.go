package window

import (
	"math"
	"slices"
	"sync"
	"time"

	"vaultd/internal/archive"
)

const (
	firstRate      = 1 << 20         // bytes per second before any upload was seen
	firstCost      = 2 * time.Second // of an upload beside its bytes, before any was seen
	firstLoad      = 2 << 20         // bytes that are tried at once before any upload was seen
	memory         = 0.95            // what an observation weighs when the next one comes
	safetyFactor   = 2               // a prediction allows for half the speed seen
	togetherFactor = 3               // whether uploads may be under way together, for a third of it
	endingPart     = 2               // the part of a ticket's life in which uploads should end: one half
	plannedPart    = 4               // the part of it that those with a ticket may fill, as predicted
	knownFactor    = 4               // sizes above so many times those seen are not foretold by the fit

	// longestPlan is how far a plan looks ahead. Tickets of a route that live longer must not fill the link for so long
	// that the other routes get no ticket.
	longestPlan = 15 * time.Minute
)

// Planner predicts uploads from those it saw. It knows of each its share of the
// network link's time, in which every moment
// belongs in equal parts to the uploads that are under way. If more uploads at
// once only share the link, shares stay as they are; where they fill it better,
// shares shrink: the sum of the shares is the time that the link needs for
// them, whatever there is at once.
//
// Its methods may be called from several goroutines.
type Planner struct {
	Workers int // uploads at once

	mu       sync.Mutex
	share    fit                      // of the link's time; guarded by mu
	underway []*Upload                // under way; guarded by mu
	linkTime time.Duration            // that one upload under way all the time would have had; guarded by mu
	last     time.Duration            // the boot clock when linkTime was brought up to date; guarded by mu
	lives    map[string]time.Duration // of the last ticket of each route; guarded by mu
}

// Upload is one that is under way.
type Upload struct {
	bytes    int64
	linkTime time.Duration
	half     time.Duration // by the boot clock, of its ticket's life: until then it should have ended
	over     time.Duration // and until then it must
}

// ObserveTicket learns from a ticket how long those of its route work.
func (p *Planner) ObserveTicket(route string, t archive.Ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lives == nil {
		p.lives = map[string]time.Duration{}
	}
	p.lives[route] = max(t.Life(), time.Second)
}

// BeginUpload books an upload on t that starts at now. Its end must be told.
func (p *Planner) BeginUpload(t archive.Ticket, bytes int64, now archive.Instant) *Upload {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	life := t.Life()
	u := &Upload{bytes, p.linkTime, t.Sent.Boot + life/endingPart, t.Sent.Boot + life - life/10}
	p.underway = append(p.underway, u)
	return u
}

// EndUpload books the end of an upload. Only from one that went well something is learned.
func (p *Planner) EndUpload(u *Upload, now archive.Instant, well bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	if i := slices.Index(p.underway, u); i >= 0 {
		p.underway = slices.Delete(p.underway, i, i+1)
	}
	if well {
		p.share.add(u.bytes, p.linkTime-u.linkTime)
	}
}

// advance shares out the time since the last look.
func (p *Planner) advance(now archive.Instant) {
	if n := len(p.underway); n > 0 {
		p.linkTime += max(0, now.Boot-p.last) / time.Duration(n)
	}
	p.last = now.Boot
}

// predict returns how long an upload of that many bytes may take that begins now. It is
// never more than half of a ticket's life: a package that a fresh ticket could not carry
// would otherwise never be tried, and speeds never learned anew.
func (p *Planner) predict(bytes int64, self *Upload, life time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := p.share.model()
	own := share.of(bytes)
	return min(safetyFactor*(own+p.waitForOthers(share, own, self)), life/endingPart)
}

// waitForOthers returns how long an upload waits for the others that share the link with it while
// it has own of the link's time itself: of each no more than that.
func (p *Planner) waitForOthers(share model, own time.Duration, self *Upload) (wait time.Duration) {
	for _, u := range p.underway {
		if u != self {
			wait += min(own, p.remaining(share, u))
		}
	}
	return wait
}

// remaining is what an upload under way still needs of the link's time.
func (p *Planner) remaining(share model, u *Upload) time.Duration {
	return max(0, share.of(u.bytes)-(p.linkTime-u.linkTime))
}

// MayStart reports whether an upload of bytes that starts now is predicted to end,
// with a margin, before t does. booked is the upload itself where it counts as begun already.
func (p *Planner) MayStart(t archive.Ticket, bytes int64, booked *Upload, now archive.Instant) bool {
	life := t.Life()
	left := Left(t, now)
	margin := min(30*time.Second, life/10)
	return left > 0 && p.predict(bytes, booked, life)+margin <= left
}

// MayJoin reports whether an upload of bytes may be under way beside the others. They all
// share the link: it must not keep another one from ending in the half of its window, or
// large packages would keep each other from ending at all.
func (p *Planner) MayJoin(bytes int64, now archive.Instant) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	return p.mayJoin(p.share.model(), bytes)
}

func (p *Planner) mayJoin(share model, bytes int64) bool {
	joins := share.of(bytes)
	for _, u := range p.underway {
		own := p.remaining(share, u)
		alone := p.last + togetherFactor*(own+p.waitForOthers(share, own, u))
		with := alone + togetherFactor*min(own, joins)
		if alone <= u.half && with > u.half || alone <= u.over && with > u.over {
			return false // uploads that will miss their deadline anyway are ignored
		}
	}
	return true
}

// plannedLife is how long the next ticket of a route will work, as far as plans look ahead; the caller holds mu.
func (p *Planner) plannedLife(route string) time.Duration {
	if life := p.lives[route]; life > 0 {
		return min(life, longestPlan)
	}
	return longestPlan
}

// Plan returns how many of the waiting documents of a route, in their order, may be
// registered now so that all uploads end in the first half of a ticket's life. granted are
// the sizes of those that hold a ticket already, of all routes, the ones under way among them. Beyond what the link
// can carry in time, as far as it is known, one more is tried where a slot would stay free. As
// long as the granted ones keep the link busy for longer than what could be added, and every
// worker, nothing is: soon more of them fit into one call.
//
// Until an upload was seen, little is tried at once.
func (p *Planner) Plan(route string, waiting, granted []int64, now archive.Instant) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(now)
	share := p.share.model()
	var load time.Duration
	var bytes int64
	for _, b := range granted {
		load += safetyFactor * share.of(b)
		bytes += b
	}
	for _, u := range p.underway {
		load -= safetyFactor * (share.of(u.bytes) - p.remaining(share, u))
	}
	n, held, budget := 0, load, p.plannedLife(route)/plannedPart
	for _, b := range waiting {
		load += safetyFactor * share.of(b)
		bytes += b
		ahead := n + len(granted) - len(p.underway) // tickets that nobody uploads on yet
		idle := ahead < max(1, len(p.underway)/2) && n+len(granted) < p.Workers && p.mayJoin(share, b)
		full := load > budget && !idle
		if p.share.n == 0 {
			full = n+len(granted) >= max(p.Workers, 1) || bytes > firstLoad
		}
		if full && n+len(granted) > 0 { // one document can always go
			if held > load-held && len(granted)-len(p.underway) >= p.Workers {
				n = 0
			}
			break
		}
		n++
	}
	return n
}

// fit is a line through what was observed, cost plus bytes by rate, in which the newest
// observations weigh most.
type fit struct{ n, bytes, time, square, product float64 }

func (f *fit) add(bytes int64, took time.Duration) {
	b, t := float64(bytes), max(took, 0).Seconds()
	f.n = f.n*memory + 1
	f.bytes = f.bytes*memory + b
	f.time = f.time*memory + t
	f.square = f.square*memory + b*b
	f.product = f.product*memory + b*t
}

// model is a fit made ready to be asked, in seconds.
type model struct{ cost, slope, steep, known, least float64 }

// model returns the seconds of an upload beside its bytes, and of each byte. If
// sizes hardly differ, nobody can tell the two apart: then the bytes have it
// all, and small uploads take half of the usual time at least.
func (f *fit) model() model {
	if f.n == 0 {
		return model{cost: firstCost.Seconds(), slope: 1. / firstRate, known: math.Inf(1)}
	}
	mean, size := f.time/f.n, f.bytes/f.n
	if size == 0 {
		return model{cost: mean}
	}
	m := model{slope: mean / size, steep: mean / size, known: knownFactor * math.Sqrt(f.square/f.n), least: mean / 2}
	if spread := f.square/f.n - size*size; spread > size*size/100 {
		slope := (f.product/f.n - size*mean) / spread
		if cost := mean - slope*size; slope >= 0 && cost >= 0 {
			m.cost, m.slope, m.steep, m.least = cost, slope, max(slope, mean/size), 0
		}
	}
	return m
}

// of returns what an upload of that many bytes takes. An upload far larger than all that were
// seen may take as much longer as it is larger.
func (m model) of(bytes int64) time.Duration {
	b := float64(bytes)
	known := min(b, m.known)
	return time.Duration(max(m.cost+m.slope*known+m.steep*(b-known), m.least) * float64(time.Second))
}
