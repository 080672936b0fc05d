package expected

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// endless gives a text again and again, and counts its bytes.
type endless struct {
	text string
	n    int64
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[(int(e.n)+i)%len(e.text)]
	}
	e.n += int64(len(p))
	return len(p), nil
}

// I21: whatever a file has instead of rows, its reader stops after some
// megabytes, and needs little memory for them. The file may be of any length.
func TestRows_I21_AreBounded(t *testing.T) {
	rows := map[string]struct{ before, again, want string }{
		"QuoteNeverClosed":   {"ID;NUMBER\n1;A\n2;\"B\n", "3;C\n4;D\n", "after line 2: a record has more than 65536 values; is a quotation mark"},
		"QuoteInRowOfNames":  {"\"ID;NUMBER\n", "3;C\n4;D\n", "after line 0: a record has more than 65536 values; is a quotation mark"},
		"EscapedQuotes":      {"ID\n1\n\"", `""`, "after line 2: a record has more than 4 MB"},
		"NoLineBreak":        {"ID\n", "\x00", "after line 1: a record has more than 4 MB"},
		"NothingButBlanks":   {"ID\n", "\r\n", "after line 1: a record has more than 4 MB"},
		"NothingButValues":   {"ID\n", ";", "after line 1: a record has more than 65536 values"},
		"ValuesInAQuote":     {"ID\n\"", ";\n", "after line 1: a record has more than 65536 values"},
		"RowsWithoutEnd":     {"ID\n", "1\n", "the file has more than 1000000 records"},
		"RowsOfManyValues":   {"ID;NUMBER\n", "1;2\n", "the file has more than 1000000 records"},
		"CarriageReturnOnly": {"ID\n", "1;A\r", "a record has more than"},
	}
	for name, row := range rows {
		for _, isStrict := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				source := &endless{text: row.again}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r := NewRows(io.MultiReader(strings.NewReader(row.before), source), ';', isStrict)
				var err error
				for n := 0; err == nil; n++ {
					_, _, err = r.Read()
				}
				runtime.ReadMemStats(&after)
				kit.Check(t, strings.Contains(err.Error(), row.want) && source.n <= longestRecord+2*longestRead,
					"%d bytes read, %v; want at most %d, %q", source.n, err, longestRecord+2*longestRead, row.want)
				if most := uint64(128 << 20); after.TotalAlloc-before.TotalAlloc > most {
					t.Errorf("%d MiB were allocated, want at most %d", (after.TotalAlloc-before.TotalAlloc)>>20, most>>20)
				}
			})
		}
	}
}

// A row of some megabytes is read, and so are many rows of many values: what was
// read ahead of a row is no part of the next ones.
func TestRows_I31_LongRowsAreRead(t *testing.T) {
	long := strings.Repeat("x", longestRecord/2)
	wide := strings.Repeat(";", mostValues/2)
	r := NewRows(strings.NewReader("A;B\n1;"+long+"\n"+wide+"\n"+wide+"\n"+wide+"\n2;\"a\nb\"\n"), ';', false)
	var lines []int
	var last []string
	for {
		cells, line, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		kit.Must(t, err)
		lines, last = append(lines, line), cells
	}
	kit.Check(t, len(lines) == 6 && lines[5] == 6 && len(last) == 2 && last[1] == "a\nb",
		"lines %v, last %q, want six, the last with a line break", lines, last)
}
