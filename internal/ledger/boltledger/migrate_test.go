package boltledger

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// schema1 unpacks a ledger that the first schema's own program wrote: twelve entries,
// two of them at rest, one of them held with a reason, some registered twice.
func schema1(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{fileName, headName} {
		f, err := os.Open(filepath.Join("testdata", "schema1", name+".gz"))
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

func TestMigrate_I28_OpensALedgerOfSchema1(t *testing.T) {
	dir := schema1(t)
	before, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, Config{Dir: dir})
	sound(t, l)
	if i := l.Info(); i.Schema != Schema || i.Epoch != 1 || i.ID != info.ID || l.Head().N != 72 || len(entriesOf(t, l)) != 12 {
		t.Errorf("%+v, head %d", i, l.Head().N)
	}
	var last ledger.Line
	if err := l.Lines(72, func(_ uint64, b []byte) (err error) { last, err = ledger.ParseLine(b); return err }); err != nil {
		t.Fatal(err)
	}
	if last.Event != ledger.MarkMigrated || last.Key != "" || last.Rev != 1 || !strings.Contains(last.Cause, "from schema 1 to schema 2") {
		t.Errorf("the last line is %s", last.Encode())
	}
	kept := copies(t, dir, fileName+".schema1-*")
	if len(kept) != 1 {
		t.Fatalf("copies: %q", kept)
	}
	copied, err := os.ReadFile(kept[0])
	if err != nil || len(copied) == 0 || len(copied) > len(before) {
		t.Errorf("the copy has %d bytes of %d: %v", len(copied), len(before), err)
	}
	if i, h, err := Examine(kept[0]); err != nil || i.Schema != 1 || h.N != 71 {
		t.Errorf("the copy: %+v %d %v", i, h.N, err)
	}
	l.Close()
	l = open(t, Config{Dir: dir}) // once
	if l.Head().N != 72 || len(copies(t, dir, fileName+".schema1-*")) != 1 {
		t.Error("it was migrated again")
	}
	for _, e := range entriesOf(t, l) {
		for _, r := range e.Registrations {
			if k, ok, err := l.ByRemote(r.Ticket.Remote); k != e.Key || !ok || err != nil {
				t.Errorf("%s: %v %v %v", r.Ticket.Remote, k, ok, err)
			}
		}
	}
	lanes, err := l.Lanes(ledger.Register)
	if err != nil || len(lanes) != 1 || lanes[0] != "vault V1" {
		t.Errorf("lanes %q %v", lanes, err)
	}
}

// The machine dies at each step of the migration; the next start finishes it.
func TestMigrate_I28_SurvivesACrash(t *testing.T) {
	broken := errors.New("the power is gone")
	for _, op := range []string{"commit", "committed"} {
		dir := schema1(t)
		_, err := Open(Config{Dir: dir, Fault: func(now string) error {
			if now == op {
				return broken
			}
			return nil
		}})
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		want := 1
		if op == "committed" {
			want = Schema
		}
		if i, _, err := Examine(filepath.Join(dir, fileName)); err != nil || i.Schema != want {
			t.Errorf("after %s: %+v %v", op, i, err)
		}
		l := open(t, Config{Dir: dir})
		sound(t, l)
		if l.Info().Schema != Schema || l.Head().N != 72 {
			t.Errorf("after %s: %+v %d", op, l.Info(), l.Head().N)
		}
		l.Close()
	}
}
