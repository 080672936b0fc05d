package expected

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"vaultd/internal/sanitize"
)

const (
	maxFile      = 256 << 20 // bytes of a file
	maxUnpacked  = 64 << 20  // bytes of a workbook's parts, which take fifteen times as much memory; a longer list is to be a CSV
	headerWithin = 20        // rows in which the names of the columns must stand
	longestText  = 1000      // characters of a value
	longestName  = 100       // characters of a column's name
)

// DataError says that a list cannot be used as it is.
type DataError struct {
	File   string
	Text   string
	Advice string
}

// Error implements error.
func (e *DataError) Error() string { return fmt.Sprintf("the list %s: %s", e.File, e.Text) }

// Options say how to read a list.
type Options struct {
	Columns map[string]string // as ParseColumns gives it
	Decimal byte              // '.' or ','; zero: as the amounts show
}

// record is one row of a file: its cells, and which of them are numbers of a spreadsheet.
type record struct {
	line    int
	cells   []string
	numbers []bool // nil: none
}

// Read reads a list. name is that of the file, without folders. The error is a [*ColumnsError] or a [*DataError] where the list is
// wrong.
func Read(name string, r io.Reader, o Options) (*List, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, &DataError{name, fmt.Sprintf("it has more than %d MB", maxFile>>20), "split it, by month for instance"}
	}
	sum := sha256.Sum256(data)
	t := &reading{list: &List{Info: Info{File: name, SHA256: hex.EncodeToString(sum[:])}}, options: o}
	var each func(func(record) error) error
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		each, err = t.workbookRecords(data)
	} else {
		each, err = csvRecords(data)
	}
	if err != nil {
		return nil, t.inFile(err)
	}
	for _, pass := range []func(record) error{t.findHeader, t.learnNotation, t.takeRow} {
		if err := each(pass); err != nil && !errors.Is(err, errEnough) {
			return nil, t.inFile(err)
		}
		if t.columns == nil {
			return nil, newColumnsError(name, t.firstNames, o.Columns)
		}
	}
	if len(t.list.rows) == 0 {
		return nil, &DataError{name, "it has no row with a number", "export it again; an empty list proves nothing"}
	}
	if err := t.list.sortRows(); err != nil {
		return nil, &DataError{name, err.Error(), `say which column has the number of the document: --columns "number=NAME"`}
	}
	return t.list, nil
}

// errEnough ends a pass early.
var errEnough = errors.New("enough")

// reading is one list that is being read.
type reading struct {
	list    *List
	options Options

	seen       int
	firstNames []string       // of the row with most texts, for the error
	columns    map[string]int // nil: not found yet
	days       int            // to add to serial numbers of days
	headerLine int
	notation   notation
}

func (t *reading) inFile(err error) error {
	if _, ok := errors.AsType[*DataError](err); ok {
		return err
	}
	return &DataError{t.list.File, err.Error(), "export it as CSV in UTF-8, or as XLSX"}
}

// findHeader looks for the row that names the columns. Titles may stand above it.
func (t *reading) findHeader(r record) error {
	if countTexts(r.cells) > countTexts(t.firstNames) {
		t.firstNames = r.cells
	}
	if at, ok := findColumns(r.cells, t.options.Columns); ok {
		t.columns, t.headerLine = at, r.line
		t.list.Columns = map[string]string{}
		for field, i := range at {
			t.list.Columns[field] = sanitize.Truncate(strings.TrimSpace(strings.ToValidUTF8(r.cells[i], "\ufffd")), longestName)
		}
		return errEnough
	}
	if t.seen++; t.seen == headerWithin {
		return errEnough
	}
	return nil
}

func countTexts(cells []string) (n int) {
	for _, c := range cells {
		if strings.TrimSpace(c) != "" {
			n++
		}
	}
	return n
}

// cell gives a value of a row, and whether it is a number of a spreadsheet.
func (t *reading) cell(r record, field string) (value string, isNumber bool) {
	i, has := t.columns[field]
	if !has || i >= len(r.cells) {
		return "", false
	}
	value = strings.TrimSpace(strings.ToValidUTF8(r.cells[i], "\ufffd"))
	if utf8.RuneCountInString(value) > longestText {
		value = string([]rune(value)[:longestText])
	}
	return value, r.numbers != nil && r.numbers[i]
}

