package boltledger

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// An address that was wiped from its entry is in no backup, though pages of the ledger
// that are free now still hold it.
func TestBackup_I7_CarriesNothingThatWasWiped(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	var claims, sends, ends []ledger.Change
	for n := range 200 {
		d := newDoc(t, l, n)
		claims = append(claims, d.change(d.claim(), d.sealed(), ledger.RegisterIntended{}))
		d.e.Rev = 3
		sends = append(sends, d.change(d.ticket(), ledger.UploadIntended{}))
		d.e.Rev = 5
		ends = append(ends, d.change(d.accepted()))
	}
	for _, cs := range [][]ledger.Change{claims, sends, ends} {
		if rs, err := l.Apply(t.Context(), cs...); err != nil || rs[0].Err != nil {
			t.Fatal(err, rs[0].Err)
		}
	}
	secret := []byte("sig=SECRET")
	whole, err := os.ReadFile(pathIn(dir, fileName))
	if err != nil || !bytes.Contains(whole, secret) {
		t.Fatalf("the ledger's own free pages hold none: vacuous (%v)", err)
	}
	var b bytes.Buffer
	if n, err := l.Backup(&b); err != nil || n != int64(b.Len()) || b.Len() >= len(whole) {
		t.Fatalf("%d bytes of %d: %v", b.Len(), len(whole), err)
	}
	if bytes.Contains(b.Bytes(), secret) {
		t.Error("a wiped address is in the backup")
	}
	to := t.TempDir()
	os.WriteFile(pathIn(to, fileName), b.Bytes(), 0o600)
	if err := writeHeadOfCopy(to); err != nil {
		t.Fatal(err)
	}
	if dump(t, to) != dumped(t, l) {
		t.Error("the backup holds something else than the ledger")
	}
	copied := open(t, Config{Dir: to})
	sound(t, copied)
	if left := copies(t, dir, ".*"); len(left) != 0 {
		t.Errorf("left behind %q", left)
	}
}

// stalled reads until it is let go.
type stalled struct {
	reached chan struct{}
	let     chan struct{}
	once    bool
}

func (s *stalled) Write(b []byte) (int, error) {
	if !s.once {
		s.once = true
		close(s.reached)
		<-s.let
	}
	return len(b), nil
}

// Who reads a backup and stalls holds no page of the ledger: the file grows no more
// than it does without him.
func TestBackup_I21_AStalledReaderPinsNothing(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.do(d.claim())
	s := &stalled{reached: make(chan struct{}), let: make(chan struct{})}
	done := make(chan error, 1)
	go func() { _, err := l.Backup(s); done <- err }()
	<-s.reached
	if n := l.db.Stats().OpenTxN; n != 0 {
		t.Errorf("%d read transactions are open", n)
	}
	for range 5 {
		d.do(ledger.Held{By: ledger.Operator{UID: 7}})
		d.do(ledger.Unheld{By: ledger.Operator{UID: 7}})
	}
	close(s.let)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBackup_ToldWhereItFails(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	r, w := io.Pipe()
	r.Close()
	if _, err := l.Backup(w); err == nil || !strings.Contains(err.Error(), "back up ledger") {
		t.Error(err)
	}
	if left := copies(t, filepath.Dir(l.db.Path()), ".*"); len(left) != 0 {
		t.Errorf("left behind %q", left)
	}
}

// Whatever one transaction reads agrees while work goes on: lines, entries, head and balance.
func TestView_I12_IsOneMoment(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for n := 0; ctx.Err() == nil; n++ {
			newDoc(t, l, n).archived()
		}
	}()
	for rounds := 0; ctx.Err() == nil; rounds++ {
		err := l.view(func(tx *bbolt.Tx) error {
			_, s, err := readSelf(tx, l.form)
			if err != nil {
				return err
			}
			var h ledger.Head
			for more := true; more; {
				lines, err := readLines(tx, h.N+1)
				if err != nil {
					return err
				}
				for _, line := range lines {
					h = h.Next(line)
				}
				more = len(lines) > 0
			}
			var b ledger.Balance
			keys := map[archive.Key]bool{}
			var from archive.Key
			for more := true; more; {
				var part []ledger.Entry
				if part, more, err = readEntries(tx, &from, oldestFirst, [][]byte{openBucket, doneBucket}); err != nil {
					return err
				}
				for _, e := range part {
					b.CountChange(ledger.None, e.State)
					keys[e.Key] = true
				}
			}
			if h != s.head || b != s.balance() || len(keys) != int(b.Seen) {
				t.Errorf("line %d of %d; %s, kept is %s", h.N, s.head.N, b, s.balance())
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	<-stopped
	if l.Head().N < 20 {
		t.Error("vacuous")
	}
}
