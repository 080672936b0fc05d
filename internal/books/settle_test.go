package books

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// csvOf is a CSV with an amount and a date in each row, beginning with number n.
func csvOf(n int, rows ...[2]string) string {
	text := "ID;INVOICE_NUM;SUPPLIER;ORG;INVOICE_DATE;GROSS_SUM;CURRENCY;STATUS\r\n"
	for i, r := range rows {
		text += fmt.Sprintf("%d;R-%d;Huber GmbH;Acme;%s;%s;EUR;Booked\r\n", n+i, n+i, r[1], r[0])
	}
	return text
}

// I31: amounts and dates are read in every form that bookkeeping writes. One that
// alone can be read in two ways is read as the other values of its column show,
// or as the configuration says; else it is ambiguous and counts as nothing.
func TestSettle_I31_ByTheOtherValues(t *testing.T) {
	const day = "05.10.2026"
	rows := map[string]struct {
		decimal expected.Shown
		own     [][2]string // rows of the extract; the first is the one that is asked about
		older   [][2]string // of an older extract
		want    string      // verdict, amount and date of the first row
	}{
		"German":               {0, [][2]string{{"1.234,56", day}}, nil, "archived 1234.56 2026-10-05"},
		"MinusBehind":          {0, [][2]string{{"75,10-", day}}, nil, "differs -75.1 2026-10-05"},
		"Blank":                {0, [][2]string{{"1 500,00", day}}, nil, "differs 1500 2026-10-05"},
		"NarrowBlank":          {0, [][2]string{{"1\u202f234,56", day}}, nil, "archived 1234.56 2026-10-05"},
		"Apostrophe":           {0, [][2]string{{"1'234.56", day}}, nil, "archived 1234.56 2026-10-05"},
		"English":              {0, [][2]string{{`"1,234.56"`, day}}, nil, "archived 1234.56 2026-10-05"},
		"WithCurrency":         {0, [][2]string{{"1234,56 EUR", day}}, nil, "archived 1234.56 2026-10-05"},
		"OtherCurrency":        {0, [][2]string{{"1234,56 USD", day}}, nil, "unreadable 1234.56 2026-10-05"},
		"InBrackets":           {0, [][2]string{{"(75,10)", day}}, nil, "differs -75.1 2026-10-05"},
		"ALetter":              {0, [][2]string{{"75,10 H", day}}, nil, "unreadable  2026-10-05"},
		"NothingShows":         {0, [][2]string{{"1.234", day}, {"7", day}}, nil, "ambiguous  2026-10-05"},
		"Configured":           {',', [][2]string{{"1.234", day}}, nil, "differs 1234 2026-10-05"},
		"ConfiguredPoint":      {'.', [][2]string{{"1.234", day}}, nil, "differs 1.234 2026-10-05"},
		"OtherThanConfigured":  {'.', [][2]string{{"1.234,56", day}}, nil, "unreadable  2026-10-05"},
		"LaterRowShows":        {0, [][2]string{{"1.234", day}, {"7,50", day}}, nil, "differs 1234 2026-10-05"},
		"LaterRowShowsPoint":   {0, [][2]string{{"1.234", day}, {"7.50", day}}, nil, "differs 1.234 2026-10-05"},
		"TwoWays":              {0, [][2]string{{"1.234", day}, {"7,50", day}, {"7.50", day}}, nil, "ambiguous  2026-10-05"},
		"OlderExtractShows":    {0, [][2]string{{"1.234", day}}, [][2]string{{"7,50", day}}, "differs 1234 2026-10-05"},
		"OwnExtractFirst":      {0, [][2]string{{"1.234", day}, {"7.50", day}}, [][2]string{{"7,50", day}}, "differs 1.234 2026-10-05"},
		"OlderExtractIsMixed":  {0, [][2]string{{"1.234", day}}, [][2]string{{"7,50", day}, {"7.50", day}}, "ambiguous  2026-10-05"},
		"EitherMonth":          {0, [][2]string{{"1234,56", "05/10/2026"}}, nil, "ambiguous 1234.56 "},
		"MonthByOtherDate":     {0, [][2]string{{"1234,56", "05/10/2026"}, {"1", "13/10/2026"}}, nil, "archived 1234.56 2026-10-05"},
		"MonthFirst":           {0, [][2]string{{"1234,56", "10/05/2026"}, {"1", "10/13/2026"}}, nil, "archived 1234.56 2026-10-05"},
		"MonthByOlderExtract":  {0, [][2]string{{"1234,56", "05/10/2026, 10:17:02"}}, [][2]string{{"1", "31/01/2026"}}, "archived 1234.56 2026-10-05"},
		"BothAreUnclear":       {0, [][2]string{{"1.234", "05/10/2026"}}, nil, "ambiguous  "},
		"NoDate":               {0, [][2]string{{"1234,56", "10/32/2026"}}, nil, "unreadable 1234.56 "},
		"ExponentIsNoThousand": {0, [][2]string{{"1.23456E+03", day}}, nil, "archived 1234.56 2026-10-05"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settings = func(s *Settings) { s.Decimal = row.decimal }
			def := definitionOf("IA_INVOICE", columnNames...)
			w.hold(delta("1", "2026-01-01", "2026-10-10"), def, csvOf(100, row.older...))
			w.hold(delta("2", "2026-10-10", "2026-11-19"), def, csvOf(1, row.own...))
			doc := documentOf("R-1")
			doc.Amount = "1234.56"
			w.drop("R-1", doc, ledger.Archived)
			a, all := w.ask()
			for _, r := range all {
				if r.Number != "R-1" {
					continue
				}
				got := fmt.Sprintf("%s %s %s", r.Verdict, r.Amount, string(r.Date))
				kit.Check(t, got == row.want, "got %q, want %q; %s", got, row.want, r.Found)
				if isUnclear := strings.HasPrefix(row.want, "ambiguous"); isUnclear != strings.Contains(r.Found, "can be read in two ways") || isUnclear && a.IsComplete() {
					t.Errorf("found %q, complete %v; want it unclear and not complete: %v", r.Found, a.IsComplete(), isUnclear)
				}
				return
			}
			t.Errorf("R-1 is not in %v", all)
		})
	}
}

