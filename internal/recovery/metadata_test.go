package recovery

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// invoice is what was sent of the entries of these tests.
var invoice = archive.Document{Type: "Invoice", Number: "N1", Date: "2026-10-31T00:00:00Z", SenderName: "Müller", SenderIDs: []string{"DE1", "DE2"},
	RecipientName: "Acme", RecipientIDs: []string{"DE9"}, Currency: "EUR", BuyerReferenceID: "4711", BuyerReferenceType: "PO", Amount: "119.00",
	Parameters: []archive.Parameter{{Key: "plant", Value: "7"}, {Key: "site", Value: "north"}}, TradingPartner: "T", FlowDirection: "sending"}

// Each field that the index gives otherwise than it was sent is named; the same said in other letters is no difference.
func TestReconcile_I4_MetadataInTheIndex(t *testing.T) {
	now := time.Now().UTC()
	type row struct {
		change func(d *archive.Document)
		want   string // fields that differ
	}
	kit.Rows(t, map[string]row{
		"Same":                     {func(*archive.Document) {}, ""},
		"Type":                     {func(d *archive.Document) { d.Type = "CreditNote" }, "documentType"},
		"Number":                   {func(d *archive.Document) { d.Number = "N2" }, "documentId"},
		"Date":                     {func(d *archive.Document) { d.Date = "2026-11-01T00:00:00Z" }, "documentDate"},
		"DateOneSecondOff":         {func(d *archive.Document) { d.Date = "2026-10-31T00:00:01Z" }, "documentDate"},
		"DateNoDate":               {func(d *archive.Document) { d.Date = "yesterday" }, "documentDate"},
		"DateInAnotherZone":        {func(d *archive.Document) { d.Date = "2026-10-31T02:00:00+02:00" }, ""},
		"DateWithFractions":        {func(d *archive.Document) { d.Date = "2026-10-31T00:00:00.000Z" }, ""},
		"DateWithoutTime":          {func(d *archive.Document) { d.Date = "2026-10-31" }, ""},
		"Sender":                   {func(d *archive.Document) { d.SenderName = "Mueller" }, "senderName"},
		"IDsInAnotherOrder":        {func(d *archive.Document) { d.SenderIDs = []string{"DE2", "DE1"} }, ""},
		"IDTwice":                  {func(d *archive.Document) { d.SenderIDs = []string{"DE2", "DE1", "DE2"} }, ""},
		"IDMore":                   {func(d *archive.Document) { d.SenderIDs = []string{"DE2", "DE1", "DE3"} }, "senderIds"},
		"IDLess":                   {func(d *archive.Document) { d.SenderIDs = []string{"DE2"} }, "senderIds"},
		"IDsJoined":                {func(d *archive.Document) { d.SenderIDs = []string{"DE1, DE2"} }, "senderIds"},
		"Recipient":                {func(d *archive.Document) { d.RecipientName, d.RecipientIDs = "Acme2", []string{"DE8"} }, "recipientName recipientIds"},
		"Currency":                 {func(d *archive.Document) { d.Currency = "USD" }, "currencyCode"},
		"Reference":                {func(d *archive.Document) { d.BuyerReferenceID, d.BuyerReferenceType = "4712", "SO" }, "buyerReferenceId buyerReferenceType"},
		"Amount":                   {func(d *archive.Document) { d.Amount = "119.01" }, "amount"},
		"AmountShorter":            {func(d *archive.Document) { d.Amount = "119" }, ""},
		"AmountLonger":             {func(d *archive.Document) { d.Amount = "119.0000" }, ""},
		"AmountWithAnExponent":     {func(d *archive.Document) { d.Amount = "1.19E+2" }, ""},
		"AmountNegative":           {func(d *archive.Document) { d.Amount = "-119.00" }, "amount"},
		"AmountWithAComma":         {func(d *archive.Document) { d.Amount = "119,00" }, "amount"},
		"AmountAFraction":          {func(d *archive.Document) { d.Amount = "238/2" }, "amount"},
		"AmountOfAMillionDigits":   {func(d *archive.Document) { d.Amount = archive.Decimal("119." + strings.Repeat("0", 1_000_000)) }, "amount"},
		"AmountWithAHugeExponent":  {func(d *archive.Document) { d.Amount = "119e999999999" }, "amount"},
		"ParametersInAnotherOrder": {func(d *archive.Document) { d.Parameters = []archive.Parameter{d.Parameters[1], d.Parameters[0]} }, ""},
		"ParameterChanged": {func(d *archive.Document) {
			d.Parameters = []archive.Parameter{d.Parameters[0], {Key: "site", Value: "south"}}
		}, "additionalParameters"},
		"Partner":       {func(d *archive.Document) { d.TradingPartner, d.FlowDirection = "U", "receiving" }, "tradingPartner flowDirection"},
		"FieldsLeftOut": {func(d *archive.Document) { *d = archive.Document{Number: "N1"} }, ""},
		"AllLeftOut":    {func(d *archive.Document) { *d = archive.Document{} }, ""},
	}, func(t *testing.T, row row) {
		s := newShed(t)
		e := s.sent(fill.Item{Document: invoice}, now.Add(-time.Hour), "A", "B")
		theirs := invoice
		row.change(&theirs)
		// The archive holds it under both numbers: each of them is compared.
		recs := indexed(now, "A", "B")
		recs[0].Document, recs[1].Document = theirs, theirs
		v := s.whole(spoken{index: recs}, now).Vaults[0]
		var fields []string
		for _, f := range v.Differing.Named[:v.Differing.Count/2] {
			fields = append(fields, f.Field)
			if f.Key != e.Key || f.Remote != "A" || f.Number != "N1" || f.Theirs == "" || f.Ours == f.Theirs || len([]rune(f.Theirs)) > 1000 || !strings.HasPrefix(f.Text, f.Field+" is ") {
				t.Errorf(`%+v, want f.Key = %v, f.Remote = "A", f.Number = "N1", f.Theirs other than "", f.Ours other than %v, len([]rune(f.Theirs)) <= 1000, f.Text that begins with %q`, f, e.Key, f.Theirs, f.Field+" is ")
			}
		}
		if got := strings.Join(fields, " "); got != row.want || v.Differing.Count%2 != 0 || v.Compared != 2 || v.NotCompared != 0 {
			t.Errorf("%q differ, want %q; %d compared, %d not", got, row.want, v.Compared, v.NotCompared)
		}
		if n := (Report{Vaults: []VaultReport{v}}).Differences(); n != v.Differing.Count+1 { // it is archived twice, too
			t.Errorf("%d differences", n)
		}
	})
}

