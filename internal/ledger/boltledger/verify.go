package boltledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// maxProblems bounds what Verify collects: more problems tell nothing more about a ledger.
const maxProblems = 1000

var errEnough = errors.New("enough problems")

// Verify checks everything that can be checked without the service: each
// record's checksum, the chain from the first line on, the due index and the
// names against the entries that they are derived from, balance and totals
// against a recount, and before all that every page of the file: each reached
// once, none of them free. If a page is wrong, what is on it is not read.
//
// It changes nothing, and needs little memory whatever the ledger's size.
// The ledger must stay as it is meanwhile: of one at work a [Ledger.Copy] is
// checked. All cores work, and the findings do not tell how many there are.
// The error is the context's.
func (l *Ledger) Verify(ctx context.Context) ([]ledger.Problem, error) {
	found, _, err := l.VerifyWhole(ctx, false, nil)
	return found, err
}

// VerifyWhole is Verify with something that runs beside it; nil: nothing does.
// It does not run where pages are damaged, because it reads what lies on them.
// A quiet check works on one core alone, with beside behind it. Without a
// problem it returns what was found sound, from which VerifySince can go on.
func (l *Ledger) VerifyWhole(ctx context.Context, quiet bool, beside func()) ([]ledger.Problem, Verified, error) {
	c := newChecker(ctx, l)
	if c.beside, c.quiet = beside, quiet; quiet {
		c.workers = 1
	}
	found, err := c.checkAll()
	return found, c.sound, err
}

func newChecker(ctx context.Context, l *Ledger) *checker {
	return &checker{ledger: l, ctx: ctx, workers: runtime.GOMAXPROCS(0), differing: differing{}}
}

// pass is one step of a check, in the bucket that it is about.
type pass struct {
	bucket []byte
	run    func() error
}

func (c *checker) checkAll() ([]ledger.Problem, error) {
	err := c.runPasses(slices.Concat([]pass{
		c.pagesPass(),
		{metaBucket, c.compareRecount},
		{openBucket, func() error { return c.eachRecord(openBucket, checkEntry(openBucket, doneBucket)) }},
		{doneBucket, func() error { return c.eachRecord(doneBucket, checkEntry(doneBucket, openBucket)) }},
		{docBucket, func() error { return c.eachRecord(docBucket, checkDocument) }},
		{dueBucket, func() error { return c.eachRecord(dueBucket, checkDue) }},
		{scanBucket, func() error { return c.eachRecord(scanBucket, checkScan) }},
	}, arrivalPasses(c.eachRecord), []pass{{journalBucket, func() error { return c.checkChain(nil) }}}))
	return c.found, err
}

// pagesPass checks the pages first: damage on them may end the process. Those of
// a copy were checked before it was opened.
func (c *checker) pagesPass() pass {
	return pass{pagesWord, func() error {
		if c.ledger.isCopy {
			return nil
		}
		return c.ledger.checkPages()
	}}
}

// pagesWord is where a problem with pages is said to be.
var pagesWord = []byte("pages")

// runPasses makes the passes one after the other, and what runs beside them.
func (c *checker) runPasses(passes []pass) error {
	var running sync.WaitGroup
	defer running.Wait()
	beside := func() {
		if run := c.beside; run != nil {
			c.beside = nil
			running.Go(run)
		}
	}
	for _, p := range passes {
		err := p.run()
		var broken *ledger.DamageError
		switch {
		case errors.As(err, &broken): // bbolt could not go on in this bucket
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: broken.What})
		case errors.Is(err, errEnough):
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: "and more; the check stopped here"})
			beside()
			return nil
		case err != nil:
			return fmt.Errorf("verify ledger: %w", err)
		}
		// The records below a damaged page cannot be read safely.
		if bytes.Equal(p.bucket, pagesWord) && len(c.found) > 0 {
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: "what lies on them was not read"})
			return nil
		}
		if !c.quiet {
			beside()
		}
	}
	beside()
	return nil
}

// checker is one check of a ledger.
type checker struct {
	ledger  *Ledger
	ctx     context.Context
	quiet   bool   // beside runs when the check is made
	beside  func() // nil: nothing, or it runs already
	workers int    // that read stretches of one bucket at once

	found []ledger.Problem
	sound Verified

	names   nameCheck
	since   Verified    // that the check continues; zero: it reads everything
	end     ledger.Head // of the journal, as far as it was read
	alarmed time.Time   // the latest alarm that the journal tells of
	fetches uint64      // downloads that the journal announces behind since

	differing differing // by the comparisons that the journal tells of
}