// I31: what is settled follows the extracts: a later one may show how the column
// is written, or that it is written in two ways.
func TestSettle_I31_FollowsTheExtracts(t *testing.T) {
	w := newWorld(t)
	w.settings = func(s *Settings) { s.Decimal = 0 }
	def := definitionOf("IA_INVOICE", columnNames...)
	for i, step := range []struct{ amount, want string }{{"1.234", "ambiguous"}, {"7,50", "never-dropped 1234"}, {"7.50", "ambiguous"}} {
		w.hold(delta(fmt.Sprint(i+1), "2026-01-01", "2026-11-19"), def, csvOf(10*i+1, [2]string{step.amount, "2026-10-05"}))
		_, all := w.ask()
		for _, r := range all {
			got := strings.TrimSpace(fmt.Sprint(r.Verdict, " ", r.Amount))
			kit.Check(t, r.Number != "R-1" || got == step.want, "with %d extracts: %s, want %s", i+1, got, step.want)
		}
	}
}

// I31: a number of JSON is a number, and a text of JSON is read as one of CSV.
func TestSettle_I31_NumbersAndTextsOfJSON(t *testing.T) {
	w := newWorld(t)
	w.settings = func(s *Settings) { s.Decimal = 0 }
	text := strings.Replace(jsonOf(invoice("1", "R-1"), invoice("2", "R-2", "GROSS_SUM", "1.234"), invoice("3", "R-3", "GROSS_SUM", "1.234,00")), "119.00", "1.234", 1)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), text)
	_, all := w.ask()
	var got []string
	for _, r := range all {
		got = append(got, string(r.Amount))
	}
	kit.Want(t, "the amounts", fmt.Sprint(got), "[1.234 1234 1234]")
}

// readAll reads records by the settings of the tests and returns of each the values that it has, by the names of the fields.
func readAll(s Settings, content string) (all []map[string]string, err error) {
	err = reader{s, s.columns()}.readRecords(strings.NewReader(content), func(r record) error {
		values := map[string]string{}
		for i, v := range r.values {
			if v != "" {
				values[fieldNames[i]] = v
			}
		}
		all = append(all, values)
		return nil
	})
	return all, err
}

