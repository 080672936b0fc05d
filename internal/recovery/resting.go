package recovery

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// resting are the archived entries of which nothing is open: nearly all of a large ledger. Each is a mark, made of its bumId and
// the digest of its metadata. So a record of the index that says the same is compared without reading the ledger. Such an entry
// does not change while the archive is asked: archived is final, and the metadata is frozen.
type resting struct {
	marks [256][]mark // by their first byte, in order once all are in
	shown [256][]bool // beside each mark: the index showed it
}

// mark is a part of a digest, so that a million fit in memory.
type mark [12]byte

// pairOf is the mark of a bumId with the digest of the metadata under it.
func pairOf(r archive.RemoteID, metadata archive.Digest) (m mark) {
	var buf [128]byte
	h := sha256.Sum256(append(append(buf[:0], r...), metadata[:]...))
	copy(m[:], h[:])
	return m
}

func (r *resting) addMark(m mark) { r.marks[m[0]] = append(r.marks[m[0]], m) }

// sortMarks is called once, after the last mark was added.
func (r *resting) sortMarks() {
	for i, ms := range r.marks {
		slices.SortFunc(ms, func(a, b mark) int { return bytes.Compare(a[:], b[:]) })
		r.shown[i] = make([]bool, len(ms))
	}
}

// markShown notes that the index showed the mark. It reports whether the mark is that of a resting entry.
func (r *resting) markShown(m mark) bool {
	i, ok := slices.BinarySearchFunc(r.marks[m[0]], m, func(a, b mark) int { return bytes.Compare(a[:], b[:]) })
	if ok {
		r.shown[m[0]][i] = true
	}
	return ok
}

// allShown reports whether the index showed each of them.
func (r *resting) allShown() bool {
	return !slices.ContainsFunc(r.shown[:], func(s []bool) bool { return slices.Contains(s, false) })
}

// separateResting separates the entries of the compared vaults into those that rest and those that must be compared one by one.
// With a doubt every entry is compared.
func (p *comparison) separateResting() error {
	err := p.Book.EntriesOldestFirst(func(e ledger.Entry) error {
		switch {
		case !slices.ContainsFunc(p.Drops, func(d Drop) bool { return d.Vault == e.Vault }):
		case e.State != ledger.Archived, e.ArchivedRemote == "", e.Metadata.IsZero(), e.IsArchivedTwice(), e.NeedsReconcile, p.isFreshlyArchived(e), p.isRetentionOver(e):
			p.restless = append(p.restless, e.Key)
		default:
			p.resting.addMark(pairOf(e.ArchivedRemote, e.Metadata))
		}
		return nil
	})
	p.resting.sortMarks()
	return err
}

// isAtRest reports whether the record repeats what was sent of a resting entry.
func (p *comparison) isAtRest(rec archive.IndexRecord) bool {
	return p.Doubt == nil && rec.Remote != "" && p.resting.markShown(pairOf(rec.Remote, archive.Sum(rec.Document.Metadata())))
}

// forEachUnresolved calls fn with the entries that a comparison may have
// something to say about: those that do not rest. If the index did not show a
// resting entry, it calls fn with all entries.
func (p *comparison) forEachUnresolved(fn func(ledger.Entry) error) error {
	if p.Doubt != nil || !p.resting.allShown() {
		return p.Book.EntriesOldestFirst(fn)
	}
	slices.SortFunc(p.restless, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	for _, key := range slices.Compact(p.restless) {
		e, ok, err := p.Book.Entry(key)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}
