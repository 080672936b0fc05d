package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// receiptFormat names the shape of a receipt; it changes only with the shape.
const receiptFormat = "vaultd-receipt-1"

// ErrNoRecord says that there is nothing to give a receipt or a delivery note
// for.
var ErrNoRecord = errors.New("neither archived nor delivered")

// Receipt is the evidence that is written beside an archived source. It says what
// was archived, under which numbers, and the service's own words of success. The
// fields stand in this order for ever; new ones are added at the end.
type Receipt struct {
	Format      string           `json:"format"`
	Environment string           `json:"environment"` // test or production; a test's is no evidence
	Key         string           `json:"key"`
	ClientUUID  string           `json:"clientUUID"`
	BumID       archive.RemoteID `json:"bumId"`
	Vault       archive.VaultID  `json:"vault"`
	DocumentID  string           `json:"documentId"`
	Files       []ReceiptFile    `json:"files"`
	ZIP         ReceiptZIP       `json:"zip"`
	Seen        string           `json:"seenAt"` // times are RFC 3339 in UTC
	Registered  string           `json:"registeredAt,omitempty"`
	Uploaded    string           `json:"uploadedAt,omitempty"`
	Archived    string           `json:"archivedAt"`       // the service's own time
	Record      string           `json:"record"`           // the service's answer as it came
	Double      bool             `json:"double,omitempty"` // another registration may hold the same content
	Journal     *ReceiptLine     `json:"journal,omitempty"`

	// What in the folder was not what was archived when the receipt was written; empty: nothing.
	Differs []ReceiptDifference `json:"differs,omitempty"`

	Requests []ledger.Request `json:"requests,omitempty"` // the calls that archived it, by which the archive's support finds them

	FileOwners []uint32 `json:"fileOwners,omitempty"` // uids, as [ledger.Document] has them
}

// ReceiptDifference is one file in the folder that is not what was archived.
type ReceiptDifference struct {
	Path string `json:"path"`
	What string `json:"what"` // in words
}

// ReceiptFile is one file of the invoice.
type ReceiptFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// ReceiptZIP is the package as it was sent.
type ReceiptZIP struct {
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// ReceiptLine names the journal's head once the success was written to it.
type ReceiptLine struct {
	N    uint64 `json:"line"`
	Hash string `json:"hash"` // of all lines up to this one
}

// NewReceipt returns the receipt of an archived entry and its document; head may be
// nil. Its error wraps ErrNoRecord where the service's success is missing.
func NewReceipt(environment string, e ledger.Entry, d ledger.Document, head *ledger.Head) (Receipt, error) {
	if e.State != ledger.Archived || e.ArchivedRemote == "" {
		return Receipt{}, fmt.Errorf("make receipt of %s: %w", e.Key, ErrNoRecord)
	}
	var meta struct {
		Number string `json:"documentId"`
	}
	if err := json.Unmarshal(d.Metadata, &meta); err != nil {
		return Receipt{}, fmt.Errorf("make receipt of %s: read its metadata: %w", e.Key, err)
	}
	return Receipt{
		Format: receiptFormat, Environment: environment,
		Key: e.Key.String(), ClientUUID: e.ArchivedID().String(), BumID: e.ArchivedRemote, Vault: e.Vault, DocumentID: meta.Number,
		Files: filesOf(d), ZIP: ReceiptZIP{e.Package.Size, e.Package.SHA256.String()},
		Seen: formatUTC(e.SeenAt), Registered: formatUTC(e.RegisteredAt), Uploaded: formatUTC(e.UploadedAt), Archived: formatUTC(e.ArchivedAt),
		Record: recordText(e.SuccessRecord), Double: e.PossibleDouble, Requests: e.Requests(), FileOwners: d.FileOwners, Journal: lineOf(head),
	}, nil
}

// ParseReceipt reads what Encode wrote; fields that a later version added are ignored.
func ParseReceipt(b []byte) (r Receipt, err error) {
	err = parseNote("receipt", b, &r, &r.Format, receiptFormat)
	return r, err
}

// parseNote reads the JSON object of a note, which has a format of its own.
func parseNote(what string, b []byte, note any, format *string, want string) error {
	if err := json.Unmarshal(b, note); err != nil {
		return fmt.Errorf("parse %s: it is not one JSON object: %w", what, err)
	}
	if *format != want {
		return fmt.Errorf("parse %s: its format is %.40q, not %q", what, *format, want)
	}
	return nil
}

// Encode returns the receipt as an indented JSON object with a line feed.
func (r Receipt) Encode() []byte { return encodeNote(r) }

func encodeNote(note any) []byte {
	b, err := json.MarshalIndent(note, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode a note: %v", err)) // strings and numbers always encode
	}
	return append(b, '\n')
}

// filesOf lists the files of a document as notes have them.
func filesOf(d ledger.Document) []ReceiptFile {
	files := []ReceiptFile{}
	for _, f := range d.Files {
		files = append(files, ReceiptFile{f.Path, f.Size, f.SHA256.String()})
	}
	return files
}

func lineOf(head *ledger.Head) *ReceiptLine {
	if head == nil {
		return nil
	}
	return &ReceiptLine{head.N, head.Hash.String()}
}

func formatUTC(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// recordText keeps a record that is no valid UTF-8 readable and exact: as a Go string.
func recordText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return fmt.Sprintf("%+q", b)
}
