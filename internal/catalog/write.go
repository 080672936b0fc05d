package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// writer changes the rows of one file through one connection.
type writer struct {
	db   *sql.DB
	conn *sql.Conn

	statements             []*sql.Stmt
	find, insert, update   *sql.Stmt // a document
	remove, index, unindex *sql.Stmt
	findOrigin, addOrigin  *sql.Stmt
	findParty, addParty    *sql.Stmt
	move                   *sql.Stmt // the position

	at       ledger.Head // the rows tell of all lines up to this one
	newest   place       // of all documents
	shared   map[string]int64
	takenOut map[archive.Key]bool // rows that are entered again in this transaction; true: with erasable texts
}

// place is where a row stands.
type place struct {
	id  int64
	key archive.Key
}

// mostRemembered bounds what a writer remembers of origins and parties.
const mostRemembered = 20_000

// openWriter opens the only connection that changes a file, and prepares its
// statements. first makes the tables.
func openWriter(ctx context.Context, path, pragmas string, first ...string) (w *writer, err error) {
	db, err := openDatabase(path, pragmas)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	w = newWriter(db, conn)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err != nil {
		return w, err
	}
	for _, s := range first {
		if _, err := w.conn.ExecContext(ctx, s); err != nil {
			return w, err
		}
	}
	return w, w.prepare(ctx)
}

func newWriter(db *sql.DB, conn *sql.Conn) *writer {
	return &writer{db: db, conn: conn, shared: map[string]int64{}, takenOut: map[archive.Key]bool{}}
}

func (w *writer) prepare(ctx context.Context) (err error) {
	columns := strings.Join(documentColumns, ", ")
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&w.find, "SELECT id, text, erasable FROM document WHERE key = ?"},
		{&w.insert, "INSERT INTO document (id, key, " + columns + ") VALUES (?, ?" + strings.Repeat(", ?", len(documentColumns)) + ")"},
		{&w.update, "UPDATE document SET " + strings.Join(documentColumns, " = ?, ") + " = ? WHERE id = ?"},
		{&w.remove, "DELETE FROM document WHERE id = ?"},
		{&w.index, "INSERT INTO words (rowid, text) VALUES (?, ?)"},
		{&w.unindex, "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"},
		{&w.findOrigin, "SELECT id FROM origin WHERE route = ? AND drop_name = ? AND drop_lower = ? AND vault = ? AND type = ?"},
		{&w.addOrigin, "INSERT INTO origin (route, drop_name, drop_lower, vault, type) VALUES (?, ?, ?, ?, ?)"},
		{&w.findParty, "SELECT id FROM party WHERE text = ?"},
		{&w.addParty, "INSERT INTO party (text, sender, sender_lower) VALUES (?, ?, ?)"},
		{&w.move, "UPDATE position SET line = ?, hash = ?"},
	} {
		if *p.into, err = w.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
		w.statements = append(w.statements, *p.into)
	}
	return w.findNewest(ctx)
}

func (w *writer) findNewest(ctx context.Context) error {
	var key []byte
	w.newest = place{}
	err := w.conn.QueryRowContext(ctx, "SELECT id, key FROM document ORDER BY id DESC LIMIT 1").Scan(&w.newest.id, &key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	copy(w.newest.key[:], key)
	return err
}

func (w *writer) close() error {
	if w == nil {
		return nil
	}
	var errs []error
	for _, s := range w.statements {
		errs = append(errs, s.Close())
	}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	if w.db != nil {
		errs = append(errs, w.db.Close())
	}
	return errors.Join(errs...)
}

func (w *writer) begin(ctx context.Context) error {
	_, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// commit commits what was written together with its position.
func (w *writer) commit(ctx context.Context, at ledger.Head) error {
	if _, err := w.move.ExecContext(ctx, int64(at.N), at.Hash[:]); err != nil {
		return err
	}
	// Rows and position are one transaction: after a crash on either side of this line the next start goes on at the stored line.
	if _, err := w.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return err
	}
	w.at = at
	return nil
}

// inTransaction commits what fn writes, with a position, or nothing.
func (w *writer) inTransaction(ctx context.Context, at ledger.Head, fn func() error) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	before := w.newest
	clear(w.takenOut)
	err := fn()
	if err == nil {
		err = w.commit(ctx, at)
	}
	if err == nil {
		return nil
	}
	w.newest = before
	clear(w.shared) // some of them may not be in the file
	_, undo := w.conn.ExecContext(ctx, "ROLLBACK")
	if undo != nil && strings.Contains(undo.Error(), "no transaction is active") { // SQLite has rolled back by itself
		undo = nil
	}
	return errors.Join(err, undo)
}

var (
	// errErased says that the ledger does not have the texts of a row any more.
	// Their words stand in many places of the file: as names of parties, in
	// segments of the index that are merged some day, in the log. A new file
	// has none of them.
	errErased = &rebuildError{"a document was erased, and its words go with the file"}
	errOlder  = &rebuildError{"a document came that is older than many others"}
	// errLate says that rows with later keys are in the file: they must be taken out first.
	errLate = errors.New("rows with later keys are there")
)

