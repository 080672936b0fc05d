package report

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/xuri/excelize/v2"

	"vaultd/internal/sanitize"
)

// Limits of a sheet.
const (
	rowsPerSheet  = 1_048_576 // with the row of names
	bytesPerSheet = 3 << 30   // of its XML: above 4 GiB not every spreadsheet opens it
	longestCell   = 32_000    // characters; a spreadsheet refuses more than 32,767 UTF-16 units
	exactDigits   = 15        // a spreadsheet rounds numbers with more
)

// XLSX writes the table as a workbook with the columns of [Audit.CSV]: text as text, so that no cell is a formula, dates as dates
// (times in UTC), amounts as numbers. An amount with more digits than a spreadsheet keeps is a text, digit for digit, and so is
// one that nobody checked. What does not fit into a sheet stands in further ones.
//
// The rows go straight into the file: no temporary file has them, and memory does not grow with them.
func (a *Audit) XLSX(ctx context.Context, w io.Writer) (Closing, error) {
	table := a.NewXLSX(w)
	closing, err := a.eachRow(ctx, nil, table)
	if err != nil {
		return closing, err
	}
	return closing, table.finish()
}

// xlsxTable writes the sheets of a workbook itself, row by row. The other parts of the workbook are excelize's. Its own stream
// writer would put each sheet into a temporary file, and several of them into the workbook in a random order.
type xlsxTable struct {
	zip    *zip.Writer
	mark   string // of the environment
	isTest bool
	made   time.Time
	header []string // names of the columns

	out    *bufio.Writer // of the sheet
	count  *countWriter  // of its bytes
	sheets int
	rows   int // of the sheet
	limit  int // of its rows
}

// countWriter counts bytes.
type countWriter struct {
	io.Writer
	n int64
}

func (w *countWriter) Write(b []byte) (int, error) {
	w.n += int64(len(b))
	return w.Writer.Write(b)
}

// NewXLSX begins the workbook that [Audit.XLSX] writes.
func (a *Audit) NewXLSX(w io.Writer) Table {
	return newXLSX(w, a.environmentMark(), a.isTest(), a.Summary.About.Made, a.columns())
}

func newXLSX(w io.Writer, mark string, isTest bool, made time.Time, header []string) *xlsxTable {
	t := &xlsxTable{zip: zip.NewWriter(w), mark: mark, isTest: isTest, made: made, header: header, limit: rowsPerSheet}
	t.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	return t
}

// The styles of cells, in the order in which newWorkbook makes them. Zero is excelize's own.
const (
	headStyle = iota + 1
	textStyle
	dateStyle
	timeStyle
	amountStyle
	sizeStyle
)

var cellStyles = []*excelize.Style{
	{Font: &excelize.Font{Bold: true}, Fill: excelize.Fill{Type: "pattern", Color: []string{"E7E9EE"}, Pattern: 1}},
	{NumFmt: 49}, // text, also after it is edited
	{CustomNumFmt: new("yyyy\\-mm\\-dd")},
	{CustomNumFmt: new("yyyy\\-mm\\-dd hh:mm:ss")},
	{CustomNumFmt: new("#,##0.00##########")},
	{NumFmt: 3}, // thousands
}

func (t *xlsxTable) prepare(r row) []byte {
	return appendCells(make([]byte, 0, usualCells), r.xlsxCells(t.mark)[:len(t.header)])
}

func (t *xlsxTable) add(prepared []byte) error {
	if t.out == nil || t.rows == t.limit || t.count.n > bytesPerSheet {
		if err := t.beginSheet(); err != nil {
			return err
		}
	}
	return t.writeRow(prepared)
}

// finish writes what the workbook has beside its sheets.
func (t *xlsxTable) finish() error {
	err := error(nil)
	if t.out == nil {
		err = t.beginSheet()
	}
	if err == nil {
		err = t.endSheet()
	}
	if err == nil {
		err = t.writeWorkbook()
	}
	if err == nil {
		err = t.zip.Close()
	}
	if err != nil {
		return fmt.Errorf("write the workbook: %w", err)
	}
	return nil
}

