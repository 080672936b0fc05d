package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// position says what the rows of a file tell of.
type position struct {
	head   ledger.Head // all lines up to this one
	newest archive.Key // the latest key of all rows
}

// writer changes the rows of one file through one connection.
type writer struct {
	db   *sql.DB
	conn *sql.Conn

	find, insert, update            *sql.Stmt // a document
	index, reindex                  *sql.Stmt // its tokens
	findParty, addParty, indexParty *sql.Stmt
	findPlace, addPlace             *sql.Stmt
	move                            *sql.Stmt // the position

	at      position
	lastID  int64            // of all documents
	parties map[string]int64 // the numbers of parties that were met lately
	places  map[string]int64 // the numbers of places that were met lately
}

// mostRemembered bounds what a writer remembers of parties and places.
const mostRemembered = 20_000

// documentColumns are the columns of a document from route on, in the order of [row.values].
var documentColumns = []string{"route", "drop_name", "vault", "folder", "state", "type", "number", "day", "sender", "amount",
	"seen", "archived", "delivered", "size", "folder_lower", "drop_lower", "number_lower"}

// openWriter opens the only connection that changes a file, and prepares its statements.
func openWriter(ctx context.Context, path string) (*writer, error) {
	return connectWriter(ctx, path, writePragmas, nil)
}

// createWriter is openWriter for an empty file, in which it makes the tables.
func createWriter(ctx context.Context, path string) (*writer, error) {
	return connectWriter(ctx, path, buildPragmas, schemaStatements())
}

func connectWriter(ctx context.Context, path, pragmas string, first []string) (w *writer, err error) {
	w = &writer{parties: map[string]int64{}, places: map[string]int64{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.db, err = openDatabase(path, pragmas); err != nil {
		return w, err
	}
	if w.conn, err = w.db.Conn(ctx); err != nil {
		return w, err
	}
	for _, s := range first {
		if _, err := w.conn.ExecContext(ctx, s); err != nil {
			return w, err
		}
	}
	columns := strings.Join(documentColumns, ", ")
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&w.find, "SELECT id, tokens, erasable FROM document WHERE key = ?"},
		{&w.insert, "INSERT INTO document (id, key, late, tokens, erasable, " + columns + ") VALUES (?, ?, ?, ?, ?" + strings.Repeat(", ?", len(documentColumns)) + ")"},
		{&w.update, "UPDATE document SET tokens = ?, erasable = ?, " + strings.Join(documentColumns, " = ?, ") + " = ? WHERE id = ?"},
		{&w.index, "INSERT INTO tokens (rowid, t) VALUES (?, ?)"},
		{&w.reindex, "INSERT OR REPLACE INTO tokens (rowid, t) VALUES (?, ?)"},
		{&w.findParty, "SELECT id FROM party WHERE text = ?"},
		{&w.addParty, "INSERT INTO party (text, text_lower) VALUES (?, ?)"},
		{&w.indexParty, "INSERT INTO party_tokens (rowid, t) VALUES (?, ?)"},
		{&w.findPlace, "SELECT id FROM place WHERE folder = ?"},
		{&w.addPlace, "INSERT INTO place (folder) VALUES (?)"},
		{&w.move, "UPDATE position SET line = ?, hash = ?, newest = ?"},
	} {
		if *p.into, err = w.conn.PrepareContext(ctx, p.text); err != nil {
			return w, err
		}
	}
	return w, w.conn.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) FROM document").Scan(&w.lastID)
}

