package main_test

import (
	"vaultd/internal/test/kit"

	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
)

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
	return i.Apply(at, ledger.NotificationSeen{Notification: archive.Notification{AcknowledgementID: archive.AcknowledgementID(action + i.Name), Document: e.NetworkNumber(),
		Response: response, Action: action, Properties: properties}})
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
		i.Quarantine(at.Add(time.Hour), ledger.DeliveryUnknown(ledger.Network, "it was never answered"))
		return i
	}
	huber := doubted("Huber 88")
	doubted("Otto 19")
	refused := s.ledger.Add(fill.Item{Name: "Refused 1", Route: ledger.Network})
	refused.Deliver(at, time.Minute)
	hear(refused, at.Add(time.Hour), "BusinessReject", "DocumentRejected")
	say := func(args ...string) string {
		out, errs, code := s.say(args...)
		if code != exitDone {
			t.Errorf("%q: exit %d: %s", args, code, errs)
		}
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
			if strings.Contains(strings.ToLower(text), word) {
				t.Errorf("it says %q: %s", word, text)
			}
		}
	}
}

// classes are ways to come into each class of what needs a person, by what status calls it on the routes to the archive, of single PDFs
// and of the business network.
var classes = []struct {
	class               ledger.Attention
	vault, pdf, network string
	live                func(s *shelf, i *fill.Item)
}{
	{ledger.Waiting, "overdue", "overdue", "overdue", func(_ *shelf, i *fill.Item) { i.Send(noon.Add(-49 * time.Hour)) }},
	{ledger.RejectedUnresolved, "rejected", "rejected", "rejected", func(_ *shelf, i *fill.Item) { i.Refuse(noon, ledger.Cause{Code: "x"}) }},
	{ledger.InQuarantine, "quarantined", "quarantined", "quarantined", func(_ *shelf, i *fill.Item) { i.Quarantine(noon, ledger.Cause{Code: "x"}) }},
	{ledger.AwaitingDecision, "undecided", "undecided", "undecided", func(_ *shelf, i *fill.Item) {
		i.Change = func(ev *ledger.Sealed) { ev.SameContent = archive.Key{1} }
		i.Seal(noon)
		i.Apply(noon, ledger.Held{})
	}},
	{ledger.WaitingForRights, "unreadable", "unreadable", "unreadable", func(_ *shelf, i *fill.Item) {
		i.Apply(noon, ledger.Postponed{Cause: ledger.Cause{Code: ledger.CauseCannotBeRead}})
	}},
	{ledger.SourceChanged, "kept-differs", "delivered-differs", "sent-differs", func(_ *shelf, i *fill.Item) {
		end(i)
		i.Apply(noon, ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged}})
	}},
	{ledger.ContradictedByService, "contradicted", "", "rejected-late", func(s *shelf, i *fill.Item) {
		end(i)
		if i.Route == ledger.Network {
			hear(i, noon, "TechnicalReject", "Undelivered")
			return
		}
		i.Apply(noon, fill.Seen(archive.RemoteID("bum-"+i.Name), archive.Failed, noon))
	}},
	{ledger.RefusedByRecipient, "", "", "rejected-by-recipient", func(_ *shelf, i *fill.Item) { end(i); hear(i, noon, "BusinessReject", "DocumentRejected") }},
	{ledger.AskedByService, "", "", "asked-by-service", func(_ *shelf, i *fill.Item) { end(i); hear(i, noon, "BusinessAccept", "RequestForEarlyPayment") }},
	{ledger.RecipientNotListed, "", "", "recipient-not-listed", func(_ *shelf, i *fill.Item) {
		i.Seal(noon)
		i.Apply(noon, ledger.Postponed{Cause: ledger.Cause{Code: ledger.CauseRecipientNotListed}})
	}},
	{ledger.CopyNotMade, "", "", "copy-waits", func(_ *shelf, i *fill.Item) {
		i.Send(noon)
		i.Apply(noon, ledger.CopyWanted{}, i.Accepted(), ledger.Postponed{Cause: ledger.Cause{Code: ledger.CauseCopyWaits}})
	}},
	{ledger.ArchivedTwice, "archived-twice", "", "", func(_ *shelf, i *fill.Item) {
		i.Send(noon)
		i.Apply(noon, ledger.UploadRefused{}, ledger.RegisterIntended{}, fill.Ticket("again", noon, ledger.Vault), ledger.UploadIntended{}, i.Accepted(),
			fill.Seen("again", archive.Successful, noon), fill.Seen(archive.RemoteID("bum-"+i.Name), archive.Successful, noon))
	}},
	{ledger.NotCompared, "not-compared", "", "", func(_ *shelf, i *fill.Item) {
		i.Send(noon)
		i.Apply(noon, ledger.UploadRefused{}, ledger.RegisterIntended{}, fill.Ticket("again", noon, ledger.Vault), ledger.UploadIntended{WithoutMD5: true}, ledger.UploadUnanswered{},
			fill.Seen("again", archive.Successful, noon))
		i.Place(noon, "_archived/2026-11/"+i.Name)
	}},
	{ledger.RepeatedNumber, "same-number", "", "", func(s *shelf, i *fill.Item) {
		first := s.ledger.Add(fill.Item{Name: "first", Change: func(ev *ledger.Sealed) { ev.Number = archive.NumberDigest{1} }})
		first.Archive(noon.Add(-2*time.Hour), time.Minute)
		i.Change = func(ev *ledger.Sealed) { ev.Number, ev.SameNumber = archive.NumberDigest{1}, first.Key }
		end(i)
	}},
	{ledger.StrangeDate, "strange-date", "", "", func(_ *shelf, i *fill.Item) {
		i.Change = func(ev *ledger.Sealed) { ev.StrangeDate = true }
		end(i)
	}},
	{ledger.LooksCutOff, "looks-cut-off", "looks-cut-off", "looks-cut-off", func(_ *shelf, i *fill.Item) {
		i.Change = func(ev *ledger.Sealed) { ev.LooksCutOff = true }
		end(i)
	}},
}

