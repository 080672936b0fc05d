package archive

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// NetworkKind says what a document of the business network is. Empty: something else than the kinds below, such as an order.
type NetworkKind string

// The kinds.
const (
	NetworkInvoice    NetworkKind = "Invoice"
	NetworkCreditNote NetworkKind = "CreditNote"
)

// notificationCreditNote is how notifications of the network spell a credit note.
const notificationCreditNote = "CreditNode"

// ParseNetworkKind reads a kind, in both spellings of a credit note. Any other word gives the empty kind.
func ParseNetworkKind(word string) NetworkKind {
	switch word {
	case string(NetworkInvoice):
		return NetworkInvoice
	case string(NetworkCreditNote), notificationCreditNote:
		return NetworkCreditNote
	}
	return ""
}

// NotificationWord returns the kind as notifications of the network spell it.
func (k NetworkKind) NotificationWord() string {
	if k == NetworkCreditNote {
		return notificationCreditNote
	}
	return string(k)
}

// bumIDPattern is the form of a bumId that the network takes: a UUID of version 1 to 5 in small letters.
var bumIDPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// NewBumID returns the number of a document that this program sends: UUID version 5 of the parts. The same parts, in the same
// order, give the same number, and no other parts do.
func NewBumID(parts ...string) RemoteID {
	var b strings.Builder
	b.WriteString("bumId\x00") // no identity of another kind is made of the same bytes
	for _, p := range parts {
		fmt.Fprintf(&b, "%d:%s", len(p), p) // with its length: no two lists of texts run into the same bytes
	}
	return RemoteID(uuid.NewSHA1(namespace, []byte(b.String())).String())
}

// NetworkContent is the digest of the files of a document for the business network; document is the digest of the document itself. It is never
// that of the same files in the archive: an invoice that is sent and archived is no unusual thing. Documents without files have nothing in
// common, so their digests differ.
func NetworkContent(files []File, document Digest) Digest {
	content := ContentDigest(files)
	if len(files) > 0 {
		document = Digest{}
	}
	return Sum(slices.Concat([]byte("network files\x00"), content[:], document[:]))
}

// DeriveNetworkID returns the identity of a document for the business network: UUID version 5 of the route "network", the digest of its files
// and that of the document itself, byte for byte. The folder's name and the ZIP's bytes are no part of it. No vault has the name that stands
// in the place of one here, so no identity of [DeriveID] is made of the same bytes.
func DeriveNetworkID(content, document Digest) ID {
	return ID(uuid.NewSHA1(namespace, slices.Concat([]byte("network\x00\x00"), content[:], document[:])))
}

// NetworkNumberDigest identifies the number of an invoice among those that go over the business network. A document without a number has none
// in common with another one. No vault has an empty name, so the same invoice in the archive counts as another one.
func (d Document) NetworkNumberDigest() NumberDigest {
	if d.Number == "" {
		return NumberDigest{}
	}
	return d.NumberDigest("")
}

// IsBumID reports whether the network takes r as the number of a document that is sent. What it gives to received documents may
// have another form.
func (r RemoteID) IsBumID() bool { return bumIDPattern.MatchString(string(r)) }

// FileID is the network's number of one stored file, as ParseFileID gives it. Those of received files are no UUIDs.
type FileID string

// AcknowledgementID is the network's number of one notification, as ParseAcknowledgementID gives it.
type AcknowledgementID string

// Errors of numbers that cannot stand in a path.
var (
	ErrFileID            = errors.New("not a usable number of a file")
	ErrAcknowledgementID = errors.New("not a usable number of a notification")
)

// ParseFileID checks a number that the network gave: 1 to 200 printable ASCII characters without a slash, so that it can stand in
// a path, a log and a report. Its letters stay as they came.
func ParseFileID(s string) (FileID, error) {
	if !isPathSegment(s) {
		return "", fmt.Errorf("%w: %q", ErrFileID, shorten(s, 60))
	}
	return FileID(s), nil
}

// ParseAcknowledgementID checks a number that the network gave, as ParseFileID does.
func ParseAcknowledgementID(s string) (AcknowledgementID, error) {
	if !isPathSegment(s) {
		return "", fmt.Errorf("%w: %q", ErrAcknowledgementID, shorten(s, 60))
	}
	return AcknowledgementID(s), nil
}

// FileType says what a file is to its document, in the network's word.
type FileType string

// The types that the network takes.
const (
	ImageFile      FileType = "imageFile" // the picture of the document, such as a PDF
	AttachmentFile FileType = "attachmentFile"
	DataFile       FileType = "dataFile"
)

// IsKnown reports whether the network takes t.
func (t FileType) IsKnown() bool { return t == ImageFile || t == AttachmentFile || t == DataFile }

// NamedValue is one name with its value, in the network's words.
type NamedValue struct{ Name, Value string }

// Link is an address that the network gave, and what it leads to.
type Link struct {
	Relation string // "file", "notification", "validationFile", "businessDocument"
	Address  DownloadURL
	Method   string // GET where the network names none
}

// NetworkBody is what is sent of a document in one POST.
type NetworkBody struct {
	Kind NetworkKind
	JSON []byte
}

// Notification is one event of a document in the network, as the network tells it. Nothing is left out that it did not tell, and
// nothing is put in the place of it: an action that is not told is empty.
type Notification struct {
	AcknowledgementID AcknowledgementID
	Document          RemoteID
	Kind              NetworkKind
	DocumentType      string // as it was written; empty: not told, which means an invoice
	Response, Action  string // codes, like TechnicalAccept and Delivered
	Properties        []NamedValue
	Created           time.Time // zero: not told
	Description       string
	Links             []Link
	Raw               []byte // as it came, for evidence; it may hold addresses that carry their own authority
}

// Property returns the value of the first property of that name; empty: there is none.
func (n Notification) Property(name string) string {
	for _, p := range n.Properties {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// SaysTheSame reports whether two records of one number tell the same event.
func (n Notification) SaysTheSame(o Notification) bool {
	return n.Document == o.Document && n.DocumentType == o.DocumentType && n.Response == o.Response && n.Action == o.Action &&
		n.Created.Equal(o.Created) && slices.Equal(n.Properties, o.Properties)
}

// NotificationList is what the network lists. A notification that a list which is not Whole leaves out may be there all the same.
type NotificationList struct {
	Notifications []Notification
	Unreadable    int  // records that could not be read: they are neither applied nor acknowledged
	Whole         bool // its last page came, and each record was read
	HasMore       bool // it ended because it holds as much as one may; the next one goes on once these are kept
}

// DeriveReceivedID returns the identity in the archive of a document that came in over the network: UUID version 5 of its number there and
// its direction. The same document always has the same, however often it comes.
func DeriveReceivedID(document RemoteID) ID {
	return deriveDirectedID("received", document, "receiving")
}

// DeriveSentID is DeriveReceivedID for the copy of a document that was sent.
func DeriveSentID(document RemoteID) ID { return deriveDirectedID("sent", document, "sending") }

func deriveDirectedID(kind string, document RemoteID, direction string) ID {
	return ID(uuid.NewSHA1(namespace, slices.Concat([]byte(kind+"\x00"), []byte(document), []byte("\x00"+direction))))
}

// CompanyNumber is a number under which the directory of France lists a company or a facility, behind the name of its kind, as in
// "SIREN 123456789". It is fit to be shown.
type CompanyNumber string
