package main_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// A ledger whose form is not known ends every command with 78 and the next step to take.
func TestExit_I28_AFormThatIsNotKnown(t *testing.T) {
	for schema, hint := range map[string]string{"99": "install the newer vaultd", "1": "vaultd rebuild"} {
		s := newShelf(t)
		if err := s.ledger.Close(); err != nil {
			t.Fatal(err)
		}
		db, err := bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			return errors.Join(meta.Put([]byte("schema"), []byte(schema)), meta.Put([]byte("form"), []byte("another one")))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"list", "status", "verify"} {
			if out, errs, code := runHere("--config", s.config, command); code != exitConfig || !strings.Contains(errs, hint) {
				t.Errorf("schema %s: %s: exit %d: %s%s", schema, command, code, out, errs)
			}
		}
	}
}
