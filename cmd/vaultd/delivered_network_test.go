package main

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

// I12: what the commands say of a document of the business network, when a person acts on it, takes its delivery note or tries the demo, is true of
// such a document alone.
func TestNetwork_I12_CommandsSpeakOfNothingElse(t *testing.T) {
	c := present.Clock{Now: noon, Location: time.UTC}
	e := ledger.Entry{Key: archive.Key{1}, Route: ledger.Network, Drop: "out", Folder: "Huber 88", State: ledger.Delivered, Source: ledger.Kept, SeenAt: noon, RegisteredAt: noon, UploadedAt: noon, PossibleDouble: true,
		Means: ledger.MailDelivery, Recipient: ledger.RecipientAccepted, Contradicted: true, Body: archive.Digest{2}, Package: archive.Package{Size: 9, SHA256: archive.Digest{1}},
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "number-1"}, Fate: ledger.Succeeded}}}
	note, err := proof.NewDelivery("production", e, ledger.Document{Metadata: archive.Document{Type: "Invoice", RecipientName: "Acme AG", RecipientIDs: []string{"1234567890123"}}.Metadata()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	page := string(deliveryPage(c, e, note))
	for _, want := range []string{"The business network says that it delivered the document", "Acme AG, 1234567890123", "by letter", "the recipient accepted it", "number-1 (bumId)", "rejected it after it had delivered it", "possibly sent twice"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in:\n%s", want, page)
		}
	}
	texts := []string{page, demoWhy(e)}
	rejected, sending, doubtful := e, e, e
	rejected.State, rejected.InDoubt = ledger.Rejected, true
	sending.State = ledger.Packaged
	doubtful.State = ledger.Quarantined
	resolved, certain, duplicate := e, sending, e
	resolved.Resolved, certain.PossibleDouble, duplicate.State = true, false, ledger.Duplicate
	texts = append(texts, closeAct().done(doubtful, rejected), closeAct().done(e, resolved), releaseAct().done(doubtful, sending), releaseAct().done(doubtful, certain), demoWhy(duplicate))
	for _, text := range texts {
		for _, word := range []string{"archiv", "pdf", "accounts-payable", "zip", "clientuuid"} {
			if strings.Contains(strings.ToLower(text), word) {
				t.Errorf("it says %q: %s", word, text)
			}
		}
		if text == "" {
			t.Error("nothing is said")
		}
	}
}

// I12: what needs a person is counted by the route of the drop that it came from: words of the archive, of PDFs and of the network do not mix.
func TestStatus_I12_CountsByRoute(t *testing.T) {
	n := &entryCounts{routes: map[string]ledger.Route{"out": ledger.Network, "ap-scans": ledger.PDF, "acme-in": ledger.Vault}}
	class := func(a ledger.Attention) attentionClass {
		for _, c := range n.attentionClasses() {
			if c.class == a {
				return c
			}
		}
		t.Fatalf("%d is no class that status tells of", a)
		return attentionClass{}
	}
	for _, row := range []struct {
		drop  string
		vault archive.VaultID
		class ledger.Attention
		want  *present.NamedCount
	}{
		{"acme-in", "V", ledger.SourceChanged, &n.KeptDiffers}, {"ap-scans", "", ledger.SourceChanged, &n.DeliveredDiffers}, {"gone", "", ledger.SourceChanged, &n.DeliveredDiffers},
		{"out", "", ledger.SourceChanged, &n.SentDiffers}, {"out", "", ledger.ContradictedByService, &n.RejectedLate}, {"acme-in", "V", ledger.ContradictedByService, &n.Contradicted},
		{"out", "", ledger.RefusedByRecipient, &n.RejectedByRecipient}, {"out", "V", ledger.ContradictedByService, &n.Contradicted}, {"out", "", ledger.InQuarantine, &n.Quarantined},
	} {
		if got := n.countFor(class(row.class), n.routeOf(row.drop, row.vault)); got != row.want {
			t.Errorf("%s, vault %q, class %d counts elsewhere", row.drop, row.vault, row.class)
		}
	}
}

// I26: status counts each class of entries that need a person or are on their way, in a count that metrics and needs know.
func TestStatus_I26_CountsEveryClass(t *testing.T) {
	told := map[ledger.Attention]bool{}
	for _, r := range []ledger.Route{ledger.Vault, ledger.PDF, ledger.Network} {
		n := &entryCounts{}
		for _, c := range n.attentionClasses() {
			before := sumOf(n.ByName())
			n.countFor(c, r).Count++
			if sumOf(n.ByName()) != before+1 {
				t.Errorf("%s, class %d: it counts where no metric tells it", r, c.class)
			}
			told[c.class] = true
		}
		s := present.StatusSummary{Attention: n.AttentionCounts}
		s.Balance.Agrees = true
		s.AddNeeds(present.Clock{Location: time.UTC})
		needs := 0
		for _, need := range s.Needs {
			needs += need.Count
		}
		if needs != sumOf(n.ByName()) {
			t.Errorf("%s: %d counted, and %d told as needs: %+v", r, sumOf(n.ByName()), needs, s.Needs)
		}
	}
	for _, class := range ledger.AttentionClasses() {
		if !told[class] {
			t.Errorf("class %d is no class that status tells of", class)
		}
	}
}

func sumOf(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}
