package boltledger

import (
	"bytes"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger/arrival"
)

// checkArrival checks one arrival, and that it is found by its state and by its number at the service.
func (c *checker) checkArrival(tx *bbolt.Tx, _, k, v []byte) error {
	a, err := decodeArrival(k, v)
	if err != nil {
		return c.reportUnread(arrivalBucket, err)
	}
	c.arrived.CountChange(arrival.None, a.State)
	c.revs += uint64(a.Rev)
	if c.witness != nil {
		c.witness.Arrival(a)
	}
	// One that is missing there would never be fetched: the engine reads the index and nothing else.
	for _, has := range indexKeys(a) {
		if v := tx.Bucket(arrivalIndexBucket).Get(has); v == nil || has[0] != arrivalsByState && !bytes.Equal(v, a.Key[:]) {
			return c.reportProblem(arrivalBucket, "%s is not in the index", a.Key)
		}
	}
	return nil
}

// checkArrivalIndex checks that a key of the index is that of its arrival.
func (c *checker) checkArrivalIndex(tx *bbolt.Tx, _, k, v []byte) error {
	var key archive.Key
	err := errors.New("a key of no kind")
	switch {
	case len(k) > 2 && k[0] == arrivalsByState && len(v) == 0:
		err = copyKey(&key, k[2:])
	case len(k) > 0 && (k[0] == arrivalsByItem || k[0] == receivedByID):
		err = copyKey(&key, v)
	}
	if err != nil {
		return c.reportError(arrivalIndexBucket, err)
	}
	a, ok, err := readArrival(tx, key)
	if err == nil && (!ok || !slices.ContainsFunc(indexKeys(a), func(has []byte) bool { return bytes.Equal(has, k) })) {
		return c.reportProblem(arrivalIndexBucket, "arrival %s is not found so", key)
	}
	return nil // one that cannot be read is reported where it lies
}
