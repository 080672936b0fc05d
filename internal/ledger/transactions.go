package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// Transaction is one success of the service: what it counts in a calendar year, and may invoice.
type Transaction struct {
	Remote archive.RemoteID
	At     time.Time // the service's own time
	Size   int64     // of the ZIP as sent; zero: not known, because the entry was made from the archive's index or list
}

// Transactions lists what the service archived of the entry. Each of its numbers counts, also where the service archived
// the same document twice: that the specification means it so is an assumption. It counts what the service did, whatever
// state the entry is in. A delivery is none: only what the archive stores is billed.
func (e Entry) Transactions() (all []Transaction) {
	for _, r := range e.Listed() {
		if r.Fate != Succeeded || slices.ContainsFunc(all, func(t Transaction) bool { return t.Remote == r.Ticket.Remote }) {
			continue
		}
		at := r.SucceededAt
		if at.IsZero() {
			at = e.ArchivedAt
		}
		all = append(all, Transaction{r.Ticket.Remote, at, e.Package.Size})
	}
	return all
}

// Total is what one vault archived in one calendar month.
type Total struct {
	Vault     archive.VaultID
	Year      int    // of the service's success, in the configured time zone
	Month     int    // of that year, from 1
	Documents uint64 // transactions: each success of the service is one
	Unsized   uint64 // of them, those whose size is not known
	Bytes     uint64 // of the ZIPs as sent, of all others
}

// Plus returns both together, under the vault and the month of the first.
func (t Total) Plus(more Total) Total {
	t.Documents, t.Unsized, t.Bytes = t.Documents+more.Documents, t.Unsized+more.Unsized, t.Bytes+more.Bytes
	return t
}

// Total returns the transaction as a total of its own.
func (t Transaction) Total(v archive.VaultID, zone *time.Location) Total {
	at := t.At.In(zone)
	one := Total{Vault: v, Year: at.Year(), Month: int(at.Month()), Documents: 1, Bytes: uint64(max(t.Size, 0))}
	if t.Size <= 0 {
		one.Unsized = 1
	}
	return one
}
