package books

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// renamed returns the columns with another name for the amount.
func renamed(name string) []string {
	all := append([]string{}, columnNames...)
	for i := range all {
		if all[i] == "GROSS_SUM" {
			all[i] = name
		}
	}
	return all
}

// amountIn is a record with its amount in another column.
func amountIn(id, number, column, amount string) rec {
	return invoice(id, number, "GROSS_SUM", nil, column, amount)
}

// amountsOf returns the number, the amount and the verdict of each row.
func amountsOf(rows []Row) string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%s %s %s", r.Number, r.Amount, r.Verdict))
	}
	return strings.Join(all, ", ")
}

// I31: a column that is renamed has both names in the settings, and each extract
// is read by those that its own definition has, in JSON and in CSV.
func TestDefinition_I31_ARenamedColumn(t *testing.T) {
	const csvHead = "ID,INVOICE_NUM,INVOICE_DATE,CURRENCY,STATUS,"
	for name, content := range map[string][2]string{
		"JSON": {jsonOf(invoice("1", "1", "GROSS_SUM", "10.50")), jsonOf(amountIn("2", "2", "TOTAL", "20.50"))},
		"CSV":  {csvHead + "GROSS_SUM\n1,1,2026-10-05,EUR,Booked,10.50\n", csvHead + "TOTAL\n2,2,2026-10-05,EUR,Booked,20.50\n"},
		// The definition is of the day after: the records still have the old name.
		"OlderRecords": {jsonOf(invoice("1", "1", "GROSS_SUM", "10.50")), jsonOf(invoice("2", "2", "GROSS_SUM", "20.50"))},
		"Both":         {jsonOf(invoice("1", "1", "GROSS_SUM", "10.50", "TOTAL", "7.00")), jsonOf(invoice("2", "2", "GROSS_SUM", "7.00", "TOTAL", "20.50"))},
		"BothInCSV":    {csvHead + "TOTAL,GROSS_SUM\n1,1,2026-10-05,EUR,Booked,7.00,10.50\n", csvHead + "GROSS_SUM,TOTAL\n2,2,2026-10-05,EUR,Booked,7.00,20.50\n"},
	} {
		for _, names := range [][]string{{"GROSS_SUM", "TOTAL"}, {"TOTAL", "GROSS_SUM"}} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.settings = func(s *Settings) {
					s.Columns = Columns{Key: s.Columns.Key, Number: s.Columns.Number, Date: s.Columns.Date, Amount: names, Currency: s.Columns.Currency}
				}
				w.hold(delta("1", "2026-01-01", "2026-10-10"), definitionOf("IA_INVOICE", columnNames...), content[0])
				w.hold(delta("2", "2026-10-10", "2026-11-19"), definitionOf("IA_INVOICE", renamed("TOTAL")...), content[1])
				a, rows := w.ask()
				kit.Want(t, "the amounts", amountsOf(rows), "1 10.5 never-dropped, 2 20.5 never-dropped")
				if !a.IsComplete() || len(a.Coverage.Changes) != 1 {
					t.Errorf("complete %v, changes %v; want one change of the definition", a.IsComplete(), a.Coverage.Changes)
				}
			})
		}
	}
}

