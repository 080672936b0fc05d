package extractapi

import (
	"bytes"
	"encoding/json"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// The names of fields of the table definition. Deployed services write them with spaces; the other spellings are those of the other
// answers of this interface.
var (
	tableNames  = []string{"Table name", "tableName", "name"}
	columnLists = []string{"Columns", "columns"}
	columnNames = []string{"Column name", "columnName", "name"}
	columnTypes = []string{"Data Type", "dataType", "type"}
	columnTexts = []string{"Field definition", "fieldDefinition", "definition", "description"}
	columnCases = []string{"Example value", "exampleValue", "example"}
)

// ReadDefinition reads a table definition as the service wrote it. If one of
// them cannot be read, the definition has none: a part of it would make columns
// look lost that are not.
func ReadDefinition(body []byte) (archive.TableDefinition, error) {
	if !json.Valid(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))) {
		return archive.TableDefinition{}, apicall.ErrUnknownForm
	}
	d := archive.TableDefinition{Raw: bytes.Clone(body)}
	records, err := apicall.ReadRecords(body, "tables", "tableDefinitions", "items")
	if err != nil {
		return d, nil
	}
	for _, raw := range records {
		t, ok := readTable(raw)
		if !ok {
			d.Tables = nil
			return d, nil
		}
		d.Tables = append(d.Tables, t)
	}
	return d, nil
}

func readTable(raw json.RawMessage) (t archive.Table, ok bool) {
	f, err := apicall.ReadFields(raw, append(columnLists, tableNames...)...)
	if err != nil {
		return t, false
	}
	list, err := f.Either(columnLists...)
	if err != nil {
		return t, false
	}
	var columns []json.RawMessage
	if t.Name = textOf(f, tableNames); t.Name == "" || json.Unmarshal(list, &columns) != nil {
		return t, false
	}
	for _, raw := range columns {
		c, ok := readColumn(raw)
		if !ok {
			return t, false
		}
		t.Columns = append(t.Columns, c)
	}
	return t, true
}

func readColumn(raw json.RawMessage) (c archive.Column, ok bool) {
	var names []string
	for _, some := range [][]string{columnNames, columnTypes, columnTexts, columnCases} {
		names = append(names, some...)
	}
	f, err := apicall.ReadFields(raw, names...)
	if err != nil {
		return c, false
	}
	c = archive.Column{Name: textOf(f, columnNames), Type: textOf(f, columnTypes), Definition: textOf(f, columnTexts), Example: textOf(f, columnCases)}
	return c, c.Name != ""
}

// textOf returns the first of the named fields that is there, in one line of at most 500 characters.
func textOf(f apicall.Fields, names []string) string {
	for _, name := range names {
		if text := f.Text(name); text != "" {
			return sanitize.Message(text, 500)
		}
	}
	return ""
}
