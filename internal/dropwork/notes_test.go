package dropwork

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

func networkMover() *Mover {
	return &Mover{&Handle{Settings: Settings{Name: "out", Route: ledger.Network}, shared: &Shared{Environment: "production", Location: time.UTC}}}
}

// I12: what a person reads beside a document of the business network says what became of it: it was never sent, or the network had it and did
// not deliver it, or nobody knows. It is a folder, and nothing of it is in an archive.
func TestNotes_I12_OfNetworkDocuments(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	base := ledger.Entry{Key: archive.Key{1}, Route: ledger.Network, Drop: "out", Folder: "Huber 88", State: ledger.Rejected}
	for name, row := range map[string]struct {
		change func(e *ledger.Entry)
		want   string
	}{
		"RefusedByUs": {func(e *ledger.Entry) {
			e.Cause.Text = "NOT SENT. document.json: no recipient. Write one, then move this whole folder back"
		}, "NOT SENT. document.json: no recipient. Write one, then move this whole folder back to out (where _STATUS.txt lies)\n"},
		"RefusedAtOnce": {func(e *ledger.Entry) { e.Cause.Text = "The business network refuses the IBAN." },
			"NOT SENT. The business network refuses the IBAN.\nPut it right, then move this whole folder back to out (where _STATUS.txt lies).\n"},
		"Undelivered": {func(e *ledger.Entry) { e.UploadedAt, e.Cause.Text = at, "The recipient's system refuses it." },
			"NOT DELIVERED. The recipient's system refuses it.\nPut it right, then move this whole folder back to out (where _STATUS.txt lies).\n"},
		"ClosedInDoubt": {func(e *ledger.Entry) {
			e.InDoubt, e.Cause = true, ledger.DeliveryUnknown("the ledger was put back")
		},
			"CLOSED IN DOUBT. Nobody could tell whether this was delivered. Ask IT before it is dropped again.\nthe ledger was put back, and the business network cannot be asked."},
	} {
		e := base
		row.change(&e)
		text := networkMover().rejectionText(e)
		checkNetworkWords(t, name, text)
		kit.Check(t, text == row.want || (name == "ClosedInDoubt" && strings.HasPrefix(text, row.want)),
			"%s: text = %q, want %q", name, text, row.want)
	}
}

// I12: the delivery note of a network document says when and how it was delivered, to whom, and that this is not the very last word.
func TestNotes_I12_OfADeliveredNetworkDocument(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	e := ledger.Entry{Key: archive.Key{1}, Route: ledger.Network, Drop: "out", Folder: "Huber 88", State: ledger.Delivered, UploadedAt: at, PossibleDouble: true, Means: ledger.EmailDelivery,
		Body: archive.Digest{2}, StoredFiles: []archive.FileID{"f-1"}, Package: archive.Package{Size: 100, SHA256: archive.Digest{1}},
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "number-1"}, Fate: ledger.Succeeded}}}
	doc := ledger.Document{Metadata: archive.Document{Type: "Invoice", RecipientName: "Acme AG", RecipientIDs: []string{"1234567890123"}}.Metadata(), Files: []archive.File{{Path: "document.json", Size: 60}, {Path: "scan.tif", Size: 40}}}
	differs := []drop.Difference{{Path: "scan.tif", What: "was not sent"}}
	m := networkMover()
	m.shared.Ledger = fill.New(t, boltledger.Config{}, ledger.Info{ID: "L", Environment: "test", Created: at}).Ledger
	files, err := m.composeNotes(e, doc, differs)
	if err != nil || len(files) != 2 || files[0].Name != "_DELIVERED.json" || files[1].Name != "_DELIVERED.txt" {
		t.Fatalf("files = %v (error %v), want the record and the note", files, err)
	}
	text := string(files[1].Data)
	kit.Holds(t, "the text", text, "DELIVERED. The business network has delivered this document to its recipient", "may still reject it some days later", "It may have been sent twice", "Delivered       20 Nov 2026 09:00:00 UTC",
		"To              Acme AG, 1234567890123", "Means           by e-mail", "Number          number-1   (bumId)", "File            document.json, 60 bytes", "scan.tif was not sent")
	checkNetworkWords(t, "DELIVERED", text)
	note, err := proof.ParseDelivery(files[0].Data)
	if err != nil || note.Route != ledger.Network || note.Receiver() != "Acme AG, 1234567890123" || note.Body != e.Body.String() || len(note.StoredFiles) != 1 || note.Means != ledger.EmailDelivery || len(note.Differs) != 1 {
		t.Errorf("record = %+v (error %v), want the delivery to Acme by e-mail, with one difference", note, err)
	}
	kit.Holds(t, "the text", differencesCause(ledger.Network, differs).Text, "what was packed is what was sent")
}

func checkNetworkWords(t *testing.T, name, text string) {
	t.Helper()
	for _, word := range []string{"archiv", "pdf", "zip", "accounts-payable", "clientuuid", "metadata.json"} {
		kit.Lacks(t, name, strings.ToLower(text), word)
	}
}

func TestDifferencesCause_NamesAFew(t *testing.T) {
	var many []drop.Difference
	for i := range 7 {
		many = append(many, drop.Difference{Path: fmt.Sprint(i, ".pdf"), What: "was not archived"})
	}
	text := differencesCause(ledger.Vault, many).Text
	kit.Holds(t, "cause", text, `"4.pdf" was not archived; and 2 more (list `)
	kit.Lacks(t, "cause", text, "5.pdf")
}

