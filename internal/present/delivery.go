package present

import (
	"encoding/json"
	"fmt"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// The words of the route whose service says nothing after it has a document. Nothing there is called archived.

// deliveryMeans says in one sentence what is certain in each state of a PDF.
var deliveryMeans = map[ledger.State]string{
	ledger.Discovered:  "Taken from the drop folder; it is checked and copied as soon as it has not changed for a while.",
	ledger.Packaged:    "Checked and copied; it waits for an upload address.",
	ledger.Registering: "An upload address was asked for; the answer is not known yet.",
	ledger.Registered:  "It has an upload address; nothing of it has been sent yet.",
	ledger.Sending:     "Being sent; the accounts-payable system may have parts of it, or all.",
	ledger.Delivered:   "The accounts-payable system has taken all of it, and says nothing more. Delivered is not archived.",
	ledger.Duplicate:   "The same PDF was delivered already; nothing was sent and there is nothing to do.",
	ledger.Rejected:    "Not sent; certainly nothing of it was delivered.",
	ledger.Quarantined: "Stopped: it cannot go on by itself, and it may have been delivered. A person must decide.",
}

// deliveryInDoubt is what is certain of a PDF that was closed in doubt.
const deliveryInDoubt = "Closed in doubt by a person: it may have been delivered all the same."

// deliverySteps say what is done to a PDF next.
var deliverySteps = map[ledger.Step]string{
	ledger.Seal: "check and copy it", ledger.Register: "ask for an upload address", ledger.Upload: "send it",
	ledger.Place: "move the file to its place", ledger.Dispose: "remove the kept file",
}

// explainDeliveryFate says what is known about the content of one upload slot.
func explainDeliveryFate(f ledger.Fate) string {
	switch f {
	case ledger.MaybeStored, ledger.Stored:
		return "it may have been delivered"
	case ledger.Succeeded:
		return "delivered"
	case ledger.Lapsed:
		return "over, and nothing was delivered"
	case ledger.Unsent, ledger.Declined:
	}
	return fateText(f)
}

// deliveryFields gives the addresses of a PDF, by the names of the service.
func deliveryFields(doc ledger.Document) (set []Field, err error) {
	if len(doc.Metadata) == 0 {
		return nil, nil
	}
	var to struct {
		Receiving string `json:"receivingEmailAddress"`
		Notified  string `json:"notificationEmailAddress"`
	}
	if err := json.Unmarshal(doc.Metadata, &to); err != nil {
		return nil, fmt.Errorf("read the addresses of a PDF: %w", err)
	}
	for _, f := range []Field{{"receivingEmailAddress", to.Receiving}, {"notificationEmailAddress", to.Notified}} {
		if f.Value != "" {
			set = append(set, f)
		}
	}
	return set, nil
}

// addOptionsUndelivered adds what can be done about a PDF that cannot go on before a person has looked whether it was delivered.
func addOptionsUndelivered(e ledger.Entry, add func(what, command string)) {
	for _, r := range e.Registrations {
		if r.Fate == ledger.MaybeStored || r.Fate == ledger.Stored {
			add("look for it in the accounts-payable system: nobody else can tell whether it was delivered; its number is bumId "+sanitize.Text(string(r.Ticket.Remote)), "")
			return
		}
	}
	add("look for it in the accounts-payable system: nobody else can tell whether it was delivered", "")
}
