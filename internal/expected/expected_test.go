package expected

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"vaultd/internal/test/kit"
)

func rowsOf(l *List) []Row {
	var rows []Row
	for i := range l.Len() {
		rows = append(rows, l.Row(i))
	}
	slices.SortFunc(rows, func(a, b Row) int { return a.Line - b.Line })
	return rows
}

func read(t *testing.T, data []byte, o Options) *List {
	t.Helper()
	l := kit.Value(Read("list.csv", bytes.NewReader(data), o))(t)
	return l
}

var want = []Row{
	{2, "RE 4711", "Müller & Söhne", "2026-10-31", "1234.56", "EUR"},
	{3, "GS-7", "Otto KG", "2026-10-30", "-75.10", "EUR"},
}

const german = "Beleg-Nr.;Belegdatum;Lieferant;Betrag;Währung\r\nRE 4711;31.10.2026;Müller & Söhne;1.234,56;EUR\r\nGS-7;30.10.26;Otto KG;75,10-;eur\r\n"

// A list reads the same in each encoding, with each separator, in German and English notation, and as a workbook.
func TestRead_EncodingsSeparatorsAndNotations(t *testing.T) {
	english := "Title of the export\n\nInvoice No,Date,Vendor,Gross,Currency\n\"RE 4711\",10/31/2026,Müller & Söhne,\"1,234.56\",EUR\nGS-7,10/30/2026,\"Otto KG\",(75.10),EUR\n,,Total,\"1,159.46\",\n"
	windows := kit.Value(charmap.Windows1252.NewEncoder().String(german))(t)
	utf16 := kit.Value(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(strings.ReplaceAll(german, ";", "\t")))(t)
	type row struct {
		data  string
		shift int // rows above
		left  uint64
	}
	kit.Rows(t, map[string]row{
		"UTF8": {german, 0, 0}, "Mark": {"\ufeff" + german, 0, 0}, "Windows1252": {windows, 0, 0}, "Tabs": {strings.ReplaceAll(german, ";", "\t"), 0, 0}, "UTF16": {utf16, 0, 0},
		"English": {english, 2, 1},
	}, func(t *testing.T, row row) {
		l := read(t, []byte(row.data), Options{})
		got := rowsOf(l)
		for i := range got {
			got[i].Line -= row.shift
		}
		kit.Check(t, slices.Equal(got, want) && l.Unnumber == row.left, "%+v, %d left out", got, l.Unnumber)
	})
}

func workbook(t *testing.T, rows [][]any) []byte {
	t.Helper()
	f := excelize.NewFile()
	defer f.Close()
	day := kit.Value(f.NewStyle(&excelize.Style{NumFmt: 14}))(t)
	for i, row := range rows {
		for c, v := range row {
			name, _ := excelize.CoordinatesToCellName(c+1, i+1)
			kit.Must(t, f.SetCellValue("Sheet1", name, v))
			if c == 1 && i > 0 {
				f.SetCellStyle("Sheet1", name, name, day)
			}
		}
	}
	b := kit.Value(f.WriteToBuffer())(t)
	return b.Bytes()
}

// Numbers and dates of a workbook are taken as numbers; texts are read as in a CSV.
func TestRead_Workbook(t *testing.T) {
	l := read(t, workbook(t, [][]any{
		{"Beleg-Nr.", "Belegdatum", "Lieferant", "Betrag", "Währung"},
		{"RE 4711", 46326, "Müller & Söhne", 1234.56, "EUR"},
		{"GS-7", "30.10.2026", "Otto KG", "-75,10", "EUR"},
		{4712, 46326, "x", 0.1 + 0.2, "EUR"},
	}), Options{})
	all := append(slices.Clone(want), Row{4, "4712", "x", "2026-10-31", "0.3", "EUR"})
	kit.Want(t, "the rows", rowsOf(l), all)
}

// What can be read in two ways, or in none, is an error that names the row and says what to do.
func TestRead_NeverGuesses(t *testing.T) {
	kit.Rows(t, map[string]struct{ data, text, advice string }{
		"EitherAmount":   {"number;amount\n1;1.234\n2;5\n", `row 2: the amount "1.234" can be read in two ways`, "--decimal"},
		"TwoNotations":   {"number;amount\n1;1,50\n2;1.50\n", "rows 2 and 3 write amounts in two ways", "--decimal comma"},
		"NoAmount":       {"number;amount\n1;n/a\n", `row 2: "n/a" is not an amount`, `--columns "amount="`},
		"EitherDate":     {"number;date\n1;3/4/2026\n", `"3/4/2026" may be of two months`, "2026-10-31"},
		"TwoDateOrders":  {"number;date\n1;13/4/2026\n2;4/13/2026\n", "another order", "2026-10-31"},
		"NoDate":         {"number;date\n1;31.02.2026\n", `row 2: "31.02.2026" is not a date`, `--columns "date="`},
		"Empty":          {"number;date\n", "no row with a number", "proves nothing"},
		"OnlyTotals":     {"number;amount\n;5,00\n", "no row with a number", "proves nothing"},
		"NoWorkbook":     {"PK\x03\x04 cut off", "no workbook", "CSV"},
		"WrongThousands": {"number;amount\n1;1.23,50\n", "is not an amount", ""},
	}, func(t *testing.T, row struct{ data, text, advice string }) {
		_, err := Read("x.csv", strings.NewReader(row.data), Options{})
		wrong, ok := errors.AsType[*DataError](err)
		if !ok || !strings.Contains(err.Error(), row.text) || !strings.Contains(err.Error(), "the list x.csv") || !strings.Contains(wrong.Advice, row.advice) {
			t.Errorf(`%v, want ok, err with %q, err with "the list x.csv", wrong.Advice with %q`, err, row.text, row.advice)
		}
	})
	l := read(t, []byte("number;amount\n1;1.234\n2;5\n"), Options{Decimal: ','})
	got := rowsOf(l)
	kit.Check(t, got[0].Amount == "1234" && got[1].Amount == "5", `%+v, want got[0].Amount = "1234", got[1].Amount = "5"`, got)
}