// isRow reports whether r is a document: it stands below the names of the columns and has a number.
func (t *reading) isRow(r record) bool {
	number, _ := t.cell(r, fieldNumber)
	return r.line > t.headerLine && number != ""
}

// learnNotation finds out how amounts and dates are written: from those that can be read in one way only.
func (t *reading) learnNotation(r record) error {
	if !t.isRow(r) {
		return nil
	}
	n := &t.notation
	if s, isNumber := t.cell(r, fieldAmount); s != "" && !isNumber && t.options.Decimal == 0 {
		digits, _, _ := cleanAmount(s)
		switch is := decimalOf(digits); {
		case is == 0:
		case n.decimal == 0:
			n.decimal, n.at = is, r.line
		case n.decimal != is:
			return &DataError{t.list.File, fmt.Sprintf("rows %d and %d write amounts in two ways: one with a decimal comma, one with a decimal point", n.at, r.line),
				"say which is right with --decimal comma or --decimal point"}
		}
	}
	if s, isNumber := t.cell(r, fieldDate); !isNumber {
		if monthFirst, known := dayOrder(s); known {
			if n.orderKnown && n.monthFirst != monthFirst {
				return &DataError{t.list.File, fmt.Sprintf("row %d: the date %q has day and month in another order than the rows before", r.line, s), "write dates like 2026-10-31"}
			}
			n.monthFirst, n.orderKnown = monthFirst, true
		}
	}
	return nil
}

// takeRow adds a row to the list.
func (t *reading) takeRow(r record) error {
	if r.line <= t.headerLine || countTexts(r.cells) == 0 {
		return nil
	}
	row := Row{Line: r.line}
	var err error
	var isNumber bool
	if row.Number, isNumber = t.cell(r, fieldNumber); isNumber && strings.ContainsAny(row.Number, ".eE") {
		if row.Number, err = plainNumber(row.Number); err != nil {
			return &DataError{t.list.File, fmt.Sprintf("row %d: %v", r.line, err), "write the numbers of documents as text"}
		}
	}
	if row.Number == "" {
		t.list.Unnumber++
		if date, _ := t.cell(r, fieldDate); date != "" {
			t.list.Dated++
		}
		return nil
	}
	row.Sender, _ = t.cell(r, fieldSender)
	row.Currency, _ = t.cell(r, fieldCurrency)
	row.Currency = strings.ToUpper(row.Currency)
	if row.Amount, err = t.amountOf(r); err != nil {
		return err
	}
	if s, _ := t.cell(r, fieldAmount); row.Currency == "" {
		_, row.Currency, _ = cleanAmount(s)
	}
	if row.Date, err = t.dateOf(r); err != nil {
		return err
	}
	return t.list.add(row)
}

func (t *reading) amountOf(r record) (string, error) {
	s, isNumber := t.cell(r, fieldAmount)
	if s == "" {
		return "", nil
	}
	decimal := t.notation.decimal
	if t.options.Decimal != 0 {
		decimal = t.options.Decimal
	}
	var amount string
	var err error
	switch digits, _, _ := cleanAmount(s); {
	case isNumber:
		amount, err = plainNumber(s)
	case decimal == 0 && strings.ContainsAny(digits, ".,") && strings.Trim(digits, ".,0123456789") == "": // no row shows what it means
		return "", &DataError{t.list.File, fmt.Sprintf("row %d: the amount %q can be read in two ways, and no other row shows which", r.line, s), "say it with --decimal comma or --decimal point"}
	default:
		amount, err = parseAmount(s, decimal)
	}
	if err != nil {
		return "", &DataError{t.list.File, fmt.Sprintf("row %d: %v", r.line, err), `put it right, or compare without amounts: --columns "amount="`}
	}
	return amount, nil
}

func (t *reading) dateOf(r record) (string, error) {
	s, isNumber := t.cell(r, fieldDate)
	if s == "" {
		return "", nil
	}
	date, err := "", error(nil)
	if isNumber && (len(s) != len("20060102") || strings.Contains(s, ".")) {
		date, err = parseSerial(s, t.days)
	} else {
		date, err = parseDate(s, t.notation)
	}
	if err != nil {
		return "", &DataError{t.list.File, fmt.Sprintf("row %d: %v", r.line, err), `write dates like 2026-10-31, or compare without them: --columns "date="`}
	}
	return date, nil
}

