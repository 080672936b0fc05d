package boltledger

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Verified is what a check without a problem found, at one line of the journal.
// It can be stored as JSON.
//
// A check that goes on from it reads what came since: the journal behind the
// line, the entries that are not at rest and those that a line is about, with
// their documents and names, and all that is small. It does not read again the
// lines before, nor other entries at rest, their documents and names: what
// became of those since it cannot tell.
//
// A problem that it reports may be a change of an entry that was at rest, or
// another journal than that of the earlier check: a check of the whole ledger
// shows whether anything is wrong.
type Verified struct {
	Head      ledger.Head
	Resting   Resting
	Fetches   archive.Digest             // of the downloads that the journal announces
	Differing map[archive.VaultID]uint64 // the vaults whose index differed, with the journal lines of the comparisons
}

// Resting is what entries add up to: those at rest, or all that a check read.
type Resting struct {
	Balance ledger.Balance
	Revs    uint64    // each of them has a journal line
	Success time.Time // the newest of the service's times of success
}

func (r *Resting) add(e ledger.Entry) {
	r.Balance.CountChange(ledger.None, e.State)
	r.Revs += uint64(e.Rev)
	r.Success = ledger.LaterOf(r.Success, lastSuccess(e))
}

// lastSuccess returns the newest of the service's times of success of an entry;
// zero: there is none.
func lastSuccess(e ledger.Entry) (at time.Time) {
	for _, t := range e.Transactions() {
		at = ledger.LaterOf(at, t.At)
	}
	return at
}

// listPassesSince lists the steps of a check that goes on from an earlier one.
func (c *checker) listPassesSince() []pass {
	return slices.Concat([]pass{
		{pagesWord, c.checkPages},
		{journalBucket, c.checkJournal},
		c.each(openBucket, c.checkEntry),
		{doneBucket, func(tx *bbolt.Tx) error { return c.eachChanged(tx, doneBucket, c.checkEntry) }},
		{docBucket, func(tx *bbolt.Tx) error { return c.eachChanged(tx, docBucket, c.checkDocument) }},
	}, c.listSmallPasses(), []pass{{metaBucket, c.checkSummary}})
}

// eachChanged checks the records of the entries that changed.
func (c *checker) eachChanged(tx *bbolt.Tx, bucket []byte, check recordCheck) error {
	cur := tx.Bucket(bucket).Cursor()
	for _, key := range c.listChanged() {
		for k, v := cur.Seek(key[:]); bytes.HasPrefix(k, key[:]); k, v = cur.Next() {
			if err := check(tx, bucket, k, v); err != nil {
				return err
			}
		}
	}
	return c.stopped()
}

// listChanged lists the entries that are not at rest, or that a line is about since.
func (c *checker) listChanged() []archive.Key {
	return slices.SortedFunc(maps.Keys(c.changed), func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
}

// compareSince compares the balances and the number of lines with what the
// entries add up to: those at rest as they were verified, and the others as
// they are.
func (c *checker) compareSince(s summary) error {
	all, revs := c.all.Balance, c.all.Revs+c.revs+c.since.Resting.Revs
	all.Seen += c.since.Resting.Balance.Seen
	for s, n := range c.since.Resting.Balance.States {
		all.States[s] += n
	}
	if s.Balance != all || s.Arrivals != c.arrived || revs+s.Marks+1 != s.Head.N {
		return c.reportProblem(metaBucket, "an entry that was at rest has changed, or the balance is not right")
	}
	return c.compareSuccess(s, ledger.LaterOf(c.all.Success, c.since.Resting.Success))
}
