package boltledger

import (
	"fmt"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// recount is what all entries add up to.
type recount struct {
	balance ledger.Balance
	revs    uint64               // each of them has a journal line
	totals  map[string]spanTotal // by their keys
	counts  map[string]uint64    // by their keys
}

func newRecount() *recount {
	return &recount{totals: map[string]spanTotal{}, counts: map[string]uint64{}}
}

func (r *recount) addEntry(e ledger.Entry) {
	r.balance.CountChange(ledger.None, e.State)
	r.revs += uint64(e.Rev)
	for _, t := range e.Transactions() {
		one := newSpanTotal(e.Vault, t)
		k := string(totalKey(one))
		if had, ok := r.totals[k]; ok {
			one = had.plus(one)
		}
		r.totals[k] = one
	}
	if k := completedCountKey(e); k != nil {
		r.counts[string(k)]++
	}
}

// visitEntries calls fn with every entry of one transaction, or with why its record cannot be read.
func visitEntries(tx *bbolt.Tx, fn func(ledger.Entry, error) error) error {
	for _, bucket := range [][]byte{openBucket, doneBucket} {
		c := tx.Bucket(bucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if err := fn(decodeEntryAt(bucket, k, v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// compareDerived compares the stored totals and counts with the recounted ones, and uses those up. report is told what is
// wrong in a bucket, and says whether to go on.
func (r *recount) compareDerived(tx *bbolt.Tx, report func(bucket []byte, err error) error) error {
	err := eachPair(tx, totalsBucket, func(k, v []byte) error {
		t, err := decodeTotal(k, v)
		if want := r.totals[string(k)]; err == nil && t != want {
			err = fmt.Errorf("kept as %+v, the entries add up to %+v", t, want)
		}
		delete(r.totals, string(k))
		return report(totalsBucket, err)
	})
	if err != nil {
		return err
	}
	for _, t := range r.totals {
		from, _ := spanOf(t.Last)
		if err := report(totalsBucket, fmt.Errorf("%s %s is missing", t.Vault, from.Format("2006-01-02 15:04"))); err != nil {
			return err
		}
	}
	err = eachPair(tx, countsBucket, func(k, v []byte) error {
		n, err := decodeCount(k, v)
		if want := r.counts[string(k)]; err == nil && n != want {
			err = fmt.Errorf("%s are kept as %d, the entries add up to %d", describeCount(k), n, want)
		}
		delete(r.counts, string(k))
		return report(countsBucket, err)
	})
	if err != nil {
		return err
	}
	for _, k := range sortedKeys(r.counts) {
		if err := report(countsBucket, fmt.Errorf("%s are missing, the entries add up to %d", describeCount([]byte(k)), r.counts[k])); err != nil {
			return err
		}
	}
	return nil
}

func eachPair(tx *bbolt.Tx, bucket []byte, fn func(k, v []byte) error) error {
	c := tx.Bucket(bucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if err := fn(k, v); err != nil {
			return err
		}
	}
	return nil
}

// describeCount says what a count is of.
func describeCount(k []byte) string {
	switch {
	case k[0] == countArchived && len(k) >= 9:
		return fmt.Sprintf("the archived ones of drop folder %q", k[9:])
	case k[0] == countDelivered && len(k) >= 9:
		return fmt.Sprintf("the delivered ones of drop folder %q", k[9:])
	}
	return "counts of no kind"
}
