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

// maxProblems bounds what Verify collects: a ledger with that many is beyond doubt.
const maxProblems = 1000

var errEnough = errors.New("enough problems")

// Verify checks everything that can be checked without the service: each record's
// checksum, the chain from the first line on, the due index and the names against
// the entries that they are derived from, balance and totals against a recount, and
// before all that every page of the file: each reached once, none of them free. Where a
// page is wrong, what lies on it is not read.
//
// It changes nothing, needs little memory whatever the ledger's size, and lets the
// committer work: only the look at the pages and the recount are long read transactions.
// The rest is read in short ones, since one snapshot of hours would keep every page that
// is replaced meanwhile from being used again. An entry that changes is checked as it
// stands when its turn comes; one that moves behind the check's back from the entries
// at rest to the open ones, when those are gone through a second time. The error is the
// context's.
func (l *Ledger) Verify(ctx context.Context) ([]ledger.Problem, error) { return l.VerifySlowly(ctx, 0) }

// VerifySlowly is Verify with a rest after every few hundred records, for the check
// that runs beside the work.
func (l *Ledger) VerifySlowly(ctx context.Context, rest time.Duration) ([]ledger.Problem, error) {
	c := &check{ledger: l, ctx: ctx, rest: rest}
	open := func() error { return c.each(openBucket, c.entry(openBucket, doneBucket)) }
	passes := []struct {
		bucket []byte
		run    func() error
	}{
		{[]byte("pages"), func() error { return l.pages(func() error { return context.Cause(ctx) }) }},
		{metaBucket, c.recount},
		{openBucket, open},
		{doneBucket, func() error { return c.each(doneBucket, c.entry(doneBucket, openBucket)) }},
		{openBucket, func() error { c.again = true; return open() }}, // those that came back from the done ones meanwhile
		{docBucket, func() error { return c.each(docBucket, c.document) }},
		{dueBucket, func() error { return c.each(dueBucket, c.due) }},
		{findBucket, func() error { return c.each(findBucket, c.name) }},
		{findBucket, c.runs},
		{scanBucket, func() error { return c.each(scanBucket, c.scan) }},
		{journalBucket, c.chain},
	}
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
		if i == 0 && len(c.found) > 0 {
			return append(c.found, ledger.Problem{Where: string(p.bucket), What: "what lies on them was not read"}), nil
		}
	}
	return c.found, nil
}

type check struct {
	ledger *Ledger
	ctx    context.Context
	rest   time.Duration // between two short transactions
	again  bool          // a second pass: what the first one found is not told twice
	found  []ledger.Problem

	alarmed time.Time // the latest alarm that the journal tells of
	fetches fetches   // the downloads that the journal tells of
}

// report notes a problem and says whether to go on.
func (c *check) report(bucket []byte, format string, a ...any) error {
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

// unless reports err, if it is one.
func (c *check) unless(bucket []byte, err error) error {
	var d *ledger.DamageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &d):
		return c.report(bucket, "%s", strings.TrimPrefix(d.What, string(bucket)+" "))
	}
	return c.report(bucket, "%v", err)
}

