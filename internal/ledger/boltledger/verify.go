package boltledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// maxProblems bounds what Verify collects: more problems tell nothing more about a ledger.
const maxProblems = 1000

var errEnough = errors.New("enough problems")

// Verify checks everything that can be checked without the service: each record's
// checksum, the chain from the first line on, the due index and the names against
// the entries that they are derived from, balance and totals against a recount, and
// before all that every page of the file: each reached once, none of them free. Where a
// page is wrong, what lies on it is not read.
//
// It changes nothing, needs little memory whatever the ledger's size, and lets the
// committer work. Only the check of the pages and the recount are long read transactions.
// The rest is read in short ones: a snapshot of hours would keep every page that is
// replaced meanwhile from being used again. An entry that changes meanwhile is checked as it
// is when it is read. An entry that moves from the done bucket to the open one meanwhile is
// found by a second pass over the open ones. The error is the context's.
func (l *Ledger) Verify(ctx context.Context) ([]ledger.Problem, error) { return l.VerifySlowly(ctx, 0) }

// VerifySlowly is Verify with a rest after every few hundred records, for the check
// that runs beside the work.
func (l *Ledger) VerifySlowly(ctx context.Context, rest time.Duration) ([]ledger.Problem, error) {
	c := &checker{ledger: l, ctx: ctx, rest: rest, fetches: fetchCounts{}}
	open := func() error { return c.eachRecord(openBucket, c.checkEntry(openBucket, doneBucket)) }
	passes := []struct {
		bucket []byte
		run    func() error
	}{
		{[]byte("pages"), func() error { return l.checkAllPages(func() error { return context.Cause(ctx) }) }},
		{metaBucket, c.compareRecount},
		{openBucket, open},
		{doneBucket, func() error { return c.eachRecord(doneBucket, c.checkEntry(doneBucket, openBucket)) }},
		{openBucket, func() error { c.again = true; return open() }}, // those that came back from the done ones meanwhile
		{docBucket, func() error { return c.eachRecord(docBucket, c.checkDocument) }},
		{dueBucket, func() error { return c.eachRecord(dueBucket, c.checkDue) }},
		{findBucket, func() error { return c.eachRecord(findBucket, c.checkName) }},
		{findBucket, c.checkRuns},
		{scanBucket, func() error { return c.eachRecord(scanBucket, c.checkScan) }},
		{journalBucket, c.checkChain},
	}
	// Pages first: bbolt follows a wrong page number without asking, and could end the process.
	for i, p := range passes {
		err := p.run()
		var broken *ledger.DamageError
		switch {
		case errors.As(err, &broken): // bbolt could not go on in this bucket
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: broken.What})
		case errors.Is(err, errEnough):
			return append(c.found, ledger.Problem{Where: string(p.bucket), What: "and more; the check stopped here"}), nil
		case err != nil:
			return c.found, fmt.Errorf("verify ledger: %w", err)
		}
		// The records below a damaged page cannot be read safely.
		if i == 0 && len(c.found) > 0 {
			return append(c.found, ledger.Problem{Where: string(p.bucket), What: "what lies on them was not read"}), nil
		}
	}
	return c.found, nil
}

type checker struct {
	ledger *Ledger
	ctx    context.Context
	rest   time.Duration // between two short transactions
	again  bool          // a second pass: what the first one found is not told twice
	found  []ledger.Problem

	alarmed time.Time   // the latest alarm that the journal tells of
	fetches fetchCounts // the downloads that the journal tells of
}

// reportProblem notes a problem and says whether to go on.
func (c *checker) reportProblem(bucket []byte, format string, a ...any) error {
	p := ledger.Problem{Where: string(bucket), What: fmt.Sprintf(format, a...)}
	if c.again && slices.Contains(c.found, p) {
		return context.Cause(c.ctx)
	}
	c.found = append(c.found, p)
	if len(c.found) >= maxProblems {
		return errEnough
	}
	return context.Cause(c.ctx)
}

