package boltledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// InspectFile looks at a ledger file that lies anywhere, a backup most likely, as Open
// would before it trusted it: its pages, its records of itself and the journal's last
// block. It returns what the ledger says of itself and the end of its journal, and
// changes nothing but rights that are too wide.
func InspectFile(name string) (info ledger.Info, head ledger.Head, err error) {
	err = recoverDamage(func() error {
		db, err := bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second, OpenFile: examinedOpener(0)})
		if err != nil {
			return err
		}
		err = db.View(func(tx *bbolt.Tx) error {
			var s summary
			var err error
			info, s, err = readSelf(tx, currentForm())
			head = s.head
			return err
		})
		return errors.Join(err, db.Close())
	})
	if err != nil {
		err = fmt.Errorf("examine ledger %q: %w", name, err)
	}
	return info, head, err
}

// VerifyFile checks a ledger file that lies anywhere, of this schema, as Verify checks
// an open one. It changes nothing but rights that are too wide.
func VerifyFile(ctx context.Context, name string) (found []ledger.Problem, err error) {
	err = recoverDamage(func() (err error) {
		db, err := bbolt.Open(name, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second, OpenFile: examinedOpener(0)})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		l := &Ledger{db: db, form: currentForm()}
		err = db.View(func(tx *bbolt.Tx) error {
			_, s, err := readSelf(tx, currentForm())
			if err == nil {
				l.loc, err = time.LoadLocation(s.zone) // the years of its totals
			}
			return err
		})
		if err == nil {
			found, err = l.Verify(ctx)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("verify ledger %q: %w", name, err)
	}
	return found, err
}
