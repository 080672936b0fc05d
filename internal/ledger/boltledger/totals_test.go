package boltledger_test

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// Two successes of one document are two transactions, each in its month; what
// has no size is counted apart. A recount finds the same, and so does one whose
// months begin elsewhere.
func TestTotals_SuccessesByMonthAndWhatHasNoSize(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.at = time.Date(2026, 11, 30, 22, 30, 0, 0, time.UTC) // archived an hour later
	d.do(d.claim())
	d.do(d.sealed())
	d.do(ledger.RegisterIntended{})
	d.do(d.ticket(), ledger.UploadIntended{})
	refused := d.e.Current().Ticket.Remote
	d.do(ledger.UploadRefused{})
	d.do(ledger.RegisterIntended{})
	d.do(d.ticket(), ledger.UploadIntended{})
	d.do(d.accepted())
	d.do(d.success())
	d.do(ledger.StatusSeen{Receipt: archive.Receipt{Remote: refused, Status: archive.Successful, Updated: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), Record: []byte("{}")}, Grace: time.Hour})
	kit.Need(t, d.e.IsArchivedTwice(), "registrations = %+v, want two successes", d.e.Registrations)
	found := newDoc(t, l, 2)
	at := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	found.do(ledger.Recovered{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: "x", ID: archive.ID{15: 9}, Remote: "R9", SuccessRecord: []byte("{}"),
		State: ledger.Archived, Source: ledger.Gone, SeenAt: at, ArchivedAt: at}, ledger.Reconciled{})
	last, late := d.e.ArchivedAt, time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)
	for zone, want := range map[*time.Location][]ledger.Total{
		time.UTC: {{Vault: "V1", Year: 2026, Month: 11, Documents: 2, Unsized: 1, Bytes: 1001, Last: last}, {Vault: "V1", Year: 2027, Month: 1, Documents: 1, Bytes: 1001, Last: late}},
		time.FixedZone("Europe/Somewhere", 3600): {{Vault: "V1", Year: 2026, Month: 11, Documents: 1, Unsized: 1, Last: at},
			{Vault: "V1", Year: 2026, Month: 12, Documents: 1, Bytes: 1001, Last: last}, {Vault: "V1", Year: 2027, Month: 1, Documents: 1, Bytes: 1001, Last: late}},
	} {
		l.Close()
		l = open(t, boltledger.Config{Dir: dir, Location: zone})
		kit.Want(t, fmt.Sprint(zone), kit.Value(l.Totals())(t), want)
		sound(t, l)
	}
}
