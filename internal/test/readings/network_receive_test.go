package readings

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
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
			Receive: &daemon.Receive{Service: networkapi.Receiver{Client: client}, Describe: networkapi.DescribeReceived, Into: dc.Drops[0].Name, Confirm: true, Workers: 2, TrustsType: s.readings.Network.Received == "type"}}
	}
	s.folders = 1
	return s
}

// I30, I12: a document that came in is archived under its own identity, with its files. One without a number comes back for a person. What the
// archive has lies here no more.
func TestReading_I30_ReceivedDocumentsAreArchived(t *testing.T) {
	kit.Rows(t, map[string]emulator.NetworkReadings{"ByType": {Received: "type"}, "ByCodeInBase64": {Files: "base64", ErrorWrapper: "errors"}, "KnownInVersionOneAlone": {ReceivedAt: "v1"}}, func(t *testing.T, readings emulator.NetworkReadings) {
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
		publish(string(d.entries()[0].OwnNumber()))
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

// I12, I30: a number that tells another event than the one that was kept under it: nobody can say which of the two is right, so it is not
// acknowledged, and people are told.
func TestReading_I12_NoticeThatSaysSomethingElse(t *testing.T) {
	var refuses, other atomic.Bool
	refuses.Store(true)
	s, d := sending(setup{faults: func(of string, _ int) emulator.Fault {
		if of == "network-acknowledge" && refuses.Load() {
			return emulator.Fault{Kind: emulator.Status, Status: 503}
		}
		return emulator.Fault{}
	}}, "emulate:silent")
	d.between = func(r *http.Request, on http.RoundTripper) (*http.Response, error) {
		resp, err := on.RoundTrip(r)
		if err != nil || !other.Load() || !strings.HasSuffix(r.URL.Path, "/notifications") {
			return resp, err
		}
		body, err := io.ReadAll(resp.Body)
		body = bytes.ReplaceAll(body, []byte(`"Delivered"`), []byte(`"DeliveryDelayed"`))
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		return resp, err
	}
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(time.Minute, time.Second, func() bool { all := d.entries(); return len(all) == 1 && all[0].State == ledger.Uploaded })
		id, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: string(d.entries()[0].OwnNumber()), ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		w.pass(hour, time.Minute, func() bool { return d.entries()[0].State == ledger.Delivered })
		refuses.Store(false)
		other.Store(true)
		w.pass(hour, time.Minute, never)
		for _, n := range w.service.Notices() {
			kit.Check(t, n.AcknowledgementID != id || !n.IsAcknowledged,
				"acknowledged, although it says something else than what was kept")
		}
		all := w.daemon.State().Incoming
		kit.Check(t, len(all) == 1 && all[0].What == "notices" && all[0].Since.IsZero(), "people are told %+v", all)
		other.Store(false)
		if w.pass(hour, time.Minute, never); len(w.daemon.State().Incoming) > 0 || !w.service.Notices()[len(w.service.Notices())-1].IsAcknowledged {
			t.Errorf("it says the same again: people are told %+v; %+v", w.daemon.State().Incoming, w.service.Notices())
		}
	})
}

// I12: a backlog of other programs that nobody acknowledges hides nothing, and is read in parts that each take little memory.
func TestReading_I12_NoticeBehindABacklog(t *testing.T) {
	s, d := sending(setup{}, "emulate:silent")
	virtual(t, s, func(t *testing.T, w *world) {
		const backlog = 5_000 // together more than one list may hold
		long := strings.Repeat("Wartet auf ein anderes Programm. ", 20)
		for range backlog {
			_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: "11111111-2222-4333-8444-555555555555", ResponseCode: "TechnicalAccept", ActionCode: "Delivered", Description: long})
			kit.Must(w.t, err)
		}
		w.pass(time.Minute, time.Second, func() bool { all := d.entries(); return len(all) == 1 && all[0].State == ledger.Uploaded })
		_, err := w.service.PublishNotice(emulator.NetworkNotice{BumID: string(d.entries()[0].OwnNumber()), ResponseCode: "TechnicalAccept", ActionCode: "Delivered"})
		kit.Must(w.t, err)
		if !w.pass(hour, time.Minute, func() bool { return d.entries()[0].State == ledger.Delivered }) {
			t.Errorf("it is %s", d.entries()[0].State)
		}
		kept := 0
		kit.Must(w.t, w.daemon.Ledger().Notices(func(n ledger.Notice) error {
			if n.IsForeign() {
				kept++
			}
			return nil
		}))
		all := w.daemon.State().Incoming
		kit.Check(t, kept == backlog && len(all) <= 0, "%d are kept; people are told %+v", kept, all)
	})
}

