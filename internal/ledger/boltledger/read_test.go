package boltledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

func TestDue_InOrderOfTimeWithTheNextOne(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	var keys []archive.Key
	for n := range 10 {
		d := newDoc(t, l, n)
		at := began.Add(time.Duration(10-n) * time.Hour) // the last claimed is due first
		if n == 9 {
			at = time.Time{}
		}
		d.do(ledger.ClaimedFolder{Vault: "V1", NotBefore: at})
		keys = append([]archive.Key{d.e.Key}, keys...)
	}
	noon := began.Add(5 * time.Hour)
	first := func(e ledger.Entry) archive.Key { return e.Key }
	for name, row := range map[string]struct {
		now   time.Time
		limit int
		skip  func(ledger.Entry) bool
		want  []archive.Key
		next  time.Time
	}{
		"All":      {began.Add(20 * time.Hour), 100, nil, keys, time.Time{}},
		"UntilNow": {noon, 100, nil, keys[:5], noon.Add(time.Hour)}, // what is due at now is ready
		"Limited":  {noon, 2, nil, keys[:2], noon.Add(time.Hour)},
		"Skipping": {noon, 2, func(e ledger.Entry) bool { return e.Key == keys[0] || e.Key == keys[2] }, []archive.Key{keys[1], keys[3]}, noon.Add(time.Hour)},
		"Before":   {began, 100, nil, keys[:1], began.Add(2 * time.Hour)},
	} {
		es, next, err := l.Due(ledger.Seal, row.now, row.limit, row.skip)
		var got []archive.Key
		for _, e := range es {
			got = append(got, first(e))
		}
		if err != nil || !slices.Equal(got, row.want) || !next.Equal(row.next) {
			t.Errorf("%s: %v next %v (%v), want %v next %v", name, got, next, err, row.want, row.next)
		}
	}
	if es, next, err := l.Due(ledger.Register, noon, 10, nil); len(es) != 0 || !next.IsZero() || err != nil {
		t.Error("another step has something due:", es, next, err)
	}
}

func TestEntries_MergedInOrderPageByPage(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	var keys []archive.Key
	for n := range 3*chunkEntries + 7 {
		d := newDoc(t, l, n)
		c := d.change(d.claim())
		if n%3 == 0 {
			c = d.change(d.claim(), ledger.Refused{}, ledger.PlaceIntended{Dest: "x"}, ledger.Placed{}) // at rest
		}
		l.Submit([]ledger.Change{c}, nil)
		keys = append(keys, d.e.Key)
	}
	if _, err := l.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(keys, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	collect := func(from archive.Key, in order, stop int) (got []archive.Key) {
		enough := errors.New("enough")
		err := walkEntries(l.view, from, in, func(e ledger.Entry) error {
			if got = append(got, e.Key); len(got) == stop {
				return enough
			}
			return nil
		}, openBucket, doneBucket)
		if err != nil && err != enough {
			t.Error(err)
		}
		return got
	}
	backwards := slices.Clone(keys)
	slices.Reverse(backwards)
	between := keys[100]
	between[15]++ // no entry has it
	for name, row := range map[string]struct{ got, want []archive.Key }{
		"Forwards":            {collect(archive.Key{}, oldestFirst, 0), keys},
		"Backwards":           {collect(archive.Key{}, newestFirst, 0), backwards},
		"FromOne":             {collect(keys[300], oldestFirst, 0), keys[300:]},
		"BackwardsFromOne":    {collect(keys[300], newestFirst, 0), backwards[len(keys)-301:]},
		"BetweenTwo":          {collect(between, oldestFirst, 0), keys[101:]},
		"BackwardsBetweenTwo": {collect(between, newestFirst, 0), backwards[len(keys)-101:]},
		"Stopped":             {collect(archive.Key{}, oldestFirst, chunkEntries+1), keys[:chunkEntries+1]},
	} {
		if !slices.Equal(row.got, row.want) {
			t.Errorf("%s: %d entries, want %d, or in another order", name, len(row.got), len(row.want))
		}
	}
}

func TestLines_FromAnywhere(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	for n := range 700 {
		d := newDoc(t, l, n)
		l.Submit([]ledger.Change{d.change(d.claim(), ledger.Held{}, ledger.Unheld{})}, nil)
	}
	l.Apply(t.Context())
	for _, from := range []uint64{0, 1, 2, 1000, 2100, 2101, 2102, 9999} {
		want, h := max(from, 1), ledger.Head{}
		err := l.Lines(from, func(n uint64, b []byte) error {
			if line, err := ledger.ParseLine(b); err != nil || n != want || line.N != want {
				return fmt.Errorf("line %d (%d), want %d: %v", n, line.N, want, err)
			}
			h = h.Next(b)
			want++
			return nil
		})
		if err != nil || (from <= 2101 && want != 2102) || (from <= 1 && h != l.Head()) {
			t.Errorf("from %d: came to %d: %v", from, want, err)
		}
	}
}

// A backup that is taken in full swing opens and is sound, once somebody takes the
// responsibility for putting it back.
func TestBackup_I15_WhileWriting(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	newDoc(t, l, 1<<20).archived()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				newDoc(t, l, n).archived()
			}
		}
	}()
	for range 3 {
		dir := t.TempDir()
		f, err := os.Create(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		n, err := l.Backup(f)
		info, _ := f.Stat()
		if err != nil || n != info.Size() {
			t.Errorf("%d bytes of %d: %v", n, info.Size(), err)
		}
		f.Close()
		if _, err := Open(Config{Dir: dir}); err == nil {
			t.Error("a ledger without its head was opened")
		}
		if err := writeHeadOfCopy(dir); err != nil {
			t.Fatal(err)
		}
		b := open(t, Config{Dir: dir})
		sound(t, b)
		b.Close()
	}
	close(stop)
	<-stopped
	sound(t, l)
}

