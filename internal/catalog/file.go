package catalog

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The ways to open a file. The cache of a connection is 8 MB for writing and 2
// MB for reading; of tables that SQLite makes for a question no file is made.
const (
	commonPragmas = "_pragma=temp_store(2)&_pragma=busy_timeout(5000)&_pragma=trusted_schema(0)"
	// writePragmas: what is replaced in the file is overwritten. In WAL mode with synchronous=normal a commit syncs nothing, and a power cut may take the last commits and nothing else.
	writePragmas = commonPragmas + "&_txlock=immediate&_pragma=cache_size(-8000)&_pragma=journal_mode(WAL)&_pragma=synchronous(1)&_pragma=journal_size_limit(16000000)&_pragma=secure_delete(1)"
	readPragmas  = commonPragmas + "&mode=ro&_pragma=query_only(1)"
)

// The states of a file, in its user_version.
const (
	closedCleanly = 0
	inUse         = 1
)

// file is an open file, with its connection for rows and those for questions.
type file struct {
	*writer
	read *sql.DB
	info fs.FileInfo
	at   ledger.Head // the rows tell of all lines up to this one; changed under writing and mu

	ending context.Context // ended: questions are to stop
	end    context.CancelCauseFunc
}

// rebuildError says that the file must be made anew.
type rebuildError struct{ why string }

func (e *rebuildError) Error() string { return e.why }

var (
	errMissing = &rebuildError{"there is none"}
	errClosed  = &rebuildError{"it was closed"}
	// errErased says that the ledger does not have the texts of a row any more.
	// Their words stand in many places of the file: as names of parties, in
	// segments of the index that are merged some day, in the log. A new file
	// has none of them.
	errErased = &rebuildError{"a document was erased, and its words go with the file"}
	errOlder  = &rebuildError{"a document came that is older than many others"}
)

// reasonToRebuild returns why an error means that the file must be made anew;
// nil: it does not mean that.
func reasonToRebuild(err error) *rebuildError {
	if again, is := errors.AsType[*rebuildError](err); is {
		return again
	}
	if e, is := errors.AsType[*sqlite.Error](err); is {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR: // the last: a table is missing
			return &rebuildError{"it is damaged: " + err.Error()}
		}
		if e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return &rebuildError{"it is damaged: " + err.Error()}
		}
	}
	return nil
}

// openDatabase opens a file, whose path may hold any character.
func openDatabase(path, pragmas string, connections int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas}).String())
	if err == nil {
		db.SetMaxOpenConns(connections)
		db.SetMaxIdleConns(1)
	}
	return db, err
}

func (c *Catalog) path() string { return filepath.Join(c.cfg.StateDir, FileName) }

// besides are what SQLite keeps beside a file, by the ends of their names.
var besides = []string{"-wal", "-shm", "-journal"}

// openFile opens the file where it is the catalog of this ledger; else the error
// is a [*rebuildError]. The caller holds writing.
func (c *Catalog) openFile(ctx context.Context) (err error) {
	info, err := c.moveForeign()
	if err != nil {
		return err
	}
	if info.Mode().Perm() != 0o600 { // somebody put it there; SQLite gives its log the same rights
		if err := os.Chmod(c.path(), 0o600); err != nil {
			return err
		}
	}
	plain := context.WithoutCancel(ctx)
	_, noLog := os.Lstat(c.path() + "-wal")
	w, err := openWriter(plain, c.path())
	if err != nil {
		return fmt.Errorf("open %s: %w", FileName, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.db.Close())
		}
	}()
	at, version, err := c.readPosition(plain, w.db)
	if err != nil {
		return err
	}
	if version == inUse && errors.Is(noLog, fs.ErrNotExist) {
		return &rebuildError{"its write-ahead log is gone, and it was not closed"}
	}
	// From here a crash leaves a file that is in use: it is complete only together with its log.
	if _, err := w.db.ExecContext(plain, fmt.Sprintf("PRAGMA user_version = %d", inUse)); err != nil {
		return err
	}
	read, err := openDatabase(c.path(), readPragmas, 4)
	if err != nil {
		return err
	}
	f := &file{writer: w, read: read, info: info, at: at}
	if !c.isKept { // it outlives the question that opens it
		ctx = plain
	}
	f.ending, f.end = context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.file, c.told.Made, c.damage = f, 0, nil
	return nil
}

// closeFile closes the file, if one is open, once no question reads it: those
// that do are ended. SQLite moves its log into the file and removes it. The
// caller holds writing.
func (c *Catalog) closeFile() error {
	c.mu.Lock()
	f := c.file
	c.file = nil
	c.mu.Unlock()
	if f == nil {
		return nil
	}
	f.end(errClosed)
	c.reading.Lock() // no question begins to read it any more, and those that read end first
	err := f.read.Close()
	c.reading.Unlock()
	_, failed := f.db.Exec(fmt.Sprintf("PRAGMA user_version = %d", closedCleanly))
	// A crash before the log is removed leaves both, and the next start reads both.
	return errors.Join(err, failed, f.db.Close())
}

