package expected

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
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

// NewRows returns the rows of a text. If it is strict, all rows have as many
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

// csvRecords gives the rows of a CSV: in UTF-8, in UTF-16 with its mark, else
// in Windows-1252; parted by what stands most often in its first lines.
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

// findLooseQuote returns the line in which a value begins with a quotation mark
// that nothing closes; zero: there is none. The reader of CSV would take the
// rows behind it as a part of that value, and nobody would miss them. Marks
// within a value count as letters.
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
