package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// What is told here is for drawings: it comes from the rows alone and can lack
// what was committed in the last seconds. If the file is not complete or cannot
// be read, nothing is told, and the error says why in words for people.

// RejectedSince returns the times at which the folders were taken that are rejected now, the newest first and most of them at most, as
// far as they were taken at a time or after it. Times are whole milliseconds.
func (c *Catalog) RejectedSince(ctx context.Context, since time.Time, most int) (taken []time.Time, err error) {
	// SQLite by itself takes the index by state and reads each row, which takes seventeen times as long. The state is no parameter: with
	// one, SQLite could not know that the index has all such rows.
	newest := fmt.Sprintf("SELECT seen FROM document INDEXED BY document_rejected WHERE state = %d AND seen >= ? ORDER BY seen DESC LIMIT ?", ledger.Rejected)
	err = c.readRows(ctx, func(rows *sql.Rows) error {
		var at int64
		err := rows.Scan(&at)
		taken = append(taken, time.UnixMilli(at))
		return err
	}, newest, millis(since), most)
	return taken, err
}

// NewestIn returns the keys of the newest documents in a state, most of them at most. The newest
// comes first.
func (c *Catalog) NewestIn(ctx context.Context, state ledger.State, most int) (keys []archive.Key, err error) {
	err = c.readRows(ctx, func(rows *sql.Rows) error {
		var b sql.RawBytes
		err := rows.Scan(&b)
		var k archive.Key
		copy(k[:], b)
		keys = append(keys, k)
		return err
	}, "SELECT key FROM document WHERE state = ? ORDER BY id DESC LIMIT ?", int(state), most)
	return keys, err
}

// readRows calls fn with each row that a statement gives. Damage in the file lets it be made anew.
func (c *Catalog) readRows(ctx context.Context, fn func(*sql.Rows) error, statement string, args ...any) error {
	c.mu.Lock()
	f, status := c.file, c.status()
	c.mu.Unlock()
	if why := status.Describe(); f == nil || why != "" && !f.isPrivate {
		return errors.New(cmp.Or(why, "no catalog is open"))
	}
	err := c.readFile(ctx, f, func(ctx context.Context) error { return visitRows(ctx, f.db, fn, statement, args...) })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if failed := c.noteUnread(f, err); failed != nil {
			return failed
		}
		return fmt.Errorf("the catalog cannot be read: %w", err)
	}
	return nil
}

// visitRows calls scan with each row. A value of another kind is damage:
// without that row an answer would be silently incomplete.
func visitRows(ctx context.Context, db queryer, scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // read only
	for rows.Next() {
		if err := scan(rows); err != nil && ctx.Err() == nil {
			return &rebuildError{"it has a row that cannot be read: " + err.Error()}
		}
	}
	return rows.Err()
}
