package arrivals

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/notices"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// office is a ledger, a folder of what comes in and a drop folder on a real disk, and the emulated network, which outlive the lives of the engine.
type office struct {
	t                 testing.TB
	state, kept, into string
	net               *emulator.Server
	client            *networkapi.Client
	confirm, archived bool
	trustsType        bool
	booted            time.Time
	commitFault       func(op string) error
	fileFault         durable.Hook
}

func newOffice(t testing.TB, network emulator.NetworkReadings) *office {
	t.Helper()
	return newOfficeAt(t, emulator.Readings{Network: network})
}

// newOfficeAt is newOffice at a network whose errors may have other forms, too.
func newOfficeAt(t testing.TB, readings emulator.Readings) *office {
	t.Helper()
	time.Sleep(time.Until(time.Date(2026, 11, 20, 6, 0, 0, 0, time.UTC))) // of the bubble: the network takes times of today
	h := &office{t: t, state: t.TempDir(), kept: t.TempDir(), into: t.TempDir(), confirm: true, trustsType: readings.Network.Received == "type", booted: time.Now()}
	kit.Must(t, boltledger.Create(h.state, ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()}))
	var err error
	if h.net, err = emulator.New(emulator.Config{Dir: t.TempDir(), Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}, Clock: time.Now, Readings: readings}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.net.Close() })
	api, _, err := apicall.New(apicall.Config{BaseURL: "https://network.example", Transport: h.net.Transport(), Now: time.Now,
		Auth: apicall.Auth{Method: apicall.Basic, Username: "u", Secret: func() (string, error) { return "s", nil }}})
	kit.Must(t, err)
	h.client = networkapi.New(networkapi.Config{API: api, PageSize: 2})
	return h
}

// inOffice runs a test with a office in a bubble.
func inOffice(t *testing.T, network emulator.NetworkReadings, test func(*testing.T, *office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newOffice(t, network)) })
}

// dataOf is the data of a document with a number.
func dataOf(number string) json.RawMessage {
	return fmt.Appendf(nil, `{"externalDocumentIdentifier":{"id":%q},"issueDate":"2026-10-31+01:00","documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"Müller & Söhne","partyIdentifications":[{"id":"DE1","schemeId":"UNKNOWN"},{}]},
		"accountingCustomerParty":{"partyName":"Acme AG","endpoint":{}},"taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.10},{"taxableAmount":0}]},"orderReference":{}}`, number)
}

func (h *office) publish(kind, number string, files ...string) (document string) {
	h.t.Helper()
	p := emulator.ReceivedDocument{Kind: kind, Data: dataOf(number)}
	for _, f := range files {
		p.Files = append(p.Files, emulator.ReceivedFile{Name: "a.pdf", Content: []byte("%PDF-1.7 " + f + "\n%%EOF\n")})
	}
	document = kit.Value(h.net.PublishReceived(p))(h.t)
	return document
}

// realDrop is a real drop folder.
type realDrop struct{ to *drop.Folder }

func (p realDrop) PutFolder(ctx context.Context, f archive.DropFolder) error {
	f.SidecarName = "metadata.json"
	_, err := p.to.PutFolder(ctx, f)
	return err
}

// live runs the poller and the engine for so long, and returns the engine's error.
func (h *office) live(d time.Duration) error {
	h.t.Helper()
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: h.state, Fault: h.commitFault}))(h.t)
	defer func() { _ = l.Close() }()
	dir, err := durable.Open(h.kept, h.fileFault)
	if err != nil {
		return err
	}
	defer dir.Close()
	to, err := drop.Open(drop.Config{Path: h.into, Name: "in", LedgerID: "ledger-1", Environment: "test", Epoch: 1, Hook: h.fileFault})
	if err != nil {
		return err
	}
	defer to.Close()
	now, log := func() archive.Instant { return archive.Instant{Wall: time.Now(), Boot: time.Since(h.booted)} }, slog.New(slog.DiscardHandler)
	e := NewReceived(Received{Config: Config{Workers: 2, Now: now, Log: log}, Ledger: l, Service: networkapi.Receiver{Client: h.client}, Describe: networkapi.DescribeReceived, Custody: custody.OpenReceived(dir), Drop: realDrop{to}, Confirm: h.confirm,
		IsArchived: func(archive.ID) (bool, error) { return h.archived, nil }})
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() {
		notices.New(notices.Config{Service: h.client, Ledger: l, Arrivals: l, Every: time.Minute, Now: now, Log: log, OnDone: e.Wake, TrustsType: h.trustsType}).Run(ctx)
	})
	err = e.Run(ctx)
	cancel()
	return err
}

// look calls fn with the ledger between two lives, after everything was checked: records, chain, history, and what the network saw.
func (h *office) look(fn func(l *boltledger.Ledger, all []arrival.Arrival)) {
	h.t.Helper()
	l, all := fill.Checked(h.t, h.state)
	defer l.Close()
	kit.Len(h.t, "violations that the network saw", h.net.Violations(), 0)
	h.nothingIsLost()
	if fn != nil {
		fn(l, all)
	}
}

