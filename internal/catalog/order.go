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

// value returns the expression for what rows are sorted by; null: a row has no value.
func (o Order) value() string {
	switch o {
	case ByArchived:
		return "d.archived"
	case ByDelivered:
		return "d.delivered"
	case ByFolder:
		return "coalesce(d.folder_sort, d.folder)"
	case ByDrop:
		return "(SELECT drop_lower FROM origin WHERE origin.id = d.origin)"
	case ByState:
		return "d.state"
	case BySize:
		return "d.size"
	case ByNumber:
		return "nullif(coalesce(d.number_sort, d.number), '')"
	case ByDate:
		return "d.day"
	case BySender:
		return "(SELECT sender_lower FROM party WHERE party.id = d.party)"
	case ByAmount:
		return "d.amount"
	case BySeen:
	}
	return "NULL"
}

// isAscending reports whether small values come first.
func (s Sorting) isAscending() bool {
	switch s.By {
	case ByFolder, ByDrop, ByState, ByNumber, BySender:
		return !s.Reverse
	}
	return s.Reverse
}

// order returns the terms by which rows are sorted: their value v, and their id i.
func (s Sorting) order() string {
	ids, values := "i DESC", "v DESC NULLS LAST, "
	if s.Reverse {
		ids = "i"
	}
	if s.isAscending() {
		values = "v NULLS LAST, "
	}
	if s.By == BySeen {
		values = ""
	}
	return values + ids
}

// addBehind adds that rows stand behind a spot.
func (s Sorting) addBehind(to *selection, from string, last spot) {
	// The row of the spot may have another id by now, or be gone.
	id, first := "d.id", "(SELECT id FROM document WHERE key >= ? ORDER BY key LIMIT 1)"
	if from != "document d" {
		id = "words.rowid"
	}
	behind := id + " < coalesce(" + first + ", 9223372036854775807)"
	if s.Reverse {
		behind = id + " > coalesce((SELECT id FROM document WHERE key <= ? ORDER BY key DESC LIMIT 1), 0)"
	}
	nearer := " > ?"
	if !s.isAscending() {
		nearer = " < ?"
	}
	v, key := s.By.value(), last.key[:]
	switch {
	case s.By == BySeen:
		to.add(behind, key)
	case last.value == nil:
		to.add(v+" IS NULL AND "+behind, key)
	default:
		to.add("("+v+" IS NULL OR "+v+nearer+" OR "+v+" = ? AND "+behind+")", last.value, last.value, key)
	}
}
