// The tests of this file are inside the package because no schema was released
// before this one: they need a form that could follow it.

package boltledger

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// nextForm is a form that could follow this program's: its upgrade leaves a
// key in the ledger.
func nextForm() *storedForm {
	f := currentForm()
	f.upgrades = []upgrade{{from: f.digest, apply: func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("upgraded"), []byte("once"))
	}}}
	f.schema, f.digest = f.schema+1, "the next form"
	return &f
}

// seeded makes a ledger of this program's form with some entries and closes it.
func seeded(t *testing.T) (dir string, lines uint64) {
	t.Helper()
	l := newLedger(t, Config{})
	for n := range 5 {
		apply(t, l, atOnce(life(n)))
	}
	dir, lines = filepath.Dir(l.db.Path()), l.Head().N
	kit.Must(t, l.Close())
	return dir, lines
}

func copiesOf(t *testing.T, dir string) []string {
	t.Helper()
	names := kit.Value(filepath.Glob(filepath.Join(dir, fmt.Sprintf("ledger.db.schema%d-*", Schema))))(t)
	return names
}

// upgraded returns what the upgrade left in a ledger that is closed.
func upgraded(t *testing.T, dir string) (value string) {
	t.Helper()
	db := kit.Value(bbolt.Open(filepath.Join(dir, "ledger.db"), 0o600, &bbolt.Options{ReadOnly: true}))(t)
	defer db.Close()
	_ = db.View(func(tx *bbolt.Tx) error {
		value = string(tx.Bucket([]byte("meta")).Get([]byte("upgraded")))
		return nil
	})
	return value
}

// A ledger of an older schema is copied, and then brought to this one.
func TestMigrate_I28_OpensALedgerOfAnOlderSchema(t *testing.T) {
	dir, lines := seeded(t)
	next := nextForm()
	l := open(t, Config{Dir: dir, form: next})
	sound(t, l)
	if i := l.Info(); i.Schema != next.schema || i.ID != "ledger-1" || l.Head().N != lines+1 || l.Balance().Seen != 5 {
		t.Errorf("%+v, line %d, %s, want schema %d, line %d and 5 entries", i, l.Head().N, l.Balance(), next.schema, lines+1)
	}
	var last ledger.Line
	kit.Must(t, l.Lines(lines+1, func(_ uint64, b []byte) (err error) { last, err = ledger.ParseLine(b); return err }))
	if want := fmt.Sprintf("from schema %d to schema %d", Schema, next.schema); last.Event != ledger.MarkMigrated || last.Key != "" || last.Rev != 1 || last.Cause != want {
		t.Errorf("the last line is %s, want a mark of the migration %s", last.Encode(), want)
	}
	kit.Must(t, l.Close())
	kept := copiesOf(t, dir)
	kit.Need(t, len(kept) == 1, "copies = %q, want one", kept)
	if i, h, err := InspectFile(kept[0]); err != nil || i.Schema != Schema || h.N != lines {
		t.Errorf("the copy is %+v at line %d (%v), want schema %d and line %d", i, h.N, err, Schema, lines)
	}
	l = open(t, Config{Dir: dir, form: next})
	kit.Want(t, "last line after another start", l.Head().N, lines+1)
	kit.Want(t, "copies after another start", copiesOf(t, dir), kept)
	kit.Must(t, l.Close())
	kit.Want(t, "what the upgrade left", upgraded(t, dir), "once")
	kit.Fails(t, "the ledger of the next schema", kit.Err(Open(Config{Dir: dir})), ledger.ErrNewerSchema)
}

// The machine dies at each step of the migration; the next start finishes it.
func TestMigrate_I28_SurvivesACrash(t *testing.T) {
	broken := errors.New("the power is gone")
	for _, op := range []string{"copied", "commit", "committed"} {
		dir, lines := seeded(t)
		next := nextForm()
		dying := *next
		fault := func(now string) error {
			if now == op {
				return broken
			}
			return nil
		}
		if op == "copied" { // the copy is there, and the upgrade dies half way
			dying.upgrades = []upgrade{{from: next.upgrades[0].from, apply: func(tx *bbolt.Tx) error {
				return errors.Join(next.upgrades[0].apply(tx), broken)
			}}}
		}
		_, err := Open(Config{Dir: dir, form: &dying, Fault: fault})
		kit.Need(t, errors.Is(err, broken), "open: %v, want %v", err, broken)
		want := ""
		if op == "committed" {
			want = "once"
		}
		kit.Want(t, "what the upgrade left after "+op, upgraded(t, dir), want)
		l := open(t, Config{Dir: dir, form: next})
		sound(t, l)
		kit.Want(t, "schema after "+op, l.Info().Schema, next.schema)
		kit.Want(t, "last line after "+op, l.Head().N, lines+1)
		kit.Must(t, l.Close())
		kit.Want(t, "what the upgrade left one start after "+op, upgraded(t, dir), "once")
	}
}

// An older form that was never released is refused.
func TestMigrate_I28_RefusesAnUnreleasedForm(t *testing.T) {
	dir, _ := seeded(t)
	next := nextForm()
	next.upgrades[0].from = "the form that was released"
	kit.Fails(t, "open", kit.Err(Open(Config{Dir: dir, form: next})), ledger.ErrDevelopment)
	kit.Want(t, "copies", copiesOf(t, dir), nil)
}
