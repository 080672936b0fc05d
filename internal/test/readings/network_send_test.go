package readings

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// sending is a setup with a drop for the business network beside those of the vaults. Each folder has a document with one of the notes, and
// two files.
func sending(s setup, notes ...string) (setup, *networkDrop) {
	d := &networkDrop{every: time.Minute, notes: notes}
	s.daemon = func(dc *daemon.Config) { d.add(dc) }
	s.network = func(w *world) { d.w = w }
	s.folders = 1
	return s, d
}

// networkDrop is that drop.
type networkDrop struct {
	w       *world
	between func(*http.Request, http.RoundTripper) (*http.Response, error) // sees each call before it leaves; nil: nobody does
	repeats bool                                                           // a folder may go twice
	every   time.Duration                                                  // between two lists of notifications
	notes   []string                                                       // of the documents; the folders are named out-0, out-1 and so on
	more    map[string][]byte                                              // files in each folder beside the two
	sirens  map[string]string                                              // of the recipients, by folder; a folder without one goes to a GLN
	route   func(*ingest.Route, *networkapi.Client)                        // changes how documents are sent; may be nil
	config  daemon.Config                                                  // of the daemon, for a restart
}

// add adds the drop, and its folders.
func (d *networkDrop) add(dc *daemon.Config) {
	w := d.w
	w.t.Helper()
	client := d.client(dc.BaseURL)
	dc.Routes = map[ledger.Route]ingest.Route{ledger.Network: d.newRoute(client)}
	dc.Notices = &daemon.Notices{Service: client, Every: d.every}
	kit.Must(w.t, os.Mkdir(d.path(), 0o770))
	checks := packager.NetworkRules{Read: networkapi.ReadMetadata, CheckFileName: networkapi.CheckFileName, MaxDocument: networkapi.MaxDocument,
		Check: func(document []byte) (faults []packager.DocumentFault) {
			for _, f := range networkapi.CheckDocument(document) {
				faults = append(faults, packager.DocumentFault(f))
			}
			return faults
		},
		TypeFiles: func(document []byte, folder string, names []string) ([]archive.FileType, []packager.DocumentFault) {
			types, found := networkapi.DefaultFileTypes().TypeFiles(document, folder, names)
			var faults []packager.DocumentFault
			for _, f := range found {
				faults = append(faults, packager.DocumentFault(f))
			}
			return types, faults
		}}
	dc.Drops = append(dc.Drops, dropwork.Settings{Name: "outgoing", Path: d.path(), Route: ledger.Network, Network: checks, Rules: packager.Rules{Sidecar: "document.json", Compression: "fast"},
		Mode: watch.Poll, Settle: time.Second, Rescan: 20 * time.Second})
	for n, note := range d.notes {
		d.drop(folderName(n), fmt.Sprintf("R-%d", n), note)
	}
}

func (d *networkDrop) client(baseURL string) *networkapi.Client {
	api, _, err := apicall.New(apicall.Config{BaseURL: baseURL, Transport: d.w.wire(d.between), Auth: apicall.Auth{Method: apicall.Basic, Username: user, Secret: d.w.readSecret}})
	kit.Must(d.w.t, err)
	return networkapi.New(networkapi.Config{API: api})
}

func (d *networkDrop) newRoute(client *networkapi.Client) ingest.Route {
	route := ingest.Route{Sender: networkapi.Sender{Client: client, Types: networkapi.DefaultFileTypes()}, Workers: 2, BatchSize: 1}
	if d.route != nil {
		d.route(&route, client)
	}
	return route
}

func folderName(n int) string { return fmt.Sprintf("out-%d", n) }

func (d *networkDrop) path() string { return filepath.Join(d.w.dir, "outgoing") }

