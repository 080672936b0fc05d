package recovery

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

// A PDF that a delivery note opened again is the same one to the ledger as the PDF that is dropped once more: a duplicate, and no other
// document with its identity.
func TestParseDelivery_I2_TheSameWhenItIsDroppedAgain(t *testing.T) {
	sum := archive.Sum([]byte("a PDF"))
	id := archive.DerivePDFID("AP@in.example", sum)
	note := proof.Delivery{Key: archive.NewKey(time.Now()).String(), Route: ledger.PDF, ID: id.String(), BumID: "b1", Receiving: "AP@in.example",
		Files: []proof.ReceiptFile{{Path: "scan1.pdf", Size: 5, SHA256: sum.String()}}, Sent: proof.ReceiptZIP{Size: 5, SHA256: sum.String()},
		Delivered: time.Now().UTC().Format(time.RFC3339Nano)}
	key, ev, doc, err := parseDelivery(note)
	kit.Must(t, err)
	ev.Drop, ev.Dest = "scans", "_delivered/2026-11/scan1.pdf"
	found, err := ledger.Transition(ledger.Entry{Key: key}, ev, archive.Instant{Wall: time.Now()})
	kit.Must(t, err)
	again := ledger.Sealed{ID: id, Content: sum, Metadata: archive.ReceivingDigest("ap@in.example"), Package: ev.Package}
	kit.Want(t, "the same PDF again", ledger.CompareIdentity(found, again, ledger.PDF, ""), ledger.Same)
	kit.Check(t, doc.Files[0].SHA256 == sum && ev.Seal == doc.Seal(ev.Package),
		"the note's file and seal were not taken over")
	for name, spoil := range map[string]func(*proof.Delivery){
		"NoReceiver": func(d *proof.Delivery) { d.Receiving = "" },
		"NoTime":     func(d *proof.Delivery) { d.Delivered = "" },
		"TwoFiles":   func(d *proof.Delivery) { d.Files = append(d.Files, d.Files[0]) },
		"NoDigest":   func(d *proof.Delivery) { d.Sent.SHA256 = "xyz" },
	} {
		t.Run(name, func(t *testing.T) {
			bad := note
			spoil(&bad)
			_, _, _, err := parseDelivery(bad)
			kit.Check(t, err != nil, "believed")
		})
	}
}
