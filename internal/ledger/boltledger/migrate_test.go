package boltledger

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// old is a ledger that an older schema's own program wrote.
type old struct {
	schema, entries int
	lines           uint64
}

// olds has one of each: the first with twelve entries, two of them at rest, one of them held
// with a reason, some registered twice; the second with more of them, one registered so
// often that it lists not all of it, and one that was repeated twice.
var olds = []old{{1, 12, 71}, {2, 18, 123}}

func (o old) unpack(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{fileName, headName} {
		f, err := os.Open(filepath.Join("testdata", fmt.Sprint("schema", o.schema), name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err = errors.Join(err, f.Close(), os.WriteFile(filepath.Join(dir, name), b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func entriesOf(t *testing.T, l *Ledger) (all []ledger.Entry) {
	t.Helper()
	if err := l.Entries(archive.Key{}, false, func(e ledger.Entry) error { all = append(all, e); return nil }); err != nil {
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

func TestMigrate_I28_OpensALedgerOfAnOlderSchema(t *testing.T) {
	for _, o := range olds {
		dir := o.unpack(t)
		had := namesOfOld(t, dir)
		before, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		l := open(t, Config{Dir: dir})
		sound(t, l)
		if i := l.Info(); i.Schema != Schema || i.Epoch != 1 || i.ID != info.ID || l.Head().N != o.lines+1 || len(entriesOf(t, l)) != o.entries {
			t.Errorf("%+v, head %d, %d entries", i, l.Head().N, len(entriesOf(t, l)))
		}
		var last ledger.Line
		if err := l.Lines(o.lines+1, func(_ uint64, b []byte) (err error) { last, err = ledger.ParseLine(b); return err }); err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("from schema %d to schema %d", o.schema, Schema); last.Event != ledger.MarkMigrated || last.Key != "" || last.Rev != 1 || last.Cause != want {
			t.Errorf("the last line is %s", last.Encode())
		}
		pattern := fmt.Sprintf("%s.schema%d-*", fileName, o.schema)
		kept := copies(t, dir, pattern)
		if len(kept) != 1 {
			t.Fatalf("copies: %q", kept)
		}
		copied, err := os.ReadFile(kept[0])
		if err != nil || len(copied) == 0 || len(copied) > len(before) {
			t.Errorf("the copy has %d bytes of %d: %v", len(copied), len(before), err)
		}
		if i, h, err := Examine(kept[0]); err != nil || i.Schema != o.schema || h.N != o.lines {
			t.Errorf("the copy: %+v %d %v", i, h.N, err)
		}
		l.Close()
		l = open(t, Config{Dir: dir}) // once
		if l.Head().N != o.lines+1 || len(copies(t, dir, pattern)) != 1 {
			t.Error("it was migrated again")
		}
		for name, key := range had {
			if k, ok, err := l.lookup([]byte(name)); k != key || !ok || err != nil {
				t.Errorf("%q: %v %v %v, it led to %v", name, k, ok, err, key)
			}
		}
		if len(had) < 2*o.entries {
			t.Errorf("%d names: vacuous", len(had))
		}
		lanes, err := l.Lanes(ledger.Register)
		if err != nil || len(lanes) != 1 || lanes[0] != "vault V1" {
			t.Errorf("lanes %q %v", lanes, err)
		}
	}
}

// namesOfOld reads where the names of an older schema led.
func namesOfOld(t *testing.T, dir string) map[string]archive.Key {
	t.Helper()
	had := map[string]archive.Key{}
	edit(t, dir, func(tx *bbolt.Tx) error {
		return tx.Bucket(findBucket).ForEach(func(k, v []byte) error { had[string(k)] = archive.Key(v[:16]); return nil })
	})
	return had
}

// The machine dies at each step of the migration; the next start finishes it.
func TestMigrate_I28_SurvivesACrash(t *testing.T) {
	broken := errors.New("the power is gone")
	for _, o := range olds {
		for _, op := range []string{"commit", "committed"} {
			dir := o.unpack(t)
			_, err := Open(Config{Dir: dir, Fault: func(now string) error {
				if now == op {
					return broken
				}
				return nil
			}})
			if !errors.Is(err, broken) {
				t.Fatal(err)
			}
			want := o.schema
			if op == "committed" {
				want = Schema
			}
			if i, _, err := Examine(filepath.Join(dir, fileName)); err != nil || i.Schema != want {
				t.Errorf("after %s: %+v %v", op, i, err)
			}
			l := open(t, Config{Dir: dir})
			sound(t, l)
			if l.Info().Schema != Schema || l.Head().N != o.lines+1 {
				t.Errorf("after %s: %+v %d", op, l.Info(), l.Head().N)
			}
			l.Close()
		}
	}
}