// A field that was not sent and that the index gives is told, and is no difference: the archive may fill it in for every
// document.
func TestReconcile_I4_AFieldThatTheIndexAdds(t *testing.T) {
	now, s := time.Now().UTC(), newShed(t)
	ours := archive.Document{Type: "Invoice", Number: "N1", Date: "2026-10-31T00:00:00Z"}
	s.sent(fill.Item{Document: ours}, now.Add(-time.Hour), "A")
	recs := indexed(now, "A")
	recs[0].Document = ours
	recs[0].Document.SenderName = "somebody\nelse"
	v := s.whole(spoken{index: recs}, now).Vaults[0]
	kit.Check(t, len(v.Added) == 1 && v.Added["senderName"] == 1 && v.Differing.Count <= 0,
		`%v, %+v, want len(v.Added) = 1, v.Added["senderName"] = 1, v.Differing.Count <= 0`, v.Added, v.Differing)
	n := (Report{Vaults: []VaultReport{v}}).Differences()
	kit.Check(t, n <= 0, "%d differences", n)
}

// What has no metadata in the ledger cannot be compared, and is counted. Where the digest of an erased one says that the
// index gives the same, that counts as compared.
func TestReconcile_I4_MetadataThatIsNotHere(t *testing.T) {
	now := time.Now().UTC()
	s := newShed(t)
	s.sent(fill.Item{Document: invoice}, now.Add(-time.Hour), "A")
	s.book.Commit(ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Events: []ledger.Event{
		ledger.Recovered{Route: ledger.Vault, Vault: "V", Drop: "acme", Folder: "f", ID: archive.ID{15: 8}, Remote: "B", SuccessRecord: []byte("{}"),
			State: ledger.Archived, Source: ledger.Gone, SeenAt: now, ArchivedAt: now},
		ledger.Reconciled{}}})
	other := invoice
	other.Amount = "1.00"
	type row struct {
		erased                       bool
		theirs                       archive.Document
		differ, compared, notCompare int
	}
	kit.Rows(t, map[string]row{
		"Here_Same":     {false, invoice, 0, 1, 1},
		"Here_Other":    {false, other, 1, 1, 1},
		"Erased_Same":   {true, invoice, 0, 1, 1},
		"Erased_Other":  {true, other, 0, 0, 2},
		"Erased_Silent": {true, archive.Document{}, 0, 0, 2},
	}, func(t *testing.T, row row) {
		recs := indexed(now, "A", "B")
		recs[0].Document, recs[1].Document = row.theirs, row.theirs
		var c Committer = s.book
		if row.erased {
			c = erased{s.book}
		}
		r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: c, Service: spoken{index: recs}, Drops: []Drop{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
			Now: func() archive.Instant { return archive.Instant{Wall: now} }})
		kit.Must(t, err)
		if v := r.Vaults[0]; v.Differing.Count != row.differ || v.Compared != row.compared || v.NotCompared != row.notCompare {
			t.Errorf("%d differ, %d compared, %d not", v.Differing.Count, v.Compared, v.NotCompared)
		}
	})
}

// erased is a ledger whose documents were erased.
type erased struct{ Committer }

func (erased) Document(archive.Key) (ledger.Document, bool, error) {
	return ledger.Document{}, false, nil
}

// A registration that is found in safe mode is compared as well, and so is one whose entry is in doubt.
func TestReconcile_I4_MetadataOfWhatIsInDoubt(t *testing.T) {
	now := time.Now()
	s := newShed(t)
	e := s.doubtful(now)
	recs := []archive.IndexRecord{{Remote: "R1", ArchivedAt: now, Raw: []byte("a"), Document: archive.Document{Number: "N2"}}}
	single := map[archive.RemoteID]archive.Receipt{"R1": {Remote: "R1", ID: e.ID, Status: archive.Successful, Updated: now, Record: []byte("a")}}
	for _, when := range []string{"the first time", "again"} {
		r := s.compared(spoken{index: recs, single: single}, Doubt{From: now.Add(-time.Hour), Since: now})
		if d := r.Vaults[0].Differing; d.Count != 1 || d.Named[0].Field != "documentId" || d.Named[0].Theirs != "N2" {
			t.Errorf(`%s: %+v, want d.Count = 1, d.Named[0].Field = "documentId", d.Named[0].Theirs = "N2"`, when, d)
		}
	}
}
