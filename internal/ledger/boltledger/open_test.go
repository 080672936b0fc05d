package boltledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

func TestOpen_I15_RefusesWhatIsNotTheLatest(t *testing.T) {
	source, _ := filled(t)
	older := copyLedger(t, source, fileName)
	l := open(t, Config{Dir: source})
	d := newDoc(t, l, 99)
	d.do(d.claim())
	l.Close()
	cut := func(n int64) func(t *testing.T, dir string) error {
		return func(_ *testing.T, dir string) error { return os.Truncate(filepath.Join(dir, fileName), n) }
	}
	copyInto := func(from, name string) func(t *testing.T, dir string) error {
		return func(t *testing.T, dir string) error {
			b, err := os.ReadFile(filepath.Join(from, name))
			return errors.Join(err, os.WriteFile(filepath.Join(dir, name), b, 0o600))
		}
	}
	remove := func(names ...string) func(t *testing.T, dir string) error {
		return func(_ *testing.T, dir string) (err error) {
			for _, name := range names {
				err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
			}
			return err
		}
	}
	damaged := new(ledger.DamageError)
	rows := map[string]struct {
		do   func(t *testing.T, dir string) error
		want error // nil: a ledger.DamageError
		text string
	}{
		"Empty":         {cut(0), nil, "meta page"},
		"OnePage":       {cut(4096), nil, "cut off"},
		"TwoPages":      {cut(8192), nil, "cut off"},
		"HalfAPage":     {cut(70), nil, "meta page"},
		"LastPageGone":  {func(t *testing.T, dir string) error { return cut(usedBytes(t, dir)-1)(t, dir) }, nil, "cut off"},
		"OlderCopy":     {copyInto(older, fileName), ledger.ErrRolledBack, "58"},
		"Missing":       {remove(fileName, headName), ledger.ErrMissing, "the ledger is missing"},
		"Lost":          {remove(fileName), ledger.ErrMissing, "do not run"},
		"HeadGone":      {remove(headName), nil, headName},
		"HeadOfAnother": {func(t *testing.T, dir string) error { return copyInto(otherLedger(t), headName)(t, dir) }, nil, "belongs to"},
		"LedgerSwapped": {func(t *testing.T, dir string) error { return copyInto(otherLedger(t), fileName)(t, dir) }, nil, "belongs to"},
		"HeadUnreadable": {func(t *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, headName), make([]byte, 1024), 0o600)
		}, nil, "no readable"},
		"AllZero": {func(t *testing.T, dir string) error {
			return os.WriteFile(pathIn(dir, fileName), make([]byte, usedBytes(t, dir)), 0o600)
		}, nil, "meta page"},
		"TailIsZero": {func(t *testing.T, dir string) error {
			n := newest(t, dir).size * 4 // a disk that lost all but the beginning
			return errors.Join(cut(int64(n))(t, dir), cut(usedBytes(t, source))(t, dir))
		}, nil, "page"},
		"HeadNewer": {copyInto(aheadOf(t, source), headName), ledger.ErrRolledBack, "the head outside knows 59"},
		"OtherEnvironment": {func(t *testing.T, dir string) error { // the production ledger's file in the test system's place
			to := t.TempDir()
			return errors.Join(Create(to, ledger.Info{ID: "ledger-p", Environment: "production"}), copyInto(to, fileName)(t, dir))
		}, nil, "belongs to"},
		"NotALedger": {copyInto(foreignBolt(t), fileName), nil, "bucket"},
		"HeadLies":   {headThatLies, nil, "line 3"},
		"Link": {func(t *testing.T, dir string) error {
			name := filepath.Join(dir, fileName)
			return errors.Join(os.Rename(name, name+"2"), os.Symlink(fileName+"2", name))
		}, nil, "regular"},
		"Directory": {func(t *testing.T, dir string) error {
			name := filepath.Join(dir, fileName)
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o700))
		}, nil, "regular"},
		"FreelistPointsBeyond": {func(t *testing.T, dir string) error {
			p := newest(t, dir)
			return overwrite(dir, int64(p.freelist*p.size+pageHeader), 0xffff_ffff)
		}, nil, "out of order"},
		"FreelistIsNone": {func(t *testing.T, dir string) error {
			p := newest(t, dir)
			return overwrite(dir, int64(p.freelist*p.size), p.freelist+1)
		}, nil, "is none"},
		"NewestMetaTorn": {func(t *testing.T, dir string) error {
			p := newest(t, dir)
			return overwrite(dir, int64(p.txid%2*p.size)+pageHeader+56, 0) // its checksum: bbolt falls back to the commit before
		}, ledger.ErrRolledBack, "57"},
		"BothMetasTorn": {func(t *testing.T, dir string) error {
			p := newest(t, dir)
			return errors.Join(overwrite(dir, pageHeader+56, 0), overwrite(dir, int64(p.size)+pageHeader+56, 0))
		}, nil, "meta page"},
		"NewerSchema": {func(t *testing.T, dir string) error {
			edit(t, dir, func(tx *bbolt.Tx) error { return putValue(tx, metaBucket, schemaKey, []byte("4")) })
			return nil
		}, ledger.ErrNewerSchema, "schema 4"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			if err := row.do(t, dir); err != nil {
				t.Fatal(err)
			}
			l, err := Open(Config{Dir: dir})
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			ok := errors.As(err, &damaged)
			if row.want != nil {
				ok = errors.Is(err, row.want)
			}
			if !ok || !strings.Contains(err.Error(), row.text) {
				t.Errorf("%v", err)
			}
		})
	}
}

