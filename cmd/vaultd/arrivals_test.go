package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/statedir"
)

// withReceiving configures that documents are received into the first drop.
func (s *site) withReceiving() {
	s.t.Helper()
	s.withNetwork(s.service)
	s.edit("auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:",
		"receive_into: acme, poll: 10s, auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
}

// receivedInvoice is what a supplier sends.
func receivedInvoice(number string) emulator.ReceivedDocument {
	return emulator.ReceivedDocument{Data: fmt.Appendf(nil, `{"externalDocumentIdentifier":{"id":%q},"issueDate":"2026-10-31","documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"Otto GmbH"}}`, number),
		Files: []emulator.ReceivedFile{{Name: "a.pdf", Content: []byte("%PDF-1.7 " + number + "\n%%EOF\n")}}}
}

// I30: a real daemon receives a document. It is listed beside the daemon and without one, with its sender, its number and the folder that it
// became; sender and number come from the archive's entry when the copy is gone.
func TestArrivals_I30_Listed(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	kit.Holds(t, "arrivals", s.must(0, "arrivals"), "No document has come in")
	id, err := emu.PublishReceived(receivedInvoice("R-4711"))
	kit.Must(t, err)
	p := s.begin()
	kit.Await(t, "the document to be archived", func() bool {
		out, _ := s.vaultd("arrivals")
		return strings.Contains(out, "acknowledged") && strings.Contains(out, "Received Otto GmbH R-4711: archived")
	})
	ask := func() {
		for _, row := range []struct {
			code int
			args []string
			want string
		}{
			{0, []string{"arrivals"}, "Otto GmbH"},
			{0, []string{"arrivals", "show", id}, "Received Otto GmbH R-4711 in drop acme: archived (vaultd show "},
			{0, []string{"show", "Received Otto GmbH R-4711"}, "over the business network, as document " + id},
			{0, []string{"show", "Received Otto GmbH R-4711", "--json"}, `"receivedAs":"` + id + `"`},
			{exitFailed, []string{"arrivals", "show", "none"}, "no received document has the ID"},
			{exitUsage, []string{"arrivals", "show"}, "needs the ID"},
			{exitUsage, []string{"arrivals", "remove", id}, "known are show, retry, take, close"},
			{exitUsage, []string{"arrivals", "--limit", "-1"}, "--limit is negative"},
		} {
			out := s.must(row.code, row.args...)
			kit.Check(t, strings.Contains(out, row.want), "%v: %s, want out with %q", row.args, out, row.want)
		}
		var j arrivalShown
		if err := json.Unmarshal([]byte(s.must(0, "arrivals", "--json")), &j); err != nil || j.ID != id || j.Sender == nil || *j.DocumentID != "R-4711" || len(j.Files) != 2 || j.Entry == nil || j.Waits != "" {
			t.Errorf(`%+v, %v, want no error, j.ID = %v, j.Sender other than nil, *j.DocumentID = "R-4711", len(j.Files) = 2, j.Entry other than nil, j.Waits = ""`, j, err, id)
		}
		kit.Holds(t, "arrivals show", s.must(0, "arrivals", "show", j.Key), id)
	}
	ask() // through the daemon
	p.stop(t)
	kit.Must(t, os.RemoveAll(filepath.Join(s.dir, "state", statedir.ReceivedFolder)))
	ask() // without it
}

// A single pass receives what the network announces, and with --wait it is archived then. A file that cannot be fetched is no reason to go on for
// ever: the pass tries it once.
func TestRunOnce_Receives(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	emu, address := serveEmulator(t, emulator.Config{Faults: emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
		if op == "network-notices" { // longer than a pass waits for what nobody asks for
			return emulator.Fault{Delay: time.Second}
		}
		if op == "network-fetch-file" && broken.Load() {
			return emulator.Fault{Kind: emulator.Status, Status: 500}
		}
		return emulator.Fault{}
	}}})
	s := newSite(t, address, fast)
	s.withReceiving()
	broken.Store(true)
	var ids []string
	for _, number := range []string{"R-1", "R-2"} {
		id := kit.Value(emu.PublishReceived(receivedInvoice(number)))(t)
		ids = append(ids, id)
	}
	kit.Holds(t, "run --once", s.must(0, "run", "--once"), "seen 0 new", "2 documents of the business network are not received yet")
	out := s.must(0, "arrivals")
	kit.Check(t, strings.Count(out, "fetching") == 2, `out = %v, want strings.Count(out, "fetching") = 2`, out)
	broken.Store(false)
	for _, id := range ids { // without that it is tried again after a minute
		s.must(0, "arrivals", "retry", id)
	}
	kit.Holds(t, "run --once --wait", s.must(0, "run", "--once", "--wait"), "seen 2 new; archived 2")
	kit.Holds(t, "arrivals show", s.must(0, "arrivals", "show", ids[0]), "request ids     fetch ", ", notice ")
}