// drop makes a folder aside and moves it in. A note that begins with "CreditNote" makes it a credit note.
func (d *networkDrop) drop(folder, number, note string) {
	w := d.w
	w.t.Helper()
	kind := "Invoice"
	if strings.HasPrefix(note, "CreditNote") {
		kind = "CreditNote"
	}
	recipient := `"id":"1234567890123","schemeId":"GLN"`
	if siren := d.sirens[folder]; siren != "" {
		recipient = fmt.Sprintf(`"id":%q,"schemeId":"FR:ORGNR"`, siren)
	}
	aside := filepath.Join(w.dir, "aside-network")
	kit.Must(w.t, os.Mkdir(aside, 0o770))
	kit.Must(w.t, os.WriteFile(filepath.Join(aside, "rechnung.pdf"), []byte(contentOf(byte(len(number)))+folder), 0o660))
	kit.Must(w.t, os.WriteFile(filepath.Join(aside, "anlage.csv"), []byte("a;b\n"+folder), 0o660))
	for name, content := range d.more {
		kit.Must(w.t, os.WriteFile(filepath.Join(aside, name), content, 0o660))
	}
	kit.Must(w.t, os.WriteFile(filepath.Join(aside, "document.json"), fmt.Appendf(nil, `{"documentType":%q,
	"data":{"externalDocumentIdentifier":{"id":%q},"issueDate":"2026-10-31","documentCurrencyCode":"EUR","note":%q,
		"accountingSupplierParty":{"partyName":"Müller & Söhne"},"accountingCustomerParty":{"partyName":"Acme AG"},
		"taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.10,"percent":19}]}},
	"processingPreference":{"sentTo":{%s}}}`, kind, number, note, recipient), 0o660))
	kit.Must(w.t, os.Rename(aside, filepath.Join(d.path(), folder)))
}

// entries are those of the business network.
func (d *networkDrop) entries() []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(d.w.entries()), func(e ledger.Entry) bool { return e.Route != ledger.Network })
}

// rests waits until each document of the network is as wanted, and holds the run to its promises.
func (d *networkDrop) rests(within time.Duration, want func(ledger.Entry) bool) {
	w := d.w
	w.t.Helper()
	if !w.pass(within, step(within), func() bool {
		all := d.entries()
		return len(all) == len(d.notes) && !slices.ContainsFunc(all, func(e ledger.Entry) bool { return !want(e) })
	}) {
		w.t.Errorf("not all rests after %v:", within)
		for _, e := range d.entries() {
			w.t.Logf("%q is %s/%s since attempt %d, due %v: %+v", e.Folder, e.State, e.Source, e.Attempt, e.NotBefore, e.Cause)
		}
	}
	w.proven()
	d.sentOnce()
}

// sentOnce holds what the service has against the ledger: no document is there twice, and what is delivered is there with the bytes that were
// recorded.
func (d *networkDrop) sentOnce() {
	d.w.t.Helper()
	bodies := map[string]string{}
	has := map[string]string{}
	for _, doc := range d.w.service.SentDocuments() {
		kit.Check(d.w.t, doc.TimesAccepted == 1 && (bodies[doc.DataSHA256] == "" || d.repeats),
			"I2: the document %s was taken %d times, and under %q before", doc.BumID, doc.TimesAccepted, bodies[doc.DataSHA256])
		bodies[doc.DataSHA256], has[doc.BumID] = doc.BumID, doc.SHA256
	}
	for _, e := range d.entries() {
		if (e.State == ledger.Delivered || e.State == ledger.Uploaded) && has[string(e.OwnNumber())] != e.Body.String() {
			d.w.t.Errorf("I4: %q is %s, and the network has %q, recorded is %s", e.Folder, e.State, has[string(e.OwnNumber())], e.Body)
		}
	}
}

func isDelivered(e ledger.Entry) bool { return e.State == ledger.Delivered && e.Source == ledger.Kept }