// end brings an item to its good end.
func end(i *fill.Item) {
	if i.Route.IsAsked() {
		i.Archive(noon.Add(-time.Hour), time.Minute)
		return
	}
	i.Deliver(noon.Add(-time.Hour), time.Minute)
}

// I12, I26: each class of what needs a person is told once, in words of the route that the drop takes: words of the archive, of PDFs and of the
// network do not mix.
func TestStatus_I12_I26_EveryClassByItsRoute(t *testing.T) {
	told := map[ledger.Attention]bool{}
	for _, row := range classes {
		for route, want := range map[ledger.Route]string{ledger.Vault: row.vault, ledger.PDF: row.pdf, ledger.Network: row.network} {
			if want == "" {
				continue
			}
			s := newShelf(t)
			s.withNetwork()
			s.edit("drops:\n", `pdf: {base_url: "https://vault.example", auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}}
drops:
  - {name: ap-scans, path: `+t.TempDir()+`, route: pdf, receiving: ap@in.example, notify: clerk@acme.example}
`)
			i := s.ledger.Add(fill.Item{Name: "Huber 88", Route: route})
			row.live(s, i)
			if class := i.Entry().Attention(); class != row.class {
				t.Errorf("%s: the entry is of class %d, not %d", route, class, row.class)
			}
			told[row.class] = true
			var needs []string
			for _, n := range s.summary().Needs {
				if n.What != "not-running" {
					needs = append(needs, fmt.Sprint(n.What, " ", n.Count))
				}
			}
			if text := strings.Join(needs, ", "); text != want+" 1" {
				t.Errorf("%s, class %d: needs %q, want %q", route, row.class, text, want+" 1")
			}
		}
	}
	for _, class := range ledger.AttentionClasses() {
		if !told[class] {
			t.Errorf("class %d is no class that status tells of", class)
		}
	}
}
