package books

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I31: each verdict comes from what it says, and only one archived document that is the invoice in every value makes it archived.
func TestAnswer_I31_Verdicts(t *testing.T) {
	changed := func(number string, change func(*archive.Document)) archive.Document {
		d := documentOf(number)
		change(&d)
		return d
	}
	type dropped struct {
		doc   archive.Document
		state ledger.State
	}
	type row struct {
		booked []rec
		drops  []dropped
		want   []string // by the order of date, number and key
	}
	kit.Rows(t, map[string]row{
		"Archived":      {[]rec{invoice("1", "4711")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"archived"}},
		"SpaceAndForm":  {[]rec{invoice("1", " Re\u0301-1 ")}, []dropped{{documentOf("R\u00e9-1"), ledger.Archived}}, []string{"archived"}},
		"AmountByValue": {[]rec{invoice("1", "1", "GROSS_SUM", json.Number("1.19e2"))}, []dropped{{documentOf("1"), ledger.Archived}}, []string{"archived"}},
		"LongAmount": {[]rec{invoice("1", "1", "GROSS_SUM", json.Number("9007199254740993.01"))},
			[]dropped{{changed("1", func(d *archive.Document) { d.Amount = "9007199254740993.02" }), ledger.Archived}}, []string{"differs: amount"}},
		"NeverDropped":      {[]rec{invoice("1", "4711")}, nil, []string{"never-dropped"}},
		"OnTheWay":          {[]rec{invoice("1", "4711")}, []dropped{{documentOf("4711"), ledger.Uploaded}}, []string{"on-the-way"}},
		"Rejected":          {[]rec{invoice("1", "4711")}, []dropped{{documentOf("4711"), ledger.Rejected}}, []string{"rejected"}},
		"RejectedThen":      {[]rec{invoice("1", "4711")}, []dropped{{documentOf("4711"), ledger.Rejected}, {documentOf("4711"), ledger.Archived}}, []string{"archived"}},
		"RejectedAgain":     {[]rec{invoice("1", "4711")}, []dropped{{documentOf("4711"), ledger.Rejected}, {documentOf("4711"), ledger.Packaged}}, []string{"on-the-way"}},
		"Zeros":             {[]rec{invoice("1", "4711")}, []dropped{{documentOf("004711"), ledger.Archived}}, []string{"similar"}},
		"Blanks":            {[]rec{invoice("1", "RE 47 11")}, []dropped{{documentOf("RE4711"), ledger.Archived}}, []string{"similar"}},
		"Case":              {[]rec{invoice("1", "re4711")}, []dropped{{documentOf("RE4711"), ledger.Archived}}, []string{"similar"}},
		"ZerosOfOther":      {[]rec{invoice("1", "4711"), invoice("2", "004711")}, []dropped{{documentOf("004711"), ledger.Archived}}, []string{"archived", "never-dropped"}},
		"Amount":            {[]rec{invoice("1", "4711", "GROSS_SUM", "119.01")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"differs: amount"}},
		"AmountMissing":     {[]rec{invoice("1", "4711")}, []dropped{{changed("4711", func(d *archive.Document) { d.Amount = "" }), ledger.Archived}}, []string{"differs: amount"}},
		"Date":              {[]rec{invoice("1", "4711", "INVOICE_DATE", "2026-10-06")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"differs: date"}},
		"Currency":          {[]rec{invoice("1", "4711", "CURRENCY", "usd")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"differs: currency"}},
		"OtherSupplier":     {[]rec{invoice("1", "4711", "SUPPLIER", "Maier", "GROSS_SUM", "5")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"never-dropped"}},
		"OtherCompany":      {[]rec{invoice("1", "4711", "ORG", "Beta", "GROSS_SUM", "5")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"never-dropped"}},
		"SupplierAlone":     {[]rec{invoice("1", "4711", "SUPPLIER", "Huber")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"differs: supplier"}},
		"NotTold":           {[]rec{invoice("1", "4711", "SUPPLIER", nil, "ORG", nil, "CURRENCY", nil)}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"archived"}},
		"CreditNote":        {[]rec{invoice("1", "G1", "GROSS_SUM", "-119")}, []dropped{{changed("G1", func(d *archive.Document) { d.Type = "CreditNote" }), ledger.Archived}}, []string{"archived"}},
		"CreditByType":      {[]rec{invoice("1", "G1", "KIND", "GU")}, []dropped{{changed("G1", func(d *archive.Document) { d.Type = "CreditNoteSelfBilled" }), ledger.Archived}}, []string{"archived"}},
		"PlusIsNoCredit":    {[]rec{invoice("1", "G1")}, []dropped{{changed("G1", func(d *archive.Document) { d.Type = "CreditNote" }), ledger.Archived}}, []string{"differs: type"}},
		"CreditIsNoInvoice": {[]rec{invoice("1", "G1", "KIND", "GU")}, []dropped{{documentOf("G1"), ledger.Archived}}, []string{"differs: type"}},
		"Correction":        {[]rec{invoice("1", "G1", "GROSS_SUM", "-119")}, []dropped{{changed("G1", func(d *archive.Document) { d.Amount = "-119.00" }), ledger.Archived}}, []string{"archived"}},
		"NumberAlone": {[]rec{invoice("1", "7", "SUPPLIER", nil, "ORG", nil, "CURRENCY", nil, "GROSS_SUM", nil, "INVOICE_DATE", nil)}, []dropped{{documentOf("7"), ledger.Archived}},
			[]string{"differs: only the number"}},
		"DateWithoutAmount": {[]rec{invoice("1", "7", "GROSS_SUM", nil)}, []dropped{{documentOf("7"), ledger.Archived}}, []string{"archived"}},
		"InvoiceSign":       {[]rec{invoice("1", "G1", "GROSS_SUM", "-119")}, []dropped{{documentOf("G1"), ledger.Archived}}, []string{"differs: amount"}},
		"TwoDocuments":      {[]rec{invoice("1", "4711")}, []dropped{{documentOf("4711"), ledger.Archived}, {changed("4711", func(d *archive.Document) { d.Type = "InvoiceSelfBilled" }), ledger.Archived}}, []string{"ambiguous"}},
		"TwoRows":           {[]rec{invoice("1", "4711"), invoice("2", "4711")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"ambiguous", "ambiguous"}},
		"TwoOfEach": {[]rec{invoice("1", "7", "GROSS_SUM", "1"), invoice("2", "7", "GROSS_SUM", "2")}, []dropped{
			{changed("7", func(d *archive.Document) { d.Amount = "2.00" }), ledger.Archived}, {changed("7", func(d *archive.Document) { d.Amount = "1.00" }), ledger.Archived}}, []string{"archived", "archived"}},
		"OneIsAnothers":  {[]rec{invoice("1", "7"), invoice("2", "7", "GROSS_SUM", "2")}, []dropped{{documentOf("7"), ledger.Archived}}, []string{"archived", "never-dropped"}},
		"TwoDiffer":      {[]rec{invoice("1", "7", "GROSS_SUM", "1"), invoice("2", "7", "GROSS_SUM", "2")}, []dropped{{documentOf("7"), ledger.Archived}}, []string{"ambiguous", "ambiguous"}},
		"NotBooked":      {[]rec{invoice("1", "7", "STATUS", "Draft"), invoice("2", "8", "STATUS", nil)}, nil, nil},
		"NoNumber":       {[]rec{invoice("1", "")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"unreadable"}},
		"UnreadableSum":  {[]rec{invoice("1", "4711", "GROSS_SUM", "119,00")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"unreadable"}},
		"UnreadableDate": {[]rec{invoice("1", "4711", "INVOICE_DATE", "soon")}, []dropped{{documentOf("4711"), ledger.Archived}}, []string{"unreadable"}},
		"OtherMonth":     {[]rec{invoice("1", "4711", "INVOICE_DATE", "2026-09-30")}, nil, nil},
	}, func(t *testing.T, row row) {
		w := newWorld(t)
		w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), jsonOf(row.booked...))
		for i, d := range row.drops {
			w.drop(fmt.Sprintf("Folder %d", i), d.doc, d.state)
		}
		a, rows := w.ask()
		var got []string
		for _, r := range rows {
			word := r.Verdict.String()
			if r.Difference != 0 {
				word += ": " + r.Difference.String()
			}
			got = append(got, word)
		}
		kit.Check(t, strings.Join(got, ", ") == strings.Join(row.want, ", "),
			"%q, want %q: %+v", got, row.want, rows)
		if n := a.Counts[Archived]; a.Missing() != uint64(len(rows))-n {
			t.Errorf("missing %d of %d", a.Missing(), len(rows))
		}
	})
}

