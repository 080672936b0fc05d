package report

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
)

// readBook reads a workbook as a spreadsheet does: the value of each cell as it is stored, and its kind.
func readBook(t *testing.T, b []byte) (rows [][]string, kinds []map[int]excelize.CellType, sheets []string) {
	t.Helper()
	f := kit.Value(excelize.OpenReader(bytes.NewReader(b)))(t)
	defer f.Close()
	sheets = f.GetSheetList()
	for _, sheet := range sheets {
		all, err := f.GetRows(sheet, excelize.Options{RawCellValue: true})
		kit.Must(t, err)
		for i, row := range all {
			kind := map[int]excelize.CellType{}
			for c := range row {
				name := columnNames[c] + strconv.Itoa(i+1)
				if kind[c], err = f.GetCellType(sheet, name); err != nil {
					t.Fatal(err)
				}
				kit.Want(t, name+" is a formula", kit.Value(f.GetCellFormula(sheet, name))(t), "")
			}
			for len(row) < len(csvHeader) {
				row = append(row, "")
			}
			rows, kinds = append(rows, row), append(kinds, kind)
		}
	}
	return rows, kinds, sheets
}

// I12: page, CSV, XLSX and JSON say the same of every document, to the last digit, over random worlds.
func TestReport_I12_FormsAgree(t *testing.T) {
	for seed := range uint64(6) {
		a := examine(t, randomShelf(t, 100+seed).config())
		table, _ := written(t, a, "csv")
		comma := kit.Value(csv.NewReader(strings.NewReader(strings.TrimPrefix(table, "\ufeff"))).ReadAll())(t)
		book, _ := written(t, a, "xlsx")
		sheet, _, _ := readBook(t, []byte(book))
		object, _ := written(t, a, "json")
		var all struct{ Documents []map[string]any }
		kit.Must(t, json.Unmarshal([]byte(object), &all))
		page, _ := written(t, a, "html")
		if len(comma) != len(sheet) || len(comma) != len(all.Documents)+1 || strings.Count(page, "<tr><th scope=\"row\"><bdi>Folder ") != len(all.Documents) {
			t.Fatalf("seed %d: %d rows, %d in the sheet, %d objects", seed, len(comma), len(sheet), len(all.Documents))
		}
		for i, row := range comma[1:] {
			for c, name := range csvHeader {
				value := ""
				switch v := all.Documents[i][name].(type) {
				case string:
					value = v
				case float64:
					value = strconv.FormatInt(int64(v), 10)
				case []any:
					value = strings.Trim(fmt.Sprint(v), "[]")
				case nil:
					continue
				}
				if in := sheetText(name, sheet[i+1][c]); in != value || strings.TrimPrefix(row[c], "'") != value && row[c] != sanitize.Cell(value) {
					t.Errorf("seed %d, row %d, %s: JSON %q, CSV %q, XLSX %q", seed, i, name, value, row[c], in)
				}
			}
			amount := row[6]
			kit.Check(t, amount == "" || strings.Contains(page, groupThousands(amount)), "seed %d: the page does not have the amount %s", seed, amount)
		}
		total := map[string]*big.Rat{} // the sums of the first page are those of the table
		for _, row := range comma[1:] {
			if row[8] == "archived" && row[6] != "" {
				k := row[3] + row[7]
				if total[k] == nil {
					total[k] = new(big.Rat)
				}
				amount, _ := new(big.Rat).SetString(row[6])
				total[k].Add(total[k], amount)
			}
		}
		for _, s := range a.Summary.Sums {
			got := total[s.Type+s.Currency]
			kit.Check(t, got != nil && formatDecimal(got) == s.Total, "seed %d: %+v, the table adds up to %v", seed, s, got)
		}
	}
}

// sheetText writes a stored cell as the other forms do.
func sheetText(column, stored string) string {
	if stored == "" || column != "documentDate" && column != "seenAt" && column != "archivedAt" {
		return stored
	}
	days, err := strconv.ParseFloat(stored, 64)
	if err != nil {
		return stored
	}
	return time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC).Add(time.Duration(days*86400+0.5) * time.Second).Format(time.RFC3339)
}