// I31, I32: an extract whose definition has none of the names is not read, and
// says so with the names that are near; the others are. If no extract has the
// column, the settings are wrong.
func TestDefinition_I31_ALostColumn(t *testing.T) {
	const want = `books.columns.amount "GROSS_SUM" is not in the table definition of`
	w := newWorld(t)
	w.hold(delta("2", "2026-10-10", "2026-11-19"), definitionOf("IA_INVOICE", renamed("GROSS_SUM_ORG")...), jsonOf(amountIn("2", "2", "GROSS_SUM_ORG", "20")))
	_, err := w.open(testSettings()).Update(t.Context(), w.sums)
	kit.Holds(t, "the error", fmt.Sprint(err), want, "near: GROSS_SUM_ORG")
	w.hold(delta("1", "2026-01-01", "2026-10-10"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1")))
	a, rows := w.ask()
	kit.Need(t, len(rows) == 1 && len(a.Problems) == 1 && !a.IsComplete() && len(a.Coverage.Holes) == 1,
		"%d rows, problems %v, holes %v; want one of each", len(rows), a.Problems, a.Coverage.Holes)
	kit.Holds(t, "the problem", a.Problems[0].String(), "Extract 2: "+want, "near: GROSS_SUM_ORG", "as a list")
}

// I31: without a definition, or with one of another form, records are read by the
// names of their columns, with a warning. A column that no record has may have
// another name: then the extract is not read.
func TestDefinition_I31_NoneThatCanBeRead(t *testing.T) {
	const head = "ID,INVOICE_NUM,SUPPLIER,ORG,INVOICE_DATE,CURRENCY,KIND,STATUS,"
	full := invoice("1", "1", "KIND", "RE")
	lacking := invoice("1", "1", "GROSS_SUM", nil, "TOTAL", "119", "KIND", nil)
	type row struct {
		definition, content, want string
	}
	kit.Rows(t, map[string]row{
		"None":               {"", jsonOf(full), "1 119 archived"},
		"OtherForm":          {`{"IA_INVOICE": ["ID"]}`, jsonOf(full), "1 119 archived"},
		"NoColumns":          {`[{"Table name": "IA_INVOICE", "Columns": []}]`, jsonOf(full), "1 119 archived"},
		"ColumnWithoutName":  {`[{"Table name": "IA_INVOICE", "Columns": [{"Data Type": "text"}]}]`, jsonOf(full), "1 119 archived"},
		"CSV":                {"", head + "GROSS_SUM\n1,1,Huber GmbH,Acme,2026-10-05,EUR,,Booked,119.00\n", "1 119 archived"},
		"Renamed":            {"", jsonOf(lacking), "books.columns.amount"},
		"RenamedInCSV":       {"", head + "TOTAL\n1,1,Huber GmbH,Acme,2026-10-05,EUR,,Booked,119.00\n", "books.columns.amount"},
		"RenamedInOtherForm": {`{"IA_INVOICE": ["ID"]}`, jsonOf(lacking), "books.columns.amount"},
		"NoRecord":           {"", jsonOf(), ""},
	}, func(t *testing.T, row row) {
		w := newWorld(t)
		var raw []byte
		if row.definition != "" {
			raw = []byte(row.definition)
		}
		w.hold(delta("1", "2026-01-01", "2026-11-19"), raw, row.content)
		w.drop("1", documentOf("1"), ledger.Archived)
		a, rows := w.ask()
		got := amountsOf(rows)
		for _, p := range a.Problems {
			got += p.String()
		}
		kit.Holds(t, "the answer", got, row.want)
		isRead := !strings.Contains(row.want, "books.")
		if a.IsComplete() != isRead {
			t.Errorf("complete %v, want %v; %v", a.IsComplete(), isRead, a.Problems)
		}
		if isRead && (len(a.Coverage.Changes) != 1 || !strings.Contains(a.Coverage.Changes[0].String(), "no table definition that can be read")) {
			t.Errorf("the warnings are %v, want one", a.Coverage.Changes)
		}
	})
}

// I31, I32: the service may add files to a table's ZIP, and files and tables to an
// extract. They are passed over; what may be records of the table is never.
func TestEntries_I32_ExtraFilesAndTables(t *testing.T) {
	const head = "ID,INVOICE_NUM,SUPPLIER,ORG,INVOICE_DATE,GROSS_SUM,CURRENCY,KIND,STATUS\n"
	const one, two = head + "1,1,Huber GmbH,Acme,2026-10-05,119.00,EUR,,Booked\n", head + "2,2,Huber GmbH,Acme,2026-10-05,119.00,EUR,,Booked\n"
	table := func(parts ...[2]string) []file { return []file{{"IA_INVOICE", "IA_INVOICE.zip", parts}} }
	beside := func(extra file) []file {
		return append(table([2]string{"IA_INVOICE.csv", one}), extra)
	}
	utf16 := "\xff\xfe" + strings.Join(strings.Split(two, ""), "\x00") + "\x00"
	const first, both = "1 119 never-dropped", "1 119 never-dropped, 2 119 never-dropped"
	type row struct {
		files []file
		want  string // rows, or a part of the problem
	}
	kit.Rows(t, map[string]row{
		"ReadmeBehind":       {table([2]string{"IA_INVOICE.csv", one}, [2]string{"readme.txt", "made by the export"}), first},
		"ReadmeBefore":       {table([2]string{"README.md", "# IA_INVOICE\nThe key is ID, the number INVOICE_NUM.\n"}, [2]string{"IA_INVOICE.csv", one}), first},
		"OfTheMac":           {table([2]string{"__MACOSX/._IA_INVOICE.csv", "\x00\x05\x16\x07"}, [2]string{".DS_Store", "Bud1"}, [2]string{"IA_INVOICE.csv", one}), first},
		"Manifest":           {table([2]string{"manifest.json", `{"rows": 1, "made": "2026-10-31"}`}, [2]string{"data.json", jsonOf(invoice("1", "1"))}), first},
		"Sums":               {table([2]string{"sums.csv", "file,sha256\nIA_INVOICE.csv,00\n"}, [2]string{"IA_INVOICE.csv", one}), first},
		"Empty":              {table([2]string{"_SUCCESS", ""}, [2]string{"IA_INVOICE.csv", one}), first},
		"Picture":            {table([2]string{"logo.png", "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 1<<17)}, [2]string{"IA_INVOICE.csv", one}), first},
		"OtherTableInTheZIP": {table([2]string{"IA_INVOICE_ROW.csv", two}, [2]string{"IA_INVOICE.csv", one}), first},
		"InAFolder":          {table([2]string{"export/readme.txt", "x"}, [2]string{`export\IA_INVOICE.csv`, one}), first},
		"TwoParts":           {table([2]string{"part-1.csv", one}, [2]string{"part-2.csv", two}), both},
		"TwoNumberedParts":   {table([2]string{"IA_INVOICE_1.csv", one}, [2]string{"IA_INVOICE_2.csv", two}, [2]string{"readme.txt", "x"}), both},
		"OtherName":          {table([2]string{"export.dat", one}, [2]string{"readme.txt", "x"}), first},
		"UTF16":              {table([2]string{"a.csv", one}, [2]string{"b.csv", utf16}), both},
		"NothingBooked":      {table([2]string{"data.json", "[]"}, [2]string{"readme.txt", "x"}), ""},
		"ExtraZIP":           {beside(file{"", "notes.zip", [][2]string{{"readme.txt", "made by the export"}}}), first},
		"ExtraText":          {beside(file{"", "readme.txt", [][2]string{{"", "made by the export"}}}), first},
		"ExtraOfNewTable":    {beside(file{"NEW_TABLE", "NEW_TABLE.zip", [][2]string{{"NEW_TABLE.csv", two}}}), first},
		"ExtraOfNoContent":   {beside(file{"", "_SUCCESS.txt", [][2]string{{"", ""}}}), first},
		"PlainTable":         {[]file{{"IA_INVOICE", "IA_INVOICE.csv", [][2]string{{"", one}}}}, first},

		"RecordsOfNoTable":   {beside(file{"", "more.zip", [][2]string{{"more.csv", two}}}), "may have records of IA_INVOICE"},
		"TitleAbove":         {table([2]string{"IA_INVOICE_1.csv", one}, [2]string{"part-2.csv", "October\n" + two}), `has no "ID"`},
		"PartWithOtherMarks": {table([2]string{"IA_INVOICE_1.csv", one}, [2]string{"part-2.csv", strings.ReplaceAll(two, ",", "^")}), "is extracts.csv.separator right?"},
		"NamedAndRenamed":    {table([2]string{"IA_INVOICE_1.csv", one}, [2]string{"IA_INVOICE_2.csv", strings.ReplaceAll(two, "ID,", "KEY,")}), `has no "ID"`},
		"NothingButOthers":   {table([2]string{"a.txt", "x"}, [2]string{"b.txt", "y"}), "none of its parts (a.txt, b.txt) has the columns ID and INVOICE_NUM"},
		"OneOther":           {table([2]string{"a.txt", "x,y\n1,2\n"}), "is extracts.csv.separator right?"},
		"CutPart":            {table([2]string{"a.json", jsonOf(invoice("1", "1"))}, [2]string{"b.json", `[{"ID":"2","INVOICE_NUM":`}), "unexpected EOF"},
	}, func(t *testing.T, row row) {
		w := newWorld(t)
		w.holdFiles(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), row.files...)
		a, rows := w.ask()
		got := amountsOf(rows)
		if isWhole := row.want == "" || strings.HasPrefix(row.want, first); isWhole {
			kit.Want(t, "the rows", got, row.want)
			kit.Check(t, a.IsComplete(),
				"it is not complete, want it complete: %v %v", a.Problems, a.Coverage.Holes)
			return
		}
		if len(a.Problems) != 1 || a.IsComplete() {
			t.Fatalf("problems %v, complete %v, want one", a.Problems, a.IsComplete())
		}
		kit.Holds(t, "the problem", a.Problems[0].Text, row.want)
	})
}

// TestOpen_I27_ForItsUserAlone: the file of booked invoices is for vaultd's user
// alone, whatever the umask is.
func TestOpen_I27_ForItsUserAlone(t *testing.T) {
	w := newWorld(t)
	defer unix.Umask(unix.Umask(0))
	w.open(testSettings())
	all := kit.Value(filepath.Glob(filepath.Join(w.dir, FileName+"*")))(t)
	kit.Need(t, len(all) != 0, "no file in %s, want %s", w.dir, FileName)
	for _, path := range all {
		info := kit.Value(os.Lstat(path))(t)
		kit.Want(t, "rights of "+filepath.Base(path), info.Mode().Perm(), fs.FileMode(0o600))
	}
}
