package boltledger

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The totals know no time zone. They are kept by spans of time in UTC, so that
// the months of every zone are sums of whole spans: a zone is at most a day
// away from UTC, so only what lies in the first or the last day of a month of
// UTC can belong to another month elsewhere. Those two days are kept by quarter
// hours, and the days between them as one span. Every zone since 1980 is a
// multiple of a quarter hour away from UTC. If a month begins within a span all
// the same, the totals are counted again from the entries.

// quarterHour is the shortest span.
const quarterHour = 15 * time.Minute

// spanOf returns the span of time with which a success at t is counted: from is in it, to is not.
func spanOf(t time.Time) (from, to time.Time) {
	t = t.UTC()
	y, m, d := t.Date()
	last := time.Date(y, m+1, 0, 0, 0, 0, 0, time.UTC)
	if d == 1 || d == last.Day() {
		from = t.Truncate(quarterHour)
		return from, from.Add(quarterHour)
	}
	return time.Date(y, m, 2, 0, 0, 0, 0, time.UTC), last
}

// monthNumber is twelve times the year of a time and its month from 0, in a time zone.
func monthNumber(t time.Time, zone *time.Location) int {
	y, m, _ := t.In(zone).Date()
	return 12*y + int(m) - 1
}

// monthOfSpan returns the month that a span lies in; ok is false where a month begins within it.
func monthOfSpan(from, to time.Time, zone *time.Location) (number int, ok bool) {
	number = monthNumber(from, zone)
	return number, monthNumber(to.Add(-1), zone) == number
}

// orderedSeconds are the seconds of a time since 1970 as a key has them: a time before 1970 comes before one after it.
func orderedSeconds(t time.Time) uint64 { return uint64(t.Unix()) ^ 1<<63 }

// spanTotal is what one vault archived in one span of time.
type spanTotal struct {
	Vault     archive.VaultID `stored:"1"`
	From      int64           `stored:"2"` // the span's first second since 1970
	Documents uint64          `stored:"3"`
	Unsized   uint64          `stored:"6"`
	Bytes     uint64          `stored:"4"`
	Last      time.Time       `stored:"5"`
}

// newSpanTotal counts one success of the service. Its time goes through the stored form, so that a recount finds the same.
func newSpanTotal(v archive.VaultID, t ledger.Transaction) spanTotal {
	t.At = time.Unix(0, nanosOf(t.At)).UTC()
	one := t.Total(v, time.UTC)
	from, _ := spanOf(t.At)
	return spanTotal{v, from.Unix(), one.Documents, one.Unsized, one.Bytes, one.Last}
}

// plus returns both together, under the vault and the span of the first.
func (s spanTotal) plus(more spanTotal) spanTotal {
	s.Documents, s.Unsized, s.Bytes = s.Documents+more.Documents, s.Unsized+more.Unsized, s.Bytes+more.Bytes
	s.Last = ledger.LaterOf(s.Last, more.Last)
	return s
}

// inMonth returns it as a part of a month.
func (s spanTotal) inMonth(number int) ledger.Total {
	return ledger.Total{Vault: s.Vault, Year: number / 12, Month: number%12 + 1, Documents: s.Documents, Unsized: s.Unsized, Bytes: s.Bytes, Last: s.Last}
}

// totalPrefix begins the keys of a vault's totals.
func totalPrefix(v archive.VaultID) []byte { return append([]byte(v), 0) }

// totalKey is the vault, a zero byte, and the span's first second.
func totalKey(s spanTotal) []byte {
	return binary.BigEndian.AppendUint64(totalPrefix(s.Vault), orderedSeconds(time.Unix(s.From, 0)))
}

func decodeTotal(k, v []byte) (spanTotal, error) {
	t, err := totalForm.decode(v)
	if err == nil && string(totalKey(t)) != string(k) {
		err = errors.New("it lies under the key of another one")
	}
	if err != nil {
		return t, damage("totals %s: %v", bytes.ToValidUTF8(k[:max(len(k)-9, 0)], nil), err)
	}
	return t, nil
}

