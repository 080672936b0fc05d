package books

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math/big"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
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

// watched is a ledger that counts how often it was read from its beginning.
type watched struct {
	*boltledger.Ledger
	walks int
}

func (w *watched) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	w.walks++
	return w.Ledger.EntriesOldestFirst(fn)
}

// answered is what an answer says.
type answered struct {
	Counts   map[Verdict]uint64
	Sums     []Sum
	Rows     []Row
	Missing  []Row
	Unbooked []Unbooked
}

// askWatched folds what is held and asks. It returns the answer, and whether the ledger was read for it.
func (w *world) askWatched(q Question) (got answered, isRead bool) {
	w.t.Helper()
	led := &watched{Ledger: w.led.Ledger}
	b := w.open(testSettings())
	problems := kit.Value(b.Update(w.t.Context(), w.sums))(w.t)
	a := kit.Value(b.Answer(w.t.Context(), q, led, problems))(w.t)
	got = answered{Counts: a.Counts, Sums: a.Sums}
	for i := range got.Sums { // two texts are compared, not how they were summed up
		for _, amount := range []*Amount{&got.Sums[i].Booked, &got.Sums[i].Archived, &got.Sums[i].Missing} {
			*amount = Amount{Count: amount.Count, Total: amount.Total}
		}
	}
	kit.Must(w.t, a.EachBooked(w.t.Context(), func(r Row) error { got.Rows = append(got.Rows, r); return nil }))
	kit.Must(w.t, a.EachMissing(w.t.Context(), func(r Row) error { got.Missing = append(got.Missing, r); return nil }))
	kit.Must(w.t, a.EachUnbooked(w.t.Context(), func(u Unbooked) error { got.Unbooked = append(got.Unbooked, u); return nil }))
	kit.Must(w.t, a.Close())
	kit.Must(w.t, b.Close())
	return got, led.walks > 0
}

// forget removes the matches that are kept.
func (w *world) forget() { w.change("DELETE FROM matching") }

func (w *world) change(statement string) {
	w.t.Helper()
	db := kit.Value(sql.Open("sqlite", filepath.Join(w.dir, FileName)))(w.t)
	kit.Value(db.ExecContext(w.t.Context(), statement))(w.t)
	kit.Must(w.t, db.Close())
}

func newMatchedWorld(t *testing.T) *world {
	w := newWorld(t)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1"), invoice("2", "2", "GROSS_SUM", "5"),
		invoice("3", "0003"), invoice("4", "4"), invoice("5", "5", "ORG", "Beta"), invoice("6", "6", "INVOICE_DATE", "2026-09-05"), invoice("7", "7")))
	for _, number := range []string{"1", "2", "3", "8", "9"} {
		d := documentOf(number)
		if number == "9" {
			d.RecipientName = "Beta"
		}
		w.drop("Folder "+number, d, ledger.Archived)
	}
	w.drop("On the way", documentOf("4"), ledger.Uploaded)
	september := documentOf("10")
	september.Date = "2026-09-30T00:00:00Z"
	w.drop("September", september, ledger.Archived)
	return w
}

// I31: while neither the ledger nor the extracts change, the ledger is read for the first question alone, and every question has the answer that
// reading it again gives.
func TestMatching_I31_SameAnswers(t *testing.T) {
	w := newMatchedWorld(t)
	october := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	september, beta := october, october
	september.From, september.To, beta.Company = "2026-09-01", "2026-09-30", "beta"
	_, isRead := w.askWatched(october)
	kit.Check(t, isRead, "the first answer did not read the ledger")
	for name, q := range map[string]Question{"TheSame": october, "OtherDays": september, "OtherCompany": beta} {
		kept, isRead := w.askWatched(q)
		kit.Check(t, !isRead, "%s: the ledger was read, although nothing had changed", name)
		w.forget()
		fresh, isRead := w.askWatched(q)
		kit.Check(t, isRead && reflect.DeepEqual(kept, fresh),
			"%s: %+v, and %+v where the ledger was read (%v)", name, kept, fresh, isRead)
		kit.Check(t, name != "TheSame" || len(fresh.Rows) == 6 && len(fresh.Unbooked) == 3 && fresh.Counts[Archived] == 1, "%+v", fresh)
	}
}

