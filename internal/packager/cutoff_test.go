package packager

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// A file that looks cut off makes a folder wait that changed just now, and no other: it is never a reason to refuse one.
func TestHint_CutOffWaitsAndIsThenTaken(t *testing.T) {
	long := strings.Repeat("x", 5000)
	type row struct {
		file, content string
		waits         bool
	}
	kit.Rows(t, map[string]row{
		"PDF":           {"a.pdf", "%PDF-1.7 " + long + "\nstartxref\n1\n%%EOF\n", false},
		"PDFCut":        {"a.pdf", "%PDF-1.7 " + long, true},
		"PDFNamedDat":   {"a.dat", "%PDF-1.7 " + long, true},
		"NoPDF":         {"a.pdf", "scanned", false},
		"ZIP":           {"a.xlsx", "PK\x03\x04" + long + "PK\x05\x06" + strings.Repeat("\x00", 18), false},
		"ZIPCut":        {"a.xlsx", "PK\x03\x04" + long, true},
		"XML":           {"a.xml", "\ufeff<?xml version=\"1.0\"?><a>" + long + "</a>\r\n", false},
		"XMLCutInText":  {"a.XML", "<a>" + long, true},
		"XMLCutInTag":   {"a.xml", "<a>" + long + "</", true},
		"ShorterThanIt": {"a.pdf", "%PDF", false},
	}, func(t *testing.T, row row) {
		dir := t.TempDir()
		for file, content := range map[string]string{row.file: row.content, "metadata.json": `{"documentType": "Invoice", "documentId": "1", "documentDate": "2026-10-31"}`} {
			kit.Must(t, os.WriteFile(dir+"/"+file, []byte(content), 0o600))
		}
		root := kit.Value(os.OpenRoot(dir))(t)
		defer root.Close()
		rules := Rules{Vault: "V", CutOffPatience: 5 * time.Minute, Now: time.Now}
		_, err := ValidateFolder(t.Context(), root, rules)
		kit.Check(t, errors.Is(err, archive.ErrChanged) == row.waits && (err == nil || row.waits), "%v", err)
		rules.Now = func() time.Time { return time.Now().Add(6 * time.Minute) }
		kit.Want(t, "for ever", kit.Err(ValidateFolder(t.Context(), root, rules)), nil)
		rules.Now = func() time.Time { return time.Now().Add(-time.Hour) } // the file server's clock is ahead
		kit.Want(t, "clock behind", kit.Err(ValidateFolder(t.Context(), root, rules)), nil)
	})
}

// I4: what looks cut off is packed and named, on each route, small or large. A
// file whose SHA-256 a list gives is taken at its word.
func TestEndings_I4_OfEachRoute(t *testing.T) {
	const meta = `{"documentType": "Invoice", "documentId": "1", "documentDate": "2026-10-31"}`
	cut, large := "%PDF-1.7\nhalf", "%PDF-1.7\n"+strings.Repeat("x", 2*maxHeld)
	for name, row := range map[string]struct {
		files tree
		short string
	}{
		"Small":   {tree{"metadata.json": meta, "a.pdf": cut, "b.txt": "b"}, "a.pdf"},
		"Large":   {tree{"metadata.json": meta, "a.pdf": large, "sub/b.csv": "a;b\n" + strings.Repeat("\x00", 2*maxHeld)}, "a.pdf sub/b.csv"},
		"Vouched": {tree{"metadata.json": meta, "a.pdf": cut, "b.pdf": cut, "manifest-sha256.txt": digestOf(cut) + "  a.pdf\n"}, "b.pdf"},
		"Whole":   {tree{"metadata.json": meta, "a.pdf": goodPDF}, ""},
	} {
		_, root := drop(t, row.files)
		s := kit.Value(ValidateFolder(t.Context(), root, rules))(t)
		kit.Want(t, name, strings.Join(s.Endings.Short, " "), row.short)
		kit.Want(t, name+" has remarks", len(s.Endings.Remarks()), len(strings.Fields(row.short)))
	}
	_, root := drop(t, tree{"document.json": networkDocument, "a.pdf": cut})
	n, _, err := sealNetwork(t, root, networkRules, nil)
	kit.Must(t, err)
	kit.Want(t, "of the network", strings.Join(n.Endings.Short, " "), "a.pdf")
	_, root = drop(t, tree{"a.pdf": cut})
	p, _, err := copyPDF(t, root, pdfRules, nil)
	kit.Must(t, err)
	kit.Want(t, "single PDF", strings.Join(p.Endings.Remarks(), " "), "a.pdf looks cut off")
	many := Endings{Short: strings.Fields(strings.Repeat("a.pdf ", 100))}
	kit.Want(t, "remarks of many files", len(many.Remarks()), mostRemarks+1)
}

// What can be read of a refused sidecar comes with the refusal, field by field and letter by letter.
func TestRefusal_KeepsWhatCanBeRead(t *testing.T) {
	long := strings.Repeat("x", archive.MaxAsRead)
	type row struct {
		sidecar string
		want    archive.AsRead
	}
	kit.Rows(t, map[string]row{
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
	}, func(t *testing.T, row row) {
		_, root := drop(t, tree{"metadata.json": row.sidecar, "rechnung.pdf": "%PDF"})
		_, err := ValidateFolder(t.Context(), root, Rules{Vault: "V", Defaults: map[string]any{"recipientName": "By default"}})
		refusal, is := errors.AsType[*Refusal](err)
		kit.Check(t, is && refusal.AsRead == row.want, "%v: %+v, want %+v", err, refusal, row.want)
	})
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
