package catalog

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// writer changes the rows of one file through one connection.
type writer struct {
	db     *sql.DB
	shared map[string]int64 // numbers of origins and parties that are in the file, by what they say
}

const (
	batchLines     = 20_000 // in one transaction
	mostRemembered = 20_000 // origins and parties
	mostBehindLate = 20_000 // rows that get another number because one with an earlier key comes late
)

// openWriter opens the only connection that changes a file. first makes the tables.
func openWriter(ctx context.Context, path string, first ...string) (*writer, error) {
	db, err := openDatabase(path, writePragmas, 1)
	if err != nil {
		return nil, err
	}
	for _, s := range append(first, "CREATE TEMP TABLE changing (key BLOB PRIMARY KEY) WITHOUT ROWID",
		"CREATE TEMP VIEW changed AS SELECT d.* FROM changing CROSS JOIN document d ON d.key = changing.key") {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &writer{db, map[string]int64{}}, nil
}

// enter enters the rows with these keys, which are in order, as they are read one
// by one, together with the position up to which they tell, or nothing. What the
// index and the figures have of these rows is taken out before, and what they
// say now is entered after.
func (w *writer) enter(ctx context.Context, keys []archive.Key, read func(archive.Key) (row, error), at ledger.Head) (err error) {
	ctx = context.WithoutCancel(ctx) // it is short, and SQLite would start a goroutine for each statement that can be cancelled
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			clear(w.shared)   // some of them may not be in the file
			_ = tx.Rollback() // SQLite may have done so by itself
		}
	}()
	late, err := beginRows(ctx, tx, keys)
	if err == nil {
		err = w.putRows(ctx, tx, keys, read)
	}
	if err == nil {
		err = endRows(ctx, tx, late, at)
	}
	if err != nil {
		return err
	}
	// Rows and position are one transaction: after a crash on either side of this line the next start goes on at the stored line.
	return tx.Commit()
}

// beginRows takes out of the index and of the figures what they have of the rows
// with some keys. late is the first key that has later ones in the file and no
// row itself: those behind it will have other numbers, and change too.
func beginRows(ctx context.Context, tx *sql.Tx, keys []archive.Key) (late []byte, err error) {
	if _, err := tx.ExecContext(ctx, "DELETE FROM changing"); err != nil {
		return nil, err
	}
	add, err := tx.PrepareContext(ctx, "INSERT INTO changing VALUES (?)")
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if _, err := add.ExecContext(ctx, k[:]); err != nil {
			return nil, err
		}
	}
	err = tx.QueryRowContext(ctx, "SELECT min(key) FROM changing c WHERE key < (SELECT max(key) FROM document) AND NOT EXISTS (SELECT 1 FROM document d WHERE d.key = c.key)").Scan(&late)
	if err != nil {
		return nil, err
	}
	if late != nil {
		moved, err := tx.ExecContext(ctx, "INSERT INTO changing SELECT key FROM document WHERE key > ? ORDER BY key LIMIT ? ON CONFLICT DO NOTHING", late, mostBehindLate)
		if err != nil {
			return nil, err
		}
		if n, err := moved.RowsAffected(); err != nil || n == mostBehindLate {
			return nil, cmp.Or[error](err, errOlder)
		}
	}
	if _, err := tx.ExecContext(ctx, countChanged, -1); err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO words (words, rowid, text) SELECT 'delete', id, text FROM changed")
	return late, err
}

