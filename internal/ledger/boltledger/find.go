package boltledger

import (
	"fmt"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// The find bucket maps what others call an entry to its key. Its names begin with
// one letter for the kind.
const (
	byID      = 'i' // then 16 bytes: the entry that last took this clientUUID
	byRemote  = 'r' // then the service's number: the entry that was given it, and for which generation
	byContent = 'c' // then 32 bytes: the first entry sealed with these files
)

// bind is one name that a change gives to an entry.
type bind struct{ name, value []byte }

func idName(id archive.ID) []byte          { return append([]byte{byID}, id[:]...) }
func remoteName(r archive.RemoteID) []byte { return append([]byte{byRemote}, r...) }
func contentName(d archive.Digest) []byte  { return append([]byte{byContent}, d[:]...) }

// find returns the entry that has the name.
func find(tx *bbolt.Tx, name []byte) (key archive.Key, ok bool, err error) {
	key, _, ok, err = findGeneration(tx, name)
	return key, ok, err
}

// findGeneration returns the entry that has the name and, of a number of the service,
// the generation of the identity that the number was given to.
func findGeneration(tx *bbolt.Tx, name []byte) (key archive.Key, generation uint8, ok bool, err error) {
	v := tx.Bucket(findBucket).Get(name)
	if v == nil {
		return key, 0, false, nil
	}
	want := len(key)
	if name[0] == byRemote {
		want++
	}
	if len(v) != want {
		return key, 0, false, damage("find %q leads to %d bytes", name[:1], len(v))
	}
	copy(key[:], v)
	if name[0] == byRemote {
		generation = v[len(key)]
	}
	return key, generation, true, nil
}

// names returns every name that e ever took, but for the numbers of registrations that
// it lists no more.
func names(e ledger.Entry) [][]byte {
	var all [][]byte
	if !e.Content.IsZero() {
		all = append(all, contentName(e.Content))
	}
	for n := 0; n <= int(e.Generation) && !e.Base.IsZero(); n++ {
		all = append(all, idName(identity(e, uint8(n))))
	}
	for _, r := range e.Registrations {
		all = append(all, remoteName(r.Ticket.Remote))
	}
	return all
}

// identity returns the clientUUID of one generation of e.
func identity(e ledger.Entry, generation uint8) archive.ID {
	if generation == 0 {
		return e.Base
	}
	return e.Base.Generation(int(generation))
}

// rules holds what no entry can know alone: whose an identity or a number is. It
// also takes the document that comes with a seal.
func (g *gather) rules(d *draft, after ledger.Entry, ev ledger.Event, doc *ledger.Document) error {
	switch ev := ev.(type) {
	case ledger.Sealed:
		if doc == nil || ev.Seal != doc.Seal(ev.Package) {
			return fmt.Errorf("seal %s: the document is missing or its seal is another: %w", after.Key, ledger.ErrIllegal)
		}
		d.doc = doc
		return g.takeIdentity(d, after, ev)
	case ledger.Resealed:
		return g.sameSalt(d, after, ev)
	case ledger.RegisterRefused:
		if after.ID != d.entry.ID {
			return g.takeGeneration(d, after, after.ID)
		}
	case ledger.GotTicket:
		return g.takeRemote(d, after, ev.Ticket.Remote, after.Generation)
	case ledger.RegistrationFound:
		return g.takeFound(d, after, ev)
	case ledger.Recovered:
		return g.takeRecovered(d, after, ev, doc)
	}
	return nil
}

// takeFound binds a registration that the service knew, and the generations of the
// identity that the ledger did not.
func (g *gather) takeFound(d *draft, after ledger.Entry, ev ledger.RegistrationFound) error {
	for n := int(d.entry.Generation) + 1; n <= int(after.Generation); n++ {
		if err := g.takeGeneration(d, after, identity(after, uint8(n))); err != nil {
			return err
		}
	}
	n, _ := after.GenerationOf(ev.ID)
	return g.takeRemote(d, after, ev.Remote, n)
}

// takeRecovered binds what the evidence tells of an entry.
func (g *gather) takeRecovered(d *draft, after ledger.Entry, ev ledger.Recovered, doc *ledger.Document) error {
	if !ev.Content.IsZero() {
		if doc == nil || ev.Seal != doc.Seal(ev.Package) {
			return fmt.Errorf("recover %s: the document is missing or its seal is another: %w", after.Key, ledger.ErrIllegal)
		}
		d.doc = doc
	}
	if !ev.ID.IsZero() {
		if err := g.takeIdentity(d, after, ledger.Sealed{ID: ev.ID, Content: ev.Content}); err != nil {
			return err
		}
	}
	if ev.Remote == "" {
		return nil
	}
	return g.takeRemote(d, after, ev.Remote, 0)
}

// sameSalt holds a new seal against the document, whose salt it must be made with.
func (g *gather) sameSalt(d *draft, e ledger.Entry, ev ledger.Resealed) error {
	doc := d.doc
	if doc == nil {
		stored, _, err := readDocument(g.tx, e.Key)
		if err != nil {
			return err
		}
		doc = &stored
	}
	if ev.Seal != doc.Seal(ev.Package) {
		return fmt.Errorf("seal %s again: the seal is not that of the document: %w", e.Key, ledger.ErrIllegal)
	}
	return nil
}

// takeIdentity binds the identity and, where it is the first, the content of a
// sealed entry.
func (g *gather) takeIdentity(d *draft, e ledger.Entry, ev ledger.Sealed) error {
	first, taken, err := find(g.tx, idName(ev.ID))
	if err != nil {
		return err
	}
	if taken && first != ev.Supersedes {
		return &ledger.TakenError{What: "clientUUID", By: first}
	}
	d.binds = append(d.binds, bind{idName(ev.ID), e.Key[:]})
	if ev.Content.IsZero() {
		return nil
	}
	first, taken, err = find(g.tx, contentName(ev.Content))
	if err != nil {
		return err
	}
	if taken {
		holder, err := g.load(first)
		if err != nil || holder.State != ledger.Rejected || holder.InDoubt || holder.Contradicted {
			return err
		}
	}
	d.binds = append(d.binds, bind{contentName(ev.Content), e.Key[:]})
	return nil
}

// takeGeneration binds the successor of an identity. It may stand for an entry that
// this one supersedes, at any remove: that one went the same way before.
func (g *gather) takeGeneration(d *draft, e ledger.Entry, id archive.ID) error {
	holder, taken, err := find(g.tx, idName(id))
	if err != nil {
		return err
	}
	for k := e.Supersedes; taken && k != holder; {
		if k.IsZero() {
			return &ledger.TakenError{What: "clientUUID", By: holder}
		}
		before, err := g.load(k)
		if err != nil {
			return err
		}
		k = before.Supersedes
	}
	d.binds = append(d.binds, bind{idName(id), e.Key[:]})
	return nil
}

// takeRemote binds the service's number. It belongs to one clientUUID for ever:
// getting it again for the same one is fine, for any other it is a mix-up.
func (g *gather) takeRemote(d *draft, e ledger.Entry, r archive.RemoteID, generation uint8) error {
	key, bound, taken, err := findGeneration(g.tx, remoteName(r))
	if err != nil {
		return err
	}
	id := identity(e, generation)
	if taken {
		holder := e // its identities are those that it will have
		if key != e.Key {
			if holder, err = g.load(key); err != nil {
				return err
			}
		}
		if identity(holder, bound) != id {
			return &ledger.TakenError{What: "bumId", By: key}
		}
	}
	for _, reg := range d.entry.Registrations { // what this very change was given is not yet in find
		if reg.Ticket.Remote == r && identity(d.entry, reg.Generation) != id {
			return &ledger.TakenError{What: "bumId", By: e.Key}
		}
	}
	d.binds = append(d.binds, bind{remoteName(r), append(e.Key[:], generation)})
	return nil
}