// decide applies what a person decides about the one arrival, between two lives.
func (h *office) decide(event func(a arrival.Arrival) arrival.Event) {
	h.t.Helper()
	l, err := boltledger.Open(boltledger.Config{Dir: h.state})
	kit.Must(h.t, err)
	defer l.Close()
	var all []arrival.Arrival
	err = l.Arrivals(func(a arrival.Arrival) error { all = append(all, a); return nil }, arrival.States()...)
	if err == nil && len(all) == 1 {
		_, err = l.ApplyArrival(h.t.Context(), arrival.Change{Key: all[0].Key, Rev: all[0].Rev, Events: []arrival.Event{event(all[0])}, At: archive.Instant{Wall: time.Now()}})
	}
	kit.Need(h.t, err == nil && len(all) == 1, "arrivals = %+v (error %v), want one that was changed", all, err)
}

// dropped are the folders in the drop folder, by the identity of their documents.
func (h *office) dropped() map[string][]string {
	h.t.Helper()
	paths := kit.Value(filepath.Glob(filepath.Join(h.into, "*", "metadata.json")))(h.t)
	all := map[string][]string{}
	for _, p := range paths {
		var m struct{ ClientUUID string }
		b, err := os.ReadFile(p)
		kit.Must(h.t, errors.Join(err, json.Unmarshal(b, &m)))
		all[m.ClientUUID] = append(all[m.ClientUUID], filepath.Dir(p))
	}
	return all
}

// nothingIsLost demands of every document whose notification was deleted that it lies in the drop folder with each of its files, byte for byte.
func (h *office) nothingIsLost() {
	h.t.Helper()
	dropped := h.dropped()
	deleted := map[string]bool{}
	for _, n := range h.net.Notices() {
		deleted[n.BumID] = deleted[n.BumID] || n.IsAcknowledged
	}
	for _, d := range h.net.ReceivedDocuments() {
		if !deleted[d.BumID] {
			continue
		}
		folders := dropped[archive.DeriveReceivedID(archive.RemoteID(d.BumID)).String()]
		kit.Check(h.t, len(folders) != 0,
			"the notification of %s is deleted, want the document in the drop folder before", d.BumID)
		for _, folder := range folders {
			var sums []string
			files, _ := filepath.Glob(filepath.Join(folder, "0*"))
			for _, f := range files {
				b, _ := os.ReadFile(f)
				sums = append(sums, archive.Sum(b).String())
			}
			for _, f := range d.Files {
				kit.Check(h.t, slices.Contains(sums, f.SHA256), "%s lacks file %s, want all files", folder, f.ID)
			}
			if raw, err := os.ReadFile(filepath.Join(folder, "document.json")); err != nil || !bytes.Contains(raw, []byte(d.BumID)) {
				h.t.Errorf("%s lacks its document (error %v), want document.json with number %s", folder, err, d.BumID)
			}
		}
	}
}

// allDone demands that each document is at its end: once in the drop folder, and not announced any more.
func (h *office) allDone() {
	h.t.Helper()
	h.look(func(l *boltledger.Ledger, all []arrival.Arrival) {
		for _, a := range all {
			kit.Check(h.t, a.State == arrival.Acknowledged,
				"%s is %s since attempt %d, due %v: %+v, want %s", a.Item, a.State, a.Attempt, a.NotBefore, a.Cause, arrival.Acknowledged)
		}
		docs := h.net.ReceivedDocuments()
		kit.Want(h.t, "arrivals", len(all), len(docs))
		for _, d := range docs {
			n := len(h.dropped()[archive.DeriveReceivedID(archive.RemoteID(d.BumID)).String()])
			kit.Check(h.t, n == 1, "%s is in the drop folder %d times, want once", d.BumID, n)
			if (len(d.Notified) > 0) != h.confirm || h.confirm && d.Notified[0].ResponseCode+"/"+d.Notified[0].ActionCode != "TechnicalAccept/DeliveryConfirmed" {
				h.t.Errorf("the network was notified about %s: %+v, want a confirmed delivery: %t", d.BumID, d.Notified, h.confirm)
			}
		}
		for _, n := range h.net.Notices() {
			kit.Check(h.t, n.IsAcknowledged, "notification %+v is not deleted, want it deleted", n)
		}
	})
}

