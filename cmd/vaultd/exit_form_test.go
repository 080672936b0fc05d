package main_test

import (
	"vaultd/internal/test/kit"

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
		kit.Must(t, s.ledger.Close())
		db, err := bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil)
		kit.Must(t, err)
		err = db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			return errors.Join(meta.Put([]byte("schema"), []byte(schema)), meta.Put([]byte("form"), []byte("another one")))
		})
		kit.Must(t, errors.Join(err, db.Close()))
		for _, command := range []string{"list", "status", "verify"} {
			if out, errs, code := runHere("--config", s.config, command); code != exitConfig || !strings.Contains(errs, hint) {
				t.Errorf("schema %s: %s: exit %d: %s%s", schema, command, code, out, errs)
			}
		}
	}
}
