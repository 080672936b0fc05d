package proof

import (
	"maps"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// I2, I4, I12: what is delivered lies in the recorded slot, whole and with the recorded bytes, in no second one, and nothing lies there of
// which the ledger says that it is not there.
func TestCheck_I12_SlotsOfWhatIsDelivered(t *testing.T) {
	whole := StoredUpload{SHA256: seal(1).Package.SHA256, Size: seal(1).Package.Size}
	torn, other := whole, whole
	torn.Torn, other.SHA256 = true, archive.Digest{77}
	begin := func(b *book, remote archive.RemoteID) {
		b.do(1, ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: "https://store.example/x", Validity: time.Hour}})
	}
	send := func(b *book) { b.do(1, ledger.UploadIntended{}) }
	deliver := func(b *book) {
		send(b)
		b.do(1, ledger.DeliveryConfirmed{Sent: seal(1).Package.SHA256, Seal: seal(1).Seal})
	}
	doubt := func(b *book) {
		send(b)
		b.do(1, ledger.SentToQuarantine{Cause: ledger.DeliveryUnknown(ledger.PDF, "no answer")})
	}
	for name, row := range map[string]struct {
		promise string // empty: all is well
		then    func(b *book)
		slots   []Slot
	}{
		"Delivered":         {"", deliver, []Slot{{"s1", []StoredUpload{whole}}}},
		"NobodyLooked":      {"", deliver, nil},
		"NothingThere":      {"I12", deliver, []Slot{{"s1", nil}}},
		"NoSuchSlot":        {"I12", deliver, []Slot{}},
		"TornThere":         {"I12", deliver, []Slot{{"s1", []StoredUpload{torn}}}},
		"OtherBytes":        {"I4", func(b *book) { doubt(b) }, []Slot{{"s1", []StoredUpload{other}}}},
		"SentTwice":         {"I2", deliver, []Slot{{"s1", []StoredUpload{whole, whole}}}},
		"Doubted":           {"", doubt, []Slot{{"s1", []StoredUpload{whole}}}},
		"DoubtedAndNot":     {"", doubt, []Slot{{"s1", nil}}},
		"ClosedInDoubt":     {"", func(b *book) { doubt(b); b.do(1, ledger.Closed{}) }, []Slot{{"s1", []StoredUpload{whole}}}},
		"SaidNotSent":       {"I12", func(b *book) { send(b); b.do(1, ledger.UploadNotSent{}) }, []Slot{{"s1", []StoredUpload{whole}}}},
		"ContentOfNobody":   {"I9", deliver, []Slot{{"s1", []StoredUpload{whole}}, {"s2", []StoredUpload{whole}}}},
		"SlotOfNobody":      {"", deliver, []Slot{{"s1", []StoredUpload{whole}}, {"s2", nil}}},
		"ReleasedAndTwice":  {"", func(b *book) { doubt(b); b.do(1, ledger.Released{}); begin(b, "s2"); deliver(b) }, []Slot{{"s1", []StoredUpload{whole}}, {"s2", []StoredUpload{whole}}}},
		"ReleasedOtherSlot": {"I12", func(b *book) { doubt(b); b.do(1, ledger.Released{}); begin(b, "s2"); deliver(b) }, []Slot{{"s1", []StoredUpload{whole}}, {"s2", nil}}},
		"RefusedAndTwice": {"I2", func(b *book) { send(b); b.do(1, ledger.UploadRefused{}); begin(b, "s2"); deliver(b) },
			[]Slot{{"s1", []StoredUpload{torn}}, {"s2", []StoredUpload{whole}}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.do(1, ledger.ClaimedFolder{Route: ledger.PDF, Drop: "scans", Folder: "scan.pdf"}, seal(1))
			begin(b, "s1")
			row.then(b)
			r := Check(b.journal(), maps.Values(b.entries), Seen{Slots: row.slots})
			if row.promise == "" && !r.OK() || row.promise != "" && (r.OK() || r.Findings[0].Promise != row.promise) {
				t.Errorf("findings = %v, want one of %q", r.Findings, row.promise)
			}
		})
	}
}