func newest(t *testing.T, dir string) metaPage {
	f, err := os.Open(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, ok := newestMeta(f, 1<<30)
	if !ok {
		t.Fatal("no meta page")
	}
	return p
}

func usedBytes(t *testing.T, dir string) int64 {
	p := newest(t, dir)
	return int64(p.count * p.size)
}

func overwrite(dir string, at int64, with uint64) error {
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, with), at)
	return errors.Join(err, f.Close())
}

func otherLedger(t *testing.T) string {
	dir := t.TempDir()
	other := info
	other.ID = "ledger-2"
	if err := Create(dir, other); err != nil {
		t.Fatal(err)
	}
	return dir
}

// headThatLies writes an outside head that is well formed and older, with another hash.
func headThatLies(t *testing.T, dir string) error {
	if err := os.Remove(filepath.Join(dir, headName)); err != nil {
		return err
	}
	h := &headFile{db: filepath.Join(dir, fileName), ledger: info.ID}
	return errors.Join(h.createFile(dir, ledger.Head{N: 3, Hash: sum("another journal")}), h.closeFile())
}

// Behind by some commits is what a crash leaves; a torn slot too.
func TestOpen_I15_HeadOutsideMayLag(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.do(d.claim())
	l.Close()
	lag := copyLedger(t, dir, headName)
	l = open(t, Config{Dir: dir})
	d.l = l
	d.do(ledger.Held{})
	d.do(ledger.Unheld{})
	l.Close()
	for name, spoil := range map[string]func(b []byte){
		"Lagging": func([]byte) {},
		"TornOne": func(b []byte) { b[3] ^= 1 },
		"TornTwo": func(b []byte) { b[slotSize+3] ^= 1 },
	} {
		b, err := os.ReadFile(filepath.Join(lag, headName))
		if err != nil || len(b) != 2*slotSize {
			t.Fatal(len(b), err)
		}
		spoil(b)
		if err := os.WriteFile(filepath.Join(dir, headName), b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		l.Close()
		if r, err := readHead(dir); err != nil || r.N != 4 || r.Ledger != info.ID {
			t.Errorf("%s: the head was not brought up to date: %+v %v", name, r, err)
		}
	}
}

// aheadOf returns a copy of the ledger that lived on for an event.
func aheadOf(t *testing.T, source string) string {
	t.Helper()
	dir := copyLedger(t, source, fileName, headName)
	l := open(t, Config{Dir: dir})
	d := newDoc(t, l, 98)
	d.do(d.claim())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// foreignBolt makes a bbolt file that is no ledger.
func foreignBolt(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	edit(t, dir, func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("photos")); return err })
	return dir
}

func TestOpen_I16_OneAtATime(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, ledger.ErrLocked) {
		t.Error(err)
	}
	if err := writeHeadOfCopy(dir); !errors.Is(err, ledger.ErrLocked) {
		t.Error(err)
	}
	if _, err := l.Backup(io.Discard); err != nil { // opens nothing that would drop the lock
		t.Error(err)
	}
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, ledger.ErrLocked) {
		t.Error(err)
	}
}

func TestOpen_I27_TakesTooOpenRightsAway(t *testing.T) {
	dir := newLedger(t)
	name := filepath.Join(dir, fileName)
	os.Chmod(name, 0o644)
	open(t, Config{Dir: dir})
	for _, name := range []string{name, filepath.Join(dir, headName)} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

func TestCreate_I15_NeverOverALedgerThatIsOrWas(t *testing.T) {
	dir := newLedger(t)
	if err := Create(dir, info); !errors.Is(err, ledger.ErrExists) {
		t.Error(err)
	}
	os.Remove(filepath.Join(dir, fileName))
	if err := Create(dir, info); !errors.Is(err, ledger.ErrExists) {
		t.Errorf("over a lost one: %v", err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, ".*")); len(names) != 0 {
		t.Errorf("left behind %q", names)
	}
	if err := Create(t.TempDir(), ledger.Info{}); err == nil {
		t.Error("made one without a name")
	}
	dir = newLedger(t) // a crash before the head was written
	os.Remove(filepath.Join(dir, headName))
	l := open(t, Config{Dir: dir})
	sound(t, l)
	if r, err := readHead(dir); r == nil || r.N != 1 {
		t.Error(r, err)
	}
}

func FuzzPreflight(f *testing.F) {
	f.Add(uint32(0), byte(1), uint32(0))
	f.Add(uint32(4096+16), byte(1), uint32(100))
	dir, _ := filled(f)
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, at uint32, with byte, cut uint32) {
		bad := bytes.Clone(whole)
		bad[at%(8*4096)] ^= with
		bad = bad[:len(bad)-int(cut)%len(bad)]
		name := filepath.Join(t.TempDir(), fileName)
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		checkBeforeMapping(file, 7)
	})
}
