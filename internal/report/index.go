package report

import (
	"bufio"
	"io"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// IndexRow is one document as the archive's own index shows it.
type IndexRow struct {
	Vault      archive.VaultID
	BumID      string
	ArchiveID  string
	ArchivedAt time.Time        // zero: not told
	Document   archive.Document // as far as the index repeats it
}

var indexHeader = []string{
	"environment", "vault", "bumId", "archiveId", "archiveDate", "documentType", "documentId", "documentDate", "senderName", "senderIds",
	"recipientName", "recipientIds", "currencyCode", "amount", "buyerReferenceId", "buyerReferenceType", "tradingPartner", "flowDirection", "additionalParameters",
}

// IndexTable writes rows of the archive's index as [Audit.CSV] writes its table: no cell becomes a formula, and each row says the
// environment. It keeps no row.
type IndexTable struct {
	out       *bufio.Writer
	separator rune
	mark      string
}

// NewIndexTable writes the header. What is written stays in a buffer until Flush.
func NewIndexTable(w io.Writer, separator rune, environment string) (*IndexTable, error) {
	t := &IndexTable{out: bufio.NewWriterSize(w, buffered), separator: separator, mark: environment}
	if environment != "production" {
		t.mark = TestMark
	}
	t.out.WriteString("\ufeff") //lint:ignore errcheck bufio keeps the first error for Flush
	return t, writeRecord(t.out, separator, indexHeader)
}

// Write adds a row.
func (t *IndexTable) Write(r IndexRow) error {
	d, at := r.Document, ""
	if !r.ArchivedAt.IsZero() {
		at = r.ArchivedAt.UTC().Format(time.RFC3339)
	}
	var pairs []string
	for _, p := range d.Parameters {
		pairs = append(pairs, p.Key+"="+p.Value)
	}
	return writeRecord(t.out, t.separator, []string{
		sanitize.Cell(t.mark), sanitize.Cell(string(r.Vault)), sanitize.Cell(r.BumID), sanitize.Cell(r.ArchiveID), at, sanitize.Cell(d.Type), sanitize.Cell(d.Number), sanitize.Cell(d.Date), sanitize.Cell(d.SenderName), joinCell(d.SenderIDs),
		sanitize.Cell(d.RecipientName), joinCell(d.RecipientIDs), sanitize.Cell(d.Currency), numericCell(string(d.Amount)), sanitize.Cell(d.BuyerReferenceID), sanitize.Cell(d.BuyerReferenceType),
		sanitize.Cell(d.TradingPartner), sanitize.Cell(d.FlowDirection), joinCell(pairs),
	})
}

// Flush writes what is left. Its error is the first one of all that was written.
func (t *IndexTable) Flush() error { return flush(t.out) }

// joinCell is a cell of several texts.
func joinCell(all []string) string { return sanitize.Cell(strings.Join(all, " | ")) }
