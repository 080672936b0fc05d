package boltledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Verified is what a check without a problem found, at one line of the journal: what the entries at rest add up to. It can be
// stored; its fields are exported for that alone. It says nothing of what became of their records since.
type Verified struct {
	Head    ledger.Head
	Balance ledger.Balance // of the entries at rest
	Revs    uint64         // of them
	Totals  map[string]spanTotal
	Counts  map[string]uint64
	Fetches archive.Digest // of the downloads that the journal announces
	Alarmed time.Time      // the latest alarm that the journal tells of

	Differing map[archive.VaultID]uint64 // the vaults whose index differed, with the journal lines of the comparisons
}

// ErrOtherJournal says that the journal does not have the line that was verified.
var ErrOtherJournal = errors.New("the journal does not have the line that was verified")

// newVerified returns what is found sound at the moment of tx, unless a problem is found later.
func newVerified(tx *bbolt.Tx, s summary, done *recount) (v Verified, err error) {
	v = Verified{Head: s.Head, Balance: done.balance, Revs: done.revs, Totals: maps.Clone(done.totals), Counts: maps.Clone(done.counts),
		Alarmed: s.Alarmed}
	v.Differing, err = readDiffering(tx)
	return v, err
}

func (v Verified) recount() *recount {
	r := newRecount()
	r.add(&recount{balance: v.Balance, revs: v.Revs, totals: v.Totals, counts: v.Counts})
	return r
}

// VerifySince checks every page and what came after an earlier check: the
// journal behind its line, the entries that are not at rest, those that a line
// is about since, with their documents and names, the due index, the scans, the
// balance, totals and counts. It skips the lines before, and the records of
// entries at rest, of their documents and of names that did not change. The
// caller must know that no entry that was at rest changed since; package proof
// checks that. The error is ErrOtherJournal where the line is not that of the
// earlier check.
func (l *Ledger) VerifySince(ctx context.Context, v Verified, beside func()) ([]ledger.Problem, Verified, error) {
	c := newChecker(ctx, l)
	c.beside, c.since, c.end, c.alarmed = beside, v, v.Head, v.Alarmed
	maps.Copy(c.differing, v.Differing)
	err := c.checkSince(v)
	if errors.Is(err, ErrOtherJournal) {
		return nil, Verified{}, fmt.Errorf("%w: line %d", ErrOtherJournal, v.Head.N)
	}
	return c.found, c.sound, err
}

// recent is what a check since an earlier one reads.
type recent struct {
	changed []archive.Key // entries that a line is about since, in order
	reread  []archive.Key // those, and the ones that are not at rest, in order
}

func (c *checker) checkSince(v Verified) error {
	now := &recent{changed: []archive.Key{}, reread: []archive.Key{}}
	read := func(bucket []byte, keys []archive.Key, check func(p *part, tx *bbolt.Tx, k, v []byte) error) error {
		return c.walkBucket(&walk{bucket: bucket, keys: keys, check: check, merge: c.takeIn})
	}
	return c.runPasses(slices.Concat([]pass{
		c.pagesPass(),
		{pagesWord, func() error { return c.ledger.view(func(tx *bbolt.Tx) error { return now.readKeys(tx, v) }) }},
		{metaBucket, func() error { return c.compareRecountSince(v, now) }},
		{openBucket, func() error { return c.eachRecord(openBucket, checkEntry(openBucket, doneBucket)) }},
		{doneBucket, func() error { return read(doneBucket, now.changed, checkEntry(doneBucket, openBucket)) }},
		{docBucket, func() error { return read(docBucket, now.reread, checkDocument) }},
		{dueBucket, func() error { return c.eachRecord(dueBucket, checkDue) }},
		{scanBucket, func() error { return c.eachRecord(scanBucket, checkScan) }},
	}, arrivalPasses(c.eachRecord), []pass{{journalBucket, func() error { return c.checkChain(lineKey(v.Head.N)) }}}))
}

// readKeys reads which entries changed since, and which are not at rest.
func (r *recent) readKeys(tx *bbolt.Tx, v Verified) error {
	// A line of that number with another hash is one of another past of this ledger.
	if h, err := headAt(tx, v.Head.N); err != nil || h != v.Head {
		return ErrOtherJournal
	}
	keys := map[archive.Key]bool{}
	for from := v.Head.N + 1; ; {
		lines, err := readLines(tx, from)
		if err != nil || len(lines) == 0 {
			break // the chain reports it
		}
		for _, line := range lines {
			l, err := ledger.ParseLine(line)
			if k, keyErr := archive.ParseKey(l.Key); err == nil && keyErr == nil {
				keys[k] = true
			}
		}
		from += uint64(len(lines))
	}
	r.changed = append(r.changed, slices.Collect(maps.Keys(keys))...)
	err := eachPair(tx, openBucket, func(k, _ []byte) error {
		var key archive.Key
		if copyKey(&key, k) == nil { // one that is none is reported by the pass over entries
			keys[key] = true
		}
		return nil
	})
	r.reread = append(r.reread, slices.Collect(maps.Keys(keys))...)
	for _, list := range [][]archive.Key{r.changed, r.reread} {
		slices.SortFunc(list, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	}
	return err
}

// compareRecountSince compares balance, totals, counts and the number of lines with what the entries add up to: those at rest
// as they were verified, and the others as they are.
func (c *checker) compareRecountSince(v Verified, now *recent) error {
	return c.runAlone(func(p *part, tx *bbolt.Tx) error {
		s, err := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
		if err != nil {
			return p.reportError(metaBucket, err)
		}
		all, done := v.recount(), v.recount()
		if err := cmp.Or(c.countEntries(openBucket, nil, all), c.countEntries(doneBucket, now.changed, all, done)); err != nil {
			return err
		}
		if c.sound, err = newVerified(tx, s, done); err != nil {
			return p.reportError(metaBucket, err)
		}
		return p.compareSummary(tx, s, all)
	})
}
