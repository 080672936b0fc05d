package boltledger

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// nextForm is a form that could follow this program's: its upgrade leaves a mark of its
// own in the ledger.
func nextForm() *storedForm {
	f := currentForm()
	return &storedForm{schema: f.schema + 1, digest: "the next form", upgrades: []upgrade{{from: f.digest, apply: func(tx *bbolt.Tx) error {
		return putValue(tx, metaBucket, []byte("upgraded"), []byte("once"))
	}}}}
}

// seeded makes a ledger of this program's form with some entries and closes it.
func seeded(t *testing.T) (dir string, lines uint64, entries []ledger.Entry) {
	t.Helper()
	dir = newLedger(t)
	l := open(t, Config{Dir: dir})
	for n := range 5 {
		newDoc(t, l, n).archived()
	}
	lines, entries = l.Head().N, entriesOf(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, lines, entries
}

func entriesOf(t *testing.T, l *Ledger) (all []ledger.Entry) {
	t.Helper()
	if err := l.EntriesOldestFirst(func(e ledger.Entry) error { all = append(all, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func copies(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func upgraded(t *testing.T, dir string) (value string) {
	t.Helper()
	edit(t, dir, func(tx *bbolt.Tx) error {
		value = string(bytes.Clone(tx.Bucket(metaBucket).Get([]byte("upgraded"))))
		return nil
	})
	return value
}

func TestMigrate_I28_OpensALedgerOfAnOlderSchema(t *testing.T) {
	dir, lines, entries := seeded(t)
	next := nextForm()
	l := open(t, Config{Dir: dir, form: next})
	sound(t, l)
	if i := l.Info(); i.Schema != next.schema || i.ID != info.ID || l.Head().N != lines+1 || len(entriesOf(t, l)) != len(entries) {
		t.Errorf("%+v, head %d, %d entries", i, l.Head().N, len(entriesOf(t, l)))
	}
	var last ledger.Line
	if err := l.Lines(lines+1, func(_ uint64, b []byte) (err error) { last, err = ledger.ParseLine(b); return err }); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("from schema %d to schema %d", Schema, next.schema); last.Event != ledger.MarkMigrated || last.Key != "" || last.Rev != 1 || last.Cause != want {
		t.Errorf("the last line is %s", last.Encode())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	pattern := fmt.Sprintf("%s.schema%d-*", fileName, Schema)
	kept := copies(t, dir, pattern)
	if len(kept) != 1 {
		t.Fatalf("copies: %q", kept)
	}
	if i, h, err := InspectFile(kept[0]); err != nil || i.Schema != Schema || h.N != lines {
		t.Errorf("the copy: %+v %d %v", i, h.N, err)
	}
	l = open(t, Config{Dir: dir, form: next})
	if l.Head().N != lines+1 || len(copies(t, dir, pattern)) != 1 {
		t.Error("it was migrated again")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := upgraded(t, dir); got != "once" {
		t.Errorf("the upgrade left %q", got)
	}
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, ledger.ErrNewerSchema) {
		t.Errorf("the program of schema %d opens the ledger of the next one: %v", Schema, err)
	}
}

// The machine dies at each step of the migration; the next start finishes it.
func TestMigrate_I28_SurvivesACrash(t *testing.T) {
	broken := errors.New("the power is gone")
	for _, op := range []string{"copied", "commit", "committed"} {
		dir, lines, _ := seeded(t)
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
		if _, err := Open(Config{Dir: dir, form: &dying, Fault: fault}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		want := ""
		if op == "committed" {
			want = "once"
		}
		if got := upgraded(t, dir); got != want {
			t.Errorf("after %s the ledger holds %q of the upgrade, not %q", op, got, want)
		}
		l := open(t, Config{Dir: dir, form: next})
		sound(t, l)
		if l.Info().Schema != next.schema || l.Head().N != lines+1 {
			t.Errorf("after %s: %+v %d", op, l.Info(), l.Head().N)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got := upgraded(t, dir); got != "once" {
			t.Errorf("after %s and one more start the upgrade left %q", op, got)
		}
	}
}

// A form that was never released is refused, whatever its number, and nothing is changed.
func TestOpen_I28_RefusesADevelopmentVersion(t *testing.T) {
	set := func(key, value []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return putValue(tx, metaBucket, key, value) }
	}
	remove := func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(formKey) }
	for name, change := range map[string]func(*bbolt.Tx) error{
		"OfThisSchema":   set(formKey, []byte("0123456789abcdef")),
		"WithoutADigest": remove,
		"WithOtherBuckets": func(tx *bbolt.Tx) error {
			return errors.Join(set(formKey, []byte("0123456789abcdef"))(tx), tx.DeleteBucket(countsBucket))
		},
		"OfAHigherSchema":     func(tx *bbolt.Tx) error { return errors.Join(remove(tx), set(schemaKey, []byte("3"))(tx)) },
		"OfAnOlderUnreleased": nil, // see below
	} {
		t.Run(name, func(t *testing.T) {
			dir, lines, _ := seeded(t)
			c := Config{Dir: dir}
			if change == nil {
				c.form = nextForm()
				c.form.upgrades[0].from = "the form that was released"
			} else {
				edit(t, dir, change)
			}
			if _, err := Open(c); !errors.Is(err, ledger.ErrDevelopment) {
				t.Fatalf("open: %v", err)
			}
			if len(copies(t, dir, fileName+".schema*")) != 0 {
				t.Error("a copy was made")
			}
			edit(t, dir, func(tx *bbolt.Tx) error {
				end, err := headAt(tx, lines+1)
				if end.N != lines {
					t.Errorf("the journal ends at line %d, not %d", end.N, lines)
				}
				return err
			})
		})
	}
}

// The digest of the form follows every table.
func TestForm_I28_DigestFollowsTheTables(t *testing.T) {
	before := digestOfTables()
	rows := causeForm.fields
	defer func() { causeForm.fields = rows }()
	causeForm.fields = append(rows[:1:1], textField(3, "text", func(c *ledger.Cause) *string { return &c.Text }))
	if digestOfTables() == before {
		t.Error("a field has another number, and the digest is the same")
	}
}
