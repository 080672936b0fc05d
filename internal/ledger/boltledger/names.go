package boltledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The kinds of names that others call an entry by: the first letter of a name.
// The work asks each of them, and needs an answer that includes the commit it
// is in; docs/ledger.md says who asks which. People search in the catalog
// instead.
const (
	byID      = 'i' // then 16 bytes: the entry that last took this clientUUID
	byRemote  = 'r' // then the service's number: the entry that was given it, and for which generation
	byContent = 'c' // then 32 bytes: the first entry sealed with these files
	byNumber  = 'n' // then 16 bytes, a digest: every entry sealed with this invoice number
	byObject  = 'o' // then 16 bytes, a digest: the entry that was given an upload address of this object, and for which generation
)

// fromService reports whether names of a kind come from the service. An entry
// keeps such a name when it no longer lists it.
func fromService(kind byte) bool { return kind == byRemote || kind == byObject }

// nameBinding is one name that a change gives to an entry.
type nameBinding struct {
	name []byte
	to   holder
}

// holder is the entry that has a name and, of what the service gave, the
// generation of the identity that it was given to.
type holder struct {
	key        archive.Key
	generation uint8
}

func (b nameBinding) equals(o nameBinding) bool { return b.to == o.to && bytes.Equal(b.name, o.name) }

func idName(id archive.ID) []byte          { return append([]byte{byID}, id[:]...) }
func remoteName(r archive.RemoteID) []byte { return append([]byte{byRemote}, r...) }
func contentName(d archive.Digest) []byte  { return append([]byte{byContent}, d[:]...) }

func numberName(d archive.NumberDigest) []byte { return append([]byte{byNumber}, d[:]...) }

func objectName(o archive.ObjectDigest) []byte { return append([]byte{byObject}, o[:]...) }

// nameSize is the length of what the keys of one name begin with.
const nameSize = 1 + 12

// nameKey returns what the keys of a name begin with: its kind, and so much of
// its digest that no other name has the same. Four bytes follow that count
// down, so that whoever took the name last comes first. No record is ever
// removed.
func nameKey(name []byte) []byte {
	d := sha256.Sum256(name)
	return append(append(make([]byte, 0, nameSize+4), name[0]), d[:nameSize-1]...)
}

func (h holder) encode() []byte { return append(h.key[:], h.generation) }

// decodeHolder reads one record of the bucket of names.
func decodeHolder(k, v []byte) (h holder, err error) {
	if len(k) != nameSize+4 || len(v) != len(h.key)+1 || bytes.IndexByte([]byte{byID, byRemote, byContent, byNumber, byObject}, k[0]) < 0 {
		return h, damage("%s a key of %d bytes leads to %d", namesBucket, len(k), len(v))
	}
	copy(h.key[:], v)
	h.generation = v[len(h.key)]
	return h, nil
}

// visitHolders calls fn with those that took a name, the last one first, until
// fn returns enough.
func visitHolders(tx *bbolt.Tx, name []byte, fn func(holder) (enough bool, err error)) error {
	c, begin := tx.Bucket(namesBucket).Cursor(), nameKey(name)
	for k, v := c.Seek(begin); bytes.HasPrefix(k, begin); k, v = c.Next() {
		h, err := decodeHolder(k, v)
		if err != nil {
			return err
		}
		if enough, err := fn(h); enough || err != nil {
			return err
		}
	}
	return nil
}

// findHolder returns the entry that has a name: the last that took it. An entry
// that is packed for another receiver gives its identity and its content up, as
// its own fields show; then the one before it has them.
func findHolder(tx *bbolt.Tx, name []byte, read readFunc) (found holder, ok bool, err error) {
	err = visitHolders(tx, name, func(h holder) (bool, error) {
		if !fromService(name[0]) {
			e, known, err := read(h.key)
			if err != nil || !known || !bearsName(e, name) {
				return false, err
			}
		}
		found, ok = h, true
		return true, nil
	})
	return found, ok && err == nil, err
}

// readFunc reads an entry; known is false where there is none.
type readFunc func(archive.Key) (e ledger.Entry, known bool, err error)

// entriesOf reads entries as a transaction has them.
func entriesOf(tx *bbolt.Tx) readFunc {
	return func(k archive.Key) (ledger.Entry, bool, error) { return readEntry(tx, k) }
}

