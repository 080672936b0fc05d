package boltledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// totalKey is the vault, a zero byte, the year and the month.
func totalKey(t ledger.Total) []byte {
	return append(binary.BigEndian.AppendUint32(append([]byte(t.Vault), 0), uint32(t.Year)), byte(t.Month))
}

func decodeTotal(k, v []byte) (ledger.Total, error) {
	t, err := totalForm.decode(v)
	if err == nil && string(totalKey(t)) != string(k) {
		err = errors.New("it lies under the key of another one")
	}
	if err != nil {
		return t, damage("totals %s: %v", bytes.ToValidUTF8(k[:max(len(k)-6, 0)], nil), err)
	}
	return t, nil
}

// addTotals adds what the service archived between two revisions of an entry.
func (l *Ledger) addTotals(tx *bbolt.Tx, before, after ledger.Entry) error {
	// Only what is new counts: the same success is told again with every later answer.
	had := before.Transactions()
	for _, t := range after.Transactions() {
		if slices.ContainsFunc(had, func(o ledger.Transaction) bool { return o.Remote == t.Remote }) {
			continue
		}
		if err := addTotal(tx, l.totalOf(after, t)); err != nil {
			return err
		}
	}
	return nil
}

// addTotal adds to what its vault archived in its month.
func addTotal(tx *bbolt.Tx, more ledger.Total) error {
	k := totalKey(more)
	t := ledger.Total{Vault: more.Vault, Year: more.Year, Month: more.Month}
	if v := tx.Bucket(totalsBucket).Get(k); v != nil {
		var err error
		if t, err = decodeTotal(k, v); err != nil {
			return err
		}
	}
	t = t.Plus(more)
	return putValue(tx, totalsBucket, k, totalForm.encode(&t))
}

// Totals returns what each vault archived in each month, by vault and month.
func (l *Ledger) Totals() (ts []ledger.Total, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(totalsBucket).ForEach(func(k, v []byte) error {
			t, err := decodeTotal(k, v)
			ts = append(ts, t)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read totals: %w", err)
	}
	return ts, nil
}

// recount is what all entries add up to.
type recount struct {
	balance ledger.Balance
	revs    uint64 // each of them has a journal line
	totals  map[string]ledger.Total
}

func (r *recount) addEntry(l *Ledger, e ledger.Entry) {
	r.balance.CountChange(ledger.None, e.State)
	r.revs += uint64(e.Rev)
	for _, t := range e.Transactions() {
		one := l.totalOf(e, t)
		k := string(totalKey(one))
		if had, ok := r.totals[k]; ok {
			one = had.Plus(one)
		}
		r.totals[k] = one
	}
}

// recountEntries goes through all entries of one transaction. After each of them next is told
// how reading it went, and says whether to go on.
func (l *Ledger) recountEntries(tx *bbolt.Tx, next func(error) error) (*recount, error) {
	r := &recount{totals: map[string]ledger.Total{}}
	for _, bucket := range [][]byte{openBucket, doneBucket} {
		c := tx.Bucket(bucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			// A record that cannot be read is not counted; the caller decides whether that ends the count.
			e, err := decodeEntryAt(bucket, k, v)
			if err == nil {
				r.addEntry(l, e)
			}
			if err := next(err); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// rebuildTotals reckons the totals, and the downloads of each month, anew: years and months begin elsewhere than before.
func (l *Ledger) rebuildTotals(tx *bbolt.Tx) error {
	r, err := l.recountEntries(tx, func(err error) error { return err })
	if err != nil {
		return err
	}
	// In one transaction with the new ones: a crash leaves the old totals and the old zone.
	if err := tx.DeleteBucket(totalsBucket); err != nil {
		return err
	}
	if _, err := tx.CreateBucket(totalsBucket); err != nil {
		return err
	}
	for _, t := range r.totals {
		if err := putValue(tx, totalsBucket, totalKey(t), totalForm.encode(&t)); err != nil {
			return err
		}
	}
	if err := l.recountFetches(tx); err != nil {
		return err
	}
	s := newSummary(l.end, l.balance, l.marks, l.alarmed, l.loc)
	return putValue(tx, metaBucket, summaryKey, summaryForm.encode(&s))
}
