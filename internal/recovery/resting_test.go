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

// looks counts what is asked of a book.
type looks struct {
	EntryReader
	passes, records int
}

func (l *looks) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	l.passes++
	return l.EntryReader.EntriesOldestFirst(fn)
}

func (l *looks) FindEntriesByRemote(rs []archive.RemoteID) ([]ledger.Entry, error) {
	l.records += len(rs)
	return l.EntryReader.FindEntriesByRemote(rs)
}

// Archived entries of which nothing is open are compared without a look at each. Whatever the index shows otherwise, or not at
// all, and whatever it tells of one of them that the entry does not count, is found all the same.
func TestReconcile_I2_I4_I32_EntriesAtRest(t *testing.T) {
	now := time.Now().UTC()
	long := now.AddDate(0, -1, 0)
	for name, row := range map[string]struct {
		change                                      func(recs []archive.IndexRecord) []archive.IndexRecord
		compared, differ, missing, strange, doubled int
		passes, records                             int
	}{
		"AllAsSent": {compared: 3, passes: 1},
		"OneMissing": {change: func(recs []archive.IndexRecord) []archive.IndexRecord { return recs[:2] },
			compared: 2, missing: 1, passes: 2},
		"OneAltered": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[1].Document.Amount = "1.00"
			return recs
		}, compared: 3, differ: 1, passes: 2, records: 1},
		"OneRewritten": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[1].Document.Amount = "119.0"
			return recs
		}, compared: 3, passes: 2, records: 1},
		"TwoMixedUp": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[0].Remote, recs[1].Remote = recs[1].Remote, recs[0].Remote
			return recs
		}, compared: 3, differ: 2, passes: 2, records: 2},
		"OneOfSomebodyElse": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			return append(recs, archive.IndexRecord{Remote: "X", ArchivedAt: now, Raw: []byte("{}")})
		}, compared: 3, strange: 1, passes: 1, records: 1},
		"GivenUpAndArchived": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs = append(recs, recs[2])
			recs[3].Remote = "C0"
			return recs
		}, compared: 4, doubled: 1, passes: 1, records: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShed(t)
			var recs []archive.IndexRecord
			for i, numbers := range [][]archive.RemoteID{{"A"}, {"B"}, {"C0", "C"}} {
				d := invoice
				d.Number = fmt.Sprint("N", i+1)
				it := s.sent(fill.Item{Name: d.Number, Document: d}, long, numbers...)
				e := it.Apply(long, fill.Seen(numbers[len(numbers)-1], archive.Successful, long))
				if e.State != ledger.Archived {
					t.Fatalf("%s: vacuous", e.State)
				}
				recs = append(recs, archive.IndexRecord{Remote: e.ArchivedRemote, ArchivedAt: long, Document: d, Raw: []byte("{}")})
			}
			if row.change != nil {
				recs = row.change(recs)
			}
			book := &looks{EntryReader: s.book}
			r, err := Reconcile(t.Context(), Config{Book: book, Committer: s.book, Service: spoken{index: recs}, Drops: []Drop{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
				Now: func() archive.Instant { return archive.Instant{Wall: now} }})
			kit.Must(t, err)
			v := r.Vaults[0]
			if v.Indexed != len(recs) || v.Compared != row.compared || v.Differing.Count != row.differ || v.Missing.Count != row.missing || v.Strange.Count != row.strange || v.Double.Count != row.doubled {
				t.Errorf("%+v, want v.Indexed = %v, v.Compared = %v, v.Differing.Count = %v, v.Missing.Count = %v, v.Strange.Count = %v, v.Double.Count = %v", v, len(recs), row.compared, row.differ, row.missing, row.strange, row.doubled)
			}
			if book.passes != row.passes || book.records != row.records {
				t.Errorf("%d passes through all entries, %d records looked up", book.passes, book.records)
			}
		})
	}
}
