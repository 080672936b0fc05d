package report

import (
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// deliveries counts the documents of the routes whose service tells nothing after it has a document. What is delivered there is not archived:
// it is in no count, no sum and no bill of what is archived.
type deliveries struct {
	all        uint64 // of the whole ledger: delivered
	selected   delivered
	duplicates uint64                   // of the selection: the same as a delivered one
	inDoubt    map[archive.Key]struct{} // of the whole ledger: delivered more than once, perhaps, or closed in doubt
	hasRows    bool                     // the selection has a document of such a route
}

// delivered is what the report says of them.
type delivered struct {
	Documents uint64 `json:"documents"`
	Bytes     uint64 `json:"bytes"`
	Twice     uint64 `json:"possiblyProcessedTwice"`
}

// countEntry counts an entry of the whole ledger.
func (d *deliveries) countEntry(e ledger.Entry) {
	if e.Route.IsAsked() {
		return
	}
	if e.State == ledger.Delivered {
		d.all++
	}
	if e.PossibleDouble || e.InDoubt {
		if d.inDoubt == nil {
			d.inDoubt = map[archive.Key]struct{}{}
		}
		d.inDoubt[e.Key] = struct{}{}
	}
}

// countSelected counts an entry of the selection.
func (d *deliveries) countSelected(e ledger.Entry) {
	if e.Route.IsAsked() {
		return
	}
	d.hasRows = true
	switch e.State {
	case ledger.Duplicate:
		d.duplicates++
	case ledger.Delivered:
		d.selected.Documents++
		d.selected.Bytes += uint64(max(e.Package.Size, 0))
		if e.PossibleDouble {
			d.selected.Twice++
		}
	}
}

// summarize gives it for the report; nil: nothing is delivered.
func (d *deliveries) summarize() *delivered {
	if d.selected.Documents == 0 {
		return nil
	}
	return &d.selected
}

// among returns those of some flagged keys that go by such a route.
func (d *deliveries) among(flagged []archive.Key) []archive.Key {
	return slices.DeleteFunc(slices.Clone(flagged), func(k archive.Key) bool { return !d.hasFlagged(k) })
}

// without returns those of some flagged keys that go to the archive.
func (d *deliveries) without(flagged []archive.Key) []archive.Key {
	return slices.DeleteFunc(slices.Clone(flagged), d.hasFlagged)
}

func (d *deliveries) hasFlagged(k archive.Key) bool {
	_, is := d.inDoubt[k]
	return is
}