// readNow reads an entry as this commit has it so far.
func (g *groupCommit) readNow(k archive.Key) (ledger.Entry, bool, error) {
	e, err := g.loadEntry(k)
	return e, e.State != ledger.None, err
}

// findHolder returns the entry that has a name, the changes of this commit
// included.
func (g *groupCommit) findHolder(name []byte) (h holder, ok bool, err error) {
	return findHolder(g.tx, name, g.readNow)
}

// bindName notes that an entry took a name.
func (g *groupCommit) bindName(b nameBinding) error {
	key, number := nameKey(b.name), uint32(math.MaxUint32)
	if k, v := g.tx.Bucket(namesBucket).Cursor().Seek(key); bytes.HasPrefix(k, key) {
		last, err := decodeHolder(k, v)
		if err != nil || last == b.to { // the service may give the same again and again
			return err
		}
		number = binary.BigEndian.Uint32(k[nameSize:]) - 1
	}
	g.Names++
	return putValue(g.tx, namesBucket, binary.BigEndian.AppendUint32(key, number), b.to.encode())
}

// namesOf returns the names that e bears: all that it took, but for those of
// registrations that it lists no more, and of what it was packed as before.
func namesOf(e ledger.Entry) (all []nameBinding) {
	add := func(name []byte, generation uint8) {
		if b := (nameBinding{name, holder{e.Key, generation}}); !slices.ContainsFunc(all, b.equals) {
			all = append(all, b)
		}
	}
	for n := 0; n <= int(e.Generation) && !e.FirstID.IsZero(); n++ {
		add(idName(identityOf(e, uint8(n))), 0)
	}
	if !e.Content.IsZero() {
		add(contentName(e.Content), 0)
	}
	if !e.Number.IsZero() {
		add(numberName(e.Number), 0)
	}
	for _, r := range e.Registrations {
		add(remoteName(r.Ticket.Remote), r.Generation)
		if !r.Ticket.Object.IsZero() { // one that was found later came without an address
			add(objectName(r.Ticket.Object), r.Generation)
		}
	}
	return all
}

func bearsName(e ledger.Entry, name []byte) bool {
	return slices.ContainsFunc(namesOf(e), func(b nameBinding) bool { return bytes.Equal(b.name, name) })
}

// identityOf returns the clientUUID of one generation of e.
func identityOf(e ledger.Entry, generation uint8) archive.ID {
	return e.FirstID.Generation(int(generation))
}

// FindSameNumber returns the entry whose invoice number e repeats, where e is
// as it would be sealed: the first with that number in its vault. Neither one
// that was certainly rejected counts, nor the one that e repeats by decision.
func (l *Ledger) FindSameNumber(e ledger.Entry) (key archive.Key, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error { key, err = firstWithNumber(tx, e, entriesOf(tx)); return err })
	return key, !key.IsZero(), err
}

// findSameNumber is FindSameNumber with the changes of this commit included.
func (g *groupCommit) findSameNumber(e ledger.Entry) (archive.Key, error) {
	return firstWithNumber(g.tx, e, g.readNow)
}

// firstWithNumber returns the entry whose invoice number e repeats; zero: there
// is none. Each entry with a number names the first one, so that the last one
// leads to it, and a number of thousands of entries is found as fast as any
// other.
func firstWithNumber(tx *bbolt.Tx, e ledger.Entry, read readFunc) (found archive.Key, err error) {
	if e.Number.IsZero() {
		return found, nil
	}
	counts := func(k archive.Key) (ledger.Entry, bool, error) {
		if k.IsZero() || k == e.Key || k == e.Supersedes {
			return ledger.Entry{}, false, nil
		}
		has, ok, err := read(k)
		return has, ok && has.Number == e.Number && !has.IsCertainlyRejected(), err
	}
	err = visitHolders(tx, numberName(e.Number), func(h holder) (bool, error) {
		has, ok, err := counts(h.key)
		if err != nil || !ok {
			return false, err
		}
		found = has.Key
		if _, ok, err = counts(has.SameNumber); ok {
			found = has.SameNumber
		}
		return true, err
	})
	return found, err
}
