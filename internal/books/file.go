package books

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
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"vaultd/internal/custody"
)

// FileName is the file in the state directory.
const FileName = "books.db"

// applicationID stands in the head of every file that this package makes: "vbks".
const applicationID = 0x76626b73

// schema is the form of the file. A booked row with a later rank has replaced one with an earlier rank.
const schema = `
CREATE TABLE IF NOT EXISTS made (
  how     TEXT NOT NULL,   -- digest of how records become rows
  changes INTEGER NOT NULL, -- of the booked rows, counted
  settled INTEGER NOT NULL -- the changes after which values that can be read in two ways were read
) STRICT;
CREATE TABLE IF NOT EXISTS extract (
  id       TEXT PRIMARY KEY,
  manifest BLOB NOT NULL,    -- its digest
  name     TEXT NOT NULL,    -- of the configuration that made it
  type     TEXT NOT NULL,
  start_at INTEGER NOT NULL, -- seconds since 1970 of what it holds; 0: not told
  end_at   INTEGER NOT NULL,
  made_at  INTEGER NOT NULL,
  has      INTEGER NOT NULL, -- 0: no file of a table, 1: tables of other data sets alone, 2: a table of the data set that is asked about
  records  INTEGER NOT NULL,
  no_key   INTEGER NOT NULL, -- records without a key, which are not counted
  columns  TEXT NOT NULL,    -- of the table by its definition, sorted, a line for each
  unread   TEXT NOT NULL,    -- why its definition cannot be read; empty: it can
  decimal  INTEGER NOT NULL, -- the decimal character that its amounts show, and what comes first in its dates; 0: they do not show it
  day_order INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS file (
  extract TEXT NOT NULL,
  number  INTEGER NOT NULL, -- in the manifest
  name    TEXT NOT NULL,
  PRIMARY KEY (extract, number)
) STRICT;
CREATE TABLE IF NOT EXISTS booked (
  id       INTEGER PRIMARY KEY,
  key      TEXT NOT NULL UNIQUE,
  rank     BLOB NOT NULL,    -- of the record that made it: it tells the extract, the file and the record's number in it
  counts   INTEGER NOT NULL, -- 1: it is booked
  number   TEXT NOT NULL,
  supplier TEXT NOT NULL,
  company  TEXT NOT NULL,
  date     TEXT NOT NULL,    -- like 2026-10-31
  amount   TEXT NOT NULL,    -- plain decimal
  currency TEXT NOT NULL,
  type     TEXT NOT NULL,
  wrong    TEXT NOT NULL,    -- what of it cannot be read
  raw_amount TEXT NOT NULL,  -- the amount and the date as they are written, where each alone can be read in two ways
  raw_date TEXT NOT NULL,
  unclear  TEXT NOT NULL     -- what of them the other values of the column do not show either
) STRICT;
-- Answers list rows in this order. Sorting a million of them for each answer would take 300 MB.
CREATE INDEX IF NOT EXISTS booked_order ON booked (date, number, key);
CREATE TABLE IF NOT EXISTS matching (
  of      BLOB NOT NULL,    -- what the matches were made of
  changes INTEGER NOT NULL, -- the booked rows that they were made of
  sum     BLOB NOT NULL     -- digest of the parts
) STRICT;
CREATE TABLE IF NOT EXISTS matching_part (
  kind    INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (kind, number)
) STRICT;
`

const (
	// creating: whoever writes waits for the one before. No temporary file is made.
	creating = "_pragma=temp_store(2)&_pragma=busy_timeout(600000)&_pragma=trusted_schema(0)&_txlock=immediate"
	// The file has at most mostPages of pageSize bytes.
	mostPages = 1 << 20
	pageSize  = 4096
	// using: a commit syncs nothing, and a power cut may take the last ones and nothing else.
	using = creating + "&_pragma=cache_size(-48000)&_pragma=journal_mode(WAL)&_pragma=synchronous(1)&_pragma=journal_size_limit(16000000)&_pragma=max_page_count(1048576)"
)

// Books is the open file, for one answer.
type Books struct {
	db       *sql.DB
	settings Settings
	custody  *custody.Custody
	path     string
}

