package boltledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// Create makes a new ledger in dir: written next to its place, synced, and only
// then named. It refuses with [ledger.ErrExists] where a ledger is or was.
// After a crash there is either no ledger, perhaps with a temporary file next
// to it, or a whole one. It gets its own key for its receipts; those in info
// are of older ones.
func Create(dir string, info ledger.Info) error {
	if err := create(dir, info); err != nil {
		return fmt.Errorf("create ledger %q: %w", pathIn(dir, fileName), err)
	}
	return nil
}

func create(dir string, info ledger.Info) error {
	if info.ID == "" || len(info.ID) > maxLedgerID || info.Environment == "" {
		return errors.New("it needs an id of at most 64 characters and an environment")
	}
	// A head alone also means that there was a ledger, and that somebody must look for it.
	if _, err := os.Lstat(pathIn(dir, fileName)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: %s is there", ledger.ErrExists, fileName), err)
	}
	switch outside, err := readHead(dir); {
	case err != nil:
		return err
	case outside != nil:
		return fmt.Errorf("%w: %s is there", ledger.ErrExists, headNameOf(outside.Incarnation))
	}
	var s summary
	// bbolt syncs the file before it has its name: a crash leaves a temporary
	// file, never half a ledger. A power cut may take the name back. Then there
	// is no ledger, and init can be run again.
	err := makeInPlace(dir, func(tmp *durable.TempFile) (err error) {
		s, err = writeEmptyLedger(tmp.Name(), info)
		return err
	})
	if err != nil {
		return err
	}
	// A crash before this leaves a ledger of one line without a head, which the start accepts.
	h, err := openHead(dir, s)
	if err != nil {
		return err
	}
	return h.closeFile()
}

// writeEmptyLedger writes an empty ledger into the file name; bbolt syncs it.
func writeEmptyLedger(name string, info ledger.Info) (summary, error) {
	s := summary{Info: info, Secret: newSecret(), This: incarnation{N: 1, From: 1}}
	s.Info.Epoch, s.Info.ReceiptKeys = max(info.Epoch, 1), append([]string{s.Secret.publicKey()}, info.ReceiptKeys...)
	line := ledger.FirstLine(info.ID, info.Environment, info.Created).Encode()
	s.Head, s.At = ledger.Head{}.Next(line), info.Created.Truncate(time.Millisecond)
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return s, err
	}
	// One transaction: a file that bbolt can open has every bucket and the first line of the journal.
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		b := block{Lines: [][]byte{line}}
		meta := tx.Bucket(metaBucket)
		return errors.Join(
			writeForm(meta),
			meta.Put(summaryKey, summaryForm.encode(&s)),
			tx.Bucket(journalBucket).Put(lineKey(1), blockForm.encode(&b)),
		)
	})
	return s, errors.Join(err, db.Close())
}

// makeInPlace has fill write a ledger file under a temporary name in dir,
// synced, and gives it the name of the ledger. It never replaces a ledger,
// though another init just made one.
func makeInPlace(dir string, fill func(tmp *durable.TempFile) error) error {
	d, err := durable.Open(dir, nil)
	if err != nil {
		return err
	}
	defer d.Close() // nothing is written through it
	tmp, err := d.Create(fileName, 0o600)
	if err != nil {
		return err
	}
	defer tmp.Discard()
	if err := fill(tmp); err != nil {
		return err
	}
	return d.RenameIntoOwn(durable.TemporaryName(fileName), d, fileName)
}
