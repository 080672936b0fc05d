package boltledger_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// Entries on their way and at rest are in two buckets, and are read in parts.
func TestEntries_MergedInOrderPageByPage(t *testing.T) { eachStore(t, entriesMergedInOrderPageByPage) }

func entriesMergedInOrderPageByPage(t *testing.T, open opener) {
	l := open()
	var keys, onTheWay []archive.Key
	for n := range 800 {
		d := newDoc(t, l, n)
		c := d.change(d.claim())
		if n%3 == 0 { // at rest
			c = d.change(ledger.Recovered{Vault: "V1", State: ledger.Archived, Source: ledger.Gone, Remote: archive.RemoteID(fmt.Sprint("R", n)), SuccessRecord: []byte("{}"), ArchivedAt: began}, ledger.Reconciled{})
		} else {
			onTheWay = append(onTheWay, d.e.Key)
		}
		l.Submit([]ledger.Change{c}, nil)
		keys = append(keys, d.e.Key)
	}
	applied(t, l)
	enough := errors.New("enough")
	backwards := slices.Clone(keys)
	slices.Reverse(backwards)
	for name, row := range map[string]struct {
		read func(func(ledger.Entry) error) error
		stop int
		want []archive.Key
	}{
		"OldestFirst": {l.EntriesOldestFirst, 0, keys},
		"NewestFirst": {l.EntriesNewestFirst, 0, backwards},
		"Open":        {l.OpenEntries, 0, onTheWay},
		"Stopped":     {l.EntriesOldestFirst, 300, keys[:300]},
	} {
		var got []archive.Key
		err := row.read(func(e ledger.Entry) error {
			if got = append(got, e.Key); len(got) == row.stop {
				return enough
			}
			return nil
		})
		kit.Check(t, (row.stop > 0) == errors.Is(err, enough) && slices.Equal(got, row.want),
			"%s: %d entries (%v), want %d in the order of their keys", name, len(got), err, len(row.want))
	}
}

func TestLines_FromAnywhere(t *testing.T) { eachStore(t, linesFromAnywhere) }

func linesFromAnywhere(t *testing.T, open opener) {
	l := open()
	for n := range 700 {
		d := newDoc(t, l, n)
		l.Submit([]ledger.Change{d.change(d.claim(), ledger.Held{}, ledger.Unheld{})}, nil)
	}
	applied(t, l)
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
			t.Errorf("lines from %d end before %d with %v (%v), want all of 2101 and %v", from, want, h, err, l.Head())
		}
	}
}

// whileWorking runs fn while documents are archived without a pause.
func whileWorking(t *testing.T, l *boltledger.Ledger, fn func()) {
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
	fn()
	close(stop)
	<-stopped
}

// I12, I15: a backup that is taken in full swing is of one moment: its entries,
// its lines, its head and its balance agree. Opened without its head it is
// refused.
func TestBackup_I15_WhileWriting(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	whileWorking(t, l, func() {
		for range 3 {
			checkBackup(t, l)
		}
	})
	sound(t, l)
}

func checkBackup(t *testing.T, l *boltledger.Ledger) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(pathIn(dir, fileName))
	kit.Must(t, err)
	defer f.Close()
	n, err := l.Backup(t.Context(), f, kit.Value(l.Copy(t.Context(), 0))(t))
	info, _ := f.Stat()
	if err != nil || n != info.Size() {
		t.Errorf("backup = %d bytes (%v), want the %d of the file", n, err, info.Size())
	}
	var d *ledger.DamageError
	_, err = boltledger.Open(boltledger.Config{Dir: dir})
	kit.Check(t, errors.As(err, &d), "opened without its head: %v, want damage", err)
	ps, err := verifyCopy(t.Context(), f)
	kit.Check(t, err == nil && len(ps) <= 0, "the check of the backup found %v (%v), want nothing", ps, err)
}

func verifyCopy(ctx context.Context, f *os.File) (found []ledger.Problem, err error) {
	err = boltledger.CheckOpenFile(ctx, f, time.UTC, func(l *boltledger.Ledger) (err error) {
		found, err = l.Verify(ctx)
		return err
	})
	return found, err
}

// The check sees no problem in what is committed while it runs.
func TestVerify_BesideTheCommitter(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	whileWorking(t, l, func() {
		for rounds, commits := 0, uint64(0); commits <= 100 || rounds <= 3; rounds++ {
			f := kit.Value(l.Copy(t.Context(), 0))(t)
			ps, err := verifyCopy(t.Context(), f)
			kit.Need(t, errors.Join(err, f.Close()) == nil && len(ps) == 0, "the check found %v (%v), want nothing", ps, err)
			commits, _ = l.CommitCounts()
		}
	})
}
