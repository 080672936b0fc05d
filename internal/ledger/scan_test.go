package ledger

import (
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// UnnamedSince when a thing lies there is told by a clock that may be set: a first sighting in the future does not make it wait for days.
func TestScan_I32_OverdueByAClockThatWasSet(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		since time.Time
		want  bool
	}{
		{now, false}, {now.Add(time.Second), false}, {now.Add(-30 * time.Minute), false}, {now.Add(-30*time.Minute - time.Second), true}, {now.Add(72 * time.Hour), true},
	} {
		s := Scan{Pending: []PendingItem{{Name: "a", Since: row.since, NeedsPerson: true}}, Unnamed: 5, UnnamedSince: row.since}
		named, more := s.OverdueItems(now, 30*time.Minute)
		kit.Check(t, len(named) == 1 == row.want && more == 5 == row.want, "since %s: %v and %d more", row.since, named, more)
	}
}

// What vaultd takes by itself needs nobody, and what has no name counts only beside what needs somebody.
func TestScan_I26_NeedsPerson(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	old := now.Add(-time.Hour)
	s := Scan{Pending: []PendingItem{{Name: "queued", Since: old}}, Unnamed: 7, UnnamedSince: old}
	if named, more := s.ItemsForPerson(now, time.Minute); len(named) != 0 || more != 0 {
		t.Errorf("%v and %d more", named, more)
	}
	s.Pending = append(s.Pending, PendingItem{Name: "loose", Since: old, NeedsPerson: true})
	if named, more := s.ItemsForPerson(now, time.Minute); len(named) != 1 || more != 7 || s.CountPending() != 9 {
		t.Errorf("%v and %d more", named, more)
	}
}