// What the network says ends a document, whatever else it says beside that.
func TestReading_I12_NetworkSaysTheEnd(t *testing.T) {
	for note, want := range map[string]func(ledger.Entry) bool{
		"":                     isDelivered,
		"CreditNote":           isDelivered,
		"emulate:delayed":      isDelivered,
		"emulate:unknown-pair": isDelivered,
		"emulate:services": func(e ledger.Entry) bool {
			return isDelivered(e) && e.Asks == "BusinessReject/RepaymentFailed" && e.NeedsPerson()
		},
		"emulate:email":                 func(e ledger.Entry) bool { return isDelivered(e) && e.Means == "EmailDelivery" },
		"emulate:accepted-by-recipient": func(e ledger.Entry) bool { return isDelivered(e) && e.Recipient == ledger.RecipientAccepted },
		"emulate:rejected-by-recipient": func(e ledger.Entry) bool {
			return isDelivered(e) && e.Recipient == ledger.RecipientRejected && e.NeedsPerson()
		},
		"emulate:undelivered": func(e ledger.Entry) bool { return e.State == ledger.Rejected && e.Source == ledger.Returned },
		"emulate:invalid": func(e ledger.Entry) bool {
			return e.State == ledger.Rejected && e.Cause.Code == ledger.CauseInvalidContent
		},
		"emulate:late-reject": func(e ledger.Entry) bool { return isDelivered(e) && e.Contradicted && e.NeedsPerson() },
		"emulate:silent":      func(e ledger.Entry) bool { return e.State == ledger.Uploaded },
	} {
		t.Run(note, func(t *testing.T) {
			s, d := sending(setup{}, note, note+" ")
			d.every = 20 * time.Minute
			virtual(t, s, func(t *testing.T, w *world) {
				within := 6 * hour
				if note == "emulate:late-reject" {
					within = 100 * hour
				}
				d.rests(within, want)
			})
		})
	}
}

// I12: what the network says is acted upon at once. No worker sleeps until it looks by itself, once a minute.
func TestReading_I12_NetworkWordIsActedUpon(t *testing.T) {
	s, d := sending(setup{}, "")
	d.every = 10 * time.Minute
	virtual(t, s, func(t *testing.T, w *world) {
		is := func(want func(ledger.Entry) bool) func() bool {
			return func() bool { all := d.entries(); return len(all) == 1 && want(all[0]) }
		}
		if !w.pass(hour, time.Second, is(func(e ledger.Entry) bool { return e.State == ledger.Delivered })) || !w.pass(3*time.Second, time.Second, is(isDelivered)) {
			t.Errorf("delivered, and not in its place yet: %+v", d.entries())
		}
	})
}

// I2, I9: calls that fail in every way. Each document is sent once in the end, and what was told of it is acknowledged.
func TestReading_I2_NetworkCallsThatFail(t *testing.T) {
	for name, f := range map[string]emulator.Fault{
		"LostBefore": {Kind: emulator.Abort}, "LostAfter": {Kind: emulator.Abort, IsAfterWork: true}, "Cut": {Kind: emulator.Cut},
		"Truncated": {Kind: emulator.Truncate}, "Garbled": {Kind: emulator.Garble}, "Page": {Kind: emulator.HTML, IsAfterWork: true},
		"500Before": {Kind: emulator.Status, Status: 500}, "500After": {Kind: emulator.Status, Status: 500, IsAfterWork: true}, "503": {Kind: emulator.Status, Status: 503, RetryAfter: time.Minute},
		"401": {Kind: emulator.Status, Status: 401}, "403": {Kind: emulator.Status, Status: 403}, "429": {Kind: emulator.Status, Status: 429, RetryAfter: time.Minute},
		"404": {Kind: emulator.Status, Status: 404}, "Refused": {Kind: emulator.Refuse},
	} {
		for _, op := range []string{"network-file", "network-send", "network-notices", "network-acknowledge"} {
			t.Run(name+"/"+op, func(t *testing.T) {
				s, d := sending(setup{faults: func(of string, n int) emulator.Fault {
					if of == op && n%2 == 1 && n < 8 {
						return f
					}
					return emulator.Fault{}
				}}, "", "CreditNote", "")
				virtual(t, s, func(t *testing.T, w *world) { d.rests(24*hour, isDelivered) })
			})
		}
	}
}