// I20: notifications that do not come in are told to people, once that lasts.
func TestReading_I20_NoticesDoNotComeIn(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	s, d := sending(setup{faults: func(of string, _ int) emulator.Fault {
		if of == "network-notices" && broken.Load() {
			return emulator.Fault{Kind: emulator.Status, Status: 401}
		}
		return emulator.Fault{}
	}}, "")
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(hour, time.Minute, never)
		all := w.daemon.State().Incoming
		if len(all) != 1 || all[0].Since.IsZero() || time.Since(all[0].Since) < 50*time.Minute || !strings.Contains(all[0].Text, "401") {
			t.Errorf("people are told %+v", all)
		}
		broken.Store(false)
		d.rests(6*hour, isDelivered)
		all = w.daemon.State().Incoming
		kit.Check(t, len(all) <= 0, "it works, and people are told %+v", all)
	})
}

// I24: each code of the network, about a document and about the second of its
// files. What whoever dropped the folder can mend comes back to him, in words
// that name the file; what vaultd, the account or the network is to blame for
// rejects nothing and blames nobody.
func TestReading_I24_NetworkCodesInWords(t *testing.T) {
	const (
		theirs = "move this whole folder back"
		forIT  = "IT asks the provider"
	)
	for code, want := range map[string]struct {
		document, file string // a part of the note in the folder; empty: the folder does not come back
		turn           string
	}{
		"Error.001.0001": {"does not have this recipient", "does not have this recipient", forIT},
		"Error.001.0006": {}, "Error.001.0010": {}, "Error.001.0012": {}, "Error.003.0001": {}, "Error.003.0020": {}, "Error.003.0032": {}, "Error.004.0003": {}, "Error.004.0004": {},
		"Error.002.0004": {"did not pass the business network's check for viruses", "rechnung.pdf\" did not pass the business network's check for viruses", theirs},
		"Error.004.0002": {"does not take a field of document.json", "", theirs},
		"Error.004.0005": {"PNG, PPT", "rechnung.pdf\" is of a type that the business network does not take; it takes CSV", theirs},
		"Error.004.0012": {"document.json is too large", "rechnung.pdf\" is too large for the business network", theirs},
		"Error.004.0013": {"the scheme or the number of a party", "", theirs},
		"Error.004.0014": {"an IBAN", "", theirs},
	} {
		for op, part := range map[string]string{"network-send": want.document, "network-file": want.file} {
			t.Run(code+"/"+op, func(t *testing.T) {
				s, d := sending(setup{faults: func(of string, n int) emulator.Fault {
					if of == op && (op == "network-send" || n > 1) && n < 50 {
						return emulator.Fault{Kind: emulator.Coded, Code: code}
					}
					return emulator.Fault{}
				}}, "")
				virtual(t, s, func(t *testing.T, w *world) {
					if part == "" {
						w.pass(hour, step(hour), never)
						for _, e := range d.entries() {
							kit.Check(t, e.State == ledger.Sending || e.State == ledger.Delivered,
								"%s: %s, %+v, want it to wait: its document is not at fault", e.Folder, e.State, e.Cause)
						}
						d.rests(72*hour, isDelivered) // it goes on by itself once the network takes it
						return
					}
					d.rests(6*hour, func(e ledger.Entry) bool { return e.State == ledger.Rejected && e.Source == ledger.Returned })
					note := kit.Value(os.ReadFile(filepath.Join(d.path(), "_rejected", "out-0", "_REASON.txt")))(t)
					text := string(note)
					kit.Holds(t, "the note", text, "NOT SENT. ", part, want.turn, "For IT: ", code, "request id ", "error id ")
					first, _, _ := bytes.Cut(note, []byte("For IT: "))
					kit.Lacks(t, "what is for whoever dropped it", string(first), "POST", "/v2/", "400", "http")
					if want.turn == forIT {
						kit.Lacks(t, "the note", text, "Put it right")
					}
					brief := present.BriefCause(d.entries()[0].Cause)
					if strings.Contains(brief, "http") || (op == "network-file") != strings.Contains(brief, "rechnung.pdf") && want.turn == theirs {
						t.Errorf("in brief = %q, want words, with the file where one is refused", brief)
					}
				})
			})
		}
	}
}

