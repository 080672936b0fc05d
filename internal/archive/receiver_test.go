package archive

import "testing"

// Whom a document is for comes from its frozen metadata, whatever way it goes.
func TestReadReceiver(t *testing.T) {
	for want, metadata := range map[string][]byte{
		"ap@in.example": PDFRequest{Receiving: "ap@in.example", Notify: "x@in.example"}.Encode(),
		"Acme AG, 1, 2": Document{Type: "Invoice", RecipientName: "Acme AG", RecipientIDs: []string{"1", "2"}}.Metadata(),
		"4012345000009": Document{Type: "Invoice", RecipientIDs: []string{"4012345000009"}}.Metadata(),
		"":              nil,
	} {
		if got, err := ReadReceiver(metadata); err != nil || got.String() != want {
			t.Errorf("%s: %q, %v, want no error, got.String() = %v", metadata, got, err, want)
		}
	}
	if _, err := ReadReceiver([]byte("[]")); err == nil {
		t.Error("a list is metadata")
	}
}
