package archive

import (
	"fmt"
	"testing"

	"vaultd/internal/test/kit"
)

// Whom a document is for comes from its frozen metadata, whatever way it goes.
func TestReadReceiver(t *testing.T) {
	for want, metadata := range map[string][]byte{
		"ap@in.example": PDFRequest{Receiving: "ap@in.example", Notify: "x@in.example"}.Encode(),
		"Acme AG, 1, 2": Document{Type: "Invoice", RecipientName: "Acme AG", RecipientIDs: []string{"1", "2"}}.Metadata(),
		"4012345000009": Document{Type: "Invoice", RecipientIDs: []string{"4012345000009"}}.Metadata(),
		"":              nil,
	} {
		kit.Want(t, fmt.Sprint(metadata), kit.Value(ReadReceiver(metadata))(t).String(), want)
	}
	kit.Fails(t, "a list is metadata", kit.Err(ReadReceiver([]byte("[]"))))
}
