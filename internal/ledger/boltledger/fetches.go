package boltledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// IntendFetch commits the line that announces a download and counts it against the budget of its month, or refuses with a
// [*ledger.BudgetError]. It returns how many downloads the month has with this one. The budget is looked at in the transaction
// that commits the line, so two commands at once cannot overspend it.
func (l *Ledger) IntendFetch(ctx context.Context, m ledger.Mark, budget uint64) (used uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.Name = ledger.MarkFetchIntended
	// A download that is announced is not given up here: the caller must learn whether it is counted.
	err = l.askCommitter(context.WithoutCancel(ctx), func(g *groupCommit) (refused, err error) {
		refused, err = markRequest{mark: m, budget: budget}.apply(g)
		if refused != nil || err != nil {
			return refused, err
		}
		f, err := readFetches(g.tx)
		// Read in the same transaction, after this download was counted.
		used = f.countIn(monthOf(m.At, g.ledger.loc))
		return nil, err
	})
	return used, err
}

// CountFetches returns how many downloads were announced in the month of a time.
func (l *Ledger) CountFetches(at time.Time) (n uint64, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		f, err := readFetches(tx)
		n = f.countIn(monthOf(at, l.loc))
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
	f, err := readFetches(g.tx)
	if err != nil {
		return nil, err
	}
	month := monthOf(m.mark.At, g.ledger.loc)
	if used := f.countIn(month); used >= m.budget {
		return &ledger.BudgetError{Used: used, Allowed: m.budget}, nil
	}
	// Counted before the call: a crash during the download leaves it counted, because it may have been charged.
	f.countOne(month)
	return nil, putValue(g.tx, metaBucket, fetchesKey, fetchesForm.encode(&f))
}

// fetches are the downloads that were announced, by month.
type fetches struct{ months []month }

// month is a calendar month: twelve times the year, and the month from 0.
type month struct{ number, fetches uint64 }

var monthForm = &message[month]{"Month", []field[month]{
	numberField(1, "number", func(m *month) *uint64 { return &m.number }),
	numberField(2, "fetches", func(m *month) *uint64 { return &m.fetches }),
}}

var fetchesForm = &message[fetches]{"Fetches", []field[fetches]{
	listField(1, "months", monthForm, func(f *fetches) *[]month { return &f.months }),
}}

// monthOf returns the number of the month. The journal keeps milliseconds: the month is that of the line.
func monthOf(at time.Time, loc *time.Location) uint64 {
	at = at.UTC().Truncate(time.Millisecond).In(loc)
	return uint64(max(12*at.Year()+int(at.Month())-1, 0))
}

func readFetches(tx *bbolt.Tx) (f fetches, err error) {
	record := tx.Bucket(metaBucket).Get(fetchesKey)
	if record == nil {
		return f, nil
	}
	if f, err = fetchesForm.decode(record); err != nil {
		return f, damage("%v", err)
	}
	return f, nil
}

func (f fetches) countIn(number uint64) uint64 {
	for _, m := range f.months {
		if m.number == number {
			return m.fetches
		}
	}
	return 0
}

func (f *fetches) countOne(number uint64) {
	for i := range f.months {
		if f.months[i].number == number {
			f.months[i].fetches++
			return
		}
	}
	f.months = append(f.months, month{number, 1})
}

// countLine counts a line of the journal where it announces a download.
func (f *fetches) countLine(l ledger.Line, loc *time.Location) error {
	if l.Key != "" || l.Event != ledger.MarkFetchIntended {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, l.At)
	if err != nil {
		return damage("journal line %d: %v", l.N, err)
	}
	f.countOne(monthOf(at, loc))
	return nil
}

// missingFrom names a month for which the ledger counts fewer downloads than the journal; empty: there is none. While the
// ledger is in use it may count more.
func (f fetches) missingFrom(journal fetches) string {
	for _, m := range journal.months {
		if kept := f.countIn(m.number); kept < m.fetches {
			return fmt.Sprintf("the journal tells of %d downloads in %d-%02d, the ledger remembers %d", m.fetches, m.number/12, m.number%12+1, kept)
		}
	}
	return ""
}

// recountFetches counts the downloads anew from the journal: the months begin elsewhere than before.
func (l *Ledger) recountFetches(tx *bbolt.Tx) error {
	// From the journal, which never forgets: the stored months are only derived from it.
	var f fetches
	c := tx.Bucket(journalBucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		_, b, err := decodeBlock(k, v)
		if err != nil {
			return err
		}
		for _, stored := range b.lines {
			line, err := ledger.ParseLine(stored)
			if err != nil {
				return damage("%v", err)
			}
			if err := f.countLine(line, l.loc); err != nil {
				return err
			}
		}
	}
	if f.months == nil {
		return tx.Bucket(metaBucket).Delete(fetchesKey)
	}
	return putValue(tx, metaBucket, fetchesKey, fetchesForm.encode(&f))
}
