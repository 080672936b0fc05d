package proof

import (
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// deliveryFormat names the shape of a delivery note; it changes only with the shape.
const deliveryFormat = "vaultd-delivery-1"

// Delivery is the evidence that is written beside a delivered source: which bytes the service took, when, and for whom. Of a PDF it says nothing
// of what the service did with them, because the service says nothing. Of a document of the business network it has what the network had said
// when it was written: a word of the recipient, and a rejection, may come later. The fields stand in this order for ever; new ones are added
// at the end.
type Delivery struct {
	Format      string           `json:"format"`
	Environment string           `json:"environment"` // test or production; a test's is no evidence
	Key         string           `json:"key"`
	Route       ledger.Route     `json:"route"`
	ID          string           `json:"id"` // of the document: of its route, its receiver and its content
	BumID       archive.RemoteID `json:"bumId"`
	Receiving   string           `json:"receivingEmailAddress,omitempty"` // of a PDF
	Files       []ReceiptFile    `json:"files"`
	Sent        ReceiptZIP       `json:"sent"`   // the bytes that the store took
	Seen        string           `json:"seenAt"` // times are RFC 3339 in UTC, by this machine's clock
	Registered  string           `json:"registeredAt,omitempty"`
	Delivered   string           `json:"deliveredAt"`
	Double      bool             `json:"double,omitempty"` // it may have been delivered more than once
	Journal     *ReceiptLine     `json:"journal,omitempty"`

	// What in the folder was not what was delivered when the note was written; empty: nothing.
	Differs []ReceiptDifference `json:"differs,omitempty"`

	// Of a document of the business network: whom it was for, as its document says, the SHA-256 of the body that was sent, the network's numbers of its files, and
	// how the network says that it delivered it.
	RecipientName string           `json:"recipientName,omitempty"`
	RecipientIDs  []string         `json:"recipientIds,omitempty"`
	Body          string           `json:"bodySha256,omitempty"`
	StoredFiles   []archive.FileID `json:"fileIds,omitempty"`
	Means         string           `json:"means,omitempty"`

	// When the network rejected the document after it had delivered it, where that was known when the note was written.
	Rejected string `json:"rejectedAt,omitempty"`

	Requests []ledger.Request `json:"requests,omitempty"` // the calls that delivered it, by which the service's support finds them

	FileOwners []uint32 `json:"fileOwners,omitempty"` // uids, as [ledger.Document] has them
}

// Receiver is whom it was delivered to.
func (d Delivery) Receiver() string {
	return archive.Receiver{Address: d.Receiving, Name: d.RecipientName, IDs: d.RecipientIDs}.String()
}

// NewDelivery returns the delivery note of a delivered entry and its document;
// head may be nil. Its error wraps ErrNoRecord where the store's success is
// missing.
func NewDelivery(environment string, e ledger.Entry, d ledger.Document, head *ledger.Head) (Delivery, error) {
	// A rejection may come before the note is written. The network called the document delivered all the same, and the note says both.
	if r := e.Current(); e.State != ledger.Delivered || r == nil || r.Fate != ledger.Succeeded && !e.IsUndelivered() {
		return Delivery{}, fmt.Errorf("make delivery note of %s: %w", e.Key, ErrNoRecord)
	}
	to, err := archive.ReadReceiver(d.Metadata)
	if err != nil {
		return Delivery{}, fmt.Errorf("make delivery note of %s: %w", e.Key, err)
	}
	note := Delivery{
		Format: deliveryFormat, Environment: environment, Key: e.Key.String(), Route: e.Route, ID: e.ID.String(), BumID: e.Current().Ticket.Remote,
		Receiving: to.Address, Files: filesOf(d), Sent: ReceiptZIP{e.Package.Size, e.Package.SHA256.String()},
		Seen: formatUTC(e.SeenAt), Registered: formatUTC(e.RegisteredAt), Delivered: formatUTC(e.UploadedAt), Double: e.PossibleDouble,
		RecipientName: to.Name, RecipientIDs: to.IDs, Means: e.Means, Requests: e.Requests(), FileOwners: d.FileOwners, Journal: lineOf(head),
	}
	// Without the digest of its body it is not known which files the document names: the lost part of a ledger may have sent it.
	if !e.Body.IsZero() {
		note.Body, note.StoredFiles = e.Body.String(), e.StoredFiles
	}
	if e.IsUndelivered() {
		note.Rejected = formatUTC(e.Current().ClosedAt)
	}
	return note, nil
}

// ParseDelivery reads what Encode wrote; fields that a later version added are ignored.
func ParseDelivery(b []byte) (note Delivery, err error) {
	err = parseNote("delivery note", b, &note, &note.Format, deliveryFormat)
	return note, err
}

// Encode returns the note as an indented JSON object with a line feed.
func (d Delivery) Encode() []byte { return encodeNote(d) }
