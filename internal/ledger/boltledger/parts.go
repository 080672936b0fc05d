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

// reading says which records are read, and in which order.
type reading[T any] struct {
	what    string   // for errors
	buckets [][]byte // merged in the order of their keys
	prefix  []byte   // of their keys
	from    []byte   // the rest of the first key
	decode  func(tx *bbolt.Tx, bucket, k, v []byte) (T, error)

	newestFirst bool // from the last key to the first; without a prefix
}

// each calls fn with each record, and returns what fn returns first. A record
// that changes meanwhile is seen as before or as after the change.
func (r reading[T]) each(l *Ledger, fn func(T) error) error {
	return r.inParts(l, func(part []T) error {
		for _, v := range part {
			if err := fn(v); err != nil {
				return err
			}
		}
		return nil
	})
}

// inParts calls do with the records in parts, each read in a transaction of its
// own. do gets a part outside of it: a slow reader holds no pages.
func (r reading[T]) inParts(l *Ledger, do func(part []T) error) error {
	for last := []byte(nil); ; {
		var part []T
		err := l.view(func(tx *bbolt.Tx) (err error) { part, last, err = r.readPart(tx, last); return err })
		if err != nil {
			return fmt.Errorf("read %s: %w", r.what, err)
		}
		if len(part) == 0 {
			return nil
		}
		if err := do(part); err != nil {
			return err
		}
	}
}

// record is one record of a bucket, valid within its transaction.
type record struct{ bucket, key, value []byte }

// compare compares two records in the order of reading.
func (r reading[T]) compare(a, b record) int {
	if r.newestFirst {
		a, b = b, a
	}
	return bytes.Compare(a.key, b.key)
}

// readPart reads the records that follow a key, and returns the key of the last
// one; nil: there was none before.
func (r reading[T]) readPart(tx *bbolt.Tx, after []byte) (part []T, last []byte, err error) {
	var all []record
	var until *record // what follows it in its bucket is not known
	for _, bucket := range r.buckets {
		found, isCut := r.follow(tx, bucket, after)
		if all = append(all, found...); !isCut {
			continue
		}
		if end := found[len(found)-1]; until == nil || r.compare(end, *until) < 0 {
			until = &end
		}
	}
	slices.SortFunc(all, r.compare)
	for _, f := range all {
		if until != nil && r.compare(f, *until) > 0 {
			break
		}
		v, err := r.decode(tx, f.bucket, f.key, f.value)
		if err != nil {
			return nil, nil, err
		}
		part, last = append(part, v), f.key
	}
	return part, bytes.Clone(last), nil
}

// follow returns the records of a bucket that follow a key, as many as a part
// may have. isCut says that there may be more.
func (r reading[T]) follow(tx *bbolt.Tx, bucket, after []byte) (found []record, isCut bool) {
	c, size := tx.Bucket(bucket).Cursor(), 0
	var k, v []byte
	step := c.Next
	switch {
	case !r.newestFirst && after == nil:
		k, v = c.Seek(slices.Concat(r.prefix, r.from))
	case !r.newestFirst:
		k, v = c.Seek(append(bytes.Clone(after), 0))
	default:
		step = c.Prev
		if after != nil {
			k, _ = c.Seek(after)
		}
		if k == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
	}
	for ; k != nil && bytes.HasPrefix(k, r.prefix); k, v = step() {
		found, size = append(found, record{bucket, k, v}), size+len(v)
		if len(found) == partRecords || size >= partBytes {
			return found, true
		}
	}
	return found, false
}

func copyKey(to *archive.Key, from []byte) error {
	if copy(to[:], from) != len(to) {
		return damage("a key of %d bytes", len(from))
	}
	return nil
}
