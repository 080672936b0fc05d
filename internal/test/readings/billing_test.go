package readings

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// The bill is made of what the service archived, in the calendar year of its own word, per vault and for the customer;
// registrations without content, and content that was sent twice, do not count.
func TestReading_BillCountsWhatTheServiceArchived(t *testing.T) {
	for name, row := range map[string]struct {
		fault emulator.Fault
		zone  *time.Location
		year  int // the world begins with 2000, UTC
	}{
		"Calm":            {emulator.Fault{}, time.UTC, 2000},
		"StillLastYear":   {emulator.Fault{}, time.FixedZone("west", -2*3600), 1999},
		"SentTwice":       {emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, time.UTC, 2000},
		"RegisteredTwice": {emulator.Fault{Kind: emulator.DeadToken}, time.UTC, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup{faults: first(3, "upload", row.fault), daemon: func(c *daemon.Config) { c.Location = row.zone }}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archives(hour)
				want := map[archive.VaultID]ledger.Total{}
				for _, r := range w.service.Registrations() {
					if r.ArchivedAt.IsZero() {
						continue
					}
					for _, v := range []archive.VaultID{"", archive.VaultID(r.Vault)} {
						sum := want[v]
						want[v] = ledger.Total{Documents: sum.Documents + 1, Bytes: sum.Bytes + uint64(r.Size)}
					}
				}
				totals, err := w.daemon.Ledger().Totals()
				kit.Must(w.t, err)
				bills, err := billing.Bills(totals, billing.Rule{}, time.Time{})
				kit.Must(w.t, err)
				if len(bills) != 3 || want[""].Documents != uint64(len(w.dropped)) {
					t.Fatalf("%+v for %+v", bills, want)
				}
				for _, b := range bills {
					if b.Year != row.year || b.Documents != want[b.Vault].Documents || b.Bytes != want[b.Vault].Bytes {
						t.Errorf("billed %+v, archived %+v", b, want[b.Vault])
					}
				}
			})
		})
	}
}
