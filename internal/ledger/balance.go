package ledger

import "fmt"

// Balance counts entries: how many were ever claimed, and how many are in each state. It
// is balanced when every claimed entry is in some state.
type Balance struct {
	Seen   uint64                  `stored:"1"`
	States [Quarantined + 1]uint64 `stored:"2"`
}

// CountChange counts the change of one entry from one state to another; None means that it is new.
func (b *Balance) CountChange(from, to State) {
	// Counted in the transaction that stores the entry: after a crash the sum is right or the change is not there.
	if from == None {
		b.Seen++
	} else {
		b.States[from]--
	}
	b.States[to]++
}

// OpenEntries counts the entries on their way, unclear ones included.
func (b Balance) OpenEntries() uint64 {
	var n uint64
	for s := Discovered; s <= Unclear; s++ {
		n += b.States[s]
	}
	return n
}

// IsBalanced reports whether seen = archived + delivered + rejected + quarantined +
// duplicate + open.
func (b Balance) IsBalanced() bool {
	return b.Seen == b.States[Archived]+b.States[Delivered]+b.States[Rejected]+b.States[Quarantined]+b.States[Duplicate]+b.OpenEntries()
}

// String returns the balance as people read it.
func (b Balance) String() string {
	verdict := "agrees"
	if !b.IsBalanced() {
		verdict = "DOES NOT AGREE"
	}
	return fmt.Sprintf("seen %d = archived %d + delivered %d + rejected %d + quarantined %d + duplicate %d + open %d  %s",
		b.Seen, b.States[Archived], b.States[Delivered], b.States[Rejected], b.States[Quarantined], b.States[Duplicate], b.OpenEntries(), verdict)
}
