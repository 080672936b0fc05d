package boltledger

import (
	"bytes"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger/arrival"
)

// countArrivals counts all arrivals and their revisions. A record that cannot be read is not counted: the pass over arrivals reports it.
func countArrivals(tx *bbolt.Tx) (b arrival.Balance, revs uint64) {
	_ = eachPair(tx, arrivalBucket, func(k, v []byte) error { // it never fails
		if a, err := decodeArrival(k, v); err == nil {
			b.CountChange(arrival.None, a.State)
			revs += uint64(a.Rev)
		}
		return nil
	})
	return b, revs
}

// checkArrival checks one arrival, and that it is found by its state and by its number at the service.
func checkArrival(p *part, tx *bbolt.Tx, k, v []byte) error {
	a, err := decodeArrival(k, v)
	if err != nil {
		return p.reportError(arrivalBucket, err)
	}
	// One that is missing there would never be fetched: the engine reads the index and nothing else.
	for _, has := range indexKeys(a) {
		if v := tx.Bucket(arrivalIndexBucket).Get(has); v == nil || has[0] != arrivalsByState && !bytes.Equal(v, a.Key[:]) {
			return p.reportProblem(arrivalBucket, "%s is not in the index", a.Key)
		}
	}
	return nil
}

// checkArrivalIndex checks that a key of the index is that of its arrival.
func checkArrivalIndex(p *part, tx *bbolt.Tx, k, v []byte) error {
	var key archive.Key
	err := errors.New("a key of no kind")
	switch {
	case len(k) > 2 && k[0] == arrivalsByState && len(v) == 0:
		err = copyKey(&key, k[2:])
	case len(k) > 0 && (k[0] == arrivalsByItem || k[0] == receivedByID):
		err = copyKey(&key, v)
	}
	if err != nil {
		return p.reportError(arrivalIndexBucket, err)
	}
	a, ok, err := readArrival(tx, key)
	if err == nil && (!ok || !slices.ContainsFunc(indexKeys(a), func(has []byte) bool { return bytes.Equal(has, k) })) {
		return p.reportProblem(arrivalIndexBucket, "arrival %s is not found so", key)
	}
	return nil // one that cannot be read is reported where it lies
}

// arrivalPasses are the steps of a check that are about arrivals and notices.
func arrivalPasses(each func(bucket []byte, check func(p *part, tx *bbolt.Tx, k, v []byte) error) error) []pass {
	return []pass{
		{arrivalBucket, func() error { return each(arrivalBucket, checkArrival) }},
		{arrivalIndexBucket, func() error { return each(arrivalIndexBucket, checkArrivalIndex) }},
		{noticeBucket, func() error { return each(noticeBucket, checkNotice) }},
	}
}
