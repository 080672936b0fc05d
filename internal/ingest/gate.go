package ingest

import (
	"slices"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// piece is work that is done together: what was taken for it, and of that what may be
// done now that the intent is committed.
type piece struct {
	lane     string
	target   Target
	es, acts []ledger.Entry
	probe    bool      // it finds out whether a resting route works again
	late     bool      // it is too late for it: that is committed, and nothing done
	began    time.Time // set when its turn comes
}

// gate holds the places of one step. A piece of work has a place from the moment its
// intent is handed to the ledger until it is done; what follows, the commit of its
// outcome, keeps nobody waiting. Whose intent is committed waits here for its turn: lanes
// begin in turn, and one in which nothing is done may always begin.
//
// What waits here is a hint like every other: the ledger knows it by its intent.
type gate struct {
	width int                     // pieces done at once, beyond one in each lane
	ahead int                     // pieces of a lane that may wait, at most
	pace  func(lane string) int   // of a lane that may be done at once; nil: width
	joins func(ledger.Entry) bool // whether one may be done beside the others of its lane; nil: yes
	turn  func(ledger.Entry)      // told of one whose turn has come, before the next is looked at; nil: nothing

	mu     sync.Mutex
	busy   map[archive.Key]bool // from being taken until the outcome is committed; guarded by mu
	ended  map[archive.Key]bool // since the round of looks began: what a look found may be older than that; guarded by mu
	lanes  map[string]*lane     // that ever held something; guarded by mu
	order  []string             // their names, sorted; guarded by mu
	last   string               // the lane that began last; guarded by mu
	doing  int                  // pieces being done; guarded by mu
	ending int                  // pieces whose outcome is being committed; guarded by mu
	over   bool                 // the end was asked for: what waits is handed back; guarded by mu
}

// lane is what a gate knows of one lane.
type lane struct {
	held    int
	doing   int
	waiting []*piece
	usual   time.Duration // that a piece of work takes; 0: none was done yet
}

const (
	// moment is for how long pieces of work may wait with their intents committed: about
	// as long as commits take, so that quick work never waits for the disk.
	moment = 50 * time.Millisecond
	// maxEnding bounds the outcomes that the ledger has not committed yet.
	maxEnding = 512
)

func newGate(s step) *gate {
	return &gate{width: s.width, ahead: s.ahead, pace: s.pace, joins: s.joins, turn: s.turn, busy: map[archive.Key]bool{}, ended: map[archive.Key]bool{}, lanes: map[string]*lane{}}
}

// lane returns what is known of a lane; the caller holds mu.
func (g *gate) lane(name string) *lane {
	l := g.lanes[name]
	if l == nil {
		l = &lane{}
		g.lanes[name] = l
		at, _ := slices.BinarySearch(g.order, name)
		g.order = slices.Insert(g.order, at, name)
	}
	return l
}

func (g *gate) atOnce(name string) int {
	if g.pace == nil {
		return g.width
	}
	return min(g.pace(name), g.width)
}

// room returns how many more pieces of a lane may be begun.
func (g *gate) room(name string) int {
	most := g.atOnce(name)
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(name)
	if g.over || g.ending >= maxEnding {
		return 0
	}
	ahead := 0
	if l.usual > 0 {
		ahead = int(min(time.Duration(g.ahead), time.Duration(most)*moment/l.usual))
	}
	free, share := g.spare(l)
	n := max(ahead-(l.held-l.doing), min(max(free, share-l.held), most-l.held))
	if l.held == 0 {
		n = max(n, 1)
	}
	return max(n, 0)
}

// spare returns how many places nobody has a claim to, and the share of all that a lane
// may claim. What waits counts up to its lane's share: however much quick work lies in one
// queue, the others' turns come. The caller holds mu.
func (g *gate) spare(asks *lane) (free, share int) {
	lanes := 0
	for _, l := range g.lanes {
		if l == asks || l.held > 0 {
			lanes++
		}
	}
	share = max(1, g.width/lanes)
	free = g.width - g.doing
	for _, l := range g.lanes {
		free -= min(l.held-l.doing, share)
	}
	return free, share
}

// round begins a new round of looks at the ledger.
func (g *gate) round() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.ended)
}

// take gives a piece its place; false: something of it is under way already.
func (g *gate) take(p *piece) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range p.es {
		if g.busy[e.Key] {
			return false
		}
	}
	g.lane(p.lane).held++
	for _, e := range p.es {
		g.busy[e.Key] = true
	}
	return true
}

// queue lets a piece wait for its turn.
func (g *gate) queue(p *piece) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(p.lane)
	l.waiting = append(l.waiting, p)
}

// next returns the piece whose turn it is; nil: there is none, or no room for it.
func (g *gate) next() *piece {
	g.mu.Lock()
	defer g.mu.Unlock()
	from, found := slices.BinarySearch(g.order, g.last)
	if found {
		from++
	}
	for i := range g.order {
		name := g.order[(from+i)%len(g.order)]
		l := g.lanes[name]
		if len(l.waiting) == 0 || !g.over && l.doing > 0 && !g.fits(name, l) {
			continue
		}
		p := l.waiting[0]
		if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
			l.waiting = nil
		}
		g.last = name
		g.doing++
		l.doing++
		p.began = time.Now()
		if g.turn != nil {
			g.turn(p.acts[0])
		}
		return p
	}
	return nil
}

// fits reports whether another piece of a lane that does something may begin.
func (g *gate) fits(name string, l *lane) bool {
	return g.doing < g.width && l.doing < g.atOnce(name) && (g.joins == nil || g.joins(l.waiting[0].es[0]))
}

// under returns how many pieces of a lane are being done.
func (g *gate) under(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lane(name).doing
}

// done gives a piece's place free. It stays busy until its outcome is committed.
func (g *gate) done(p *piece, acted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lane(p.lane)
	l.held--
	if !p.began.IsZero() {
		g.doing--
		l.doing--
	}
	if took := max(time.Since(p.began), time.Microsecond); acted && l.usual == 0 {
		l.usual = took
	} else if acted {
		l.usual += (took - l.usual) / 4
	}
	g.ending++
}

// end gives the entries free for what is due next.
func (g *gate) end(p *piece) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range p.es {
		delete(g.busy, e.Key)
		g.ended[e.Key] = true
	}
	g.ending--
}

// close ends the waiting: whatever waits, or will, is handed back.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
}

func (g *gate) isOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// isBusy reports whether a look has to pass by an entry: it is under way, or was when the round of looks began, so that
// what is seen of it may be older than its outcome. The end of its work calls for a new round.
func (g *gate) isBusy(k archive.Key) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy[k] || g.ended[k]
}

// idle reports whether nothing is under way.
func (g *gate) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.busy) == 0
}
