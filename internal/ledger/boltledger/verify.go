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
// It changes nothing, needs little memory whatever the ledger's size, and lets the
// committer work. Only the check of the pages, and the recount with the names, are long read
// transactions. The rest is read in short ones: a snapshot of hours would keep every page that is
// replaced meanwhile from being used again. An entry that changes meanwhile is checked as it
// is when it is read. An entry that moves from the done bucket to the open one meanwhile is
// found by a second pass over the open ones. All cores work, and the findings do not tell how
// many there are. The error is the context's.
func (l *Ledger) Verify(ctx context.Context) ([]ledger.Problem, error) {
	found, _, err := l.VerifyWhole(ctx, 0, nil)
	return found, err
}

// Beside is what runs beside a check, on the ledger as it is at one moment: its head and its balance. It is not called where
// pages are damaged, because it reads what lies on them.
type Beside func(end ledger.Head, balance ledger.Balance)

// VerifyWhole is Verify with something that runs beside it; nil: nothing does.
// If rest is not zero it works on one core alone, and rests so long after every
// few hundred records. Without a problem it returns what was found sound, from
// which VerifySince can go on.
func (l *Ledger) VerifyWhole(ctx context.Context, rest time.Duration, beside Beside) ([]ledger.Problem, Verified, error) {
	c := newChecker(ctx, l)
	if c.beside = beside; rest > 0 {
		c.rest, c.workers = rest, 1
	}
	found, err := c.checkAll()
	return found, c.sound, err
}

func newChecker(ctx context.Context, l *Ledger) *checker {
	return &checker{ledger: l, ctx: ctx, workers: runtime.GOMAXPROCS(0), fetches: fetchCounts{}, differing: differing{}}
}

// pass is one step of a check, in the bucket that it is about.
type pass struct {
	bucket []byte
	run    func() error
}

func (c *checker) checkAll() ([]ledger.Problem, error) {
	defer c.running.Wait()
	open := func() error { return c.eachRecord(openBucket, checkEntry(openBucket, doneBucket)) }
	err := c.runPasses(slices.Concat([]pass{
		// Pages first: bbolt follows a wrong page number without asking, and could end the process.
		{pagesWord, func() error { return c.ledger.checkAllPages(func() error { return context.Cause(c.ctx) }) }},
		{metaBucket, c.compareRecount},
		{openBucket, open},
		{doneBucket, func() error { return c.eachRecord(doneBucket, checkEntry(doneBucket, openBucket)) }},
		{openBucket, func() error { c.again = true; return open() }}, // those that came back from the done ones meanwhile
		{docBucket, func() error { return c.eachRecord(docBucket, checkDocument) }},
		{dueBucket, func() error { return c.eachRecord(dueBucket, checkDue) }},
		{scanBucket, func() error { return c.eachRecord(scanBucket, checkScan) }},
	}, arrivalPasses(c.eachRecord), []pass{{journalBucket, c.checkChain}}))
	return c.found, err
}

// pagesWord is where a problem with pages is said to be.
var pagesWord = []byte("pages")

// runPasses makes the passes one after the other. What runs beside them may still run when it returns: it reads the ledger
// itself, so nobody may wait for it within a transaction.
func (c *checker) runPasses(passes []pass) error {
	for _, p := range passes {
		err := p.run()
		var broken *ledger.DamageError
		switch {
		case errors.As(err, &broken): // bbolt could not go on in this bucket
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: broken.What})
		case errors.Is(err, errEnough):
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: "and more; the check stopped here"})
			c.startLate()
			return nil
		case err != nil:
			return fmt.Errorf("verify ledger: %w", err)
		}
		// The records below a damaged page cannot be read safely.
		if bytes.Equal(p.bucket, pagesWord) && len(c.found) > 0 {
			c.found = append(c.found, ledger.Problem{Where: string(p.bucket), What: "what lies on them was not read"})
			return nil
		}
	}
	c.startLate()
	return nil
}

// startLate starts what runs beside the check where it does not run yet: after a check that rests, and where the ledger's own
// record of its head cannot be read.
func (c *checker) startLate() {
	c.rest = 0
	if c.moment.N == 0 {
		c.moment.Head, c.moment.balance = c.ledger.Head(), c.ledger.Balance()
	}
	c.startBeside(c.moment.Head, c.moment.balance)
}

// startBeside starts what runs beside the check, once. A check that rests comes first: the two together would take more than
// one core from the work.
func (c *checker) startBeside(end ledger.Head, balance ledger.Balance) {
	if run := c.beside; run != nil && c.rest == 0 {
		c.beside = nil
		c.running.Go(func() { run(end, balance) })
	}
}

// checker is one check of a ledger.
type checker struct {
	ledger  *Ledger
	ctx     context.Context
	rest    time.Duration // between two short transactions
	workers int           // that read stretches of one bucket at once
	again   bool          // a second pass: what the first one found is not told twice

	tx *bbolt.Tx // of what no worker reads, where all is read at one moment; nil: a short one each time

	found []ledger.Problem

	beside  Beside // nil: nothing, or it runs already
	running sync.WaitGroup
	moment  struct { // at which the entries were counted
		ledger.Head
		balance ledger.Balance
	}
	sound Verified

	names   nameCheck
	end     ledger.Head // of the journal, as far as it was read
	alarmed time.Time   // the latest alarm that the journal tells of
	fetches fetchCounts // the downloads that the journal tells of

	differing differing // by the comparisons that the journal tells of
}