// I31: what the archive's own index has counts, and what it lacks does not. An index that was not read to its end concludes nothing.
func TestAnswer_I31_Index(t *testing.T) {
	w := newWorld(t)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...),
		jsonOf(invoice("1", "1"), invoice("2", "2"), invoice("3", "3"), invoice("4", "4")))
	one := w.drop("One", documentOf("1"), ledger.Archived)
	w.drop("Two", documentOf("2"), ledger.Archived)
	on := w.drop("Three", documentOf("3"), ledger.Uploaded)
	index := func(complete bool) func(*Question) {
		return func(q *Question) {
			q.Index = func(each func(archive.IndexRecord) error) ([]IndexRead, error) {
				for _, r := range []archive.IndexRecord{{Remote: one, Document: documentOf("1")}, {Remote: on, Document: documentOf("3")}, {Remote: "others", Document: documentOf("4")},
					{Remote: "unknown", Document: documentOf("9")}, {Remote: "", Document: documentOf("4")}} {
					if err := each(r); err != nil {
						return nil, err
					}
				}
				return []IndexRead{{Vault: "V-1", Read: 5, Found: 5, Complete: complete}}, nil
			}
		}
	}
	for complete, want := range map[bool]string{true: "archived, in-question, on-the-way, archived", false: "archived, archived, on-the-way, archived"} {
		a, rows := w.ask(index(complete))
		var got []string
		for _, r := range rows {
			got = append(got, r.Verdict.String())
		}
		if strings.Join(got, ", ") != want || a.Unbooked != 1 || a.IsComplete() != complete {
			t.Errorf("%v: %q, want %q; %d not booked, complete %v", complete, got, want, a.Unbooked, a.IsComplete())
		}
		kit.Holds(t, "the text", rows[3].Found, "others")
	}
}

