package boltledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Backup writes the ledger at one moment to w and returns the number of bytes. The
// committer goes on meanwhile.
//
// What is written is a copy without free pages: nothing that was wiped from an entry is
// in it. The copy is made beside the ledger first, at the speed of the disk, and needs
// room there; a reader of w that stalls holds up nobody.
func (l *Ledger) Backup(w io.Writer) (n int64, err error) {
	if n, err = l.backup(w); err != nil {
		return n, fmt.Errorf("back up ledger: %w", err)
	}
	return n, nil
}

func (l *Ledger) backup(w io.Writer) (n int64, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(l.db.Path()), "."+fileName+"-*.tmp") // 0600
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, tmp.Close()) }()
	size, err := l.compact(tmp.Name())
	// The copy has no name any more while it is read: a crash leaves nothing behind.
	if err = errors.Join(err, os.Remove(tmp.Name())); err != nil {
		return 0, err
	}
	return io.Copy(w, io.NewSectionReader(tmp, 0, size))
}

// copiedAtOnce bounds what one commit of a copy holds in memory, in bytes.
const copiedAtOnce = 4 << 20

// compact copies the ledger into the empty file name, and returns how much of that file
// is used. The copy is as good as its source; nobody waits for it to be on the disk.
func (l *Ledger) compact(name string) (size int64, err error) {
	to, err := bbolt.Open(name, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, NoSync: true, InitialMmapSize: 1 << 20})
	if err != nil {
		return 0, err
	}
	// A backup of a damaged ledger would be trusted on the day when it is needed.
	if err := l.checkAllPages(nil); err != nil {
		return 0, errors.Join(err, to.Close())
	}
	// One read transaction: the copy shows one moment. It ends before the copy is sent anywhere.
	err = l.view(func(tx *bbolt.Tx) error {
		for _, bucket := range buckets {
			if err := copyBucket(to, tx.Bucket(bucket), bucket); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = to.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
	}
	return size, errors.Join(err, to.Close())
}

// copyBucket copies one bucket in the order of its keys, in commits of bounded size.
func copyBucket(to *bbolt.DB, from *bbolt.Bucket, name []byte) error {
	if from == nil {
		return damage("the bucket %s is missing", name)
	}
	c := from.Cursor()
	for k, v := c.First(); ; {
		err := to.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			b.FillPercent = 1 // keys come in their order
			for size := 0; k != nil && size < copiedAtOnce; k, v = c.Next() {
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
