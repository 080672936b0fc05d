package expected

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

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
				most := uint64(128 << 20)
				kit.Check(t, after.TotalAlloc-before.TotalAlloc <= most, "%d MiB were allocated, want at most %d", (after.TotalAlloc-before.TotalAlloc)>>20, most>>20)
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

// I31: amounts and days are read exactly, and an ambiguous one is left unread.
func TestParse_I31_ReadsExactly(t *testing.T) {
	for text, want := range map[string]string{"119.00": "119.00", "+0119.5": "119.5", "-0.00": "0.00", "-1.10": "-1.10", "1.19e2": "119", "12E-1": "1.2", " 7 ": "7",
		"1.234,50": "1234.50", "1,234.50": "1234.50", "1.234.567": "1234567", "12 EUR": "12", "9007199254740993.10": "9007199254740993.10", "−5,5": "-5.5", "0,125": "0.125"} {
		got, _, err := ParseAmount(text, 0)
		kit.Check(t, err == nil && string(got) == want, "amount %q: %q, %v, want %q", text, got, err, want)
	}
	for _, text := range []string{"", "1.23,4,5", "1e999999999", "0x10", "1/3", "--1", ".", "NaN", "Inf", "1.2.3", "12.34.567", strings.Repeat("9", 61)} {
		got, _, err := ParseAmount(text, 0)
		kit.Check(t, err != nil && !errors.Is(err, ErrTwoWays), "amount %q: %q, %v, want an error", text, got, err)
	}
	for _, text := range []string{"1.234", "12,345", "999.999", "-1.234"} {
		got, _, err := ParseAmount(text, Mixed)
		kit.Check(t, errors.Is(err, ErrTwoWays), "amount %q: %q, %v, want ErrTwoWays", text, got, err)
	}
	for text, want := range map[string]string{"1e2": "100", "-1.50": "-1.50", "12E-1": "1.2"} {
		got, err := ParseNumber(text)
		kit.Check(t, err == nil && (string(got) == want || string(got) == strings.TrimSuffix(want, "0")), "number %q: %q, %v, want %q", text, got, err, want)
	}
	for _, text := range []string{"1,5", "1e999999999", "0x10", "1/3", "true", "", strings.Repeat("9", 61)} {
		kit.Fails(t, fmt.Sprintf("number %q is read", text), kit.Err(ParseNumber(text)))
	}
	berlin := kit.Value(time.LoadLocation("Europe/Berlin"))(t)
	for text, want := range map[string]string{"2026-10-05": "2026-10-05", "2026-10-05T00:00:00Z": "2026-10-05", "2026-10-05T00:00:00+05:00": "2026-10-05", "2026-10-05T22:30:00Z": "2026-10-06",
		"2026-10-05T23:59:59": "2026-10-05", "2026-10-05T23:59:59.25": "2026-10-05", "13/10/2026, 10:17:02": "2026-10-13", "10/13/2026 10:17 PM": "2026-10-13", "05.10.2026": "2026-10-05", "5.10.26": "2026-10-05", "20261005": "2026-10-05"} {
		kit.Want(t, fmt.Sprintf("date %q", text), kit.Value(ParseDay(text, 0, berlin))(t), want)
	}
	for _, text := range []string{"", "soon", "2026-02-30", "13/13/2026", "2026", "13/10/2026 noon", "1000-2-3-4"} {
		got, err := ParseDay(text, 0, berlin)
		kit.Check(t, err != nil && !errors.Is(err, ErrTwoWays), "date %q: %q, %v, want an error", text, got, err)
	}
}
