package boltledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/bbolt"
)

// Backup writes the ledger at one moment to w and returns the number of bytes.
// It reads copied, a [Ledger.Copy], which it closes before it sends; nil: the
// ledger itself, which must stay as it is meanwhile. The caller has checked what
// is read: a backup of a damaged ledger would be trusted when it is needed.
//
// The backup has no free pages, and so nothing that was wiped from an entry. It
// is complete on the disk before the first byte is sent: a slow reader of w does
// not hold the ledger. keep bytes stay free on the disk.
func (l *Ledger) Backup(ctx context.Context, w io.Writer, keep int64, copied *os.File) (n int64, err error) {
	var made *os.File
	var size int64
	if copied == nil {
		made, size, err = l.compact(ctx, keep)
	} else {
		err = ReadOpenFile(copied, l.dir, l.loc, func(c *Ledger) (err error) {
			made, size, err = c.compact(ctx, keep)
			return err
		})
		err = errors.Join(err, copied.Close())
	}
	if err == nil {
		n, err = io.Copy(w, io.NewSectionReader(made, 0, size))
		err = errors.Join(err, made.Close())
	}
	if err != nil {
		return n, fmt.Errorf("back up ledger: %w", err)
	}
	return n, nil
}

// putAtOnce bounds what one commit of a compaction holds in memory, in bytes.
const putAtOnce = 4 << 20

// compact copies what is in the buckets into a file without a name, and returns
// how much of that file is used. It is as good as its source, and is not
// synced.
func (l *Ledger) compact(ctx context.Context, keep int64) (made *os.File, size int64, err error) {
	if made, err = createUnnamed(l.dir); err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Close())
		}
	}()
	to, err := bbolt.Open(fileName, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: true, InitialMmapSize: 1 << 20,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return duplicate(made) }})
	if err != nil {
		return made, 0, err
	}
	err = l.view(func(tx *bbolt.Tx) error {
		for _, bucket := range buckets {
			if err := l.copyBucket(ctx, to, tx.Bucket(bucket), bucket, keep); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = to.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
	}
	return made, size, errors.Join(err, to.Close())
}

// copyBucket copies one bucket in the order of its keys, in commits of bounded size.
func (l *Ledger) copyBucket(ctx context.Context, to *bbolt.DB, from *bbolt.Bucket, name []byte, keep int64) error {
	if from == nil {
		return damage("the bucket %s is missing", name)
	}
	c := from.Cursor()
	for k, v := c.First(); ; {
		if err := errors.Join(context.Cause(ctx), checkRoom(l.dir, 2*putAtOnce, keep)); err != nil { // with branches and what bbolt adds
			return err
		}
		err := to.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			b.FillPercent = 1 // keys come in their order
			for size := 0; k != nil && size < putAtOnce; k, v = c.Next() {
				if err := b.Put(k, v); err != nil {
					return err
				}
				size += len(k) + len(v)
			}
			return nil
		})
		if err != nil || k == nil {
			return err
		}
	}
}
