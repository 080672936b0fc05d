package books

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// indexed is what the archive's own index has: the number of every document by its digest, and the documents that the books may know.
type indexed struct {
	m       *matcher
	numbers []uint64 // digests of all numbers of the service
	sorted  bool
	rest    map[archive.RemoteID]archive.Document // that no entry of the ledger has claimed yet
}

func newIndexed(m *matcher) *indexed {
	return &indexed{m: m, rest: map[archive.RemoteID]archive.Document{}}
}

// add takes a record of the index.
func (x *indexed) add(r archive.IndexRecord) error {
	if r.Remote == "" {
		return nil
	}
	x.numbers = append(x.numbers, maphash.String(x.m.seed, string(r.Remote)))
	if x.m.mayKnow(r.Document.Number) || x.m.choose(r.Document) {
		x.rest[r.Remote] = r.Document
	}
	return nil
}

// take claims the documents of the index that an entry made, and reports whether the one of its success is there. Another registration of
// it may be there without content.
func (x *indexed) take(e ledger.Entry) (found bool) {
	if !x.sorted {
		slices.Sort(x.numbers)
		x.sorted = true
	}
	for _, r := range e.Registrations {
		if r.Ticket.Remote == e.ArchivedRemote || e.ArchivedRemote == "" {
			_, is := slices.BinarySearchFunc(x.numbers, maphash.String(x.m.seed, string(r.Ticket.Remote)), cmp.Compare[uint64])
			found = found || is
		}
		// It is the entry's own, and the entry speaks for it.
		delete(x.rest, r.Ticket.Remote)
	}
	return found
}

// addRest joins the documents that only the index has: others archived them, or this ledger has forgotten them.
func (x *indexed) addRest() error {
	for _, bumID := range slices.Sorted(maps.Keys(x.rest)) {
		doc := x.rest[bumID]
		if err := x.m.add(candidate{document: document{state: ledger.Archived}, only: &indexOnly{bumID, doc}, values: doc}); err != nil {
			return err
		}
	}
	return nil
}
