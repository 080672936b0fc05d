package daemon

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// listed is how many names one heading of _STATUS.txt has at most.
const listed = 20

// part is what the open entries of one drop tell people.
type part struct {
	taken   int
	newest  []ledger.Entry // of the taken ones, oldest first
	fix     int
	rejects []ledger.Entry // of those that a person must put right, oldest first
	unusual int            // archived of late, and nobody has looked at what is unusual about them
	checks  []ledger.Entry // of those, oldest first
}

// survey reads what people are told of, once for all drops.
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
func (s *survey) of(l *boltledger.Ledger, drop string) (*part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.at)
	fresh := s.head == l.Head().N && age < surveyOld || age < surveyShare*s.took
	if s.parts == nil || !fresh {
		if err := s.read(l); err != nil {
			return nil, err
		}
	}
	if p := s.parts[drop]; p != nil {
		return p, nil
	}
	return &part{}, nil
}

// mostDisputed bounds how many entries that the service contradicts are looked at.
const mostDisputed = 1000

// read counts by the ledger's index, and reads of each class no more than is shown.
func (s *survey) read(l *boltledger.Ledger) error {
	began, head := time.Now(), l.Head().N
	parts := map[string]*part{}
	of := func(drop string) *part {
		if parts[drop] == nil {
			parts[drop] = &part{}
		}
		return parts[drop]
	}
	for _, class := range []ledger.Attention{ledger.Waiting, ledger.AwaitingDecision, ledger.InQuarantine, ledger.WaitingForRights, ledger.RejectedUnresolved} {
		crowds, err := l.CountAttention(class, time.Time{})
		if err == nil {
			err = l.VisitAttention(class, time.Time{}, listed, func(e ledger.Entry) { of(e.Drop).list(e) })
		}
		if err != nil {
			return err
		}
		for _, c := range crowds {
			of(c.Drop).count(class, c.Entries)
		}
	}
	err := l.VisitAttention(ledger.ContradictedByService, time.Time{}, mostDisputed, func(e ledger.Entry) {
		switch {
		case e.State == ledger.Quarantined:
			of(e.Drop).count(ledger.InQuarantine, 1)
		case e.State != ledger.Archived && e.State != ledger.Delivered:
			of(e.Drop).count(ledger.RejectedUnresolved, 1)
		default:
			return // nothing that who dropped it could do
		}
		of(e.Drop).list(e)
	})
	if err != nil {
		return err
	}
	if err := s.readUnusual(l, began.Add(-ledger.ReviewPeriod), of); err != nil {
		return err
	}
	for _, p := range parts {
		p.newest, p.rejects, p.checks = lastOf(p.newest), lastOf(p.rejects), lastOf(p.checks)
	}
	s.parts, s.head, s.at, s.took = parts, head, began, time.Since(began)
	return nil
}

// readUnusual takes in what was archived, was taken after a time, and should be looked at by a person.
func (s *survey) readUnusual(l *boltledger.Ledger, since time.Time, of func(drop string) *part) error {
	for _, class := range []ledger.Attention{ledger.RepeatedNumber, ledger.StrangeDate} {
		all, err := l.CountAttention(class, time.Time{})
		old, err2 := l.CountAttention(class, since)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		for _, c := range all {
			of(c.Drop).unusual += c.Entries
		}
		for _, c := range old {
			of(c.Drop).unusual -= c.Entries
		}
		err = l.VisitAttention(class, time.Time{}, listed, func(e ledger.Entry) {
			if p := of(e.Drop); !e.SeenAt.Before(since) {
				p.checks = append(p.checks, e)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count takes in how many there are of a class.
func (p *part) count(class ledger.Attention, n int) {
	switch class {
	case ledger.WaitingForRights, ledger.RejectedUnresolved:
		p.fix += n
	default:
		p.taken += n
	}
}

// list takes in one that may be shown.
func (p *part) list(e ledger.Entry) {
	switch class := e.Attention(); {
	case class == ledger.WaitingForRights, e.State.IsFinal():
		p.rejects = append(p.rejects, e)
	default:
		p.newest = append(p.newest, e)
	}
}

// lastOf keeps those that are shown: the newest, oldest first.
func lastOf(es []ledger.Entry) []ledger.Entry {
	slices.SortFunc(es, func(a, b ledger.Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return slices.Clone(es[len(es)-min(len(es), listed):])
}

// today counts what ended on one calendar day, in memory.
type today struct {
	date     string
	archived int
	last     string // folder
	lastAt   time.Time
	repeats  int
	doubles  []double             // the last of them
	ended    map[archive.Key]bool // counted: their next change must not count again; false: placed meanwhile

	recalling bool // what happened before the start is still being counted
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
		*t = today{date: date, ended: t.ended, recalling: t.recalling}
	}
	if t.ended == nil {
		t.ended = map[archive.Key]bool{}
	}
	archived := e.State == ledger.Archived || e.State == ledger.Delivered
	if !archived && e.State != ledger.Duplicate {
		return
	}
	_, counted := t.ended[e.Key]
	switch {
	case e.Source == ledger.Claimed && !counted:
		t.ended[e.Key] = true
		t.book(e, now)
	case e.Source != ledger.Claimed && counted && t.recalling:
		t.ended[e.Key] = false
	case e.Source != ledger.Claimed:
		delete(t.ended, e.Key)
	}
}

// recalled ends the counting of what happened before the start.
func (t *today) recalled() {
	t.recalling = false
	maps.DeleteFunc(t.ended, func(_ archive.Key, waits bool) bool { return !waits })
}

// recall takes in an entry that a start found, the newest first.
func (t *today) recall(e ledger.Entry, now time.Time) {
	t.count(ledger.Entry{}, now) // only for the date
	if _, counted := t.ended[e.Key]; counted {
		return
	}
	archived := e.State == ledger.Archived || e.State == ledger.Delivered
	switch {
	case archived:
		t.book(e, now)
	case e.State == ledger.Duplicate && e.SeenAt.In(now.Location()).Format(time.DateOnly) == t.date:
		if t.repeats++; len(t.doubles) < mostDoubles {
			t.doubles = slices.Insert(t.doubles, 0, double{e.Folder, e.DuplicateOf})
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
		if t.doubles = append(t.doubles, double{e.Folder, e.DuplicateOf}); len(t.doubles) > mostDoubles {
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
