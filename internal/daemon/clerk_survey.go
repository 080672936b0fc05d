package daemon

import (
	"slices"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// listed is how many names one heading of _STATUS.txt has at most.
const listed = 20

// part is what the open entries of one drop tell people.
type part struct {
	at       time.Time
	taken    int
	newest   []ledger.Entry // of the taken ones, oldest first
	fix      int
	rejects  []ledger.Entry       // of those that a person must put right, oldest first
	rejected map[archive.Key]bool // every unresolved rejection
}

// survey reads the open entries once for all drops.
type survey struct {
	mu    sync.Mutex
	parts map[string]*part // guarded by mu
	head  uint64           // the ledger's, when they were read; guarded by mu
	at    time.Time        // guarded by mu
	took  time.Duration    // guarded by mu
}

const (
	surveyOld   = time.Minute // quiet changes do not move the ledger's head
	surveyShare = 20          // reading takes at most this part of the time
)

// of returns what a drop's open entries tell.
func (s *survey) of(l *boltledger.Ledger, drop string, now time.Time) (*part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.at)
	fresh := s.head == l.Head().N && age < surveyOld || age < surveyShare*s.took
	if s.parts == nil || !fresh {
		if err := s.read(l, now); err != nil {
			return nil, err
		}
	}
	if p := s.parts[drop]; p != nil {
		return p, nil
	}
	return &part{at: now}, nil
}

func (s *survey) read(l *boltledger.Ledger, now time.Time) error {
	began, head := time.Now(), l.Head().N
	parts := map[string]*part{}
	err := l.Open(func(e ledger.Entry) error {
		p := parts[e.Drop]
		if p == nil {
			p = &part{at: now, rejected: map[archive.Key]bool{}}
			parts[e.Drop] = p
		}
		p.add(e)
		return nil
	})
	if err != nil {
		return err
	}
	s.parts, s.head, s.at, s.took = parts, head, began, time.Since(began)
	return nil
}

func (p *part) add(e ledger.Entry) {
	switch {
	case e.State == ledger.Discovered && e.Cause.Code == ingest.Unreadable,
		e.State == ledger.Rejected && e.NeedsPerson(), e.State == ledger.Duplicate && e.NeedsPerson():
		p.fix++
		p.rejects = lastOf(append(p.rejects, e))
		p.rejected[e.Key] = e.State == ledger.Rejected
	case e.State.Open() || e.State == ledger.Quarantined:
		p.taken++
		p.newest = lastOf(append(p.newest, e))
	}
}

// lastOf keeps memory bounded, and the newest.
func lastOf(es []ledger.Entry) []ledger.Entry {
	if len(es) < 2*listed {
		return es
	}
	return append(es[:0], es[len(es)-listed:]...)
}

// today counts what ended on one calendar day, in memory.
type today struct {
	date     string
	archived int
	last     string // folder
	lastAt   time.Time
	repeats  int
	doubles  []double             // the last of them
	ended    map[archive.Key]bool // counted, and not yet placed: their next change must not count again
}

type double struct {
	folder string
	first  archive.Key
}

const mostDoubles = 5

// on gives the counts of the day of now.
func (t today) on(now time.Time) today {
	if t.date != now.Format(time.DateOnly) {
		return today{}
	}
	t.ended, t.doubles = nil, slices.Clone(t.doubles)
	return t
}

// count takes in a committed entry; now is in the drop's own time zone.
func (t *today) count(e ledger.Entry, now time.Time) {
	if date := now.Format(time.DateOnly); t.date != date {
		*t = today{date: date, ended: t.ended}
	}
	if t.ended == nil {
		t.ended = map[archive.Key]bool{}
	}
	archived := e.State == ledger.Archived || e.State == ledger.Delivered
	if !archived && e.State != ledger.Duplicate {
		return
	}
	if e.Source != ledger.Claimed {
		delete(t.ended, e.Key)
		return
	}
	if t.ended[e.Key] {
		return
	}
	t.ended[e.Key] = true
	t.book(e, now)
}

// recall takes in an entry that a start found, the newest first.
func (t *today) recall(e ledger.Entry, now time.Time) {
	t.count(ledger.Entry{}, now) // only for the date
	archived := e.State == ledger.Archived || e.State == ledger.Delivered
	switch {
	case archived:
		t.book(e, now)
	case e.State == ledger.Duplicate && e.SeenAt.In(now.Location()).Format(time.DateOnly) == t.date:
		if t.repeats++; len(t.doubles) < mostDoubles {
			t.doubles = slices.Insert(t.doubles, 0, double{e.Folder, e.First})
		}
	}
	if e.Source == ledger.Claimed && (archived || e.State == ledger.Duplicate) {
		t.ended[e.Key] = true
	}
}

// book counts an entry that has ended.
func (t *today) book(e ledger.Entry, now time.Time) {
	if e.State == ledger.Duplicate {
		t.repeats++
		if t.doubles = append(t.doubles, double{e.Folder, e.First}); len(t.doubles) > mostDoubles {
			t.doubles = slices.Delete(t.doubles, 0, 1)
		}
		return
	}
	if at := e.ArchivedAt.In(now.Location()); at.Format(time.DateOnly) == t.date {
		t.archived++
		if !at.Before(t.lastAt) {
			t.last, t.lastAt = e.Folder, at
		}
	}
}
