package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// toldOf are the words that the network keeps about a document, in the order in which they came.
func toldOf(emu *emulator.Server, id string) (all []string) {
	for _, d := range emu.ReceivedDocuments() {
		for _, n := range d.Notified {
			if d.BumID == id {
				all = append(all, strings.TrimSuffix(n.ResponseCode+"/"+n.ActionCode+": "+n.Description, ": "))
			}
		}
	}
	return all
}

// I29: a person accepts a received document beside a running daemon. The network is told once, and the journal and show tell who said it, when, and
// that it was taken. The same word again, and the opposite one, are refused.
func TestAccept_I29_BesideTheDaemon(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	id := kit.Value(emu.PublishReceived(receivedInvoice("R-1")))(t)
	p := s.begin()
	kit.Await(t, "the document to be here", func() bool {
		out, _ := s.vaultd("arrivals")
		return strings.Contains(out, "acknowledged")
	})
	for _, row := range []struct {
		code int
		args []string
		want string
	}{
		{exitUsage, []string{"accept", id}, "needs --reason"},
		{exitUsage, []string{"accept", "--reason", "x"}, "ID"},
		{exitFailed, []string{"accept", "none", "--reason", "x"}, "no received document has the ID"},
		{0, []string{"accept", id, "--reason", "checked by purchasing"}, "BusinessAccept/DocumentAccepted was said of document " + id + ", and the network took it."},
		{exitFailed, []string{"accept", id, "--reason", "x", "--again"}, "nothing was said: it was said before, and the network took it"},
		{exitFailed, []string{"reject", id, "--reason", "x"}, "nothing was said: BusinessAccept/DocumentAccepted was said before"},
		{exitFailed, []string{"reject", id, "--technical", "--reason", "x"}, "nothing was said: BusinessAccept/DocumentAccepted was said before"},
		{0, []string{"arrivals", "show", id}, ": the network took it; checked by purchasing"},
	} {
		kit.Holds(t, fmt.Sprint(row.args), s.must(row.code, row.args...), row.want)
	}
	p.stop(t)
	told := toldOf(emu, id)
	kit.Check(t, len(told) == 1 && told[0] == "BusinessAccept/DocumentAccepted", "the network was told %v", told)
	var j arrivalShown
	if err := json.Unmarshal([]byte(s.must(0, "arrivals", "show", id, "--json")), &j); err != nil || len(j.Said) != 1 || j.Said[0].Outcome != "taken" || j.Said[0].At == nil {
		t.Errorf(`%+v, %v, want no error, len(j.Said) = 1, j.Said[0].Outcome = "taken", j.Said[0].At other than nil`, j.Said, err)
	}
	s.must(0, "verify")
	if journal := s.journal(); !strings.Contains(journal, `"event":"word-intended"`) || !strings.Contains(journal, `"event":"word-taken"`) || strings.Contains(journal, "checked by purchasing") {
		t.Errorf("journal = %v, want journal with `\"event\":\"word-intended\"`, journal with `\"event\":\"word-taken\"`, journal without \"checked by purchasing\"", journal)
	}
	kit.Len(t, "len(v)", emu.Violations(), 0)
}

// I29, I11: a word whose answer is lost is not said again by vaultd, with a daemon or without: the command says that it may have been said, and how the
// person says it again. One that the network refuses was not said, and another one may follow.
func TestReject_I29_LostAnswer(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.withReceiving()
	lost, refused, unread := publishHere(t, emu, s, "R-1", true), publishHere(t, emu, s, "R-2", true), publishHere(t, emu, s, "R-3", false)
	setFault := func(f emulator.Fault) {
		kit.Must(t, emu.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
			if op == "network-notify" {
				return f
			}
			return emulator.Fault{}
		}}))
	}
	ask := func(code int, want string, args ...string) {
		t.Helper()
		kit.Holds(t, fmt.Sprint(args), s.must(code, args...), want)
	}
	setFault(emulator.Fault{Kind: emulator.Abort, IsAfterWork: true})
	ask(exitPerson, "say it again with vaultd reject "+lost+" --reason TEXT --again", "reject", lost, "--reason", "the price is wrong")
	ask(0, "the network MAY HAVE TAKEN it; the price is wrong", "arrivals", "show", lost)
	setFault(emulator.Fault{Kind: emulator.Status, Status: 403})
	ask(exitRights, "was not said of document "+refused, "accept", refused, "--reason", "right")
	setFault(emulator.Fault{})
	ask(exitFailed, "it may have been said before", "reject", lost, "--reason", "the price is wrong")
	ask(exitFailed, "or may have taken it", "accept", lost, "--reason", "x", "--again")
	kit.Len(t, "the network was told", toldOf(emu, lost), 1)
	for _, id := range []string{lost, refused} { // persons say one more
		kit.Must(t, emu.PermitWord(id))
	}
	ask(0, "the network took it", "reject", lost, "--reason", "the price is wrong", "--again")
	ask(0, "BusinessReject/DocumentRejected was said", "reject", refused, "--reason", "wrong after all", "--tell")
	ask(0, "; wrong after all [with the reason]", "arrivals", "show", refused)
	ask(exitUsage, "the network takes at most 4096", "reject", unread, "--technical", "--reason", strings.Repeat("€", 1999), "--tell")
	ask(exitFailed, "vaultd reject "+unread+" --technical --reason TEXT", "accept", unread, "--reason", "x")
	ask(0, "TechnicalReject/Undelivered was said", "reject", unread, "--technical", "--reason", "it cannot be read")
	if told := strings.Join(append(toldOf(emu, refused), toldOf(emu, unread)...), " "); told != "BusinessReject/DocumentRejected: wrong after all TechnicalReject/Undelivered" {
		t.Errorf("the network was told %s", told)
	}
	s.must(0, "verify")
	kit.Len(t, "len(v)", emu.Violations(), 0)
}

// publishHere makes a document wait at the network, and puts it into the ledger as one that is here whole, or that cannot be read.
func publishHere(t *testing.T, emu *emulator.Server, s *site, number string, isWhole bool) string {
	t.Helper()
	id := kit.Value(emu.PublishReceived(receivedInvoice(number)))(t)
	evs := []arrival.Event{arrival.Postponed{Until: time.Now().Add(time.Hour), Cause: ledger.Cause{Code: "unreadable", Text: "no JSON"}}}
	if sum := archive.Sum([]byte(number)); isWhole {
		evs = []arrival.Event{arrival.DocumentHeld{Stored: "document.json", Size: 3, SHA256: sum}, arrival.HeldWhole{Manifest: sum}}
	}
	s.addReceived(time.Now(), archive.RemoteID(id), evs...)
	return id
}
