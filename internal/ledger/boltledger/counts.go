package boltledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// Counts are kept for questions that are asked every few seconds, so that the answer costs the same with ten entries and
// with ten million. The first byte of a key says what is counted.
const (
	countArchived  = 'a' // then a quarter of an hour and a drop folder: entries that are archived, by the service's time
	countDelivered = 'd' // then the same: entries that are delivered, by this machine's time
)

// count is the value of a count.
type count struct {
	Number uint64 `stored:"1"`
}

func decodeCount(k, v []byte) (uint64, error) {
	n, err := countForm.decode(v)
	if err != nil {
		return 0, damage("counts %q: %v", bytes.ToValidUTF8(k, nil), err)
	}
	return n.Number, nil
}

// addToCount adds to a count. The error is a [ledger.DamageError] where the count cannot be read; then nothing was changed.
func addToCount(tx *bbolt.Tx, k []byte, more uint64) error {
	if v := tx.Bucket(countsBucket).Get(k); v != nil {
		stored, err := decodeCount(k, v)
		if err != nil {
			return err
		}
		more += stored
	}
	return putValue(tx, countsBucket, k, countForm.encode(&count{more}))
}

// completedCountKey returns the count that an archived or a delivered entry belongs to; nil: it belongs to none.
func completedCountKey(e ledger.Entry) []byte {
	kind := byte(countArchived)
	switch {
	case e.State != ledger.Archived && e.State != ledger.Delivered || e.CompletedAt().IsZero():
		return nil
	case e.State == ledger.Delivered:
		kind = countDelivered
	}
	return append(quarterKey(kind, time.Unix(0, nanosOf(e.CompletedAt()))), e.Drop...)
}

// quarterKey begins the counts of the archived or the delivered entries of the quarter of an hour that t lies in.
func quarterKey(kind byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64([]byte{kind}, orderedSeconds(t.UTC().Truncate(quarterHour)))
}

// countCompletion has this commit count an entry that it archives or delivers. Both states are final: nothing is taken from a count.
func (g *groupCommit) countCompletion(before, after ledger.Entry) {
	if k := completedCountKey(after); k != nil && completedCountKey(before) == nil {
		g.counts[string(k)]++
	}
}

// writeCounts writes what this commit adds to the counts. One that cannot be read stays as it is.
func (g *groupCommit) writeCounts() error {
	for _, k := range sortedKeys(g.counts) {
		if err := g.leaveDamagedFigure(addToCount(g.tx, []byte(k), g.counts[k])); err != nil {
			return err
		}
	}
	return nil
}

// sortedKeys returns the keys of a map in their order, so that each page of a tree is touched once.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// CountArchived counts, by drop folder, the entries that are archived by a
// success of the service at a time for which isWanted returns true. It asks
// about times from two days before until two days after around, and reads the
// counts of those days alone: as many for a ledger of any size. If isWanted
// changes within a quarter of an hour all entries are counted instead, which
// takes long.
func (l *Ledger) CountArchived(around time.Time, isWanted func(time.Time) bool) (byDrop map[string]int, err error) {
	return l.countByDrop(countArchived, around, isWanted)
}

// CountDelivered is CountArchived for the entries that are delivered at such a time, by this machine's clock. No entry is counted by both.
func (l *Ledger) CountDelivered(around time.Time, isWanted func(time.Time) bool) (byDrop map[string]int, err error) {
	return l.countByDrop(countDelivered, around, isWanted)
}

func (l *Ledger) countByDrop(kind byte, around time.Time, isWanted func(time.Time) bool) (map[string]int, error) {
	return groupCompleted(l, kind, around.AddDate(0, 0, -2), around.AddDate(0, 0, 2), func(drop string, at time.Time) (string, bool) { return drop, isWanted(at) })
}

// CountArchivedByDay counts the entries that are archived by a success of the
// service on each of the calendar days up to that of a time, the oldest first,
// in the configured time zone. It reads the counts of those days alone. If a
// day begins within a quarter of an hour all entries are counted instead, which
// takes long.
func (l *Ledger) CountArchivedByDay(newest time.Time, days int) ([]int, error) {
	return l.countByDay(countArchived, newest, days)
}