// I31: a record is read by the names of its columns, in every form that the service may choose. What stands around it changes nothing.
func TestRecords_I31_Forms(t *testing.T) {
	want := map[string]string{fieldNames[keyField]: "1", fieldNames[numberField]: "R\u00e9 \"1\"", fieldNames[amountField]: "9007199254740993.10"}
	const object = `{"EXTRA": {"ID": ["}", "]"]}, "GROSS_SUM": 9007199254740993.10, "INVOICE_NUM": "R\u00e9 \"1\"", "STATUS": null, "ID": "1"}`
	csvOf := func(sep string) string {
		return strings.Join([]string{"EXTRA", "GROSS_SUM", "INVOICE_NUM", "STATUS", "ID"}, sep) + "\r\n" + strings.Join([]string{`"a` + sep + `b"`, "9007199254740993.10", `"Ré ""1"""`, "", "1"}, sep) + "\r\n"
	}
	kit.Rows(t, map[string]string{
		"List":           "[" + object + "]",
		"SpaceAround":    "\r\n [ " + object + " ] \n",
		"ByteOrderMark":  "\ufeff[" + object + "]",
		"OneObject":      object,
		"EscapedName":    `[{"\u0049D":"1","INVOICE_NUM":"Ré \"1\"","GROSS_SUM":9007199254740993.10}]`,
		"Wrapped":        `{"records": [` + object + `], "count": 1, "next": null}`,
		"CSV":            csvOf(","),
		"CSVWithMark":    "\ufeff" + csvOf(";"),
		"CSVWithTab":     csvOf("\t"),
		"OtherPositions": "ID,INVOICE_NUM,GROSS_SUM,STATUS\n1,\"Ré \"\"1\"\"\",9007199254740993.10,\n",
	}, func(t *testing.T, content string) {
		got, err := readAll(testSettings(), content)
		kit.Check(t, err == nil && len(got) == 1 && maps.Equal(got[0], want), "%v, %v; want %v", got, err, want)
	})
	for name, content := range map[string]string{"Lines": object + "\n" + object, "List": "[" + object + "," + object + "]", "EmptyBetween": object + "\n{}\n" + object} {
		if got, err := readAll(testSettings(), content); err != nil || len(got) < 2 || !maps.Equal(got[len(got)-1], want) {
			t.Errorf("%s: %v, %v, want no error, len(got) >= 2, got[len(got)-1] = %v", name, got, err, want)
		}
	}
	for _, content := range []string{"", " \n", "[]", `{"records":[]}`} {
		kit.Len(t, fmt.Sprintf("%q", content), kit.Value(readAll(testSettings(), content))(t), 0)
	}
}

// I32: a file that is cut off, or that has more than its list, is not read as a shorter one.
func TestRecords_I32_WhatIsNotWhole(t *testing.T) {
	const one = `{"ID":"1","INVOICE_NUM":"1"}`
	kit.Rows(t, map[string]struct{ content, want string }{
		"CutInList":      {"[" + one + ",", "unexpected EOF"},
		"TwoLists":       {`{"errors":[],"data":[` + one + `]}`, "which of them are the records"},
		"ListInRecord":   {`{"TAGS":[],"ID":"1","INVOICE_NUM":"1"}`, "which of them are the records"},
		"ColumnIsAList":  {`{"ID":[]}`, "which of them are the records"},
		"ManyBlanks":     {strings.Repeat(" ", headBytes) + "[" + one + "]", "blanks"},
		"CutAfterRecord": {"[" + one, "unexpected EOF"},
		"CutInRecord":    {`[{"ID":"1","INVOICE_N`, "unexpected EOF"},
		"CutLine":        {one + "\n" + `{"ID":"2"`, "record 2"},
		"CutWrapped":     {`{"records":[` + one + `]`, "unexpected EOF"},
		"SecondList":     {"[" + one + "][" + one + "]", "something follows"},
		"NullRecord":     {"[" + one + ",null]", "record 2: it is no object"},
		"TextRecord":     {`["x"]`, "record 1: it is no object"},
		"NameTwice":      {`[{"ID":"1","ID":"2"}]`, "duplicate"},
		"NoUTF8":         {"[{\"ID\":\"\xff\"}]", "UTF-8"},
		"NoJSON":         {"[" + one + ",}", "invalid"},
		"HugeRecord":     {`[{"ID":"1","X":"` + strings.Repeat("x", 4<<20+1) + `"}]`, "more than 4 MB"},
		"ManyValues":     {`[{"ID":["` + strings.Repeat(`",`+"\n"+`"`, 1<<17) + `"]}]`, "more than 65536 values"},
		"QuoteNotClosed": {"ID,INVOICE_NUM,STATUS\n1,\"2,3\n" + strings.Repeat("1,2,3\n", 1<<20), "after line 1: a record has more than 65536 values; is a quotation mark"},
		"HugeValue":      {`[{"ID":"` + strings.Repeat("x", longestValue+1) + `"}]`, "bytes"},
		"NoKeyColumn":    {"KEY,INVOICE_NUM,STATUS\n1,2,3\n", "extracts.csv.separator"},
		"ColumnTwice":    {"ID,ID,INVOICE_NUM,STATUS\n1,2,3,4\n", "twice"},
		"ShortRow":       {"ID,INVOICE_NUM,STATUS\n1,2\n", "fields"},
		"OtherEncoding":  {"ID,INVOICE_NUM,STATUS\n1,M\xfcller,3\n", "extracts.csv.encoding"},
	}, func(t *testing.T, row struct{ content, want string }) {
		got, err := readAll(testSettings(), row.content)
		kit.Check(t, err != nil && strings.Contains(err.Error(), row.want), "%v, %v; want an error with %q", got, err, row.want)
	})
	failed := errors.New("stop here")
	for _, content := range []string{"[" + one + "]", one, "ID,INVOICE_NUM,STATUS\n1,2,3\n"} {
		kit.Fails(t, fmt.Sprintf("%q", content),
			(reader{testSettings(), testSettings().columns()}).readRecords(strings.NewReader(content), func(record) error { return failed }), failed)
	}
}

