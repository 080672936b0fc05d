package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
)

// applicationID stands in the head of every file that this package makes: "vcat".
const applicationID = 0x76636174

// schema is the form of the file. A document's id grows with each document that is entered; see [candidates] for how that order
// becomes the order of keys.
const schema = `
CREATE TABLE position (
  made   TEXT NOT NULL,    -- digest of how the rows were made
  ledger TEXT NOT NULL,    -- the ledger's id
  line   INTEGER NOT NULL, -- the rows tell of all lines of the journal up to this one
  hash   BLOB NOT NULL,    -- of the journal up to it
  newest BLOB NOT NULL     -- the latest key of all rows
) STRICT;
CREATE TABLE document (
  id           INTEGER PRIMARY KEY,
  key          BLOB NOT NULL UNIQUE,
  late         INTEGER NOT NULL, -- 1: a row with a later key was there before
  tokens       INTEGER NOT NULL, -- digest of the texts that its tokens in the index are made of
  erasable     INTEGER NOT NULL, -- 1: a document of the ledger, which can be erased, gave texts
  route        TEXT NOT NULL,
  drop_name    TEXT NOT NULL,
  vault        TEXT NOT NULL,
  folder       TEXT NOT NULL,
  state        INTEGER NOT NULL, -- as the ledger numbers them
  type         TEXT NOT NULL,    -- this and what follows as the metadata has it, else as the sidecar was read
  number       TEXT NOT NULL,
  day          INTEGER,          -- of its date, since 1970; null: it has none
  sender       INTEGER,          -- a party; null: it has none
  amount       INTEGER,          -- grows as the amount does, see amountRank; null: it has none
  seen         INTEGER NOT NULL, -- milliseconds since 1970; 0: not yet
  archived     INTEGER NOT NULL, -- milliseconds since 1970; 0: not yet
  delivered    INTEGER NOT NULL, -- milliseconds since 1970; 0: it is not delivered
  size         INTEGER NOT NULL, -- bytes of the ZIP, or of the PDF
  folder_lower TEXT,             -- in lower case, where SQLite's lower() gives another text
  drop_lower   TEXT,             -- the same
  number_lower TEXT              -- the same
) STRICT;
CREATE INDEX document_state ON document (state);
CREATE INDEX document_rejected ON document (seen) WHERE state = 11; -- rejected
CREATE TABLE party (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE, text_lower TEXT /* as folder_lower */) STRICT;
CREATE TABLE place (id INTEGER PRIMARY KEY, folder TEXT NOT NULL UNIQUE) STRICT;
CREATE VIRTUAL TABLE tokens USING fts5(t, content='', contentless_delete=1, detail=none, tokenize='ascii');
CREATE VIRTUAL TABLE party_tokens USING fts5(t, content='', detail=none, tokenize='ascii');
CREATE VIRTUAL TABLE vocabulary USING fts5vocab(tokens, 'row');
`

// tokensVersion is raised with each change in what the tokens or the columns say that the schema does not show.
const tokensVersion = 4

// howMade returns the digest that a file must have to be read: of its form, of this package's tokens and of the tables that fold
// letters, which change with the compiler and the library.
func howMade() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s", schema, tokensVersion, unicode.Version, cases.UnicodeVersion))
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