// What waits is listed with why, the newest first and no more than asked for; names of the network cannot write to the terminal.
func TestArrivals_WhatWaits(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	now := time.Now()
	s.addReceived(now.Add(-time.Hour), "bum-1")
	s.addReceived(now.Add(-time.Minute), "bum-\x1b[2J2", arrival.Postponed{Until: now.Add(time.Hour), Cause: ledger.Cause{Code: "http-500", Text: "fetch: a \x1b[1m fault"}})
	out := s.must(0, "arrivals")
	if first, second := strings.Index(out, "fetch the document failed: fetch: a"), strings.Index(out, "next: fetch the document"); first < 0 || second < first || strings.Contains(out, "\x1b") {
		t.Errorf("%q, want first >= 0, second >= %v, out without \"\\x1b\"", out, first)
	}
	if out := s.must(0, "arrivals", "--limit", "1"); strings.Contains(out, "bum-1 ") || !strings.Contains(out, "the newest 1; --limit 0 lists all") {
		t.Errorf(`out = %v, want out without "bum-1 ", out with "the newest 1; --limit 0 lists all"`, out)
	}
	if out := s.must(0, "arrivals", "--json"); strings.Count(out, "\n") != 2 || !strings.Contains(out, `"cause":"http-500"`) {
		t.Errorf("out = %v, want strings.Count(out, \"\\n\") = 2, out with `\"cause\":\"http-500\"`", out)
	}
	s.addArrival("4711", now) // an extract is none
	if out := s.must(0, "arrivals"); strings.Contains(out, "4711") {
		t.Errorf(`out = %v, want out without "4711"`, out)
	}
	s.must(exitFailed, "arrivals", "show", "4711")
}

// I26: a received document at a fault that only a person can mend, and one that waits for a day, call a person: status ends with 3 and says which, and
// what to do. A fault that may pass by itself calls nobody at once.
func TestArrivals_I26_NeedAPerson(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	now := time.Now()
	failed := func(code string) arrival.Event {
		return arrival.Postponed{Until: now.Add(time.Hour), Cause: ledger.Cause{Code: code, Text: "it was " + code}}
	}
	s.addReceived(now, "bum-new")
	s.addReceived(now, "bum-once", failed("unreadable"))
	s.addReceived(now, "bum-away", failed("http-503"), failed("http-503"))
	s.must(0, "status")
	s.addReceived(now, "bum-twice", failed("unreadable"), failed("unreadable"))
	s.addReceived(now, "bum-lost", failed("receive-lost"))
	s.addReceived(now.Add(-25*time.Hour), "bum-old", failed("http-503"))
	out := s.must(exitPerson, "status")
	kit.Holds(t, "out", out, "3 received documents need you", "bum-twice: ask the provider and name the request id, or tell its sender with vaultd reject --technical. To fetch the document failed 2 times", "bum-lost: ", "restore received in state_dir from a copy",
		"bum-old: ", "see vaultd doctor", "when it is put right: vaultd arrivals retry ID")
	kit.Holds(t, "arrivals show bum-lost", s.must(0, "arrivals", "show", "bum-lost"), "TO DO")
	kit.Holds(t, "status --json", s.must(exitPerson, "status", "--json"), `"what":"received","count":3`)
	for _, id := range []string{"bum-twice", "bum-lost", "bum-old"} {
		s.must(0, "arrivals", "close", id, "--reason", "it came by mail")
	}
	s.must(0, "status")
}

