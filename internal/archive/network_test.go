package archive

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I8: the number of a document that is sent is made of its parts alone, has the form that the network takes, and no two lists of
// parts share one.
func TestNewBumID_I8_OneNumberForOneDocument(t *testing.T) {
	seen := map[RemoteID]string{}
	for _, parts := range [][]string{{}, {""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab"}, {"1:a"}, {"b", "a"}, {"A"}, {strings.Repeat("x", 1000)}} {
		id := NewBumID(parts...)
		kit.Check(t, id == NewBumID(parts...) && id.IsBumID() && string(id) == strings.ToLower(string(id)),
			"%q gives %q", parts, id)
		had, twice := seen[id]
		kit.Check(t, !twice, "%q and %s share a number", parts, had)
		seen[id] = fmt.Sprintf("%q", parts)
	}
	// The number of a document never changes: it may have been sent.
	kit.Want(t, "got", NewBumID("drop", "1"), "2c130000-bf6e-58f8-a876-dc22e2ca1371")
}

func TestIsBumID(t *testing.T) {
	for id, want := range map[RemoteID]bool{
		"10d90000-0000-1000-8000-00000000000a": true, "10d90000-0000-5000-bfff-00000000000a": true,
		"10d90000-0000-7000-8000-00000000000a": false, "10d90000-0000-0000-8000-00000000000a": false, "10d90000-0000-4000-7000-00000000000a": false,
		"10D90000-0000-4000-8000-00000000000a": false, "10d90000-0000-4000-8000-00000000000a\n": false, "": false, "54759eb3c090d83494e2d804": false,
	} {
		kit.Check(t, id.IsBumID() == want, "%q: %v, want id.IsBumID() = %v", id, !want, want)
	}
}

func TestNetworkWords(t *testing.T) {
	for word, want := range map[string]NetworkKind{"Invoice": NetworkInvoice, "CreditNote": NetworkCreditNote, "CreditNode": NetworkCreditNote, "invoice": "", "Order": "", "": ""} {
		kit.Want(t, word, ParseNetworkKind(word), want)
	}
	kit.Check(t, NetworkInvoice.NotificationWord() == "Invoice" && NetworkCreditNote.NotificationWord() == "CreditNode",
		"a kind has another word in notifications")
	kit.Check(t, ImageFile.IsKnown() && AttachmentFile.IsKnown() && DataFile.IsKnown() && !FileType("image").IsKnown() && !FileType("").IsKnown(),
		"the types of files are others")
	n := Notification{Properties: []NamedValue{{"a", "1"}, {"a", "2"}}}
	kit.Check(t, n.Property("a") == "1" && n.Property("b") == "", "a property has another value")
}

// I7: an address may carry its own authority, so a notification does not print it.
func TestNotification_I7_HidesAddresses(t *testing.T) {
	n := Notification{Links: []Link{{Relation: "file", Address: "https://b.example/k?X-Amz-Signature=canary"}}}
	kit.Lacks(t, "the text", fmt.Sprintf("%v %+v %#v", n, n, n.Links[0].Address), "canary")
}

func FuzzNetworkNumbers(f *testing.F) {
	for _, s := range []string{"54759eb3c090d83494e2d804", "a/b", "..", "", "x\n", "%2e", strings.Repeat("a", 201)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		file, errFile := ParseFileID(s)
		ack, errAck := ParseAcknowledgementID(s)
		if (errFile == nil) != (errAck == nil) || errFile == nil && (string(file) != s || string(ack) != s || len(s) > 200 || strings.ContainsAny(s, "/\\?#% \n")) {
			t.Errorf("%q: %q, %q", s, file, ack)
		}
	})
}

// I10: the identity of a document for the network follows from its files and its own bytes, and no document of another route has it.
func TestDeriveNetworkID_I10(t *testing.T) {
	file, document := []File{{Path: "a.pdf", Size: 1, SHA256: Sum([]byte("a"))}}, Sum([]byte("{}"))
	content := NetworkContent(file, document)
	id := DeriveNetworkID(content, document)
	kit.Check(t, id.String() == "238a5aa7-a9ba-519d-b46f-5406e9502e85",
		"the identity of a document that was sent before has changed: %s", id)
	others := map[string]ID{
		"OtherDocument": DeriveNetworkID(content, Sum([]byte("{ }"))), "OtherFiles": DeriveNetworkID(NetworkContent(nil, document), document),
		"VaultOfThatName": DeriveID("network", content, document), "Swapped": DeriveNetworkID(document, content),
	}
	for name, other := range others {
		kit.Check(t, other != id, "%v:, want other other than %v", name, id)
	}
	switch {
	case content != NetworkContent(file, Sum([]byte("{ }"))):
		t.Error("the same files have another digest beside another document")
	case content == ContentDigest(file):
		t.Error("an invoice that is archived too would be told of as having the same files")
	case NetworkContent(nil, document) == NetworkContent(nil, Sum([]byte("{ }"))):
		t.Error("two documents without files have the same files")
	}
}
