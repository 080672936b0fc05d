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
// many times over. So a check looks up the names of each entry, and counts the
// records that it finds so. Of the few others it reads the entry.

// checkNamesOf looks up each name of an entry, and finds numbers and upload
// addresses of it that belong to another clientUUID (I8).
func (c *checker) checkNamesOf(e ledger.Entry) {
	read := func(k archive.Key) (ledger.Entry, bool, error) {
		if k == e.Key {
			return e, true, nil
		}
		return readEntry(c.tx, k)
	}
	if !e.SameNumber.IsZero() {
		if first, ok, err := read(e.SameNumber); err == nil && (!ok || first.Number != e.Number) {
			c.report(damage("%s names another entry for its invoice number, which does not bear it", e.Key))
		}
	}
	// Registrations that the journal alone lists by now, and what it was packed
	// as before, for another receiver.
	isFormer := e.Pruned.Total() > 0 || e.PackedAnew
	if isFormer {
		c.former[e.Key] = true
	}
	for _, b := range namesOf(e) {
		var last holder
		err := visitHolders(c.tx, b.name, func(h holder) (bool, error) { last = h; return true, nil })
		switch {
		case err != nil || last != b.to:
			c.report(c.checkOtherHolder(e, b, read))
		case !isFormer:
			c.found++
		}
	}
}

// checkOtherHolder checks a name of e that another entry took after it, or that
// leads nowhere.
func (c *checker) checkOtherHolder(e ledger.Entry, b nameBinding, read readFunc) error {
	kind, has := b.name[0], ledger.Entry{}
	h, ok, err := findHolder(c.tx, b.name, read)
	if ok && err == nil && kind == byID {
		ok, err = wasTakenOver(c.tx, h.key, e.Key)
	}
	if ok && err == nil && fromService(kind) {
		if has, ok, err = read(h.key); err != nil { // reported where it lies
			return nil
		}
	}
	switch {
	case err != nil || !ok:
		return damage("%s is not found by one of its names (%q)", e.Key, b.name[:1])
	case fromService(kind) && identityOf(e, b.to.generation) != identityOf(has, h.generation):
		what := map[byte]string{byRemote: "a bumId", byObject: "an upload address"}[kind]
		return damage("%s lists %s that entry %s has under another clientUUID (I8)", e.Key, what, h.key)
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
func (c *checker) checkNames() {
	counted, name := uint64(0), []byte(nil)
	c.each(namesBucket, nil, nil, func(k, v []byte) error {
		h, err := decodeHolder(k, v)
		if err != nil {
			return err
		}
		isFirst := !bytes.Equal(name, k[:nameSize])
		name = k[:nameSize]
		if n := binary.BigEndian.Uint32(k[nameSize:]); n != math.MaxUint32 && c.tx.Bucket(namesBucket).Get(binary.BigEndian.AppendUint32(bytes.Clone(name), n+1)) == nil {
			return damage("a name (%q) was taken more often than its records say", k[:1])
		}
		if isFirst && !c.former[h.key] {
			counted++
			return nil
		}
		return c.checkName(k, h)
	})
	// As many were found from their entries, unless one of them leads astray.
	if c.stop == nil && counted != c.found {
		c.report(damage("of %d names, %d lead to entries that bear them", counted, c.found))
	}
}

// checkName checks one record: that its entry bears the name, or may have.
func (c *checker) checkName(k []byte, h holder) error {
	e, ok, err := readEntry(c.tx, h.key)
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
		return damage("a name (%q) leads to entry %s, which does not bear it", k[:1], h.key)
	}
	return nil
}
