package boltledger

import (
	"bytes"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
)

// chunkEntries and chunkBytes bound what one read transaction collects. A reader that
// takes its time between pages holds nothing: an open read transaction would keep
// every page that is replaced meanwhile from being used again.
const (
	chunkEntries = 256
	chunkBytes   = 256 << 10
)

// viewer makes one read transaction.
type viewer func(fn func(*bbolt.Tx) error) error

// inParts reads in parts, each in a transaction of its own: next returns a part
// and whether there may be more. do gets each part outside of the transaction:
// a slow reader holds no pages.
func inParts[T any](view viewer, what string, next func(*bbolt.Tx) (part []T, more bool, err error), do func(part []T) error) error {
	for more := true; more; {
		var part []T
		err := view(func(tx *bbolt.Tx) (err error) { part, more, err = next(tx); return err })
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		if err := do(part); err != nil {
			return err
		}
	}
	return nil
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
	from := r.prefix // the key that comes next; nil: the first one
	return inParts(view, r.what, func(tx *bbolt.Tx) (part []T, more bool, err error) {
		var walks []*bucketWalk
		for _, b := range r.buckets {
			walks = append(walks, newBucketWalk(tx, b, from, r.in))
		}
		for {
			w := nextWalk(walks, r.in)
			if w.key == nil || !bytes.HasPrefix(w.key, r.prefix) {
				return part, false, nil
			}
			if len(part) == chunkEntries {
				from = bytes.Clone(w.key)
				return part, true, nil
			}
			v, err := r.decode(tx, w.bucket, w.key, w.value)
			if err != nil {
				return nil, false, err
			}
			part = append(part, v)
			w.key, w.value = w.step()
		}
	}, do)
}

// bucketWalk goes through one bucket in either direction.
type bucketWalk struct {
	bucket, key, value []byte
	step               func() (k, v []byte)
}

// newBucketWalk begins a walk with the key from or the one that follows it;
// nil: with the first one.
func newBucketWalk(tx *bbolt.Tx, bucket, from []byte, in order) *bucketWalk {
	c := tx.Bucket(bucket).Cursor()
	w := &bucketWalk{bucket: bucket, step: c.Next}
	w.key, w.value = c.Seek(from)
	if in == oldestFirst {
		return w
	}
	w.step = c.Prev
	switch {
	case from == nil || w.key == nil:
		w.key, w.value = c.Last()
	case !bytes.Equal(w.key, from):
		w.key, w.value = c.Prev()
	}
	return w
}

// nextWalk returns the walk whose current entry comes next.
func nextWalk(walks []*bucketWalk, in order) *bucketWalk {
	return slices.MinFunc(walks, func(a, b *bucketWalk) int {
		switch {
		case a.key == nil || b.key == nil:
			return len(b.key) - len(a.key) // the one that is at its end comes last
		case in == newestFirst:
			return bytes.Compare(b.key, a.key)
		}
		return bytes.Compare(a.key, b.key)
	})
}

func copyKey(to *archive.Key, from []byte) error {
	if copy(to[:], from) != len(to) {
		return damage("a key of %d bytes", len(from))
	}
	return nil
}
