package boltledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
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
		refused, err = markRequest{mark: m, note: note, budget: budget}.apply(g)
		if refused != nil || err != nil {
			return refused, err
		}
		// Read in the same transaction, after this download was counted.
		used, err = fetchesInMonth(g.tx, m.At, g.ledger.loc)
		return nil, err
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

// countFetch counts an announced download, or refuses it.
func (g *groupCommit) countFetch(m markRequest) (refused, err error) {
	switch {
	case m.mark.Name != ledger.MarkFetchIntended && m.mark.Name != ledger.MarkFetched:
		return nil, nil
	case m.mark.Vault == "" || m.mark.Remote == "" || m.mark.Name == ledger.MarkFetched && !slices.Contains(ledger.FetchOutcomes(), m.mark.Cause):
		return fmt.Errorf("mark the ledger as %s: it needs a vault, a bumId and an outcome: %w", m.mark.Name, ledger.ErrIllegal), nil
	case m.mark.Name == ledger.MarkFetched:
		return nil, nil
	}
	used, err := fetchesInMonth(g.tx, m.mark.At, g.ledger.loc)
	// What is left of the budget is not known. The download alone is refused: the commit's other work does not depend on it.
	if err := g.leaveDamagedFigure(err); err != nil {
		return nil, err
	}
	if err != nil {
		return err, nil
	}
	if used >= m.budget {
		return &ledger.BudgetError{Used: used, Allowed: m.budget}, nil
	}
	// Counted before the call: a crash during the download leaves it counted, because it may have been charged.
	return nil, addToCount(g.tx, fetchKey(m.mark.At), 1)
}

// Downloads are counted by spans of time that belong to one month in every time zone: by milliseconds, as the journal has them,
// in the first and the last day of a month of UTC, and the days between them as one. A zone is at most a day away from UTC.

// fetchKey is the count of the downloads that were announced at a time.
func fetchKey(at time.Time) []byte {
	at = at.UTC().Truncate(time.Millisecond)
	if from, to := spanOf(at); to.Sub(from) > quarterHour {
		at = from
	}
	return binary.BigEndian.AppendUint64([]byte{countFetches}, uint64(at.UnixMilli())^1<<63)
}

// fetchTime returns the beginning of the span of a key that fetchKey made.
func fetchTime(k []byte) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(k[1:]) ^ 1<<63)).UTC()
}

// fetchesInMonth returns how many downloads were announced in the month of a time.
func fetchesInMonth(tx *bbolt.Tx, at time.Time, zone *time.Location) (n uint64, err error) {
	at = at.UTC().Truncate(time.Millisecond)
	month := monthNumber(at, zone)
	c := tx.Bucket(countsBucket).Cursor()
	// From the last month on: the day at which a month begins is never far from that of UTC.
	for k, v := c.Seek(fetchKey(at.AddDate(0, -2, 0))); len(k) == 9 && k[0] == countFetches; k, v = c.Next() {
		number := monthNumber(fetchTime(k), zone)
		if number > month {
			break
		}
		if number < month {
			continue
		}
		one, err := decodeCount(k, v)
		if err != nil {
			return 0, err
		}
		n += one
	}
	return n, nil
}

// fetchTimeOf returns when a line of the journal announced a download; ok is false where it does not.
func fetchTimeOf(l ledger.Line) (at time.Time, ok bool, err error) {
	if l.Key != "" || l.Event != ledger.MarkFetchIntended {
		return at, false, nil
	}
	at, err = time.Parse(time.RFC3339Nano, l.At)
	return at, err == nil, err
}
