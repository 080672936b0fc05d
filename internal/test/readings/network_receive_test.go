package readings

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

// receivingDocuments is a setup in which received documents go into the first drop folder.
func receivingDocuments(s setup) setup {
	var w *world
	s.network = func(made *world) {
		w = made
		time.Sleep(time.Until(time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC))) // of the bubble: the network takes times of today
	}
	s.daemon = func(dc *daemon.Config) {
		api, _, err := apicall.New(apicall.Config{BaseURL: dc.BaseURL, Transport: w.wire(nil), Auth: apicall.Auth{Method: apicall.Basic, Username: user, Secret: w.readSecret}})
		kit.Must(w.t, err)
		client := networkapi.New(networkapi.Config{API: api})
		dc.Notices = &daemon.Notices{Service: client, Every: time.Minute,
			Receive: &daemon.Receive{Service: networkapi.Receiver{Client: client}, Describe: networkapi.DescribeReceived, Into: dc.Drops[0].Name, Confirm: true, Workers: 2}}
	}
	s.folders = 1
	return s
}

// I30, I12: a document that came in is archived under its own identity, with its files. One without a number comes back for a person. What the
// archive has lies here no more.
func TestReading_I30_ReceivedDocumentsAreArchived(t *testing.T) {
	for name, readings := range map[string]emulator.NetworkReadings{"ByType": {}, "ByCodeInBase64": {Received: "code", Files: "base64", ErrorWrapper: "errors"}, "KnownInVersionOneAlone": {ReceivedAt: "v1"}} {
		t.Run(name, func(t *testing.T) {
			virtual(t, receivingDocuments(setup{readings: emulator.Readings{Network: readings}}), func(t *testing.T, w *world) {
				publish := func(data string) archive.ID {
					id, err := w.service.PublishReceived(emulator.ReceivedDocument{Data: []byte(data), Files: []emulator.ReceivedFile{{Name: "a.pdf", Content: []byte(contentOf(7) + data)}}})
					kit.Must(w.t, err)
					return archive.DeriveReceivedID(archive.RemoteID(id))
				}
				whole := publish(`{"externalDocumentIdentifier":{"id":"R-4711"},"issueDate":"2026-10-31","documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"Otto","endpoint":{}},"taxTotal":{"taxSubtotals":[{"taxableAmount":12.30}]}}`)
				bare := publish(`{"externalDocumentIdentifier":{},"issueDate":"2026-10-31","accountingSupplierParty":{}}`)
				find := func(id archive.ID) (e ledger.Entry) {
					for _, e := range w.entries() {
						if e.ID == id {
							return e
						}
					}
					return e
				}
				rejected := func() (found bool) {
					for _, e := range w.entries() {
						found = found || e.State == ledger.Rejected && e.Source == ledger.Returned
					}
					return found
				}
				if !w.pass(12*time.Hour, time.Minute, func() bool { return find(whole).State == ledger.Archived && rejected() }) {
					t.Errorf("%+v, and the other is rejected: %v", find(whole), rejected())
				}
				notes := kit.Value(filepath.Glob(filepath.Join(w.path(0), "_rejected", "Received", "_REASON.txt")))(w.t)
				kit.Check(t, len(notes) == 1 && find(bare).State != ledger.Archived,
					"%q, want len(notes) = 1, find(bare).State other than ledger.Archived", notes)
				w.pass(2*time.Hour, time.Minute, never)
				left := kit.Value(os.ReadDir(filepath.Join(w.dir, "state", "received")))(w.t)
				if len(left) != 1 { // that of the person
					t.Errorf("%d folders are left", len(left))
				}
				kit.Must(w.t, w.daemon.Ledger().Arrivals(func(a arrival.Arrival) error {
					kit.Check(t, a.State == arrival.Acknowledged && !a.ConfirmedAt.IsZero(),
						"%s is %s: %+v", a.Item, a.State, a.Cause)
					return nil
				}, arrival.States()...))
				kit.Len(t, "the service saw", w.service.Violations(), 0)
				w.proven()
			})
		})
	}
}