// A name leaves entries alone that an operator must decide about.
func TestReturned_WhatOnlyAPersonResolves(t *testing.T) {
	ok := ledger.Entry{State: ledger.Rejected, Source: ledger.Returned}
	kit.Check(t, isCorrectable(ok), "a plain rejection cannot be corrected, want it correctable")
	for name, change := range map[string]func(e *ledger.Entry){
		"InDoubt":      func(e *ledger.Entry) { e.InDoubt = true },
		"Contradicted": func(e *ledger.Entry) { e.Contradicted = true },
		"Resolved":     func(e *ledger.Entry) { e.Resolved = true },
		"OnHold":       func(e *ledger.Entry) { e.Hold = true },
		"QuestionOpen": func(e *ledger.Entry) {
			e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "b"}, Fate: ledger.MaybeStored}}
		},
		"NotReturned": func(e *ledger.Entry) { e.Source = ledger.Claimed },
		"Quarantined": func(e *ledger.Entry) { e.State = ledger.Quarantined },
		"Duplicate":   func(e *ledger.Entry) { e.State = ledger.Duplicate },
	} {
		e := ok
		if change(&e); isCorrectable(e) {
			t.Errorf("%s: correctable by dropping it again, want not", name)
		}
	}
}

// The files of a copy keep their names, unless the drop folder or a system
// would take that for something else. Each gets its own name.
func TestCopyNames(t *testing.T) {
	n := newCopyNames("metadata.json")
	for _, row := range []struct{ name, want string }{
		{"document.json", "document.json"}, {"Rechnung Müller 4711.pdf", "Rechnung Müller 4711.pdf"}, {"rechnung müller 4711.PDF", "2 rechnung müller 4711.PDF"},
		{"Metadata.json", "2 Metadata.json"}, {"a:b?.pdf", "file a_b_.pdf"}, {"~x.pdf", "file ~x.pdf"}, {"a\u0308.pdf", "ä.pdf"}, {"tab\t.xml", "file tab_.xml"}, {" x.pdf", "file  x.pdf"},
		{strings.Repeat("ü", 130) + ".pdf", strings.Repeat("ü", 98) + ".pdf"}, {strings.Repeat("ü", 120) + ".pdf", "2 " + strings.Repeat("ü", 98) + ".pdf"},
	} {
		got := n.choose(row.name)
		kit.Check(t, got == row.want && drop.IsPlainName(got), "%q becomes %q, not %q", row.name, got, row.want)
	}
	kit.Want(t, "number of names", len(n.all), 11)
}

// The code of a refusal is one plain word, whatever the refusal says.
func FuzzCodeOf(f *testing.F) {
	for _, s := range []string{"Müller 4711", "a\nb", "\x1b[2J", "\xff", "../x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if code := codeOf(s); strings.Trim(code, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") != "" {
			t.Errorf("code of %q = %q, want only letters, digits, _, . and -", s, code)
		}
	})
}

// I12, I15: a ledger that was restored or rebuilt knows other times of a document
// than its receipt. A signed receipt is recognised all the same; an unsigned one
// only where the ledger knows the document from it and from the archive alone.
func TestLook_I12_AReceiptOfAnEarlierLedger(t *testing.T) {
	l := fill.New(t, boltledger.Config{}, ledger.Info{})
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	e, stranger := l.Item("Huber 88").Archive(at, 0), fill.New(t, boltledger.Config{}, ledger.Info{ID: "L-9"})
	doc, _, err := l.Document(e.Key)
	kit.Must(t, err)
	then, err := proof.NewReceipt("test", e, doc, nil)
	kit.Must(t, err)
	recovered := e
	recovered.SeenAt, recovered.RegisteredAt, recovered.UploadedAt, recovered.SuccessRecord = at.Add(time.Hour), time.Time{}, time.Time{}, []byte("{}")
	other := then
	other.Key = archive.Key{9}.String()
	signed := proof.Sign(then.Encode(), l)
	d := &Drop{Handle: &Handle{Settings: Settings{Name: "in"}, shared: &Shared{Environment: "test", Ledger: l.Ledger, Location: time.UTC}}}
	for name, row := range map[string]struct {
		entry ledger.Entry
		text  []byte
		same  bool
	}{
		"Signed":              {e, signed, true},
		"SignedAndRecovered":  {recovered, signed, true},
		"Unsigned":            {e, then.Encode(), false},
		"UnsignedRecovered":   {recovered, then.Encode(), true},
		"AKeyTwice":           {recovered, bytes.Replace(then.Encode(), []byte(`  "key": `), []byte("  \"key\": \"other\",\n  \"key\": "), 1), false},
		"ByAnotherKey":        {e, proof.Sign(then.Encode(), stranger), false},
		"ChangedAndRecovered": {recovered, bytes.Replace(signed, []byte("2026"), []byte("2025"), 1), false},
		"OfAnotherEntry":      {recovered, proof.Sign(other.Encode(), l), false},
	} {
		same, _, err := d.matchNote(row.entry, doc, row.text)
		kit.Must(t, err)
		kit.Want(t, name, same, row.same)
	}
}

// The room for a folder that cannot be read to its end is that of the largest package.
func TestLargestPackage_I21_Unreadable(t *testing.T) {
	root := kit.Value(os.OpenRoot(t.TempDir()))(t)
	kit.Must(t, root.Close())
	kit.Want(t, "the bytes", largestPackage(root), archive.MaxPackage)
}
