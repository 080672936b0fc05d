package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// runUntilMade keeps a catalog until stop is called, and returns once it is made.
func runUntilMade(c *Catalog) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	for c.Status().Describe() != "" {
		time.Sleep(time.Second)
	}
	synctest.Wait()
	return func() { cancel(); <-done }
}

// mustFind asks for documents and compares the answer with the ledger. It reports whether the answer is complete.
func (w *world) mustFind(c *Catalog, words ...string) (helped bool) {
	w.t.Helper()
	q := NewQuery(words)
	var got []archive.Key
	err := c.Search(context.Background(), q, archive.Key{}, neverTold, func(h Hit) error { got = append(got, h.Entry.Key); return nil })
	want := w.walk(q)
	if _, is := errors.AsType[*IncompleteError](err); is {
		kit.Check(w.t, !slices.ContainsFunc(got, func(k archive.Key) bool { return !slices.Contains(want, k) }), "%q: found %v, want some of %v", words, got, want)
		return false
	}
	kit.Check(w.t, err == nil && slices.Equal(got, want), "%q: found %v, %v, want %v", words, got, err, want)
	return true
}

// Whatever lies in the catalog's place, and whatever ledger it was made of, the next start has the right one, and what is not ours
// is still there.
func TestCatalog_I26_WhatLiesInItsPlace(t *testing.T) {
	foreign := []byte("the only copy of somebody's notes")
	sqliteForeign := append([]byte("SQLite format 3\x00"), make([]byte, 4096)...)
	write := func(b []byte) func(string) error {
		return func(path string) error { return errors.Join(removeWithBesides(path), os.WriteFile(path, b, 0o600)) }
	}
	change := func(statement string) func(string) error {
		return func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = db.Exec(statement)
			}
			return errors.Join(err, db.Close())
		}
	}
	overwrite := func(at int64, with []byte) func(string) error {
		return func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(with, at)
			return errors.Join(err, f.Close())
		}
	}
	type row struct {
		plant   func(path string) error
		says    string
		foreign bool
	}
	kit.Rows(t, map[string]row{
		"Removed":          {os.Remove, "there is none", false},
		"Empty":            {write(nil), "it is damaged", false},
		"Foreign":          {write(foreign), "catalog.db is not ours; moved to catalog.db.foreign-1, rebuilding", true},
		"ForeignSQLite":    {write(sqliteForeign), "moved to catalog.db.foreign-1", true},
		"Link":             {func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p)) }, "moved to catalog.db.foreign-1", true},
		"HardLink":         {func(p string) error { return os.Link(p, p+".other") }, "moved to catalog.db.foreign-1", true},
		"Folder":           {func(p string) error { return errors.Join(os.Remove(p), os.MkdirAll(p+"/x", 0o700)) }, "moved to catalog.db.foreign-1", true},
		"Unfinished":       {change("DELETE FROM position"), "never finished", false},
		"OtherLedger":      {change("UPDATE position SET ledger = 'L-other'"), "another ledger", false},
		"OtherVersion":     {change("UPDATE position SET made = 'x'"), "another version", false},
		"BeyondTheJournal": {change("UPDATE position SET line = 1000000"), "the journal ends before", false},
		"OtherJournal":     {change("UPDATE position SET hash = zeroblob(32)"), "is another one now", false},
		"MissingRow":       {change("DELETE FROM document WHERE id = 3"), "are not those of the ledger", false},
		"OtherState":       {change("UPDATE document SET state = 99 WHERE id = 3"), "a state 99 that does not exist", false},
		"MissingTable":     {change("DROP TABLE party"), "it is damaged", false},
		"CrushedPages":     {overwrite(4096, bytes.Repeat([]byte{0xee}, 8192)), "anew", false},
		"LogRemoved":       {change("PRAGMA user_version = 1"), "its write-ahead log is gone", false},
	}, func(t *testing.T, tt row) {
		w := grown(t, 1, 200)
		path := filepath.Join(w.dir, FileName)
		w.inBubble(t, func(t *testing.T) {
			stop := runUntilMade(New(w.config()))
			stop()
		})
		kit.Must(t, tt.plant(path))
		w.log.Reset()
		w.inBubble(t, func(t *testing.T) {
			c := New(w.config())
			stop := runUntilMade(c)
			s := c.Status()
			kit.Check(t, s.Made == 100 && s.Describe() == "" && w.mustFind(c, "4711") && w.mustFind(c, "0500", "mul"), "not made anew: %+v", s)
			stop()
		})
		kit.Holds(t, "the log", w.log.String(), tt.says)
		_, err := os.Lstat(path + ".foreign-1")
		kit.Check(t, errors.Is(err, fs.ErrNotExist) != tt.foreign, "moved away: %v", err)
		kit.Want(t, "info.Mode()", kit.Value(os.Lstat(path))(t).Mode(), 0o600)
	})
}

