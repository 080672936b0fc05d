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
	c := &checker{ledger: l, ctx: ctx, since: since, witness: w, changed: map[archive.Key]bool{}, differing: differing{}, names: nameCheck{former: map[archive.Key]bool{}}}
	passes := c.listPasses()
	if since != nil {
		c.end, c.resting = since.Head, since.Resting
		maps.Copy(c.differing, since.Differing)
		passes = c.listPassesSince()
	}
	return c.Checked, c.run(passes)
}

// pass is one step of a check, in the bucket that it is about.
type pass struct {
	bucket []byte
	run    func(tx *bbolt.Tx) error
}

// pagesWord is where a problem with pages is said to be.
var pagesWord = []byte("pages")

// listPasses lists the steps of a check of the whole ledger. Pages first: bbolt
// follows a wrong page number without asking, and could end the process.
func (c *checker) listPasses() []pass {
	return slices.Concat([]pass{
		{pagesWord, c.checkPages},
		{journalBucket, c.checkJournal},
		c.each(openBucket, c.checkEntry),
		c.each(doneBucket, c.checkEntry),
		c.each(docBucket, c.checkDocument),
	}, c.listSmallPasses(), []pass{
		{namesBucket, c.checkNames},
		{metaBucket, c.checkSummary},
	})
}

// checkPages checks the pages. Those of a copy were checked before it was opened.
func (c *checker) checkPages(*bbolt.Tx) error {
	if c.ledger.isCopy {
		return nil
	}
	return c.ledger.checkPages()
}

// listSmallPasses lists the steps through what is small, or is never at rest.
func (c *checker) listSmallPasses() []pass {
	return []pass{
		c.each(dueBucket, c.checkDue),
		c.each(scanBucket, c.checkScan),
		c.each(arrivalBucket, c.checkArrival),
		c.each(arrivalIndexBucket, c.checkArrivalIndex),
		c.each(noticeBucket, c.checkNotice),
	}
}

// checker is one check of a ledger.
type checker struct {
	Checked
	ledger  *Ledger
	ctx     context.Context
	since   *Verified // nil: the whole ledger is read
	witness Witness   // may be nil

	all     Resting              // of the entries that were read
	resting Resting              // of the entries at rest
	arrived arrival.Balance      // of all arrivals
	revs    uint64               // of them
	changed map[archive.Key]bool // entries that a line is about since
	names   nameCheck

	end       ledger.Head // of the journal, as far as it was read
	alarmed   time.Time   // the latest alarm that the journal tells of
	fetches   uint64      // downloads that the lines announce
	differing differing   // by the comparisons that the journal tells of
}

func (c *checker) stopped() error { return context.Cause(c.ctx) }

// run makes the passes one after the other.
func (c *checker) run(passes []pass) error {
	for _, p := range passes {
		before := len(c.Problems)
		err := c.ledger.view(p.run)
		var broken *ledger.DamageError
		switch {
		case errors.As(err, &broken): // bbolt could not go on in this bucket
			c.note(p.bucket, broken.What)
			c.missed(broken.What)
		case errors.Is(err, errEnough):
			c.note(p.bucket, "and more; the check stopped here")
			c.missed("the check stopped")
			return nil
		case err != nil:
			return fmt.Errorf("verify ledger: %w", err)
		}
		// The records below a damaged page cannot be read safely.
		if bytes.Equal(p.bucket, pagesWord) && len(c.Problems) > before {
			c.note(p.bucket, "what lies on them was not read")
			c.Unread = "pages are damaged"
			return nil
		}
	}
	return nil
}

func (c *checker) note(bucket []byte, what string) {
	c.Problems = append(c.Problems, ledger.Problem{Where: string(bucket), What: what})
}

// missed notes why the witness was not shown something.
func (c *checker) missed(why string) {
	if c.Unread == "" {
		c.Unread = why
	}
}

// reportProblem notes a problem and says whether to go on.
func (c *checker) reportProblem(bucket []byte, format string, a ...any) error {
	c.note(bucket, fmt.Sprintf(format, a...))
	if len(c.Problems) >= maxProblems {
		return errEnough
	}
	return nil
}

// reportError reports err, if it is one.
func (c *checker) reportError(bucket []byte, err error) error {
	if err == nil {
		return nil
	}
	return c.reportProblem(bucket, "%s", strings.TrimPrefix(wordsOf(err), string(bucket)+" "))
}

// reportUnread reports a record that cannot be read, and so is not shown to the witness.
func (c *checker) reportUnread(bucket []byte, err error) error {
	c.missed(wordsOf(err))
	return c.reportError(bucket, err)
}

func wordsOf(err error) string {
	if d, ok := errors.AsType[*ledger.DamageError](err); ok {
		return d.What
	}
	return err.Error()
}