// compareRecount compares balance, totals and the number of lines with what all
// entries add up to, and the names with those that entries bear.
func (c *checker) compareRecount() error {
	return c.runAlone(func(p *part, tx *bbolt.Tx) error {
		s, err := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
		if err != nil {
			return p.reportError(metaBucket, err)
		}
		all, done := newRecount(), newRecount()
		if err := cmp.Or(c.countEntries(openBucket, nil, all), c.countEntries(doneBucket, nil, all, done)); err != nil {
			return err
		}
		if c.sound, err = newVerified(tx, s, done); err != nil {
			return p.reportError(metaBucket, err)
		}
		return cmp.Or(checkNames(p, tx), p.compareSummary(tx, s, all))
	})
}

// countEntries adds the entries of a bucket, or those of the keys alone, to the
// sums, and looks up their names. A record that cannot be read is not counted:
// the pass over entries reports it.
func (c *checker) countEntries(bucket []byte, keys []archive.Key, sums ...*recount) error {
	return c.walkBucket(&walk{
		bucket: bucket, keys: keys,
		check: func(p *part, tx *bbolt.Tx, k, v []byte) error {
			e, err := decodeEntryAt(bucket, k, v)
			if err != nil {
				return nil
			}
			p.countEntry(e)
			return p.checkNamesOf(bucket, tx, e)
		},
		merge: func(p *part) error {
			c.names.add(p.names)
			for _, sum := range sums {
				sum.add(p.counted)
			}
			return c.takeIn(p)
		},
	})
}

func (p *part) compareSummary(tx *bbolt.Tx, s summary, r *recount) error {
	if b := s.Balance; b != r.balance {
		if err := p.reportProblem(metaBucket, "the balance is kept as %q, the entries add up to %q", b, r.balance); err != nil {
			return err
		}
	}
	// Each revision and each mark has one line, and the journal begins with a line of its own.
	arrived, revs := countArrivals(tx)
	if b := s.Arrivals; b != arrived {
		if err := p.reportProblem(metaBucket, "the balance of arrivals is kept as %v, they add up to %v", b, arrived); err != nil {
			return err
		}
	}
	if revs += r.revs; revs+s.Marks+1 != s.Head.N {
		if err := p.reportProblem(metaBucket, "the entries, arrivals and marks tell of %d events, the journal of %d", revs+s.Marks, s.Head.N-1); err != nil {
			return err
		}
	}
	if n := uint64(tx.Bucket(namesBucket).Stats().KeyN); n != s.Names {
		if err := p.reportProblem(namesBucket, "%d names are there, the ledger has taken %d", n, s.Names); err != nil {
			return err
		}
	}
	return r.compareDerived(tx, p.reportError)
}

// checkEntry checks one entry, and that everything derived from it is there.
func checkEntry(bucket, other []byte) func(p *part, tx *bbolt.Tx, k, v []byte) error {
	return func(p *part, tx *bbolt.Tx, k, v []byte) error {
		e, err := decodeEntryAt(bucket, k, v)
		if err != nil {
			return p.reportError(bucket, err)
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
		for _, w := range wrong {
			if err := p.reportProblem(bucket, "%s %s", e.Key, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func checkDocument(p *part, tx *bbolt.Tx, k, v []byte) error {
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
		isOther := isNote(k) && (key.IsZero() || tx.Bucket(arrivalBucket).Get(key[:]) != nil) // of a mark or an arrival
		if !hasEntry(tx, key) && !isOther {
			err = errors.New("its entry does not exist")
		}
	}
	if err != nil {
		return p.reportProblem(docBucket, "%s: %v", key, err)
	}
	return nil
}

func checkDue(p *part, tx *bbolt.Tx, k, v []byte) error {
	_, _, key, err := decodeDueKey(k)
	if err == nil && len(v) != 0 {
		err = fmt.Errorf("entry %s has a value of %d bytes, which is none of ours", key, len(v))
	}
	if err != nil {
		return p.reportError(dueBucket, err)
	}
	e, ok, err := readEntry(tx, key)
	if err == nil && (!ok || !bytes.Equal(dueKey(e), k) && !bytes.Equal(attentionKey(e), k)) {
		return p.reportProblem(dueBucket, "entry %s is not due so", key)
	}
	return nil // an entry that cannot be read is reported where it lies
}