// each calls fn with every pair of a bucket, in many short transactions.
func (c *check) each(bucket []byte, fn func(tx *bbolt.Tx, k, v []byte) error) error {
	var last []byte
	for more := true; more; {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		err := c.ledger.view(func(tx *bbolt.Tx) error {
			cur := tx.Bucket(bucket).Cursor()
			k, v := cur.Seek(last)
			if last != nil && bytes.Equal(k, last) {
				k, v = cur.Next()
			}
			for n := 0; k != nil && n < pageEntries; n += records(bucket, v) {
				if err := fn(tx, k, v); err != nil {
					return err
				}
				last = append(last[:0], k...)
				k, v = cur.Next()
			}
			more = k != nil
			return nil
		})
		if err == nil && more {
			err = c.pause()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// records is how many records it takes to check a value: each pair of names leads to one.
func records(bucket, v []byte) int {
	if bytes.Equal(bucket, findBucket) {
		return 1 + len(v)/pairSize
	}
	return 1
}

func (c *check) pause() error {
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

// recount holds balance, totals and the number of lines against all entries.
func (c *check) recount() error {
	return c.ledger.view(func(tx *bbolt.Tx) error {
		s, err := standingForm.open(tx.Bucket(metaBucket).Get(standingKey))
		if err != nil {
			return c.unless(metaBucket, err)
		}
		r, err := c.ledger.count(tx, func(error) error { return context.Cause(c.ctx) }) // damage is reported by the pass over entries
		if err != nil {
			return err
		}
		if b := s.balance(); b != r.balance {
			if err := c.report(metaBucket, "the balance is kept as %q, the entries add up to %q", b, r.balance); err != nil {
				return err
			}
		}
		if r.revs+s.marks+1 != s.head.N {
			if err := c.report(metaBucket, "the entries and marks tell of %d events, the journal of %d", r.revs+s.marks, s.head.N-1); err != nil {
				return err
			}
		}
		return c.totals(tx, r.totals)
	})
}

// totals compares the stored totals with the recounted ones, and uses those up.
func (c *check) totals(tx *bbolt.Tx, want map[string]ledger.Total) error {
	cur := tx.Bucket(totalsBucket).Cursor()
	for k, v := cur.First(); k != nil; k, v = cur.Next() {
		t, err := openTotal(k, v)
		if err == nil && t != want[string(k)] {
			err = fmt.Errorf("kept as %+v, the entries add up to %+v", t, want[string(k)])
		}
		delete(want, string(k))
		if err := c.unless(totalsBucket, err); err != nil {
			return err
		}
	}
	for _, t := range want {
		if err := c.report(totalsBucket, "%s %d-%02d is missing", t.Vault, t.Year, t.Month); err != nil {
			return err
		}
	}
	return nil
}

// entry checks one entry, and that everything derived from it is there.
func (c *check) entry(bucket, other []byte) func(tx *bbolt.Tx, k, v []byte) error {
	return func(tx *bbolt.Tx, k, v []byte) error {
		e, err := entryAt(bucket, k, v)
		if err != nil {
			return c.unless(bucket, err)
		}
		var wrong []string
		if !bytes.Equal(bucketOf(e), bucket) || tx.Bucket(other).Get(k) != nil {
			wrong = append(wrong, "lies in the wrong bucket, or in both")
		}
		for _, d := range [][]byte{dueKey(e), attentionKey(e)} {
			if d != nil && tx.Bucket(dueBucket).Get(d) == nil {
				wrong = append(wrong, "is not in the due index")
			}
		}
		if !e.FirstID.IsZero() && !e.Content.IsZero() && tx.Bucket(docBucket).Get(k) == nil {
			wrong = append(wrong, "has lost its document")
		}
		wrong = append(wrong, unfound(tx, e)...)
		for _, w := range wrong {
			if err := c.report(bucket, "%s %s", e.Key, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *check) document(tx *bbolt.Tx, k, v []byte) error {
	var key archive.Key
	err := copyKey(&key, k)
	switch {
	case err != nil:
	case isNote(k):
		_, err = noteForm.open(v)
	case len(k) != len(key):
		err = damage("a key of %d bytes", len(k))
	default:
		_, err = documentForm.open(v)
	}
	if err == nil {
		if _, ok, readErr := readEntry(tx, key); readErr == nil && !ok && !(isNote(k) && key.IsZero()) { // a mark's
			err = errors.New("its entry does not exist")
		}
	}
	if err != nil {
		return c.report(docBucket, "%s: %v", key, err)
	}
	return nil
}

func (c *check) due(tx *bbolt.Tx, k, v []byte) error {
	_, _, key, err := openDue(k)
	if err == nil && len(v) != 0 {
		err = fmt.Errorf("entry %s has a value of %d bytes, which is none of ours", key, len(v))
	}
	if err != nil {
		return c.unless(dueBucket, err)
	}
	e, ok, err := readEntry(tx, key)
	if err == nil && (!ok || !bytes.Equal(dueKey(e), k) && !bytes.Equal(attentionKey(e), k)) {
		return c.report(dueBucket, "entry %s is not due so", key)
	}
	return nil // an entry that cannot be read is reported where it lies
}

// chain refolds the journal from its first line.
func (c *check) chain() error {
	var h ledger.Head
	err := c.each(journalBucket, func(tx *bbolt.Tx, k, v []byte) error {
		start, b, err := openBlock(k, v)
		if err == nil && (start != h.N+1 || b.prev != h.Hash) {
			err = damage("block %d does not follow line %d", start, h.N)
		}
		if err != nil {
			h = ledger.Head{N: start - 1, Hash: b.prev} // go on behind the break
			if err := c.unless(journalBucket, err); err != nil {
				return err
			}
		}
		for _, line := range b.lines {
			h = h.Next(line)
			l, err := ledger.ParseLine(line)
			if err != nil || l.N != h.N {
				return c.report(journalBucket, "line %d is not a line of that number", h.N)
			}
			if err := c.reason(tx, l); err != nil {
				return err
			}
			at, err := alarmOf(l)
			if err != nil {
				return c.unless(journalBucket, err)
			}
			c.alarmed = later(c.alarmed, at)
			if err := c.fetches.line(l, c.ledger.loc); err != nil {
				return c.unless(journalBucket, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.end(h)
}

// reason holds the text of a reason against its digest in the journal.
func (c *check) reason(tx *bbolt.Tx, l ledger.Line) error {
	key, err := archive.ParseKey(l.Key)
	if l.Reason == "" || err != nil && l.Key != "" {
		return nil
	}
	record := tx.Bucket(docBucket).Get(noteKey(key, l.Rev))
	if record == nil {
		return c.report(docBucket, "%s: the reason of its revision %d, which journal line %d tells of, is missing", key, l.Rev, l.N)
	}
	n, err := noteForm.open(record)
	if err == nil && n.Digest().String() != l.Reason { // one that cannot be read is reported where it lies
		return c.report(docBucket, "%s: the reason of its revision %d is not the one that journal line %d tells of", key, l.Rev, l.N)
	}
	return nil
}

// end holds the refolded chain against the journal as it went on meanwhile.
func (c *check) end(h ledger.Head) error {
	return c.ledger.view(func(tx *bbolt.Tx) error {
		kept, err := headAt(tx, h.N)
		if err == nil && kept != h {
			err = damage("the chain does not lead to the head")
		}
		if err == nil {
			s, sErr := standingForm.open(tx.Bucket(metaBucket).Get(standingKey))
			last, lastErr := headAt(tx, ^uint64(0))
			err = errors.Join(sErr, lastErr)
			if err == nil && s.head != last {
				err = damage("the head is not that of the last line")
			}
			if err == nil && s.alarmed.Before(c.alarmed) { // a later one came meanwhile
				err = damage("the ledger was last put back or found damaged at %s, it remembers %s", c.alarmed, s.alarmed)
			}
		}
		if err == nil {
			var f fetches
			if f, err = openFetches(tx); err == nil && f.less(c.fetches) != "" {
				err = damage("%s", f.less(c.fetches))
			}
		}
		return c.unless(journalBucket, err)
	})
}