// Open opens the file in the state directory, and makes it where it is missing, damaged or made with other settings. Several processes
// and goroutines may have it open.
func Open(ctx context.Context, stateDir string, s Settings, held *custody.Custody) (*Books, error) {
	b := &Books{settings: s, custody: held, path: filepath.Join(stateDir, FileName)}
	isThere, err := isOurs(b.path)
	if err != nil {
		return nil, err
	}
	if isThere {
		err = b.openAsMade(ctx)
		if err == nil {
			return b, nil
		}
		if !isUnusable(err) {
			return nil, fmt.Errorf("open %s: %w", b.path, err)
		}
		if err := b.remove(); err != nil {
			return nil, err
		}
	}
	if err := b.create(ctx); err != nil {
		return nil, fmt.Errorf("make %s: %w", b.path, err)
	}
	return b, nil
}

// Close closes the file.
func (b *Books) Close() error { return b.db.Close() }

func connect(path, pragmas string) (*sql.DB, error) {
	// A path may hold any character, so it goes through a URL.
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas}).String())
}

var errOtherwiseMade = errors.New("it was made with other settings or by another version of vaultd")

// openAsMade opens a file that is there.
func (b *Books) openAsMade(ctx context.Context) (err error) {
	if b.db, err = connect(b.path, using); err != nil {
		return err
	}
	var how string
	err = b.db.QueryRowContext(ctx, "SELECT how FROM made").Scan(&how)
	if err == nil && how != b.settings.digest() {
		err = errOtherwiseMade
	}
	if err != nil {
		return errors.Join(err, b.db.Close())
	}
	return nil
}

// isUnusable reports whether a file of ours is to be made anew.
func isUnusable(err error) bool {
	if errors.Is(err, errOtherwiseMade) || errors.Is(err, sql.ErrNoRows) {
		return true
	}
	e, is := errors.AsType[*sqlite.Error](err)
	if !is {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR:
		return true
	}
	return false
}

// isFull reports whether the file or its disk has no room.
func isFull(err error) bool {
	e, is := errors.AsType[*sqlite.Error](err)
	return is && e.Code()&0xff == sqlite3.SQLITE_FULL
}

// create makes the file.
func (b *Books) create(ctx context.Context) error {
	f, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite gives its log the same rights
	if err != nil {
		return err
	}
	if err := errors.Join(giveToOwner(f, filepath.Dir(b.path)), f.Close()); err != nil {
		return err
	}
	db, err := connect(b.path, creating)
	if err != nil {
		return err
	}
	// One transaction, with the mark of the file in it: after a crash the file is empty, or it is ours and has its form.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	for statement := range strings.SplitSeq(schema+fmt.Sprintf("PRAGMA application_id = %d", applicationID), ";\n") {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO made SELECT ?, 0, 0 WHERE NOT EXISTS (SELECT * FROM made)", b.settings.digest())
	}
	if err != nil {
		return errors.Join(err, tx.Rollback(), db.Close())
	}
	if err := errors.Join(tx.Commit(), db.Close()); err != nil {
		return err
	}
	return b.openAsMade(ctx)
}

// giveToOwner gives a file that root makes to whom the folder belongs, so that the daemon can use it. SQLite gives what it makes beside
// the file the same owner.
func giveToOwner(f *os.File, folder string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	return f.Chown(int(owner.Uid), int(owner.Gid))
}

// remove removes a file of ours, with what SQLite keeps beside it.
func (b *Books) remove() error {
	// The file goes first: a log without its file is never read as that of another one, because a new file has another salt.
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(b.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// isOurs reports whether there is a file, and that this package made it; an empty one counts as none. Anything else is left alone, and
// is an error.
func isOurs(path string) (bool, error) {
	foreign := fmt.Errorf("%s is not a file of vaultd: look at it and move it away", path)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, foreign
	case info.Size() == 0:
		return false, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close() // it is only read
	head := make([]byte, 72)
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	if !bytes.HasPrefix(head, []byte("SQLite format 3\x00")) || binary.BigEndian.Uint32(head[68:]) != applicationID {
		return false, foreign
	}
	return true, nil
}