// I31: what was kept counts only for the ledger, the extracts and the settings that it was made of, and only with each of its bytes.
func TestMatching_I31_OnlyOfTheSame(t *testing.T) {
	q := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	type row struct {
		change func(*world)
		want   uint64 // archived
	}
	kit.Rows(t, map[string]row{
		"LedgerWentOn": {func(w *world) { w.drop("Again", documentOf("1"), ledger.Archived) }, 0}, // now two fit
		"NewExtract": {func(w *world) {
			w.hold(delta("2", "2026-11-19", "2026-11-20"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1", "GROSS_SUM", "7"), invoice("8", "8")))
		}, 1},
		"ChangedByte": {func(w *world) {
			w.change("UPDATE matching_part SET content = CAST(substr(content, 1, length(content) - 1) || x'01' AS BLOB) WHERE kind = 1")
		}, 1},
		"LostPart": {func(w *world) { w.change("DELETE FROM matching_part WHERE kind = 0") }, 1},
	}, func(t *testing.T, row row) {
		w := newMatchedWorld(t)
		w.askWatched(q)
		row.change(w)
		got, isRead := w.askWatched(q)
		kit.Check(t, isRead && got.Counts[Archived] == row.want, "read %v, %+v", isRead, got.Counts)
	})
}

// I31: an answer that reads the archive's index neither uses matches that were made without it, nor leaves its own to others.
func TestMatching_I31_TheIndexIsReadAgain(t *testing.T) {
	w := newMatchedWorld(t)
	q := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	before, _ := w.askWatched(q)
	indexed := q
	indexed.Index = func(func(archive.IndexRecord) error) ([]IndexRead, error) {
		return []IndexRead{{Vault: "V-1", Complete: true}}, nil // the archive lost everything
	}
	got, isRead := w.askWatched(indexed)
	kit.Check(t, isRead && got.Counts[Archived] == 0, "read %v, %+v", isRead, got.Counts)
	after, _ := w.askWatched(q)
	kit.Check(t, reflect.DeepEqual(after, before), "%+v, before it was %+v", after, before)
}

// What was kept in several parts is read as it was, and never as that of another ledger or of other rows.
func TestMatching_I31_ManyParts(t *testing.T) {
	w := newWorld(t)
	b := w.open(testSettings())
	want := &matches{}
	for i := range int32(keptTogether + 2) {
		want.docs = append(want.docs, document{key: archive.Key{byte(i), byte(i >> 8), byte(i >> 16)}, state: ledger.Archived, doubts: i%2 == 1})
		want.edges = append(want.edges, edge{row: uint32(i) << 8, doc: i, kind: alike, diff: OtherAmount})
		want.unbooked = append(want.unbooked, unbooked{doc: i, day: dayBytes{'2', '0'}})
	}
	b.keepMatches(t.Context(), want, archive.Digest{1}, 0)
	got, err := loadMatches(t.Context(), b.db, archive.Digest{1}, 0)
	kit.Check(t, err == nil && reflect.DeepEqual(got, want),
		"%v: the matches that were read are not those that were kept", err)
	for of, changes := range map[archive.Digest]int64{{2}: 0, {1}: 1} {
		got, err := loadMatches(t.Context(), b.db, of, changes)
		kit.Check(t, err == nil && got == nil, "matches of something else were read: %v", err)
	}
}

// I31: sums are exact, however large or small their amounts are.
func TestAmount_I31_SumsAreExact(t *testing.T) {
	all := []archive.Decimal{"0.1", "0.2", "-0.3", "99999999999.999999", "-99999999999.999999", "123456789012345678901234567890.12", "0.0000001", "", "-5", "9007199254740993.01", "1119.5"}
	var one Amount
	want := new(big.Rat)
	for range 200 { // more than the whole millionths hold
		for _, amount := range append(all, slices.Repeat([]archive.Decimal{"99999999999.999999"}, 3)...) {
			one.add(amount)
			if r := amount.Rat(); r != nil {
				want.Add(want, r)
			}
		}
	}
	one.write()
	if got, ok := new(big.Rat).SetString(one.Total); !ok || got.Cmp(want) != 0 || one.Count != 200*14 {
		t.Errorf("%d amounts are %s, want %s", one.Count, one.Total, want.FloatString(9))
	}
}
