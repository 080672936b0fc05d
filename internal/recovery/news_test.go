package recovery

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// sent puts an entry into the book that was registered under each of the
// numbers: the store refused all packages but the last, which it took.
func (s *shed) sent(it fill.Item, at time.Time, numbers ...archive.RemoteID) *fill.Item {
	s.t.Helper()
	i := s.book.Add(it)
	i.Seal(at)
	for n, r := range numbers {
		i.Apply(at, ledger.RegisterIntended{}, ticketAt(r, at), ledger.UploadIntended{})
		if n < len(numbers)-1 {
			i.Apply(at, ledger.UploadRefused{})
		}
	}
	i.Apply(at, i.Accepted())
	return i
}

// ticketAt is a ticket whose answer has the archive's date.
func ticketAt(r archive.RemoteID, at time.Time) ledger.TicketReceived {
	ev := fill.Ticket(r, at, ledger.Vault)
	ev.Ticket.Date = at
	return ev
}

// whole compares without a doubt.
func (s *shed) whole(service spoken, at time.Time) Report {
	s.t.Helper()
	r, err := Reconcile(s.t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: []Drop{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
		Now: func() archive.Instant { return archive.Instant{Wall: at} }})
	kit.Must(s.t, err)
	return r
}

func indexed(at time.Time, numbers ...archive.RemoteID) (recs []archive.IndexRecord) {
	for _, r := range numbers {
		recs = append(recs, archive.IndexRecord{Remote: r, ArchivedAt: at, Raw: []byte("{}")})
	}
	return recs
}

// Every number that the archive shows is held against all registrations, whichever is the current one, listed or not.
func TestReconcile_I2_ComparesEveryRegistration(t *testing.T) {
	now := time.Now().UTC()
	many := []archive.RemoteID{}
	for n := range 60 {
		many = append(many, archive.RemoteID(fmt.Sprint("R", n)))
	}
	type row struct {
		numbers []archive.RemoteID
		index   []archive.RemoteID
		list    map[archive.RemoteID]archive.ServiceStatus
		state   ledger.State
		double  bool
		named   [2]int // twice, given up
		times   int    // archived
	}
	kit.Rows(t, map[string]row{
		"TheCurrentOne":          {[]archive.RemoteID{"A", "B"}, []archive.RemoteID{"B"}, nil, ledger.Archived, false, [2]int{0, 0}, 1},
		"AnEarlierOneToo":        {[]archive.RemoteID{"A", "B"}, []archive.RemoteID{"A", "B"}, nil, ledger.Archived, true, [2]int{1, 0}, 2},
		"AnEarlierOneAlone":      {[]archive.RemoteID{"A", "B"}, []archive.RemoteID{"A"}, nil, ledger.Archived, true, [2]int{0, 1}, 1},
		"AllOfThem":              {[]archive.RemoteID{"A", "B", "C"}, []archive.RemoteID{"A", "B", "C"}, nil, ledger.Archived, true, [2]int{1, 0}, 3},
		"OneNotListedAnyMore":    {many, []archive.RemoteID{"R3", "R59"}, nil, ledger.Archived, true, [2]int{1, 0}, 2},
		"AnEarlierOneInTheList":  {[]archive.RemoteID{"A", "B"}, nil, map[archive.RemoteID]archive.ServiceStatus{"A": archive.InProgress}, ledger.Uploaded, true, [2]int{0, 1}, 0},
		"NothingOfIt":            {[]archive.RemoteID{"A", "B"}, nil, map[archive.RemoteID]archive.ServiceStatus{"A": archive.Failed, "B": archive.Failed}, ledger.Uploaded, false, [2]int{0, 0}, 0},
		"TheSameInListAndIndex":  {[]archive.RemoteID{"A", "B"}, []archive.RemoteID{"A", "B"}, map[archive.RemoteID]archive.ServiceStatus{"A": archive.Successful}, ledger.Archived, true, [2]int{1, 0}, 2},
		"TheSameNumberTwiceOver": {many, []archive.RemoteID{"R3", "R3", "R59"}, nil, ledger.Archived, true, [2]int{1, 0}, 2},
	}, func(t *testing.T, row row) {
		s := newShed(t)
		it := s.sent(fill.Item{}, now.Add(-time.Hour), row.numbers...)
		service := spoken{index: indexed(now, row.index...)}
		for n, w := range row.list {
			service.list = append(service.list, archive.Receipt{Remote: n, ID: it.Entry().ID, Status: w, Updated: now, Record: []byte("{}")})
		}
		r := s.whole(service, now)
		v := r.Vaults[0]
		got := it.Entry()
		times := 0
		for _, one := range got.Registrations {
			if one.Fate == ledger.Succeeded {
				times++
			}
		}
		if got.State != row.state || got.PossibleDouble != row.double || times != row.times || [2]int{v.Double.Count, v.Uncounted.Count} != row.named || v.Strange.Count != 0 {
			t.Errorf("%s, double %t, %d times, %+v", got.State, got.PossibleDouble, times, v)
		}
		kit.Want(t, "differences", r.Differences(), row.named[0]+row.named[1])
	})
}

// A document that is archived twice is named by each comparison, until a person has closed it.
func TestReconcile_I2_NamesADoubleUntilItIsClosed(t *testing.T) {
	now := time.Now().UTC()
	s := newShed(t)
	it := s.sent(fill.Item{}, now.Add(-time.Hour), "A", "B")
	service := spoken{index: indexed(now, "A", "B")}
	for range 3 {
		if r := s.whole(service, now); r.Differences() != 1 {
			t.Fatalf("%d differences", r.Differences())
		}
	}
	it.Apply(now, ledger.Closed{By: ledger.Operator{UID: 7}})
	kit.Want(t, "differences", s.whole(service, now).Differences(), 0)
}

// What is told of a registration that the entry does not list any more is booked for every generation of its clientUUID.
func TestReconcile_I2_ANumberOfALaterGeneration(t *testing.T) {
	now := time.Now().UTC()
	s, at := newShed(t), now.Add(-time.Hour)
	it := s.book.Item("f")
	it.Seal(at)
	it.Apply(at, ledger.RegisterIntended{}, ledger.RegisterUnanswered{}, ledger.RegisterIntended{}, ledger.RegisterRefused{})
	const numbers = 60
	for i := range numbers {
		it.Apply(at, ledger.RegisterIntended{}, ticketAt(archive.RemoteID(fmt.Sprint("R", i)), at), ledger.UploadIntended{})
		if i < numbers-1 {
			it.Apply(at, ledger.UploadRefused{})
		}
	}
	e := it.Apply(at, it.Accepted())
	kit.Need(t, e.Generation == 1 && e.Pruned.Total() != 0, "generation %d, %+v: vacuous", e.Generation, e.Pruned)
	s.whole(spoken{index: indexed(now, "R3", "R59")}, now)
	if got := s.entry(e.Key); got.State != ledger.Archived || !got.IsArchivedTwice() {
		t.Errorf("%s, archived twice %t", got.State, got.IsArchivedTwice())
	}
}
