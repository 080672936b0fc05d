package window

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// TestPlan_I6_SimulatedLines lets thousands of lines carry a backlog each, planned, paced
// and started as the engine does it: sizes, speeds, latencies, lives of tickets and
// clocks differ from line to line, and speeds change while they work. No upload may start
// after its window, whatever the line. Where no package takes the line more than a sixteenth
// of half a window, all end in the first half, and the line carries at least 95 % of what it
// could. RUNS asks for more lines.
func TestPlan_I6_SimulatedLines(t *testing.T) {
	runs := 100
	if kit.Race {
		runs = 20
	}
	if s := os.Getenv("RUNS"); s != "" {
		n, err := strconv.Atoi(s)
		kit.Need(t, err == nil && n >= 1, "RUNS=%q", s)
		runs = n
	}
	var next, puts, posts, beyond atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			s := &sim{}
			for n := next.Add(1); n <= int64(runs) && !t.Failed(); n = next.Add(1) {
				err := s.seed(uint64(n))
				kit.Check(t, err == nil, "line %d: %v (%+v)", n, err, s.road)
				puts.Add(int64(s.puts))
				posts.Add(int64(s.posts))
				beyond.Add(int64(s.beyond))
			}
		})
	}
	wg.Wait()
	t.Logf("%d lines, %d uploads, %d registrations, %d uploads went beyond half a window where packages are too large for it", runs, puts.Load(), posts.Load(), beyond.Load())
}

// road is what differs from line to line.
type road struct {
	Total   float64 // bytes per second of the line
	Each    float64 // of one upload at most
	Latency float64 // seconds of an upload beside its bytes
	Post    float64 // seconds of a registration
	Workers int
	Life    float64 // seconds that a ticket works from the moment it is signed
	Skew    float64 // seconds that the service's clock is ahead
	Drift   float64 // speeds lie between the given one and so much less or more
	Mix     int     // of sizes
	Steep   bool    // one package may take a good part of a window, or more than that
	Docs    int
}

// sim is one line at work, by events.
type sim struct {
	road
	r     *rand.Rand
	sizes []int64

	now     float64
	speed   float64 // of the line, now, as part of what it should be
	changes float64 // when it does
	active  []flow
	posting []post
	queue   []held // with tickets, in their order
	waiting int    // the first document that has none
	again   []int  // whose ticket was over
	done    int
	moved   bool // something ended or was answered since the last look at what to register

	planner             *Planner
	pace                *Limiter
	puts, posts, beyond int
}

type flow struct {
	held
	began, ready, left float64 // ready: when its bytes begin to flow; left: of them
	under              *Upload
	call               uint64
}

type post struct {
	docs      []int
	began, at float64
}

type held struct {
	doc    int
	ticket archive.Ticket
	sent   float64
	over   float64 // when the store refuses it, whatever we think
}

// seed makes line n and lets it carry its backlog: as planned, and as it could at best.
func (s *sim) seed(n uint64) error {
	s.r = rand.New(rand.NewPCG(n, 26))
	s.draw()
	best, err := s.carry(true)
	if err != nil {
		return err
	}
	took, err := s.carry(false)
	if err != nil {
		return err
	}
	if best < 0.95*took && !s.Steep {
		return fmt.Errorf("%.0f s, %.0f s were possible: %.3f, %d posts %+v", took, best, best/took, s.posts, s.road)
	}
	return nil
}

func (s *sim) between(low, high float64) float64 { // evenly on a scale of ratios
	return low * math.Exp(s.r.Float64()*math.Log(high/low))
}

