package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// List, with its filters, knows the route. The column of the state says delivered, and nothing says archived.
func TestList_I12_KnowsTheRoute(t *testing.T) {
	s := filledWithPDFs(t)
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"Delivered": {[]string{"list", "--state=delivered"}, "scan2.pdf scan1.pdf"},
		"PDF":       {[]string{"list", "--route=pdf"}, "scan3.pdf copy.pdf scan2.pdf scan1.pdf"},
		"Vault":     {[]string{"list", "--route=vault", "--state=archived,delivered"}, "Müller"},
		"Sorted":    {[]string{"list", "--route=pdf", "--sort=delivered"}, "scan2.pdf scan1.pdf scan3.pdf copy.pdf"},
	} {
		out, _, code := s.say(row.args...)
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
			got = append(got, strings.Fields(line)[0])
		}
		kit.Check(t, code == 0 && strings.Join(got, " ") == row.want, "%s: exit %d\n%s", name, code, out)
		kit.Check(t, row.args[1] != "--route=pdf" || (!strings.Contains(out, "archived") && strings.Contains(out, "delivered")),
			"%s:\n%s", name, out)
	}
	refused(s.say("list", "--route=pfd"))(t, "an unknown route", exitUsage)
}

// Show, why and find answer of a delivered PDF when it was delivered, to whom, and what proves it.
func TestShow_I12_OfADeliveredPDF(t *testing.T) {
	s := filledWithPDFs(t)
	show, _, _ := s.say("show", "scan1.pdf")
	kit.Holds(t, "show", show, "State         delivered\n", "Delivered is not archived.", "Drop, route   ap-scans, pdf", "delivered   2026-11-20 10:32:02", "SENT TO\n  receivingEmailAddress    ap@in.example",
		"kept with its delivery note: drop ap-scans, _delivered/2026-11/scan1.pdf", "slot-scan1.pdf  delivered; current; sent 1 time")
	found, _, code := s.say("find", "--limit=5", "scan1")
	if code != 0 || !strings.HasPrefix(found, "scan1.pdf (ap-scans)  delivered 2026-11-20 10:32:02") || strings.Contains(found, "archived") {
		t.Errorf("%d\n%s\nwant code = 0, found that begins with \"scan1.pdf (ap-scans) delivered 2026-11-20 10:32:02\", found without \"archived\"", code, found)
	}
	why, _, _ := s.say("why", "scan3.pdf")
	kit.Holds(t, "why", why, "quarantined", "delivery unknown", "look for it in the accounts-payable system", "vaultd release", "vaultd close")
	twin, _, _ := s.say("why", "copy.pdf")
	if !strings.Contains(twin, "The same PDF was delivered already") || !strings.Contains(twin, "delivered   2026-11-20 10:32:02") || strings.Contains(strings.ToLower(twin), "archived") {
		t.Errorf(`twin = %v, want twin with "The same PDF was delivered already", twin with "delivered 2026-11-20 10:32:02", strings.ToLower(twin) without "archived"`, twin)
	}
}

