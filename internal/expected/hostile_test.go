package expected

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"vaultd/internal/test/kit"
)

// A quotation mark that has no partner would make one value of all the rows behind it, and nobody would miss them.
func TestRead_NoRowDisappearsInQuotes(t *testing.T) {
	for name, data := range map[string]string{
		"NeverClosed":   "number;sender\n1;\"Huber\n2;Otto\n3;Kern\n",
		"ClosedLater":   "number;sender\n1;\"Huber\n2;Otto \"& Co\"\n3;Kern\n",
		"CutOff":        "\"number\";\"sender\"\n\"1\";\"Huber\"\n\"2\";\"Ot",
		"BehindTheMark": "\ufeff\"number\";\"sender\"\r\n\"1\";\"Huber\" GmbH\r\n",
	} {
		_, err := Read("x.csv", strings.NewReader(data), Options{})
		wrong, ok := errors.AsType[*DataError](err)
		kit.Check(t, ok && strings.Contains(wrong.Text, "quotation mark"), `%s: %v, want ok, wrong.Text with "quotation mark"`, name, err)
	}
	l := read(t, []byte("number;sender\n1;Huber \"Metall\" GmbH\n2;\"Otto \"\"O\"\"\nin two lines\"\r\n3;\"\"\n"), Options{})
	if got := rowsOf(l); len(got) != 3 || got[0].Sender != `Huber "Metall" GmbH` || got[1].Sender != "Otto \"O\"\nin two lines" {
		t.Errorf("%+v, want len(got) = 3, got[0].Sender = `Huber \"Metall\" GmbH`, got[1].Sender = \"Otto \\\"O\\\"\\nin two lines\"", got)
	}
}

// An amount says its currency where no column does, and letters that may mean a sign are not left out.
func TestRead_CurrencyAndSignBesideTheAmount(t *testing.T) {
	l := read(t, []byte("number;amount\n1;100,50 USD\n2;EUR 100,50\n3;100,50 €\n4;-100,50 £\n5;100,50\n"), Options{})
	for i, want := range []string{"USD", "EUR", "EUR", "GBP", ""} {
		got := rowsOf(l)[i]
		kit.Check(t, got.Currency == want && strings.TrimPrefix(got.Amount, "-") == "100.50", "%+v, want %q", got, want)
	}
	l = read(t, []byte("number;amount;currency\n1;100,50 €;chf\n"), Options{})
	got := rowsOf(l)[0]
	kit.Check(t, got.Currency == "CHF", `%+v, want got.Currency = "CHF"`, got)
	for _, amount := range []string{"100,50 H", "100,50 CR", "100,50 S"} {
		_, err := Read("x.csv", strings.NewReader("number;amount\n1;"+amount+"\n"), Options{})
		kit.Check(t, err != nil && strings.Contains(err.Error(), "is not an amount"), `%s: %v, want an error, err with "is not an amount"`, amount, err)
	}
}

