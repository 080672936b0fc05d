package boltledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// migrate brings a ledger of an older released schema to this one in one transaction,
// after a copy of the file was made and synced beside it. A crash leaves the one or the
// other: the next start copies and migrates again, or finds the work done.
func (l *Ledger) migrate(dir string, copied bool) error {
	now, from := time.Now(), l.info.Schema
	if !copied {
		// The copy is durable before the transaction begins. A crash after it leaves the copy and the old form; the next start
		// makes another copy and migrates.
		if err := l.copyTo(dir, fmt.Sprintf("%s.schema%d-%s", fileName, from, timeInName(now))); err != nil {
			return fmt.Errorf("copy the ledger before its migration: %w", err)
		}
	}
	info := l.info
	info.Schema = l.form.schema
	var g *groupCommit
	// The new form, its number and the journal line are one commit: no crash leaves a ledger between two forms.
	err := l.updateOnce(func(tx *bbolt.Tx) error {
		for _, u := range l.form.upgrades[from-1:] {
			if err := u.apply(tx); err != nil {
				return err
			}
		}
		g = l.beginGroup(tx)
		m := markRequest{mark: ledger.Mark{Name: ledger.MarkMigrated, By: ledger.Operator{UID: ledger.VaultdUID}, At: now,
			Cause: fmt.Sprintf("from schema %d to schema %d", from, info.Schema)}}
		refused, err := m.apply(g)
		if err = errors.Join(refused, err); err != nil {
			return err
		}
		if _, err = g.writeAll(); err != nil {
			return err
		}
		meta := tx.Bucket(metaBucket)
		return errors.Join(l.form.writeTo(meta), meta.Put(infoKey, infoForm.encode(&info)))
	})
	if err != nil {
		return fmt.Errorf("migrate the ledger to schema %d: %w", info.Schema, err)
	}
	l.info, l.end, l.marks, l.names = info, g.head, g.marks, g.names
	return nil
}

// timeInName returns a time as file names have it.
func timeInName(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// copyTo writes a copy of the ledger beside it, under a name that is free.
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
	// Named only after it was synced: a file with this name is complete.
	if _, err := linkUnderFreeName(tmp.Name(), pathIn(dir, name)); err != nil {
		return err
	}
	return syncDir(dir)
}

// linkUnderFreeName gives the file a second name, with a number behind it where that is taken,
// and returns it.
func linkUnderFreeName(name, second string) (string, error) {
	for n := 1; ; n++ {
		to := second
		if n > 1 {
			to = fmt.Sprintf("%s-%d", second, n)
		}
		// A link never replaces a file: an older copy stays what it is.
		if err := os.Link(name, to); !errors.Is(err, fs.ErrExist) || n > 100 {
			return to, err
		}
	}
}
