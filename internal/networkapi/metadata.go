package networkapi

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// ReadMetadata returns what a document that is to be sent says of itself, in the words of the archive. It takes the documents that
// [CheckDocument] finds no fault with. A recipient may be named in processingPreference alone.
func ReadMetadata(document []byte) (archive.Document, error) {
	p, err := parseParts(document)
	if err != nil {
		return archive.Document{}, fmt.Errorf("read the metadata of a document: %w", err)
	}
	content, err := readContent(p.data)
	if err != nil {
		return archive.Document{}, fmt.Errorf("read the metadata of a document: %w", err)
	}
	if p.preference != nil {
		f, err := apicall.ReadFields(p.preference, "sentTo")
		if err != nil {
			return archive.Document{}, fmt.Errorf("read the metadata of a document: %w", err)
		}
		to, err := readID(f["sentTo"])
		if err != nil {
			return archive.Document{}, fmt.Errorf("read the metadata of a document: %w", err)
		}
		if to != "" && !slices.Contains(content.Customer.IDs, to) {
			content.Customer.IDs = append(content.Customer.IDs, to)
		}
	}
	d := content.Metadata(p.kind)
	d.FlowDirection = "sending"
	return d, nil
}

// Metadata returns what a document of that kind says of itself, in the words of the archive. Nothing is guessed: a field that is not told stays
// empty. So does one that the archive would not take, because it is too long or has a control character. It is never cut, because half a
// number or half a name would be another one.
func (c Content) Metadata(kind archive.NetworkKind) archive.Document {
	d := archive.Document{
		Type: string(kind), Number: fitText(c.Number, archive.MaxNumber), Date: startOfDay(c.IssueDate),
		SenderName: fitText(c.Supplier.Name, archive.MaxName), SenderIDs: fitIDs(c.Supplier.IDs),
		RecipientName: fitText(c.Customer.Name, archive.MaxName), RecipientIDs: fitIDs(c.Customer.IDs),
	}
	if currencyPattern.MatchString(c.Currency) {
		d.Currency = c.Currency
	}
	// The sum of many amounts may have more digits than the archive takes.
	if amount, err := archive.ParseDecimal(string(c.NetAmount)); err == nil {
		d.Amount = amount
	}
	return d
}

// fitText returns a text that the archive takes, and an empty one for any other.
func fitText(s string, most int) string {
	if strings.TrimSpace(s) == "" || utf8.RuneCountInString(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}

// fitIDs returns identifiers that the archive takes together, and none otherwise: some of them would say less than all.
func fitIDs(ids []string) []string {
	if len(ids) == 0 || utf8.RuneCountInString(strings.Join(ids, ",")) > archive.MaxIDs {
		return nil
	}
	for _, id := range ids {
		if fitText(id, archive.MaxIDs) == "" {
			return nil
		}
	}
	return ids
}

// startOfDay returns a date as the archive has it. The day stays the one that was written, whatever time zone stands behind it: an invoice of
// 1 November is no invoice of 31 October elsewhere.
func startOfDay(date string) string {
	if !isDate(date) {
		return ""
	}
	return date[:len("2026-10-31")] + "T00:00:00Z"
}