// I30: in each reading of what the specification leaves open, documents come in whole, and foreign notifications stay.
func TestReading_I30_Receive(t *testing.T) {
	for name, readings := range map[string]emulator.NetworkReadings{
		"ByType": {Received: "type"}, "ByCode": {}, "ByCodeAlone": {Received: "code-only"}, "Base64": {Files: "base64"}, "OtherWrapper": {ErrorWrapper: "errors", Received: "code-only"},
		"CreditNote": {CreditNoteWord: "CreditNote"}, "Milliseconds": {Times: "milliseconds"}, "RepeatedDelete": {RepeatedDelete: "200"}, "LinksElsewhere": {LinksTo: "https://evil.example"},
	} {
		kit.Bubble(t, name, func(t *testing.T) {
			h := newOffice(t, readings)
			h.confirm = name != "Base64"
			for n := range 3 {
				h.publish("Invoice", fmt.Sprint("R-", n), fmt.Sprint(n), "b")
			}
			h.publish("CreditNote", "G-1")
			kit.Must(t, h.live(time.Hour))
			h.allDone()
			// Those of others look like an announcement in every list, and are none.
			for _, pair := range [][2]string{{"TechnicalAccept", "Delivered"}, {"BusinessInformation", "EligibleForEarlyPayment"}} {
				if _, err := h.net.PublishNotice(emulator.NetworkNotice{BumID: "11111111-2222-4333-8444-555555555555", ResponseCode: pair[0], ActionCode: pair[1]}); err != nil {
					t.Fatal(err)
				}
			}
			kit.Must(t, h.live(time.Hour))
			h.look(func(l *boltledger.Ledger, all []arrival.Arrival) {
				kit.Want(t, "arrivals", len(all), 4)
			})
			foreign := 0
			for _, n := range h.net.Notices() {
				if n.BumID == "11111111-2222-4333-8444-555555555555" && !n.IsAcknowledged {
					foreign++
				}
			}
			kit.Want(t, "foreign notifications", foreign, 2)
		})
	}
}

// What a document says becomes its metadata, and what it does not say is missing there: a person completes it.
func TestHandOn_NeverGuesses(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		full := h.publish("CreditNote", "G/1", "x")
		bare, err := h.net.PublishReceived(emulator.ReceivedDocument{Data: []byte(`{"externalDocumentIdentifier":{},"accountingSupplierParty":{},"issueDate":"31.10.2026"}`)})
		kit.Must(t, err)
		kit.Must(t, h.live(time.Hour))
		h.allDone()
		for id, want := range map[string]string{
			full: `"documentType":"CreditNote","documentId":"G/1","documentDate":"2026-10-31T00:00:00Z","senderName":"Müller & Söhne","senderIds":["DE1"],"recipientName":"Acme AG","currencyCode":"EUR","amount":9007199254740993.10,"flowDirection":"receiving"}`,
			bare: `"documentType":"Invoice","flowDirection":"receiving"}`,
		} {
			folder := h.dropped()[archive.DeriveReceivedID(archive.RemoteID(id)).String()][0]
			b, err := os.ReadFile(filepath.Join(folder, "metadata.json"))
			var plain bytes.Buffer
			if err := errors.Join(err, json.Compact(&plain, b)); err != nil || !strings.HasSuffix(plain.String(), want) {
				t.Errorf("metadata = %s (error %v), want them to end with %s", plain.String(), err, want)
			}
			kit.Check(t, id != full || filepath.Base(folder) == "Received Müller & Söhne G_1",
				"folder = %q, want %q", filepath.Base(folder), "Received Müller & Söhne G_1")
		}
	})
}

// I4: a file that is a web page itself comes in as what it is, and never one of a proxy in its place.
func TestFetchFile_I4_WebPages(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		if _, err := h.net.PublishReceived(emulator.ReceivedDocument{Data: dataOf("R-1"), Files: []emulator.ReceivedFile{{Name: "a.html", Content: []byte("\n<!DOCTYPE HTML><p>an attachment")}}}); err != nil {
			t.Fatal(err)
		}
		page := true
		kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
			if page && strings.HasPrefix(op, "network-fetch") {
				return emulator.Fault{Kind: emulator.HTML}
			}
			return emulator.Fault{}
		}}))
		_ = h.live(2 * time.Hour)
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			kit.Check(t, len(all) == 1 && all[0].State == arrival.Announced && len(h.dropped()) == 0,
				"arrivals = %+v, want one that is announced, and no folder", all)
		})
		page = false
		_ = h.live(23 * time.Hour)
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			kit.Check(t, len(all) == 1 && all[0].State == arrival.Fetching && all[0].Cause.Code == CauseDoubt,
				"arrivals = %+v, want one that is being fetched, in doubt", all)
		})
		_ = h.live(26 * time.Hour)
		h.allDone()
	})
}

