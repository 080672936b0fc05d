package boltledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// maxProblems bounds what a check collects: more problems tell nothing more about a ledger.
const maxProblems = 1000

var errEnough = errors.New("enough problems")

// Witness is shown what a check reads, each once: the lines of the journal in
// their order, then entries, then arrivals.
type Witness interface {
	// Line shows a line: at is the end of the chain with it, err why it cannot be parsed.
	Line(at ledger.Head, l ledger.Line, err error)
	Entry(ledger.Entry)
	Arrival(arrival.Arrival)
}

// Checked is what a check found.
type Checked struct {
	Problems []ledger.Problem
	Unread   string   // why the witness was not shown everything; empty: it was
	Sound    Verified // what a later check can go on from; only without a problem
}

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
	Fetches   archive.Digest // of the downloads that the journal announces
	Differing []difference
}

// Resting is what entries add up to: those at rest, or all.
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

// Verify checks everything that can be checked without the service: each
// record's checksum, the chain from the first line on, the due index and the
// names against the entries that they are derived from, the balance
// against a recount, and before all that every page of the file: each reached
// once, none of them free. If a page is wrong, what is on it is not read.
//
// It changes nothing, and needs little memory whatever the ledger's size.
// The ledger must stay as it is meanwhile: of one at work a [Ledger.Copy] is
// checked. The error is the context's.
func (l *Ledger) Verify(ctx context.Context) ([]ledger.Problem, error) {
	found, err := l.Check(ctx, nil, nil)
	return found.Problems, err
}

// Check is Verify with a witness; nil: there is none. With an earlier check it
// reads only what came since, see [Verified].
func (l *Ledger) Check(ctx context.Context, since *Verified, w Witness) (Checked, error) {
	c := &checker{ctx: ctx, isWhole: since == nil, witness: w, changed: map[archive.Key]bool{}, former: map[archive.Key]bool{}}
	if since != nil {
		c.Sound, c.all = *since, since.Resting
	}
	// Pages first: bbolt follows a wrong page number without asking, and could
	// end the process. Those of a copy were checked before it was opened.
	var broken *ledger.DamageError
	var err error
	if !l.isCopy {
		err = l.checkPages(ctx)
	}
	if errors.As(err, &broken) {
		c.note(pagesWord, "%s", broken.What)
		c.note(pagesWord, "what lies on them was not read")
		c.Unread = "pages are damaged"
		return c.Checked, nil
	}
	if err == nil {
		err = l.view(func(tx *bbolt.Tx) error { c.tx = tx; return c.run() })
	}
	if errors.Is(err, errEnough) {
		c.note(c.bucket, "and more; %v", c.missed(errors.New("the check stopped here")))
		return c.Checked, nil
	}
	if err != nil {
		err = fmt.Errorf("verify ledger: %w", err)
	}
	return c.Checked, err
}

// pagesWord is where a problem with pages is said to be.
var pagesWord = []byte("pages")

// checker is one check of a ledger, in one transaction.
type checker struct {
	Checked // Sound grows with what is read
	ctx     context.Context
	stop    error // why it stopped; nil: it has not
	tx      *bbolt.Tx
	bucket  []byte  // that is read
	isWhole bool    // the check does not go on from an earlier one
	witness Witness // may be nil

	all     Resting              // of all entries
	arrived arrival.Balance      // of all arrivals
	revs    uint64               // of them
	changed map[archive.Key]bool // entries that are not at rest, or that a line is about; of a check that goes on
	alarmed time.Time            // the latest alarm that the lines tell of
	at      string               // the time of the last line

	fetches archive.Digest // of the downloads that are counted

	former map[archive.Key]bool // entries that may have taken names which they do not bear now
	found  uint64               // first records of names that were found from their entry, but for those of former
}

// run reads each bucket once. The journal and the open entries come first: they
// tell which others a check that goes on from an earlier one reads.
func (c *checker) run() error {
	c.each(journalBucket, lineKey(c.Sound.Head.N+1), nil, c.checkBlock)
	c.each(openBucket, nil, nil, c.checkEntry)
	c.eachChanged(doneBucket, c.checkEntry)
	c.eachChanged(docBucket, c.checkDocument)
	c.each(dueBucket, nil, nil, c.checkDue)
	c.each(fetchesBucket, nil, nil, c.checkFetch)
	c.each(scanBucket, nil, nil, checkScan)
	c.each(arrivalBucket, nil, nil, c.checkArrival)
	c.each(indexBucket, nil, nil, c.checkIndex)
	c.each(noticeBucket, nil, nil, c.checkNotice)
	if c.isWhole {
		c.checkNames()
	}
	c.step(metaBucket, c.checkSummary)
	return c.stop
}

