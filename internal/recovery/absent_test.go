package recovery

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// asked is a real client of an emulated archive in which n documents are registered.
func asked(t *testing.T, n int, r emulator.Readings) (*emulator.Server, *vaultapi.Client, []archive.RemoteID) {
	t.Helper()
	service, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}, Readings: r})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, service.Close()) })
	api, store, err := apicall.New(apicall.Config{BaseURL: "https://archive.example", Transport: service.Transport(),
		Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return "s", nil }}})
	kit.Must(t, err)
	c := vaultapi.New(vaultapi.Config{API: api, Store: store, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }})
	var numbers []archive.RemoteID
	for i := range n {
		id := archive.ID{6: 0x40, 8: 0x80, 15: byte(i + 1)}
		a := kit.Value(c.Register(t.Context(), "V", []archive.RegisterRequest{archive.RegisterRequest{ID: id, Metadata: fmt.Appendf(nil,
			`{"documentId":"N%d","documentDate":"2026-10-31T00:00:00Z","documentType":"Invoice"}`, i)}}))(t)
		numbers = append(numbers, a.Tickets[id].Remote)
	}
	return service, c, numbers
}

const unknownNumber archive.RemoteID = "46aa4caf-b373-41ed-bbfc-cfd535abf178"

// However the archive says that it does not know a number, it is absent, and the others are told.
func TestAskEach_I23_OneUnknownNumber(t *testing.T) {
	for _, status := range []int{400, 404, 422, 502} {
		for name, faults := range map[string]emulator.Faults{
			"Calm":            {},
			"ListIsForbidden": {Rules: []emulator.Rule{{Op: "status-list", Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: 403}}}},
		} {
			kit.Bubble(t, fmt.Sprintf("%d/%s", status, name), func(t *testing.T) {
				service, c, numbers := asked(t, 2, emulator.Readings{UnknownBumID: status})
				kit.Must(t, service.SetFaults(faults))
				told, err := AskEach(t.Context(), c, "V", []archive.RemoteID{numbers[0], unknownNumber, numbers[1]})
				kit.Need(t, err == nil && len(told) == 3,
					"told = %v, err = %v, want no error, len(told) = 3", told, err)
				if told[0].Status != archive.WaitingForPackage || told[1].Status != archive.Absent || !told[1].ID.IsZero() || told[1].Remote != unknownNumber ||
					told[2].Remote != numbers[1] || told[2].ID.IsZero() {
					t.Errorf("%+v, want told[0].Status = archive.WaitingForPackage, told[1].Status = archive.Absent, told[1].ID.IsZero(), told[1].Remote = %v, told[2].Remote = %v, not told[2].ID.IsZero()", told, unknownNumber, numbers[1])
				}
			})
		}
	}
}

// A number that cannot be asked about alone is looked up in the list.
func TestAskEach_I12_ListTellsOfOneThatCannotBeAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, c, numbers := asked(t, 1, emulator.Readings{})
		kit.Must(t, service.SetFaults(emulator.Faults{Questions: map[string]emulator.Fault{string(numbers[0]): {Kind: emulator.Status, Status: 502}}}))
		told, err := AskEach(t.Context(), c, "V", numbers)
		kit.Check(t, err == nil && told[0].Status == archive.WaitingForPackage && !told[0].ID.IsZero(),
			"%+v, %v, want no error, told[0].Status = archive.WaitingForPackage, not told[0].ID.IsZero()", told, err)
	})
}

// A fault that has passed makes nothing absent, and where the archive answers nothing about the vault, nothing is concluded.
func TestAskEach_I24_I32_FaultsOfTheService(t *testing.T) {
	for _, status := range []int{400, 404, 422, 502} {
		synctest.Test(t, func(t *testing.T) {
			service, c, numbers := asked(t, 1, emulator.Readings{})
			kit.Must(t, service.SetFaults(emulator.Faults{Hook: func(op string, n int) emulator.Fault {
				if op == "status" && n <= 4 || op == "status-list" { // a GET is repeated three times
					return emulator.Fault{Kind: emulator.Status, Status: status}
				}
				return emulator.Fault{}
			}}))
			told, err := AskEach(t.Context(), c, "V", numbers)
			kit.Check(t, status != 502 || err == nil && told[0].Status == archive.WaitingForPackage,
				"%d: %+v, %v", status, told, err)
			all := emulator.Rule{Rate: 1, Fault: emulator.Fault{Kind: emulator.Status, Status: status}}
			kit.Must(t, service.SetFaults(emulator.Faults{Rules: []emulator.Rule{all}}))
			told, err = AskEach(t.Context(), c, "V", []archive.RemoteID{unknownNumber})
			kit.Check(t, err != nil && strings.Contains(err.Error(), fmt.Sprint(status)), "%d everywhere: %+v, %v", status, told, err)
		})
	}
}