// The receipt of a delivered PDF is its delivery note; before that there is none, and the error says so.
func TestReceipt_I12_OfAPDFIsItsDeliveryNote(t *testing.T) {
	s := filledWithPDFs(t)
	out, _, code := s.say("receipt", "scan1.pdf")
	kit.Holds(t, "out", out,
		"DELIVERY NOTE  scan1.pdf", "TEST, NO EVIDENCE", "This is no archiving.", "To              ap@in.example", "slot-scan1.pdf (bumId)", "2000000 bytes",
	)
	kit.Check(t, code == 0 && !strings.Contains(out, "ARCHIVED") && !strings.Contains(out, "possibly"),
		"exit %d\n%s", code, out)
	record, _, _ := s.say("receipt", "--json", "scan1.pdf")
	note, err := proof.ParseDelivery([]byte(record))
	if err != nil || note.BumID != "slot-scan1.pdf" || note.Environment != "test" || !bytes.HasPrefix([]byte(record), bytes.TrimSuffix(note.Encode(), []byte("\n}\n"))) {
		t.Errorf(`%v: %s, want no error, note.BumID = "slot-scan1.pdf", note.Environment = "test", the note signed`, err, record)
	}
	_, errs, code := s.say("receipt", "scan3.pdf")
	if code != exitFailed || !strings.Contains(errs, `"scan3.pdf" is not delivered, so there is no delivery note: quarantined`) {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// A PDF that is released and delivered then is possibly processed twice, in the note and for whoever asks.
func TestShow_I2_PossiblyProcessedTwice(t *testing.T) {
	s := filledWithPDFs(t)
	s.tell("scan3.pdf", noon.Add(-40*time.Minute), nil, ledger.Released{})
	s.tell("scan3.pdf", noon.Add(-40*time.Minute), nil, ledger.RegisterIntended{}, fill.Ticket("again-scan3.pdf", noon, ledger.PDF), ledger.UploadIntended{})
	again := s.ledger.Item("scan3.pdf")
	again.Apply(noon.Add(-30*time.Minute), again.Accepted())
	again.Place(noon.Add(-30*time.Minute), "_delivered/2026-11/scan3.pdf")
	out, _, _ := s.say("show", "--json", "scan3.pdf")
	var shown struct {
		Route, State, Meaning   string
		DeliveredAt, UploadedAt *time.Time
		Flags                   []string
	}
	kit.Must(t, json.Unmarshal([]byte(out), &shown))
	if shown.Route != "pdf" || shown.State != "delivered" || shown.DeliveredAt == nil || shown.UploadedAt != nil || len(shown.Flags) != 1 || !strings.Contains(shown.Flags[0], "possibly processed twice") {
		t.Errorf(`%+v, want shown.Route = "pdf", shown.State = "delivered", shown.DeliveredAt other than nil, shown.UploadedAt = nil, len(shown.Flags) = 1, shown.Flags[0] with "possibly processed twice"`, shown)
	}
	note, _, _ := s.say("receipt", "scan3.pdf")
	kit.Holds(t, "note", note, "possibly processed twice")
}

// Status counts what was delivered today beside what was archived today, and never in it.
func TestStatus_I12_DeliveredTodayIsNotArchivedToday(t *testing.T) {
	s := filledWithPDFs(t)
	s.edit("drops:\n", `pdf: {base_url: "https://vault.example", auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}}
drops:
  - {name: ap-scans, path: `+t.TempDir()+`, route: pdf, receiving: ap@in.example, notify: clerk@acme.example}
`)
	sum := s.summary()
	drops := map[string]present.DropStatus{}
	for _, d := range sum.Drops {
		drops[d.Name] = d
	}
	if d := drops["acme-in"]; d.Today != 1 || d.Delivered != 0 || d.Route != "vault" {
		t.Errorf(`%+v, want d.Today = 1, d.Delivered = 0, d.Route = "vault"`, d)
	}
	if d := drops["ap-scans"]; d.Today != 0 || d.Delivered != 2 || d.Route != "pdf" {
		t.Errorf(`%+v, want d.Today = 0, d.Delivered = 2, d.Route = "pdf"`, d)
	}
	if sum.Balance.States["archived"] != 1 || sum.Balance.States["delivered"] != 2 || !sum.Balance.Agrees || len(sum.Billing) != 2 || sum.Billing[0].Documents != 1 {
		t.Errorf(`%+v, %+v, want sum.Balance.States["archived"] = 1, sum.Balance.States["delivered"] = 2, sum.Balance.Agrees, len(sum.Billing) = 2, sum.Billing[0].Documents = 1`, sum.Balance, sum.Billing)
	}
	if text, _, _ := s.say("status"); !strings.Contains(text, "2 delivered") || !strings.Contains(text, "= archived 1 + delivered 2 +") {
		t.Errorf(`text = %v, want text with "2 delivered", text with "= archived 1 + delivered 2 +"`, text)
	}
}

// What verify says of a PDF that was possibly processed twice names no archive.
func TestVerify_I2_PossiblyProcessedTwice(t *testing.T) {
	s := filledWithPDFs(t)
	s.tell("scan3.pdf", noon.Add(-40*time.Minute), nil, ledger.Released{})
	out, errs, code := s.say("verify")
	if code != 0 || !strings.Contains(out, "1 PDF was possibly processed twice\n    "+s.keys["scan3.pdf"].String()) || strings.Contains(out, "double") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}

// A kept PDF that is not what was delivered needs a person, and nothing of what is told then calls it archived.
func TestStatus_I12_AKeptPDFThatDiffers(t *testing.T) {
	s := filledWithPDFs(t)
	s.tell("scan1.pdf", noon.Add(-time.Minute), nil, ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged, Text: `"scan1.pdf" has another content than when it was sent`}})
	sum := s.summary()
	found := 0
	for _, n := range sum.Needs {
		switch n.What {
		case "kept-differs":
			t.Errorf("%+v", n)
		case "delivered-differs":
			if found++; n.Count != 1 || len(n.Names) != 1 || !strings.HasPrefix(n.Names[0], "scan1.pdf") || strings.Contains(n.Text+n.Do, "archived") {
				t.Errorf(`%+v, want n.Count = 1, len(n.Names) = 1, n.Names[0] that begins with "scan1.pdf", n.Text+n.Do without "archived"`, n)
			}
		}
	}
	kit.Check(t, found == 1, "%+v, want found = 1", sum.Needs)
	why, _, _ := s.say("why", "scan1.pdf")
	if !strings.Contains(why, "compare the kept PDF with the one in the accounts-payable system") || !strings.Contains(why, "vaultd close") || strings.Contains(strings.ReplaceAll(why, "Delivered is not archived", ""), "archived") {
		t.Errorf(`why = %v, want why with "compare the kept PDF with the one in the accounts-payable system", why with "vaultd close", strings.ReplaceAll(why, "Delivered is not archived", "") without "archived"`, why)
	}
}