// put enters the row of an entry, or changes the one that is there.
func (w *writer) put(ctx context.Context, r row) error {
	isNewest := bytes.Compare(r.Key[:], w.newest.key[:]) > 0 || w.newest.id == 0
	var id int64
	var stored string
	wasErasable := w.takenOut[r.Key]
	if !isNewest {
		err := w.find.QueryRowContext(ctx, r.Key[:]).Scan(&id, &stored, &wasErasable)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errLate
		case err != nil:
			return err
		}
	}
	if wasErasable && !r.erasable {
		return errErased
	}
	origin, party, err := w.enterShared(ctx, r)
	if err != nil {
		return err
	}
	values, text := r.values(origin, party)
	if isNewest {
		w.newest = place{w.newest.id + 1, r.Key}
		if _, err = w.insert.ExecContext(ctx, append([]any{w.newest.id, r.Key[:]}, values...)...); err == nil {
			_, err = w.index.ExecContext(ctx, w.newest.id, text)
		}
		return err
	}
	if stored != text {
		if _, err := w.unindex.ExecContext(ctx, id, stored); err != nil {
			return err
		}
	}
	if _, err = w.update.ExecContext(ctx, append(values, id)...); err == nil && stored != text {
		_, err = w.index.ExecContext(ctx, id, text)
	}
	return err
}

// mostTakenOut bounds how many rows are entered again for one that is late.
const mostTakenOut = 20_000

// takeOut removes the rows with later keys than one, and returns their keys in order.
func (w *writer) takeOut(ctx context.Context, than archive.Key) (keys []archive.Key, err error) {
	type one struct {
		id   int64
		text string
	}
	var out []one
	err = visitRows(ctx, w.conn, func(rows *sql.Rows) error {
		var o one
		var key []byte
		var erasable bool
		err := rows.Scan(&o.id, &key, &o.text, &erasable)
		var k archive.Key
		copy(k[:], key) // a damaged file may have another length
		keys, out, w.takenOut[k] = append(keys, k), append(out, o), erasable
		return err
	}, "SELECT id, key, text, erasable FROM document WHERE key > ? ORDER BY key LIMIT ?", than[:], mostTakenOut+1)
	if err == nil && len(out) > mostTakenOut {
		err = errOlder
	}
	for _, o := range out {
		if err == nil {
			_, err = w.unindex.ExecContext(ctx, o.id, o.text)
		}
		if err == nil {
			_, err = w.remove.ExecContext(ctx, o.id)
		}
	}
	if err != nil {
		return nil, err
	}
	return keys, w.findNewest(ctx)
}

// checkNoRow returns errErased where there is, or was, a row of an entry that is not in the ledger.
func (w *writer) checkNoRow(ctx context.Context, k archive.Key) error {
	var n int
	err := w.conn.QueryRowContext(ctx, "SELECT count(*) FROM document WHERE key = ?", k[:]).Scan(&n)
	if _, was := w.takenOut[k]; err == nil && (n > 0 || was) {
		return errErased
	}
	return err
}

// enterShared returns the numbers of a row's origin and of its party, and
// enters those that are new; party is zero where it names none.
func (w *writer) enterShared(ctx context.Context, r row) (origin, party int64, err error) {
	m := r.shown()
	of := []any{string(r.Route), r.Drop, strings.ToLower(r.Drop), string(r.Vault), m.Type}
	origin, err = w.numberOf(ctx, fmt.Sprintf("%q", of), w.findOrigin, of, w.addOrigin, of)
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
	text := strings.Join(lines, "\n")
	party, err = w.numberOf(ctx, text, w.findParty, []any{text}, w.addParty, []any{text, sender, lower})
	return origin, party, err
}

// numberOf returns the number of what many rows share, and enters it if it is new.
func (w *writer) numberOf(ctx context.Context, name string, find *sql.Stmt, by []any, add *sql.Stmt, values []any) (id int64, err error) {
	if id, known := w.shared[name]; known {
		return id, nil
	}
	if err = find.QueryRowContext(ctx, by...).Scan(&id); errors.Is(err, sql.ErrNoRows) {
		added, failed := add.ExecContext(ctx, values...)
		if failed != nil {
			return 0, failed
		}
		id, err = added.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("enter what many documents share: %w", err)
	}
	if len(w.shared) >= mostRemembered {
		clear(w.shared)
	}
	w.shared[name] = id
	return id, nil
}

// enterAll enters the entries with these keys, which are in order, as they are
// now. Rows stand in the order of their keys: where one is late, the rows
// behind it are entered again.
func (c *Catalog) enterAll(ctx context.Context, w *writer, keys []archive.Key) error {
	for len(keys) > 0 {
		err := c.enter(ctx, w, keys[0])
		if errors.Is(err, errLate) {
			var behind []archive.Key
			if behind, err = w.takeOut(ctx, keys[0]); err != nil {
				return err
			}
			keys = slices.Concat(keys, behind)
			slices.SortFunc(keys, compareKeys)
			keys = slices.Compact(keys)
			continue
		}
		if err != nil {
			return err
		}
		keys = keys[1:]
	}
	return nil
}

func compareKeys(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }

// enter reads an entry and enters it as it is now.
func (c *Catalog) enter(ctx context.Context, w *writer, k archive.Key) error {
	e, ok, err := c.cfg.Ledger.Entry(k)
	if err != nil {
		return err
	}
	if !ok {
		return w.checkNoRow(ctx, k)
	}
	r, err := c.readRow(e)
	if err != nil {
		return err
	}
	return w.put(ctx, r)
}

func (c *Catalog) readRow(e ledger.Entry) (row, error) {
	doc, _, err := c.cfg.Ledger.Document(e.Key)
	if err != nil {
		return row{}, err
	}
	r, err := newRow(e, doc)
	r.completed, r.successes = figuresOf(e, c.cfg.Location)
	return r, err
}