// moveForeign looks at what lies under the catalog's name, before SQLite opens it. What this package never made is moved away.
func (c *Catalog) moveForeign() (fs.FileInfo, error) {
	info, err := os.Lstat(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMissing
	}
	if err != nil {
		return nil, err
	}
	if ours, err := isOurs(c.path()); err != nil || ours {
		return info, err
	}
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.foreign-%d", c.path(), n)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		// What lies beside it goes first: after a crash the file is still here, and the next start moves it to the same name. Else what
		// is left beside a file that is gone would be removed as ours. Only this process makes names here.
		for _, end := range append(slices.Clone(besides), "") {
			if err := os.Rename(c.path()+end, to+end); err != nil && (end == "" || !errors.Is(err, fs.ErrNotExist)) {
				return nil, err
			}
		}
		c.cfg.Log.Warn(FileName + " is not ours; moved to " + filepath.Base(to) + ", rebuilding")
		return nil, &rebuildError{"another file lay there"}
	}
}

// isOurs reports whether this package made a file and what lies beside it. An empty file counts as ours: there is nothing to lose.
func isOurs(path string) (bool, error) {
	me := os.Geteuid()
	for _, end := range append([]string{""}, besides...) {
		info, err := os.Lstat(path + end)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		// SQLite follows a link, and writes into the file that it finds. A file of
		// another user could not be written, today or after its rights change.
		if s := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() || s.Nlink != 1 || me != 0 && s.Uid != uint32(me) {
			return false, nil
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close() // read only
	head := make([]byte, 72)
	n, err := io.ReadFull(f, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return n == 0 || bytes.HasPrefix(head, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(head[68:]) == applicationID, err
}

// readPosition returns up to which line the rows of a file tell; the error is a
// [*rebuildError] where that is not this ledger's journal.
func (c *Catalog) readPosition(ctx context.Context, db *sql.DB) (at ledger.Head, version int, err error) {
	var made, of string
	var hash []byte
	err = db.QueryRowContext(ctx, "SELECT made, ledger, line, hash, user_version FROM position, pragma_user_version").Scan(&made, &of, &at.N, &hash, &version)
	if errors.Is(err, sql.ErrNoRows) {
		err = &rebuildError{"it was never finished"}
	}
	if err != nil {
		return at, version, err
	}
	copy(at.Hash[:], hash)
	switch now, ok, err := c.cfg.Ledger.HeadAt(at.N); {
	case made != howMade(c.cfg.Location):
		return at, version, &rebuildError{"it was made by another version of vaultd, or for another time zone"}
	case of != c.cfg.Ledger.Info().ID:
		return at, version, &rebuildError{"it is that of another ledger"}
	case err != nil:
		return at, version, err
	case !ok:
		return at, version, &rebuildError{fmt.Sprintf("it tells of line %d, and the journal ends before that", at.N)}
	case now != (ledger.Head{N: at.N, Hash: at.Hash}):
		return at, version, &rebuildError{fmt.Sprintf("line %d of the journal is another one now", at.N)}
	}
	return at, version, nil
}

// checkFile reports that an open file is not the one that lies under its name
// any more, or that a question met damage in it.
func (c *Catalog) checkFile(f *file) error {
	c.mu.Lock()
	damage := c.damage
	c.mu.Unlock()
	if damage != nil {
		return damage
	}
	now, err := os.Lstat(c.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &rebuildError{"its file was removed"}
	case err != nil:
		return err
	case !os.SameFile(f.info, now):
		return &rebuildError{"another file lies in its place"}
	}
	return nil
}

// makeFile makes the file anew from all entries, in the order of their keys. The
// former file goes first: nothing reads it any more, and both may not have room.
func (c *Catalog) makeFile(ctx context.Context) (err error) {
	c.mu.Lock()
	c.told.Made, c.damage = 0, nil
	c.mu.Unlock()
	if err := removeWithBesides(c.path()); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make %s: %w", FileName, err), removeWithBesides(c.path()))
		}
	}()
	// SQLite would make it readable for others.
	f, err := os.OpenFile(c.path(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	w, err := openWriter(context.WithoutCancel(ctx), c.path(), schemaStatements()...)
	if err != nil {
		return err
	}
	return errors.Join(c.copyEntries(ctx, w), w.db.Close())
}

// rowsAtOnce is how many rows of a new file are one transaction.
const rowsAtOnce = 2_000

// copyEntries enters all entries of the ledger. Commits of that time may be
// among them or not: the position is that of the beginning, and all that came
// later is entered again.
func (c *Catalog) copyEntries(ctx context.Context, w *writer) error {
	start, all := c.cfg.Ledger.Head(), max(c.cfg.Ledger.Balance().Seen, 1)
	var keys []archive.Key
	var done uint64
	err := c.cfg.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if keys = append(keys, e.Key); len(keys) < rowsAtOnce {
			return nil
		}
		done += rowsAtOnce
		c.mu.Lock()
		c.told.Made = int(min(done*100/all, 99))
		c.mu.Unlock()
		err := cmp.Or(context.Cause(ctx), c.cfg.CheckSpace())
		if err == nil {
			err = w.enter(ctx, keys, c.readRow, start)
		}
		keys = keys[:0]
		return err
	})
	if err == nil {
		err = w.enter(ctx, keys, c.readRow, start)
	}
	if err == nil {
		// The position comes last: a crash before this line leaves a file that was never finished.
		_, err = w.db.ExecContext(context.WithoutCancel(ctx), "INSERT INTO position (made, ledger, line, hash) VALUES (?, ?, ?, ?)",
			howMade(c.cfg.Location), c.cfg.Ledger.Info().ID, start.N, start.Hash[:])
	}
	return err
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
