package report

import (
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

// deliveries counts the documents of the routes that deliver. What is delivered is not archived: it is in no count, no sum and no bill of what is
// archived. Each such route has counts of its own, which are never added up.
type deliveries struct {
	pdf, network routeDeliveries
	duplicates   uint64                               // of the selection: the same as a delivered one
	spread       [len(present.DelayLimits) + 1]uint64 // of the selection: delivered, by the time from taken to delivered
	byNote       uint64                               // of the whole ledger: how many are known by their delivery note alone
	strayFiles   uint64                               // of the whole ledger: files that the network may have and no document uses, at most
	hasRows      bool                                 // the selection has a document of such a route
}

// routeDeliveries counts the documents of one route.
type routeDeliveries struct {
	all      uint64 // of the whole ledger: delivered
	selected delivered
	answers  networkAnswers           // of the selection
	inDoubt  map[archive.Key]struct{} // of the whole ledger: delivered more than once, perhaps, or closed in doubt
}

// delivered is what the report says of them.
type delivered struct {
	Documents uint64 `json:"documents"`
	Bytes     uint64 `json:"bytes"`
	Twice     uint64 `json:"possiblyProcessedTwice"`
}

// networkAnswers is what became of delivered documents of the business network. Each counts as delivered as well.
type networkAnswers struct {
	RejectedLate uint64 `json:"rejectedAfterDelivery"` // by the network
	Accepted     uint64 `json:"acceptedByRecipient"`
	Rejected     uint64 `json:"rejectedByRecipient"`
	Copies       uint64 `json:"copiesForTheArchive"` // that were put into a drop folder of the archive
}

// networkDelivered is what the report says of documents of the business network.
type networkDelivered struct {
	Documents uint64 `json:"documents"`
	Bytes     uint64 `json:"bytes"`
	Twice     uint64 `json:"possiblySentTwice"`
	networkAnswers
}

// countsOf returns the counts of a route that delivers; nil: it does not.
func (d *deliveries) countsOf(r ledger.Route) *routeDeliveries {
	return map[ledger.Route]*routeDeliveries{ledger.PDF: &d.pdf, ledger.Network: &d.network}[r]
}

// countEntry counts an entry of the whole ledger.
func (d *deliveries) countEntry(e ledger.Entry) {
	of := d.countsOf(e.Route)
	if of == nil {
		return
	}
	d.strayFiles += uint64(e.CountUnusedFiles())
	if e.State == ledger.Delivered {
		of.all++
		// A ledger that was made anew knows of no upload and no POST: it has the delivery from the note beside the source.
		if r := e.Current(); (r == nil || r.UploadIntents == 0) && e.Posts == 0 {
			d.byNote++
		}
	}
	if e.PossibleDouble || e.InDoubt {
		if of.inDoubt == nil {
			of.inDoubt = map[archive.Key]struct{}{}
		}
		of.inDoubt[e.Key] = struct{}{}
	}
}

// countSelected counts an entry of the selection.
func (d *deliveries) countSelected(e ledger.Entry) {
	of := d.countsOf(e.Route)
	if of == nil {
		return
	}
	d.hasRows = true
	switch e.State {
	case ledger.Duplicate:
		d.duplicates++
	case ledger.Delivered:
		of.countDelivered(e)
		if took, known := e.CompletionTime(); known {
			d.spread[present.DelayPart(took.Truncate(time.Second))]++
		}
	}
}

// countDelivered counts a delivered entry of the selection.
func (of *routeDeliveries) countDelivered(e ledger.Entry) {
	of.selected.Documents++
	of.selected.Bytes += uint64(max(e.Package.Size, 0))
	if e.PossibleDouble {
		of.selected.Twice++
	}
	if e.Contradicted {
		of.answers.RejectedLate++
	}
	if e.Copied {
		of.answers.Copies++
	}
	switch e.Recipient {
	case ledger.RecipientAccepted:
		of.answers.Accepted++
	case ledger.RecipientRejected:
		of.answers.Rejected++
	}
}

// summarizePDFs gives the counts of PDFs for the report; nil: none is delivered.
func (d *deliveries) summarizePDFs() *delivered {
	if d.pdf.selected.Documents == 0 {
		return nil
	}
	return &d.pdf.selected
}

// summarizeNetwork gives the counts of documents of the business network for the report; nil: none is delivered.
func (d *deliveries) summarizeNetwork() *networkDelivered {
	n := d.network.selected
	if n.Documents == 0 {
		return nil
	}
	return &networkDelivered{n.Documents, n.Bytes, n.Twice, d.network.answers}
}

// HasDelivered reports whether anything of the selection is delivered, by any route.
func (s Summary) HasDelivered() bool { return s.Delivered != nil || s.Network != nil }

// among returns those of some flagged keys that go by this route.
func (of *routeDeliveries) among(flagged []archive.Key) []archive.Key {
	return slices.DeleteFunc(slices.Clone(flagged), func(k archive.Key) bool { return !of.hasFlagged(k) })
}

// without returns those of some flagged keys that go to the archive.
func (d *deliveries) without(flagged []archive.Key) []archive.Key {
	return slices.DeleteFunc(slices.Clone(flagged), func(k archive.Key) bool { return d.pdf.hasFlagged(k) || d.network.hasFlagged(k) })
}

func (of *routeDeliveries) hasFlagged(k archive.Key) bool {
	_, is := of.inDoubt[k]
	return is
}

// addNetworkDoubts adds what cannot be shown of the documents of the business network.
func (t *counts) addNetworkDoubts(r proof.Report, add func(what string, n uint64, none, one, more string)) {
	of := &t.deliveries.network
	add("sent-twice", uint64(len(of.among(r.Double))), "", "1 network document was possibly sent twice; it is named at the end.", "%s network documents were possibly sent twice; they are named at the end.")
	add("in-doubt-network", uint64(len(of.among(r.InDoubt))), "", "1 network document was closed in doubt by a person: it may have been delivered; it is named at the end.",
		"%s network documents were closed in doubt by a person: they may have been delivered; they are named at the end.")
	add("delivered-network", of.all, "", "1 network document was delivered, which is no archiving: the business network said so. Its recipient's system may reject it still, and no list is compared with it.",
		"%s network documents were delivered, which is no archiving: the business network said so. Their recipients' systems may reject them still, and no list is compared with them.")
	add("stray-files", t.deliveries.strayFiles, "", "As far as this ledger knows, at most 1 stray file lies at the business network: its sending was never answered, or its document was never taken. No document uses it.",
		"As far as this ledger knows, at most %s stray files lie at the business network: their sendings were never answered, or their documents were never taken. No document uses them.")
}
