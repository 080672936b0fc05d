package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	w, err := openWriter(plain, path, buildPragmas, schemaStatements()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	return c.copyEntries(ctx, w, path)
}

// copyEntries enters all entries of the ledger, many in one transaction. path
// is empty where no file needs to be on the disk.
func (c *Catalog) copyEntries(ctx context.Context, w *writer, path string) error {
	plain := context.WithoutCancel(ctx)
	start, all := c.cfg.Ledger.Head(), max(c.cfg.Ledger.Balance().Seen, 1)
	if err := w.begin(plain); err != nil {
		return err
	}
	var done uint64
	err := c.cfg.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		r, err := c.readRow(e)
		if err == nil {
			err = w.put(plain, r)
		}
		if done++; err != nil || done%rowsAtOnce != 0 {
			return err
		}
		c.mu.Lock()
		c.told.Made = int(min(done*100/all, 99))
		c.mu.Unlock()
		return c.endPart(ctx, w, path, done)
	})
	if err != nil {
		return err // the file is thrown away, and its transaction with it
	}
	// The position comes last: a file without it was never finished.
	_, err = w.conn.ExecContext(plain, "INSERT INTO position (made, ledger, line, hash) VALUES (?, ?, ?, ?)",
		howMade(c.cfg.Location), c.cfg.Ledger.Info().ID, int64(start.N), start.Hash[:])
	if err != nil {
		return err
	}
	return w.commit(plain, start)
}

// endPart commits some rows of a new file and begins with the next ones.
func (c *Catalog) endPart(ctx context.Context, w *writer, path string, done uint64) error {
	plain := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.cfg.CheckSpace != nil {
		if err := c.cfg.CheckSpace(); err != nil {
			return err
		}
	}
	if err := w.commit(plain, ledger.Head{}); err != nil {
		return err
	}
	if done%rowsUnsynced == 0 && path != "" {
		if err := syncFile(path); err != nil {
			return err
		}
	}
	return w.begin(plain)
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
