package books

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"vaultd/internal/expected"
)

// Bounds of what is read, besides those of expected.Bounded.
const (
	longestValue = 4096 // bytes of a value that is kept
	headBytes    = 4096 // of a file, that show its form
)

// record is one record of the table, by field.
type record struct {
	values   [fieldCount]string
	isNumber [fieldCount]bool // of JSON
	has      [fieldCount]bool // the column is there
}

// reader reads the records of an extract.
type reader struct {
	Settings
	columns columns
}

// readRecords calls fn with each record of a file, in its order, and reads the file to its end. The form is told by the first bytes:
// JSON (an array of objects, an object that has such an array, or one object after the other) or CSV with a row of names.
func (s reader) readRecords(r io.Reader, fn func(record) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	text := strings.TrimLeft(strings.TrimPrefix(string(head), "\ufeff"), " \t\r\n")
	switch {
	case text == "" && len(head) == headBytes:
		return fmt.Errorf("it begins with %d blanks", headBytes)
	case text == "":
		return nil
	case text[0] == '[' || text[0] == '{':
		if strings.HasPrefix(string(head), "\ufeff") {
			if _, err := in.Discard(len("\ufeff")); err != nil {
				return err
			}
		}
		return s.readJSON(in, fn)
	}
	return s.readCSV(in, head, fn)
}

// named is a field that a name is read for. Of several names, the one with the
// lowest choice counts.
type named struct {
	field  field
	choice int
}

// jsonRecords reads the records of a file in JSON.
type jsonRecords struct {
	d       *jsontext.Decoder // it refuses names that stand twice, and bytes that are no UTF-8
	limit   *expected.Bounded
	columns map[string][]named // by name; one column may be read for two fields
	fn      func(record) error
	n       int // the record that is read
}

func (s reader) readJSON(in io.Reader, fn func(record) error) error {
	limit := expected.NewBounded(in, ',')
	j := &jsonRecords{d: jsontext.NewDecoder(limit), limit: limit, columns: map[string][]named{}, fn: fn}
	for i, names := range s.columns {
		for choice, name := range names {
			j.columns[name] = append(j.columns[name], named{field(i), choice})
		}
	}
	err := j.readFile()
	if err != nil && j.n > 0 {
		return fmt.Errorf("record %d: %w", j.n, err)
	}
	return err
}

