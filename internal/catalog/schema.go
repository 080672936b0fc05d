package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/cases"
)

// applicationID stands in the head of every file that this package makes: "vcat".
const applicationID = 0x76636174

// schema is the form of the file. The ids of documents are in the order of their
// keys. A text is in the forms that count as the same, see [foldedLines].
const schema = `
CREATE TABLE position (
  made   TEXT NOT NULL,    -- digest of how the rows were made
  ledger TEXT NOT NULL,    -- the ledger's id
  line   INTEGER NOT NULL, -- the rows tell of all lines of the journal up to this one
  hash   BLOB NOT NULL     -- of the journal up to it
) STRICT;
CREATE TABLE document (
  id          INTEGER PRIMARY KEY,
  key         BLOB NOT NULL UNIQUE,
  erasable    INTEGER NOT NULL, -- 1: a document of the ledger, which can be erased, gave texts
  origin      INTEGER NOT NULL,
  party       INTEGER,          -- null: it names none
  state       INTEGER NOT NULL, -- as the ledger numbers them
  day         INTEGER,          -- of its date, since 1970, as the metadata has it, else as the sidecar was read; null: it has none
  amount      REAL,             -- the same; null: it has none
  seen        INTEGER NOT NULL, -- milliseconds since 1970; 0: not yet
  archived    INTEGER,          -- milliseconds since 1970; null: not yet
  delivered   INTEGER,          -- milliseconds since 1970; null: it is not delivered
  size        INTEGER,          -- bytes of the ZIP, or of the PDF; null: there is none yet
  folder_sort TEXT,             -- in lower case, where that is another text than folder
  number_sort TEXT,             -- in lower case, where that is another text than number
  place       TEXT NOT NULL,    -- the path before folder, where both together are the path of the source
  folder      TEXT NOT NULL,
  number      TEXT NOT NULL,    -- the number that is shown
  rest        TEXT NOT NULL,    -- other references, each in a line
  marks       TEXT NOT NULL,    -- the beginnings of key and numbers, and the token of the party
  names       TEXT GENERATED ALWAYS AS (char(10) || place || folder || char(10) || number || char(10) || rest) VIRTUAL,
  completed   INTEGER,          -- day in the time zone, since 1970, on which it was archived or delivered; null: it is neither
  successes   TEXT,             -- JSON: of each success of the service its day and the bytes sent; null: there is none
  text        TEXT GENERATED ALWAYS AS (names || marks) VIRTUAL
) STRICT;
CREATE INDEX document_state ON document (state);
CREATE INDEX document_delivered ON document (delivered) WHERE delivered IS NOT NULL;
CREATE INDEX document_rejected ON document (seen) WHERE state = 11; -- rejected
CREATE TABLE origin (
  id         INTEGER PRIMARY KEY,
  route      TEXT NOT NULL,
  drop_name  TEXT NOT NULL,
  drop_lower TEXT NOT NULL, -- in lower case
  vault      TEXT NOT NULL,
  type       TEXT NOT NULL, -- of the document
  UNIQUE (route, drop_name, vault, type)
) STRICT;
CREATE TABLE party (
  id          INTEGER PRIMARY KEY,
  text        TEXT NOT NULL UNIQUE, -- sender_lower, and the names, numbers and addresses of sender and recipient
  sender      TEXT NOT NULL,        -- the name of the sender that is shown
  sender_lower TEXT                 -- the name in lower case; null: there is none
) STRICT;
CREATE TABLE figure (
  what    INTEGER NOT NULL, -- state of documents that were archived or delivered; 0: successes of the service
  day     INTEGER NOT NULL, -- in the time zone, since 1970
  origin  INTEGER NOT NULL,
  n       INTEGER NOT NULL,
  unsized INTEGER NOT NULL, -- of them, those whose size is not known
  bytes   INTEGER NOT NULL, -- of all others
  PRIMARY KEY (what, day, origin)
) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5(text, content='document', content_rowid='id', detail=none, columnsize=0, tokenize='trigram case_sensitive 1');
`

// rowsVersion is raised with each change in what the columns say that the schema does not show.
const rowsVersion = 8

// howMade returns the digest that a file must have to be read: of its form, of its
// rows, of the tables that fold letters, which change with the compiler and the library,
// and of the time zone in which days begin.
func howMade(zone *time.Location) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %s %s %s", schemaStatements(), rowsVersion, unicode.Version, cases.UnicodeVersion, describeZone(zone)))
	return hex.EncodeToString(sum[:8])
}

// schemaStatements returns the statements that make an empty file.
func schemaStatements() []string {
	all := []string{fmt.Sprintf("PRAGMA application_id = %d", applicationID)}
	for s := range strings.SplitSeq(schema, ";\n") {
		if strings.TrimSpace(s) != "" {
			all = append(all, s)
		}
	}
	return all
}