// I4: a file that came cut off, or an error of a store in its place, is fetched again until it comes whole. One that is as the network has it comes in after
// half an hour, however it looks.
func TestFetchFile_I4_LooksWrong(t *testing.T) {
	whole := []byte("%PDF-1.7 " + strings.Repeat("x", 3000) + "\n%%EOF\n")
	type row struct {
		content []byte
		fault   emulator.Kind // of the first four answers
		longest time.Duration
	}
	kit.Rows(t, map[string]row{
		"CutOff":         {whole, emulator.Truncate, 20 * time.Minute},
		"Error":          {whole, emulator.ErrorDocument, 20 * time.Minute},
		"Page":           {whole, emulator.HTML, 20 * time.Minute},
		"XML":            {[]byte("<Invoice><Line/><Line/><Line/></Invoice>"), emulator.Truncate, 20 * time.Minute},
		"ZIP":            {[]byte("PK\x03\x04" + strings.Repeat("x", 3000) + "PK\x05\x06" + strings.Repeat("\x00", 18)), emulator.Truncate, 20 * time.Minute},
		"ReallyNoEnd":    {whole[:2000], emulator.None, 40 * time.Minute},
		"ReallyAnError":  {[]byte("<Error>of the sender</Error>"), emulator.None, 25 * time.Hour},
		"ReallyOtherXML": {[]byte("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"), emulator.None, 40 * time.Minute},
	}, func(t *testing.T, r row) {
		inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
			if _, err := h.net.PublishReceived(emulator.ReceivedDocument{Data: dataOf("R-1"), Files: []emulator.ReceivedFile{{Name: "a", Content: r.content}}}); err != nil {
				t.Fatal(err)
			}
			kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, n int) emulator.Fault {
				if op == "network-fetch-file" && n <= 4 {
					return emulator.Fault{Kind: r.fault}
				}
				return emulator.Fault{}
			}}))
			kit.Must(t, h.live(r.longest))
			h.allDone()
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				kit.Check(t, len(all) == 1 && len(all[0].Files) == 2 && all[0].Files[1].SHA256 == archive.Sum(r.content),
					"arrivals = %+v, want one with two files, the second with digest %s", all, archive.Sum(r.content))
			})
		})
	})
}

// I30: where the network has what announces a document in a list of its own, it
// is foreign until the configuration says that this list is believed, and
// received then, although it was kept as foreign. What is in the other list
// alone stays foreign.
func TestReceive_I30_AnnouncedInBothLists(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{Received: "filter"}, func(t *testing.T, h *office) {
		for _, kind := range []string{"Invoice", "CreditNote"} {
			h.publish(kind, "R-"+kind, "x")
		}
		foreign := emulator.NetworkNotice{BumID: "11111111-1111-4111-8111-111111111111", ResponseCode: "TechnicalAccept", ActionCode: "Delivered"}
		kit.Value(h.net.PublishNotice(foreign))(t)
		kit.Must(t, h.live(10*time.Minute))
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			kit.Len(t, "arrivals", all, 0)
		})
		h.trustsType = true
		kit.Must(t, h.live(10*time.Minute))
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			kit.Check(t, len(all) == 2 && all[0].State == arrival.Acknowledged && all[1].State == arrival.Acknowledged,
				"arrivals = %+v, want two that are acknowledged", all)
		})
		for _, n := range h.net.Notices() {
			kit.Check(t, n.IsAcknowledged != (n.BumID == foreign.BumID),
				"notification = %+v, want it deleted unless it is of another company", n)
		}
	})
}

// I30: a deletion of which nobody heard is over although the network says of the notification with a page that it does not know it.
func TestReceive_I30_GoneByAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newOfficeAt(t, emulator.Readings{ErrorBody: "html"})
		h.publish("Invoice", "R-1", "x")
		kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, n int) emulator.Fault {
			if op == "network-acknowledge" && n == 1 {
				return emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}
			}
			return emulator.Fault{}
		}}))
		kit.Must(t, h.live(time.Hour))
		h.allDone()
		kit.Check(t, h.net.CountCalls("network-acknowledge") >= 2,
			"%d calls to delete notifications, want at least 2: the test shows nothing", h.net.CountCalls("network-acknowledge"))
	})
}

// I25: a ledger that was put back asks for a document to be put into the drop folder of which the archive has everything, and nothing is kept here any
// more. That is done already. Where the archive does not have it, a person is told.
func TestReceive_I25_ArchivedBeforeTheLedgerWasPutBack(t *testing.T) {
	for _, isArchived := range []bool{true, false} {
		inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
			h.publish("Invoice", "R-1", "x")
			h.fileFault = func(op, name string, do func() error) error {
				if strings.Contains(name, "incoming") || op == "rename" && strings.HasPrefix(name, "Received") {
					return errors.New("the drop folder is away")
				}
				return do()
			}
			_ = h.live(time.Hour)
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				kit.Need(t, len(all) == 1 && all[0].State == arrival.Held && all[0].HandedOnAt.IsZero(),
					"arrivals = %+v, want one that is held and not handed on: the test shows nothing", all)
			})
			before := t.TempDir()
			kit.Must(t, os.CopyFS(before, os.DirFS(h.state)))
			h.fileFault, h.archived = nil, true
			kit.Must(t, h.live(3*time.Hour))
			left, err := os.ReadDir(h.kept)
			kit.Need(t, err == nil && len(left) == 0, "left in custody: %v (error %v), want nothing: the test shows nothing", left, err)
			h.state, h.archived = before, isArchived
			kit.Must(t, h.live(3*time.Hour))
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				kit.Check(t, len(all) == 1 && isArchived == (all[0].State == arrival.Acknowledged) && isArchived != (all[0].Cause.Code == CauseLost),
					"arrivals = %+v, want it acknowledged exactly where the archive has it: %t", all, isArchived)
			})
		})
	}
}

