package archive

import (
	"testing"

	"vaultd/internal/test/kit"
)

// I10: the body of the request, and the identity of a PDF, are the same for ever.
func TestPDF_I10_IsFixedForEver(t *testing.T) {
	got := string(PDFRequest{Receiving: "ap+o'neill&co@in.example", Notify: "clerk@acme.example"}.Encode())
	if want := `{"receivingEmailAddress":"ap+o'neill&co@in.example","notificationEmailAddress":"clerk@acme.example"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	content := Sum([]byte("%PDF-1.7 %%EOF"))
	id := DerivePDFID("ap@in.example", content)
	kit.Want(t, "derived", "135ecb7a-01f3-53a7-9c9b-d48b785dbcae", id.String())
	if DerivePDFID("AP@IN.example", content) != id || ReceivingDigest("AP@IN.example") != ReceivingDigest("ap@in.example") {
		t.Error("the case of the address makes another mailbox")
	}
	for name, other := range map[string]ID{
		"Address": DerivePDFID("ap2@in.example", content), "Content": DerivePDFID("ap@in.example", Sum(nil)),
		"Vault": DeriveID("pdf", content, ReceivingDigest("ap@in.example")),
	} {
		kit.Check(t, other != id, "%s is no part of the identity", name)
	}
}
