package boltledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// migrate brings a ledger of schema 1 to schema 2 in one transaction, after a copy of
// the file was made and synced beside it. A crash leaves the one or the other.
//
// Schema 2 gave the due index its lanes, numbers of the service their generation, and
// the ledger its epoch and its marks.
func (l *Ledger) migrate(dir string, copied bool) error {
	now := time.Now()
	if !copied {
		name := fmt.Sprintf("%s.schema%d-%s", fileName, l.info.Schema, stamped(now))
		if err := l.copyTo(dir, name); err != nil {
			return fmt.Errorf("copy the ledger before its migration: %w", err)
		}
	}
	info := l.info
	info.Schema, info.Epoch = Schema, max(info.Epoch, 1)
	var g *gather
	err := l.update(func(tx *bbolt.Tx) error {
		g = &gather{tx: tx, ledger: l, first: l.end, head: l.end, balance: l.balance, entries: map[archive.Key]*work{}}
		m := marking{mark: ledger.Mark{Word: ledger.MarkMigrated, By: ledger.Human{UID: ledger.Vaultd}, At: now,
			Cause: fmt.Sprintf("from schema %d to schema %d", l.info.Schema, Schema)}}
		refused, err := m.do(g)
		if err = errors.Join(refused, err, l.rederive(tx)); err != nil {
			return err
		}
		meta := tx.Bucket(metaBucket)
		_, err = g.finish()
		return errors.Join(err, meta.Put(schemaKey, []byte(strconv.Itoa(Schema))), meta.Put(infoKey, infoForm.seal(&info)))
	})
	if err != nil {
		return fmt.Errorf("migrate the ledger to schema %d: %w", Schema, err)
	}
	l.info, l.end, l.marks = info, g.head, g.marks
	return nil
}

// rederive makes the due index anew, moves what is not at rest any more, and gives each number of the service the
// generation that it was given to.
func (l *Ledger) rederive(tx *bbolt.Tx) error {
	if err := tx.DeleteBucket(dueBucket); err != nil {
		return err
	}
	due, err := tx.CreateBucket(dueBucket)
	if err != nil {
		return err
	}
	var astray []archive.Key // at rest by the rule of schema 1
	for _, bucket := range [][]byte{openBucket, doneBucket} {
		c := tx.Bucket(bucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			e, err := entryAt(bucket, k, v)
			if err == nil {
				err = rederiveOne(tx, due, e)
			}
			if err != nil {
				return err
			}
			if !bytes.Equal(bucketOf(e), bucket) {
				astray = append(astray, e.Key)
			}
		}
	}
	for _, key := range astray {
		from, to := doneBucket, openBucket
		if tx.Bucket(from).Get(key[:]) == nil {
			from, to = to, from
		}
		record := bytes.Clone(tx.Bucket(from).Get(key[:]))
		if err := errors.Join(tx.Bucket(from).Delete(key[:]), put(tx, to, key[:], record)); err != nil {
			return err
		}
	}
	return nil
}

func rederiveOne(tx *bbolt.Tx, due *bbolt.Bucket, e ledger.Entry) error {
	if k := dueKey(e); k != nil {
		if err := due.Put(k, []byte{}); err != nil {
			return err
		}
	}
	find := tx.Bucket(findBucket)
	for _, r := range e.Registrations {
		name := remoteName(r.Ticket.Remote)
		if v := find.Get(name); len(v) == len(e.Key) && archive.Key(v) != e.Key {
			continue // a later entry took the number over, and gives it its generation
		}
		if err := find.Put(name, append(e.Key[:], r.Generation)); err != nil {
			return err
		}
	}
	return nil
}

// stamped is a time as it stands in file names.
func stamped(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// copyTo writes the ledger as it stands beside itself, under a name that is free.
func (l *Ledger) copyTo(dir, name string) (err error) {
	tmp, err := os.CreateTemp(dir, "."+fileName+"-*.tmp") // 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	err = l.view(func(tx *bbolt.Tx) error { _, err := tx.WriteTo(tmp); return err })
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if _, err := linkFree(tmp.Name(), path(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// linkFree gives the file a second name, with a number behind it where that is taken,
// and returns it.
func linkFree(name, second string) (string, error) {
	for n := 1; ; n++ {
		to := second
		if n > 1 {
			to = fmt.Sprintf("%s-%d", second, n)
		}
		if err := os.Link(name, to); !errors.Is(err, fs.ErrExist) || n > 100 {
			return to, err
		}
	}
}