// DATEV writes a day and a month. The year is that of its head line: of the
// time of the rows, else of their business year. Without a head line, and where
// two years fit, it is never guessed.
func TestRead_DatesOfDATEV(t *testing.T) {
	head := func(year, first, last string) string {
		return `"EXTF";700;21;"Buchungsstapel";13;20261115140440439;;"RE";"";"";29098;55003;` + year + ";4;" + first + ";" + last + `;"October";"WD";1;0;0;"EUR"` + "\r\n" +
			`"Umsatz (ohne Soll/Haben-Kz)";"Soll/Haben-Kennzeichen";"WKZ Umsatz";"Konto";"Belegdatum";"Belegfeld 1"` + "\r\n"
	}
	kit.Rows(t, map[string]struct{ head, date, want string }{
		"InTheTime":       {head("20260101", "20261001", "20261031"), "3110", "2026-10-31"},
		"WithoutZero":     {head("20260101", "20261001", "20261031"), "510", "2026-10-05"},
		"OverTheYear":     {head("20260701", "20261201", "20270131"), "1501", "2027-01-15"},
		"BeforeTheTime":   {head("20260701", "20261201", "20261231"), "3009", "2026-09-30"},
		"NextYearsPart":   {head("20260701", "20261201", "20261231"), "0102", "2027-02-01"},
		"OnlyTheYear":     {head("20260101", "", ""), "3110", "2026-10-31"},
		"LeapDay":         {head("20240101", "20240201", "20240229"), "2902", "2024-02-29"},
		"NoSuchDay":       {head("20260101", "20260201", "20260228"), "3002", `row 3: "3002" is not a day and month in the time`},
		"TwoYears":        {head("20260101", "20260101", "20271231"), "3110", "may be of two years"},
		"NoTime":          {head("", "", ""), "3110", "is not a day and month in the time"},
		"NoHead":          {"Belegfeld 1;x;y;z;Belegdatum\r\n;;;;\r\n", "3110", "a DATEV export (EXTF)"},
		"NoDateOfTheForm": {head("20260101", "20261001", "20261031"), "31102", "is not a date"},
	}, func(t *testing.T, row struct{ head, date, want string }) {
		l, err := Read("x.csv", strings.NewReader(row.head+"1234,56;H;EUR;70000;"+row.date+";RE-1\r\n"), Options{})
		got := fmt.Sprint(err)
		if err == nil {
			r := rowsOf(l)[0]
			got = r.Date
			kit.Check(t, r.Amount == "1234.56" && r.Currency == "EUR" && r.Number == "RE-1",
				"%+v, want RE-1 of 1234.56 EUR", r)
		}
		kit.Holds(t, "the date", got, row.want)
	})
}

// A date with hyphens is as unclear as one with slashes.
func TestRead_DatesWithHyphens(t *testing.T) {
	_, err := Read("x.csv", strings.NewReader("number;date\n1;10-11-2026\n"), Options{})
	kit.Check(t, err != nil && strings.Contains(err.Error(), "may be of two months"), `err = %v, want an error, err with "may be of two months"`, err)
	for data, want := range map[string]string{"1;10-11-2026\n2;31-10-2026\n": "2026-11-10", "1;10-11-2026\n2;10-31-2026\n": "2026-10-11", "1;2026-11-10\n": "2026-11-10"} {
		kit.Want(t, fmt.Sprintf("%q", data), rowsOf(read(t, []byte("number;date\n"+data), Options{}))[0].Date, want)
	}
}

// Workbooks of the Macintosh count days from 1904. A serial number may have a part of a day, and as many characters as a date.
func TestRead_SerialDates(t *testing.T) {
	for _, is1904 := range []bool{false, true} {
		f := excelize.NewFile()
		kit.Must(t, f.SetWorkbookProps(&excelize.WorkbookPropsOptions{Date1904: &is1904}))
		first := 46326.0
		if is1904 {
			first -= 1462
		}
		for i, row := range [][]any{{"number", "date"}, {"1", first}, {"2", first + 0.25}, {"3", 20261031}} {
			kit.Must(t, f.SetSheetRow("Sheet1", fmt.Sprint("A", i+1), &row))
		}
		b := kit.Value(f.WriteToBuffer())(t)
		for _, r := range rowsOf(read(t, b.Bytes(), Options{})) {
			kit.Want(t, fmt.Sprintf("1904 %v", is1904), r.Date, "2026-10-31")
		}
	}
}

// A number of a document that a program wrote as a number with a fraction or an exponent is the number that people see.
func TestRead_NumbersOfDocumentsAsNumbers(t *testing.T) {
	f := excelize.NewFile()
	f.SetSheetRow("Sheet1", "A1", &[]any{"number"})
	for i, raw := range []string{"20260001.0", "2.0260001E7", "4711", "2026000000000001"} {
		kit.Must(t, f.SetCellDefault("Sheet1", fmt.Sprint("A", i+2), raw))
	}
	f.SetCellStr("Sheet1", "A6", "007.0")
	b := kit.Value(f.WriteToBuffer())(t)
	l := read(t, b.Bytes(), Options{})
	var got []string
	for _, r := range rowsOf(l) {
		got = append(got, r.Number)
	}
	kit.Check(t, fmt.Sprint(got) == "[20260001 4711 2026000000000001 007.0]" && l.Repeated == 1,
		"%q, %d repeated", got, l.Repeated)
}

