package boltledger

import (
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

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
	first, taken, err := g.find(idName(ev.ID))
	if err != nil {
		return err
	}
	if taken && first.key != ev.Supersedes {
		return &ledger.TakenError{What: "clientUUID", By: first.key}
	}
	d.binds = append(d.binds, bind{idName(ev.ID), holder{key: e.Key}})
	if ev.Content.IsZero() {
		return nil
	}
	first, taken, err = g.find(contentName(ev.Content))
	if err != nil {
		return err
	}
	if taken {
		has, err := g.load(first.key)
		if err != nil || has.State != ledger.Rejected || has.InDoubt || has.Contradicted {
			return err
		}
	}
	d.binds = append(d.binds, bind{contentName(ev.Content), holder{key: e.Key}})
	return nil
}

// takeGeneration binds the successor of an identity. It may stand for an entry that
// this one supersedes, at any remove: that one went the same way before.
func (g *gather) takeGeneration(d *draft, e ledger.Entry, id archive.ID) error {
	has, taken, err := g.find(idName(id))
	if err != nil {
		return err
	}
	for k := e.Supersedes; taken && k != has.key; {
		if k.IsZero() {
			return &ledger.TakenError{What: "clientUUID", By: has.key}
		}
		before, err := g.load(k)
		if err != nil {
			return err
		}
		k = before.Supersedes
	}
	d.binds = append(d.binds, bind{idName(id), holder{key: e.Key}})
	return nil
}

// takeRemote binds the service's number. It belongs to one clientUUID for ever:
// getting it again for the same one is fine, for any other it is a mix-up.
func (g *gather) takeRemote(d *draft, e ledger.Entry, r archive.RemoteID, generation uint8) error {
	has, taken, err := g.find(remoteName(r))
	if err != nil {
		return err
	}
	id := identity(e, generation)
	if taken {
		had := e // its identities are those that it will have
		if has.key != e.Key {
			if had, err = g.load(has.key); err != nil {
				return err
			}
		}
		if identity(had, has.generation) != id {
			return &ledger.TakenError{What: "bumId", By: has.key}
		}
	}
	for _, reg := range d.entry.Registrations { // what this very change was given is not yet in find
		if reg.Ticket.Remote == r && identity(d.entry, reg.Generation) != id {
			return &ledger.TakenError{What: "bumId", By: e.Key}
		}
	}
	d.binds = append(d.binds, bind{remoteName(r), holder{e.Key, generation}})
	return nil
}
