package report

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"vaultd/internal/archive"
)

var csvHeader = []string{
	"environment", "folder", "documentId", "documentType", "documentDate", "senderName", "amount", "currencyCode", "state", "flags",
	"seenAt", "archivedAt", "bumId", "clientUUID", "sha256", "size", "vault", "drop", "reason", "key",
	"recipientName", "recipientIds", "asRead", "receipt",
}

// CSV writes the table as RFC 4180 has it, in UTF-8 with a byte order mark: one header
// row, lines that end in CR LF, every field in quotes, times in UTC. The separator is a
// comma, or a semicolon where spreadsheets want it. The first column says the
// environment on each row, so that a row which is copied still says TEST, NO EVIDENCE.
//
// No cell becomes a formula: a text in which one could begin gets an apostrophe there.
// An amount is written as it is, without grouping, and only when it is a plain decimal.
// What nobody checked is marked in the column asRead, and its amount is a text that no sum counts.
func (a *Audit) CSV(ctx context.Context, w io.Writer, separator rune) (Closing, error) {
	out := bufio.NewWriterSize(w, buffered)
	out.WriteString("\ufeff") //nolint:errcheck // bufio keeps the first error for Flush
	if err := writeRecord(out, separator, csvHeader); err != nil {
		return Closing{}, err
	}
	mark := a.c.Info.Environment
	if a.test() {
		mark = TestMark
	}
	closing, err := a.rows(ctx, func(r row) error { return writeRecord(out, separator, r.cells(mark)) })
	if err != nil {
		return closing, err
	}
	return closing, flushed(out)
}

// cells are in the order of csvHeader.
func (r row) cells(mark string) []string {
	size := ""
	if r.Size != nil {
		size = strconv.FormatInt(*r.Size, 10)
	}
	s := r.Shown()
	amount := numeric(s.Amount)
	if s.Mark != "" && s.Amount != "" {
		amount = cell("as read: " + s.Amount)
	}
	return []string{
		cell(mark), cell(r.Folder), cell(s.Number), cell(s.Type), cell(s.Date), cell(s.Sender),
		amount, cell(s.Currency), cell(r.State), cell(strings.Join(r.Flags, ", ")),
		stamp(r.SeenAt), stamp(r.ArchivedAt), cell(or(r.BumID)), cell(or(r.ClientUUID)), cell(or(r.SHA256)), size,
		cell(r.Vault), cell(r.Drop), cell(or(r.Reason)), r.Key,
		cell(s.Recipient), cell(s.RecipientIDs), cell(s.Mark), cell(or(r.Receipt)),
	}
}

// formula finds where a spreadsheet may begin one: at the beginning of a cell, and behind
// whatever it may take for a separator, when it reads the file with another one than
// we wrote it with. Quotes and blanks in between do not help. Wide forms count as well.
var formula = regexp.MustCompile(`(^|[,;|\t\r\n])(["'\s]*)([=+\-@＝＋－＠])`)

// cell makes a text of any origin fit for a spreadsheet. A control character that a
// formula could hide behind is kept from that by the apostrophe before it is shown.
func cell(s string) string {
	lead := ""
	if s != "" && strings.ContainsRune("\t\r\n", rune(s[0])) {
		lead = "'"
	}
	if s = safe(s); plain(s) {
		return lead + s
	}
	return lead + formula.ReplaceAllString(s, "$1$2'$3")
}

// plain reports whether no formula can begin anywhere in s. Nearly all cells are so, and the regular expression took most of
// the time of a large table.
func plain(s string) bool {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(s, "\"' \t\n\f\r"))
	return !strings.ContainsAny(s, ",;|\t\r\n") && !strings.ContainsRune("=+-@＝＋－＠", first)
}

// numeric writes a number as it is, negative ones too; anything else is a text.
func numeric(s string) string {
	if _, err := archive.ParseDecimal(s); err != nil {
		return cell(s)
	}
	return s
}

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func stamp(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// writeRecord quotes every field: a file that is opened with the wrong separator then
// has fewer places where a cell could begin.
func writeRecord(out *bufio.Writer, separator rune, fields []string) error {
	for i, f := range fields {
		if i > 0 {
			out.WriteRune(separator) //nolint:errcheck // bufio keeps the first error for the end of the row
		}
		out.WriteByte('"')                                //nolint:errcheck // as above
		out.WriteString(strings.ReplaceAll(f, `"`, `""`)) //nolint:errcheck // as above
		out.WriteByte('"')                                //nolint:errcheck // as above
	}
	if _, err := out.WriteString("\r\n"); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