// What lies beside a file that is not ours moves first. The other order would, after a crash between the two, leave a file alone that
// the next start takes for the catalog's own and removes.
func TestCatalog_I19_BesidesMoveBeforeTheFile(t *testing.T) {
	w := newWorld(t, 1)
	path := filepath.Join(w.dir, FileName)
	err := errors.Join(os.WriteFile(path, []byte("somebody's notes"), 0o600), os.WriteFile(path+"-wal", []byte("more of them"), 0o600),
		os.MkdirAll(path+".foreign-1-wal/x", 0o700)) // so that the first move fails
	kit.Must(t, err)
	_, err = New(w.config()).moveForeign()
	kit.Check(t, err != nil && reasonToRebuild(err) == nil, "moved onto a folder: %v", err)
	for _, end := range []string{"", "-wal"} {
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+end)), nil)
	}
}

// What is done to the file while it is open changes no answer: a removed or replaced file is made anew, and a disk without room stops
// the catalog alone, which says it once and goes on by itself.
func TestCatalog_I26_WhatHappensMeanwhile(t *testing.T) {
	w := newWorld(t, 2)
	var full atomic.Bool
	w.goOn(100)
	w.inBubble(t, func(t *testing.T) {
		cfg := w.config()
		cfg.CheckSpace = func() error {
			if full.Load() {
				return errors.New("no space left on device")
			}
			return nil
		}
		c := New(cfg)
		stop := runUntilMade(c)
		defer stop()
		path := filepath.Join(w.dir, FileName)
		for _, do := range []func() error{
			func() error { return os.Remove(path) },
			func() error { return removeWithBesides(path) },
			func() error { return errors.Join(os.Remove(path), os.WriteFile(path, []byte("foreign"), 0o600)) },
		} {
			kit.Must(t, do())
			w.goOn(20)
			w.mustFind(c, "4711")
			c.Wake()
			time.Sleep(gatherTime + retryAfter)
			synctest.Wait()
			if !w.mustFind(c, "4711") || c.Status().Made != 100 {
				t.Errorf("the catalog did not come back: %+v", c.Status())
			}
		}
		full.Store(true)
		for range 5 {
			w.goOn(20)
			c.Wake()
			time.Sleep(retryAfter)
			kit.Check(t, !w.mustFind(c, "4711") && !w.mustFind(c, "ler"), "an answer on a full disk does not say what it lacks")
		}
		if s := c.Status(); !strings.Contains(s.Describe(), "the catalog is not complete: no space left on device") || strings.Count(w.log.String(), "no space left") != 1 || !strings.Contains(w.log.String(), "found as before") {
			t.Errorf("%q\n%s\nwant s.Describe() with \"the catalog is not complete: no space left on device\", strings.Count(w.log.String(), \"no space left\") = 1, w.log.String() with \"found as before\"", s.Describe(), w.log)
		}
		full.Store(false)
		time.Sleep(retryAfter)
		synctest.Wait()
		if s := c.Status(); s.Describe() != "" || !w.mustFind(c, "4711") || !strings.Contains(w.log.String(), "the catalog goes on") {
			t.Errorf("%+v\n%s\nwant s.Describe() = \"\", w.mustFind(c, \"4711\"), w.log.String() with \"the catalog goes on\"", s, w.log)
		}
	})
}

// Damage that a search meets makes the catalog anew, and until then an answer says what it lacks.
func TestCatalog_I32_DamageMetBySearch(t *testing.T) {
	w := grown(t, 3, 400)
	w.inBubble(t, func(t *testing.T) {
		c := New(w.config())
		stop := runUntilMade(c)
		defer stop()
		f := kit.Value(os.OpenFile(c.path(), os.O_RDWR, 0))(t)
		info, err := f.Stat()
		if err == nil {
			_, err = f.WriteAt(bytes.Repeat([]byte{0xee}, int(info.Size())-8192), 8192)
		}
		kit.Must(t, errors.Join(err, f.Close()))
		kit.Check(t, !w.mustFind(c, "4711"), "the damage was not met: the test shows nothing")
		time.Sleep(gatherTime + retryAfter)
		synctest.Wait()
		if !w.mustFind(c, "4711") || !strings.Contains(w.log.String(), "it is damaged") {
			t.Errorf("%+v\n%s\nwant w.mustFind(c, \"4711\"), w.log.String() with \"it is damaged\"", c.Status(), w.log)
		}
	})
}