func (w *writer) close() error {
	var errs []error
	for _, s := range []*sql.Stmt{w.find, w.insert, w.update, w.index, w.reindex, w.findParty, w.addParty, w.indexParty, w.findPlace, w.addPlace, w.move} {
		if s != nil {
			errs = append(errs, s.Close())
		}
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
func (w *writer) commit(ctx context.Context, at position) error {
	if _, err := w.move.ExecContext(ctx, int64(at.head.N), at.head.Hash[:], at.newest[:]); err != nil {
		return err
	}
	// Rows and position are one transaction: after a crash on either side of this line the next start goes on at the stored line.
	if _, err := w.conn.ExecContext(ctx, "COMMIT"); err != nil {
		return err
	}
	w.at = at
	return nil
}

// inTransaction commits what fn writes, with the position that fn returns, or nothing.
func (w *writer) inTransaction(ctx context.Context, fn func() (position, error)) error {
	if err := w.begin(ctx); err != nil {
		return err
	}
	before, lastID := w.at, w.lastID
	at, err := fn()
	if err == nil {
		err = w.commit(ctx, at)
	}
	if err == nil {
		return nil
	}
	w.at, w.lastID = before, lastID
	clear(w.parties) // some of them may not be in the file
	clear(w.places)
	_, undo := w.conn.ExecContext(ctx, "ROLLBACK")
	if undo != nil && strings.Contains(undo.Error(), "no transaction is active") { // SQLite has rolled back by itself
		undo = nil
	}
	return errors.Join(err, undo)
}

// errErased says that the ledger does not have the texts of a row any more. Their words stand in many places of the file: as names of parties,
// in segments of the index that are merged some day, in the log. A new file has none of them.
var errErased = &rebuildError{"a document was erased, and its words go with the file"}

// put enters the row of an entry, or changes the one that is there.
func (w *writer) put(ctx context.Context, r row) error {
	parties, err := w.partyNumbers(ctx, r)
	if err != nil {
		return err
	}
	place, err := w.placeNumber(ctx, r.place())
	if err != nil {
		return err
	}
	digest := digestOfTexts(r)
	values := r.values(parties)
	isNewest := isEarlier(w.at.newest, r.Key)
	var id, stored int64
	var wasErasable bool
	if !isNewest {
		err = w.find.QueryRowContext(ctx, r.Key[:]).Scan(&id, &stored, &wasErasable)
	}
	switch isNew := isNewest || errors.Is(err, sql.ErrNoRows); {
	case isNew:
		id = w.lastID + 1
		if _, err = w.insert.ExecContext(ctx, slices.Concat([]any{id, r.Key[:], !isNewest, digest, r.erasable}, values)...); err == nil {
			_, err = w.index.ExecContext(ctx, id, documentTokens(r, parties, place))
		}
		w.lastID = id
		if isNewest {
			w.at.newest = r.Key
		}
		return err
	case err != nil:
		return err
	case wasErasable && !r.erasable:
		return errErased
	}
	if _, err = w.update.ExecContext(ctx, slices.Concat([]any{digest, r.erasable}, values, []any{id})...); err == nil && stored != digest {
		_, err = w.reindex.ExecContext(ctx, id, documentTokens(r, parties, place))
	}
	return err
}

// checkNoRow returns errErased where there is a row of an entry that is not in the ledger.
func (w *writer) checkNoRow(ctx context.Context, k archive.Key) error {
	var id, digest int64
	var erasable bool
	err := w.find.QueryRowContext(ctx, k[:]).Scan(&id, &digest, &erasable)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err == nil:
		return errErased
	}
	return err
}

// partyNumbers returns the number of each party of a row, and enters those that are new.
func (w *writer) partyNumbers(ctx context.Context, r row) (map[string]int64, error) {
	of := map[string]int64{}
	for _, text := range r.parties() {
		id, known := w.parties[text]
		if !known {
			var err error
			if id, err = w.enterParty(ctx, text); err != nil {
				return nil, err
			}
		}
		of[text] = id
	}
	return of, nil
}

func (w *writer) enterParty(ctx context.Context, text string) (id int64, err error) {
	err = w.findParty.QueryRowContext(ctx, text).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		added, failed := w.addParty.ExecContext(ctx, text, lowerOrNull(text))
		if failed != nil {
			return 0, failed
		}
		if id, err = added.LastInsertId(); err == nil {
			_, err = w.indexParty.ExecContext(ctx, id, partyTokens(text))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("enter a party: %w", err)
	}
	if len(w.parties) >= mostRemembered {
		clear(w.parties)
	}
	w.parties[text] = id
	return id, nil
}

// placeNumber returns the number of the folder in which a source lies, and enters it if it is new; zero: there is none yet.
func (w *writer) placeNumber(ctx context.Context, folder string) (id int64, err error) {
	id, known := w.places[folder]
	if folder == "" || known {
		return id, nil
	}
	err = w.findPlace.QueryRowContext(ctx, folder).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		added, failed := w.addPlace.ExecContext(ctx, folder)
		if failed != nil {
			return 0, failed
		}
		id, err = added.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("enter a place: %w", err)
	}
	if len(w.places) >= mostRemembered {
		clear(w.places)
	}
	w.places[folder] = id
	return id, nil
}

func isEarlier(a, b archive.Key) bool { return string(a[:]) < string(b[:]) }