// viewAlone runs fn in a read transaction: in the one that is open already, where all is read at one moment.
func (c *checker) viewAlone(fn func(*bbolt.Tx) error) error {
	if c.tx != nil {
		return recoverDamage(func() error { return fn(c.tx) })
	}
	return c.ledger.view(fn)
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

// compareRecount compares balance, totals and the number of lines with what all entries add up to, and at the same moment of
// the ledger the names with those that entries bear.
func (c *checker) compareRecount() error {
	return c.atOneMoment(func(txs []*bbolt.Tx) error {
		s, err := summaryForm.decode(txs[0].Bucket(metaBucket).Get(summaryKey))
		if err != nil {
			return c.runAlone(func(p *part) error { return p.reportError(metaBucket, err) })
		}
		c.moment.Head, c.moment.balance = s.head, s.balance()
		c.startBeside(s.head, s.balance())
		r, done, err := c.recountAtOnce(txs)
		if err != nil {
			return err
		}
		if c.sound, err = newVerified(txs[0], s, done); err != nil {
			return c.runAlone(func(p *part) error { return p.reportError(countsBucket, err) })
		}
		return cmp.Or(c.checkNames(txs[0]), c.runAlone(func(p *part) error { return p.compareSummary(txs[0], s, r) }))
	})
}

func (p *part) compareSummary(tx *bbolt.Tx, s summary, r *recount) error {
	if b := s.balance(); b != r.balance {
		if err := p.reportProblem(metaBucket, "the balance is kept as %q, the entries add up to %q", b, r.balance); err != nil {
			return err
		}
	}
	// Each revision and each mark has one line, and the journal begins with a line of its own.
	arrived, revs := countArrivals(tx)
	if b := s.arrivalBalance(); b != arrived {
		if err := p.reportProblem(metaBucket, "the balance of arrivals is kept as %v, they add up to %v", b, arrived); err != nil {
			return err
		}
	}
	if revs += r.revs; revs+s.marks+1 != s.head.N {
		if err := p.reportProblem(metaBucket, "the entries, arrivals and marks tell of %d events, the journal of %d", revs+s.marks, s.head.N-1); err != nil {
			return err
		}
	}
	if n := uint64(tx.Bucket(namesBucket).Stats().KeyN); n != s.names {
		if err := p.reportProblem(namesBucket, "%d names are there, the ledger has taken %d", n, s.names); err != nil {
			return err
		}
	}
	return r.compareDerived(tx, p.reportError)
}

// recountAtOnce counts all entries of one moment, on all workers. A record that cannot be read is not counted: the pass over
// entries reports it.
func (c *checker) recountAtOnce(txs []*bbolt.Tx) (all, done *recount, err error) {
	all, done = newRecount(), newRecount()
	for _, bucket := range [][]byte{openBucket, doneBucket} {
		err := c.walkBucket(&walk{
			bucket: bucket,
			view: func(worker int, fn func(*bbolt.Tx) error) error {
				return recoverDamage(func() error { return fn(txs[worker]) })
			},
			check: func(p *part, tx *bbolt.Tx, k, v []byte) error {
				e, err := decodeEntryAt(bucket, k, v)
				if err != nil {
					return nil // reported by the pass over entries
				}
				p.countEntry(e)
				return p.checkNamesOf(bucket, tx, e)
			},
			merge: func(p *part) error {
				c.names.add(p.names)
				all.add(p.counted)
				if bytes.Equal(bucket, doneBucket) {
					done.add(p.counted)
				}
				return c.takeIn(p)
			},
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return all, done, nil
}

// inTransactions returns how the workers of a walk read in transactions that are open already.
func inTransactions(txs []*bbolt.Tx) func(int, func(*bbolt.Tx) error) error {
	return func(worker int, fn func(*bbolt.Tx) error) error {
		return recoverDamage(func() error { return fn(txs[worker]) })
	}
}

// atOneMoment runs fn with one read transaction for each worker, all of the same commit. fn opens no other one, and waits for
// nobody who does: a write that makes the file larger than its mapping waits until every reader is done, and lets no new one begin
// meanwhile.
func (c *checker) atOneMoment(fn func(txs []*bbolt.Tx) error) error {
	return recoverDamage(func() error {
		var txs []*bbolt.Tx
		defer func() { rollBackAtOnce(txs) }()
		err := c.ledger.withoutWriter(func() error {
			for len(txs) < c.workers {
				tx, err := c.ledger.db.Begin(false)
				if err != nil {
					return err
				}
				txs = append(txs, tx)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return fn(txs)
	})
}

// rollBackAtOnce ends read transactions. Each one lets go of the mapping, and then waits for a transaction that is about to begin.
// That one may wait for a write that waits for the mapping: so none may wait for another one before it lets go.
func rollBackAtOnce(txs []*bbolt.Tx) {
	var all sync.WaitGroup
	for _, tx := range txs {
		all.Go(func() { _ = tx.Rollback() }) // read-only: there is nothing to lose
	}
	all.Wait()
}

// withoutWriter runs fn while nobody writes. It waits for the commit that is being made.
func (l *Ledger) withoutWriter(fn func() error) error {
	if l.db.IsReadOnly() { // then nobody can
		return fn()
	}
	writer, err := l.db.Begin(true)
	if err != nil {
		return err
	}
	defer func() { _ = writer.Rollback() }() // it wrote nothing
	return fn()
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
