package boltledger

import (
	"bytes"
	"encoding/binary"
	"math"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Names lie in the order of their digests, and entries in that of their keys:
// to look at the entry of each name would read the whole ledger in random order
// many times over. So a check first looks up the names of each entry, and counts
// the records that it finds so. Of all others it reads the entry.

// nameCheck is what the pass over entries found out about the records of names.
type nameCheck struct {
	found  uint64               // records that come first for their name, and were found from their entry
	former map[archive.Key]bool // entries that may have taken names which they do not bear now; their records do not count
}

// checkNamesOf looks up each name of an entry of that bucket, and finds numbers
// and upload addresses of it that belong to another clientUUID (I8).
func (c *checker) checkNamesOf(bucket []byte, tx *bbolt.Tx, e ledger.Entry) error {
	read := func(k archive.Key) (ledger.Entry, bool, error) {
		if k == e.Key {
			return e, true, nil
		}
		return readEntry(tx, k)
	}
	if !e.SameNumber.IsZero() {
		if first, ok, err := read(e.SameNumber); err == nil && (!ok || first.Number != e.Number) {
			err := c.reportProblem(bucket, "%s names another entry for its invoice number, which does not bear it", e.Key)
			if err != nil {
				return err
			}
		}
	}
	// Registrations that the journal alone lists by now, and what it was packed
	// as before, for another receiver.
	changed := e.Pruned.Total() > 0 || e.PackedAnew
	if changed {
		c.names.former[e.Key] = true
	}
	for _, b := range namesOf(e) {
		var last holder
		err := visitHolders(tx, b.name, func(h holder) (bool, error) { last = h; return true, nil })
		switch {
		case err != nil || last != b.to:
			err = c.checkOtherHolder(bucket, tx, e, b, read)
		case !changed:
			c.names.found++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOtherHolder checks a name of e that another entry took after it, or that
// leads nowhere.
func (c *checker) checkOtherHolder(bucket []byte, tx *bbolt.Tx, e ledger.Entry, b nameBinding, read readFunc) error {
	h, ok, err := findHolder(tx, b.name, read)
	kind := b.name[0]
	if ok && err == nil && kind == byID {
		ok, err = wasTakenOver(tx, h.key, e.Key)
	}
	if err != nil || !ok {
		return c.reportProblem(bucket, "%s is not found by one of its names (%q)", e.Key, b.name[:1])
	}
	if !fromService(kind) {
		return nil
	}
	has, known, err := read(h.key)
	switch {
	case err != nil: // the pass over entries reports it
		return nil
	case !known:
		return c.reportProblem(bucket, "%s is not found by one of its names (%q)", e.Key, b.name[:1])
	case identityOf(e, b.to.generation) != identityOf(has, h.generation):
		what := map[byte]string{byRemote: "a bumId", byObject: "an upload address"}[kind]
		return c.reportProblem(bucket, "%s lists %s that entry %s has under another clientUUID (I8)", e.Key, what, h.key)
	}
	return nil
}

// wasTakenOver reports whether an identity of one entry may lead to has: an
// identity is taken over only from the entry that is superseded.
func wasTakenOver(tx *bbolt.Tx, has, from archive.Key) (bool, error) {
	// Bounded: a damaged chain of superseded entries may lead in a circle.
	for steps := 0; steps < maxProblems && !has.IsZero(); steps++ {
		if has == from {
			return true, nil
		}
		by, _, err := readEntry(tx, has)
		if err != nil {
			return false, err
		}
		has = by.Supersedes
	}
	return false, nil
}

// checkNames checks that each record of a name leads to an entry that bears it,
// and that the records of each name count down without a gap: those that took it
// are then in their order. The names of all entries were looked up before.
func (c *checker) checkNames(tx *bbolt.Tx) error {
	counted, number, name := uint64(0), uint32(math.MaxUint32), []byte(nil)
	gap := func(is bool) error {
		if is {
			return c.reportProblem(namesBucket, "a name (%q) was taken more often than its records say", name[:1])
		}
		return nil
	}
	err := eachPair(tx, namesBucket, func(k, v []byte) error {
		h, err := decodeHolder(k, v)
		if err != nil {
			return c.reportError(namesBucket, err)
		}
		before, isFirst := number, !bytes.Equal(name, k[:nameSize])
		number = binary.BigEndian.Uint32(k[nameSize:])
		if err := gap(isFirst && before != math.MaxUint32 || !isFirst && number != before+1); err != nil {
			return err
		}
		if name = k[:nameSize]; !isFirst || c.names.former[h.key] {
			return c.checkName(tx, k, h)
		}
		counted++
		return c.stopped()
	})
	if err == nil {
		err = gap(number != math.MaxUint32)
	}
	// As many first records were found from their entries, unless one of them leads astray.
	if err != nil || counted == c.names.found {
		return err
	}
	name = nil
	return eachPair(tx, namesBucket, func(k, v []byte) error {
		h, err := decodeHolder(k, v)
		if isFirst := !bytes.Equal(name, k[:min(nameSize, len(k))]); err != nil || !isFirst || c.names.former[h.key] {
			return c.stopped()
		}
		name = k[:nameSize]
		return c.checkName(tx, k, h)
	})
}

// checkName checks one record: that its entry bears the name, or may have.
func (c *checker) checkName(tx *bbolt.Tx, k []byte, h holder) error {
	e, ok, err := readEntry(tx, h.key)
	if err != nil {
		return nil // the pass over entries reports it
	}
	bears := false
	for _, b := range namesOf(e) {
		bears = bears || bytes.HasPrefix(k, nameKey(b.name)) && b.to == h
	}
	former := e.PackedAnew && h.generation == 0
	if fromService(k[0]) {
		former = e.Pruned.Total() > 0 && h.generation <= e.Generation
	}
	if !ok || !bears && !former {
		return c.reportProblem(namesBucket, "a name (%q) leads to entry %s, which does not bear it", k[:1], h.key)
	}
	return nil
}
