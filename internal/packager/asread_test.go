package packager

import (
	"errors"
	"os"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// What can be read of a refused sidecar comes with the refusal, field by field and letter by letter.
func TestRefusal_KeepsWhatCanBeRead(t *testing.T) {
	long := strings.Repeat("x", archive.MaxAsRead)
	for name, row := range map[string]struct {
		sidecar string
		want    archive.AsRead
	}{
		"WrongDate": {`{"documentType": "Invoice", "documentId": "D1", "documentDate": "31.10.2026", "amount": 1234.56, "currencyCode": "EUR"}`,
			archive.AsRead{Type: "Invoice", Number: "D1", Date: "31.10.2026", Amount: "1234.56", Currency: "EUR"}},
		"WrongKinds": {`{"documentId": 4711, "documentDate": 20261031, "amount": "1\u00a0234,56 €", "senderIds": "DE1", "recipientIds": ["DE999", 7]}`,
			archive.AsRead{Number: "4711", Date: "20261031", Amount: "1 234,56 €", SenderIDs: "DE1", RecipientIDs: "DE999, 7"}},
		"NameInOtherCase":   {`{"documentID": "D1", "sendername": "Huber & Söhne", "RecipientName": "Acme"}`, archive.AsRead{Number: "D1", SenderName: "Huber & Söhne", RecipientName: "Acme"}},
		"NoText":            {`{"documentId": ["a", {"b": 1}], "documentDate": null, "senderName": true, "amount": {"value": 1}}`, archive.AsRead{}},
		"NotFitToBeShown":   {`{"documentId": "D1\u001b[2J", "senderName": "Huber\u202e88", "recipientName": "a\nb", "currencyCode": "\ufffd"}`, archive.AsRead{}},
		"TwiceAndDifferent": {`{"documentId": "D1", "documentId": "D2", "amount": 1, "Amount": 1}`, archive.AsRead{Amount: "1"}},
		"AsLongAsAllowed":   {`{"documentId": "` + long + `", "senderName": "` + long + `x"}`, archive.AsRead{Number: long}},
		"NoJSON":            {`{"documentId": "D1", "documentDate": 31.10.2026}`, archive.AsRead{}},
		"NoObject":          {`["documentId", "D1"]`, archive.AsRead{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, root := drop(t, tree{"metadata.json": row.sidecar, "rechnung.pdf": "%PDF"})
			_, err := ValidateFolder(t.Context(), root, Rules{Vault: "V", Defaults: map[string]any{"recipientName": "By default"}})
			refusal, is := errors.AsType[*Refusal](err)
			kit.Check(t, is && refusal.AsRead == row.want, "%v: %+v, want %+v", err, refusal, row.want)
		})
	}
}

// It does not matter what the folder is refused for; and what is packed says it, too, for it may be a duplicate.
func TestAsRead_OfEveryFolderWithASidecar(t *testing.T) {
	want := archive.AsRead{Type: "Invoice", Number: "2026-4711", Date: "2026-10-31", SenderName: "Müller & Söhne",
		RecipientIDs: "DE123456789", Amount: "1234.56", Currency: "EUR"}
	for name, row := range map[string]struct {
		spoil func(dir string) error
		rules Rules
	}{
		"Link":           {spoil: func(dir string) error { return os.Symlink("rechnung.pdf", dir+"/b.pdf") }},
		"TooLarge":       {spoil: func(dir string) error { return os.Truncate(dir+"/rechnung.pdf", 100_000_000_000) }},
		"PackedTooLarge": {rules: Rules{MaxSize: 100}},
		"NoInvoice":      {spoil: func(dir string) error { return os.Remove(dir + "/rechnung.pdf") }},
		"WrongRecipient": {rules: Rules{Require: map[string]any{"recipientIds": "DE123"}}},
		"Good":           {},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := drop(t, tree{"metadata.json": sidecar, "rechnung.pdf": "%PDF"})
			if row.spoil != nil {
				kit.Must(t, row.spoil(dir))
			}
			row.rules.Vault = "V"
			s, err := ValidateFolder(t.Context(), root, row.rules)
			got := s.AsRead
			if refusal, is := errors.AsType[*Refusal](err); is {
				got = refusal.AsRead
			}
			kit.Check(t, (err == nil) == (name == "Good") && got == want, "%v: %+v, want %+v", err, got, want)
		})
	}
}
