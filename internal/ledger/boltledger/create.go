package boltledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"

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

func create(dir string, info ledger.Info) (err error) {
	if info.ID == "" || len(info.ID) > maxLedgerID || info.Environment == "" {
		return errors.New("it needs an id of at most 64 characters and an environment")
	}
	// A head alone also means that there was a ledger, and that somebody must look for it.
	for _, name := range []string{fileName, headName} {
		if _, err := os.Lstat(pathIn(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%w: %s is there", ledger.ErrExists, name), err)
		}
	}
	tmp, err := os.CreateTemp(dir, "."+fileName+"-*.tmp") // 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(tmp.Name())) }()
	if err := tmp.Close(); err != nil {
		return err
	}
	// bbolt syncs the file before it has its name: a crash leaves a temporary file, never half a ledger.
	head, err := writeEmptyLedger(tmp.Name(), info)
	if err != nil {
		return err
	}
	// A link, unlike a rename, never replaces a ledger that another init just made.
	if err := os.Link(tmp.Name(), pathIn(dir, fileName)); err != nil {
		return err
	}
	// A power cut before this sync may take the name back. Then there is no ledger, and init can be run again.
	if err := syncDir(dir); err != nil {
		return err
	}
	// A crash before this leaves a ledger of one line without a head, which the start accepts.
	h, err := openHead(dir, info.ID, head)
	if err != nil {
		return err
	}
	return h.closeFile()
}

// writeEmptyLedger writes an empty ledger into the file name; bbolt syncs it.
func writeEmptyLedger(name string, info ledger.Info) (ledger.Head, error) {
	own := newSecret()
	info.Epoch, info.ReceiptKeys = max(info.Epoch, 1), append([]string{own.publicKey()}, info.ReceiptKeys...)
	line := ledger.FirstLine(info.ID, info.Environment, info.Created).Encode()
	head := ledger.Head{}.Next(line)
	db, err := bbolt.Open(name, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return head, err
	}
	// One transaction: a file that bbolt can open has every bucket and the first line of the journal.
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		s := summary{head: head}
		b := block{count: 1, lines: [][]byte{line}}
		meta := tx.Bucket(metaBucket)
		return errors.Join(
			writeForm(meta),
			meta.Put(infoKey, infoForm.encode(&info)),
			meta.Put(secretKey, secretForm.encode(&own)),
			meta.Put(summaryKey, summaryForm.encode(&s)),
			tx.Bucket(journalBucket).Put(lineKey(1), blockForm.encode(&b)),
		)
	})
	return head, errors.Join(err, db.Close())
}

// writeHeadOfCopy writes the outside head for a copy of a ledger that nobody works on.
func writeHeadOfCopy(dir string) error {
	db, _, err := openFile(dir, nil, mapSize)
	if err != nil {
		return err
	}
	h := &headFile{db: pathIn(dir, fileName)}
	err = recoverDamage(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			info, s, err := readSelf(tx)
			if err != nil {
				return err
			}
			// The copy has no head of its own yet. It is the latest by definition, since nobody worked on it.
			h.ledger = info.ID
			return h.createFile(dir, s.head)
		})
	})
	if err == nil {
		err = h.closeFile()
	}
	return errors.Join(err, db.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// A rename or a link is durable only after its directory was synced.
	return errors.Join(d.Sync(), d.Close())
}
