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
	"vaultd/internal/test/kit"
)

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
				if name != "" && got[i][fieldNames[at]] != value {
					t.Errorf("record %d: %s is %q, want %q", i, name, got[i][fieldNames[at]], value)
				}
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
