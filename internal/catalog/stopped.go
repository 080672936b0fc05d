package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// OpenStopped returns the catalog of a ledger for a command that has the lock of the state directory, while no daemon runs. It
// creates no file and changes none: a file of another user would lock the daemon out. What stands in the way of reading is in the
// status, and every search then reads the ledger. Close gives the file back.
func OpenStopped(ctx context.Context, cfg Config) *Catalog {
	c := New(cfg)
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
	at, version, err := readPosition(ctx, db, c.cfg.Ledger)
	if err == nil && version != closedCleanly {
		err = &rebuildError{"it was not closed"}
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w; vaultd makes it anew when it starts", err), db.Close())
	}
	c.file, c.made = newReadable(db, at, info), 1
	return nil
}

// Close gives back the file of a catalog that [OpenStopped] returned.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	db := c.file.db
	c.file.end()
	c.file = nil
	return db.Close()
}
