package boltledger

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

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
	found  uint64        // records that come first for their name, and were found from their entry
	former []archive.Key // entries that may have taken names which they do not bear now; their records do not count
}

func (c *nameCheck) add(more nameCheck) {
	c.found += more.found
	c.former = append(c.former, more.former...)
}

// checkNamesOf looks up each name of an entry of that bucket, and finds numbers
// and upload addresses of it that belong to another clientUUID (I8).
func (p *part) checkNamesOf(bucket []byte, tx *bbolt.Tx, e ledger.Entry) error {
	read := func(k archive.Key) (ledger.Entry, bool, error) {
		if k == e.Key {
			return e, true, nil
		}
		return readEntry(tx, k)
	}
	if !e.SameNumber.IsZero() {
		if first, ok, err := read(e.SameNumber); err == nil && (!ok || first.Number != e.Number) {
			err := p.reportProblem(bucket, "%s names another entry for its invoice number, which does not bear it", e.Key)
			if err != nil {
				return err
			}
		}
	}
	changed := mayHaveFormerNames(e)
	if changed {
		p.names.former = append(p.names.former, e.Key)
	}
	for _, b := range namesOf(e) {
		var last holder
		err := visitHolders(tx, b.name, func(h holder) (bool, error) { last = h; return true, nil })
		switch {
		case err != nil || last != b.to:
			err = p.checkOtherHolder(bucket, tx, e, b, read)
		case !changed:
			p.names.found++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayHaveFormerNames reports whether an entry may have taken names that it does
// not bear now: those of registrations that the journal alone lists by now, and
// what it was packed as before, for another receiver.
func mayHaveFormerNames(e ledger.Entry) bool { return e.Pruned.Total() > 0 || e.PackedAnew }

// checkOtherHolder checks a name of e that another entry took after it, or that
// leads nowhere.
func (p *part) checkOtherHolder(bucket []byte, tx *bbolt.Tx, e ledger.Entry, b nameBinding, read readFunc) error {
	h, ok, err := findHolder(tx, b.name, read)
	kind := b.name[0]
	if ok && err == nil && kind == byID {
		ok, err = wasTakenOver(tx, h.key, e.Key)
	}
	if err != nil || !ok {
		return p.reportProblem(bucket, "%s is not found by one of its names (%q)", e.Key, b.name[:1])
	}
	if !fromService(kind) {
		return nil
	}
	has, known, err := read(h.key)
	switch {
	case err != nil: // the pass over entries reports it
		return nil
	case !known:
		return p.reportProblem(bucket, "%s is not found by one of its names (%q)", e.Key, b.name[:1])
	case identityOf(e, b.to.generation) != identityOf(has, h.generation):
		what := map[byte]string{byRemote: "a bumId", byObject: "an upload address"}[kind]
		return p.reportProblem(bucket, "%s lists %s that entry %s has under another clientUUID (I8)", e.Key, what, h.key)
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

// checkNames checks that each record of a name leads to an entry that bears it.
// The names of all entries were looked up before.
func checkNames(p *part, tx *bbolt.Tx) error {
	c := p.check
	slices.SortFunc(c.names.former, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	counted := uint64(0)
	err := p.checkNumbers(tx)
	if err != nil {
		return err
	}
	err = c.eachName(tx, func(k, v []byte, counts bool) error {
		if counts {
			counted++
			return nil
		}
		return p.checkName(tx, k, v)
	})
	if err != nil || counted == c.names.found {
		return err
	}
	return c.eachName(tx, func(k, v []byte, counts bool) error {
		if !counts {
			return nil
		}
		return p.checkName(tx, k, v)
	})
}

// checkNumbers checks that the records of each name count down without a gap:
// those that took it are then in their order.
func (p *part) checkNumbers(tx *bbolt.Tx) error {
	name, number := []byte(nil), uint32(math.MaxUint32)
	gap := func() error {
		return p.reportProblem(namesBucket, "a name (%q) was taken more often than its records say", name[:1])
	}
	err := eachPair(tx, namesBucket, func(k, v []byte) error {
		if _, err := decodeHolder(k, v); err != nil {
			return nil // reported with its entry
		}
		before, isNew := number, !bytes.Equal(name, k[:nameSize])
		number = binary.BigEndian.Uint32(k[nameSize:])
		if isNew && before != math.MaxUint32 || !isNew && number != before+1 {
			if err := gap(); err != nil {
				return err
			}
		}
		name = k[:nameSize]
		return nil
	})
	if err == nil && number != math.MaxUint32 {
		err = gap()
	}
	return err
}

// eachName calls fn with each record of a name. counts says that it comes first
// for its name, and that its entry bears all that it took: as many such records
// were found from their entries, unless one of them leads astray.
func (c *checker) eachName(tx *bbolt.Tx, fn func(k, v []byte, counts bool) error) error {
	var name []byte
	return eachPair(tx, namesBucket, func(k, v []byte) error {
		h, err := decodeHolder(k, v)
		if err != nil {
			return fn(k, v, false)
		}
		isFirst := !bytes.Equal(name, k[:nameSize])
		name = k[:nameSize]
		_, isFormer := slices.BinarySearchFunc(c.names.former, h.key, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
		return fn(k, v, isFirst && !isFormer)
	})
}

// checkName checks one record: that its entry bears the name, or may have.
func (p *part) checkName(tx *bbolt.Tx, k, v []byte) error {
	h, err := decodeHolder(k, v)
	if err != nil {
		return p.reportError(namesBucket, err)
	}
	e, ok, err := readEntry(tx, h.key)
	if err != nil {
		return nil // the pass over entries reports it
	}
	bears := slices.ContainsFunc(namesOf(e), func(b nameBinding) bool { return bytes.HasPrefix(k, nameKey(b.name)) && b.to == h })
	former := e.PackedAnew && h.generation == 0
	if fromService(k[0]) {
		former = e.Pruned.Total() > 0 && h.generation <= e.Generation
	}
	if !ok || !bears && !former {
		return p.reportProblem(namesBucket, "a name (%q) leads to entry %s, which does not bear it", k[:1], h.key)
	}
	return nil
}
