package catalog

import "vaultd/internal/archive"

// Order is what a list is sorted by. What is equal stands newest first.
type Order int

// The orders.
const (
	BySeen      Order = iota // the newest first
	ByArchived               // the newest first
	ByFolder                 // without case
	ByDrop                   // without case
	ByState                  // as the ledger numbers them
	BySize                   // the largest first
	ByDelivered              // the newest first
	ByNumber                 // the invoice number, without case
	ByDate                   // the newest invoice first
	BySender                 // the name, without case
	ByAmount                 // the largest first, whatever the currency
)

// Sorting is how a list is sorted. Reverse turns the order round; what has no value to sort by comes last either way.
type Sorting struct {
	By      Order
	Reverse bool
	After   archive.Key // the list begins behind this entry, which stands where it would stand now; zero: at its beginning
}

// orders has for each order the expression for what rows are sorted by, which is
// null where a row has no value, and whether small values come first.
var orders = [...]struct {
	value       string
	isAscending bool
}{
	BySeen:      {"NULL", false},
	ByArchived:  {"d.archived", false},
	ByFolder:    {"coalesce(d.folder_sort, d.folder)", true},
	ByDrop:      {"(SELECT drop_lower FROM origin WHERE origin.id = d.origin)", true},
	ByState:     {"d.state", true},
	BySize:      {"d.size", false},
	ByDelivered: {"d.delivered", false},
	ByNumber:    {"nullif(coalesce(d.number_sort, d.number), '')", true},
	ByDate:      {"d.day", false},
	BySender:    {"(SELECT sender_lower FROM party WHERE party.id = d.party)", true},
	ByAmount:    {"d.amount", false},
}

// terms returns the terms by which rows are sorted: their value v, and their id i.
func (s Sorting) terms() string {
	ids, values := "i DESC", "v DESC NULLS LAST, "
	if s.Reverse {
		ids = "i"
	}
	if orders[s.By].isAscending != s.Reverse {
		values = "v NULLS LAST, "
	}
	if s.By == BySeen {
		values = ""
	}
	return values + ids
}

// addBehind adds that rows stand behind a spot; id is the column with their id.
func (s Sorting) addBehind(to *selection, id string, last spot) {
	// The row of the spot may have another id by now, or be gone.
	behind := id + " < coalesce((SELECT id FROM document WHERE key >= ? ORDER BY key LIMIT 1), 9223372036854775807)"
	if s.Reverse {
		behind = id + " > coalesce((SELECT id FROM document WHERE key <= ? ORDER BY key DESC LIMIT 1), 0)"
	}
	nearer := " < ?"
	if orders[s.By].isAscending != s.Reverse {
		nearer = " > ?"
	}
	v, key := orders[s.By].value, last.key[:]
	switch {
	case s.By == BySeen:
		to.add(behind, key)
	case last.value == nil:
		to.add(v+" IS NULL AND "+behind, key)
	default:
		to.add("("+v+" IS NULL OR "+v+nearer+" OR "+v+" = ? AND "+behind+")", last.value, last.value, key)
	}
}