// addTotals adds what the service archived between two revisions of an entry to what this commit adds to the totals.
func (g *groupCommit) addTotals(before, after ledger.Entry) {
	// Only what is new counts: the same success is told again with every later answer.
	had := before.Transactions()
	for _, t := range after.Transactions() {
		if slices.ContainsFunc(had, func(o ledger.Transaction) bool { return o.Remote == t.Remote }) {
			continue
		}
		one := newSpanTotal(after.Vault, t)
		k := string(totalKey(one))
		if had, ok := g.totals[k]; ok {
			one = had.plus(one)
		}
		g.totals[k] = one
	}
}

// writeTotals writes what this commit adds to the totals. One that cannot be read stays as it is.
func (g *groupCommit) writeTotals() error {
	for _, k := range sortedKeys(g.totals) {
		t := g.totals[k]
		if v := g.tx.Bucket(totalsBucket).Get([]byte(k)); v != nil {
			stored, err := decodeTotal([]byte(k), v)
			if err != nil {
				if err := g.leaveDamagedFigure(err); err != nil {
					return err
				}
				continue
			}
			t = stored.plus(t)
		}
		if err := putValue(g.tx, totalsBucket, []byte(k), totalForm.encode(&t)); err != nil {
			return err
		}
	}
	return nil
}

// Totals returns what each vault archived in each month of the configured time zone, by vault and month.
func (l *Ledger) Totals() ([]ledger.Total, error) {
	return l.sumTotals(func(s *monthSums, vault []byte) error { return s.addMonths(vault, 0, mostMonths) })
}

// RecentTotals returns the totals of Totals from the month of a time on, and of each vault the first month before it in which
// the size of something is known. That is what the bills of a year and their forecast need. It reads no other months.
func (l *Ledger) RecentTotals(since time.Time) ([]ledger.Total, error) {
	recent := monthNumber(since, l.loc)
	return l.sumTotals(func(s *monthSums, vault []byte) error {
		first, ok, err := s.firstSizedMonth(vault)
		if err == nil && ok && first < recent {
			err = s.addMonths(vault, first, first)
		}
		if err != nil {
			return err
		}
		return s.addMonths(vault, recent, mostMonths)
	})
}

// mostMonths is the number of a month that no stored time reaches.
const mostMonths = 12 * 10_000

// errMonthInSpan says that a month begins within a span of the totals, in the configured time zone.
var errMonthInSpan = errors.New("a month begins within a quarter of an hour")

// sumTotals sums for each vault what add asks for. If a month begins within a
// span it counts all entries instead, which takes long.
func (l *Ledger) sumTotals(add func(s *monthSums, vault []byte) error) (ts []ledger.Total, err error) {
	s := &monthSums{zone: l.loc, sums: map[vaultMonth]ledger.Total{}}
	err = l.view(func(tx *bbolt.Tx) error {
		s.cursor = tx.Bucket(totalsBucket).Cursor()
		return visitVaults(tx, func(vault []byte) error { return add(s, vault) })
	})
	if errors.Is(err, errMonthInSpan) {
		s.sums, err = l.recountMonths()
	}
	if err != nil {
		return nil, fmt.Errorf("read totals: %w", err)
	}
	for _, t := range s.sums {
		ts = append(ts, t)
	}
	slices.SortFunc(ts, func(a, b ledger.Total) int {
		return cmp.Or(cmp.Compare(a.Vault, b.Vault), cmp.Compare(a.Year, b.Year), cmp.Compare(a.Month, b.Month))
	})
	return ts, nil
}

// LastSuccess returns the newest of the service's times of success; zero: there is none. It reads one record of each vault.
func (l *Ledger) LastSuccess() (at time.Time, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(totalsBucket).Cursor()
		return visitVaults(tx, func(vault []byte) error {
			// The last span of a vault holds its newest success: spans do not overlap.
			k, v := lastBefore(c, append(bytes.Clone(vault), 1))
			t, err := decodeTotal(k, v)
			at = ledger.LaterOf(at, t.Last)
			return err
		})
	})
	if err != nil {
		return at, fmt.Errorf("read the last success: %w", err)
	}
	return at, nil
}

