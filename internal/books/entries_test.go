package books

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

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
	for name, row := range map[string]struct {
		files []file
		want  string // rows, or a part of the problem
	}{
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
	} {
		t.Run(name, func(t *testing.T) {
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
