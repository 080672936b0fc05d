package boltledger

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// checkBlock computes the chain again, through the lines of one block.
func (c *checker) checkBlock(k, v []byte) error {
	b, err := decodeBlock(k, v)
	if err != nil {
		return c.missed(err)
	}
	stated, end := ledger.Head{N: b.start - 1, Hash: b.Prev}, &c.Sound.Head
	if stated != *end {
		c.report(damage("block %d does not follow line %d", b.start, end.N))
	}
	// One break is one problem: the lines behind it are checked from the hash
	// that their block states.
	*end = stated
	for _, line := range b.Lines {
		*end = end.Next(line)
		l, err := ledger.ParseLine(line)
		if c.witness != nil {
			c.witness.Line(*end, l, err)
		}
		if err == nil && l.N == end.N {
			err = c.checkLine(l)
		} else {
			err = damage("line %d is not a line of that number", end.N)
		}
		c.report(err)
	}
	return nil
}

// checkLine follows what the ledger remembers of its lines.
func (c *checker) checkLine(l ledger.Line) error {
	c.at = l.At
	alarmed, err := alarmOf(l)
	if err != nil {
		return err
	}
	c.alarmed = ledger.LaterOf(c.alarmed, alarmed)
	c.Sound.Differing = addComparison(c.Sound.Differing, l)
	fetched, ok, err := fetchTimeOf(l)
	if err != nil {
		return fmt.Errorf("line %d: %w", l.N, err)
	}
	if ok {
		addFetch(&c.Sound.Fetches, fetchKey(fetched, l.N))
	}
	if l.Reason == "" && c.isWhole {
		return nil
	}
	key, err := archive.ParseKey(l.Key)
	if err == nil && !c.isWhole {
		c.changed[key] = true
	}
	if l.Reason == "" || err != nil && l.Key != "" {
		return nil
	}
	// The text of a reason lies outside of the journal, which has its digest.
	record := c.tx.Bucket(docBucket).Get(noteKey(key, l.Rev))
	n, err := noteForm.decode(record)
	switch {
	case record == nil:
		c.note(docBucket, "%s: the reason of its revision %d, which journal line %d tells of, is missing", key, l.Rev, l.N)
	case err == nil && n.Digest().String() != l.Reason: // one that cannot be read is reported where it lies
		c.note(docBucket, "%s: the reason of its revision %d is not the one that journal line %d tells of", key, l.Rev, l.N)
	}
	return nil
}

// addFetch adds a download to a digest of downloads, in which their order does
// not count: lines tell of them in another one than that of their keys.
func addFetch(to *archive.Digest, key []byte) {
	for i, b := range sha256.Sum256(key) {
		to[i] ^= b
	}
}

// checkFetch takes in one download that is counted.
func (c *checker) checkFetch(k, v []byte) error {
	_, err := decodeFetchKey(k, v)
	addFetch(&c.fetches, k)
	return err
}

// checkEntry checks one entry, and that everything derived from it is there.
func (c *checker) checkEntry(k, v []byte) error {
	bucket, other := c.bucket, openBucket
	e, err := decodeEntryAt(bucket, k, v)
	if err != nil {
		return c.missed(err)
	}
	if c.all.add(e); bytes.Equal(bucket, openBucket) {
		other = doneBucket
		if !c.isWhole {
			c.changed[e.Key] = true
		}
	} else {
		c.Sound.Resting.add(e)
	}
	if c.witness != nil {
		c.witness.Entry(e)
	}
	// An entry in both buckets would be worked on and looked up in two different states.
	if !bytes.Equal(bucketOf(e), bucket) || c.tx.Bucket(other).Get(k) != nil {
		c.report(damage("%s lies in the wrong bucket, or in both", e.Key))
	}
	for _, due := range [][]byte{dueKey(e), attentionKey(e)} {
		// Such an entry would never be worked on again: the engine reads the
		// due index and nothing else.
		if due != nil && c.tx.Bucket(dueBucket).Get(due) == nil {
			c.report(damage("%s is not in the due index", e.Key))
		}
	}
	if !e.FirstID.IsZero() && !e.Content.IsZero() && c.tx.Bucket(docBucket).Get(k) == nil {
		c.report(damage("%s has lost its document", e.Key))
	}
	c.checkNamesOf(e)
	return nil
}

