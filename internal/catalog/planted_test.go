package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// SQLite opens what lies beside the catalog by its name, follows links there and writes into it. What has a second name, or is a link,
// is moved away before: nothing is written through it.
func TestCatalog_I19_APlantedLogIsNotWritten(t *testing.T) {
	for name, plant := range map[string]func(precious, log string) error{"Link": os.Symlink, "HardLink": os.Link} {
		for _, end := range besides {
			t.Run(name+end, func(t *testing.T) {
				w := grown(t, 21, 100)
				keep := func() {
					w.inBubble(t, func(t *testing.T) {
						c := New(w.config())
						stop := runUntilMade(c)
						synctest.Wait()
						w.goOn(20)
						time.Sleep(2*gatherTime + 2*retryAfter)
						if !w.mustFind(c, "4711") {
							t.Errorf("no catalog: %+v", c.Status())
						}
						stop()
					})
				}
				keep()
				precious := filepath.Join(t.TempDir(), "precious")
				words := bytes.Repeat([]byte("what is precious to somebody else "), 2000)
				kit.Must(t, errors.Join(os.WriteFile(precious, words, 0o600), plant(precious, filepath.Join(w.dir, FileName+end))))
				keep()
				now, err := os.ReadFile(precious)
				kit.Check(t, err == nil && bytes.Equal(now, words), "%d bytes are left of %d, %v", len(now), len(words), err)
			})
		}
	}
}

// An older catalog of the same ledger that is moved into the place of the open one answers nothing, and the catalog is made anew
// although the ledger commits nothing.
func TestCatalog_I32_AnOlderOneInItsPlace(t *testing.T) {
	w := grown(t, 22, 100)
	w.inBubble(t, func(t *testing.T) {
		c := New(w.config())
		stop := runUntilMade(c)
		synctest.Wait()
		stop()
		old := kit.Value(os.ReadFile(c.path()))(t)
		w.goOn(300)
		c = New(w.config())
		stop = runUntilMade(c)
		defer stop()
		synctest.Wait()
		kit.Must(t, errors.Join(os.WriteFile(c.path()+".older", old, 0o600), os.Rename(c.path()+".older", c.path())))
		w.mustFind(c, "4711")
		w.mustFind(c, "mul", "7")
		time.Sleep(retryAfter + gatherTime)
		synctest.Wait()
		if !w.mustFind(c, "4711") || !strings.Contains(w.log.String(), "another file lies in its place") {
			t.Errorf("the catalog did not come back: %+v\n%s", c.Status(), w.log)
		}
	})
}

// How the catalog is can be asked, and its writer goes on, while a search reads the file for long: the health page and the metrics ask it.
func TestStatus_I26_DuringALongSearch(t *testing.T) {
	w := grown(t, 23, 100)
	c := New(w.config())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for c.Status().Made != 100 { // in real time: a lock that is waited for does not let virtual time go on
		runtime.Gosched()
	}
	begun, goOn, ended, told := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan Status, 1)
	go func() {
		defer close(ended)
		_ = c.visit(t.Context(), question{part: 1, narrow: func(context.Context, *sql.DB, *selection) error {
			close(begun)
			<-goOn
			return errEnough
		}}, neverTold, func(ledger.Entry) error { return nil })
	}()
	<-begun
	go func() {
		c.mustFollow(t)
		told <- c.Status()
	}()
	select {
	case s := <-told:
		kit.Want(t, "percent made", s.Made, 100)
	case <-time.After(5 * time.Second): // never, where the test holds
		t.Error("the search holds up everybody who asks")
	}
	close(goOn)
	<-ended
}

// The catalog holds names of people: it is readable for vaultd alone, while it is made, and also where somebody else put it in its place.
func TestCatalog_I7_ReadableForVaultdAlone(t *testing.T) {
	w := grown(t, 24, 100)
	cfg := w.config()
	cfg.Ledger = watchedLedger{w.led, func() {
		kit.Want(t, "while it is made", kit.Value(os.Stat(filepath.Join(w.dir, FileName)))(t).Mode(), fs.FileMode(0o600))
	}}
	kit.Must(t, New(cfg).makeFile(t.Context()))
	for range 2 {
		w.inBubble(t, func(t *testing.T) {
			c := New(w.config())
			stop := runUntilMade(c)
			defer stop()
			synctest.Wait()
			for _, end := range []string{"", "-wal", "-shm"} {
				info, err := os.Stat(c.path() + end)
				if err != nil || info.Mode() != fs.FileMode(0o600) {
					t.Errorf("%s%s: %v, %v, want no error, info.Mode() = %v", FileName, end, info, err, fs.FileMode(0o600))
				}
			}
		})
		kit.Must(t, os.Chmod(filepath.Join(w.dir, FileName), 0o644))
	}
}

// watchedLedger lets a test look while all entries are read.
type watchedLedger struct {
	Ledger
	look func()
}

func (l watchedLedger) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	return l.Ledger.EntriesOldestFirst(func(e ledger.Entry) error { l.look(); return fn(e) })
}

// damagedLedger has an entry that cannot be read.
type damagedLedger struct {
	Ledger
	reads *int
}

func (l damagedLedger) EntriesOldestFirst(func(ledger.Entry) error) error {
	*l.reads++
	return &ledger.DamageError{}
}

// A damaged ledger is not read whole every minute for a catalog that cannot be made of it.
func TestCatalog_I26_OfADamagedLedger(t *testing.T) {
	w := grown(t, 25, 100)
	w.inBubble(t, func(t *testing.T) {
		reads := 0
		cfg := w.config()
		cfg.Ledger = damagedLedger{w.led, &reads}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); New(cfg).Run(ctx) }()
		time.Sleep(150 * time.Minute)
		cancel()
		<-done
		kit.Check(t, reads >= 2 && reads <= 3, "%d times in two hours and a half", reads)
	})
}

// A damaged row, which SQLite reads without an error, ends no process and no answer in silence: the file is made anew.
func TestCatalog_I26_DamagedRow(t *testing.T) {
	w := grown(t, 26, 60)
	c := w.made(t)
	f := c.file
	kit.Value(f.db.ExecContext(t.Context(), "UPDATE document SET key = x'ff' WHERE id = 3"))(t)
	w.goOn(60)
	kit.Want(t, "a key of another length", c.follow(t.Context()), nil)
	err := visitRows(t.Context(), f.db, func(rows *sql.Rows) error { return rows.Scan(new(int)) }, "SELECT made FROM position")
	kit.Check(t, reasonToRebuild(err) != nil, "a value of another kind: %v, want a reason to make the file anew", err)
}