func (t *xlsxTable) beginSheet() error {
	if err := t.endSheet(); err != nil {
		return err
	}
	t.sheets++
	part, err := t.zip.Create(sheetPart(t.sheets))
	if err != nil {
		return err
	}
	t.count, t.rows = &countWriter{Writer: part}, 0
	t.out = bufio.NewWriterSize(t.count, buffered)
	fmt.Fprintf(t.out, `%s<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>`+
		`<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><cols>`, xml.Header)
	for i, name := range t.header {
		fmt.Fprintf(t.out, `<col min="%d" max="%d" width="%d" customWidth="1"/>`, i+1, i+1, columnWidth(name))
	}
	fmt.Fprint(t.out, `</cols><sheetData>`)
	head := make([]xlsxCell, len(t.header))
	for i, name := range t.header {
		head[i] = xlsxCell{headStyle, name}
	}
	return t.writeRow(appendCells(nil, head))
}

func (t *xlsxTable) endSheet() error {
	if t.out == nil {
		return nil
	}
	last := columnNames[len(t.header)-1]
	fmt.Fprintf(t.out, `</sheetData><autoFilter ref="A1:%s%d"/><pageSetup paperSize="9" orientation="landscape" fitToHeight="0"/>`, last, t.rows)
	if t.isTest {
		fmt.Fprintf(t.out, `<headerFooter><oddHeader>&amp;C%s</oddHeader></headerFooter>`, TestMark)
	}
	fmt.Fprint(t.out, `</worksheet>`)
	return t.out.Flush()
}

func sheetPart(n int) string { return fmt.Sprintf("xl/worksheets/sheet%d.xml", n) }

func sheetName(n int) string { return fmt.Sprintf("Documents %d", n) }

func columnWidth(name string) int {
	switch name {
	case "clientUUID", "sha256", "reason", "folder", "senderName", "recipientName", "receipt":
		return 32
	}
	return 18
}

// columnNames are the letters of the columns.
var columnNames = func() (names []string) {
	for i := range len(csvHeader) + len(deliveryHeader) {
		name, err := excelize.ColumnNumberToName(i + 1)
		if err != nil {
			panic(err) // there are few columns
		}
		names = append(names, name)
	}
	return names
}()

// xlsxCell is one cell: a number where its style is one of a number.
type xlsxCell struct {
	style int
	value string
}

const (
	usualCells = 3 << 10 // the room that hardly any row of cells outgrows
	rowNumber  = 0       // stands in prepared cells for the number of their row; no cell holds such a byte
)

// appendCells appends the cells of a row whose number is not known yet.
func appendCells(b []byte, cells []xlsxCell) []byte {
	for i, c := range cells {
		if c.value == "" {
			continue
		}
		b = append(append(append(b, `<c r="`...), columnNames[i]...), rowNumber)
		b = strconv.AppendInt(append(b, `" s="`...), int64(c.style), 10)
		if c.style > textStyle {
			b = append(append(append(b, `"><v>`...), c.value...), `</v></c>`...)
			continue
		}
		b = append(b, `" t="inlineStr"><is><t xml:space="preserve">`...)
		b = appendEscaped(b, escapeCodes(sanitize.Truncate(sanitize.Text(c.value), longestCell)))
		b = append(b, `</t></is></c>`...)
	}
	return b
}

// appendEscaped appends a text that has no unprintable character.
func appendEscaped(b []byte, text string) []byte {
	if !strings.ContainsAny(text, `&<>"'`) {
		return append(b, text...)
	}
	w := bytes.NewBuffer(b)
	_ = xml.EscapeText(w, []byte(text)) // a buffer takes everything
	return w.Bytes()
}

// writeRow writes prepared cells as the next row.
func (t *xlsxTable) writeRow(cells []byte) error {
	t.rows++
	row := strconv.Itoa(t.rows)
	w := t.out // it keeps the first error for the end of the row
	writeAll(w, `<row r="`, row, `">`)
	for {
		before, after, isCell := bytes.Cut(cells, []byte{rowNumber})
		_, _ = w.Write(before)
		if !isCell {
			break
		}
		writeAll(w, row)
		cells = after
	}
	if _, err := w.WriteString(`</row>`); err != nil {
		return fmt.Errorf("write the workbook: %w", err)
	}
	return nil
}

