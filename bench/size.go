package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger/boltledger"
)

// size prints where the bytes of a ledger are, a document, by bucket.
func size(_ context.Context, f *flags) (err error) {
	words, err := f.read("DIR")
	if err != nil {
		return err
	}
	l, err := boltledger.Open(boltledger.Config{Dir: words[0]})
	if err != nil {
		return err
	}
	docs := float64(max(l.Balance().Seen, 1))
	if err := l.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(filepath.Join(words[0], "ledger.db"), 0, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	row := func(name string, records, pages int) {
		fmt.Fprintf(f.stdout, "%-12s %8.1f %8.1f\n", name, float64(records)/docs, float64(pages)/docs)
	}
	fmt.Fprintf(f.stdout, "%.0f documents; bytes of each in records, and in the file with the room in pages\n", docs)
	return db.View(func(tx *bbolt.Tx) error {
		used, all := 0, int(tx.Size())
		err := tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			held, s := 0, b.Stats()
			err := b.ForEach(func(k, v []byte) error { held += len(k) + len(v); return nil })
			row(string(name), held, s.BranchAlloc+s.LeafAlloc)
			used += s.BranchAlloc + s.LeafAlloc
			return err
		})
		row("free pages", 0, all-used)
		row("together", 0, all)
		return err
	})
}