// csvRecords gives the rows of a CSV: in UTF-8, in UTF-16 with its mark, else in Windows-1252; parted by what stands most often in
// its first lines.
func csvRecords(data []byte) (func(func(record) error) error, error) {
	var err error
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		data, err = unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(data)
	case !utf8.Valid(data):
		data, err = charmap.Windows1252.NewDecoder().Bytes(data)
	}
	if err != nil {
		return nil, err
	}
	separator := findSeparator(data)
	if line := findLooseQuote(data, byte(separator)); line > 0 {
		return nil, fmt.Errorf("row %d: a value begins with a quotation mark (\") that nothing closes, or that is not at its end", line)
	}
	return func(fn func(record) error) error {
		in := NewRows(bytes.NewReader(data), separator, false)
		for {
			cells, line, err := in.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := fn(record{line: line, cells: cells}); err != nil {
				return err
			}
		}
	}, nil
}

// findLooseQuote returns the line in which a value begins with a quotation mark that nothing closes; zero: there is none. The reader
// of CSV would take the rows behind it as a part of that value, and nobody would miss them. Marks within a value count as letters.
func findLooseQuote(data []byte, separator byte) (line int) {
	line = 1
	for i := 0; i < len(data); i++ { // at the beginning of a value
		begun := line
		if data[i] == '"' {
			for i++; i < len(data) && (data[i] != '"' || i+1 < len(data) && data[i+1] == '"'); i++ {
				switch data[i] {
				case '"':
					i++
				case '\n':
					line++
				}
			}
			behind := data[min(i+1, len(data)):]
			if i >= len(data) || len(behind) > 0 && behind[0] != separator && behind[0] != '\n' && !bytes.HasPrefix(behind, []byte("\r\n")) {
				return begun
			}
		}
		for i < len(data) && data[i] != separator && data[i] != '\n' {
			i++
		}
		if i < len(data) && data[i] == '\n' {
			line++
		}
	}
	return 0
}

// findSeparator counts outside of quotes.
func findSeparator(data []byte) rune {
	counts, quoted := map[byte]int{}, false
	for lines, i := 0, 0; i < len(data) && lines < headerWithin; i++ {
		switch c := data[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			lines++
		case c == ';', c == ',', c == '\t':
			counts[c]++
		}
	}
	switch { // amounts have commas, and no semicolons
	case counts['\t'] > 0 && counts['\t'] >= counts[';']:
		return '\t'
	case counts[';'] > 0:
		return ';'
	}
	return ','
}

// workbookRecords gives the rows of the first sheet of a workbook. Nothing of it is written to a disk.
func (t *reading) workbookRecords(data []byte) (func(func(record) error) error, error) {
	f, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxUnpacked, RawCellValue: true})
	if err != nil {
		return nil, fmt.Errorf("it is no workbook that can be read: %w", err)
	}
	props, err := f.GetWorkbookProps()
	if err != nil {
		return nil, err
	}
	if props.Date1904 != nil && *props.Date1904 {
		t.days = daysTo1904
	}
	t.list.OtherSheets = max(f.SheetCount-1, 0)
	return func(fn func(record) error) error { return eachRowOf(f, fn) }, nil
}

// eachRowOf calls fn with the rows of the first sheet.
func eachRowOf(f *excelize.File, fn func(record) error) error {
	sheet := f.GetSheetName(0)
	rows, err := f.Rows(sheet)
	if err != nil {
		return err
	}
	defer rows.Close() // it is only read
	for line := 1; rows.Next(); line++ {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		r := record{line: line, cells: cells, numbers: make([]bool, len(cells))}
		for i, cell := range cells {
			if _, err := strconv.ParseFloat(cell, 64); err != nil {
				continue
			}
			name, err := excelize.CoordinatesToCellName(i+1, line)
			if err != nil {
				return err
			}
			kind, err := f.GetCellType(sheet, name)
			if err != nil {
				return err
			}
			r.numbers[i] = kind == excelize.CellTypeUnset || kind == excelize.CellTypeNumber
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return rows.Error()
}