// The first sheet is the list. That others were not read is told.
func TestRead_OtherSheetsAreTold(t *testing.T) {
	f := excelize.NewFile()
	for _, sheet := range []string{"Sheet1", "Feb", "Empty"} {
		kit.Value(f.NewSheet(sheet))(t)
		if sheet != "Empty" {
			f.SetSheetRow(sheet, "A1", &[]any{"number"})
			f.SetSheetRow(sheet, "A2", &[]any{"1"})
		}
	}
	b := kit.Value(f.WriteToBuffer())(t)
	l := read(t, b.Bytes(), Options{})
	kit.Check(t, l.OtherSheets == 2, "%+v, want l.OtherSheets = 2", l.Info)
}

// A row with a date and without a number is a document that cannot be compared; a total is none.
func TestRead_RowsWithoutNumber(t *testing.T) {
	l := read(t, []byte("number;date;amount\n1;31.10.2026;1,50\n;31.10.2026;2,50\n;;4,00\n"), Options{})
	kit.Check(t, l.Unnumber == 2 && l.Dated == 1, "%+v, want l.Unnumber = 2, l.Dated = 1", l.Info)
}

// A million rows of one number, as where a wrong column is taken for the number, end at once: here, and in the daemon that decodes them.
func TestList_OneNumberInAllRows(t *testing.T) {
	var b, wire strings.Builder
	b.WriteString("number;amount\n")
	wire.WriteString("{}\n")
	for i := range 50_000 {
		fmt.Fprintf(&b, "n/a;%d\n", i)
		fmt.Fprintf(&wire, "[%d,\"n/a\",\"\",\"\",\"%d\",\"\"]\n", i, i)
	}
	began := time.Now()
	_, err := Read("x.csv", strings.NewReader(b.String()), Options{})
	if wrong, ok := errors.AsType[*DataError](err); !ok || !strings.Contains(wrong.Text, `the number "n/a" stands in 50000 different rows`) {
		t.Errorf("err = %v, want ok, wrong.Text with `the number \"n/a\" stands in 50000 different rows`", err)
	}
	kit.Fails(t, "the daemon takes it", kit.Err(Decode(strings.NewReader(wire.String()))))
	d := time.Since(began)
	kit.Check(t, d <= 20*time.Second, "d = %v, want d <= 20*time.Second", d)
}

// A small file that unpacks to a huge sheet is refused before it is unpacked.
func TestRead_HugeWorkbook(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	part, err := z.Create("xl/worksheets/sheet1.xml")
	kit.Must(t, err)
	for range 65 {
		kit.Value(part.Write(bytes.Repeat([]byte(" "), 1<<20)))(t)
	}
	kit.Must(t, z.Close())
	_, err = Read("x.xlsx", &b, Options{})
	if wrong, ok := errors.AsType[*DataError](err); !ok || !strings.Contains(wrong.Text, "exceeds the 67108864 bytes limit") || !strings.Contains(wrong.Advice, "CSV") {
		t.Errorf(`err = %v, want ok, wrong.Text with "exceeds the 67108864 bytes limit", wrong.Advice with "CSV"`, err)
	}
}

// A name of a column is cut: it stands on the page, and in the first line for the daemon.
func TestRead_LongColumnNames(t *testing.T) {
	l := read(t, []byte("number"+strings.Repeat("-", 2<<20)+";x\n1;2\n"), Options{})
	var b bytes.Buffer
	kit.Must(t, l.Encode(&b))
	got, err := Decode(&b)
	kit.Check(t, err == nil && len(got.Columns["number"]) <= 300, `err = %v, want no error, len(got.Columns["number"]) <= 300`, err)
}