// Archived documents that the books do not have are told, and neither counts one that the company sent nor one of another time or company.
func TestAnswer_Unbooked(t *testing.T) {
	w := newWorld(t)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1"), invoice("2", "2", "INVOICE_DATE", "2026-09-30")))
	for i, change := range []func(*archive.Document){func(*archive.Document) {}, func(d *archive.Document) { d.FlowDirection = "sending" }, func(d *archive.Document) { d.Date = "2026-11-01T00:00:00Z" },
		func(d *archive.Document) { d.RecipientName = "Beta" }, func(d *archive.Document) { d.Number = "2" }} {
		d := documentOf(fmt.Sprintf("N%d", i))
		change(&d)
		w.drop(fmt.Sprintf("Folder %d", i), d, ledger.Archived)
	}
	a, _ := w.ask()
	kit.Check(t, a.Unbooked == 2, "%d not booked, want N0 and N3", a.Unbooked)
	a, rows := w.ask(func(q *Question) { q.Company = "acme " })
	kit.Check(t, a.Unbooked == 1 && len(rows) == 1, "of Acme %d not booked, %d booked; want 1 and 1", a.Unbooked, len(rows))
}

// I31: a company that is mistyped is not one of which everything is archived, and a record that names none may be of any.
func TestAnswer_I31_OneCompany(t *testing.T) {
	w := newWorld(t)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1"), invoice("2", "2", "ORG", nil), invoice("3", "3", "ORG", "Beta")))
	a, rows := w.ask(func(q *Question) { q.Company = "acme" })
	kit.Want(t, "booked and missing", []any{len(rows), a.Missing()}, []any{2, uint64(2)})
	b := w.open(testSettings())
	_, err := b.Answer(t.Context(), Question{From: "2026-10-01", To: "2026-10-31", Company: "Acne", Now: day("2026-11-20")}, w.led, nil)
	unknown, is := errors.AsType[*UnknownCompanyError](err)
	kit.Check(t, is && len(unknown.Near) == 1 && unknown.Near[0] == "Acme", `%v, want is, len(unknown.Near) = 1, unknown.Near[0] = "Acme"`, err)
}

// I31: what the index has of a registration that never got content does not stand for the one that succeeded.
func TestAnswer_I31_IndexHasAnotherRegistration(t *testing.T) {
	m := &matcher{seed: maphash.MakeSeed(), choose: func(archive.Document) bool { return true }}
	x := newIndexed(m)
	kit.Must(t, x.add(archive.IndexRecord{Remote: "unused", Document: documentOf("1")}))
	e := ledger.Entry{State: ledger.Archived, ArchivedRemote: "succeeded", Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "unused"}}, {Ticket: archive.Ticket{Remote: "succeeded"}}}}
	kit.Check(t, !x.take(e) && len(x.rest) == 0, "found, and %d are left", len(x.rest))
}
