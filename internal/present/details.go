package present

import (
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Entries reads entries and their documents.
type Entries interface {
	Entry(key archive.Key) (ledger.Entry, bool, error)
	Document(key archive.Key) (ledger.Document, bool, error)
}

// Details are what is shown of an entry beside the entry itself.
type Details struct {
	Number    string         // of the invoice
	Recipient string         // whom it is for; empty: unknown
	AsRead    archive.AsRead // zero: number and recipient come from checked metadata
	Original  *Original      // that a duplicate repeats; nil: the entry is no duplicate

	Remarks []Remark // what a person should look at
}

// ReadDetails reads the details of an entry. They are empty before an entry is sealed or has ended, and after they were erased.
func ReadDetails(s Entries, e ledger.Entry, loc *time.Location) (Details, error) {
	doc, _, err := s.Document(e.Key)
	if err != nil {
		return Details{}, err
	}
	meta, err := ParseMetadata(e, doc)
	if err != nil {
		return Details{}, err
	}
	return CompleteDetails(s, e, meta, doc, loc)
}

// CompleteDetails is ReadDetails for an entry whose document, without its lists of files, was read already.
func CompleteDetails(s Entries, e ledger.Entry, meta archive.Document, doc ledger.Document, loc *time.Location) (d Details, err error) {
	read := doc.AsRead
	d = Details{Number: meta.Number, AsRead: read}
	if d.Recipient, err = readRecipient(doc, meta); err != nil {
		return d, err
	}
	if !read.IsZero() {
		d.Number = read.Number
	}
	if d.Original, err = FindOriginal(s, e); err != nil {
		return d, err
	}
	d.Remarks, err = FindRemarks(s, e, loc)
	return d, err
}

// ReadMetadata reads the metadata of an entry. It is empty before the entry is sealed and after it was erased. For an
// entry that was never sealed, read is what its sidecar says: it is for people to see, and must not be counted.
func ReadMetadata(s Entries, e ledger.Entry) (m archive.Document, read archive.AsRead, err error) {
	d, _, err := s.Document(e.Key)
	if err != nil || len(d.Metadata) == 0 {
		return m, d.AsRead, err
	}
	m, err = ParseMetadata(e, d)
	return m, archive.AsRead{}, err
}

// ParseMetadata gives the checked metadata of an entry; zero where there is none.
func ParseMetadata(e ledger.Entry, doc ledger.Document) (archive.Document, error) {
	if len(doc.Metadata) == 0 {
		return archive.Document{}, nil
	}
	meta, err := archive.ParseMetadata(doc.Metadata)
	if err != nil {
		err = fmt.Errorf("entry %s: %w", e.Key, err)
	}
	return meta, err
}

// AsReadMark marks the fields of a sidecar, which nobody checked.
func AsReadMark(e ledger.Entry) string {
	if e.State == ledger.Duplicate {
		return "as read"
	}
	return "as read, refused"
}

// AsReadFields gives the fields that could be read, by the names of the service.
func AsReadFields(r archive.AsRead) []Field {
	var set []Field
	for _, f := range []Field{
		{"documentType", r.Type}, {"documentId", r.Number}, {"documentDate", r.Date}, {"senderName", r.SenderName}, {"senderIds", r.SenderIDs},
		{"recipientName", r.RecipientName}, {"recipientIds", r.RecipientIDs}, {"amount", r.Amount}, {"currencyCode", r.Currency},
	} {
		if f.Value != "" {
			set = append(set, f)
		}
	}
	return set
}

// DescribeReason says why e is in its state, on one line that is safe for a terminal. Without a reason it gives the first
// remark.
func (d Details) DescribeReason(c Clock, e ledger.Entry) string {
	if d.Original != nil {
		return d.Original.Describe(c.Location)
	}
	if text := SummarizeReason(e); text != "" || len(d.Remarks) == 0 {
		return text
	}
	return sanitize.FirstLine(d.Remarks[0].Text, 100)
}

// NumberCell is the invoice number for a table, marked where nobody checked it.
func (d Details) NumberCell() string {
	if d.Number != "" && !d.AsRead.IsZero() {
		return sanitize.Text(d.Number) + " (as read)"
	}
	return sanitize.Text(d.Number)
}

// Field is one field of a document.
type Field struct{ Name, Value string }

// MetadataFields gives the fields that are set, by the names of the service.
func MetadataFields(m archive.Document) []Field {
	all := []Field{
		{"documentType", m.Type},
		{"documentId", m.Number},
		{"documentDate", m.Date},
		{"senderName", m.SenderName},
		{"senderIds", strings.Join(m.SenderIDs, ", ")},
		{"recipientName", m.RecipientName},
		{"recipientIds", strings.Join(m.RecipientIDs, ", ")},
		{"amount", strings.TrimSpace(string(m.Amount) + " " + m.Currency)},
		{"buyerReferenceId", m.BuyerReferenceID},
		{"buyerReferenceType", m.BuyerReferenceType},
		{"tradingPartner", m.TradingPartner},
		{"flowDirection", m.FlowDirection},
	}
	for _, q := range m.Parameters {
		all = append(all, Field{q.Key, q.Value})
	}
	var set []Field
	for _, f := range all {
		if f.Value != "" {
			set = append(set, Field{sanitize.Text(f.Name), f.Value}) // a parameter's key comes from the sidecar
		}
	}
	return set
}

// SummarizeEntry says in a few words why e is in its state. Without a reason it gives the first remark.
func SummarizeEntry(s Entries, e ledger.Entry, loc *time.Location) (string, error) {
	if text := SummarizeReason(e); text != "" {
		return text, nil
	}
	remarks, err := FindRemarks(s, e, loc)
	return Details{Remarks: remarks}.DescribeReason(Clock{}, e), err
}