// A process that dies leaves the file and its log. What opens it next, vaultd or a command, goes on at the line that was committed, and
// leaves the file alone.
func TestCatalog_I5_KilledAtAnyCommit(t *testing.T) {
	w := grown(t, 4, 50)
	c := w.made(t)
	for range 5 {
		w.goOn(30)
		c.mustFollow(t)
		died := t.TempDir() // what the dead process leaves
		for _, end := range []string{"", "-wal"} {
			b, err := os.ReadFile(c.path() + end)
			if err == nil {
				err = os.WriteFile(filepath.Join(died, FileName+end), b, 0o600)
			}
			kit.Must(t, err)
		}
		next := OpenStopped(Config{StateDir: died, Ledger: w.led, Log: slog.New(slog.DiscardHandler)})
		kit.Must(t, next.openFile(t.Context()))
		kit.Want(t, "the line that the file tells of", next.file.at, c.file.at)
		kit.Check(t, w.mustFind(next, "4711") && next.made.IsZero(), "the file was made anew: %v", next.made)
		kit.Must(t, next.Close())
		kit.Want(t, "what is left", namesIn(t, died), []string{FileName})
	}
}

// A command that runs while vaultd is stopped finds what was committed after the catalog was closed, and creates no other file. It
// enters the few lines that a file lacks, and makes one anew that does not fit; that of a large ledger not without a word.
func TestOpenStopped_I27_EntersWhatTheFileLacks(t *testing.T) {
	w := grown(t, 5, 300)
	w.inBubble(t, func(t *testing.T) {
		stop := runUntilMade(New(w.config()))
		stop()
	})
	path := filepath.Join(w.dir, FileName)
	before := namesIn(t, w.dir)
	for _, row := range []struct {
		spoil func() error
		anew  bool
	}{
		{func() error { return nil }, false},
		{func() error { w.goOn(30); return nil }, false},
		{func() error { return os.Remove(path) }, true},
		{func() error { return os.Truncate(path, 10_000) }, true},
	} {
		kit.Must(t, row.spoil())
		c := OpenStopped(w.config())
		lacks, err := c.CatchUp(t.Context())
		kit.Check(t, err == nil && lacks == "", "it lacks %q (%v)", lacks, err)
		for _, word := range []string{"4711", "0500", "muel", "acme"} {
			kit.Check(t, w.mustFind(c, word), "%q is not answered: %+v", word, c.Status())
		}
		kit.Want(t, "made anew", !c.made.IsZero(), row.anew)
		kit.Must(t, c.Close())
		kit.Want(t, "the files", namesIn(t, w.dir), before)
	}
	kit.Must(t, os.Remove(path))
	cfg := w.config()
	cfg.Ledger = largeLedger{w.led}
	c := OpenStopped(cfg)
	lacks, err := c.CatchUp(t.Context())
	kit.Check(t, err == nil && lacks == "the catalog is not complete: there is none; vaultd makes it when it starts", "status of a large ledger lacks %q (%v)", lacks, err)
	told := ""
	kit.Must(t, c.Search(t.Context(), NewQuery([]string{"4711"}), archive.Key{}, func(why string) { told = why }, func(Hit) error { return nil }))
	kit.Want(t, "a search says before", told, "the catalog is not complete: there is none")
	kit.Want(t, "the status after", c.Status(), Status{Made: 100})
	kit.Must(t, c.Close())
}

// largeLedger says that it has many entries.
type largeLedger struct{ Ledger }

func (l largeLedger) Balance() ledger.Balance {
	b := l.Ledger.Balance()
	b.Seen += longWalk
	return b
}

// namesIn returns the names of all files in a folder.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	for _, e := range kit.Value(os.ReadDir(dir))(t) {
		names = append(names, e.Name())
	}
	return names
}

// A disk that fills up in the middle of a batch takes nothing of the batch and damages nothing: the catalog goes on where it was.
func TestCatalog_I26_DiskFullInABatch(t *testing.T) {
	w := grown(t, 7, 50)
	c := w.made(t)
	f := c.file
	limit := func(pages string) {
		kit.Value(f.db.ExecContext(t.Context(), "PRAGMA max_page_count = "+pages))(t)
	}
	limit("1") // no more than there are
	before := f.at
	w.goOn(300)
	if err := c.follow(t.Context()); err == nil || reasonToRebuild(err) != nil || f.at != before {
		t.Errorf("a full disk: %v, at %+v, before %+v", err, f.at, before)
	}
	kit.Check(t, !w.mustFind(c, "4711") && !w.mustFind(c, "ler", "0500"), "an answer on a full disk does not say what it lacks")
	limit("1000000")
	err := c.follow(t.Context())
	kit.Check(t, err == nil && f.at == w.led.Head(), "it does not go on: %v", err)
	kit.Check(t, w.mustFind(c, "4711") && w.mustFind(c, "ler", "0500"), "the answer is not complete")
}
