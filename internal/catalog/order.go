package catalog

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"vaultd/internal/archive"
)

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

// rank is the position of an entry in a sorted list. Two entries never have the same one.
type rank struct {
	none   int    // 1: it has no value to sort by: it comes last
	number int64  // the value, or
	text   string // the value
	key    archive.Key
}

// readsDocument reports whether the order is by what the document says.
func (o Order) readsDocument() bool {
	return o == ByNumber || o == ByDate || o == BySender || o == ByAmount
}

// rank returns the position of a row. Its columns give the same one, see [Order.columns].
func (o Order) rank(e row) rank {
	r, hasValue := rank{key: e.Key}, true
	switch o {
	case ByNumber:
		r.text = strings.ToLower(e.shown().Number)
		hasValue = r.text != ""
	case BySender:
		r.text = strings.ToLower(e.shown().SenderName)
		hasValue = r.text != ""
	case ByDate:
		r.number, hasValue = dayOf(e.shown().Date)
		r.number = -r.number
	case ByAmount:
		r.number, hasValue = amountRank(e.shown().Amount)
		r.number = -r.number
	case ByArchived:
		r.number = -millis(e.ArchivedAt)
	case ByDelivered:
		r.number = -millis(deliveredAt(e.Entry))
	case ByFolder:
		r.text = strings.ToLower(e.Folder)
	case ByDrop:
		r.text = strings.ToLower(e.Drop)
	case ByState:
		r.number = int64(e.State)
	case BySize:
		r.number = -e.Package.Size
	case BySeen:
	}
	if !hasValue || (o == ByArchived || o == ByDelivered || o == BySize) && r.number == 0 {
		r.none = 1
	}
	return r
}

// columns returns the expressions for the rank of a row: whether it has no value, its number and its text.
func (o Order) columns() (none, number, text string) {
	switch o {
	case ByArchived:
		return "archived = 0", "-archived", "''"
	case ByDelivered:
		return "delivered = 0", "-delivered", "''"
	case ByFolder:
		return "0", "0", "coalesce(folder_lower, lower(folder))"
	case ByDrop:
		return "0", "0", "coalesce(drop_lower, lower(drop_name))"
	case ByState:
		return "0", "state", "''"
	case BySize:
		return "size = 0", "-size", "''"
	case ByNumber:
		return "number = ''", "0", "coalesce(number_lower, lower(number))"
	case ByDate:
		return "day IS NULL", "-coalesce(day, 0)", "''"
	case BySender:
		return "sender IS NULL", "0", "coalesce((SELECT coalesce(text_lower, lower(party.text)) FROM party WHERE party.id = sender), '')"
	case ByAmount:
		return "amount IS NULL", "-coalesce(amount, 0)", "''"
	case BySeen:
	}
	return "0", "0", "''"
}

// compare orders two ranks.
func (s Sorting) compare(p, q rank) int {
	if p.none != q.none {
		return cmp.Compare(p.none, q.none)
	}
	c := cmp.Or(cmp.Compare(p.number, q.number), cmp.Compare(p.text, q.text), bytes.Compare(q.key[:], p.key[:]))
	if s.Reverse {
		return -c
	}
	return c
}

// firstRanks keeps the first so many ranks of all that it is given. Its top is the last of them.
type firstRanks struct {
	sorting Sorting
	all     []rank
}

func (h *firstRanks) Len() int           { return len(h.all) }
func (h *firstRanks) Less(i, j int) bool { return h.sorting.compare(h.all[i], h.all[j]) > 0 }
func (h *firstRanks) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *firstRanks) Push(r any)         { h.all = append(h.all, r.(rank)) } // container/heap gives back what it got
func (h *firstRanks) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}

func (h *firstRanks) add(r rank, most int) {
	switch {
	case len(h.all) < most:
		heap.Push(h, r)
	case h.sorting.compare(r, h.all[0]) < 0:
		h.all[0] = r
		heap.Fix(h, 0)
	}
}

// sorted returns what was kept, in order.
func (h *firstRanks) sorted() []rank {
	slices.SortFunc(h.all, h.sorting.compare)
	return h.all
}
