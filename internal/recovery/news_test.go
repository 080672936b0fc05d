package recovery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
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
	r, err := Reconcile(s.t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: []Origin{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
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

// partial is an archive whose index says that it holds so many documents, and gives those that it has on one page.
type partial struct {
	spoken
	found int
}

func (s partial) Index(context.Context, archive.VaultID, string, int, string) (vaultapi.Page, error) {
	return vaultapi.Page{Records: s.index, Found: s.found, Cursor: vaultapi.FirstPage, Request: "7c1f"}, nil
}

func (s partial) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return vaultapi.WalkIndex(ctx, s, v, each)
}

// I2, I15, I32: what an index that was not read to its end leaves out clears no doubt and misses nothing. What it shows is
// used. A person may let it count as complete.
func TestReconcile_I2_I15_I32_AnIncompleteIndex(t *testing.T) {
	const day = 24 * time.Hour
	type row struct {
		found                     int
		accept                    func(context.Context, VaultReport) (bool, error)
		cleared, missing, takenIn int
		accepted                  bool
	}
	kit.Rows(t, map[string]row{
		"OneOf900":             {900, nil, 0, 0, 1, false},
		"OneOf900_NotAccepted": {900, func(context.Context, VaultReport) (bool, error) { return false, nil }, 0, 0, 1, false},
		"OneOf900_Accepted": {900, func(_ context.Context, v VaultReport) (bool, error) {
			return v.DescribeIndex() == "1 of 900 documents", nil
		}, 1, 1, 1, true},
		"NotTold":                {-1, nil, 0, 0, 1, false},
		"FewerThanItGave":        {0, nil, 0, 0, 1, false},
		"Complete_NobodyIsAsked": {1, func(context.Context, VaultReport) (bool, error) { return false, context.Canceled }, 1, 1, 1, false},
	}, func(t *testing.T, row row) {
		s, now := newShed(t), time.Now()
		e := s.doubtful(now) // nobody but the index can say that it was not sent
		gone := s.claimed("g", "N2")
		gone = s.packed(gone, ledger.RegisterIntended{}, fill.Ticket("R2", now, ledger.Vault), ledger.UploadIntended{})
		doc, _, err := s.book.Document(gone.Key)
		kit.Must(t, err)
		gone = s.told(gone.Key, gone.Rev, ledger.UploadAccepted{Sent: gone.Package.SHA256, Seal: doc.Seal(gone.Package)},
			ledger.StatusSeen{Receipt: archive.Receipt{Remote: "R2", ID: archive.ID{}, Status: archive.Successful, Updated: now, Record: []byte("a")}, Grace: day})
		kit.Need(t, gone.State == ledger.Archived, "%s, want gone.State = ledger.Archived", gone.State)
		other := archive.Receipt{Remote: "R7", ID: archive.ID{15: 7}, Status: archive.Successful, Updated: now, Record: []byte("a")}
		service := partial{spoken{date: now.Add(2 * day), list: make([]archive.Receipt, 0), single: map[archive.RemoteID]archive.Receipt{"R7": other},
			index: []archive.IndexRecord{{Remote: "R7", ArchivedAt: now, Raw: []byte("a")}}}, row.found}
		r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: []Origin{s.drop}, Grace: day, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
			Now: func() archive.Instant { return archive.Instant{Wall: now.Add(2 * day)} }, Doubt: &Doubt{Since: now, Told: now}, Adopt: true, Accept: row.accept})
		kit.Must(t, err)
		v := r.Vaults[0]
		if e = s.entry(e.Key); e.NeedsReconcile == (row.cleared > 0) || r.Cleared != row.cleared || v.Missing.Count != row.missing || v.TakenIn.Count != row.takenIn || v.Accepted != row.accepted {
			t.Errorf("unreconciled %v, %d cleared, %d missing, %d taken in, accepted %v; %+v", e.NeedsReconcile, r.Cleared, v.Missing.Count, v.TakenIn.Count, v.Accepted, r.Waiting)
		}
	})
}

// What people read about an index that was not read to its end.
func TestVaultReport_I32_SaysReadAndFound(t *testing.T) {
	for want, i := range map[string]archive.IndexResult{
		"1 of 900 documents": {Read: 1, Found: 900},
		"0 of 1 document":    {Read: 0, Found: 1},
		"1 document, and does not say how many there are": {Read: 1, Found: -1},
		"5 documents, and says that there are 3":          {Read: 5, Found: 3},
	} {
		kit.Want(t, "the index", (VaultReport{Index: i}).DescribeIndex(), want)
	}
}

// I19, I32: a link that lies among the folders that have ended is not followed, and it is named: what lies behind it was not
// looked at.
func TestReconcile_I19_I32_LinksAmongEndedFoldersAreNamed(t *testing.T) {
	s, now := newShed(t), time.Now()
	s.archived("good", nil)
	elsewhere := t.TempDir()
	kit.Must(t, os.Mkdir(filepath.Join(elsewhere, "hidden"), 0o700))
	kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_rejected"), 0o770))
	for _, link := range []string{"_archived/2026-10", "_archived/2026-11/linked", "_rejected/linked"} {
		kit.Must(t, os.Symlink(elsewhere, filepath.Join(s.path, link)))
	}
	r := s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
	kit.Check(t, r.Folders.Strange.Count == 3 && r.Folders.Receipts.Count == 1 && r.Folders.Returned.Count == 0,
		"%+v, want r.Folders.Strange.Count = 3, r.Folders.Receipts.Count = 1, r.Folders.Returned.Count = 0", r.Folders)
	for _, f := range r.Folders.Strange.Named {
		kit.Holds(t, "the finding", f.Text, "is a link; what lies behind it was not looked at")
	}
}

