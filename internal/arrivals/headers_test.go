package arrivals

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I4, I30: a file of each type comes into the drop folder under the name that
// the network tells, as it was before any encoding; what came stays in custody
// beside it. First bytes that say otherwise decide, and a page is a file where
// the network says so.
func TestFetchFile_I4_I30_ToldByTheNetwork(t *testing.T) {
	files := []emulator.ReceivedFile{
		{Name: "positions.csv", Content: []byte("number;amount\n1;2\n")},
		{Name: "terms.txt", Content: []byte("pay soon\n")},
		{Name: "letter.doc", Content: []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("x", 100))},
		{Name: "letter.docx", Content: []byte("PK\x03\x04[Content_Types].xml PK\x03\x04word/document.xml PK\x05\x06" + strings.Repeat("\x00", 18))},
		{Name: "invoice.xml", Content: []byte("<Invoice><Line/><Line/></Invoice>")},
		{Name: "page.html", Content: []byte("<!DOCTYPE html><html><p>an attachment</html>")},
		{Name: "picture.pdf", Content: []byte("\x89PNG\r\n" + strings.Repeat("x", 50) + "IEND\xaeB`\x82")},
		{Name: "a\u202eb.CSV", Content: []byte("a;b\n")},
	}
	want := []string{"0001-positions.csv", "0002-terms.txt", "0003-letter.doc", "0004-letter.docx", "0005-invoice.xml", "0006-page.html", "0007-picture.png", "0008-a_b.csv"}
	for _, encoding := range []string{"binary", "base64"} {
		kit.Bubble(t, encoding, func(t *testing.T) {
			h := newOffice(t, emulator.NetworkReadings{FileHeaders: "all", Files: encoding})
			kit.Value(h.net.PublishReceived(emulator.ReceivedDocument{Data: dataOf("R-1"), Files: files}))(t)
			kit.Must(t, h.live(20*time.Minute))
			h.allDone()
			for _, folders := range h.dropped() {
				for i, name := range want {
					got, err := os.ReadFile(filepath.Join(folders[0], name))
					kit.Check(t, err == nil && string(got) == string(files[i].Content),
						"%s = %q (error %v), want %q", name, got, err, files[i].Content)
				}
			}
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				for i, f := range all[0].Files[1:] {
					came := kit.Value(os.ReadFile(filepath.Join(h.kept, all[0].Key.String(), storedName(all[0].Files, f.Name))))(t)
					if encoding == "base64" {
						kit.Want(t, "what came of "+files[i].Name, string(came), base64.StdEncoding.EncodeToString(files[i].Content))
						kit.Want(t, "the encoding told of "+files[i].Name, f.Told.Encoding, archive.Base64)
					}
				}
			})
			h.archived = true
			kit.Must(t, h.live(2*time.Hour))
			left := kit.Value(os.ReadDir(h.kept))(t)
			kit.Want(t, "folders left once all is archived", len(left), 0)
		})
	}
}

// I4: a page that the document names is a file; without that word, and with nothing but a content type, a page may be a proxy's.
func TestFetchFile_I4_PagesOfWhomTheDocumentTells(t *testing.T) {
	for headers, wait := range map[string]time.Duration{"fileref": 20 * time.Minute, "type": 25 * time.Hour} {
		kit.Bubble(t, headers, func(t *testing.T) {
			h := newOffice(t, emulator.NetworkReadings{FileHeaders: headers})
			_, err := h.net.PublishReceived(emulator.ReceivedDocument{Data: dataOf("R-1"), Files: []emulator.ReceivedFile{{Name: "a.htm", Content: []byte("<html>an attachment</html>")}}})
			kit.Must(t, err)
			kit.Must(t, h.live(20*time.Minute))
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				kit.Want(t, "taken at once", all[0].State == arrival.Acknowledged, headers == "fileref")
			})
			kit.Must(t, h.live(wait))
			h.allDone()
		})
	}
}

