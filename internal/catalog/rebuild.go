package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"vaultd/internal/ledger"
)

// rowsAtOnce is how many rows of a new file are one transaction.
const rowsAtOnce = 2_000

// rowsUnsynced is after how many rows of a new file the disk has to have them. A large file that is written at once at its end would
// hold up the commits of the ledger on the same disk.
const rowsUnsynced = 25 * rowsAtOnce

// rebuild makes the file anew from all entries. The former file goes first: nothing reads it any more, and both may not have room.
// The new file gets its name when it is complete.
func (c *Catalog) rebuild(ctx context.Context) error {
	c.mu.Lock()
	c.told = Status{Fault: c.told.Fault}
	c.mu.Unlock()
	unfinished := c.path() + ".new"
	if err := errors.Join(removeWithBesides(c.path()), removeWithBesides(unfinished)); err != nil {
		return err
	}
	if err := c.build(ctx, unfinished); err != nil {
		return errors.Join(fmt.Errorf("make %s: %w", FileName, err), removeWithBesides(unfinished))
	}
	if err := syncFile(unfinished); err != nil {
		return err
	}
	// A crash before this line leaves an unfinished file, which the next start removes; after it, a whole one.
	if err := os.Rename(unfinished, c.path()); err != nil {
		return err
	}
	return syncFile(filepath.Dir(c.path()))
}

// removeWithBesides removes a file of ours and what SQLite keeps beside it.
func removeWithBesides(path string) error {
	var errs []error
	for _, end := range append([]string{""}, besides...) {
		if err := os.Remove(path + end); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// build fills a new file with all entries in the order of their keys. What is committed meanwhile may be in it or not: the position
// is that of the beginning, and what came later is entered again.
func (c *Catalog) build(ctx context.Context, path string) (err error) {
	// SQLite would make it readable for others.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	plain := context.WithoutCancel(ctx)
	w, err := createWriter(plain, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	start := c.cfg.Ledger.Head()
	if err := c.copyEntries(ctx, w, path); err != nil {
		return err
	}
	// The position comes last: a file without it was never finished.
	_, err = w.conn.ExecContext(plain, "INSERT INTO position (made, ledger, line, hash, newest) VALUES (?, ?, ?, ?, ?)",
		howMade(), c.cfg.Ledger.Info().ID, int64(start.N), start.Hash[:], w.at.newest[:])
	return err
}

// copyEntries enters all entries of the ledger, many in one transaction. Rows are read from the ledger and their tokens are made while
// SQLite writes the rows before them.
func (c *Catalog) copyEntries(ctx context.Context, w *writer, path string) error {
	plain := context.WithoutCancel(ctx)
	all := max(c.cfg.Ledger.Balance().Seen, 1)
	var done uint64
	err := w.begin(plain)
	if err != nil {
		return err
	}
	err = readAhead(c.cfg.Ledger.EntriesOldestFirst, c.readWithTokens, func(r row) error {
		err := w.put(plain, r)
		if done++; err != nil || done%rowsAtOnce != 0 {
			return err
		}
		c.mu.Lock()
		c.told.Made = int(min(done*100/all, 99))
		c.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if c.cfg.CheckSpace != nil {
			if err := c.cfg.CheckSpace(); err != nil {
				return err
			}
		}
		if err := w.commit(plain, w.at); err != nil {
			return err
		}
		if done%rowsUnsynced == 0 {
			if err := syncFile(path); err != nil {
				return err
			}
		}
		return w.begin(plain)
	})
	if err != nil {
		return err // the file is thrown away, and its transaction with it
	}
	return w.commit(plain, w.at)
}

// readWithTokens is readRow with the tokens of the texts.
func (c *Catalog) readWithTokens(e ledger.Entry) (row, error) {
	r, err := c.readRow(e)
	if err == nil {
		r.tokens = textTokens(r)
	}
	return r, err
}

// rowsAhead is how many rows are read ahead of the one that is written, in two parts.
const rowsAhead = 2 * rowsOfPart

const rowsOfPart = 64

// errUnused ends a walk whose rows nobody uses any more.
var errUnused = errors.New("the rows are not used any more")

// readAhead calls read with every entry that walk visits, and use with what that gave, in their order and in another goroutine than read. It
// returns the first error of the three in that order. No goroutine is left when it returns.
func readAhead(walk func(func(ledger.Entry) error) error, read func(ledger.Entry) (row, error), use func(row) error) (err error) {
	parts := make(chan []row, rowsAhead/rowsOfPart-1)
	var isUnused atomic.Bool
	var walked error // read once parts is closed
	go func() {
		defer close(parts)
		part := make([]row, 0, rowsOfPart)
		walked = walk(func(e ledger.Entry) error {
			if isUnused.Load() {
				return errUnused
			}
			r, err := read(e)
			if err != nil {
				return err
			}
			if part = append(part, r); len(part) == rowsOfPart {
				parts <- part
				part = make([]row, 0, rowsOfPart)
			}
			return nil
		})
		parts <- part
	}()
	// After the first error the parts are only drained, so that the goroutine ends.
	for part := range parts {
		for i := 0; i < len(part) && err == nil; i++ {
			err = use(part[i])
		}
		isUnused.Store(err != nil)
	}
	if err == nil {
		err = walked
	}
	return err
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