// withNetwork configures the business network and a drop that sends over it.
func (s *shelf) withNetwork() {
	s.t.Helper()
	s.edit("drops:\n", `network: {base_url: "https://vault.example", auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}}
drops:
  - {name: out, path: `+s.t.TempDir()+`, route: network}
`)
}

// hear lets the network say something of an item.
func hear(i *fill.Item, at time.Time, response, action string, properties ...archive.NamedValue) ledger.Entry {
	e := i.Entry()
	return i.Apply(at, ledger.NotificationSeen{Notification: archive.Notification{AcknowledgementID: archive.AcknowledgementID(action + i.Name), Document: e.OwnNumber(),
		Response: response, Action: action, Properties: properties}})
}

// show --check-file asks the network for the file with what its check of a
// document found, and says where it named none.
func TestShow_CheckFile(t *testing.T) {
	s := newShelf(t)
	secret := filepath.Join(t.TempDir(), "secret")
	kit.Must(t, os.WriteFile(secret, []byte("s"), 0o600))
	s.edit("drops:\n", "network: {base_url: \"http://127.0.0.1:1\", auth: {method: basic, username: u, secret_file: "+secret+"}}\ndrops:\n  - {name: out, path: "+t.TempDir()+", route: network}\n")
	for name, properties := range map[string][]archive.NamedValue{"checked": {{Name: "ValidationFileReference", Value: "ref-1"}}, "unchecked": nil} {
		i := s.ledger.Add(fill.Item{Name: name, Route: ledger.Network, Document: archive.Document{Type: "Invoice", Number: name}})
		i.Send(noon)
		hear(i, noon, "TechnicalReject", "InvalidContent", properties...)
	}
	out, _, code := s.say("show", "checked")
	kit.Check(t, code == exitDone, "exit %d", code)
	kit.Holds(t, "show", out, "--check-file", "ref-1")
	_, errs, code := s.say("show", "checked", "--check-file")
	kit.Check(t, code == exitUnavailable, "nothing answers: exit %d, %s", code, errs)
	kit.Holds(t, "the error", errs, "fetch a validation file", "ask the provider for the file ref-1")
	_, errs, code = s.say("show", "unchecked", "--check-file")
	kit.Check(t, code == exitFailed, "none is named: exit %d", code)
	kit.Holds(t, "the error", errs, "named no file")
}

// I12: what the commands say of a document of the business network, when a person acts on it or takes its delivery note, is true of such a
// document alone.
func TestNetwork_I12_CommandsSpeakOfNothingElse(t *testing.T) {
	s := newShelf(t)
	s.withNetwork()
	at := noon.Add(-5 * time.Hour)
	doubted := func(name string) *fill.Item {
		i := s.ledger.Add(fill.Item{Name: name, Route: ledger.Network, Document: archive.Document{Type: "Invoice", Number: name, RecipientName: "Acme AG", RecipientIDs: []string{"1234567890123"}}})
		i.Send(at)
		i.Apply(at, ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout", Text: "no answer"}})
		i.Quarantine(at.Add(time.Hour), ledger.DeliveryUnknown("it was never answered"))
		return i
	}
	huber := doubted("Huber 88")
	doubted("Otto 19")
	refused := s.ledger.Add(fill.Item{Name: "Refused 1", Route: ledger.Network})
	refused.Deliver(at, time.Minute)
	hear(refused, at.Add(time.Hour), "BusinessReject", "DocumentRejected")
	say := func(args ...string) string {
		out, errs, code := s.say(args...)
		kit.Check(t, code == exitDone, "%q: exit %d: %s", args, code, errs)
		return out
	}
	texts := []string{
		say("release", "Huber 88", "--reason", "the network says it has none"), say("close", "Otto 19", "--reason", "it is not needed"), say("close", "Refused 1", "--reason", "sent by letter"),
	}
	huber.Apply(at.Add(2*time.Hour), append(huber.Sending(at), huber.Accepted())...)
	hear(huber, at.Add(3*time.Hour), "TechnicalAccept", "Delivered", archive.NamedValue{Name: "DeliveryMeansCode", Value: ledger.MailDelivery})
	huber.Place(at.Add(3*time.Hour), "_delivered/2026-11/Huber 88")
	hear(huber, at.Add(3*time.Hour), "BusinessAccept", "DocumentAccepted")
	page := say("receipt", "Huber 88")
	hear(huber, at.Add(4*time.Hour), "TechnicalReject", "Undelivered")
	page += say("receipt", "Huber 88")
	kit.Holds(t, "page", page,
		"The business network says that it delivered the document", "Acme AG, 1234567890123", "by letter", "the recipient accepted it", "(bumId)", "rejected it after it had delivered it",
	)
	for _, text := range append(texts, page) {
		for _, word := range []string{"archiv", "pdf", "accounts-payable", "zip", "clientuuid"} {
			kit.Check(t, !strings.Contains(strings.ToLower(text), word), "it says %q: %s", word, text)
		}
	}
}
