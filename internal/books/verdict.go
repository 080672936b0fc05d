package books

import (
	"cmp"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Verdict says what became of a booked invoice.
type Verdict uint8

// The verdicts. Only Archived counts as archived.
const (
	Archived     Verdict = iota // exactly one archived document is this invoice, and nothing differs
	Differs                     // exactly one archived document has its number, and another amount, currency, date, supplier or company
	Ambiguous                   // several documents or several booked rows fit, and nobody can say which belongs to which; or its amount or date can be read in two ways
	InQuestion                  // the archived document is in question: contradicted, or missing in the archive's own index
	OnTheWay                    // dropped, and not archived yet
	Quarantined                 // dropped, and a person must decide
	Rejected                    // dropped, and refused
	Delivered                   // handed to the accounts-payable system, which is no archive
	Similar                     // only a number that is alike is archived or dropped
	NeverDropped                // nothing of this number was dropped
	Unreadable                  // the record has no number, or its amount or date cannot be read
)

var verdictWords = []string{"archived", "differs", "ambiguous", "in-question", "on-the-way", "quarantined", "rejected", "delivered", "similar", "never-dropped", "unreadable"}

// String returns the word that reports have.
func (v Verdict) String() string { return verdictWords[v] }

// MarshalText writes the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Verdicts lists them all, in the order in which people read them.
func Verdicts() (all []Verdict) {
	for v := range verdictWords {
		all = append(all, Verdict(v))
	}
	return all
}

// resolver decides what became of each booked row. A document proves one row at most: where it fits several rows, it proves none.
type resolver struct {
	docs  []document
	edges []edge // sorted by row

	wholeRows  []few // by document: the rows that it is in every value
	differRows []few // by document that is no row's in every value: the rows of its number that have no such document
}

// few counts up to two, which stands for several.
type few uint8

func (n *few) add() { *n = min(*n+1, 2) }

func newResolver(docs []document, edges []edge) *resolver {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.doc, b.doc)) })
	r := &resolver{docs: docs, edges: edges, wholeRows: make([]few, len(docs)), differRows: make([]few, len(docs))}
	for _, e := range edges {
		if e.kind == whole && r.counts(e) {
			r.wholeRows[e.doc].add()
		}
	}
	for i := 0; i < len(edges); {
		own := r.edgesFrom(i)
		i += len(own)
		if slices.ContainsFunc(own, func(e edge) bool { return e.kind == whole && r.counts(e) }) {
			continue
		}
		for _, e := range own {
			if r.mayDiffer(e) {
				r.differRows[e.doc].add()
			}
		}
	}
	return r
}

// counts reports whether the document can prove something.
func (r *resolver) counts(e edge) bool {
	d := r.docs[e.doc]
	return d.state == ledger.Archived && !d.doubts
}

// mayDiffer reports whether the document may be the row's with another value: it is no other row's in every value.
func (r *resolver) mayDiffer(e edge) bool {
	return e.kind == differs && r.counts(e) && r.wholeRows[e.doc] == 0
}

// edgesFrom returns the edges of the row of the edge at i, which is its first one.
func (r *resolver) edgesFrom(i int) []edge {
	n := i
	for n < len(r.edges) && r.edges[n].row == r.edges[i].row {
		n++
	}
	return r.edges[i:n]
}

// outcome is what became of one row, and by which document that is known.
type outcome struct {
	verdict Verdict
	doc     *document // nil: none
	diff    Difference
	other   *document // an archived document of that number that is another invoice; may be nil
}

// resolve decides about one row.
func (r *resolver) resolve(row int64, b Booked) outcome {
	if b.Number == "" || b.Wrong != "" {
		return outcome{verdict: Unreadable}
	}
	if b.Unclear != "" {
		return outcome{verdict: Ambiguous}
	}
	var own []edge
	if i, found := slices.BinarySearchFunc(r.edges, row, func(e edge, row int64) int { return cmp.Compare(int64(e.row), row) }); found {
		own = r.edgesFrom(i)
	}
	for _, step := range []func([]edge) (outcome, bool){r.resolveWhole, r.resolveDiffering, r.resolveUnfinished, r.resolveAlike} {
		if o, ok := step(own); ok {
			return o
		}
	}
	o := outcome{verdict: NeverDropped}
	for _, e := range own {
		if e.kind != alike && r.docs[e.doc].state == ledger.Archived {
			o.other = &r.docs[e.doc]
		}
	}
	return o
}

// resolveWhole decides by documents that are the row's in every value.
func (r *resolver) resolveWhole(own []edge) (outcome, bool) {
	var found []edge
	for _, e := range own {
		if e.kind == whole && r.counts(e) {
			found = append(found, e)
		}
	}
	switch {
	case len(found) == 0:
		return outcome{}, false
	case len(found) == 1 && r.wholeRows[found[0].doc] == 1:
		return outcome{verdict: Archived, doc: &r.docs[found[0].doc]}, true
	}
	return outcome{verdict: Ambiguous, doc: &r.docs[found[0].doc]}, true
}

// resolveDiffering decides by documents of the row's number that are nobody else's.
func (r *resolver) resolveDiffering(own []edge) (outcome, bool) {
	var found []edge
	for _, e := range own {
		if r.mayDiffer(e) {
			found = append(found, e)
		}
	}
	switch {
	case len(found) == 0:
		return outcome{}, false
	case len(found) == 1 && r.differRows[found[0].doc] == 1:
		return outcome{verdict: Differs, doc: &r.docs[found[0].doc], diff: found[0].diff}, true
	}
	return outcome{verdict: Ambiguous, doc: &r.docs[found[0].doc]}, true
}

// resolveUnfinished decides by documents of the row's number that are not archived, or not without doubt. What may still become archived
// goes first.
func (r *resolver) resolveUnfinished(own []edge) (o outcome, ok bool) {
	for _, e := range own {
		if e.kind != whole && e.kind != differs || r.counts(e) {
			continue
		}
		d := &r.docs[e.doc]
		if v := verdictOf(d); !ok || v < o.verdict {
			o, ok = outcome{verdict: v, doc: d}, true
		}
	}
	return o, ok
}

func verdictOf(d *document) Verdict {
	switch d.state {
	case ledger.Archived:
		return InQuestion
	case ledger.Quarantined:
		return Quarantined
	case ledger.Rejected:
		return Rejected
	case ledger.Delivered:
		return Delivered
	default:
		return OnTheWay
	}
}

// resolveAlike decides by documents of a number that is alike. It is a hint for a person and counts for nothing: 4711 and 0004711 may be
// two invoices.
func (r *resolver) resolveAlike(own []edge) (outcome, bool) {
	for _, e := range own {
		if e.kind == alike && r.wholeRows[e.doc] == 0 {
			return outcome{verdict: Similar, doc: &r.docs[e.doc]}, true
		}
	}
	return outcome{}, false
}

// IndexRead is how much of the index of one vault was read.
type IndexRead struct {
	Vault    archive.VaultID `json:"vault"`
	Read     int             `json:"read"`
	Found    int             `json:"found"` // as the index told; -1: it did not
	Complete bool            `json:"complete"`
	Why      string          `json:"why"` // it is not complete
}