// readFile reads records to the end of the file. A file that is cut off must not be read as a shorter one, and what stands behind the
// records must not be passed over.
func (j *jsonRecords) readFile() error {
	opening, err := j.d.ReadToken()
	if err != nil {
		return err
	}
	if opening.Kind() == '[' {
		if err := j.readList(); err != nil {
			return err
		}
		return j.checkEnd()
	}
	var name jsontext.Value
	if opening.Kind() == '{' && j.d.PeekKind() == '"' {
		if name, err = j.d.ReadValue(); err != nil {
			return err
		}
		name = slices.Clone(name)  // the decoder uses its memory again
		if j.d.PeekKind() == '[' { // an object that has the records in a list
			return j.readWrapped(name)
		}
	}
	for err == nil { // one record after the other; of the first one the beginning is read already
		if err = j.readRecord(opening, name); err != nil {
			return err
		}
		name = nil
		opening, err = j.d.ReadToken()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readWrapped reads the list that begins here, and passes over the single
// values that the object has beside it. If another list or object stands there,
// or the name is that of a column, it is not clear which are the records.
func (j *jsonRecords) readWrapped(name jsontext.Value) error {
	unclear := fmt.Errorf("beside the list %s stands another one, or a column: which of them are the records?", name)
	isColumn := len(j.fieldsOf(name)) > 0
	_, err := j.d.ReadToken()
	if err == nil {
		err = j.readList()
	}
	for err == nil && j.d.PeekKind() != '}' {
		j.limit.EndPart()
		if name, err = j.d.ReadValue(); err != nil {
			return err
		}
		isColumn = isColumn || len(j.fieldsOf(name)) > 0
		if kind := j.d.PeekKind(); kind == '[' || kind == '{' {
			return unclear
		}
		err = j.d.SkipValue()
	}
	if err == nil {
		_, err = j.d.ReadToken()
	}
	switch {
	case err != nil:
		return err
	case isColumn:
		return unclear
	}
	return j.checkEnd()
}

// readList reads the records of a list to its end.
func (j *jsonRecords) readList() error {
	for j.d.PeekKind() != ']' {
		opening, err := j.d.ReadToken()
		if err == nil {
			err = j.readRecord(opening, nil)
		}
		if err != nil {
			return err
		}
	}
	_, err := j.d.ReadToken()
	j.n = 0
	return err
}

func (j *jsonRecords) checkEnd() error {
	j.limit.EndPart()
	switch _, err := j.d.ReadToken(); {
	case err == nil:
		return errors.New("something follows the list of records")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// readRecord reads the rest of an object of which the opening was read, and calls fn. name is its first name in quotes, where that was read
// as well; else nil. A value that is missing is null: services leave those out.
func (j *jsonRecords) readRecord(opening jsontext.Token, name jsontext.Value) error {
	j.n++
	if opening.Kind() != '{' {
		return errors.New("it is no object")
	}
	var rec record
	var choices [fieldCount]int // of the names whose values the record has, from 1 on
	for name != nil || j.d.PeekKind() != '}' {
		var err error
		if name == nil {
			name, err = j.d.ReadValue()
		}
		if err == nil {
			err = j.readValue(&rec, &choices, j.fieldsOf(name))
		}
		if err != nil {
			return err
		}
		name = nil
	}
	if _, err := j.d.ReadToken(); err != nil {
		return err
	}
	if err := errors.Join(j.limit.EndRecord(), rec.checkLengths()); err != nil {
		return err
	}
	return j.fn(rec)
}

// fieldsOf returns the fields that are read from a name in quotes.
func (j *jsonRecords) fieldsOf(name jsontext.Value) []named {
	if bytes.IndexByte(name, '\\') < 0 {
		return j.columns[string(name[1:len(name)-1])]
	}
	plain, err := jsontext.AppendUnquote(nil, name)
	if err != nil {
		return nil // the decoder has checked it, so that it always is a text
	}
	return j.columns[string(plain)]
}

// readValue reads the next value into the fields; where there are none, it passes over it.
func (j *jsonRecords) readValue(rec *record, choices *[fieldCount]int, fields []named) error {
	if len(fields) == 0 {
		return j.d.SkipValue()
	}
	for _, f := range fields {
		rec.has[f.field] = true
	}
	raw, err := j.d.ReadValue()
	if err != nil || raw.Kind() == 'n' {
		return err
	}
	text := string(raw)
	if raw.Kind() == '"' {
		plain, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return err
		}
		text = string(plain)
	}
	for _, f := range fields {
		if had := choices[f.field]; had == 0 || f.choice+1 < had {
			rec.values[f.field], rec.isNumber[f.field], choices[f.field] = text, raw.Kind() == '0', f.choice+1
		}
	}
	return nil
}

func (r record) checkLengths() error {
	for i, v := range r.values {
		if len(v) > longestValue {
			return fmt.Errorf("the value of %s has %d bytes", fieldNames[i], len(v))
		}
	}
	return nil
}

func (s reader) readCSV(in *bufio.Reader, head []byte, fn func(record) error) error {
	var text io.Reader = in
	switch {
	case strings.HasPrefix(string(head), "\xff\xfe"), strings.HasPrefix(string(head), "\xfe\xff"):
		text = transform.NewReader(in, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder())
	case strings.HasPrefix(string(head), "\ufeff"):
		if _, err := in.Discard(len("\ufeff")); err != nil {
			return err
		}
	case s.Encoding == "windows-1252":
		text = transform.NewReader(in, charmap.Windows1252.NewDecoder())
	}
	separator := s.Separator
	if separator == 0 {
		separator = findSeparator(head)
	}
	rows := expected.NewRows(text, separator, true)
	names, _, err := rows.Read()
	if err != nil {
		return fmt.Errorf("the row of names: %w", err)
	}
	at, err := s.columnPositions(names)
	if err != nil {
		return err
	}
	for {
		cells, line, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var rec record
		for i, p := range at {
			if p < 0 {
				continue
			}
			rec.has[i] = true
			if rec.values[i] = cells[p]; !utf8.ValidString(cells[p]) {
				return fmt.Errorf("line %d is not in %s: set extracts.csv.encoding", line, s.Encoding)
			}
		}
		if err := rec.checkLengths(); err != nil {
			return err
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
}

// columnPositions finds the columns by their names, never by their place. A column of which all values are null may be missing, but for
// those without which no record means anything.
func (s reader) columnPositions(names []string) (at [fieldCount]int, err error) {
	for i, wanted := range s.columns {
		at[i] = -1
		for _, name := range wanted {
			if at[i] = slices.Index(names, name); at[i] >= 0 {
				break
			}
		}
		switch f := field(i); {
		case len(wanted) == 0:
		case at[i] >= 0 && slices.Contains(names[at[i]+1:], names[at[i]]):
			return at, fmt.Errorf("the row of names has %q twice", names[at[i]])
		case at[i] < 0 && (f == keyField || f == numberField || f == bookedField):
			return at, fmt.Errorf("the row of names has no %q (%s); is extracts.csv.separator right?", strings.Join(wanted, " or "), fieldNames[i])
		}
	}
	return at, nil
}

// findSeparator returns the character that parts the names in the first line most often.
func findSeparator(head []byte) rune {
	line, _, _ := strings.Cut(string(head), "\n")
	best := ','
	for _, c := range ",;\t|" {
		if strings.Count(line, string(c)) > strings.Count(line, string(best)) {
			best = c
		}
	}
	return best
}