// I4: how often and how long a file that looks wrong came is kept over restarts, and so is that it was believed. A fetch that a person asks for counts for
// no more than the time that passed.
func TestDoubt_I4_OutlivesRestarts(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{Received: "code"}, func(t *testing.T, h *office) {
		cut := []byte("%PDF-1.7 " + strings.Repeat("x", 3000))
		if _, err := h.net.PublishReceived(emulator.ReceivedDocument{Data: dataOf("R-1"), Files: []emulator.ReceivedFile{{Name: "a", Content: cut}}}); err != nil {
			t.Fatal(err)
		}
		for range 30 { // each life fetches once: a person asks for it
			kit.Must(t, h.live(2*time.Second))
			h.decide(func(a arrival.Arrival) arrival.Event { return arrival.RetryAsked{By: ledger.Operator{UID: 7}} })
		}
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			if f, ok := all[0].FindDoubted(); !ok || f.Doubt.Times < 20 || f.Doubt.For > 2*time.Minute || f.Doubt.Overruled || all[0].State != arrival.Fetching {
				t.Errorf("arrivals = %+v, want a file in doubt for at least 20 fetches and at most 2 minutes", all)
			}
		})
		for range 8 { // half an hour of life, in eight parts
			kit.Must(t, h.live(5*time.Minute))
		}
		h.allDone()
		h.look(func(l *boltledger.Ledger, all []arrival.Arrival) {
			d := all[0].Files[1].Doubt
			kit.Check(t, d.Why != "" && !d.Overruled && d.Times >= 20 && d.For >= sameUntilWhole,
				"doubt = %+v, want at least 20 fetches in %v, and no decision", d, sameUntilWhole)
			lines := 0
			_ = l.Lines(1, func(_ uint64, line []byte) error {
				if bytes.Contains(line, []byte(`"file-doubted"`)) {
					lines++
				}
				return nil
			})
			kit.Check(t, lines != 0 && lines <= 31,
				"%d lines of the journal record the doubt, want 1 to 31: one for each start without a failure", lines)
		})
	})
}

// I4, I29: a person takes a file as it is that looks wrong: these bytes, and no others. They are those that lie here; where they do not any more, those that come.
func TestDoubt_I29_APersonTakesTheFile(t *testing.T) {
	answer := []byte("<Error>of the sender</Error>")
	type row struct {
		here        func(path string) error // what becomes of the file that lies here
		othersCome  bool
		staysInHold bool
	}
	kit.Rows(t, map[string]row{
		"OthersWouldCome":      {func(string) error { return nil }, true, false},
		"LostHere":             {os.Remove, false, false},
		"AlteredHere":          {func(path string) error { return os.WriteFile(path, []byte("<Error>other</Error>"), 0o600) }, false, false},
		"LostHereAndOthers":    {os.Remove, true, true},
		"AlteredHereAndOthers": {func(path string) error { return os.WriteFile(path, []byte("<Error>other</Error>"), 0o600) }, true, true},
	}, func(t *testing.T, r row) {
		inOffice(t, emulator.NetworkReadings{Received: "code"}, func(t *testing.T, h *office) {
			if _, err := h.net.PublishReceived(emulator.ReceivedDocument{Data: dataOf("R-1"), Files: []emulator.ReceivedFile{{Name: "a", Content: answer}}}); err != nil {
				t.Fatal(err)
			}
			other := false
			kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
				if op == "network-fetch-file" && other {
					return emulator.Fault{Kind: emulator.ErrorDocument}
				}
				return emulator.Fault{}
			}}))
			kit.Must(t, h.live(time.Minute/2))
			h.decide(func(a arrival.Arrival) arrival.Event {
				f, _ := a.FindDoubted()
				path := filepath.Join(h.kept, a.Key.String(), f.Doubt.Stored)
				kept, err := os.ReadFile(path)
				kit.Check(t, err == nil && bytes.Equal(kept, answer), "the kept answer = %q (error %v), want %q", kept, err, answer)
				kit.Must(t, r.here(path))
				return arrival.DoubtOverruled{By: ledger.Operator{UID: 7}, File: f.Name, SHA256: f.Doubt.SHA256}
			})
			other = r.othersCome
			kit.Must(t, h.live(time.Minute))
			h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
				if d := all[0].Files[1].Doubt; d.Overruled == r.staysInHold || (all[0].State == arrival.Acknowledged) == r.staysInHold || !r.staysInHold && all[0].Files[1].SHA256 != archive.Sum(answer) {
					t.Errorf("arrivals = %+v, want the decision to count: %t", all, !r.staysInHold)
				}
			})
			if !r.staysInHold {
				h.allDone()
			}
		})
	})
}