// I30: a credit note about a discount is received where a notification says that it is available, whatever type of document that names.
func TestReceive_I30_DiscountCreditNote(t *testing.T) {
	for _, kind := range []string{"Invoice", "CreditNode"} {
		kit.Bubble(t, kind, func(t *testing.T) {
			h := newOffice(t, emulator.NetworkReadings{})
			id, err := h.net.PublishReceived(emulator.ReceivedDocument{Kind: "CreditNote", Data: dataOf("CN-1"), IsUnannounced: true, Files: []emulator.ReceivedFile{{Name: "a.pdf", Content: []byte("%PDF-1.7\n%%EOF\n")}}})
			kit.Must(t, err)
			_, err = h.net.PublishNotice(emulator.NetworkNotice{BumID: id, DocumentType: kind, ResponseCode: "BusinessInformation", ActionCode: "DiscountCreditNoteAvailable"})
			kit.Must(t, err)
			kit.Must(t, h.live(20*time.Minute))
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				if len(all) != 1 || all[0].State != arrival.Acknowledged || all[0].Type != string(archive.NetworkCreditNote) || len(all[0].Files) != 2 {
					t.Errorf("arrivals = %+v, want the credit note with its file, acknowledged", all)
				}
			})
			kit.Want(t, "folders of it in the drop folder", len(h.dropped()[archive.DeriveReceivedID(archive.RemoteID(id)).String()]), 1)
		})
	}
}

// I26, I30: what a service that pays early says of a received document calls a person, until it is closed, and closing it is a line of the journal. So does
// a credit note that is announced under the number of such a document; where a link names the note, that is received instead.
func TestReceive_I26_I30_WordAboutAReceivedDocument(t *testing.T) {
	type row struct {
		response, action string
		linked           bool
		asks, arrivals   int
	}
	kit.Rows(t, map[string]row{
		"Asks":           {"BusinessAccept", "RequestForEarlyPayment", false, 1, 1},
		"Failed":         {"BusinessReject", "RepaymentFailed", false, 1, 1},
		"Eligible":       {"BusinessInformation", "EligibleForEarlyPayment", false, 0, 1},
		"NoteWithoutOne": {"BusinessInformation", "DiscountCreditNoteAvailable", false, 1, 1},
		"NoteByItsLink":  {"BusinessInformation", "DiscountCreditNoteAvailable", true, 0, 2},
	}, func(t *testing.T, row row) {
		inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
			n := emulator.NetworkNotice{BumID: h.publish("Invoice", "R-1"), DocumentType: "Invoice", ResponseCode: row.response, ActionCode: row.action}
			if row.linked {
				note := kit.Value(h.net.PublishReceived(emulator.ReceivedDocument{Kind: "CreditNote", Data: dataOf("CN-1"), IsUnannounced: true}))(t)
				n.LinksTo = note
			}
			kit.Must(t, h.live(20*time.Minute)) // the invoice is received, and acknowledged
			_, err := h.net.PublishNotice(n)
			kit.Must(t, err)
			kit.Must(t, h.live(20*time.Minute))
			var asking []archive.AcknowledgementID
			h.look(func(l *boltledger.Ledger, all []arrival.Arrival) {
				kit.Want(t, "arrivals", len(all), row.arrivals)
				asking = kit.Value(l.AskingNotices())(t)
			})
			kit.Want(t, "notifications that call a person", len(asking), row.asks)
			if row.asks == 0 {
				return
			}
			l := kit.Value(boltledger.Open(boltledger.Config{Dir: h.state}))(t)
			before := l.Head().N
			kit.Must(t, l.CloseNotice(t.Context(), asking[0], "bum-1", ledger.Operator{UID: 7}, nil, time.Now()))
			kit.Want(t, "lines of the act", l.Head().N-before, 1)
			err = l.CloseNotice(t.Context(), asking[0], "bum-1", ledger.Operator{UID: 7}, nil, time.Now())
			kit.Want(t, "closed once", errors.Is(err, ledger.ErrIllegal), true)
			kit.Must(t, l.Close())
			kit.Must(t, h.live(20*time.Minute))
			h.look(func(l *boltledger.Ledger, _ []arrival.Arrival) {
				kit.Want(t, "it calls nobody again", len(kit.Value(l.AskingNotices())(t)), 0)
			})
		})
	})
}

// I4: bytes that look wrong must come often enough and for long enough; what a person decided needs neither.
func TestIsBelieved_I4(t *testing.T) {
	for name, r := range map[string]struct {
		d    arrival.Doubt
		want bool
	}{
		"OftenAndLong": {arrival.Doubt{Times: leastFetches, For: time.Hour}, true},
		"OnlyOften":    {arrival.Doubt{Times: 1000, For: time.Hour - 1}, false},
		"OnlyLong":     {arrival.Doubt{Times: leastFetches - 1, For: 100 * time.Hour}, false},
		"APerson":      {arrival.Doubt{Times: 1, Overruled: true}, true},
	} {
		kit.Want(t, name, isBelieved(r.d, time.Hour), r.want)
	}
}
