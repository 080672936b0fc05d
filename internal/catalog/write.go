package catalog

import (
	"bytes"
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

	mostBehindLate int // less in tests
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
	return &writer{db, map[string]int64{}, mostBehindLate}, nil
}

// batch is one transaction. After a fault it does nothing more.
type batch struct {
	ctx context.Context
	tx  *sql.Tx
	err error
}

// exec runs a statement.
func (b *batch) exec(statement string, args ...any) {
	if b.err == nil {
		_, b.err = b.tx.ExecContext(b.ctx, statement, args...)
	}
}

// prepare returns a function that runs a statement many times.
func (b *batch) prepare(statement string) func(args ...any) {
	var s *sql.Stmt
	if b.err == nil {
		s, b.err = b.tx.PrepareContext(b.ctx, statement)
	}
	return func(args ...any) {
		if b.err == nil {
			_, b.err = s.ExecContext(b.ctx, args...)
		}
	}
}

// enter enters the rows with these keys, which are in order, as they are read one
// by one, together with the position up to which they tell, or nothing. The
// former words and counts of these rows leave the index and the figures before,
// and their present ones are entered after.
func (w *writer) enter(ctx context.Context, keys []archive.Key, read func(archive.Key) (row, error), at ledger.Head) error {
	ctx = context.WithoutCancel(ctx) // it is short, and SQLite would start a goroutine for each statement that can be cancelled
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	b := &batch{ctx: ctx, tx: tx}
	late := b.beginRows(keys, w.mostBehindLate)
	w.putRows(b, keys, read)
	b.endRows(late)
	b.exec("UPDATE position SET line = ?, hash = ?", at.N, at.Hash[:])
	if b.err == nil {
		// Rows and position are one transaction: after a crash on either side
		// of this line the next start goes on at the stored line.
		b.err = tx.Commit()
	}
	if b.err != nil {
		clear(w.shared)   // some of them may not be in the file
		_ = tx.Rollback() // SQLite may have done so by itself
	}
	return b.err
}

// beginRows takes out of the index and of the figures what they have of the rows
// with some keys. late is the first key that has later ones in the file and no
// row itself: those behind it will have other numbers, and change too.
func (b *batch) beginRows(keys []archive.Key, mostBehind int) (late []byte) {
	b.exec("DELETE FROM changing")
	add := b.prepare("INSERT INTO changing VALUES (?)")
	for _, k := range keys {
		add(k[:])
	}
	if b.err == nil {
		b.err = b.tx.QueryRowContext(b.ctx, "SELECT min(key) FROM changing c WHERE key < (SELECT max(key) FROM document) AND NOT EXISTS (SELECT 1 FROM document d WHERE d.key = c.key)").Scan(&late)
	}
	if late != nil {
		// All of those, or none: a row that got another number and stayed in the
		// index under its old one would be lost to every search.
		var behind int
		b.err = b.tx.QueryRowContext(b.ctx, "SELECT count(*) FROM (SELECT 1 FROM document WHERE key > ? LIMIT ?)", late, mostBehind+1).Scan(&behind)
		if b.err == nil && behind > mostBehind {
			b.err = errOlder
		}
		b.exec("INSERT INTO changing SELECT key FROM document WHERE key > ? ON CONFLICT DO NOTHING", late)
	}
	b.exec(countChanged, -1)
	b.exec("INSERT INTO words (words, rowid, text) SELECT 'delete', id, text FROM changed")
	return late
}

// putRows enters rows, or changes those that are there.
func (w *writer) putRows(b *batch, keys []archive.Key, read func(archive.Key) (row, error)) {
	if b.err != nil {
		return
	}
	wasErasable := map[archive.Key]bool{}
	b.err = visitRows(b.ctx, b.tx, func(rows *sql.Rows) error {
		var key []byte
		err := rows.Scan(&key)
		wasErasable[keyIn(key)] = true
		return err
	}, "SELECT key FROM changed WHERE erasable")
	put := b.prepare(putStatement)
	for _, k := range keys {
		if b.err != nil {
			return
		}
		var r row
		if r, b.err = read(k); b.err == nil && wasErasable[k] && !r.erasable {
			b.err = errErased
		}
		origin, party := w.enterShared(b, r)
		put(append([]any{k[:]}, r.values(origin, party)...)...)
	}
}

// endRows numbers the rows from a late one on in the order of their keys, and
// enters into the index and the figures what the rows say now.
func (b *batch) endRows(late []byte) {
	if late != nil {
		b.exec(`WITH o AS MATERIALIZED (SELECT key, coalesce((SELECT id FROM document WHERE key < ?1 ORDER BY key DESC LIMIT 1), 0) + row_number() OVER (ORDER BY key) AS n
			FROM document WHERE key >= ?1) UPDATE document SET id = -n FROM o WHERE document.key = o.key`, late)
		b.exec("UPDATE document SET id = -id WHERE id < 0")
	}
	b.exec("INSERT INTO words (rowid, text) SELECT id, text FROM changed")
	b.exec(countChanged, 1)
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
func (w *writer) enterShared(b *batch, r row) (origin, party int64) {
	m := r.shown()
	origin = w.numberOf(b, "INSERT INTO origin (route, drop_name, drop_lower, vault, type) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET type = type RETURNING id",
		string(r.Route), r.Drop, strings.ToLower(r.Drop), string(r.Vault), m.Type)
	names := r.parties()
	if len(names) == 0 {
		return origin, 0
	}
	lower, sender := any(nil), ""
	if m.SenderName != "" {
		lower, sender = strings.ToLower(m.SenderName), foldedLines(m.SenderName)
	}
	lines := []string{strings.ToLower(m.SenderName)}
	for _, name := range names {
		lines = append(lines, foldedLines(name))
	}
	return origin, w.numberOf(b, "INSERT INTO party (text, sender, sender_lower) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET text = text RETURNING id",
		strings.Join(lines, "\n"), sender, lower)
}

// numberOf returns the number of what many rows share; the statement enters it if it is new.
func (w *writer) numberOf(b *batch, statement string, values ...any) (id int64) {
	name := fmt.Sprintf("%q", values)
	if id, known := w.shared[name]; known || b.err != nil {
		return id
	}
	if b.err = b.tx.QueryRowContext(b.ctx, statement, values...).Scan(&id); b.err != nil {
		return 0
	}
	if len(w.shared) >= mostRemembered {
		clear(w.shared)
	}
	w.shared[name] = id
	return id
}

var errEnough = errors.New("enough")

// readChanged returns the keys of the entries that the lines after a head tell
// of, in order and each once, and the head after the last of these lines. It
// reads one batch of lines.
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

// keyField stands in each line about an entry. A number, a time and a word of
// ours stand before it, and nothing else.
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
