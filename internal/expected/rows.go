package expected

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// Bounds of a file of records: rows of CSV, or objects of JSON. A file of an
// extract has at most 100,000 records.
const (
	longestRecord = 4 << 20   // bytes of its text
	mostValues    = 64 << 10  // of one record, by the characters between them
	mostRecords   = 1_000_000 // of one file
	longestRead   = 64 << 10  // bytes that are read at once
)

var (
	errLongRecord = fmt.Errorf("a record has more than %d MB", longestRecord>>20)
	errManyValues = fmt.Errorf("a record has more than %d values", mostValues)
	errManyRows   = fmt.Errorf("the file has more than %d records", mostRecords)
)

// Bounded reads the text of a file of records, and fails where one record is
// longer than any should be, or where there are too many. Readers of CSV and of
// JSON keep a whole record in memory, and a quotation mark that is never closed
// makes one record of the rest of the file.
type Bounded struct {
	r              io.Reader
	separator      byte
	length, values int // of what was read since the last record ended
	records        int
}

// NewBounded returns a reader of r, whose values are separated by a character.
func NewBounded(r io.Reader, separator byte) *Bounded { return &Bounded{r: r, separator: separator} }

// Read implements io.Reader.
func (b *Bounded) Read(p []byte) (int, error) {
	switch {
	case b.length >= longestRecord:
		return 0, errLongRecord
	case b.values >= mostValues:
		return 0, errManyValues
	}
	n, err := b.r.Read(p[:min(len(p), longestRead, longestRecord-b.length)])
	b.length += n
	for _, c := range p[:n] {
		if c == b.separator {
			b.values++
		}
	}
	return n, err
}

// EndRecord says that a record ended. What was read ahead counts as part of it.
func (b *Bounded) EndRecord() error {
	b.EndPart()
	if b.records++; b.records > mostRecords {
		return errManyRows
	}
	return nil
}

// EndPart says that something else than a record ended.
func (b *Bounded) EndPart() { b.length, b.values = 0, 0 }

// Rows reads the rows of a CSV, one after the other.
type Rows struct {
	csv   *csv.Reader
	limit *Bounded
	line  int // of the last row
}

// NewRows returns the rows of a text. Where it is strict, all rows have as many
// values as the first one, quotation marks are only around values, and the cells
// of a row are valid until the next row is read.
func NewRows(text io.Reader, separator rune, isStrict bool) *Rows {
	limit := NewBounded(text, byte(separator))
	r := csv.NewReader(limit)
	r.Comma, r.ReuseRecord = separator, isStrict
	if !isStrict {
		r.LazyQuotes, r.FieldsPerRecord = true, -1
	}
	return &Rows{csv: r, limit: limit}
}

// Read returns the next row and its line. The error is io.EOF at the end.
func (r *Rows) Read() (cells []string, line int, err error) {
	cells, err = r.csv.Read()
	if errors.Is(err, errLongRecord) || errors.Is(err, errManyValues) {
		return nil, 0, fmt.Errorf("after line %d: %w; is a quotation mark there never closed?", r.line, err)
	}
	if err != nil {
		return nil, 0, err
	}
	r.line, _ = r.csv.FieldPos(0)
	return cells, r.line, r.limit.EndRecord()
}
