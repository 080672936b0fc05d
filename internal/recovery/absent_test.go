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

// looks counts what is asked of a book.
type looks struct {
	EntryReader
	passes, records int
}

func (l *looks) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	l.passes++
	return l.EntryReader.EntriesOldestFirst(fn)
}

func (l *looks) FindEntriesByRemote(rs []archive.RemoteID) ([]ledger.Entry, error) {
	l.records += len(rs)
	return l.EntryReader.FindEntriesByRemote(rs)
}

// Archived entries of which nothing is open are compared without a look at each. Whatever the index shows otherwise, or not at
// all, and whatever it tells of one of them that the entry does not count, is found all the same.
func TestReconcile_I2_I4_I32_EntriesAtRest(t *testing.T) {
	now := time.Now().UTC()
	long := now.AddDate(0, -1, 0)
	type row struct {
		change                                      func(recs []archive.IndexRecord) []archive.IndexRecord
		compared, differ, missing, strange, doubled int
		passes, records                             int
	}
	kit.Rows(t, map[string]row{
		"AllAsSent": {compared: 3, passes: 1},
		"OneMissing": {change: func(recs []archive.IndexRecord) []archive.IndexRecord { return recs[:2] },
			compared: 2, missing: 1, passes: 2},
		"OneAltered": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[1].Document.Amount = "1.00"
			return recs
		}, compared: 3, differ: 1, passes: 2, records: 1},
		"OneRewritten": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[1].Document.Amount = "119.0"
			return recs
		}, compared: 3, passes: 2, records: 1},
		"TwoMixedUp": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs[0].Remote, recs[1].Remote = recs[1].Remote, recs[0].Remote
			return recs
		}, compared: 3, differ: 2, passes: 2, records: 2},
		"OneOfSomebodyElse": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			return append(recs, archive.IndexRecord{Remote: "X", ArchivedAt: now, Raw: []byte("{}")})
		}, compared: 3, strange: 1, passes: 1, records: 1},
		"GivenUpAndArchived": {change: func(recs []archive.IndexRecord) []archive.IndexRecord {
			recs = append(recs, recs[2])
			recs[3].Remote = "C0"
			return recs
		}, compared: 4, doubled: 1, passes: 1, records: 1},
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
		book := &looks{EntryReader: s.book}
		r, err := Reconcile(t.Context(), Config{Book: book, Committer: s.book, Service: spoken{index: recs}, Drops: []Drop{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
			Now: func() archive.Instant { return archive.Instant{Wall: now} }})
		kit.Must(t, err)
		v := r.Vaults[0]
		if v.Indexed != len(recs) || v.Compared != row.compared || v.Differing.Count != row.differ || v.Missing.Count != row.missing || v.Strange.Count != row.strange || v.Double.Count != row.doubled {
			t.Errorf("%+v, want v.Indexed = %v, v.Compared = %v, v.Differing.Count = %v, v.Missing.Count = %v, v.Strange.Count = %v, v.Double.Count = %v", v, len(recs), row.compared, row.differ, row.missing, row.strange, row.doubled)
		}
		kit.Check(t, book.passes == row.passes && book.records == row.records,
			"%d passes through all entries, %d records looked up", book.passes, book.records)
	})
}

// A PDF that a delivery note opened again is the same one to the ledger as the PDF that is dropped once more: a duplicate, and no other
// document with its identity.
func TestParseDelivery_I2_TheSameWhenItIsDroppedAgain(t *testing.T) {
	sum := archive.Sum([]byte("a PDF"))
	id := archive.DerivePDFID("AP@in.example", sum)
	note := proof.Delivery{Key: archive.NewKey(time.Now()).String(), Route: ledger.PDF, ID: id.String(), BumID: "b1", Receiving: "AP@in.example",
		Files: []proof.ReceiptFile{{Path: "scan1.pdf", Size: 5, SHA256: sum.String()}}, Sent: proof.ReceiptZIP{Size: 5, SHA256: sum.String()},
		Delivered: time.Now().UTC().Format(time.RFC3339Nano)}
	key, ev, doc, err := parseDelivery(note)
	kit.Must(t, err)
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
		_, _, _, err := parseDelivery(bad)
		kit.Check(t, err != nil, "believed")
	})
}