// A list without a known column is told with its columns, the nearest names and how to map.
func TestRead_UnknownColumns(t *testing.T) {
	const data = "Konto;Belegnumer;Summe EUR\n1;RE 1;10,00\n"
	_, err := Read("x.csv", strings.NewReader(data), Options{})
	wrong, ok := errors.AsType[*ColumnsError](err)
	if !ok || err.Error() != `the list x.csv has no column that is known as the document's number; its columns are "Konto", "Belegnumer", "Summe EUR"` ||
		!strings.HasPrefix(wrong.Advice(), `nearest: "Belegnumer"; say which it is, for instance with --columns "number=Belegnumer"`) {
		t.Errorf("%v; %v", err, wrong.Advice())
	}
	columns := kit.Value(ParseColumns("number=belegnumer, amount=Summe EUR"))(t)
	if got := rowsOf(read(t, []byte(data), Options{Columns: columns})); len(got) != 1 || got[0] != (Row{Line: 2, Number: "RE 1", Amount: "10.00"}) {
		t.Errorf("%+v, want len(got) = 1, got[0] = %v", got, (Row{Line: 2, Number: "RE 1", Amount: "10.00"}))
	}
	columns["amount"] = "Sume EUR"
	_, err = Read("x.csv", strings.NewReader(data), Options{Columns: columns})
	if wrong, ok = errors.AsType[*ColumnsError](err); !ok || !strings.Contains(err.Error(), `no column "Sume EUR"`) || wrong.Nearest[0] != "Summe EUR" {
		t.Errorf("%v, want ok, err with `no column \"Sume EUR\"`, wrong.Nearest[0] = \"Summe EUR\"", err)
	}
	for _, bad := range []string{"nummer=x", "number"} {
		_, err := ParseColumns(bad)
		kit.Check(t, err != nil && strings.Contains(err.Error(), "FIELD=NAME"), `%q: %v, want an error, err with "FIELD=NAME"`, bad, err)
	}
}

// A list that was sent is the list that was read, and each number is found, whatever its case and the space around it.
func TestList_EncodeDecodeFind(t *testing.T) {
	var b strings.Builder
	b.WriteString("number;amount\n")
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		fmt.Fprintf(&b, "RE %d;%d,%02d\n", i/2, r.IntN(9999), r.IntN(100))
	}
	b.WriteString("re 5;1,00\nRE 5;1,00\nRE 5;1,00\n")
	l := read(t, []byte(b.String()), Options{})
	kit.Want(t, "repeated", l.Repeated, 1)
	var wire bytes.Buffer
	kit.Must(t, l.Encode(&wire))
	got, err := Decode(&wire)
	if err != nil || !slices.Equal(rowsOf(got), rowsOf(l)) || got.SHA256 != l.SHA256 || got.Columns["number"] != "number" {
		t.Errorf(`%v, %+v, want no error, rowsOf(got) = %v, got.SHA256 = %v, got.Columns["number"] = "number"`, err, got.Info, rowsOf(l), l.SHA256)
	}
	for i := range 1000 {
		n := 0
		for p := range got.Find(fmt.Sprintf("  re %d", i)) {
			n++
			if !strings.EqualFold(got.Row(p).Number, fmt.Sprint("RE ", i)) {
				t.Errorf(`%d: %v, want strings.EqualFold(got.Row(p).Number, fmt.Sprint("RE ", i))`, i, got.Row(p))
			}
		}
		want := 2
		kit.Check(t, (n == want || i == 5) && (i != 5 || n == 4), "RE %d is found %d times", i, n)
	}
}

// A list is from somebody else: nothing that it holds breaks the reader.
func FuzzRead(f *testing.F) {
	f.Add([]byte(german))
	f.Add([]byte("number,amount\n\"1\n,,,"))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("number\tdate\n1\t1/1/1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Read("x", bytes.NewReader(data), Options{})
		if err != nil {
			return
		}
		var b bytes.Buffer
		kit.Must(t, l.Encode(&b))
		again, err := Decode(&b)
		kit.Check(t, err == nil && again.Len() == l.Len(), "%v: %d rows, then %d", err, l.Len(), again.Len())
	})
}

// What comes over the socket is no list until it is one.
func TestDecode_WhatIsNoList(t *testing.T) {
	for _, text := range []string{"", "x", "{}\nx\n", "{}\n[1]\n[[]]", "{}\n{}"} {
		err := kit.Err(Decode(strings.NewReader(text)))
		kit.Fails(t, fmt.Sprintf("%q", text), err)
		kit.Lacks(t, "the error", fmt.Sprint(err), "%!")
	}
}

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
