package catalog

import (
	"bytes"
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

	"vaultd/internal/ledger"
)

// The ways to open a file. The cache of a connection is 8 MB for writing and 2
// MB for reading; of tables that SQLite makes for a question no file is made.
const (
	commonPragmas = "_pragma=temp_store(2)&_pragma=busy_timeout(5000)&_pragma=trusted_schema(0)"
	// writePragmas: what is replaced in the file is overwritten. In WAL mode with synchronous=normal a commit syncs nothing, and a power cut may take the last commits and nothing else.
	writePragmas = commonPragmas + "&_pragma=cache_size(-8000)&_pragma=journal_mode(WAL)&_pragma=synchronous(1)&_pragma=journal_size_limit(16000000)&_pragma=secure_delete(1)"
	readPragmas  = commonPragmas + "&mode=ro&_pragma=query_only(1)"
	// stoppedPragmas: nobody else has the file open, because the caller has the state directory's lock. SQLite then makes no file.
	stoppedPragmas = readPragmas + "&immutable=1"
	// privatePragmas: the file ends with its connection.
	privatePragmas = commonPragmas + "&_pragma=cache_size(-8000)&_pragma=journal_mode(MEMORY)&_pragma=synchronous(0)"
	// buildPragmas: an unfinished file is thrown away after a crash, so nothing protects it.
	buildPragmas = commonPragmas + "&_pragma=cache_size(-8000)&_pragma=journal_mode(OFF)&_pragma=synchronous(0)&_pragma=locking_mode(EXCLUSIVE)"
)

// The states of a file, in its user_version.
const (
	closedCleanly = 0
	inUse         = 1
)

func openDatabase(path, pragmas string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", databaseURL(path, pragmas))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// databaseURL names a file, whose path may hold any character; an empty one is
// a file of its own that SQLite removes at once.
func databaseURL(path, pragmas string) string {
	return (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas}).String()
}

func (c *Catalog) path() string { return filepath.Join(c.cfg.StateDir, FileName) }

// besides are what SQLite keeps beside a file, by the ends of their names.
var besides = []string{"-wal", "-shm", "-journal"}