// TestReading_I9_FilesThatTheNetworkMayHave: the network stores a file, and its
// answer is lost. The file is stored once more, and the copy that no document
// names is counted.
func TestReading_I9_FilesThatTheNetworkMayHave(t *testing.T) {
	var lost atomic.Int32
	s, d := sending(setup{faults: func(of string, n int) emulator.Fault {
		if of == "network-file" && n%2 == 1 && n < 8 {
			lost.Add(1)
			return emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}
		}
		return emulator.Fault{}
	}}, "", "")
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(24*hour, isDelivered)
		unused := 0
		for _, e := range d.entries() {
			unused += e.CountUnusedFiles()
		}
		kit.Need(t, lost.Load() != 0, "no answer was lost: the test shows nothing")
		kit.Want(t, "files that no document names", unused, int(lost.Load()))
	})
}

// disturbed is a service in whose first Compose something happens.
type disturbed struct {
	ingest.Sender
	calls *atomic.Int32
	first func() error
}

func (s disturbed) Compose(p archive.Package, document archive.Digest, files []archive.FileID) (archive.NetworkBody, error) {
	if len(files) > 0 && s.calls.Add(1) == 1 {
		if err := s.first(); err != nil {
			return archive.NetworkBody{}, err
		}
	}
	return s.Sender.Compose(p, document, files)
}

// I10: the files of a document are stored, and then its package turns out to be
// unreadable, or a person changes its entry. What is stored stays stored: no
// file goes twice.
func TestReading_I10_NetworkFilesStayStored(t *testing.T) {
	kit.Rows(t, map[string]func(*networkDrop) error{
		"PackageIsUnreadable": func(*networkDrop) error { return errors.New("bad ZIP") },
		"PersonHoldsIt": func(d *networkDrop) error {
			e := d.entries()[0]
			d.w.daemon.Ledger().Submit([]ledger.Change{{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ledger.Held{}, ledger.Unheld{}}, At: archive.Instant{Wall: time.Now()}}}, func(rs []ledger.Result) {
				kit.Must(d.w.t, rs[0].Err)
			})
			return nil
		},
	}, func(t *testing.T, first func(*networkDrop) error) {
		s, d := sending(setup{}, "")
		d.route = func(r *ingest.Route, _ *networkapi.Client) {
			r.Sender = disturbed{r.Sender, new(atomic.Int32), func() error { return first(d) }}
		}
		virtual(t, s, func(t *testing.T, w *world) {
			d.rests(24*hour, isDelivered)
			stored := 0
			for _, c := range w.sentTo(apiHost) {
				if c.path == "/v2/files" {
					stored++
				}
			}
			kit.Want(t, "files that were sent", stored, 2)
			kit.Want(t, "files that no document uses", d.entries()[0].CountUnusedFiles(), 0)
		})
	})
}

// I2, I8: a number that the network has from somebody else is no success. A person is asked, and nothing is sent by itself.
func TestReading_I8_NetworkNumberOfSomebodyElse(t *testing.T) {
	s, d := sending(setup{}, "")
	d.between = func(r *http.Request, on http.RoundTripper) (*http.Response, error) {
		if number, is := strings.CutPrefix(r.URL.Path, "/v2/invoices/"); is && r.Method == http.MethodPost {
			kit.Must(d.w.t, d.w.service.OccupyBumID(number))
		}
		return on.RoundTrip(r)
	}
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(6*hour, func(e ledger.Entry) bool {
			return e.State == ledger.Quarantined && e.Cause.Code == ledger.CauseNumberTaken && e.NeedsPerson()
		})
		kit.Want(t, "documents at the network", len(w.service.SentDocuments()), 0)
		// What is told of that number is for whoever sent the other document.
		number := d.entries()[0].Registrations[0].Ticket.Remote
		id, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: string(number), ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		w.pass(hour, time.Minute, never)
		for _, n := range w.service.Notices() {
			kit.Check(t, n.AcknowledgementID != id || !n.IsAcknowledged,
				"a notification about somebody else's document was acknowledged")
		}
	})
}