// lastBefore goes to the last key before another one.
func lastBefore(c *bbolt.Cursor, key []byte) (k, v []byte) {
	if k, _ := c.Seek(key); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// visitVaults calls fn with the name of each vault that has totals.
func visitVaults(tx *bbolt.Tx, fn func(vault []byte) error) error {
	c := tx.Bucket(totalsBucket).Cursor()
	for k, _ := c.First(); k != nil; {
		if len(k) < 9 || k[len(k)-9] != 0 {
			return damage("totals a key of %d bytes", len(k))
		}
		vault := bytes.Clone(k[:len(k)-9])
		if err := fn(vault); err != nil {
			return err
		}
		k, _ = c.Seek(append(vault, 1)) // the first key of another vault
	}
	return nil
}

type vaultMonth struct {
	vault archive.VaultID
	month int
}

// monthSums sums spans to the months of a time zone.
type monthSums struct {
	zone   *time.Location
	cursor *bbolt.Cursor
	sums   map[vaultMonth]ledger.Total
}

func (s *monthSums) add(number int, t ledger.Total) {
	k := vaultMonth{t.Vault, number}
	if had, ok := s.sums[k]; ok {
		t = had.Plus(t)
	}
	s.sums[k] = t
}

// addMonths adds a vault's months from first to last. It begins to read two days before the first one.
func (s *monthSums) addMonths(vault []byte, first, last int) error {
	prefix := append(bytes.Clone(vault), 0)
	begin := prefix
	if first > 0 {
		at := time.Date(first/12, time.Month(first%12+1), -1, 0, 0, 0, 0, time.UTC)
		from, _ := spanOf(at)
		begin = binary.BigEndian.AppendUint64(bytes.Clone(prefix), orderedSeconds(from))
	}
	for k, v := s.cursor.Seek(begin); bytes.HasPrefix(k, prefix); k, v = s.cursor.Next() {
		t, number, err := s.decodeSpan(k, v)
		if err != nil || number > last {
			return err
		}
		if number >= first {
			s.add(number, t.inMonth(number))
		}
	}
	return nil
}

// firstSizedMonth returns a vault's first month in which the size of something is known; ok is false where there is none.
func (s *monthSums) firstSizedMonth(vault []byte) (number int, ok bool, err error) {
	prefix := append(bytes.Clone(vault), 0)
	for k, v := s.cursor.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = s.cursor.Next() {
		t, number, err := s.decodeSpan(k, v)
		if err != nil || t.Documents > t.Unsized {
			return number, err == nil, err
		}
	}
	return 0, false, nil
}

// decodeSpan reads one record and tells in which month its span lies.
func (s *monthSums) decodeSpan(k, v []byte) (t spanTotal, number int, err error) {
	if t, err = decodeTotal(k, v); err != nil {
		return t, 0, err
	}
	from, to := spanOf(time.Unix(t.From, 0))
	number, ok := monthOfSpan(from, to, s.zone)
	if !ok {
		err = errMonthInSpan
	}
	return t, number, err
}

// recountMonths counts the months anew from all entries.
func (l *Ledger) recountMonths() (map[vaultMonth]ledger.Total, error) {
	s := &monthSums{zone: l.loc, sums: map[vaultMonth]ledger.Total{}}
	err := l.view(func(tx *bbolt.Tx) error {
		return visitEntries(tx, func(e ledger.Entry, err error) error {
			for _, t := range e.Transactions() {
				t.At = time.Unix(0, nanosOf(t.At)).UTC()
				s.add(monthNumber(t.At, l.loc), t.Total(e.Vault, l.loc))
			}
			return err
		})
	})
	return s.sums, err
}
