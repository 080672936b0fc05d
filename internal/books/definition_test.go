package books

import (
	"fmt"
	"strings"
	"testing"

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
	for name, row := range map[string]struct {
		definition, content, want string
	}{
		"None":               {"", jsonOf(full), "1 119 archived"},
		"OtherForm":          {`{"IA_INVOICE": ["ID"]}`, jsonOf(full), "1 119 archived"},
		"NoColumns":          {`[{"Table name": "IA_INVOICE", "Columns": []}]`, jsonOf(full), "1 119 archived"},
		"ColumnWithoutName":  {`[{"Table name": "IA_INVOICE", "Columns": [{"Data Type": "text"}]}]`, jsonOf(full), "1 119 archived"},
		"CSV":                {"", head + "GROSS_SUM\n1,1,Huber GmbH,Acme,2026-10-05,EUR,,Booked,119.00\n", "1 119 archived"},
		"Renamed":            {"", jsonOf(lacking), "books.columns.amount"},
		"RenamedInCSV":       {"", head + "TOTAL\n1,1,Huber GmbH,Acme,2026-10-05,EUR,,Booked,119.00\n", "books.columns.amount"},
		"RenamedInOtherForm": {`{"IA_INVOICE": ["ID"]}`, jsonOf(lacking), "books.columns.amount"},
		"NoRecord":           {"", jsonOf(), ""},
	} {
		t.Run(name, func(t *testing.T) {
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
}
