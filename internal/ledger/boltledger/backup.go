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
// The committer goes on meanwhile.
//
// What is written is a copy without free pages: nothing that was wiped from an
// entry is in it. It is made of a [Ledger.Copy], whose errors it returns, and
// sent when it is whole. Neither making it nor a reader of w that stalls holds
// the ledger. It needs room for two copies, and leaves keep bytes free on the
// disk.
func (l *Ledger) Backup(ctx context.Context, w io.Writer, keep int64) (n int64, err error) {
	return sendBackup(w, func() (*os.File, int64, error) { return l.compactCopy(ctx, keep) })
}

// BackupInPlace is Backup of a ledger that nobody else works with. It reads the
// ledger itself and needs room for one copy.
func (l *Ledger) BackupInPlace(ctx context.Context, w io.Writer, keep int64) (n int64, err error) {
	return sendBackup(w, func() (*os.File, int64, error) { return l.compact(ctx, keep) })
}

func sendBackup(w io.Writer, compact func() (*os.File, int64, error)) (n int64, err error) {
	made, size, err := compact()
	if err == nil {
		n, err = io.Copy(w, io.NewSectionReader(made, 0, size))
		err = errors.Join(err, made.Close())
	}
	if err != nil {
		return n, fmt.Errorf("back up ledger: %w", err)
	}
	return n, nil
}

func (l *Ledger) compactCopy(ctx context.Context, keep int64) (made *os.File, size int64, err error) {
	// The copy ends before anything is sent: its room is free while a reader takes its time.
	err = l.ReadCopy(ctx, keep, func(c *Ledger) (err error) {
		made, size, err = c.compact(ctx, keep)
		return err
	})
	return made, size, err
}

// putAtOnce bounds what one commit of a compaction holds in memory, in bytes.
const putAtOnce = 4 << 20

// compact copies what is in the buckets into a file without a name, and returns
// how much of that file is used. It is as good as its source; nobody waits for
// it to be on the disk.
func (l *Ledger) compact(ctx context.Context, keep int64) (made *os.File, size int64, err error) {
	// A backup of a damaged ledger would be trusted on the day when it is needed.
	if err := l.checkAllPages(func() error { return context.Cause(ctx) }); err != nil {
		return nil, 0, err
	}
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
