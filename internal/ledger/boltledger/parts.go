package boltledger

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
)

// partRecords and partBytes bound what one read transaction collects. A reader that
// takes its time between parts holds nothing: an open read transaction would keep
// every page that is replaced meanwhile from being used again.
const (
	partRecords = 256
	partBytes   = 256 << 10
)

// viewer makes one read transaction.
type viewer func(fn func(*bbolt.Tx) error) error

// inParts reads in parts, each in a transaction of its own, until a part is
// empty. do gets each part outside of the transaction: a slow reader holds no
// pages.
func inParts[T any](view viewer, what string, next func(*bbolt.Tx) (part []T, err error), do func(part []T) error) error {
	for {
		var part []T
		err := view(func(tx *bbolt.Tx) (err error) { part, err = next(tx); return err })
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		if len(part) == 0 {
			return nil
		}
		if err := do(part); err != nil {
			return err
		}
	}
}

// oneByOne returns a function that calls fn with each of a part, and returns what fn returns first.
func oneByOne[T any](fn func(T) error) func(part []T) error {
	return func(part []T) error {
		for _, v := range part {
			if err := fn(v); err != nil {
				return err
			}
		}
		return nil
	}
}

// order is in which direction records are read.
type order bool

const (
	oldestFirst order = false
	newestFirst order = true
)

// reading says which records are read, and in which order.
type reading[T any] struct {
	what    string   // for errors
	buckets [][]byte // merged in the order of their keys
	prefix  []byte   // of their keys; only with oldestFirst
	in      order
	decode  func(tx *bbolt.Tx, bucket, k, v []byte) (T, error)
}

// inParts calls do with the records, a bounded number at a time. A record that
// changes meanwhile is seen as before or as after the change.
func (r reading[T]) inParts(view viewer, do func(part []T) error) error {
	var last []byte // the key that was read last; nil: none yet
	return inParts(view, r.what, func(tx *bbolt.Tx) (part []T, err error) {
		var found []record
		for _, bucket := range r.buckets {
			found = append(found, r.behind(tx, bucket, last)...)
		}
		slices.SortFunc(found, func(a, b record) int {
			if r.in == newestFirst {
				a, b = b, a
			}
			return bytes.Compare(a.key, b.key)
		})
		for _, f := range found[:min(len(found), partRecords)] {
			v, err := r.decode(tx, f.bucket, f.key, f.value)
			if err != nil {
				return nil, err
			}
			part, last = append(part, v), f.key
		}
		last = bytes.Clone(last) // it outlives the transaction
		return part, nil
	}, do)
}

// record is one record of a bucket, valid within its transaction.
type record struct{ bucket, key, value []byte }

// behind returns the records of a bucket that follow a key, as many as a part has.
func (r reading[T]) behind(tx *bbolt.Tx, bucket, last []byte) (found []record) {
	c := tx.Bucket(bucket).Cursor()
	var k, v []byte
	step := c.Next
	switch {
	case r.in == newestFirst && last == nil:
		step = c.Prev
		k, v = c.Last()
	case r.in == newestFirst:
		step = c.Prev
		if k, _ = c.Seek(last); k == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
	case last == nil:
		k, v = c.Seek(r.prefix)
	default:
		k, v = c.Seek(append(bytes.Clone(last), 0))
	}
	for ; k != nil && bytes.HasPrefix(k, r.prefix) && len(found) < partRecords; k, v = step() {
		found = append(found, record{bucket, k, v})
	}
	return found
}

func copyKey(to *archive.Key, from []byte) error {
	if copy(to[:], from) != len(to) {
		return damage("a key of %d bytes", len(from))
	}
	return nil
}
