package catalog

import (
	"cmp"
	"context"
	"database/sql"
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

// NewestIn returns the keys of the newest documents in a state, most of them at most. They come in the order in
// which they were entered in the catalog, the last first: that is the order of keys but for a few that were taken up late.
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
	c.reading.RLock()
	defer c.reading.RUnlock()
	c.mu.Lock()
	f, status := c.file, c.status()
	c.mu.Unlock()
	if why := status.Describe(); why != "" || f == nil {
		return &cannotHelp{cmp.Or(why, "no catalog is open")}
	}
	// A connection opens what lies under the name now. Another file there would share the log of the open one.
	err := c.checkFile(f.of)
	if err == nil {
		question, done := f.untilEnd(ctx)
		err = done(visitRows(question, f.db, fn, statement, args...))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return c.noteUnread(err)
	}
	return nil
}

func visitRows(ctx context.Context, db *sql.DB, fn func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // read only
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
