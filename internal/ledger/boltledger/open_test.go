package boltledger_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

func TestOpen_I15_RefusesWhatIsNotTheLatest(t *testing.T) {
	source, _ := filled(t)
	older := copyLedger(t, source, fileName)
	l := open(t, boltledger.Config{Dir: source})
	d := newDoc(t, l, 99)
	d.do(d.claim())
	l.Close()
	cut := func(n int64) func(t *testing.T, dir string) error {
		return func(_ *testing.T, dir string) error { return os.Truncate(pathIn(dir, fileName), n) }
	}
	copyInto := func(from, name string) func(t *testing.T, dir string) error {
		return func(t *testing.T, dir string) error {
			b, err := os.ReadFile(pathIn(from, name))
			return errors.Join(err, os.WriteFile(pathIn(dir, name), b, 0o600))
		}
	}
	remove := func(names ...string) func(t *testing.T, dir string) error {
		return func(_ *testing.T, dir string) (err error) {
			for _, name := range names {
				err = errors.Join(err, os.Remove(pathIn(dir, name)))
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
		"OnePage":       {cut(4096), nil, "too small"},
		"TwoPages":      {cut(8192), nil, "reading it failed"},
		"HalfAPage":     {cut(70), nil, "meta page"},
		"LastPageGone":  {func(t *testing.T, dir string) error { return cut(usedBytes(t, dir)-1)(t, dir) }, nil, "cut off"},
		"OlderCopy":     {copyInto(older, fileName), ledger.ErrRolledBack, "58"},
		"Missing":       {remove(fileName, headName), ledger.ErrMissing, "the ledger is missing"},
		"Lost":          {remove(fileName), ledger.ErrMissing, "do not run"},
		"HeadGone":      {remove(headName), nil, headName},
		"HeadOfAnother": {func(t *testing.T, dir string) error { return copyInto(otherLedger(t), headName)(t, dir) }, nil, "belongs to"},
		"LedgerSwapped": {func(t *testing.T, dir string) error { return copyInto(otherLedger(t), fileName)(t, dir) }, nil, "belongs to"},
		"HeadUnreadable": {func(t *testing.T, dir string) error {
			return os.WriteFile(pathIn(dir, headName), make([]byte, 1024), 0o600)
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
			return errors.Join(boltledger.Create(to, ledger.Info{ID: "ledger-p", Environment: "production"}), copyInto(to, fileName)(t, dir))
		}, nil, "belongs to"},
		"NotALedger": {copyInto(foreignBolt(t), fileName), nil, "bucket"},
		"HeadLies": {func(_ *testing.T, dir string) error { // well formed and older, with the hash of another journal
			return writeHead(dir, outsideHead{N: 3, Hash: sum("another journal").String(), Ledger: info.ID})
		}, nil, "line 3"},
		"Link": {func(t *testing.T, dir string) error {
			name := pathIn(dir, fileName)
			return errors.Join(os.Rename(name, name+"2"), os.Symlink(fileName+"2", name))
		}, nil, "regular"},
		"Directory": {func(t *testing.T, dir string) error {
			name := pathIn(dir, fileName)
			return errors.Join(os.Remove(name), os.Mkdir(name, 0o700))
		}, nil, "regular"},
		"NewestMetaTorn": {func(t *testing.T, dir string) error {
			p := newest(t, dir)
			return overwrite(dir, p.at+pageHeader+56, 0) // its checksum: bbolt falls back to the commit before
		}, ledger.ErrRolledBack, "57"},
		"BothMetasTorn": {func(t *testing.T, dir string) error {
			p := newest(t, dir)
			return errors.Join(overwrite(dir, pageHeader+56, 0), overwrite(dir, int64(p.size)+pageHeader+56, 0))
		}, nil, "meta page"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			kit.Must(t, row.do(t, dir))
			_, first := boltledger.Open(boltledger.Config{Dir: dir})
			l, err := boltledger.Open(boltledger.Config{Dir: dir})
			if err == nil {
				l.Close()
				t.Fatal("opened")
			}
			kit.Want(t, "the first error", first.Error(), err.Error())
			ok, want := errors.As(err, &damaged), "damage"
			if row.want != nil {
				ok, want = errors.Is(err, row.want), row.want.Error()
			}
			kit.Check(t, ok && strings.Contains(err.Error(), row.text),
				"open: %v, want %s that tells of %q", err, want, row.text)
		})
	}
}

// metaPage is the newer of bbolt's two meta pages, as bbolt lays it out.
type metaPage struct {
	at                    int64 // where it begins in the file
	size                  uint64
	freelist, count, txid uint64
}

const pageHeader = 16

func newest(t testing.TB, dir string) (newest metaPage) {
	t.Helper()
	b := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
	for i := range int64(2) {
		p := metaPage{size: uint64(binary.NativeEndian.Uint32(b[pageHeader+8:]))}
		p.at = i * int64(p.size)
		page := b[p.at+pageHeader:]
		p.freelist, p.count, p.txid = binary.NativeEndian.Uint64(page[32:]), binary.NativeEndian.Uint64(page[40:]), binary.NativeEndian.Uint64(page[48:])
		if p.txid >= newest.txid {
			newest = p
		}
	}
	return newest
}

func usedBytes(t testing.TB, dir string) int64 {
	p := newest(t, dir)
	return int64(p.count * p.size)
}

func overwrite(dir string, at int64, with uint64) error {
	f, err := os.OpenFile(pathIn(dir, fileName), os.O_WRONLY, 0)
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
	kit.Must(t, boltledger.Create(dir, other))
	return dir
}

// outsideHead is a line of ledger.head as docs/ledger.md describes it.
type outsideHead struct {
	N           uint64 `json:"n"`
	Hash        string `json:"hash"`
	Ledger      string `json:"ledger"`
	Incarnation uint64 `json:"incarnation"`
	Sum         string `json:"sum"`
}

const headSlot = 512

func (h outsideHead) checksum() string {
	return fmt.Sprintf("%08x", crc32.Checksum(fmt.Appendf(nil, "%d %s %s %d", h.N, h.Hash, h.Ledger, h.Incarnation), castagnoli))
}

// readHead returns the newest line of the outside head that is whole.
func readHead(t testing.TB, dir string) (newest outsideHead) {
	t.Helper()
	b := kit.Value(os.ReadFile(pathIn(dir, headName)))(t)
	for line := range bytes.Lines(b) {
		var h outsideHead
		if json.Unmarshal(line, &h) == nil && h.Sum == h.checksum() && h.N > newest.N {
			newest = h
		}
	}
	return newest
}

// writeHead writes an outside head of the first incarnation that says h.
func writeHead(dir string, h outsideHead) error {
	h.Incarnation = 1
	h.Sum = h.checksum()
	line, err := json.Marshal(h)
	return errors.Join(err, os.WriteFile(pathIn(dir, headName), fmt.Appendf(nil, "%-511s\n", line), 0o600))
}

// A crash leaves a head that is some commits behind, or one torn line of it.
func TestOpen_I15_HeadOutsideMayLag(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.do(d.claim())
	l.Close()
	lag := copyLedger(t, dir, headName)
	l = open(t, boltledger.Config{Dir: dir})
	d.l = l
	d.do(ledger.Held{})
	d.do(ledger.Unheld{})
	l.Close()
	for name, spoil := range map[string]func(b []byte){
		"Lagging": func([]byte) {},
		"TornOne": func(b []byte) { b[3] ^= 1 },
		"TornTwo": func(b []byte) { b[headSlot+3] ^= 1 },
	} {
		b, err := os.ReadFile(pathIn(lag, headName))
		kit.Need(t, err == nil && len(b) == 2*headSlot, "the head has %d bytes (%v), want %d", len(b), err, 2*headSlot)
		spoil(b)
		kit.Must(t, os.WriteFile(pathIn(dir, headName), b, 0o600))
		l, err := boltledger.Open(boltledger.Config{Dir: dir})
		kit.Need(t, err == nil, "%s: %v", name, err)
		l.Close()
		r := readHead(t, dir)
		kit.Check(t, r.N == 4 && r.Ledger == info.ID, "%s: after a start the head is %+v, want line 4 of %s", name, r, info.ID)
	}
}

// aheadOf returns a copy of the ledger that lived on for an event.
func aheadOf(t *testing.T, source string) string {
	t.Helper()
	dir := copyLedger(t, source, fileName, headName)
	l := open(t, boltledger.Config{Dir: dir})
	d := newDoc(t, l, 98)
	d.do(d.claim())
	kit.Must(t, l.Close())
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
	l := open(t, boltledger.Config{Dir: dir})
	kit.Fails(t, "open", kit.Err(boltledger.Open(boltledger.Config{Dir: dir})), ledger.ErrLocked)
	kit.Fails(t, "read", boltledger.ReadWhileStopped(dir, nil), ledger.ErrLocked)
	if _, err := l.Backup(t.Context(), io.Discard, nil); err != nil { // opens no file that would drop the lock
		t.Error(err)
	}
	kit.Fails(t, "open after a backup", kit.Err(boltledger.Open(boltledger.Config{Dir: dir})), ledger.ErrLocked)
}

func TestOpen_I27_TakesTooOpenRightsAway(t *testing.T) {
	dir := newLedger(t)
	name := pathIn(dir, fileName)
	os.Chmod(name, 0o644)
	open(t, boltledger.Config{Dir: dir})
	for _, name := range []string{name, pathIn(dir, headName)} {
		info := kit.Value(os.Stat(name))(t)
		kit.Want(t, "rights of "+filepath.Base(name), info.Mode().Perm(), 0o600)
	}
}

func TestCreate_I15_NeverOverALedgerThatIsOrWas(t *testing.T) {
	dir := newLedger(t)
	kit.Fails(t, "over a ledger", boltledger.Create(dir, info), ledger.ErrExists)
	os.Remove(pathIn(dir, fileName))
	kit.Fails(t, "over a lost one", boltledger.Create(dir, info), ledger.ErrExists)
	names, _ := filepath.Glob(pathIn(dir, ".*"))
	kit.Check(t, len(names) == 0, "left behind %q", names)
	kit.Fails(t, "made one without a name", boltledger.Create(t.TempDir(), ledger.Info{}))
	dir = newLedger(t) // a crash before the head was written
	os.Remove(pathIn(dir, headName))
	l := open(t, boltledger.Config{Dir: dir})
	sound(t, l)
	kit.Want(t, "line of the head", readHead(t, dir).N, 1)
}

// A ledger of another form is refused, whatever its number, and the file is
// left as it is.
func TestOpen_I28_RefusesAnotherForm(t *testing.T) {
	set := func(key, value string) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put([]byte(key), []byte(value)) }
	}
	remove := func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete([]byte("form")) }
	for name, row := range map[string]struct {
		change func(*bbolt.Tx) error
		want   error
	}{
		"OfThisSchema":   {set("form", "0123456789abcdef"), ledger.ErrDevelopment},
		"WithoutADigest": {remove, ledger.ErrDevelopment},
		"WithOtherBuckets": {func(tx *bbolt.Tx) error {
			return errors.Join(set("form", "0123456789abcdef")(tx), tx.DeleteBucket(fetchesBucket))
		}, ledger.ErrDevelopment},
		"OfAHigherSchemaWithoutADigest": {func(tx *bbolt.Tx) error { return errors.Join(remove(tx), set("schema", "3")(tx)) }, ledger.ErrDevelopment},
		"OfANewerSchema":                {set("schema", "4"), ledger.ErrNewerSchema},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := filled(t)
			edit(t, dir, row.change)
			before := kit.Value(os.ReadFile(pathIn(dir, fileName)))(t)
			kit.Fails(t, "open", kit.Err(boltledger.Open(boltledger.Config{Dir: dir})), row.want)
			kit.Must(t, os.WriteFile(pathIn(dir, openingName), nil, 0o600))
			kit.Fails(t, "open after a kill", kit.Err(boltledger.Open(boltledger.Config{Dir: dir, Probe: func(f *os.File) error { return boltledger.ProbeFile(t.Context(), f) }})), row.want)
			kit.Must(t, os.Remove(pathIn(dir, openingName)))
			kit.Fails(t, "read while it is stopped", boltledger.ReadWhileStopped(dir, func(*boltledger.Ledger) error { return nil }), row.want)
			kit.Want(t, "copies", copies(t, dir, fileName+".*"), nil)
			kit.Check(t, bytes.Equal(kit.Value(os.ReadFile(pathIn(dir, fileName)))(t), before), "the file of the ledger changed, want it as it was")
		})
	}
}