// I24: of several files, the one with a virus and the one that is too large are
// named in the note, in _STATUS.txt and in brief.
func TestReading_I24_RefusedFileIsNamed(t *testing.T) {
	for name, size := range map[string]int{"virus-found": 10, "file-too-large": 5000} {
		t.Run(name, func(t *testing.T) {
			s, d := sending(setup{service: func(c *emulator.Config) { c.Network.MaxFile = 4000 }}, "")
			d.more = map[string][]byte{"b.pdf": []byte("%PDF-1.4\n" + emulator.VirusMarker + "\n%%EOF\n"), "R-0.pdf": []byte("%PDF-1.4\nfine\n%%EOF\n")}
			if name == "file-too-large" {
				d.more["b.pdf"] = fmt.Appendf(nil, "%%PDF-1.4\n%s\n%%%%EOF\n", strings.Repeat("x", size))
			}
			virtual(t, s, func(t *testing.T, w *world) {
				d.rests(6*hour, func(e ledger.Entry) bool { return e.State == ledger.Rejected && e.Source == ledger.Returned })
				e := d.entries()[0]
				kit.Want(t, "the cause's code", e.Cause.Code, name)
				kit.Want(t, "in brief", present.SummarizeReason(e), strings.ReplaceAll(name, "-", " ")+": b.pdf")
				note := kit.Value(os.ReadFile(filepath.Join(d.path(), "_rejected", "out-0", "_REASON.txt")))(t)
				kit.Holds(t, "the note", string(note), `NOT SENT. "b.pdf" `, "out of the folder")
				kit.Lacks(t, "the note", string(note), "R-0.pdf", "rechnung.pdf")
				w.pass(hour, step(hour), never)
				status := kit.Value(os.ReadFile(filepath.Join(d.path(), "_STATUS.txt")))(t)
				kit.Holds(t, "_STATUS.txt", string(status), "out-0", strings.ReplaceAll(name, "-", " ")+": b.pdf")
			})
		})
	}
}

// I10, I12: of three PDFs the one that is named like the document goes as its
// image, the others as attachments, also where the configuration calls them
// something else before they are sent. A folder with several possible PDFs is
// returned in words.
func TestReading_I10_I12_TypesOfFiles(t *testing.T) {
	s, d := sending(setup{faults: func(op string, n int) emulator.Fault {
		if op == "network-file" && n < 3 {
			return emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: time.Minute}
		}
		return emulator.Fault{}
	}}, "")
	d.more = map[string][]byte{"R-0.pdf": []byte("%PDF-1.4\npicture\n%%EOF\n"), "b.pdf": []byte("%PDF-1.4\nnote\n%%EOF\n")}
	d.route = func(r *ingest.Route, client *networkapi.Client) {
		r.Sender = networkapi.Sender{Client: client, Types: networkapi.FileTypes{"pdf": archive.DataFile, networkapi.AnyEnding: archive.DataFile}}
	}
	virtual(t, s, func(t *testing.T, w *world) {
		d.rests(6*hour, isDelivered)
		var got []string
		for _, f := range w.service.SentDocuments()[0].Files {
			got = append(got, f.Name+" "+f.FileType)
		}
		kit.Want(t, "files at the network", fmt.Sprint(got), "[R-0.pdf imageFile anlage.csv attachmentFile b.pdf attachmentFile rechnung.pdf attachmentFile]")
		d.more, d.notes = map[string][]byte{"b.pdf": []byte("%PDF-1.4\nnote\n%%EOF\n")}, append(d.notes, "")
		d.drop("other", "R-1", "")
		w.pass(hour, step(hour), func() bool { all := d.entries(); return len(all) == 2 && all[1].Source == ledger.Returned })
		note := kit.Value(os.ReadFile(filepath.Join(d.path(), "_rejected", "other", "_REASON.txt")))(t)
		kit.Holds(t, "the note", string(note), "NOT SENT. 2 of the files are PDFs", `Write "files": [{"name": "b.pdf", "fileType": "imageFile"}]`, "move this whole folder back")
	})
}
