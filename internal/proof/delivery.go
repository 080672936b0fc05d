package proof

import (
	"encoding/json"
	"errors"
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// deliveryFormat names the shape of a delivery note; it changes only with the shape.
const deliveryFormat = "vaultd-delivery-1"

// ErrNotDelivered says that there is nothing to give a delivery note for.
var ErrNotDelivered = errors.New("not delivered")

// Delivery is the evidence that is written beside a delivered source: which bytes the service's store took, when, and for whom. It says nothing
// of what the service did with them, because the service says nothing. The fields stand in this order for ever; new ones are added
// at the end.
type Delivery struct {
	Format      string           `json:"format"`
	Environment string           `json:"environment"` // test or production; a test's is no evidence
	Key         string           `json:"key"`
	Route       ledger.Route     `json:"route"`
	ID          string           `json:"id"` // of the document: of its route, its receiver and its content
	BumID       archive.RemoteID `json:"bumId"`
	Receiving   string           `json:"receivingEmailAddress"`
	Files       []ReceiptFile    `json:"files"`
	Sent        ReceiptZIP       `json:"sent"`   // the bytes that the store took
	Seen        string           `json:"seenAt"` // times are RFC 3339 in UTC, by this machine's clock
	Registered  string           `json:"registeredAt,omitempty"`
	Delivered   string           `json:"deliveredAt"`
	Double      bool             `json:"double,omitempty"` // it may have been delivered more than once
	Journal     *ReceiptLine     `json:"journal,omitempty"`

	// What in the folder was not what was delivered when the note was written; empty: nothing.
	Differs []ReceiptDifference `json:"differs,omitempty"`
}

// NewDelivery returns the delivery note of a delivered entry and its document; head may be nil. Its error wraps ErrNotDelivered where the
// store's success is missing.
func NewDelivery(environment string, e ledger.Entry, d ledger.Document, head *ledger.Head) (Delivery, error) {
	if r := e.Current(); e.State != ledger.Delivered || r == nil || r.Fate != ledger.Succeeded {
		return Delivery{}, fmt.Errorf("make delivery note of %s: %w", e.Key, ErrNotDelivered)
	}
	var meta struct {
		Receiving string `json:"receivingEmailAddress"`
	}
	if err := json.Unmarshal(d.Metadata, &meta); err != nil {
		return Delivery{}, fmt.Errorf("make delivery note of %s: read its request: %w", e.Key, err)
	}
	note := Delivery{
		Format: deliveryFormat, Environment: environment, Key: e.Key.String(), Route: e.Route, ID: e.ID.String(), BumID: e.Current().Ticket.Remote,
		Receiving: meta.Receiving, Files: []ReceiptFile{}, Sent: ReceiptZIP{e.Package.Size, e.Package.SHA256.String()},
		Seen: formatUTC(e.SeenAt), Registered: formatUTC(e.RegisteredAt), Delivered: formatUTC(e.UploadedAt), Double: e.PossibleDouble,
	}
	for _, f := range d.Files {
		note.Files = append(note.Files, ReceiptFile{f.Path, f.Size, f.SHA256.String()})
	}
	if head != nil {
		note.Journal = &ReceiptLine{head.N, head.Hash.String()}
	}
	return note, nil
}

// ParseDelivery reads what Encode wrote; fields that a later version added are ignored.
func ParseDelivery(b []byte) (note Delivery, err error) {
	if err := json.Unmarshal(b, &note); err != nil {
		return note, fmt.Errorf("parse delivery note: it is not one JSON object: %w", err)
	}
	if note.Format != deliveryFormat {
		return note, fmt.Errorf("parse delivery note: its format is %.40q, not %q", note.Format, deliveryFormat)
	}
	return note, nil
}

// Encode returns the note as an indented JSON object with a line feed.
func (d Delivery) Encode() []byte {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode delivery note %s: %v", d.Key, err)) // strings and numbers always encode
	}
	return append(b, '\n')
}
