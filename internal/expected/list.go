package expected

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// Limits of a list. A longer one is to be split, by month for instance.
const (
	MaxRows  = 1_000_000
	maxBytes = 32 << 20 // of all rows, which take five times as much memory while a report is made
	maxSame  = 1000     // different rows with one number: more of them name no document, and comparing them would take hours
)

// Row is one expected document. Only the number is always given.
type Row struct {
	Line     int    // of the file, from 1; of a workbook the row of its sheet
	Number   string // as it is written
	Sender   string
	Date     string // like 2026-10-31
	Amount   string // plain decimal
	Currency string // in capitals
}

// Info says what a list is.
type Info struct {
	File     string            `json:"file"`     // its name without folders
	SHA256   string            `json:"sha256"`   // of the file
	Columns  map[string]string `json:"columns"`  // what each known column is called: number, sender, date, amount, currency
	Unnumber uint64            `json:"unnumber"` // rows that have no number and are left out, such as totals
	Dated    uint64            `json:"dated"`    // of them: with a date, so that they may be documents

	OtherSheets int    `json:"otherSheets"` // of a workbook, beside the first one: they are not read
	Repeated    uint64 `json:"repeated"`    // rows that repeat another one in all known columns
}

// List is a list in little memory: about a hundred bytes a row.
type List struct {
	Info
	rows  []entry // sorted by hash, then as in the file
	texts []byte  // the rows, one JSON array after the other
}

type entry struct {
	hash     uint64 // of the folded number
	from, to uint32 // of its text
}

// Len is how many documents are expected.
func (l *List) Len() int { return len(l.rows) }

// Row returns a row by its position. Positions are of no order that means anything.
func (l *List) Row(i int) Row {
	var r Row
	if err := decodeRow(l.texts[l.rows[i].from:l.rows[i].to], &r); err != nil {
		panic(fmt.Sprintf("row %d of a list: %v", i, err)) // add encoded it
	}
	return r
}

// Order tells which of two rows stands first in the file, by their positions.
func (l *List) Order(a, b int) int { return cmp.Compare(l.rows[a].from, l.rows[b].from) }

// seed is of the hashes of this process: they are in no file.
var seed = maphash.MakeSeed()

func hashNumber(number string) uint64 { return maphash.String(seed, archive.PlainText(number)) }

// Find gives the positions of the rows with a number. Space around it, its case and its Unicode form do not count.
func (l *List) Find(number string) iter.Seq[int] {
	hash, want := hashNumber(number), archive.PlainText(number)
	i, _ := slices.BinarySearchFunc(l.rows, hash, func(e entry, h uint64) int { return cmp.Compare(e.hash, h) })
	return func(yield func(int) bool) {
		for ; i < len(l.rows) && l.rows[i].hash == hash; i++ {
			if archive.PlainText(l.Row(i).Number) == want && !yield(i) {
				return
			}
		}
	}
}

// add appends a row; sortRows must follow the last one.
func (l *List) add(r Row) error {
	from := len(l.texts)
	b, err := json.Marshal([]any{r.Line, r.Number, r.Sender, r.Date, r.Amount, r.Currency})
	if err != nil {
		return err
	}
	l.texts = append(l.texts, b...)
	if len(l.rows) == MaxRows || len(l.texts) > maxBytes {
		return fmt.Errorf("the list has more than %d rows or %d MB", MaxRows, maxBytes>>20)
	}
	l.rows = append(l.rows, entry{hashNumber(r.Number), uint32(from), uint32(len(l.texts))})
	return nil
}

// sortRows makes the list ready for Find, and leaves out rows that repeat another one. The error says that too many rows have one
// number.
func (l *List) sortRows() error {
	// Equal rows come to stand beside each other: a list may have one number in all of its rows.
	slices.SortFunc(l.rows, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), bytes.Compare(l.withoutLine(a), l.withoutLine(b)), cmp.Compare(a.from, b.from))
	})
	all := len(l.rows)
	l.rows = slices.CompactFunc(l.rows, func(a, b entry) bool {
		return a.hash == b.hash && bytes.Equal(l.withoutLine(a), l.withoutLine(b))
	})
	l.Repeated += uint64(all - len(l.rows))
	slices.SortFunc(l.rows, func(a, b entry) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.from, b.from)) })
	for i := 0; i < len(l.rows); {
		n := 1
		for i+n < len(l.rows) && l.rows[i+n].hash == l.rows[i].hash {
			n++
		}
		if n > maxSame {
			return fmt.Errorf("the number %q stands in %d different rows", sanitize.Truncate(l.Row(i).Number, 40), n)
		}
		i += n
	}
	return nil
}

// withoutLine is the text of a row behind the number of its line.
func (l *List) withoutLine(e entry) []byte {
	_, rest, _ := bytes.Cut(l.texts[e.from:e.to], []byte(","))
	return rest
}

func decodeRow(text []byte, r *Row) error {
	return json.Unmarshal(text, &[]any{&r.Line, &r.Number, &r.Sender, &r.Date, &r.Amount, &r.Currency})
}

// Encode writes the list for Decode: a line with its Info, and a line for each row, in the file's order.
func (l *List) Encode(w io.Writer) error {
	out := bufio.NewWriter(w)
	head, err := json.Marshal(l.Info)
	if err != nil {
		return err
	}
	out.Write(head) //lint:ignore errcheck bufio keeps the first error for Flush
	inOrder := slices.Clone(l.rows)
	slices.SortFunc(inOrder, func(a, b entry) int { return cmp.Compare(a.from, b.from) })
	for _, e := range inOrder {
		out.WriteByte('\n')             //lint:ignore errcheck as above
		out.Write(l.texts[e.from:e.to]) //lint:ignore errcheck as above
	}
	out.WriteByte('\n') //lint:ignore errcheck as above
	return out.Flush()
}

// Decode reads what Encode wrote. It trusts nobody: what is no list is an error, and one that is too long is not kept.
func Decode(r io.Reader) (*List, error) {
	in := bufio.NewScanner(io.LimitReader(r, 2*maxBytes))
	in.Buffer(nil, 1<<20)
	l := &List{}
	if !in.Scan() || json.Unmarshal(in.Bytes(), &l.Info) != nil {
		return nil, fmt.Errorf("read the list of expected documents: it does not begin as one does: %w", cmp.Or(in.Err(), io.ErrUnexpectedEOF))
	}
	for in.Scan() {
		var row Row
		err := decodeRow(in.Bytes(), &row)
		if err == nil {
			err = l.add(row)
		}
		if err != nil {
			return nil, fmt.Errorf("read the list of expected documents: %w", err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("read the list of expected documents: %w", err)
	}
	return l, l.sortRows()
}
