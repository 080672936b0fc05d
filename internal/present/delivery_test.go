package present

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// pdfStates are the states that a PDF can be in.
var pdfStates = []ledger.State{ledger.Discovered, ledger.Packaged, ledger.Registering, ledger.Registered, ledger.Sending, ledger.Delivered, ledger.Duplicate, ledger.Rejected, ledger.Quarantined}

// A PDF of which nobody knows whether it was delivered: why says so, where to look, and what each decision does.
func TestDelivery_I2_UnknownSaysWhatToDo(t *testing.T) {
	e := ledger.Entry{Key: archive.Key{1}, Route: ledger.PDF, Drop: "ap-scans", Folder: "scan7.pdf", State: ledger.Quarantined, Source: ledger.Claimed, Cause: ledger.DeliveryUnknown(ledger.PDF, "the upload was never answered"),
		Package: archive.Package{Size: 1, SHA256: archive.Digest{1}}, Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "slot-1"}, Fate: ledger.MaybeStored}}}
	c := Clock{Now: noon, Location: time.UTC}
	w := Situation{Clock: c}.Explain(Dossier{Entry: e})
	kit.Check(t, w.Route == "pdf" && len(w.Evidence) == 0, `%+v, want w.Route = "pdf", len(w.Evidence) = 0`, w)
	text := string(w.Text(c))
	kit.Holds(t, "the text", text, "Because       delivery unknown", "look for it in the accounts-payable system", "its number is bumId slot-1", "send it again (possibly processed twice)\n      vaultd release", "it is there, or you give it up", "vaultd close")
}

// A list's row says by which route an entry goes. A delivered one has the time of its delivery, and none of an upload.
func TestDelivery_RowHasItsOwnTime(t *testing.T) {
	for _, row := range []struct {
		e                   ledger.Entry
		route               string
		uploaded, delivered bool
	}{
		{ledger.Entry{Route: ledger.PDF, State: ledger.Delivered, UploadedAt: noon}, "pdf", false, true},
		{ledger.Entry{Route: ledger.Vault, State: ledger.Archived, UploadedAt: noon, ArchivedAt: noon}, "vault", true, false},
		{ledger.Entry{State: ledger.Uploaded, UploadedAt: noon}, "vault", true, false}, // of a ledger that knew one route
	} {
		r := NewListRow(Clock{Now: noon, Location: time.UTC}, row.e, Details{})
		if r.Route != row.route || (r.UploadedAt != nil) != row.uploaded || (r.DeliveredAt != nil) != row.delivered || row.delivered && r.ArchivedAt != nil {
			t.Errorf("%s: %+v", row.e.State, r)
		}
	}
}