// Cells have the kind that people expect, and nothing that people give becomes a formula or breaks a sheet.
func TestXLSX_KindsAndHostileText(t *testing.T) {
	book, _ := written(t, examine(t, filled(t, "test").config()), "xlsx")
	rows, kinds, sheets := readBook(t, []byte(book))
	kit.Need(t, len(rows) == 8 && slices.Equal(rows[0], csvHeader) && slices.Equal(sheets, []string{"Documents 1"}),
		"%d rows, %q", len(rows), sheets)
	seen := map[string]bool{}
	for i, row := range rows[1:] {
		kit.Check(t, row[0] == TestMark, "row %d does not say %s", i, TestMark)
		switch folder := row[1]; {
		case folder == "Gutschrift 7":
			kit.Want(t, "amount and its kind, date, size", []any{row[6], kinds[i+1][6], row[4], row[15]}, []any{"-75.105", excelize.CellTypeUnset, "46325", "1350000"})
		case strings.HasPrefix(folder, "</td>"):
			if row[2] != "=1+1" || kinds[i+1][2] != excelize.CellTypeInlineString || row[6] != "9007199254740993.10" || kinds[i+1][6] != excelize.CellTypeInlineString {
				t.Errorf(`%q %v, want row[2] = "=1+1", kinds[i+1][2] = excelize.CellTypeInlineString, row[6] = "9007199254740993.10", kinds[i+1][6] = excelize.CellTypeInlineString`, row, kinds[i+1])
			}
		}
		seen[row[1]] = true
	}
	kit.Check(t, seen["Müller 4711"] && seen[`Kern\u{202e} 6`],
		"%v, want seen[\"Müller 4711\"], seen[`Kern\\u{202e} 6`]", seen)
	for _, text := range append(slices.Clone(attacks), "_x202E_a", "_x000D_", "_x005F_", "_x005F_x0041_", "_x0041_x0042_x0043_", "_x00_", "_x0041", "a__x003d_") {
		var b bytes.Buffer
		table := examine(t, newShelf(t, "production").config()).NewXLSX(&b)
		kit.Must(t, table.add(table.prepare(row{Folder: text, DocumentID: &text, Amount: &text, Date: &text})))
		kit.Must(t, table.finish())
		all, kinds, _ := readBook(t, b.Bytes())
		if want := sanitize.Text(text); all[1][1] != want || kinds[1][1] != excelize.CellTypeInlineString || kinds[1][6] != excelize.CellTypeInlineString && text != "-12.50" {
			t.Errorf("%q is read as %q, %v", text, all[1][1], kinds[1])
		}
	}
}

// What does not fit into one sheet stands in the next, under the names of its columns, and the file is the same each time.
func TestXLSX_FurtherSheetsAndSameBytes(t *testing.T) {
	a := examine(t, flood{250}.config(t))
	var first []byte
	for range 3 {
		var b bytes.Buffer
		table := a.NewXLSX(&b).(*xlsxTable)
		table.limit = 101
		kit.Value(a.eachRow(t.Context(), nil, table))(t)
		kit.Must(t, table.finish())
		if first == nil {
			first = b.Bytes()
		}
		kit.Check(t, bytes.Equal(first, b.Bytes()), "other bytes for the same rows")
	}
	rows, _, sheets := readBook(t, first)
	if len(rows) != 253 || !slices.Equal(sheets, []string{"Documents 1", "Documents 2", "Documents 3"}) || !slices.Equal(rows[101], csvHeader) || rows[252][1] != "Folder 0" {
		t.Errorf("%d rows in %q", len(rows), sheets)
	}
}

// Every part is well-formed XML, and the declared parts are there: a spreadsheet repairs nothing.
func TestXLSX_WellFormed(t *testing.T) {
	for _, environment := range []string{"test", "production"} {
		book, _ := written(t, examine(t, filled(t, environment).config()), "xlsx")
		parts := kit.Value(zip.NewReader(strings.NewReader(book), int64(len(book))))(t)
		names := map[string]bool{}
		for _, p := range parts.File {
			kit.Check(t, !names[p.Name], "%s is there twice", p.Name)
			names[p.Name] = true
			r, err := p.Open()
			kit.Must(t, err)
			for d := xml.NewDecoder(r); err == nil; {
				_, err = d.Token()
			}
			kit.Check(t, err == io.EOF, "%s: %v, want err = io.EOF", p.Name, err)
		}
		for _, want := range []string{"[Content_Types].xml", "_rels/.rels", "xl/workbook.xml", "xl/styles.xml", "xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels"} {
			kit.Check(t, names[want], "%s is missing: %v", want, names)
		}
	}
}

// Dates before spreadsheets agree on them, and numbers that they would round, are texts as they are.
func TestXLSX_NothingIsRounded(t *testing.T) {
	for text, want := range map[string]xlsxCell{
		"119.00": {amountStyle, "119.00"}, "-0.05": {amountStyle, "-0.05"}, "123456789012345": {amountStyle, "123456789012345"},
		"1234567890123456": {textStyle, "1234567890123456"}, "0.1234567890123456": {textStyle, "0.1234567890123456"}, "1e5": {textStyle, "1e5"}, "x": {textStyle, "x"}, "": {textStyle, ""},
	} {
		kit.Want(t, fmt.Sprintf("amount %q", text), amountCell(text), want)
	}
	for text, want := range map[string]xlsxCell{
		"1900-03-01T00:00:00Z": {dateStyle, "61"}, "1900-02-28T00:00:00Z": {textStyle, "1900-02-28T00:00:00Z"}, "0206-11-20T00:00:00Z": {textStyle, "0206-11-20T00:00:00Z"},
		"2026-10-31T12:00:00Z": {timeStyle, "46326.500000000"}, "2026-10-31T00:00:00Z": {dateStyle, "46326"}, "31.10.2026": {textStyle, "31.10.2026"},
	} {
		kit.Want(t, fmt.Sprintf("date %q", text), dateCell(text), want)
	}
}
