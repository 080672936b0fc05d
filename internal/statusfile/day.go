package statusfile

import (
	"maps"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// dayCounts counts what ended on one calendar day, in memory.
type dayCounts struct {
	date           string
	archived       endCount // by the archive's own word
	delivered      endCount // no later word comes: these are not archived
	duplicateCount int
	duplicates     []duplicateItem      // the last few of them, oldest first
	ended          map[archive.Key]bool // entries that were counted and must not count again; false: their folders were placed meanwhile

	recalling bool // what happened before the start is still being counted
}

// endCount counts what came to one end.
type endCount struct {
	count  int
	last   string // name of the last one
	lastAt time.Time
}

// add counts one.
func (c *endCount) add(name string, at time.Time) {
	c.count++
	if !at.Before(c.lastAt) {
		c.last, c.lastAt = name, at
	}
}

type duplicateItem struct {
	folder string
	first  archive.Key
}

const mostDuplicates = 5

// onDay gives the counts of the day of now.
func (t dayCounts) onDay(now time.Time) dayCounts {
	if t.date != now.Format(time.DateOnly) {
		return dayCounts{}
	}
	t.ended, t.duplicates = nil, slices.Clone(t.duplicates)
	return t
}

// addCommitted takes in a committed entry; now is in the drop's own time zone.
func (t *dayCounts) addCommitted(e ledger.Entry, now time.Time) {
	if date := now.Format(time.DateOnly); t.date != date {
		*t = dayCounts{date: date, ended: t.ended, recalling: t.recalling}
	}
	if t.ended == nil {
		t.ended = map[archive.Key]bool{}
	}
	if !isCounted(e.State) {
		return
	}
	_, counted := t.ended[e.Key]
	switch {
	case e.Source == ledger.Claimed && !counted:
		t.ended[e.Key] = true
		t.addEnded(e, now)
	case e.Source != ledger.Claimed && counted && t.recalling:
		t.ended[e.Key] = false
	case e.Source != ledger.Claimed:
		delete(t.ended, e.Key)
	}
}

// isCounted reports whether a day counts what came to this end.
func isCounted(s ledger.State) bool {
	return s == ledger.Archived || s == ledger.Delivered || s == ledger.Duplicate
}

// endRecall ends the counting of what happened before the start.
func (t *dayCounts) endRecall() {
	t.recalling = false
	maps.DeleteFunc(t.ended, func(_ archive.Key, waits bool) bool { return !waits })
}

// addEarlier takes in an entry that a start found, the newest first.
func (t *dayCounts) addEarlier(e ledger.Entry, now time.Time) {
	t.addCommitted(ledger.Entry{}, now) // only for the date
	if _, counted := t.ended[e.Key]; counted {
		return
	}
	switch {
	case e.State == ledger.Archived || e.State == ledger.Delivered:
		t.addEnded(e, now)
	case e.State == ledger.Duplicate && e.SeenAt.In(now.Location()).Format(time.DateOnly) == t.date:
		if t.duplicateCount++; len(t.duplicates) < mostDuplicates {
			t.duplicates = slices.Insert(t.duplicates, 0, duplicateItem{e.Folder, e.DuplicateOf})
		}
	}
	if e.Source == ledger.Claimed && isCounted(e.State) {
		t.ended[e.Key] = true
	}
}

// addEnded counts an entry that has ended.
func (t *dayCounts) addEnded(e ledger.Entry, now time.Time) {
	if e.State == ledger.Duplicate {
		t.duplicateCount++
		if t.duplicates = append(t.duplicates, duplicateItem{e.Folder, e.DuplicateOf}); len(t.duplicates) > mostDuplicates {
			t.duplicates = slices.Delete(t.duplicates, 0, 1)
		}
		return
	}
	at := e.CompletedAt().In(now.Location())
	switch {
	case at.Format(time.DateOnly) != t.date:
	case e.State == ledger.Delivered:
		t.delivered.add(e.Folder, at)
	default:
		t.archived.add(e.Folder, at)
	}
}