// draw makes a line, and a backlog that takes it two hours or so.
func (s *sim) draw() {
	s.road = road{Latency: s.between(0.005, 5), Post: s.between(0.05, 10), Workers: 1 + s.r.IntN(16), Life: 900,
		Skew: (s.r.Float64() - 0.5) * 7200, Drift: s.r.Float64() * 0.3, Mix: s.r.IntN(5), Steep: s.r.IntN(8) == 0}
	if s.r.IntN(4) == 0 {
		s.Life = s.between(300, 3600)
	}
	s.Total = s.between(1e5, 1e7)
	s.Each = s.Total * s.between(1/float64(s.Workers), 2)
	lasts, middle := s.between(4000, 12000), s.Total*s.between(3, 30)
	most := 1e8
	if !s.Steep {
		most = min(s.Each, s.Total) * min(s.Life, 900) / 32
	}
	s.sizes = s.sizes[:0]
	for took := 0.0; took < lasts && len(s.sizes) < 3000 || len(s.sizes) < 200; {
		b := middle
		switch s.Mix {
		case 1:
			b *= s.between(0.1, 10)
		case 2:
			b *= math.Exp(s.r.NormFloat64())
		case 3:
			if s.r.IntN(20) == 0 {
				b *= 50
			}
		case 4:
			b = s.between(1e3, 10*middle)
		}
		b = min(b, most)
		took += b/min(s.Total, s.Each*float64(s.Workers)) + s.Latency/float64(s.Workers)
		s.sizes = append(s.sizes, int64(b))
	}
	s.Docs = len(s.sizes)
}

func (s *sim) instant() archive.Instant {
	d := time.Duration(s.now * float64(time.Second))
	return archive.Instant{Wall: noon.Add(d), Boot: time.Hour + d, BootID: "b"}
}

// carry uploads everything and returns how long that took from the first answer on. At
// best, all is registered as fast as the service answers, all workers work, and no ticket
// ever ends.
func (s *sim) carry(best bool) (float64, error) {
	s.r = rand.New(rand.NewPCG(0, uint64(s.Docs))) // the same weather for both
	s.now, s.speed, s.changes, s.waiting, s.done, s.moved = 0, 1, 0, 0, 0, true
	s.puts, s.posts, s.beyond = 0, 0, 0
	s.active, s.posting, s.queue, s.again = s.active[:0], s.posting[:0], s.queue[:0], s.again[:0]
	s.planner = &Planner{Workers: s.Workers}
	s.pace = NewLimiter(s.Workers)
	for s.done < s.Docs {
		if err := s.begin(best); err != nil {
			return 0, err
		}
		if s.moved {
			s.register(best)
			s.moved = false
		}
		if err := s.step(best); err != nil {
			return 0, err
		}
		if s.now > 1e6 {
			return 0, fmt.Errorf("stands still: %d of %d done, %d hold a ticket", s.done, s.Docs, len(s.queue))
		}
	}
	return s.now, nil
}

// register asks for as many tickets as the plan allows.
func (s *sim) register(best bool) {
	for len(s.posting) < 2 {
		var next []int
		next = append(next, s.again[:min(50, len(s.again))]...)
		for d := s.waiting; d < s.Docs && len(next) < 50; d++ {
			next = append(next, d)
		}
		if !best {
			next = next[:s.planner.Plan("vault", s.bytes(next), s.granted(), s.instant())]
		}
		if len(next) == 0 {
			return
		}
		old := min(len(next), len(s.again))
		s.again = s.again[:copy(s.again, s.again[old:])]
		s.waiting += len(next) - old
		s.posts++
		s.posting = append(s.posting, post{next, s.now, s.now + s.Post})
	}
}

func (s *sim) bytes(docs []int) (sizes []int64) {
	for _, d := range docs {
		sizes = append(sizes, s.sizes[d])
	}
	return sizes
}

func (s *sim) granted() (sizes []int64) {
	for _, h := range s.queue {
		sizes = append(sizes, s.sizes[h.doc])
	}
	for _, f := range s.active {
		sizes = append(sizes, s.sizes[f.doc])
	}
	for _, p := range s.posting {
		sizes = append(sizes, s.bytes(p.docs)...)
	}
	return sizes
}

