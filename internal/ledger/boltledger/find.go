package boltledger

import (
	"bytes"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The kinds of names that others call an entry by: the first letter of a name. The work asks each of them, and needs an answer that
// includes the commit it is in; docs/ledger.md tells who asks which. What people remember is no name: the catalog finds that.
const (
	byID      = 'i' // then 16 bytes: the entry that last took this clientUUID
	byRemote  = 'r' // then the service's number: the entry that was given it, and for which generation
	byContent = 'c' // then 32 bytes: the first entry sealed with these files
	byNumber  = 'n' // then 16 bytes, a digest: every entry sealed with this invoice number
	byObject  = 'o' // then 16 bytes, a digest: the entry that was given an upload address of this object, and for which generation
)

// fromService reports whether names of a kind come from the service. An entry keeps such a name when it no longer lists it.
func fromService(kind byte) bool { return kind == byRemote || kind == byObject }

// nameBinding is one name that a change gives to an entry.
type nameBinding struct {
	name []byte
	to   holder
}

// holder is the entry that has a name and, of what the service gave, the generation of
// the identity that it was given to.
type holder struct {
	key        archive.Key
	generation uint8
}

func idName(id archive.ID) []byte          { return append([]byte{byID}, id[:]...) }
func remoteName(r archive.RemoteID) []byte { return append([]byte{byRemote}, r...) }
func contentName(d archive.Digest) []byte  { return append([]byte{byContent}, d[:]...) }

func numberName(d archive.NumberDigest) []byte { return append([]byte{byNumber}, d[:]...) }

func objectName(o archive.ObjectDigest) []byte { return append([]byte{byObject}, o[:]...) }

// findHolder returns the entry that has a name. The runs lead to the entries that may have taken
// it; the entry itself tells whether it did. A name from the service that no entry lists any more
// has a key of its own in the find bucket.
func (x *nameIndex) findHolder(tx *bbolt.Tx, name []byte, read func(archive.Key) (ledger.Entry, bool, error)) (h holder, ok bool, err error) {
	b := tx.Bucket(findBucket)
	// What no entry lists any more is only found here; the runs may still lead to the entry, which cannot tell.
	if fromService(name[0]) {
		if v := b.Get(name); v != nil {
			h, err = decodeHolder(v)
			return h, err == nil, err
		}
	}
	err = x.visitKeys(b, hashOf(name), func(key archive.Key) (bool, error) {
		// Two names may share a hash. The entry itself decides whether it bears the name.
		e, known, err := read(key)
		if err != nil || !known {
			return false, err
		}
		h.key = key
		h.generation, ok = bearsName(e, name)
		return ok, nil
	})
	return h, ok && err == nil, err
}

// findHolder returns the entry that has a name, the changes of this commit included.
func (g *groupCommit) findHolder(name []byte) (h holder, ok bool, err error) {
	if h, ok := g.bound[string(name)]; ok {
		return h, true, nil
	}
	return g.names.findHolder(g.tx, name, func(key archive.Key) (ledger.Entry, bool, error) { return readEntry(g.tx, key) })
}

func (h holder) encode() []byte { return append(h.key[:], h.generation) }

func decodeHolder(v []byte) (h holder, err error) {
	if len(v) != len(h.key)+1 {
		return h, damage("find a number leads to %d bytes", len(v))
	}
	copy(h.key[:], v)
	h.generation = v[len(h.key)]
	return h, nil
}

// bearsName reports whether e has taken the name, as far as its own fields tell: registrations that
// it no longer lists are not in them. A name from the service belongs to one generation.
func bearsName(e ledger.Entry, name []byte) (generation uint8, ok bool) {
	switch name[0] {
	case byContent:
		return 0, !e.Content.IsZero() && bytes.Equal(e.Content[:], name[1:])
	case byNumber:
		return 0, !e.Number.IsZero() && bytes.Equal(e.Number[:], name[1:])
	case byRemote, byObject:
		for _, r := range slices.Backward(e.Registrations) {
			if registrationBears(r, name) {
				return r.Generation, true
			}
		}
		return 0, false
	}
	for n := 0; n <= int(e.Generation) && !e.FirstID.IsZero(); n++ {
		if id := identityOf(e, uint8(n)); bytes.Equal(id[:], name[1:]) {
			return uint8(n), true
		}
	}
	return 0, false
}

// registrationBears reports whether a registration brought a name.
func registrationBears(r ledger.Registration, name []byte) bool {
	if name[0] == byObject {
		return string(r.Ticket.Object[:]) == string(name[1:])
	}
	return string(r.Ticket.Remote) == string(name[1:])
}

// registrationNames returns the names that a registration brought. One that the service told of later has no address.
func registrationNames(r ledger.Registration) [][]byte {
	if r.Ticket.Object.IsZero() {
		return [][]byte{remoteName(r.Ticket.Remote)}
	}
	return [][]byte{remoteName(r.Ticket.Remote), objectName(r.Ticket.Object)}
}

// writeNames writes the names that this commit bound as one run. It comes before the entries
// are stored: the former holders are looked up in the entries as they were.
func (g *groupCommit) writeNames(keys []archive.Key) error {
	for _, k := range keys {
		// Before the entries are stored: afterwards nothing tells which names were dropped from a list.
		if err := g.keepPrunedNames(*g.entries[k]); err != nil {
			return err
		}
	}
	if len(g.bound) == 0 {
		return nil
	}
	b := g.tx.Bucket(findBucket)
	ps := make([]pair, 0, len(g.bound))
	for name, h := range g.bound {
		name := []byte(name)
		_, listed := bearsName(g.entries[h.key].now, name)
		var err error
		switch {
		// The entry took a name and does not show it. Committing this would make the entry unfindable, so the ledger stops.
		case !listed && !fromService(name[0]):
			err = damage("find: entry %s does not bear a name (%q) that it took", h.key, name[:1])
		case !listed: // given, and pruned from the list, in one commit
			err = b.Put(name, h.encode())
		case fromService(name[0]):
			err = b.Delete(name)
		}
		if err != nil {
			return err
		}
		if listed {
			ps = append(ps, pair{hashOf(name), h.key})
		}
	}
	if err := g.names.addRun(b, 0, ps); err != nil {
		return err
	}
	// A little of the merging with each commit: no commit pays for all of it. A crash leaves the runs as the last commit did.
	if err := g.names.mergeSome(b, len(ps)); err != nil {
		return err
	}
	return putValue(g.tx, metaBucket, runsKey, indexForm.encode(&g.names))
}

// keepPrunedNames gives keys of their own to the names of registrations that an entry no longer lists.
func (g *groupCommit) keepPrunedNames(w changedEntry) error {
	for _, r := range w.stored.Registrations {
		for _, name := range registrationNames(r) {
			if _, listed := bearsName(w.now, name); listed {
				continue
			}
			h, ok, err := g.findHolder(name)
			if err == nil && ok && h.key == w.now.Key {
				err = putValue(g.tx, findBucket, name, h.encode())
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// entryNames returns every name that e ever took, but for what came with registrations that
// it lists no more.
func entryNames(e ledger.Entry) [][]byte {
	var all [][]byte
	if !e.Content.IsZero() {
		all = append(all, contentName(e.Content))
	}
	if !e.Number.IsZero() {
		all = append(all, numberName(e.Number))
	}
	for n := 0; n <= int(e.Generation) && !e.FirstID.IsZero(); n++ {
		all = append(all, idName(identityOf(e, uint8(n))))
	}
	for _, r := range e.Registrations {
		all = append(all, registrationNames(r)...)
	}
	return all
}

// identityOf returns the clientUUID of one generation of e.
func identityOf(e ledger.Entry, generation uint8) archive.ID {
	return e.FirstID.Generation(int(generation))
}

// FindSameNumber returns the entry whose invoice number e repeats, where e is
// as it would be sealed: the first with that number in its vault. Neither one
// that was certainly rejected counts, nor the one that e repeats by decision.
func (l *Ledger) FindSameNumber(e ledger.Entry) (key archive.Key, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		x, err := readNameIndex(tx)
		if err != nil {
			return err
		}
		key, err = firstWithNumber(e, func(fn func(archive.Key) (bool, error)) error {
			return x.visitKeys(tx.Bucket(findBucket), hashOf(numberName(e.Number)), fn)
		}, func(k archive.Key) (ledger.Entry, bool, error) { return readEntry(tx, k) })
		return err
	})
	return key, !key.IsZero(), err
}

// findSameNumber is FindSameNumber with the changes of this commit included.
func (g *groupCommit) findSameNumber(e ledger.Entry) (archive.Key, error) {
	name := numberName(e.Number)
	return firstWithNumber(e, func(fn func(archive.Key) (bool, error)) error {
		if h, ok := g.bound[string(name)]; ok {
			if enough, err := fn(h.key); enough || err != nil {
				return err
			}
		}
		return g.names.visitKeys(g.tx.Bucket(findBucket), hashOf(name), fn)
	}, func(k archive.Key) (ledger.Entry, bool, error) {
		has, err := g.loadEntry(k)
		return has, has.State != ledger.None, err
	})
}

// firstWithNumber returns the entry whose invoice number e repeats; zero: there is none. lead calls its argument with the
// entries that may have the number, the latest first. Each of them names the first one, so that a number of thousands of
// entries is found as fast as any other.
func firstWithNumber(e ledger.Entry, lead func(func(archive.Key) (enough bool, err error)) error,
	read func(archive.Key) (ledger.Entry, bool, error)) (found archive.Key, err error) {
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
	err = lead(func(k archive.Key) (bool, error) {
		has, ok, err := counts(k)
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
