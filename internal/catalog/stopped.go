package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"modernc.org/sqlite"
)

// OpenStopped returns the catalog of a ledger for a command that has the lock
// of the state directory, while no daemon runs. It creates no file there and
// changes none: a file of another user would lock the daemon out. If the
// file cannot be read, the status says why, and a question makes a private one.
// Close closes it.
func OpenStopped(ctx context.Context, cfg Config) *Catalog {
	c := New(cfg)
	c.isKept = false
	if err := c.openStopped(ctx); err != nil {
		c.told.Fault = err.Error()
	}
	return c
}

func (c *Catalog) openStopped(ctx context.Context) (err error) {
	info, err := os.Lstat(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is none; vaultd makes it when it starts")
	}
	if err != nil {
		return err
	}
	if ours, err := isOurs(c.path(), info); err != nil || !ours {
		return errors.Join(err, fmt.Errorf("%s is not a catalog of vaultd, which moves it away when it starts", FileName))
	}
	for _, end := range besides {
		// What the log holds is not in the file yet, and reading both would create a file.
		if _, err := os.Lstat(c.path() + end); !errors.Is(err, fs.ErrNotExist) {
			return errors.New("vaultd did not end by itself; it completes the catalog when it starts")
		}
	}
	db, err := openDatabase(c.path(), stoppedPragmas)
	if err != nil {
		return err
	}
	at, version, err := c.readPosition(ctx, db)
	if err == nil && version != closedCleanly {
		err = &rebuildError{"it was not closed"}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w; vaultd makes it anew when it starts", err), db.Close())
	}
	c.file = newReadable(db, db.Close, at, info)
	return nil
}

// openPrivate makes a file that only this process sees, which SQLite removes as
// soon as it has it open: a copy of the one that is open, else from the ledger.
// The caller holds writing.
func (c *Catalog) openPrivate(ctx context.Context) (f *readable, err error) {
	w, err := c.copyStopped(ctx)
	if w == nil && err == nil {
		if w, err = openWriter(context.WithoutCancel(ctx), "", privatePragmas, schemaStatements()...); err == nil {
			err = errors.Join(c.copyEntries(ctx, w, ""), c.catchUp(ctx, w))
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	if err := c.Close(); err != nil {
		return nil, errors.Join(err, w.close())
	}
	f = newReadable(w.conn, w.close, w.at, nil)
	f.isPrivate = true
	c.w = w
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file = f
	return f, nil
}

// copyStopped returns a private copy of the open file that tells of all lines;
// nil: there is none, or it cannot be used.
func (c *Catalog) copyStopped(ctx context.Context) (w *writer, err error) {
	c.mu.Lock()
	f := c.file
	c.mu.Unlock()
	if f == nil || f.isPrivate {
		return nil, nil
	}
	db, err := openDatabase("", privatePragmas)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err == nil {
		err = conn.Raw(func(of any) error {
			b, err := of.(interface {
				NewRestore(string) (*sqlite.Backup, error)
			}).NewRestore(databaseURL(c.path(), stoppedPragmas))
			if err != nil {
				return err
			}
			_, err = b.Step(-1)
			return errors.Join(err, b.Finish())
		})
	}
	w = newWriter(db, conn)
	if err == nil {
		err = w.prepare(ctx)
	}
	if err == nil {
		w.at = f.at
		err = c.catchUp(ctx, w)
	}
	if err == nil {
		return w, nil
	}
	return nil, w.close()
}

// Close gives back what a catalog has open that [OpenStopped] returned.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	f := c.file
	f.end()
	c.file, c.w = nil, nil
	return f.close()
}