// The text of a file in another encoding is read as the configuration says.
func TestRecords_Encoding(t *testing.T) {
	s := testSettings()
	s.Encoding = "windows-1252"
	for name, content := range map[string]string{
		"windows-1252":   "ID,INVOICE_NUM,STATUS\n1,M\xfcller,x\n",
		"UTF16WithAMark": "\xff\xfeI\x00D\x00,\x00I\x00N\x00V\x00O\x00I\x00C\x00E\x00_\x00N\x00U\x00M\x00,\x00S\x00T\x00A\x00T\x00U\x00S\x00\n\x001\x00,\x00M\x00\xfc\x00l\x00l\x00e\x00r\x00,\x00x\x00\n\x00",
	} {
		if got, err := readAll(s, content); err != nil || len(got) != 1 || got[0][fieldNames[numberField]] != "Müller" {
			t.Errorf(`%s: %v, %v, want no error, len(got) = 1, got[0][fieldNames[numberField]] = "Müller"`, name, got, err)
		}
	}
}

// Whatever a list of records holds: what is read is what another reader of JSON reads, or it is refused.
func FuzzRecords_I31(f *testing.F) {
	for _, s := range []string{`[{"ID":"1","INVOICE_NUM":null,"GROSS_SUM":1e2}]`, `[{"\u0049D":"\ud83d\ude00","X":[{"ID":"2"}]}]`, "[{},{\"ID\":{\"a\":1}}]", `[[]]`, `[{"ID":"1"}]x`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if trimmed := bytes.TrimLeft(content, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '[' {
			return
		}
		got, err := readAll(testSettings(), string(content))
		if err != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(content))
		var want []map[string]json.RawMessage
		err = d.Decode(&want)
		kit.Need(t, err == nil, "read %q, which is no list of objects: %v", content, err)
		_, err = d.Token()
		kit.Need(t, errors.Is(err, io.EOF) && len(want) == len(got), "read %d of %d records; behind them %v", len(got), len(want), err)
		for i, object := range want {
			for at, names := range testSettings().columns() {
				name := strings.Join(names, "")
				raw, value := object[name], ""
				if len(raw) > 0 && raw[0] == '"' {
					kit.Must(t, json.Unmarshal(raw, &value))
				} else if string(raw) != "null" {
					value = string(raw)
				}
				kit.Check(t, name == "" || got[i][fieldNames[at]] == value,
					"record %d: %s is %q, want %q", i, name, got[i][fieldNames[at]], value)
			}
		}
	})
}

// Numbers that are alike have one form.
func TestValues_I31_OneFormForOneValue(t *testing.T) {
	for amount, want := range map[archive.Decimal]archive.Decimal{"119.00": "119", "119.50": "119.5", "-0.00": "0", "0": "0", "100": "100", "": ""} {
		kit.Want(t, fmt.Sprint(amount), trimZeros(amount), want)
	}
	kit.Want(t, fmt.Sprintf("%q %q", similarNumber(" 00 47 11 "), similarNumber("Re-1")),
		[]string{similarNumber(" 00 47 11 "), similarNumber("Re-1")}, []string{"4711", "re-1"})
}