// I29: what a person decides about a received document is journaled with who decided and a digest of the reason, beside a daemon too: it then goes
// on at once. What is given up is fetched no more.
func TestArrivals_I29_RetryAndClose(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	id := kit.Value(emu.PublishReceived(receivedInvoice("R-1")))(t)
	lost := kit.Value(emu.PublishReceived(receivedInvoice("R-2")))(t)
	now := time.Now()
	postponed := arrival.Postponed{Until: now.Add(24 * time.Hour), Cause: ledger.Cause{Code: "http-500", Text: "fetch: a fault"}}
	s.addReceived(now.Add(-time.Hour), archive.RemoteID(id), postponed)
	s.addReceived(now.Add(-time.Hour), archive.RemoteID(lost), postponed)
	for _, row := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, []string{"arrivals", "close", lost}, "needs --reason"},
		{exitFailed, []string{"arrivals", "retry", "none"}, "no received document has the ID"},
		{0, []string{"arrivals", "close", lost, "--reason", "it came by mail"}, "is given-up. Nothing more of it is fetched"},
		{exitFailed, []string{"arrivals", "retry", lost}, "it is given-up, and nothing of it is due any more"},
		{exitFailed, []string{"arrivals", "close", lost, "--reason", "again"}, "it is given-up"},
	} {
		out := s.must(row.code, row.args...)
		kit.Check(t, strings.Contains(out, row.want), "%v: %s, want out with %q", row.args, out, row.want)
	}
	p := s.begin()
	kit.Holds(t, "arrivals show", s.must(0, "arrivals", "show", id), "fetch the document failed: fetch: a fault; tried again")
	kit.Holds(t, "arrivals retry", s.must(0, "arrivals", "retry", id), "is announced. It is tried now.")
	kit.Await(t, "the document to be in the drop folder", func() bool {
		out, _ := s.vaultd("arrivals", "show", id)
		return strings.Contains(out, "in the drop")
	})
	kit.Holds(t, `out`, s.must(exitFailed, "arrivals", "close", id, "--reason", "too late"), "close document")
	p.stop(t)
	for _, n := range emu.Notices() {
		kit.Check(t, n.BumID != lost || !n.IsAcknowledged, "the notification of what was given up is deleted")
	}
	if n := emu.CountCalls("network-fetch"); n != 1 {
		t.Errorf("%d documents were fetched", n)
	}
	s.must(0, "verify")
	if journal := s.journal(); !strings.Contains(journal, `"event":"given-up"`) || !strings.Contains(journal, `"event":"retry-asked"`) || strings.Contains(journal, "it came by mail") {
		t.Errorf("journal = %v, want journal with `\"event\":\"given-up\"`, journal with `\"event\":\"retry-asked\"`, journal without \"it came by mail\"", journal)
	}
}

// addReceived puts a received document into the ledger while no daemon runs.
func (s *site) addReceived(at time.Time, id archive.RemoteID, more ...arrival.Event) archive.Key {
	s.t.Helper()
	l, release, err := statedir.OpenLedger(filepath.Join(s.dir, "state"), time.UTC, nil)
	kit.Must(s.t, err)
	announced := arrival.DocumentAnnounced{Document: id, Kind: archive.NetworkInvoice, Notice: archive.AcknowledgementID("ack-" + id)}
	key := archive.NewKey(at)
	_, err = l.ApplyArrival(s.t.Context(), arrival.Change{Key: key, Events: append([]arrival.Event{announced}, more...), At: archive.Instant{Wall: at}})
	kit.Must(s.t, errors.Join(err, release()))
	return key
}

