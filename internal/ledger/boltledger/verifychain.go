package boltledger

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// chainPart is what the blocks of one stretch of the journal tell.
type chainPart struct {
	begun    bool
	before   ledger.Head // that its first block states; where that one cannot be read, as far as it could
	broken   bool        // the first block cannot be read, and says so itself
	end      ledger.Head
	alarmed  time.Time
	fetches  uint64        // downloads that they announce
	compared []ledger.Line // of comparisons with the archive's index
}

// checkChain computes the chain of the journal anew behind the key from; nil:
// from its first line. Each block states the hash before it, so that the
// stretches can be read at the same time: what joins two of them is checked
// when the second one is taken in.
func (c *checker) checkChain(from []byte) error {
	err := c.walkBucket(&walk{bucket: journalBucket, from: from, check: checkBlock, merge: c.joinChain})
	if err != nil {
		return err
	}
	return c.runAlone(checkChainEnd)
}

// joinChain joins a stretch of the journal to those before it.
func (c *checker) joinChain(p *part) error {
	if p.chain.begun {
		if !p.chain.broken && p.chain.before != c.end {
			joint := &part{check: c}
			_ = joint.reportError(journalBucket, unjoined(p.chain.before, c.end))
			p.found = append(joint.found, p.found...)
		}
		c.end = p.chain.end
		c.alarmed = ledger.LaterOf(c.alarmed, p.chain.alarmed)
		c.fetches += p.chain.fetches
		for _, l := range p.chain.compared {
			c.differing.addLine(l)
		}
	}
	return c.takeIn(p)
}

// unjoined says that a block states another head before it than the one that is there.
func unjoined(stated, before ledger.Head) error {
	return damage("block %d does not follow line %d", stated.N+1, before.N)
}

func checkBlock(p *part, tx *bbolt.Tx, k, v []byte) error {
	start, b, err := decodeBlock(k, v)
	stated, first := ledger.Head{N: start - 1, Hash: b.Prev}, !p.chain.begun
	if first {
		p.chain = chainPart{begun: true, before: stated, broken: err != nil}
	}
	if err == nil && !first && stated != p.chain.end {
		err = unjoined(stated, p.chain.end)
	}
	// One break is one problem: the lines behind it are checked from the hash that their block states.
	p.chain.end = stated
	if err != nil {
		if err := p.reportError(journalBucket, err); err != nil {
			return err
		}
	}
	for _, line := range b.Lines {
		p.chain.end = p.chain.end.Next(line)
		l, err := ledger.ParseLine(line)
		if err != nil || l.N != p.chain.end.N {
			return p.reportProblem(journalBucket, "line %d is not a line of that number", p.chain.end.N)
		}
		if err := p.checkReason(tx, l); err != nil {
			return err
		}
		at, err := alarmOf(l)
		if err != nil {
			return p.reportError(journalBucket, err)
		}
		p.chain.alarmed = ledger.LaterOf(p.chain.alarmed, at)
		if l.Event == ledger.MarkCompared {
			p.chain.compared = append(p.chain.compared, l)
		}
		if err := p.checkFetch(tx, l); err != nil {
			return err
		}
	}
	return nil
}

// checkFetch checks that an announced download is counted in its month.
func (p *part) checkFetch(tx *bbolt.Tx, l ledger.Line) error {
	at, ok, err := fetchTimeOf(l)
	if err != nil {
		return p.reportProblem(journalBucket, "line %d: %v", l.N, err)
	}
	if !ok {
		return nil
	}
	if p.chain.fetches++; tx.Bucket(fetchesBucket).Get(fetchKey(at, l.N)) == nil {
		return p.reportProblem(fetchesBucket, "the download that journal line %d announces is not counted in its month", l.N)
	}
	return nil
}

// checkReason checks the text of a reason against its digest in the journal.
func (p *part) checkReason(tx *bbolt.Tx, l ledger.Line) error {
	key, err := archive.ParseKey(l.Key)
	if l.Reason == "" || err != nil && l.Key != "" {
		return nil
	}
	record := tx.Bucket(docBucket).Get(noteKey(key, l.Rev))
	if record == nil {
		return p.reportProblem(docBucket, "%s: the reason of its revision %d, which journal line %d tells of, is missing", key, l.Rev, l.N)
	}
	n, err := noteForm.decode(record)
	if err == nil && n.Digest().String() != l.Reason { // one that cannot be read is reported where it lies
		return p.reportProblem(docBucket, "%s: the reason of its revision %d is not the one that journal line %d tells of", key, l.Rev, l.N)
	}
	return nil
}

// checkChainEnd checks the computed chain against the journal and what is kept of it.
func checkChainEnd(p *part, tx *bbolt.Tx) error {
	c := p.check
	s, err := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
	last, lastErr := headAt(tx, ^uint64(0))
	switch {
	case errors.Join(err, lastErr) != nil:
		err = errors.Join(err, lastErr)
	case last != c.end:
		err = damage("the chain does not lead to the head")
	case s.Head != last:
		err = damage("the head is not that of the last line")
	// A summary that forgot an alarm would let safe mode look as if it had never been.
	case s.Alarmed.Before(c.alarmed):
		err = damage("the ledger was last put back or found damaged at %s, it remembers %s", c.alarmed, s.Alarmed)
	default:
		err = p.checkDiffering(tx)
	}
	if err := p.reportError(journalBucket, err); err != nil {
		return err
	}
	return p.reportError(fetchesBucket, c.compareFetches(tx))
}

// compareFetches compares the downloads that are counted with those that the journal announces.
func (c *checker) compareFetches(tx *bbolt.Tx) error {
	before, later, err := digestFetches(tx, c.since.Head.N)
	if err == nil {
		c.sound.Fetches, _, err = digestFetches(tx, c.end.N)
	}
	switch {
	case err != nil:
		return err
	case c.since.Head.N > 0 && before != c.since.Fetches:
		return fmt.Errorf("the downloads up to line %d are not those that were checked", c.since.Head.N)
	case later != c.fetches:
		return fmt.Errorf("%d downloads are counted since line %d, the journal announces %d", later, c.since.Head.N, c.fetches)
	}
	return nil
}
