package boltledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// migrate brings a ledger of an older schema to this one in one transaction, after a copy
// of the file was made and synced beside it. A crash leaves the one or the other. The
// transaction holds some 60 bytes for each name in memory.
//
// Schema 2 gave the due index its lanes, numbers of the service their generation, and
// the ledger its epoch and its marks. Schema 3 laid the names in runs, gave the due index
// its second part, the totals their newest time, and standing the time of the latest alarm.
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
	err := l.update(func(tx *bbolt.Tx) (err error) {
		if l.marks > 0 {
			if l.alarmed, err = lastAlarm(tx); err != nil {
				return err
			}
		}
		g = l.begin(tx)
		m := marking{mark: ledger.Mark{Word: ledger.MarkMigrated, By: ledger.Human{UID: ledger.Vaultd}, At: now,
			Cause: fmt.Sprintf("from schema %d to schema %d", l.info.Schema, Schema)}}
		refused, err := m.do(g)
		if err = errors.Join(refused, err, l.rederive(tx), l.rebuildTotals(tx), g.shelve()); err != nil {
			return err
		}
		meta := tx.Bucket(metaBucket)
		_, err = g.finish()
		return errors.Join(err, meta.Put(schemaKey, []byte(strconv.Itoa(Schema))), meta.Put(infoKey, infoForm.seal(&info)))
	})
	if err != nil {
		return fmt.Errorf("migrate the ledger to schema %d: %w", Schema, err)
	}
	l.info, l.end, l.marks, l.names = info, g.head, g.marks, g.names
	return nil
}

// rederive makes the due index anew and moves what is not at rest any more.
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
				err = rederiveOne(due, e)
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

func rederiveOne(due *bbolt.Bucket, e ledger.Entry) error {
	for _, k := range [][]byte{dueKey(e), attentionKey(e)} {
		if k == nil {
			continue
		}
		if err := due.Put(k, []byte{}); err != nil {
			return err
		}
	}
	return nil
}

// shelve lays the names of an older schema, which stood in find by themselves, in a run.
func (g *gather) shelve() error {
	type number struct {
		name []byte
		holder
	}
	var unlisted []number
	var ps []pair
	c := g.tx.Bucket(findBucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		h := holder{}
		if len(v) < len(h.key) || !slices.Contains(kinds, k[0]) {
			return damage("find %q leads to %d bytes", k[:1], len(v))
		}
		copy(h.key[:], v)
		e, ok, err := readEntry(g.tx, h.key)
		if err != nil || !ok {
			return errors.Join(err, damage("a name (%q) leads to entry %s, which cannot be read", k[:1], h.key))
		}
		switch _, listed := bears(e, k); {
		case listed:
			ps = append(ps, pair{wordOf(k), h.key})
		case k[0] == byRemote && len(v) > len(h.key):
			h.generation = v[len(h.key)]
			unlisted = append(unlisted, number{bytes.Clone(k), h})
		default:
			return damage("a name (%q) leads to entry %s, which does not bear it", k[:1], h.key)
		}
	}
	if err := g.tx.DeleteBucket(findBucket); err != nil {
		return err
	}
	find, err := g.tx.CreateBucket(findBucket)
	if err != nil {
		return err
	}
	for _, n := range unlisted {
		if err := find.Put(n.name, n.seal()); err != nil {
			return err
		}
	}
	if err := g.names.add(find, levelOf(len(ps)), ps); err != nil {
		return err
	}
	return put(g.tx, metaBucket, runsKey, indexForm.seal(&g.names))
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
