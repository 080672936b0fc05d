package report

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

var csvHeader = []string{
	"environment", "folder", "documentId", "documentType", "documentDate", "senderName", "amount", "currencyCode", "state", "flags",
	"seenAt", "archivedAt", "bumId", "clientUUID", "sha256", "size", "vault", "drop", "reason", "key",
	"recipientName", "recipientIds", "asRead", "receipt", "needs", "listed",
}

// deliveryHeader follows where the table has a document that is not to be archived.
var deliveryHeader = []string{"route", "deliveredAt"}

// columns are those of the table.
func (a *Audit) columns() []string {
	if a.hasDeliveries {
		return slices.Concat(csvHeader, deliveryHeader)
	}
	return csvHeader
}

// CSV writes the table as RFC 4180 has it, in UTF-8 with a byte order mark: one header
// row, lines that end in CR LF, every field in quotes, times in UTC. The separator is a
// comma, or a semicolon where spreadsheets want it. The first column says the
// environment on each row, so that a row which is copied still says TEST, NO EVIDENCE.
// The last two columns are there only where the table has a document that is not to be archived.
//
// No cell becomes a formula: a text in which one could begin gets an apostrophe there.
// An amount is written as it is, without grouping, and only when it is a plain decimal.
// What nobody checked is marked in the column asRead, and its amount is a text that no sum counts.
func (a *Audit) CSV(ctx context.Context, w io.Writer, separator rune) (Closing, error) {
	table := a.NewCSV(w, separator)
	closing, err := a.eachRow(ctx, nil, table)
	if err != nil {
		return closing, err
	}
	return closing, table.finish()
}

// csvTable writes the table as CSV, row by row.
type csvTable struct {
	out       *bufio.Writer
	separator rune
	mark      string // of the environment, as a cell
	columns   int
}

// NewCSV begins the table that [Audit.CSV] writes. It writes the header. What is written stays in a buffer until finish, whose error is the first one of all.
func (a *Audit) NewCSV(w io.Writer, separator rune) Table {
	columns := a.columns()
	t := &csvTable{out: bufio.NewWriterSize(w, buffered), separator: separator, mark: sanitize.Cell(a.environmentMark()), columns: len(columns)}
	t.out.WriteString("\ufeff")                        //lint:ignore errcheck bufio keeps the first error for Flush
	t.out.Write(appendRecord(nil, separator, columns)) //lint:ignore errcheck as above
	return t
}

func (t *csvTable) prepare(r row) []byte {
	return appendRecord(make([]byte, 0, usualRecord), t.separator, r.csvCells(t.mark)[:t.columns])
}

// usualRecord is the room that hardly any row of the table outgrows.
const usualRecord = 1 << 10

func (t *csvTable) add(prepared []byte) error {
	if _, err := t.out.Write(prepared); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

func (t *csvTable) finish() error { return flush(t.out) }

// environmentMark is what each row of a table says of the environment.
func (a *Audit) environmentMark() string {
	if a.isTest() {
		return TestMark
	}
	return a.c.Info.Environment
}

// csvCells are in the order of csvHeader and deliveryHeader. mark is a cell already.
func (r row) csvCells(mark string) []string {
	size := ""
	if r.Size != nil {
		size = strconv.FormatInt(*r.Size, 10)
	}
	s := r.shownFields()
	amount := numericCell(s.Amount)
	if s.Mark != "" && s.Amount != "" {
		amount = sanitize.Cell("as read: " + s.Amount)
	}
	return []string{
		mark, sanitize.Cell(r.Folder), sanitize.Cell(s.Number), sanitize.Cell(s.Type), sanitize.Cell(s.Date), sanitize.Cell(s.Sender),
		amount, sanitize.Cell(s.Currency), sanitize.Cell(r.State), sanitize.Cell(strings.Join(r.Flags, ", ")),
		formatTimestamp(r.SeenAt), formatTimestamp(r.ArchivedAt), sanitize.Cell(textOf(r.BumID)), sanitize.Cell(textOf(r.ClientUUID)), sanitize.Cell(textOf(r.SHA256)), size,
		sanitize.Cell(r.Vault), sanitize.Cell(r.Drop), sanitize.Cell(textOf(r.Reason)), r.Key,
		sanitize.Cell(s.Recipient), sanitize.Cell(s.RecipientIDs), sanitize.Cell(s.Mark), sanitize.Cell(textOf(r.Receipt)), textOf(r.Needs), textOf(r.Listed),
		r.routeName(), formatTimestamp(r.DeliveredAt),
	}
}

// numericCell writes a number as it is, negative ones too; anything else is a text.
func numericCell(s string) string {
	if _, err := archive.ParseDecimal(s); err != nil {
		return sanitize.Cell(s)
	}
	return s
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func formatTimestamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// appendRecord quotes every field, so that a spreadsheet that reads the file with another
// separator finds fewer places where a cell could begin.
func appendRecord(b []byte, separator rune, fields []string) []byte {
	for i, f := range fields {
		if i > 0 {
			b = utf8.AppendRune(b, separator)
		}
		b = append(b, '"')
		for {
			before, after, isQuoted := strings.Cut(f, `"`)
			b = append(b, before...)
			if !isQuoted {
				break
			}
			b, f = append(b, `""`...), after
		}
		b = append(b, '"')
	}
	return append(b, "\r\n"...)
}

// writeRecord writes a record.
func writeRecord(out *bufio.Writer, separator rune, fields []string) error {
	if _, err := out.Write(appendRecord(nil, separator, fields)); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