// CountDeliveredByDay is CountArchivedByDay for the entries that are delivered, by this machine's clock. No entry is counted by both.
func (l *Ledger) CountDeliveredByDay(newest time.Time, days int) ([]int, error) {
	return l.countByDay(countDelivered, newest, days)
}

func (l *Ledger) countByDay(kind byte, newest time.Time, days int) ([]int, error) {
	first := dayNumber(newest, l.loc) - days + 1
	byDay, err := groupCompleted(l, kind, newest.AddDate(0, 0, -days-2), newest.AddDate(0, 0, 2), func(_ string, at time.Time) (int, bool) {
		i := dayNumber(at, l.loc) - first
		return i, i >= 0 && i < days
	})
	counts := make([]int, days)
	for i, n := range byDay {
		counts[i] = n
	}
	return counts, err
}

// LastDelivery returns the beginning of the quarter of an hour in which an entry was delivered last, by this machine's clock; zero: none
// was. It reads one count.
func (l *Ledger) LastDelivery() (quarter time.Time, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		k, v := lastBefore(tx.Bucket(countsBucket).Cursor(), []byte{countDelivered + 1})
		if len(k) < 9 || k[0] != countDelivered {
			return nil
		}
		if _, err := decodeCount(k, v); err != nil {
			return err
		}
		quarter = time.Unix(int64(binary.BigEndian.Uint64(k[1:])^1<<63), 0).UTC()
		return nil
	})
	if err != nil {
		return quarter, fmt.Errorf("read the last delivery: %w", err)
	}
	return quarter, nil
}

// dayNumber numbers the calendar days of a time zone.
func dayNumber(t time.Time, zone *time.Location) int {
	y, m, d := t.In(zone).Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60))
}

// errCutQuarter says that what is wanted changes within a quarter of an hour.
var errCutQuarter = errors.New("what is counted changes within a quarter of an hour")

// groupCompleted counts the entries that are archived by a success of the service, or those that are delivered, by the group that groupOf gives to
// their drop folder and the time of that; ok is false for what is not counted, and for all times before from and after to.
func groupCompleted[G comparable](l *Ledger, kind byte, from, to time.Time, groupOf func(drop string, at time.Time) (g G, ok bool)) (map[G]int, error) {
	counts := map[G]int{}
	err := l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(countsBucket).Cursor()
		end := quarterKey(kind, to)
		for k, v := c.Seek(quarterKey(kind, from)); k != nil && bytes.Compare(k, end) < 0; k, v = c.Next() {
			n, err := decodeCount(k, v)
			if err != nil {
				return err
			}
			quarter, drop := time.Unix(int64(binary.BigEndian.Uint64(k[1:])^1<<63), 0), string(k[9:])
			group, isCounted := groupOf(drop, quarter)
			groupAtEnd, isCountedAtEnd := groupOf(drop, quarter.Add(quarterHour-1))
			if isCounted != isCountedAtEnd || isCounted && group != groupAtEnd {
				return errCutQuarter
			}
			if isCounted {
				counts[group] += int(n)
			}
		}
		return nil
	})
	if errors.Is(err, errCutQuarter) {
		clear(counts)
		err = l.visitCompleted(kind, func(e ledger.Entry) {
			if g, ok := groupOf(e.Drop, e.CompletedAt()); ok {
				counts[g]++
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("count what is archived or delivered: %w", err)
	}
	return counts, nil
}

// visitCompleted calls fn with each entry that the counts of a kind count.
func (l *Ledger) visitCompleted(kind byte, fn func(ledger.Entry)) error {
	return l.view(func(tx *bbolt.Tx) error {
		return visitEntries(tx, func(e ledger.Entry, err error) error {
			if k := completedCountKey(e); k != nil && k[0] == kind {
				fn(e)
			}
			return err
		})
	})
}