// codeBehind finds what makes a character of the underscore before it: a spreadsheet shows _x0041_ as A, and _x202E_ turns the text.
var codeBehind = regexp.MustCompile(`^x[0-9A-Fa-f]{4}_`)

// escapeCodes writes a text so that a spreadsheet shows it as it is.
func escapeCodes(s string) string {
	if !strings.Contains(s, "_x") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '_' && codeBehind.MatchString(s[i+1:]) {
			b.WriteString("x005F_")
		}
	}
	return b.String()
}

// writeAll writes texts; out keeps the first error.
func writeAll(out *bufio.Writer, texts ...string) {
	for _, s := range texts {
		_, _ = out.WriteString(s)
	}
}

// xlsxCells are in the order of csvHeader and deliveryHeader.
func (r row) xlsxCells(mark string) []xlsxCell {
	text := func(s string) xlsxCell { return xlsxCell{textStyle, s} }
	size := xlsxCell{sizeStyle, ""}
	if r.Size != nil {
		size.value = strconv.FormatInt(*r.Size, 10)
	}
	s := r.shownFields()
	date, amount := dateCell(s.Date), amountCell(s.Amount)
	if s.Mark != "" {
		date, amount = text(s.Date), text(s.Amount)
		if s.Amount != "" {
			amount.value = "as read: " + s.Amount
		}
	}
	return []xlsxCell{
		text(mark), text(r.Folder), text(s.Number), text(s.Type), date, text(s.Sender),
		amount, text(s.Currency), text(r.State), text(strings.Join(r.Flags, ", ")),
		timeCell(r.SeenAt), timeCell(r.ArchivedAt), text(textOf(r.BumID)), text(textOf(r.ClientUUID)), text(textOf(r.SHA256)), size,
		text(r.Vault), text(r.Drop), text(textOf(r.Reason)), text(r.Key),
		text(s.Recipient), text(s.RecipientIDs), text(s.Mark), text(textOf(r.Receipt)), text(textOf(r.Needs)), text(textOf(r.Listed)),
		text(r.routeName()), timeCell(r.DeliveredAt),
	}
}

// writeWorkbook writes the parts of the workbook that are not sheets.
func (t *xlsxTable) writeWorkbook() error {
	whole, err := t.newWorkbook()
	if err != nil {
		return err
	}
	parts, err := zip.NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		return err
	}
	slices.SortFunc(parts.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for _, part := range parts.File {
		if strings.HasPrefix(part.Name, "xl/worksheets/") {
			continue // an empty one; ours was written
		}
		if err := t.copyPart(part); err != nil {
			return err
		}
	}
	return nil
}

func (t *xlsxTable) copyPart(part *zip.File) error {
	from, err := part.Open()
	if err != nil {
		return err
	}
	defer from.Close() // it is read from memory
	to, err := t.zip.Create(part.Name)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from) // excelize made it just now
	return err
}

// newWorkbook gives a workbook with as many sheets, all of them empty.
func (t *xlsxTable) newWorkbook() ([]byte, error) {
	f := excelize.NewFile()
	defer f.Close() // nothing of it is on a disk
	if err := f.SetSheetName("Sheet1", sheetName(1)); err != nil {
		return nil, err
	}
	for n := 2; n <= t.sheets; n++ {
		if _, err := f.NewSheet(sheetName(n)); err != nil {
			return nil, err
		}
	}
	for i, style := range cellStyles {
		id, err := f.NewStyle(style)
		if err != nil || id != i+1 {
			return nil, fmt.Errorf("style %d became %d: %w", i+1, id, err)
		}
	}
	made := t.made.UTC().Format(time.RFC3339)
	if err := f.SetDocProps(&excelize.DocProperties{Creator: "vaultd", LastModifiedBy: "vaultd", Created: made, Modified: made, Title: t.mark}); err != nil {
		return nil, err
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