// Verify runs beside the committer and sees no ghosts.
func TestVerify_BesideTheCommitter(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	newDoc(t, l, 1<<20).archived()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
				newDoc(t, l, n).archived()
			}
		}
	}()
	for rounds := 0; ; rounds++ {
		sound(t, l)
		if commits, _ := l.CommitCounts(); commits > 100 && rounds > 3 {
			break
		}
	}
	close(stop)
	<-stopped
}

func TestTotals_YearBeginsInTheConfiguredZone(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.at = time.Date(2026, 12, 31, 22, 30, 0, 0, time.UTC) // archived an hour later, at 23:30 in UTC
	d.archived()
	berlin := time.FixedZone("Europe/Somewhere", 3600)
	for _, row := range []struct {
		zone *time.Location
		year int
	}{{time.UTC, 2026}, {berlin, 2027}, {berlin, 2027}, {nil, 2026}} {
		l.Close()
		l = open(t, Config{Dir: dir, Location: row.zone})
		ts, err := l.Totals()
		if err != nil || len(ts) != 1 || ts[0].Year != row.year || ts[0].Documents != 1 || ts[0].Bytes != 1001 {
			t.Errorf("%v: %v (%v)", row.zone, ts, err)
		}
		sound(t, l)
	}
}

// What people search and what is counted is read without the lists of files, and is otherwise what the whole document says. A record with a
// field that nobody knows is refused by both.
func TestDocumentTexts_I26_AreTheDocuments(t *testing.T) {
	for name, d := range map[string]ledger.Document{"Sealed": goldenDocument(), "Refused": goldenRefused(), "Empty": {}} {
		want := d
		want.Files, want.ControlFiles, want.Junk = nil, nil, nil
		record := documentForm.encode(&d)
		got, err := documentTextsForm.decode(record)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v (%v)", name, got, want, err)
		}
	}
	d := goldenDocument()
	unknown := appendVarint(documentForm.appendFields([]byte{codecPlain}, &d), 90, 1)
	record := binary.BigEndian.AppendUint32(unknown, crc32.Checksum(unknown, castagnoli))
	for _, form := range []*message[ledger.Document]{documentForm, documentTextsForm} {
		if _, err := form.decode(record); err == nil {
			t.Error("a field that nobody knows is read")
		}
	}
}
