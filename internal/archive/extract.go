package archive

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ExtractID is the service's number of one extract, as ParseExtractID gives it.
type ExtractID string

// DeriveExtractFileID returns the identity of one file of an extract, as a document of the archive: UUID version 5 of the ledger, the
// extract, the file's name and its digest. The name is part of it because two files of one extract may have the same bytes, and each of them
// is a document with a number of its own.
func DeriveExtractFileID(ledgerID string, extract ExtractID, name string, content Digest) ID {
	b := slices.Concat([]byte("extract"), []byte{0}, []byte(ledgerID), []byte{0}, []byte(extract), []byte{0}, []byte(name), []byte{0}, content[:])
	return ID(uuid.NewSHA1(namespace, b))
}

// ErrExtractID says that an answer held a number that cannot stand in a path.
var ErrExtractID = errors.New("not a usable number of an extract")

// ParseExtractID checks a number that the service gave: 1 to 200 printable ASCII characters without a slash, so that it can
// stand in a path, a log and a report. Its letters stay as they came: nothing says that case does not count.
func ParseExtractID(s string) (ExtractID, error) {
	if !isPathSegment(s) {
		return "", fmt.Errorf("%w: %q", ErrExtractID, shorten(s, 60))
	}
	return ExtractID(s), nil
}

// isPathSegment reports whether a number of the service can stand in a path: 1 to 200 printable ASCII characters, of which none has
// a meaning of its own there.
func isPathSegment(s string) bool {
	return len(s) >= 1 && len(s) <= 200 && s != "." && s != ".." &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`/\?#%`, r) }) < 0
}

// The types of extracts. A service may have others.
const (
	InitialExtract = "Initial"   // all documents, when the access began
	DeltaExtract   = "Delta"     // what changed since the extract before
	RangeExtract   = "DateRange" // of days that somebody chose
)

// ExportedStatus is the status of extracts that were acknowledged. A list that
// does not ask for it leaves them out.
const ExportedStatus = "Exported"

// Extract is one extract of the accounts-payable system, as its list tells it.
type Extract struct {
	ID         ExtractID
	Type       string    // InitialExtract, DeltaExtract, RangeExtract, or another word of the service
	Start, End time.Time // of what it holds; zero: unknown
	Made       time.Time // when it was made; zero: unknown
	Files      int       // how many files it has; -1 if missing
	Status     string    // whether it was exported, in the service's word
	Name       string    // of the configuration that made it
}

// ExtractList is what the service lists. An extract that a list which is not Whole leaves out may be there all the same.
type ExtractList struct {
	Extracts []Extract
	Whole    bool
}

// ExtractFile is one file of an extract, as the extract's own list tells it.
type ExtractFile struct {
	Extract    ExtractID
	Table      string // that its records come from
	Name       string // as the service writes it, so it is no path of ours
	URL        DownloadURL
	Start, End time.Time // of what it holds; zero: unknown
}

// MayBePlain reports whether a file may be something else than a ZIP or gzip
// file, as its name says: the service may add files to those of its tables.
func (f ExtractFile) MayBePlain() bool {
	switch strings.ToLower(path.Ext(f.Name)) {
	case ".zip", ".gz", ".gzip", ".tgz":
		return false
	case "":
		return f.Table == ""
	}
	return true
}

// DownloadURL is the address of a file of an extract, or of what a link of the network leads to. It may carry its own authority, so whatever prints it prints a placeholder.
type DownloadURL string

// String hides the address.
func (DownloadURL) String() string { return "[address]" }

// MarshalText hides the address from JSON and other encoders.
func (DownloadURL) MarshalText() ([]byte, error) { return []byte("[address]"), nil }

// Format hides the address from every verb: fmt prints the value itself under one that does not fit a text.
func (DownloadURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[address]") }

// LogValue hides the address from slog.
func (DownloadURL) LogValue() slog.Value { return slog.StringValue("[address]") }

// TableDefinition says which columns the files of extracts have.
type TableDefinition struct {
	Raw    []byte // as the service sent it
	Tables []Table
}

// Table is one table of a definition, with its columns in the order in which they came.
type Table struct {
	Name    string
	Columns []Column
}

// Column is one column of a table, in the service's words.
type Column struct{ Name, Type, Definition, Example string }

// FindTable returns the table of that name; ok is false where the definition has none.
func (d TableDefinition) FindTable(name string) (t Table, ok bool) {
	for _, t := range d.Tables {
		if t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}