// checkDocument checks one document or note, and that something leads to it:
// otherwise it could never be erased.
func (c *checker) checkDocument(k, v []byte) error {
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
	isOther := isNote(k) && (key.IsZero() || c.tx.Bucket(arrivalBucket).Get(key[:]) != nil) // of a mark or an arrival
	if err == nil && !isOther && !hasEntry(c.tx, key) {
		err = errors.New("its entry does not exist")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return err
}

func (c *checker) checkDue(k, v []byte) error {
	_, _, key, err := decodeDueKey(k)
	if err == nil && len(v) != 0 {
		err = damage("%s is due with a value of %d bytes, which is none of ours", key, len(v))
	}
	if err != nil {
		return err
	}
	if k[0]&(classBit|arrivalBit) == arrivalBit {
		a, ok, err := readArrival(c.tx, key)
		if err == nil && (!ok || !bytes.Equal(dueArrivalKey(a), k)) {
			return damage("arrival %s is not due so", key)
		}
		return nil // one that cannot be read is reported where it lies
	}
	e, ok, err := readEntry(c.tx, key)
	if err == nil && (!ok || !bytes.Equal(dueKey(e), k) && !bytes.Equal(attentionKey(e), k)) {
		return damage("entry %s is not due so", key)
	}
	return nil // an entry that cannot be read is reported where it lies
}

func checkScan(k, v []byte) error { _, err := decodeScan(k, v); return err }

// checkArrival checks one arrival, and that it is found by its state and by its
// number at the service.
func (c *checker) checkArrival(k, v []byte) error {
	a, err := decodeArrival(k, v)
	if err != nil {
		return c.missed(err)
	}
	c.arrived.CountChange(arrival.None, a.State)
	c.revs += uint64(a.Rev)
	if c.witness != nil {
		c.witness.Arrival(a)
	}
	// One that is missing there would never be fetched: the engine reads the
	// indexes and nothing else.
	if due := dueArrivalKey(a); due != nil && c.tx.Bucket(dueBucket).Get(due) == nil {
		return damage("%s is not in the due index", a.Key)
	}
	for _, has := range indexKeys(a) {
		if v := c.tx.Bucket(indexBucket).Get(has); v == nil || has[0] != arrivalsByState && !bytes.Equal(v, a.Key[:]) {
			return damage("%s is not in the index", a.Key)
		}
	}
	return nil
}

// checkIndex checks that a key of the index is that of its arrival, or of a notice.
func (c *checker) checkIndex(k, v []byte) error {
	var key archive.Key
	err := errors.New("a key of no kind")
	switch {
	case len(k) > 0 && k[0] == askingNotice && len(v) == 0:
		n, ok, err := readNotice(c.tx, archive.AcknowledgementID(k[1:]))
		if err == nil && (!ok || !n.Entry.IsZero()) {
			return damage("notification %q does not wait for an operator", k[1:])
		}
		return nil // one that cannot be read is reported where it lies
	case len(k) > 2 && k[0] == arrivalsByState && len(v) == 0:
		err = copyKey(&key, k[2:])
	case len(k) > 0 && (k[0] == arrivalsByItem || k[0] == receivedByID):
		err = copyKey(&key, v)
	}
	if err != nil {
		return err
	}
	a, ok, err := readArrival(c.tx, key)
	if err == nil && (!ok || !slices.ContainsFunc(indexKeys(a), func(has []byte) bool { return bytes.Equal(has, k) })) {
		return damage("arrival %s is not found so", key)
	}
	return nil // one that cannot be read is reported where it lies
}

// checkNotice checks one notice, and that the entry or the arrival that it is about exists.
func (c *checker) checkNotice(k, v []byte) error {
	n, err := decodeNotice(k, v)
	switch {
	case err != nil:
		return err
	case !n.Entry.IsZero() && !hasEntry(c.tx, n.Entry):
		return damage("%q is about the entry %s, which does not exist", n.ID, n.Entry)
	case !n.Arrival.IsZero() && c.tx.Bucket(arrivalBucket).Get(n.Arrival[:]) == nil:
		return damage("%q is about the arrival %s, which does not exist", n.ID, n.Arrival)
	}
	return nil
}
