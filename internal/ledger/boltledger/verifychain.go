package boltledger

import (
	"fmt"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// checkJournal computes the chain again, from the first line on or behind the
// one that was verified before.
func (c *checker) checkJournal(tx *bbolt.Tx) error {
	cur := tx.Bucket(journalBucket).Cursor()
	for k, v := cur.Seek(lineKey(c.end.N + 1)); k != nil; k, v = cur.Next() {
		if err := c.stopped(); err != nil {
			return err
		}
		if err := c.checkBlock(tx, k, v); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) checkBlock(tx *bbolt.Tx, k, v []byte) error {
	start, b, err := decodeBlock(k, v)
	stated := ledger.Head{N: start - 1, Hash: b.Prev}
	switch {
	case err != nil:
		err = c.reportUnread(journalBucket, err)
	case stated != c.end:
		err = c.reportProblem(journalBucket, "block %d does not follow line %d", start, c.end.N)
	}
	if err != nil {
		return err
	}
	// One break is one problem: the lines behind it are checked from the hash
	// that their block states.
	c.end = stated
	for _, line := range b.Lines {
		c.end = c.end.Next(line)
		l, err := ledger.ParseLine(line)
		if c.witness != nil {
			c.witness.Line(c.end, l, err)
		}
		if err != nil || l.N != c.end.N {
			err = c.reportProblem(journalBucket, "line %d is not a line of that number", c.end.N)
		} else {
			err = c.checkLine(tx, l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkLine follows what the ledger remembers of its lines.
func (c *checker) checkLine(tx *bbolt.Tx, l ledger.Line) error {
	at, err := alarmOf(l)
	c.alarmed = ledger.LaterOf(c.alarmed, at)
	c.differing.addLine(l)
	if err != nil {
		return c.reportError(journalBucket, err)
	}
	if err := c.checkFetch(tx, l); err != nil {
		return err
	}
	if l.Reason == "" && c.since == nil {
		return nil
	}
	key, keyErr := archive.ParseKey(l.Key)
	if c.since != nil && keyErr == nil {
		c.changed[key] = true
	}
	if l.Reason == "" || keyErr != nil && l.Key != "" {
		return nil
	}
	// The text of a reason lies outside of the journal, which has its digest.
	record := tx.Bucket(docBucket).Get(noteKey(key, l.Rev))
	if record == nil {
		return c.reportProblem(docBucket, "%s: the reason of its revision %d, which journal line %d tells of, is missing", key, l.Rev, l.N)
	}
	n, err := noteForm.decode(record)
	if err == nil && n.Digest().String() != l.Reason { // one that cannot be read is reported where it lies
		return c.reportProblem(docBucket, "%s: the reason of its revision %d is not the one that journal line %d tells of", key, l.Rev, l.N)
	}
	return nil
}

// checkChainEnd checks what was read of the journal against what is kept of it.
func (c *checker) checkChainEnd(tx *bbolt.Tx, s summary) error {
	var err error
	switch {
	case s.Head != c.end:
		err = damage("the chain does not lead to the head, which is at line %d", s.Head.N)
	// A summary that forgot an alarm would let safe mode look as if it had never been.
	case s.Alarmed.Before(c.alarmed):
		err = damage("the ledger was last put back or found damaged at %s, it remembers %s", c.alarmed, s.Alarmed)
	default:
		err = c.checkDiffering(tx)
	}
	if err := c.reportError(journalBucket, err); err != nil {
		return err
	}
	return c.reportError(fetchesBucket, c.compareFetches(tx))
}

// checkFetch checks that an announced download is counted in its month.
func (c *checker) checkFetch(tx *bbolt.Tx, l ledger.Line) error {
	at, ok, err := fetchTimeOf(l)
	if err != nil {
		return c.reportProblem(journalBucket, "line %d: %v", l.N, err)
	}
	if !ok {
		return nil
	}
	if c.fetches++; tx.Bucket(fetchesBucket).Get(fetchKey(at, l.N)) == nil {
		return c.reportProblem(fetchesBucket, "the download that journal line %d announces is not counted in its month", l.N)
	}
	return nil
}

// compareFetches compares the downloads that are counted with those that the journal announces.
func (c *checker) compareFetches(tx *bbolt.Tx) error {
	var since Verified
	if c.since != nil {
		since = *c.since
	}
	before, later, err := digestFetches(tx, since.Head.N)
	if err == nil {
		c.Sound.Fetches, _, err = digestFetches(tx, c.end.N)
	}
	switch {
	case err != nil:
		return err
	case c.since != nil && before != since.Fetches:
		return fmt.Errorf("the downloads up to line %d are not those that were checked", since.Head.N)
	case later != c.fetches:
		return fmt.Errorf("%d downloads are counted since line %d, the journal announces %d", later, since.Head.N, c.fetches)
	}
	return nil
}
