package main_test

import (
	"vaultd/internal/test/kit"

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