// step makes one step of the check, about a bucket, unless the check stopped.
func (c *checker) step(bucket []byte, do func() error) {
	if c.stop != nil {
		return
	}
	c.bucket = bucket
	err := recoverDamage(do)
	if broken, ok := errors.AsType[*ledger.DamageError](err); ok { // bbolt could not go on in this bucket
		c.report(c.missed(broken))
		return
	}
	c.stop = err
}

// each checks the records of a bucket from a key on whose keys begin with
// prefix. What check returns is wrong with the record.
func (c *checker) each(bucket, from, prefix []byte, check func(k, v []byte) error) {
	c.step(bucket, func() error {
		cur := c.tx.Bucket(bucket).Cursor()
		for k, v := cur.Seek(from); k != nil && bytes.HasPrefix(k, prefix); k, v = cur.Next() {
			c.report(check(k, v))
			if len(c.Problems) >= maxProblems {
				return errEnough
			}
			if c.ctx.Err() != nil {
				return context.Cause(c.ctx)
			}
		}
		return nil
	})
}

// eachChanged checks the records of a bucket; where the check goes on from an
// earlier one, those of the entries that changed.
func (c *checker) eachChanged(bucket []byte, check func(k, v []byte) error) {
	if c.isWhole {
		c.each(bucket, nil, nil, check)
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.changed), func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }) {
		c.each(bucket, key[:], key[:], check)
	}
}

// report notes what is wrong in the bucket that is read; nil is nothing.
func (c *checker) report(err error) {
	if err != nil {
		c.note(c.bucket, "%s", strings.TrimPrefix(wordsOf(err), string(c.bucket)+" "))
	}
}

func (c *checker) note(bucket []byte, format string, a ...any) {
	c.Problems = append(c.Problems, ledger.Problem{Where: string(bucket), What: fmt.Sprintf(format, a...)})
}

// missed notes why the witness was not shown something.
func (c *checker) missed(err error) error {
	if c.Unread == "" {
		c.Unread = wordsOf(err)
	}
	return err
}

func wordsOf(err error) string {
	if d, ok := errors.AsType[*ledger.DamageError](err); ok {
		return d.What
	}
	return err.Error()
}

// checkSummary compares what was read with what the ledger keeps of it.
func (c *checker) checkSummary() error {
	c.bucket = metaBucket
	s, err := summaryForm.decode(c.tx.Bucket(metaBucket).Get(summaryKey))
	if err != nil {
		c.report(err)
		return nil
	}
	if s.Head != c.Sound.Head {
		c.note(journalBucket, "the chain does not lead to the head, which is at line %d", s.Head.N)
	}
	if at, err := time.Parse(time.RFC3339, c.at); c.at != "" && (err != nil || !at.Equal(s.At)) {
		c.note(metaBucket, "the time of the last line is kept as %s, the journal tells of %s", s.At, c.at)
	}
	// A summary that forgot an alarm would let safe mode look as if it had never been.
	if s.Alarmed.Before(c.alarmed) {
		c.note(journalBucket, "the ledger was last put back or found damaged at %s, it remembers %s", c.alarmed, s.Alarmed)
	}
	if !slices.Equal(s.Differing, c.Sound.Differing) {
		c.note(journalBucket, "the vaults whose index differed are kept as %v, the journal tells of %v", s.Differing, c.Sound.Differing)
	}
	if c.fetches != c.Sound.Fetches {
		c.note(fetchesBucket, "the downloads that are counted are not those that the journal announces")
	}
	if n := uint64(c.tx.Bucket(namesBucket).Stats().KeyN); n != s.Names {
		c.note(namesBucket, "%d names are there, the ledger has taken %d", n, s.Names)
	}
	// Each revision and each mark has one line, and the journal begins with a line of its own.
	events := c.all.Revs + c.revs + s.Marks
	switch isBalanced, isCounted := s.Balance == c.all.Balance, events+1 == s.Head.N; {
	case isBalanced && isCounted && s.Arrivals == c.arrived:
	case !c.isWhole:
		c.report(damage("an entry that was at rest has changed, or the balance is not right"))
	case !isBalanced:
		c.report(damage("the balance is kept as %q, the entries add up to %q", s.Balance, c.all.Balance))
	case !isCounted:
		c.report(damage("the entries, arrivals and marks tell of %d events, the journal of %d", events, s.Head.N-1))
	default:
		c.report(damage("the balance of arrivals is kept as %v, they add up to %v", s.Arrivals, c.arrived))
	}
	// An earlier success may be right: it is at most the time of its line.
	if at := c.all.Success; s.Success.After(at) || s.Success.IsZero() != at.IsZero() {
		c.report(damage("the last success is kept as %s, the entries tell of %s", s.Success, at))
	}
	return nil
}