// openFile opens the file for writing, and for searches, where it is the catalog of this ledger; else the error is a [*rebuildError].
func (c *Catalog) openFile(ctx context.Context) (*writer, fs.FileInfo, error) {
	info, err := c.moveForeign()
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().Perm() != 0o600 { // somebody put it there; SQLite gives its log the same rights
		if err := os.Chmod(c.path(), 0o600); err != nil {
			return nil, nil, err
		}
	}
	_, walErr := os.Lstat(c.path() + "-wal")
	w, err := openWriter(context.WithoutCancel(ctx), c.path(), writePragmas)
	if e, is := errors.AsType[*sqlite.Error](err); is && e.Code()&0xff == sqlite3.SQLITE_ERROR { // a table is missing or another one
		return nil, nil, &rebuildError{"it has another form: " + err.Error()}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", FileName, err)
	}
	var version int
	if w.at, version, err = c.readPosition(ctx, w.conn); err == nil && version == inUse && errors.Is(walErr, fs.ErrNotExist) {
		err = &rebuildError{"its write-ahead log is gone, and it was not closed"}
	}
	if err == nil {
		// From here a crash leaves a file that is in use: it is complete only together with its log.
		_, err = w.conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA user_version = %d", inUse))
	}
	if err == nil {
		err = c.publish(w, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, w.close())
	}
	return w, info, nil
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
	// Asked first: the file of another user may not even be readable. The folder is ours, so it can be moved.
	if !isOfAnother(c.path()) {
		ours, err := isOurs(c.path(), info)
		if err != nil || ours {
			return info, err
		}
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
func isOurs(path string, info fs.FileInfo) (bool, error) {
	if !hasOneName(info) {
		return false, nil
	}
	for _, end := range besides {
		// SQLite follows a link there, and writes into the file that it finds.
		if beside, err := os.Lstat(path + end); err == nil && !hasOneName(beside) {
			return false, nil
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, err
	}
	defer f.Close() // read only
	head := make([]byte, 72)
	switch n, err := io.ReadFull(f, head); {
	case n == 0 && errors.Is(err, io.EOF):
		return true, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return false, nil
	case err != nil:
		return false, err
	}
	return bytes.HasPrefix(head, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(head[68:]) == applicationID, nil
}

// hasOneName reports whether it is a file that no other name leads to.
func hasOneName(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Nlink == 1
}

// isOfAnother reports whether the file, or what SQLite keeps beside it, belongs to another user, and this one is not root: it could not be
// written, today or after its rights change.
func isOfAnother(path string) bool {
	me := os.Geteuid()
	if me == 0 {
		return false
	}
	for _, end := range append([]string{""}, besides...) {
		if info, err := os.Lstat(path + end); err == nil && info.Sys().(*syscall.Stat_t).Uid != uint32(me) {
			return true
		}
	}
	return false
}

// readPosition returns what the rows of a file tell of; the error is a [*rebuildError] where that is not this ledger's journal.
func (c *Catalog) readPosition(ctx context.Context, q queryer) (at ledger.Head, version int, err error) {
	var made, of string
	var hash []byte
	var line int64
	err = q.QueryRowContext(ctx, "SELECT made, ledger, line, hash FROM position").Scan(&made, &of, &line, &hash)
	if err == nil {
		err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = &rebuildError{"it was never finished"}
	}
	if err != nil {
		return at, version, err
	}
	at.N = uint64(line)
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

// publish lets searches read the file.
func (c *Catalog) publish(w *writer, info fs.FileInfo) error {
	db, err := openDatabase(c.path(), readPragmas)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(4)
	db.SetMaxIdleConns(1)
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w, c.file, c.told = w, newReadable(db, db.Close, w.at, info), Status{Fault: c.told.Fault}
	return nil
}

// closeFile closes the file once no search reads it. If vaultd stops, it ends
// those that do. What the log holds goes into the file, and the log is removed.
func (c *Catalog) closeFile(ctx context.Context, w *writer) error {
	c.mu.Lock()
	read := c.file
	c.mu.Unlock()
	if ctx.Err() != nil { // else the file is made anew, and a search may end in peace
		read.end()
	}
	defer read.end()
	c.writing.Lock() // a question that could not enter rows any more must not be given the file either
	c.mu.Lock()
	c.w, c.file = nil, nil
	c.mu.Unlock()
	c.writing.Unlock()
	plain := context.WithoutCancel(ctx) // the end of ctx is why the file is closed
	c.reading.Lock()                    // no search begins to read it any more, and those that read end first
	err := read.close()
	c.reading.Unlock()
	if _, failed := w.conn.ExecContext(plain, fmt.Sprintf("PRAGMA user_version = %d", closedCleanly)); failed != nil {
		err = errors.Join(err, failed)
	}
	// A crash before the log is removed leaves both, and the next start reads both.
	return errors.Join(err, w.close())
}

// checkFile reports that the open file is not the one that lies under its name any more, or that a search met damage in it.
func (c *Catalog) checkFile(opened fs.FileInfo) error {
	c.mu.Lock()
	damage := c.damage
	if c.told.Damaged == "" {
		damage = nil
	}
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
	case !os.SameFile(opened, now):
		return &rebuildError{"another file lies in its place"}
	}
	return nil
}

// reasonToRebuild returns why an error means that the file must be made anew; nil: it does not mean that.
func reasonToRebuild(err error) *rebuildError {
	if again, is := errors.AsType[*rebuildError](err); is {
		return again
	}
	if isDamage(err) {
		return &rebuildError{"it is damaged: " + err.Error()}
	}
	return nil
}

// isDamage reports whether an error of SQLite says that what is in the file is wrong.
func isDamage(err error) bool {
	e, is := errors.AsType[*sqlite.Error](err)
	if !is {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT:
		return true
	}
	return e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ
}