// I12, I25: acknowledgements that the network refuses keep nothing back that it told.
func TestReading_I25_NoticesThatCannotBeAcknowledged(t *testing.T) {
	s, d := sending(setup{faults: func(of string, _ int) emulator.Fault {
		if of == "network-acknowledge" {
			return emulator.Fault{Kind: emulator.Status, Status: 403}
		}
		return emulator.Fault{}
	}}, "emulate:silent")
	virtual(t, s, func(t *testing.T, w *world) {
		is := func(state ledger.State) func() bool {
			return func() bool { all := d.entries(); return len(all) == 1 && all[0].State == state }
		}
		if !w.pass(hour, time.Second, is(ledger.Uploaded)) {
			t.Fatalf("%+v, want w.pass(hour, time.Second, is(ledger.Uploaded))", d.entries())
		}
		number := string(d.entries()[0].Registrations[0].Ticket.Remote)
		for range 600 { // more than are committed together
			_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: number, ResponseCode: "TechnicalInformation", ActionCode: "DeliveryDelayed"})
			kit.Must(w.t, err)
		}
		w.pass(time.Minute, time.Second, never)
		_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: number, ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		if !w.pass(hour, time.Minute, is(ledger.Delivered)) {
			t.Errorf("told as delivered: %s", d.entries()[0].State)
		}
	})
}

// I30, I12: what is about no document of this ledger is kept and not acknowledged; orders are not even asked for. All that is about its own
// documents is kept as it came, and acknowledged.
func TestReading_I30_NoticesOfOthersStay(t *testing.T) {
	s, d := sending(setup{}, "", "emulate:unknown-pair")
	virtual(t, s, func(t *testing.T, w *world) {
		foreign, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: "11111111-2222-4333-8444-555555555555", ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		order, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: "11111111-2222-4333-8444-666666666666", DocumentType: "Order", ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		d.rests(6*hour, isDelivered)
		w.pass(10*time.Minute, time.Minute, never)
		kept := map[string]ledger.Notice{}
		kit.Must(w.t, w.daemon.Ledger().Notices(func(n ledger.Notice) error { kept[string(n.ID)] = n; return nil }))
		for _, n := range w.service.Notices() {
			k, is := kept[n.AcknowledgementID]
			switch n.AcknowledgementID {
			case foreign:
				kit.Check(t, !n.IsAcknowledged && is && k.Entry.IsZero(),
					"acknowledged %v, kept %v: %+v", n.IsAcknowledged, is, k)
			case order:
				kit.Check(t, !n.IsAcknowledged && !is, "an order: acknowledged %v, kept %v", n.IsAcknowledged, is)
			default:
				kit.Check(t, n.IsAcknowledged && is && !k.Entry.IsZero() && len(k.Raw) != 0,
					"%s/%s: acknowledged %v, kept %v: %+v", n.ResponseCode, n.ActionCode, n.IsAcknowledged, is, k)
			}
		}
		kit.Want(t, "of the pair that is not known people are told",
			strings.Count(w.log.String(), "pair=TechnicalInformation/ConversionStarted"), 1)
	})
}

// I2: a folder that is dropped again. After the network did not deliver it the number is used up, and it goes under the next one. After a
// delivery it is a duplicate.
func TestReading_I2_NetworkFolderDroppedAgain(t *testing.T) {
	for note, want := range map[string]func(ledger.Entry) bool{
		"emulate:undelivered": func(e ledger.Entry) bool { return e.State == ledger.Rejected && len(e.Registrations) == 1 },
		"":                    func(e ledger.Entry) bool { return e.State == ledger.Duplicate && !e.DuplicateOf.IsZero() },
	} {
		t.Run(note, func(t *testing.T) {
			s, d := sending(setup{}, note)
			virtual(t, s, func(t *testing.T, w *world) {
				d.rests(6*hour, func(e ledger.Entry) bool { return e.Source == ledger.Returned || e.Source == ledger.Kept })
				first := d.entries()[0]
				d.repeats = true
				d.drop("out-0", "R-0", note) // the same content under the same name
				d.notes = append(d.notes, note)
				d.rests(6*hour, func(e ledger.Entry) bool { return e.Key == first.Key || want(e) })
				numbers := map[string]bool{}
				for _, doc := range w.service.SentDocuments() {
					numbers[doc.BumID] = true
				}
				kit.Want(t, "numbers", len(numbers), map[string]int{"": 1, "emulate:undelivered": 2}[note])
			})
		})
	}
}