// I30: a document that is announced twice is archived once, and both notifications are deleted once it lies in the drop folder, also where only
// the list of received documents has them.
func TestReading_I30_AnnouncedTwice(t *testing.T) {
	for _, how := range []string{"type", "code", "code-only"} {
		t.Run(how, func(t *testing.T) {
			virtual(t, receivingDocuments(setup{readings: emulator.Readings{Network: emulator.NetworkReadings{Received: how}}}), func(t *testing.T, w *world) {
				id, err := w.service.PublishReceived(emulator.ReceivedDocument{Data: []byte(`{"externalDocumentIdentifier":{"id":"R-1"},"issueDate":"2026-10-31"}`)})
				kit.Must(w.t, err)
				announceAgain := func() {
					kit.Value(w.service.PublishNotice(emulator.NetworkNotice{BumID: id, Announces: true}))(w.t)
				}
				announceAgain()
				areDeleted := func() bool {
					for _, n := range w.service.Notices() {
						if !n.IsAcknowledged {
							return false
						}
					}
					return true
				}
				kit.Check(t, w.pass(12*time.Hour, time.Minute, areDeleted),
					"two notifications were there from the beginning, and not both are deleted")
				announceAgain()
				kit.Check(t, w.pass(12*time.Hour, time.Minute, areDeleted),
					"a third one came after all was done, and is not deleted")
				if n := len(w.entries()); n != 3 { // with those of the two drop folders
					t.Errorf("%d entries", n)
				}
			})
		})
	}
}

// I30: a network that ignores the question for received documents has notifications about documents that were sent from here in the answer, too. That is seen, told to
// people, and kept over a restart, although those are acknowledged and gone by then: nothing foreign is received.
func TestReading_I30_TrustedListHasOwnDocuments(t *testing.T) {
	s, d := sending(setup{readings: emulator.Readings{Network: emulator.NetworkReadings{Received: "code"}}}, "emulate:silent")
	add := s.daemon
	s.daemon = func(dc *daemon.Config) {
		add(dc)
		dc.Notices.Receive = &daemon.Receive{Service: networkapi.Receiver{Client: d.client(dc.BaseURL)}, Describe: networkapi.DescribeReceived, Into: dc.Drops[0].Name, Workers: 2, TrustsType: true}
		d.config = *dc
	}
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(time.Minute, time.Second, func() bool { all := d.entries(); return len(all) == 1 && all[0].State == ledger.Uploaded })
		publish := func(document string) {
			_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: document, ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
			kit.Must(w.t, err)
		}
		publish("11111111-1111-4111-8111-111111111111")
		publish(string(d.entries()[0].NetworkNumber()))
		w.pass(hour, time.Minute, func() bool { return d.entries()[0].State == ledger.Delivered })
		for _, when := range []string{"at once", "after a restart"} {
			w.pass(hour, time.Minute, never)
			if all := w.daemon.State().Incoming; len(all) != 1 || !strings.Contains(all[0].Text, "announced_by: type is not followed") {
				t.Errorf("%s people are told %+v", when, all)
			}
			kit.Must(w.t, w.daemon.Ledger().Arrivals(func(a arrival.Arrival) error { t.Errorf("%s %+v came in", when, a); return nil }, arrival.States()...))
			if when == "at once" {
				d.restart()
				publish("22222222-2222-4222-8222-222222222222")
			}
		}
	})
}

// I24: where the list of received documents cannot be read, what became of sent ones is heard of all the same.
func TestReading_I24_TrustedListCannotBeRead(t *testing.T) {
	s, d := sending(setup{}, "one")
	d.between = func(r *http.Request, on http.RoundTripper) (*http.Response, error) {
		if r.URL.Query().Get("type") == "" {
			return on.RoundTrip(r)
		}
		return &http.Response{StatusCode: http.StatusInternalServerError, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	add := s.daemon
	s.daemon = func(dc *daemon.Config) {
		add(dc)
		dc.Notices.Receive = &daemon.Receive{Service: networkapi.Receiver{Client: d.client(dc.BaseURL)}, Describe: networkapi.DescribeReceived, Into: dc.Drops[0].Name, Workers: 2, TrustsType: true}
	}
	virtual(t, s, func(t *testing.T, w *world) {
		if !w.pass(hour, time.Minute, func() bool { all := d.entries(); return len(all) == 1 && all[0].State == ledger.Delivered }) {
			t.Errorf("%+v", d.entries())
		}
	})
}
