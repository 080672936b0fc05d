package ledger

import (
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// Each number that the service archived is one transaction, at the service's own time and whatever state the entry is in.
func TestTransactions_EachSuccessIsOne(t *testing.T) {
	first, second := epoch.Add(time.Hour), epoch.AddDate(1, 0, 0)
	says := func(r archive.RemoteID, at time.Time) StatusSeen {
		return StatusSeen{Receipt: archive.Receipt{Remote: r, Status: archive.Successful, Updated: at, Record: []byte("{}")}, Grace: grace}
	}
	start := usual(Uploaded)
	orphan(Lapsed)(&start)
	start.Package.Size = 1000
	current := start.Current().Ticket.Remote
	refused := usual(Rejected)
	orphan(Lapsed)(&refused)
	for name, row := range map[string]struct {
		e    Entry
		says []StatusSeen
		want []Transaction
	}{
		"None":           {start, nil, nil},
		"One":            {start, []StatusSeen{says(current, first)}, []Transaction{{current, first, 1000}}},
		"TheSameAgain":   {start, []StatusSeen{says(current, first), says(current, second)}, []Transaction{{current, first, 1000}}},
		"Two":            {start, []StatusSeen{says(current, first), says("old", second)}, []Transaction{{current, first, 1000}, {"old", second, 1000}}},
		"TwoAndAgain":    {start, []StatusSeen{says(current, first), says("old", second), says("old", second.AddDate(1, 0, 0)), says(current, second)}, []Transaction{{current, first, 1000}, {"old", second, 1000}}},
		"TheOlderFirst":  {start, []StatusSeen{says("old", second), says(current, first)}, []Transaction{{current, first, 1000}, {"old", second, 1000}}},
		"WithoutATime":   {start, []StatusSeen{says(current, first), says("old", time.Time{})}, []Transaction{{current, first, 1000}, {"old", epoch, 1000}}},
		"OfARejectedOne": {refused, []StatusSeen{says("old", second)}, []Transaction{{"old", second, refused.Package.Size}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := row.e
			for _, s := range row.says {
				e = must(t, e, 0, s)
			}
			got := e.Transactions()
			slices.SortFunc(got, func(a, b Transaction) int { return a.At.Compare(b.At) })
			slices.SortFunc(row.want, func(a, b Transaction) int { return a.At.Compare(b.At) })
			kit.Want(t, "got", got, row.want)
		})
	}
}

// An entry that was made from the archive's index counts one document, of which nobody knows the size: it has no 0 bytes.
func TestTransactions_TheSizeOfARecoveredOneIsNotKnown(t *testing.T) {
	at := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	e, err := Transition(Entry{Key: archive.Key{1}}, Recovered{State: Archived, Source: Gone, Vault: "V", ID: archive.ID{1}, Remote: "R1", SuccessRecord: []byte("x"), ArchivedAt: at}, archive.Instant{Wall: epoch})
	kit.Must(t, err)
	all := e.Transactions()
	kit.Need(t, len(all) == 1 && all[0].Size == 0, "transactions = %v, want one without a size", all)
	if got, want := all[0].Total("V", time.UTC), (Total{Vault: "V", Year: 2026, Month: 12, Documents: 1, Unsized: 1, Last: at}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := all[0].Total("V", time.FixedZone("CET", 3600)); got.Year != 2027 || got.Month != 1 {
		t.Errorf("an hour to the east: %+v", got)
	}
}

// I12: a delivery is no transaction of the archive, and nobody pays the archive for it.
func TestTransactions_I12_ADeliveryIsNone(t *testing.T) {
	e := usual(Sending)
	byPDF(&e)
	e = must(t, e, 0, DeliveryConfirmed{Sent: e.Package.SHA256})
	if all := e.Transactions(); e.State != Delivered || len(all) != 0 {
		t.Errorf("%s with the transactions %v, want %s and none", e.State, all, Delivered)
	}
}