// answer gives the tickets of one registration. The service tells its own time, in seconds.
func (s *sim) answer(p post) {
	signed := (p.began + p.at) / 2
	told := func(at float64) time.Time {
		return noon.Add(time.Duration((at + s.Skew) * float64(time.Second))).Truncate(time.Second)
	}
	now := s.now
	s.now = p.began
	life := time.Duration(s.Life) * time.Second
	t := archive.Ticket{Sent: s.instant(), Date: told(p.at), SignedAt: told(signed), Validity: life}.LimitLife(15 * time.Minute)
	s.now = now
	s.planner.ObserveTicket("vault", t)
	over := told(signed).Add(life).Sub(noon).Seconds() - s.Skew
	for _, d := range p.docs {
		s.queue = append(s.queue, held{d, t, p.began, over})
	}
}

// begin starts the uploads for which there is room.
func (s *sim) begin(best bool) error {
	for len(s.queue) > 0 {
		h, b := s.queue[0], s.sizes[s.queue[0].doc]
		room := len(s.active) < s.pace.Limit() && (len(s.active) == 0 || s.planner.MayJoin(b, s.instant()))
		if best {
			room = len(s.active) < s.Workers
		}
		if !room {
			return nil
		}
		s.queue = s.queue[:copy(s.queue, s.queue[1:])]
		if !best && !s.planner.MayStart(h.ticket, b, nil, s.instant()) {
			s.again = append(s.again, h.doc)
			s.moved = true
			continue
		}
		if !best && s.now >= h.over {
			return fmt.Errorf("document %d starts %.1f s after its window", h.doc, s.now-h.over)
		}
		s.puts++
		s.active = append(s.active, flow{h, s.now, s.now + s.Latency, float64(b), s.planner.BeginUpload(h.ticket, b, s.instant()), s.pace.Begin()})
	}
	return nil
}

// rate is how fast the bytes of one upload flow now.
func (s *sim) rate() float64 {
	n := 0
	for _, f := range s.active {
		if f.ready <= s.now {
			n++
		}
	}
	return s.speed * min(s.Each, s.Total/float64(max(n, 1)))
}

// step goes to the next event.
func (s *sim) step(best bool) error {
	if s.now >= s.changes {
		s.speed = 1 + (s.r.Float64()*2-1)*s.Drift
		s.changes = s.now + 20 + 100*s.r.Float64()
	}
	rate, next := s.rate(), s.changes
	for _, p := range s.posting {
		next = min(next, p.at)
	}
	for _, f := range s.active {
		if f.ready > s.now {
			next = min(next, f.ready)
		} else {
			next = min(next, s.now+f.left/rate)
		}
	}
	for i := range s.active {
		if f := &s.active[i]; f.ready <= s.now {
			f.left -= (next - s.now) * rate
		}
	}
	s.now = next
	for i := 0; i < len(s.posting); i++ {
		if p := s.posting[i]; p.at <= s.now {
			s.posting = append(s.posting[:i], s.posting[i+1:]...)
			s.answer(p)
			s.moved = true
			i--
		}
	}
	for i := 0; i < len(s.active); i++ {
		f := s.active[i]
		if f.ready > s.now || f.left > 1e-6*rate {
			continue
		}
		s.pace.Succeeded(len(s.active) >= s.pace.Limit())
		s.planner.EndUpload(f.under, s.instant(), true)
		s.active = append(s.active[:i], s.active[i+1:]...)
		s.done++
		s.moved = true
		i--
		if err := s.inTime(f); err != nil && !best {
			return err
		}
	}
	return nil
}

// inTime holds the end of an upload against its ticket: the first half of its life, unless
// the package alone would have taken the line so long that nothing else was possible.
func (s *sim) inTime(f flow) error {
	half := f.ticket.Life().Seconds() / 2
	alone := s.Latency + float64(s.sizes[f.doc])/(min(s.Each, s.Total)*(1-s.Drift))
	if s.now-f.sent <= half {
		return nil
	}
	if s.Steep || s.Post+2*alone > half {
		s.beyond++
		return nil
	}
	return fmt.Errorf("document %d of %d bytes ends %.0f s after its registration, begun at %.0f; half a window is %.0f s; alone it takes %.0f", f.doc, s.sizes[f.doc], s.now-f.sent, f.began-f.sent, half, alone)
}