// I4: a page in the place of a file is not believed, however long the same one comes, while the document itself does not come either: it is a proxy's.
func TestFetchFile_I4_PageOnceTheDocumentIsHere(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{Received: "code"}, func(t *testing.T, h *office) {
		h.publish("Invoice", "R-1", "x")
		page := true
		kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, n int) emulator.Fault {
			if page && (op == "network-fetch-file" || op == "network-fetch" && n > 1) {
				return emulator.Fault{Kind: emulator.HTML}
			}
			return emulator.Fault{}
		}}))
		kit.Must(t, h.live(50*time.Hour))
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			if len(all) != 1 || all[0].State != arrival.Fetching || h.net.CountCalls("network-fetch") < 3 {
				t.Errorf("arrivals = %+v after %d calls for the document, want one that is being fetched after at least 3", all, h.net.CountCalls("network-fetch"))
			}
		})
		page = false
		kit.Must(t, h.live(time.Hour))
		h.allDone()
	})
}

// I30: a network that ignores the question for received documents lists what is about sent ones there, too. Then that list announces nothing, although it is to be
// believed: what is about documents of other programs is neither received nor deleted.
func TestReceive_I30_TrustedListHasSentDocuments(t *testing.T) {
	type row struct {
		proof  emulator.NetworkNotice
		unread int // the call for a list that fails
	}
	processing := emulator.NetworkNotice{ResponseCode: "TechnicalAccept", ActionCode: "ReceivedForProcessing"}
	kit.Rows(t, map[string]row{
		"Processing": {processing, 0}, "Invalid": {emulator.NetworkNotice{ResponseCode: "TechnicalReject", ActionCode: "InvalidContent"}, 0},
		"ProofIsNotRead": {processing, 2}, // of both kinds of documents the second
	}, func(t *testing.T, r row) {
		proof := r.proof
		inOffice(t, emulator.NetworkReadings{Received: "code"}, func(t *testing.T, h *office) {
			h.trustsType = true
			proof.BumID = "22222222-2222-4222-8222-222222222222"
			foreign := emulator.NetworkNotice{BumID: "11111111-1111-4111-8111-111111111111", ResponseCode: "TechnicalAccept", ActionCode: "Delivered"}
			proof.DocumentType = "CreditNote" // which is asked for last
			kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, n int) emulator.Fault {
				if op == "network-notices" && n == r.unread {
					return emulator.Fault{Kind: emulator.Status, Status: 400}
				}
				return emulator.Fault{}
			}}))
			kit.Value(h.net.PublishNotice(foreign))(t)
			kit.Value(h.net.PublishNotice(proof))(t)
			ours := h.publish("Invoice", "R-1", "x")
			onlyOurs := func(when string) {
				t.Helper()
				kit.Must(t, h.live(time.Hour))
				h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
					kit.Check(t, len(all) == 1 && string(all[0].Item) == ours && all[0].State == arrival.Acknowledged,
						"%s: arrivals = %+v, want only %s, acknowledged", when, all, ours)
				})
			}
			onlyOurs("while the proof is listed")
			h.look(func(l *boltledger.Ledger, _ []arrival.Arrival) {
				kit.Want(t, "the list counts as unfiltered", l.IsListUnfiltered(), true)
			})
			h.trustsType = false
			onlyOurs("with the other setting")
			h.look(func(l *boltledger.Ledger, _ []arrival.Arrival) {
				kit.Want(t, "the list counts as unfiltered with the other setting", l.IsListUnfiltered(), false)
			})
		})
	})
}

// Further notifications of a received document wait until it is done, and are deleted then.
func TestNotices_I30_FurtherOnes(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{Received: "code"}, func(t *testing.T, h *office) {
		id := h.publish("Invoice", "R-1", "x")
		for _, action := range []string{"EligibleForEarlyPayment", "NeverHeardOf"} {
			kit.Value(h.net.PublishNotice(emulator.NetworkNotice{BumID: id, ResponseCode: "BusinessInformation", ActionCode: action}))(t)
		}
		kit.Must(t, h.live(time.Hour))
		h.allDone()
	})
}