// I4, I29: a file that looks wrong is named with what is wrong and where it lies, and a person takes it as it is, beside a daemon too.
func TestArrivals_I29_TakesAFileAsItIs(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	invoice := receivedInvoice("R-1")
	invoice.Files[0].Content = []byte("<Error>of the sender</Error>")
	id := kit.Value(emu.PublishReceived(invoice))(t)
	p := s.begin()
	var j arrivalShown
	kit.Await(t, "the file to be in doubt", func() bool {
		out, code := s.vaultd("arrivals", "show", id, "--json")
		return code == 0 && json.Unmarshal([]byte(out), &j) == nil && j.Cause == "receive-doubt"
	})
	d := j.Files[1].Doubt
	kit.Need(t, d != nil && d.Times == 1 && !d.Overruled, "%+v, want d other than nil, d.Times = 1, not d.Overruled", d)
	kept, err := os.ReadFile(filepath.Join(s.dir, "state", statedir.ReceivedFolder, j.Key, d.Stored))
	kit.Check(t, err == nil && string(kept) == string(invoice.Files[0].Content), "a person who looks at it finds %q, %v", kept, err)
	for _, row := range []struct {
		code int
		args []string
		want string
	}{
		{0, []string{"arrivals", "show", id}, filepath.Join(s.dir, "state", statedir.ReceivedFolder, j.Key, d.Stored) + ", SHA-256 " + d.SHA256},
		{exitUsage, []string{"arrivals", "take", id, "--sha256", d.SHA256}, "needs --reason"},
		{exitUsage, []string{"arrivals", "take", id, "--reason", "x"}, "needs --sha256"},
		{exitFailed, []string{"arrivals", "take", id, "--reason", "x", "--sha256", "00000000"}, "has the digest " + d.SHA256 + " now"},
		{0, []string{"arrivals", "take", id, "--sha256", d.SHA256[:8], "--reason", "the sender names it so"}, "Its file is taken as it is."},
	} {
		out := s.must(row.code, row.args...)
		kit.Check(t, strings.Contains(out, row.want), "%v: %s, want out with %q", row.args, out, row.want)
	}
	kit.Await(t, "the document to be archived", func() bool {
		out, _ := s.vaultd("arrivals")
		return strings.Contains(out, "Received Otto GmbH R-1: archived")
	})
	for _, row := range []struct {
		code int
		args []string
		want string
	}{
		{0, []string{"arrivals", "show", id}, "and was taken as it is, because a person decided so"},
		{exitFailed, []string{"arrivals", "take", id, "--sha256", d.SHA256, "--reason", "again"}, "none of its files is in doubt"},
		{0, []string{"verify"}, ""},
	} {
		out := s.must(row.code, row.args...)
		kit.Check(t, strings.Contains(out, row.want), "%v: %s, want out with %q", row.args, out, row.want)
	}
	p.stop(t)
	if journal := s.journal(); !strings.Contains(journal, `"event":"doubt-overruled"`) || strings.Contains(journal, "the sender names it so") {
		t.Errorf("journal = %v, want journal with `\"event\":\"doubt-overruled\"`, journal without \"the sender names it so\"", journal)
	}
}

// arrivalShown is what "arrivals --json" says of a document.
type arrivalShown struct {
	ID, Key, State, Waits, Cause, Need string
	Sender, DocumentID                 *string
	Files                              []struct {
		Doubt *struct {
			Stored, SHA256 string
			Times          int
			Overruled      bool
		}
	}
	Entry *struct{ Key, State string }
	Said  []struct {
		Outcome string
		At      *time.Time
	}
}