// endRows numbers the rows from a late one on in the order of their keys, and
// enters into the index and the figures what the rows say now.
func endRows(ctx context.Context, tx *sql.Tx, late []byte, at ledger.Head) error {
	steps := []struct {
		statement string
		args      []any
	}{
		{`WITH o AS MATERIALIZED (SELECT key, coalesce((SELECT id FROM document WHERE key < ?1 ORDER BY key DESC LIMIT 1), 0) + row_number() OVER (ORDER BY key) AS n
			FROM document WHERE key >= ?1) UPDATE document SET id = -n FROM o WHERE document.key = o.key`, []any{late}},
		{"UPDATE document SET id = -id WHERE id < 0", nil},
		{"INSERT INTO words (rowid, text) SELECT id, text FROM changed", nil},
		{countChanged, []any{1}},
		{"UPDATE position SET line = ?, hash = ?", []any{at.N, at.Hash[:]}},
	}
	if late == nil {
		steps = steps[2:]
	}
	for _, s := range steps {
		if _, err := tx.ExecContext(ctx, s.statement, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// putRows enters rows, or changes those that are there.
func (w *writer) putRows(ctx context.Context, tx *sql.Tx, keys []archive.Key, read func(archive.Key) (row, error)) error {
	wasErasable := map[archive.Key]bool{}
	err := visitRows(ctx, tx, func(rows *sql.Rows) error {
		var key []byte
		err := rows.Scan(&key)
		wasErasable[keyIn(key)] = true
		return err
	}, "SELECT key FROM changed WHERE erasable")
	if err != nil {
		return err
	}
	put, err := tx.PrepareContext(ctx, putStatement)
	if err != nil {
		return err
	}
	for _, k := range keys {
		r, err := read(k)
		if err != nil {
			return err
		}
		if wasErasable[k] && !r.erasable {
			return errErased
		}
		origin, party, err := w.enterShared(ctx, tx, r)
		if err != nil {
			return fmt.Errorf("enter what many documents share: %w", err)
		}
		if _, err := put.ExecContext(ctx, append([]any{k[:]}, r.values(origin, party)...)...); err != nil {
			return err
		}
	}
	return nil
}

// keyIn returns the key that a row has; a damaged file may have one of another length.
func keyIn(b []byte) (k archive.Key) {
	copy(k[:], b)
	return k
}

// putStatement enters a row behind the last one, or changes the one that is there.
var putStatement = "INSERT INTO document (id, key, " + strings.Join(documentColumns, ", ") + ") VALUES ((SELECT coalesce(max(id), 0) + 1 FROM document), ?" +
	strings.Repeat(", ?", len(documentColumns)) + ") ON CONFLICT (key) DO UPDATE SET " + setColumns()

func setColumns() string {
	var all []string
	for _, c := range documentColumns {
		all = append(all, c+" = excluded."+c)
	}
	return strings.Join(all, ", ")
}

// enterShared returns the numbers of a row's origin and of its party, and
// enters those that are new; party is zero where it names none.
func (w *writer) enterShared(ctx context.Context, tx *sql.Tx, r row) (origin, party int64, err error) {
	m := r.shown()
	origin, err = w.numberOf(ctx, tx, "INSERT INTO origin (route, drop_name, drop_lower, vault, type) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET type = type RETURNING id",
		string(r.Route), r.Drop, strings.ToLower(r.Drop), string(r.Vault), m.Type)
	names := r.parties()
	if err != nil || len(names) == 0 {
		return origin, 0, err
	}
	lower, sender := any(nil), ""
	if m.SenderName != "" {
		lower, sender = strings.ToLower(m.SenderName), foldedLines(m.SenderName)
	}
	lines := []string{strings.ToLower(m.SenderName)}
	for _, name := range names {
		lines = append(lines, foldedLines(name))
	}
	party, err = w.numberOf(ctx, tx, "INSERT INTO party (text, sender, sender_lower) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET text = text RETURNING id",
		strings.Join(lines, "\n"), sender, lower)
	return origin, party, err
}

// numberOf returns the number of what many rows share; the statement enters it if it is new.
func (w *writer) numberOf(ctx context.Context, tx *sql.Tx, statement string, values ...any) (id int64, err error) {
	name := fmt.Sprintf("%q", values)
	if id, known := w.shared[name]; known {
		return id, nil
	}
	if err := tx.QueryRowContext(ctx, statement, values...).Scan(&id); err != nil {
		return 0, err
	}
	if len(w.shared) >= mostRemembered {
		clear(w.shared)
	}
	w.shared[name] = id
	return id, nil
}

var errEnough = errors.New("enough")

// readChanged returns the keys of the entries that the lines after a head tell of, in order and each once, and the head after the
// last of these lines. It reads one batch of lines.
func (c *Catalog) readChanged(after ledger.Head) (keys []archive.Key, head ledger.Head, err error) {
	head = after
	changed := map[archive.Key]bool{}
	err = c.cfg.Ledger.Lines(after.N+1, func(_ uint64, line []byte) error {
		if head.N-after.N == batchLines {
			return errEnough
		}
		k, is, err := keyOf(line)
		if is {
			changed[k] = true
		}
		head = head.Next(line)
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, head, err
	}
	return slices.SortedFunc(maps.Keys(changed), compareKeys), head, nil
}

func compareKeys(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }

// keyField stands in each line that tells of an entry. What stands before it in a line is a number, a time and a word of ours.
const keyField = `,"key":"`

// keyOf returns the key of the entry that a line tells of; ok is false where it tells of none.
func keyOf(line []byte) (k archive.Key, ok bool, err error) {
	_, rest, ok := bytes.Cut(line, []byte(keyField))
	if !ok || ledger.IsArrivalLine(line) {
		return k, false, nil
	}
	text, _, ok := bytes.Cut(rest, []byte{'"'})
	if k, err = archive.ParseKey(string(text)); err != nil || !ok {
		return k, false, fmt.Errorf("read a journal line: %w", err)
	}
	return k, true, nil
}