// reportError reports err, if it is one.
func (c *checker) reportError(bucket []byte, err error) error {
	var d *ledger.DamageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &d):
		return c.reportProblem(bucket, "%s", strings.TrimPrefix(d.What, string(bucket)+" "))
	}
	return c.reportProblem(bucket, "%v", err)
}

// eachRecord calls fn with every pair of a bucket, in many short transactions.
func (c *checker) eachRecord(bucket []byte, fn func(tx *bbolt.Tx, k, v []byte) error) error {
	var last []byte
	for more := true; more; {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		err := c.ledger.view(func(tx *bbolt.Tx) error {
			cur := tx.Bucket(bucket).Cursor()
			// A new transaction each time: the committer can use replaced pages again in between.
			k, v := cur.Seek(last)
			if last != nil && bytes.Equal(k, last) {
				k, v = cur.Next()
			}
			for n := 0; k != nil && n < chunkEntries; n += recordsToCheck(bucket, v) {
				if err := fn(tx, k, v); err != nil {
					return err
				}
				// Copied: the key belongs to the transaction.
				last = append(last[:0], k...)
				k, v = cur.Next()
			}
			more = k != nil
			return nil
		})
		if err == nil && more {
			err = c.restBetween()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordsToCheck is how many records it takes to check a value: each pair of names leads to one.
func recordsToCheck(bucket, v []byte) int {
	if bytes.Equal(bucket, findBucket) {
		return 1 + len(v)/pairSize
	}
	return 1
}

func (c *checker) restBetween() error {
	if c.rest <= 0 {
		return nil
	}
	t := time.NewTimer(c.rest)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// compareRecount compares balance, totals and the number of lines with what all entries add up to.
func (c *checker) compareRecount() error {
	return c.ledger.view(func(tx *bbolt.Tx) error {
		s, err := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
		if err != nil {
			return c.reportError(metaBucket, err)
		}
		r, err := recountEntries(tx, func(error) error { return context.Cause(c.ctx) }) // damage is reported by the pass over entries
		if err != nil {
			return err
		}
		if b := s.balance(); b != r.balance {
			if err := c.reportProblem(metaBucket, "the balance is kept as %q, the entries add up to %q", b, r.balance); err != nil {
				return err
			}
		}
		// Each revision and each mark has one line, and the journal begins with a line of its own.
		if r.revs+s.marks+1 != s.head.N {
			if err := c.reportProblem(metaBucket, "the entries and marks tell of %d events, the journal of %d", r.revs+s.marks, s.head.N-1); err != nil {
				return err
			}
		}
		return r.compareDerived(tx, c.reportError)
	})
}

// checkEntry checks one entry, and that everything derived from it is there.
func (c *checker) checkEntry(bucket, other []byte) func(tx *bbolt.Tx, k, v []byte) error {
	return func(tx *bbolt.Tx, k, v []byte) error {
		e, err := decodeEntryAt(bucket, k, v)
		if err != nil {
			return c.reportError(bucket, err)
		}
		var wrong []string
		// An entry in both buckets would be worked on and looked up in two different states.
		if !bytes.Equal(bucketOf(e), bucket) || tx.Bucket(other).Get(k) != nil {
			wrong = append(wrong, "lies in the wrong bucket, or in both")
		}
		for _, d := range [][]byte{dueKey(e), attentionKey(e)} {
			// Such an entry would never be worked on again: the engine reads the due index and nothing else.
			if d != nil && tx.Bucket(dueBucket).Get(d) == nil {
				wrong = append(wrong, "is not in the due index")
			}
		}
		if !e.FirstID.IsZero() && !e.Content.IsZero() && tx.Bucket(docBucket).Get(k) == nil {
			wrong = append(wrong, "has lost its document")
		}
		wrong = append(wrong, unfoundNames(tx, e)...)
		for _, w := range wrong {
			if err := c.reportProblem(bucket, "%s %s", e.Key, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *checker) checkDocument(tx *bbolt.Tx, k, v []byte) error {
	var key archive.Key
	err := copyKey(&key, k)
	switch {
	case err != nil:
	case isNote(k):
		_, err = noteForm.decode(v)
	case len(k) != len(key):
		err = damage("a key of %d bytes", len(k))
	default:
		_, err = documentForm.decode(v)
	}
	if err == nil {
		// An erasable part that no entry leads to could never be erased.
		if _, ok, readErr := readEntry(tx, key); readErr == nil && !ok && !(isNote(k) && key.IsZero()) { // a mark's
			err = errors.New("its entry does not exist")
		}
	}
	if err != nil {
		return c.reportProblem(docBucket, "%s: %v", key, err)
	}
	return nil
}

func (c *checker) checkDue(tx *bbolt.Tx, k, v []byte) error {
	_, _, key, err := decodeDueKey(k)
	if err == nil && len(v) != 0 {
		err = fmt.Errorf("entry %s has a value of %d bytes, which is none of ours", key, len(v))
	}
	if err != nil {
		return c.reportError(dueBucket, err)
	}
	e, ok, err := readEntry(tx, key)
	if err == nil && (!ok || !bytes.Equal(dueKey(e), k) && !bytes.Equal(attentionKey(e), k)) {
		return c.reportProblem(dueBucket, "entry %s is not due so", key)
	}
	return nil // an entry that cannot be read is reported where it lies
}

// checkChain computes the chain of the journal anew from its first line.
func (c *checker) checkChain() error {
	var h ledger.Head
	err := c.eachRecord(journalBucket, func(tx *bbolt.Tx, k, v []byte) error {
		start, b, err := decodeBlock(k, v)
		if err == nil && (start != h.N+1 || b.prev != h.Hash) {
			err = damage("block %d does not follow line %d", start, h.N)
		}
		if err != nil {
			// One break is one problem: the lines behind it are checked from the hash that their block states.
			h = ledger.Head{N: start - 1, Hash: b.prev} // go on behind the break
			if err := c.reportError(journalBucket, err); err != nil {
				return err
			}
		}
		for _, line := range b.lines {
			h = h.Next(line)
			l, err := ledger.ParseLine(line)
			if err != nil || l.N != h.N {
				return c.reportProblem(journalBucket, "line %d is not a line of that number", h.N)
			}
			if err := c.checkReason(tx, l); err != nil {
				return err
			}
			at, err := alarmOf(l)
			if err != nil {
				return c.reportError(journalBucket, err)
			}
			c.alarmed = laterOf(c.alarmed, at)
			if err := c.fetches.addLine(l); err != nil {
				return c.reportError(journalBucket, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.checkChainEnd(h)
}

// checkReason checks the text of a reason against its digest in the journal.
func (c *checker) checkReason(tx *bbolt.Tx, l ledger.Line) error {
	key, err := archive.ParseKey(l.Key)
	if l.Reason == "" || err != nil && l.Key != "" {
		return nil
	}
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

// checkChainEnd checks the computed chain against the journal, which may have grown meanwhile.
func (c *checker) checkChainEnd(h ledger.Head) error {
	return c.ledger.view(func(tx *bbolt.Tx) error {
		// The journal may have grown since: the head at the last line that was read must be the one that the chain gave.
		kept, err := headAt(tx, h.N)
		if err == nil && kept != h {
			err = damage("the chain does not lead to the head")
		}
		if err == nil {
			s, sErr := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
			last, lastErr := headAt(tx, ^uint64(0))
			err = errors.Join(sErr, lastErr)
			if err == nil && s.head != last {
				err = damage("the head is not that of the last line")
			}
			// A summary that forgot an alarm would let safe mode look as if it had never been.
			if err == nil && s.alarmed.Before(c.alarmed) { // a later one came meanwhile
				err = damage("the ledger was last put back or found damaged at %s, it remembers %s", c.alarmed, s.alarmed)
			}
		}
		if err == nil {
			err = errors.Join(checkFetchKeys(tx), c.fetches.compareWith(tx))
		}
		return c.reportError(journalBucket, err)
	})
}
