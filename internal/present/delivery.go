package present

import (
	"encoding/json"
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// deliveryFields gives the addresses that a single PDF is sent with, by the names of the service. Any other document names its recipient in its
// metadata.
func deliveryFields(doc ledger.Document) (set []Field, err error) {
	if len(doc.Metadata) == 0 {
		return nil, nil
	}
	var sent archive.PDFRequest
	if err := json.Unmarshal(doc.Metadata, &sent); err != nil {
		return nil, fmt.Errorf("read the addresses of a document: %w", err)
	}
	for _, f := range []Field{{"receivingEmailAddress", sent.Receiving}, {"notificationEmailAddress", sent.Notify}} {
		if f.Value != "" {
			set = append(set, f)
		}
	}
	return set, nil
}

// readRecipient gives whom a document is for: by its metadata, or by what was read of a document that was refused.
func readRecipient(doc ledger.Document, meta archive.Document) (string, error) {
	if read := doc.AsRead; !read.IsZero() {
		return archive.Receiver{Name: read.RecipientName, IDs: []string{read.RecipientIDs}}.String(), nil
	}
	if to := meta.Receiver().String(); to != "" {
		return to, nil
	}
	to, err := archive.ReadReceiver(doc.Metadata)
	return to.String(), err
}