// A document that left the index is missing until its retention is over, and ended from then on: the day before, the day
// itself, the day after, and years later.
func TestReconcile_I32_RetentionThatIsOver(t *testing.T) {
	const day = 24 * time.Hour
	archived := time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	end := time.Date(2038, 3, 1, 0, 0, 0, 0, time.UTC) // 2038 has no 29 February
	type row struct {
		drops    []Origin // the entry's is acme
		at, told time.Time
		ended    bool
	}
	kit.Rows(t, map[string]row{
		"OfTheDayBefore":           {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(-day), time.Time{}, false},
		"OfTheLastMoment":          {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(-1), time.Time{}, false},
		"OfTheDay":                 {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end, time.Time{}, true},
		"OfTheDayAfter":            {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(day), time.Time{}, true},
		"SixYearsLater":            {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.AddDate(6, 0, 0), time.Time{}, true},
		"NotKnown":                 {[]Origin{{Name: "acme", Vault: "V"}}, end.AddDate(6, 0, 0), time.Time{}, false},
		"OfAnotherDrop":            {[]Origin{{Name: "acme", Vault: "V"}, {Name: "b", Vault: "V", Retention: 1}}, end.AddDate(6, 0, 0), time.Time{}, false},
		"LongerThanThat":           {[]Origin{{Name: "acme", Vault: "V", Retention: 15}}, end.AddDate(4, 0, 0), time.Time{}, false},
		"DropNotConfigured":        {[]Origin{{Name: "b", Vault: "V", Retention: 8}, {Name: "c", Vault: "V", Retention: 10}}, end, time.Time{}, true},
		"DropNotConfigured_Longer": {[]Origin{{Name: "b", Vault: "V", Retention: 8}, {Name: "c", Vault: "V", Retention: 11}}, end, time.Time{}, false},
		"DropNotConfigured_NotAll": {[]Origin{{Name: "b", Vault: "V", Retention: 8}, {Name: "c", Vault: "V"}}, end, time.Time{}, false},
		"OurClockWasSetAhead":      {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(day), end.Add(-day), false},
		"TheirClockWasSetAhead":    {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(-day), end.Add(day), false},
		"BothClocksSaySo":          {[]Origin{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(day), end.Add(2 * day), true},
	}, func(t *testing.T, row row) {
		s := newShed(t)
		it := s.sent(fill.Item{Document: invoice}, archived.Add(-time.Hour), "A")
		e := it.Apply(archived, fill.Seen("A", archive.Successful, archived))
		kit.Need(t, e.State == ledger.Archived && e.ArchivedAt.Equal(archived), "%s at %s: vacuous", e.State, e.ArchivedAt)
		service := spoken{date: row.told, index: indexed(end, "Z")[:0]}
		compared := func(doubt *Doubt) VaultReport {
			t.Helper()
			r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: row.drops, Grace: day, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
				Now: func() archive.Instant { return archive.Instant{Wall: row.at} }, Doubt: doubt})
			kit.Must(t, err)
			return r.Vaults[0]
		}
		if v := compared(nil); (v.Ended == 1) != row.ended || (v.Missing.Count == 0) != row.ended || v.Ended+v.Missing.Count != 1 {
			t.Errorf("%d ended, %d missing", v.Ended, v.Missing.Count)
		}
		// One that is in doubt is cleared, although the archive cannot speak for it any more.
		it.Apply(row.at, ledger.ReconcileRequired{})
		compared(&Doubt{Since: row.at})
		got := s.entry(e.Key)
		kit.Check(t, got.NeedsReconcile != row.ended, "in doubt: %t", got.NeedsReconcile)
	})
}

// What the index still shows has not ended, and an index that was not read to its end ends nothing.
func TestReconcile_I32_RetentionEndsNothingThatIsShown(t *testing.T) {
	s, archived := newShed(t), time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	it := s.sent(fill.Item{}, archived.Add(-time.Hour), "A")
	e := it.Apply(archived, fill.Seen("A", archive.Successful, archived))
	drops := []Origin{{Name: "acme", Vault: "V", Retention: 10}}
	kit.Rows(t, map[string]Service{
		"Shown":      spoken{index: indexed(archived, "A")},
		"Incomplete": partial{spoken{}, 900},
	}, func(t *testing.T, service Service) {
		r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: drops, Grace: time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
			Now: func() archive.Instant { return archive.Instant{Wall: archived.AddDate(16, 0, 0)} }})
		kit.Must(t, err)
		if v := r.Vaults[0]; v.Ended != 0 || v.Missing.Count != 0 || e.State != ledger.Archived {
			t.Errorf("%+v, want v.Ended = 0, v.Missing.Count = 0, e.State = ledger.Archived", v)
		}
	})
}