// Whatever the index shows otherwise of an archived entry of which nothing is open,
// or not at all, and whatever it tells of one that the entry does not count, is
// found.
func TestReconcile_I2_I4_I32_ArchivedEntries(t *testing.T) {
	now := time.Now().UTC()
	long := now.AddDate(0, -1, 0)
	type row struct {
		change                                      func(recs []archive.IndexRecord) []archive.IndexRecord
		compared, differ, missing, strange, doubled int
	}
	kit.Rows(t, map[string]row{
		"AllAsSent": {compared: 3},
		"OneMissing": {change: func(recs []archive.IndexRecord) []archive.IndexRecord { return recs[:2] },
			compared: 2, missing: 1},
		"OneAltered": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[1].Document.Amount = "1.00"
			return recs
		}, compared: 3, differ: 1},
		"OneRewritten": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[1].Document.Amount = "119.0"
			return recs
		}, compared: 3},
		"TwoMixedUp": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[0].Remote, recs[1].Remote = recs[1].Remote, recs[0].Remote
			return recs
		}, compared: 3, differ: 2},
		"OneOfSomebodyElse": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			return append(recs, archive.IndexRecord{Remote: "X", ArchivedAt: now, Raw: []byte("{}")})
		}, compared: 3, strange: 1},
		"GivenUpAndArchived": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs = append(recs, recs[2])
			recs[3].Remote = "C0"
			return recs
		}, compared: 4, doubled: 1},
	}, func(t *testing.T, row row) {
		s := newShed(t)
		var recs []archive.IndexRecord
		for i, numbers := range [][]archive.RemoteID{{"A"}, {"B"}, {"C0", "C"}} {
			d := invoice
			d.Number = fmt.Sprint("N", i+1)
			it := s.sent(fill.Item{Name: d.Number, Document: d}, long, numbers...)
			e := it.Apply(long, fill.Seen(numbers[len(numbers)-1], archive.Successful, long))
			kit.Need(t, e.State == ledger.Archived, "%s: vacuous", e.State)
			recs = append(recs, archive.IndexRecord{Remote: e.ArchivedRemote, ArchivedAt: long, Document: d, Raw: []byte("{}")})
		}
		if row.change != nil {
			recs = row.change(recs)
		}
		r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: spoken{index: recs}, Drops: []Origin{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
			Now: func() archive.Instant { return archive.Instant{Wall: now} }})
		kit.Must(t, err)
		v := r.Vaults[0]
		if v.Indexed != len(recs) || v.Compared != row.compared || v.Differing.Count != row.differ || v.Missing.Count != row.missing || v.Strange.Count != row.strange || v.Double.Count != row.doubled {
			t.Errorf("%+v, want v.Indexed = %v, v.Compared = %v, v.Differing.Count = %v, v.Missing.Count = %v, v.Strange.Count = %v, v.Double.Count = %v", v, len(recs), row.compared, row.differ, row.missing, row.strange, row.doubled)
		}
	})
}

// A PDF that a delivery note opened again is the same one to the ledger as the PDF that is dropped once more: a duplicate, and no other
// document with its identity.
func TestParseDelivery_I2_TheSameWhenItIsDroppedAgain(t *testing.T) {
	sum := archive.Sum([]byte("a PDF"))
	id := archive.DerivePDFID("AP@in.example", sum)
	note := proof.Delivery{Format: "vaultd-delivery-1", Key: archive.NewKey(time.Now()).String(), Route: ledger.PDF, ID: id.String(), BumID: "b1", Receiving: "AP@in.example",
		Files: []proof.ReceiptFile{{Path: "scan1.pdf", Size: 5, SHA256: sum.String()}}, Sent: proof.ReceiptZIP{Size: 5, SHA256: sum.String()},
		Delivered: time.Now().UTC().Format(time.RFC3339Nano)}
	is, err := Origin{Route: ledger.PDF}.parseDelivery(note.Encode(), "")
	kit.Must(t, err)
	key, ev, doc := is.key, is.event, is.doc
	ev.Drop, ev.Dest = "scans", "_delivered/2026-11/scan1.pdf"
	found, err := ledger.Transition(ledger.Entry{Key: key}, ev, archive.Instant{Wall: time.Now()})
	kit.Must(t, err)
	again := ledger.Sealed{ID: id, Content: sum, Metadata: archive.ReceivingDigest("ap@in.example"), Package: ev.Package}
	kit.Want(t, "the same PDF again", ledger.CompareIdentity(found, again, ledger.PDF, ""), ledger.Same)
	kit.Check(t, doc.Files[0].SHA256 == sum && ev.Seal == doc.Seal(ev.Package),
		"the note's file and seal were not taken over")
	kit.Rows(t, map[string]func(*proof.Delivery){
		"NoReceiver": func(d *proof.Delivery) { d.Receiving = "" },
		"NoTime":     func(d *proof.Delivery) { d.Delivered = "" },
		"TwoFiles":   func(d *proof.Delivery) { d.Files = append(d.Files, d.Files[0]) },
		"NoDigest":   func(d *proof.Delivery) { d.Sent.SHA256 = "xyz" },
	}, func(t *testing.T, spoil func(*proof.Delivery)) {
		bad := note
		spoil(&bad)
		_, err := Origin{Route: ledger.PDF}.parseDelivery(bad.Encode(), "")
		kit.Check(t, err != nil, "believed")
	})
}

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
		r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: c, Service: spoken{index: recs}, Drops: []Origin{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
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
