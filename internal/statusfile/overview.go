package statusfile

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"vaultd/internal/ledger"
)

// mostShown is how many names one heading of _STATUS.txt has at most.
const mostShown = 20

// dropOverview is what the open entries of one drop tell people.
type dropOverview struct {
	taken   int            // what was taken and is neither archived nor delivered yet
	newest  []ledger.Entry // the newest of them, oldest first
	fix     int            // folders that a person must put right
	rejects []ledger.Entry // the newest of them, oldest first
	unusual int            // unusual folders that were archived lately and that nobody has checked
	checks  []ledger.Entry // the newest of them, oldest first
}

// overview reads what people are told of, once for all drops.
type overview struct {
	mu    sync.Mutex
	parts map[string]*dropOverview // guarded by mu
	head  uint64                   // number of the journal's last line when the parts were read; guarded by mu
	at    time.Time                // when they were read; guarded by mu
	took  time.Duration            // how long that took; guarded by mu
}

const (
	overviewOld   = time.Minute // after that it is read again: some changes have no journal line, so head does not tell of them
	overviewShare = 20          // reading takes at most one part in so many of the time
)

// ofDrop returns what a drop's open entries tell.
func (s *overview) ofDrop(l Ledger, drop string) (*dropOverview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	age := time.Since(s.at)
	fresh := s.head == l.Head().N && age < overviewOld || age < overviewShare*s.took
	if s.parts == nil || !fresh {
		if err := s.refreshAll(l); err != nil {
			return nil, err
		}
	}
	if p := s.parts[drop]; p != nil {
		return p, nil
	}
	return &dropOverview{}, nil
}

// shownWhole are the classes of which who dropped it is told each one.
var shownWhole = []ledger.Attention{ledger.Waiting, ledger.AwaitingDecision, ledger.InQuarantine, ledger.WaitingForRights, ledger.RejectedUnresolved, ledger.RefusedByRecipient,
	ledger.RejectedLate, ledger.RecipientNotListed, ledger.CopyNotMade, ledger.ByReceiptAlone}

// mostDisputed bounds how many entries that the service contradicts are looked at.
const mostDisputed = 1000

// refreshAll counts by the ledger's index, and reads of each class no more than is shown.
func (s *overview) refreshAll(l Ledger) error {
	began, head := time.Now(), l.Head().N
	parts := map[string]*dropOverview{}
	of := func(drop string) *dropOverview {
		if parts[drop] == nil {
			parts[drop] = &dropOverview{}
		}
		return parts[drop]
	}
	for _, class := range shownWhole {
		crowds, err := l.CountAttention(class, time.Time{})
		if err == nil {
			err = l.VisitAttention(class, time.Time{}, mostShown, func(e ledger.Entry) { of(e.Drop).addShown(e) })
		}
		if err != nil {
			return err
		}
		for _, c := range crowds {
			of(c.Drop).addCount(class, c.Entries)
		}
	}
	err := l.VisitAttention(ledger.ContradictedByService, time.Time{}, mostDisputed, func(e ledger.Entry) {
		switch {
		case e.State == ledger.Quarantined:
			of(e.Drop).addCount(ledger.InQuarantine, 1)
		case e.State != ledger.Archived && e.State != ledger.Delivered: // who dropped it must know that the recipient still lacks it
			of(e.Drop).addCount(ledger.RejectedUnresolved, 1)
		default:
			return // nothing that who dropped it could do
		}
		of(e.Drop).addShown(e)
	})
	if err != nil {
		return err
	}
	if err := s.refreshUnusual(l, began.Add(-ledger.ReviewPeriod), of); err != nil {
		return err
	}
	for _, p := range parts {
		p.newest, p.rejects, p.checks = newestOf(p.newest), newestOf(p.rejects), newestOf(p.checks)
	}
	s.parts, s.head, s.at, s.took = parts, head, began, time.Since(began)
	return nil
}

// refreshUnusual adds the unusual folders that were taken at or after since and are archived: a person should check them.
func (s *overview) refreshUnusual(l Ledger, since time.Time, of func(drop string) *dropOverview) error {
	for _, class := range []ledger.Attention{ledger.RepeatedNumber, ledger.StrangeDate, ledger.LooksCutOff} {
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
		err = l.VisitAttention(class, time.Time{}, mostShown, func(e ledger.Entry) {
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

// addCount takes in how many there are of a class.
func (p *dropOverview) addCount(class ledger.Attention, n int) {
	switch class {
	case ledger.WaitingForRights, ledger.RejectedUnresolved, ledger.RefusedByRecipient, ledger.RejectedLate, ledger.RecipientNotListed:
		p.fix += n
	default:
		p.taken += n
	}
}

// addShown takes in one that may be shown.
func (p *dropOverview) addShown(e ledger.Entry) {
	switch class := e.Attention(); {
	case class == ledger.CopyNotMade: // nothing that who dropped it could put right
		p.newest = append(p.newest, e)
	case class == ledger.WaitingForRights, class == ledger.RecipientNotListed, e.State.IsFinal():
		p.rejects = append(p.rejects, e)
	default:
		p.newest = append(p.newest, e)
	}
}

// newestOf keeps those that are shown: the newest, oldest first.
func newestOf(es []ledger.Entry) []ledger.Entry {
	slices.SortFunc(es, func(a, b ledger.Entry) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	return slices.Clone(es[len(es)-min(len(es), mostShown):])
}