// recordCheck checks one record of a bucket. The error says not to go on.
type recordCheck func(tx *bbolt.Tx, bucket, k, v []byte) error

// each is the pass that checks every record of a bucket.
func (c *checker) each(bucket []byte, check recordCheck) pass {
	return pass{bucket, func(tx *bbolt.Tx) error {
		return eachPair(tx, bucket, func(k, v []byte) error {
			if err := c.stopped(); err != nil {
				return err
			}
			return check(tx, bucket, k, v)
		})
	}}
}

// checkEntry checks one entry, and that everything derived from it is there.
func (c *checker) checkEntry(tx *bbolt.Tx, bucket, k, v []byte) error {
	e, err := decodeEntryAt(bucket, k, v)
	if err != nil {
		return c.reportUnread(bucket, err)
	}
	other := openBucket
	c.all.add(e)
	switch isOpen := bytes.Equal(bucket, openBucket); {
	case !isOpen:
		c.resting.add(e)
	case c.since != nil:
		c.changed[e.Key] = true
		fallthrough
	default:
		other = doneBucket
	}
	if c.witness != nil {
		c.witness.Entry(e)
	}
	var wrong []string
	// An entry in both buckets would be worked on and looked up in two different states.
	if !bytes.Equal(bucketOf(e), bucket) || tx.Bucket(other).Get(k) != nil {
		wrong = append(wrong, "lies in the wrong bucket, or in both")
	}
	for _, d := range [][]byte{dueKey(e), attentionKey(e)} {
		// Such an entry would never be worked on again: the engine reads the
		// due index and nothing else.
		if d != nil && tx.Bucket(dueBucket).Get(d) == nil {
			wrong = append(wrong, "is not in the due index")
		}
	}
	if !e.FirstID.IsZero() && !e.Content.IsZero() && tx.Bucket(docBucket).Get(k) == nil {
		wrong = append(wrong, "has lost its document")
	}
	for _, w := range wrong {
		if err := c.reportProblem(bucket, "%s %s", e.Key, w); err != nil {
			return err
		}
	}
	return c.checkNamesOf(bucket, tx, e)
}

func (c *checker) checkDocument(tx *bbolt.Tx, _, k, v []byte) error {
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
		return c.reportProblem(docBucket, "%s: %v", key, err)
	}
	return nil
}

func (c *checker) checkDue(tx *bbolt.Tx, _, k, v []byte) error {
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

// checkSummary compares balances and the number of lines with what entries and
// arrivals add up to, and what was read of the journal with what is kept of it.
func (c *checker) checkSummary(tx *bbolt.Tx) error {
	s, err := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
	if err != nil {
		return c.reportError(metaBucket, err)
	}
	c.Sound = Verified{Head: c.end, Resting: c.resting, Differing: c.differing}
	if err := c.checkChainEnd(tx, s); err != nil {
		return err
	}
	if n := uint64(tx.Bucket(namesBucket).Stats().KeyN); n != s.Names {
		if err := c.reportProblem(namesBucket, "%d names are there, the ledger has taken %d", n, s.Names); err != nil {
			return err
		}
	}
	if c.since != nil {
		return c.compareSince(s)
	}
	if b := s.Balance; b != c.all.Balance {
		if err := c.reportProblem(metaBucket, "the balance is kept as %q, the entries add up to %q", b, c.all.Balance); err != nil {
			return err
		}
	}
	if b := s.Arrivals; b != c.arrived {
		if err := c.reportProblem(metaBucket, "the balance of arrivals is kept as %v, they add up to %v", b, c.arrived); err != nil {
			return err
		}
	}
	// Each revision and each mark has one line, and the journal begins with a line of its own.
	if revs := c.all.Revs + c.revs; revs+s.Marks+1 != s.Head.N {
		if err := c.reportProblem(metaBucket, "the entries, arrivals and marks tell of %d events, the journal of %d", revs+s.Marks, s.Head.N-1); err != nil {
			return err
		}
	}
	return c.compareSuccess(s, c.all.Success)
}

// compareSuccess compares the last success with the newest that the entries
// tell of. An earlier one may be right: it is at most the time of its line.
func (c *checker) compareSuccess(s summary, at time.Time) error {
	if s.Success.After(at) || s.Success.IsZero() != at.IsZero() {
		return c.reportProblem(metaBucket, "the last success is kept as %s, the entries tell of %s", s.Success, at)
	}
	return nil
}

func eachPair(tx *bbolt.Tx, bucket []byte, fn func(k, v []byte) error) error {
	c := tx.Bucket(bucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if err := fn(k, v); err != nil {
			return err
		}
	}
	return nil
}