// I30, I29: a document that cannot be fetched and that a person gives up is asked for no more, its notification stays at the network, and it is not
// announced again.
func TestGivenUp_I30_NotificationStays(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		h.publish("Invoice", "R-1", "x")
		kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
			if op == "network-fetch" {
				return emulator.Fault{Kind: emulator.Garble}
			}
			return emulator.Fault{}
		}}))
		_ = h.live(time.Hour)
		h.look(func(l *boltledger.Ledger, all []arrival.Arrival) {
			by := ledger.Operator{UID: 1000}
			kit.Need(t, len(all) == 1 && all[0].Cause.Code != "", "arrivals = %+v, want one with a cause", all)
			if _, err := l.ApplyArrival(t.Context(), arrival.Change{Key: all[0].Key, Rev: all[0].Rev, Events: []arrival.Event{arrival.Abandoned{By: &by}}, At: archive.Instant{Wall: time.Now()}}); err != nil {
				t.Fatal(err)
			}
		})
		kit.Must(t, h.net.SetFaults(emulator.Faults{}))
		asked := h.net.CountCalls("network-fetch")
		_ = h.live(24 * time.Hour)
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			if len(all) != 1 || all[0].State != arrival.GivenUp || h.net.CountCalls("network-fetch") != asked || h.net.Notices()[0].IsAcknowledged {
				t.Errorf("arrivals = %+v after %d calls, notifications = %+v, want one given up after %d, and its notification kept", all, h.net.CountCalls("network-fetch"), h.net.Notices(), asked)
			}
		})
	})
}

// I25: documents that the network shows to nobody here are the fault of no other document. What comes after them is received.
func TestRun_I25_DocumentsThatAreDenied(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{FetchSent: "refused"}, func(t *testing.T, h *office) {
		const denied = 5 // more than there are workers
		for n := range denied {
			number := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
			_, err := h.net.PublishNotice(emulator.NetworkNotice{BumID: number, ResponseCode: "TechnicalInformation", ActionCode: "Received"})
			kit.Must(t, errors.Join(h.net.OccupyBumID(number), err))
		}
		first := h.live(24 * time.Hour)
		for _, number := range []string{"R-1", "R-2", "R-3"} {
			h.publish("Invoice", number, number)
		}
		kit.Must(t, errors.Join(first, h.live(90*time.Minute)))
		h.look(func(_ *boltledger.Ledger, all []arrival.Arrival) {
			done := 0
			for _, a := range all {
				switch {
				case a.State == arrival.Acknowledged:
					done++
				case a.State != arrival.Announced || !strings.Contains(a.Cause.Text, "403"):
					t.Errorf("arrival = %+v, want it acknowledged, or announced because of 403", a)
				}
			}
			kit.Check(t, done == 3 && len(all) == denied+3,
				"%d of %d are received, want 3 of %d", done, len(all), denied+3)
		})
	})
}

// I25: documents whose notifications the network does not delete keep no other document out of the drop folder.
func TestRun_I25_NotificationsThatAreNotDeleted(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
			if op == "network-acknowledge" {
				return emulator.Fault{Kind: emulator.Status, Status: 403}
			}
			return emulator.Fault{}
		}}))
		const many = 25 // more than are tried in the longest wait of one
		for n := range many {
			h.publish("Invoice", fmt.Sprint("R-", n), "x")
		}
		kit.Must(t, h.live(6*time.Hour))
		kit.Want(t, "documents in the drop folder", len(h.dropped()), many)
		h.publish("Invoice", "R-late", "x")
		kit.Must(t, h.live(90*time.Minute))
		kit.Want(t, "documents in the drop folder", len(h.dropped()), many+1)
	})
}

// What a person asks to be tried is tried at once, also while everything pauses after a fault of the network.
func TestTryNow_EndsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := NewReceived(Received{Config: Config{Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }, Log: slog.New(slog.DiscardHandler)}})
		e.pauseCalls("fetch a document", &apicall.Error{Code: "http-503", RetryAfter: time.Hour})
		kit.Need(t, e.isPaused() && e.Status().Why != "", "calls may be made after Retry-After, want a pause")
		e.TryNow()
		kit.Check(t, !e.isPaused() && e.Status().Why == "", "after TryNow calls pause: %+v, want no pause", e.Status())
	})
}

// The files here are removed once the archive has the document, and not before.
func TestRemoveArchived_I3(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		h.publish("Invoice", "R-1", "x")
		left := func() int {
			all := kit.Value(os.ReadDir(h.kept))(t)
			return len(all)
		}
		if err := h.live(3 * time.Hour); err != nil || left() != 1 {
			t.Fatalf("%d folders in custody (error %v), want 1", left(), err)
		}
		h.archived = true
		if err := h.live(time.Hour); err != nil || left() != 0 {
			t.Errorf("%d folders in custody (error %v), want 0", left(), err)
		}
		h.allDone()
	})
}

