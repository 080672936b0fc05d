package boltledger

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// IntendFetch commits the line that announces a download and counts it against the budget of its month, or refuses with a
// [*ledger.BudgetError]. It returns how many downloads the month has with this one. The budget is looked at in the transaction
// that commits the line, so two commands at once cannot overspend it. note is what By gave as the reason, or nil.
func (l *Ledger) IntendFetch(ctx context.Context, m ledger.Mark, note *ledger.Note, budget uint64) (used uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.Name = ledger.MarkFetchIntended
	// A download that is announced is not given up here: the caller must learn whether it is counted.
	err = l.askCommitter(context.WithoutCancel(ctx), func(g *groupCommit) (refused, err error) {
		used, refused = fetchesInMonth(g.tx, m.At, g.ledger.loc)
		switch {
		case refused != nil: // what is left of the budget is not known: the download alone is refused
			return refused, nil
		case used >= budget:
			return &ledger.BudgetError{Used: used, Allowed: budget}, nil
		}
		refused, err = markRequest{mark: m, note: note, isCounted: true}.apply(g)
		if refused != nil || err != nil {
			return refused, err
		}
		used++
		// Counted before the call: a crash during the download leaves it
		// counted, because it may have been charged.
		return nil, g.tx.Bucket(fetchesBucket).Put(fetchKey(m.At, g.Head.N), []byte{})
	})
	return used, err
}

// CountFetches returns how many downloads were announced in the month of a time.
func (l *Ledger) CountFetches(at time.Time) (n uint64, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		n, err = fetchesInMonth(tx, at, l.loc)
		return err
	})
	return n, err
}

// Each announced download has a key of its own, so that a month of any time
// zone is counted exactly.

// fetchKey is the time of a download in milliseconds, as the journal has it,
// and the number of the line that announces it.
func fetchKey(at time.Time, line uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(at.UnixMilli())^1<<63), line)
}

// decodeFetchKey returns the time in a key.
func decodeFetchKey(k, v []byte) (at time.Time, err error) {
	if len(k) != 16 || len(v) != 0 {
		return at, damage("fetches: a key of %d bytes with a value of %d", len(k), len(v))
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(k) ^ 1<<63)), nil
}

// fetchesInMonth returns how many downloads were announced in the month of a time.
func fetchesInMonth(tx *bbolt.Tx, at time.Time, zone *time.Location) (n uint64, err error) {
	const most = 33 // days that a month has in any zone, and more
	month, end := monthNumber(at.Truncate(time.Millisecond), zone), fetchKey(at.AddDate(0, 0, most), 0)
	c := tx.Bucket(fetchesBucket).Cursor()
	for k, v := c.Seek(fetchKey(at.AddDate(0, 0, -most), 0)); k != nil && bytes.Compare(k, end) < 0; k, v = c.Next() {
		fetched, err := decodeFetchKey(k, v)
		if err != nil {
			return 0, err
		}
		if monthNumber(fetched, zone) == month {
			n++
		}
	}
	return n, nil
}

// monthNumber is twelve times the year of a time and its month, in a time zone.
func monthNumber(t time.Time, zone *time.Location) int {
	y, m, _ := t.In(zone).Date()
	return 12*y + int(m)
}

// fetchTimeOf returns when a line of the journal announced a download; ok is false where it does not.
func fetchTimeOf(l ledger.Line) (at time.Time, ok bool, err error) {
	if l.Key != "" || l.Event != ledger.MarkFetchIntended {
		return at, false, nil
	}
	at, err = time.Parse(time.RFC3339Nano, l.At)
	return at, err == nil, err
}
