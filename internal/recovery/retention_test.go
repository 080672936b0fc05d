package recovery

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// A document that left the index is missing until its retention is over, and ended from then on: the day before, the day
// itself, the day after, and years later.
func TestReconcile_I32_RetentionThatIsOver(t *testing.T) {
	const day = 24 * time.Hour
	archived := time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	end := time.Date(2038, 3, 1, 0, 0, 0, 0, time.UTC) // 2038 has no 29 February
	for name, row := range map[string]struct {
		drops    []Drop // the entry's is acme
		at, told time.Time
		ended    bool
	}{
		"OfTheDayBefore":           {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(-day), time.Time{}, false},
		"OfTheLastMoment":          {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(-1), time.Time{}, false},
		"OfTheDay":                 {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end, time.Time{}, true},
		"OfTheDayAfter":            {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(day), time.Time{}, true},
		"SixYearsLater":            {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.AddDate(6, 0, 0), time.Time{}, true},
		"NotKnown":                 {[]Drop{{Name: "acme", Vault: "V"}}, end.AddDate(6, 0, 0), time.Time{}, false},
		"OfAnotherDrop":            {[]Drop{{Name: "acme", Vault: "V"}, {Name: "b", Vault: "V", Retention: 1}}, end.AddDate(6, 0, 0), time.Time{}, false},
		"LongerThanThat":           {[]Drop{{Name: "acme", Vault: "V", Retention: 15}}, end.AddDate(4, 0, 0), time.Time{}, false},
		"DropNotConfigured":        {[]Drop{{Name: "b", Vault: "V", Retention: 8}, {Name: "c", Vault: "V", Retention: 10}}, end, time.Time{}, true},
		"DropNotConfigured_Longer": {[]Drop{{Name: "b", Vault: "V", Retention: 8}, {Name: "c", Vault: "V", Retention: 11}}, end, time.Time{}, false},
		"DropNotConfigured_NotAll": {[]Drop{{Name: "b", Vault: "V", Retention: 8}, {Name: "c", Vault: "V"}}, end, time.Time{}, false},
		"OurClockWasSetAhead":      {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(day), end.Add(-day), false},
		"TheirClockWasSetAhead":    {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(-day), end.Add(day), false},
		"BothClocksSaySo":          {[]Drop{{Name: "acme", Vault: "V", Retention: 10}}, end.Add(day), end.Add(2 * day), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShed(t)
			it := s.sent(fill.Item{Document: invoice}, archived.Add(-time.Hour), "A")
			e := it.Apply(archived, fill.Seen("A", archive.Successful, archived))
			if e.State != ledger.Archived || !e.ArchivedAt.Equal(archived) {
				t.Fatalf("%s at %s: vacuous", e.State, e.ArchivedAt)
			}
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
			if got := s.entry(e.Key); got.NeedsReconcile == row.ended {
				t.Errorf("in doubt: %t", got.NeedsReconcile)
			}
		})
	}
}

// What the index still shows has not ended, and an index that was not read to its end ends nothing.
func TestReconcile_I32_RetentionEndsNothingThatIsShown(t *testing.T) {
	s, archived := newShed(t), time.Date(2028, 2, 29, 12, 0, 0, 0, time.UTC)
	it := s.sent(fill.Item{}, archived.Add(-time.Hour), "A")
	e := it.Apply(archived, fill.Seen("A", archive.Successful, archived))
	drops := []Drop{{Name: "acme", Vault: "V", Retention: 10}}
	for name, service := range map[string]Service{
		"Shown":      spoken{index: indexed(archived, "A")},
		"Incomplete": partial{spoken{}, 900},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: drops, Grace: time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
				Now: func() archive.Instant { return archive.Instant{Wall: archived.AddDate(16, 0, 0)} }})
			kit.Must(t, err)
			if v := r.Vaults[0]; v.Ended != 0 || v.Missing.Count != 0 || e.State != ledger.Archived {
				t.Errorf("%+v, want v.Ended = 0, v.Missing.Count = 0, e.State = ledger.Archived", v)
			}
		})
	}
}
