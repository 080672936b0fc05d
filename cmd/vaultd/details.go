package main

import (
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

// details are what a row tells of an entry beside the entry itself.
type details struct {
	number string         // of the invoice
	asRead archive.AsRead // zero: the number comes from checked metadata
	first  *report.First  // nil: the entry is no duplicate

	warnings []report.Remark // what a person should look at
}

// detailsOf reads them. Nothing is known before an entry is sealed or has ended, and once they are erased.
func (v view) detailsOf(e ledger.Entry) (details, error) {
	doc, _, err := v.ledger.Document(e.Key)
	if err != nil {
		return details{}, err
	}
	meta, err := parseMetadata(e, doc)
	if err != nil {
		return details{}, err
	}
	return v.detailsWith(e, meta, doc.AsRead)
}

// detailsWith is detailsOf for an entry whose document was read already.
func (v view) detailsWith(e ledger.Entry, meta archive.Document, read archive.AsRead) (d details, err error) {
	d = details{number: meta.Number, asRead: read}
	if !read.IsZero() {
		d.number = read.Number
	}
	if d.first, err = report.FirstOf(v.ledger, e); err != nil {
		return d, err
	}
	d.warnings, err = report.Remarks(v.ledger, e, v.loc)
	return d, err
}

// parseMetadata gives the checked metadata of an entry; zero where there is none.
func parseMetadata(e ledger.Entry, doc ledger.Document) (archive.Document, error) {
	if len(doc.Metadata) == 0 {
		return archive.Document{}, nil
	}
	meta, err := archive.ParseMetadata(doc.Metadata)
	if err != nil {
		err = fmt.Errorf("entry %s: %w", e.Key, err)
	}
	return meta, err
}

// asReadWords marks what a sidecar says that nobody checked.
func asReadWords(e ledger.Entry) string {
	if e.State == ledger.Duplicate {
		return "as read"
	}
	return "as read, refused"
}

// asReadFields gives the fields that could be read, by the names of the service.
func asReadFields(r archive.AsRead) []metadataField {
	var set []metadataField
	for _, f := range []metadataField{
		{"documentType", r.Type}, {"documentId", r.Number}, {"documentDate", r.Date}, {"senderName", r.SenderName}, {"senderIds", r.SenderIDs},
		{"recipientName", r.RecipientName}, {"recipientIds", r.RecipientIDs}, {"amount", r.Amount}, {"currencyCode", r.Currency},
	} {
		if f.value != "" {
			set = append(set, f)
		}
	}
	return set
}

// reason says why e is where it is, on one line that is fit for a terminal.
func (d details) reason(c clock, e ledger.Entry) string {
	if d.first != nil {
		return d.first.Words(c.loc)
	}
	if text := briefReason(e); text != "" || len(d.warnings) == 0 {
		return text
	}
	return sanitize.FirstLine(d.warnings[0].Text, 100)
}