// TestRemoveArchived_I3_NotBeforeTheNetworkKnows: the archive has the document,
// and the network does not delete its notification. The files stay until it
// does: the document may be announced again.
func TestRemoveArchived_I3_NotBeforeTheNetworkKnows(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		h.publish("Invoice", "R-1", "x")
		h.archived = true
		var isDeaf atomic.Bool
		isDeaf.Store(true)
		kit.Must(t, h.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
			if op == "network-acknowledge" && isDeaf.Load() {
				return emulator.Fault{Kind: emulator.Status}
			}
			return emulator.Fault{}
		}}))
		for _, c := range []struct {
			isDeaf bool
			want   int
		}{{true, 1}, {false, 0}} {
			isDeaf.Store(c.isDeaf)
			kit.Must(t, h.live(6*time.Hour))
			left := kit.Value(os.ReadDir(h.kept))(t)
			kit.Want(t, fmt.Sprintf("folders that are left while the network deletes nothing: %v", c.isDeaf), len(left), c.want)
		}
		h.allDone()
	})
}

// TestReceive_I27_FilesAreItsOwn: a received document is for vaultd's user
// alone until it is in the drop folder.
func TestReceive_I27_FilesAreItsOwn(t *testing.T) {
	inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
		h.publish("Invoice", "R-1", "x")
		kit.Must(t, h.live(3*time.Hour))
		kinds := map[fs.FileMode]int{}
		kit.Must(t, filepath.WalkDir(h.kept, func(path string, e fs.DirEntry, err error) error {
			if err != nil || path == h.kept {
				return err
			}
			info, err := e.Info()
			kinds[info.Mode()]++
			return err
		}))
		kit.Want(t, "modes of what is kept", kinds, map[fs.FileMode]int{fs.ModeDir | 0o700: 1, 0o600: 2})
	})
}

func TestMain(m *testing.M) { os.Exit(kit.MainOfManyFiles(m)) }

// Faults of every kind at every call, with deaths between: afterwards everything is done, and the network saw no mistake.
func TestReceive_I30_FaultsOfTheNetwork(t *testing.T) {
	kinds := []emulator.Fault{{Kind: emulator.Abort}, {Kind: emulator.Abort, IsAfterWork: true}, {Kind: emulator.Status}, {Kind: emulator.Status, IsAfterWork: true},
		{Kind: emulator.HTML}, {Kind: emulator.Refuse}, {Kind: emulator.Cut}, {Kind: emulator.Garble}, {Kind: emulator.Truncate}, {Kind: emulator.Empty}, {Kind: emulator.Status, Status: 403}}
	struck := map[string]int{}
	seeds := uint64(30)
	if kit.Sampled(t, "faults at each call") {
		seeds = 8
	}
	for seed := range seeds {
		inOffice(t, emulator.NetworkReadings{Received: []string{"type", "code"}[seed%2]}, func(t *testing.T, h *office) {
			for n := range 3 {
				h.publish([]string{"Invoice", "CreditNote"}[n%2], fmt.Sprint("R-", n), fmt.Sprint(n), "b")
			}
			r, left := rand.New(rand.NewPCG(seed, 30)), 12
			var mu sync.Mutex // two documents are worked on at once
			if err := h.net.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
				mu.Lock()
				defer mu.Unlock()
				if left == 0 || r.IntN(3) != 0 {
					return emulator.Fault{}
				}
				left--
				struck[op]++
				f := kinds[r.IntN(len(kinds))]
				if op == "network-fetch-file" && f.Kind == emulator.Garble {
					f.Kind = emulator.Cut // the network tells no digest of a file: nobody can see the other
				}
				return f
			}}); err != nil {
				t.Fatal(err)
			}
			deaths := rand.New(rand.NewPCG(seed, 31))
			for range 3 {
				_ = h.live(time.Duration(1+deaths.IntN(600)) * time.Second)
				h.look(nil)
			}
			kit.Must(t, h.net.SetFaults(emulator.Faults{}))
			_ = h.live(12 * time.Hour)
			h.allDone()
		})
		kit.Need(t, !t.Failed(), "seed %d failed, want each to succeed", seed)
	}
	for _, op := range []string{"network-notices", "network-fetch", "network-fetch-file", "network-notify", "network-acknowledge"} {
		kit.Check(t, struck[op] != 0, "no fault was injected at %s, want some", op)
	}
}

// I5, I30: each operation on files and each commit fails once, in both forms, and the process ends where it must. Afterwards each document is in
// the drop folder once, and at no moment was its notification deleted without that.
func TestReceive_I5_NthFailure(t *testing.T) {
	step := 1
	if kit.Sampled(t, "faults at each call") {
		step = 4
	}
	faults.EachOperation(t, step, 40, func(f *faults.Fault) {
		inOffice(t, emulator.NetworkReadings{}, func(t *testing.T, h *office) {
			h.publish("Invoice", "R-1", "x", "y")
			_ = h.live(0) // what the drop folder makes once is there
			f.On, h.fileFault, h.commitFault = true, f.File, f.Commit
			_ = h.live(2 * time.Hour)
			f.On = false
			h.look(nil) // what is on disk is sound
			_ = h.live(2 * time.Hour)
			h.allDone()
		})
	})
}
