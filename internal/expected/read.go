package expected

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"vaultd/internal/archive"
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

	Location *time.Location // of days; nil: UTC
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
	head       *stack // of a DATEV export; may be nil
	decimal    Shown  // of amounts
	decimalAt  int    // the line that shows it
	order      Shown  // of dates
}

func (t *reading) inFile(err error) error {
	if _, ok := errors.AsType[*DataError](err); ok {
		return err
	}
	return &DataError{t.list.File, err.Error(), "export it as CSV in UTF-8, or as XLSX"}
}

// findHeader looks for the row that names the columns. Titles may stand above it.
func (t *reading) findHeader(r record) error {
	if r.line == 1 {
		t.head = readHead(r.cells)
	}
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
	if s, isNumber := t.cell(r, fieldAmount); s != "" && !isNumber && t.options.Decimal == 0 {
		if t.decimal.Add(DecimalOf(s)); t.decimal == Mixed {
			return &DataError{t.list.File, fmt.Sprintf("rows %d and %d write amounts in two ways: one with a decimal comma, one with a decimal point", t.decimalAt, r.line),
				"say which is right with --decimal comma or --decimal point"}
		}
		if t.decimalAt == 0 && t.decimal != 0 {
			t.decimalAt = r.line
		}
	}
	if s, isNumber := t.cell(r, fieldDate); !isNumber {
		if t.order.Add(OrderOf(s)); t.order == Mixed {
			return &DataError{t.list.File, fmt.Sprintf("row %d: the date %q has day and month in another order than the rows before", r.line, s), "write dates like 2026-10-31"}
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
	var currency string
	if row.Amount, currency, err = t.amountOf(r); err != nil {
		return err
	}
	row.Currency = cmp.Or(row.Currency, currency)
	if row.Date, err = t.dateOf(r); err != nil {
		return err
	}
	return t.list.add(row)
}

func (t *reading) amountOf(r record) (amount, currency string, err error) {
	s, isNumber := t.cell(r, fieldAmount)
	switch {
	case s == "":
		return "", "", nil
	case isNumber:
		amount, err = plainNumber(s)
	default:
		var plain archive.Decimal
		plain, currency, err = ParseAmount(s, cmp.Or(Shown(t.options.Decimal), t.decimal))
		amount = string(plain)
	}
	if errors.Is(err, ErrTwoWays) {
		return "", "", &DataError{t.list.File, fmt.Sprintf("row %d: the amount %v, and no other row shows which", r.line, err), "say it with --decimal comma or --decimal point"}
	}
	if err != nil {
		return "", "", &DataError{t.list.File, fmt.Sprintf("row %d: %v", r.line, err), `put it right, or compare without amounts: --columns "amount="`}
	}
	return amount, currency, nil
}

func (t *reading) dateOf(r record) (date string, err error) {
	s, isNumber := t.cell(r, fieldDate)
	switch {
	case s == "":
		return "", nil
	case isDayAndMonth(s):
		date, err = t.head.parseDay(s)
	case isNumber && (len(s) != len("20060102") || strings.Contains(s, ".")):
		date, err = parseSerial(s, t.days)
	default:
		date, err = ParseDay(s, t.order, cmp.Or(t.options.Location, time.UTC))
	}
	if err != nil {
		return "", &DataError{t.list.File, fmt.Sprintf("row %d: %v", r.line, err), `write dates like 2026-10-31, or compare without them: --columns "date="`}
	}
	return date, nil
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
