package boltledger

import (
	"bytes"
	"fmt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// checkSharedNames applies the rules that no entry can check alone: to which entry an identity, a
// number or an object at the store belongs. It also accepts the document that comes with a seal.
func (g *groupCommit) checkSharedNames(d *draft, after ledger.Entry, ev ledger.Event, doc *ledger.Document) error {
	// All of this runs in the transaction of the commit: what was looked up before may be out of date.
	switch ev := ev.(type) {
	case ledger.Refused, ledger.FoundDuplicate:
		return acceptAsRead(d, after, doc)
	case ledger.Sealed:
		if doc == nil || ev.Seal != doc.Seal(ev.Package) {
			return fmt.Errorf("seal %s: the document is missing or its seal is another: %w", after.Key, ledger.ErrIllegal)
		}
		d.doc = doc
		return g.bindSealed(d, after, ev)
	case ledger.Resealed:
		return g.checkSeal(d, after.Key, ev.Package, ev.Seal)
	case ledger.DeliveryConfirmed:
		return g.checkSeal(d, after.Key, archive.Package{SHA256: ev.Sent}, ev.Seal)
	case ledger.UploadAccepted:
		return g.checkSeal(d, after.Key, archive.Package{SHA256: ev.Sent}, ev.Seal)
	case ledger.RegisterRefused:
		if after.ID != d.entry.ID {
			return g.bindGeneration(d, after, after.ID)
		}
	case ledger.Released:
		if after.ID != d.entry.ID {
			return g.bindGeneration(d, after, after.ID)
		}
	case ledger.DocumentIntended:
		if r := after.Current(); r.UploadIntents == 1 {
			return g.bindRemote(d, after, r.Ticket.Remote, after.Generation)
		}
	case ledger.NotificationSeen:
		return g.addNotice(d, after, ev.Notification)
	case ledger.TicketReceived:
		if err := g.bindRemote(d, after, ev.Ticket.Remote, after.Generation); err != nil {
			return err
		}
		return g.bindObject(d, after, ev.Ticket.Object, after.Generation)
	case ledger.RegistrationFound:
		return g.bindFound(d, after, ev)
	case ledger.Recovered:
		return g.bindRecovered(d, after, ev, doc)
	}
	return nil
}

// acceptAsRead accepts what could be read of the sidecar of a folder that ends unsealed. It must not replace the document
// of a sealed one, whose salt and metadata the entry needs.
func acceptAsRead(d *draft, after ledger.Entry, doc *ledger.Document) error {
	if doc == nil || d.doc == doc { // the change seals it before
		return nil
	}
	// The document of a sealed entry holds the salt of its seal. Overwriting it would break the proof.
	if after.WasSealed() || !doc.IsOnlyAsRead() {
		return fmt.Errorf("refuse %s: its document is that of a sealed folder: %w", after.Key, ledger.ErrIllegal)
	}
	d.doc = doc
	return nil
}

// bindFound binds a registration that the service knew, and the generations of the
// identity that the ledger did not.
func (g *groupCommit) bindFound(d *draft, after ledger.Entry, ev ledger.RegistrationFound) error {
	for n := int(d.entry.Generation) + 1; n <= int(after.Generation); n++ {
		if err := g.bindGeneration(d, after, identityOf(after, uint8(n))); err != nil {
			return err
		}
	}
	n, _ := after.GenerationOf(ev.ID)
	return g.bindRemote(d, after, ev.Remote, n)
}

// bindRecovered binds what the evidence tells of an entry.
func (g *groupCommit) bindRecovered(d *draft, after ledger.Entry, ev ledger.Recovered, doc *ledger.Document) error {
	if ev.Content.IsZero() {
		if err := acceptAsRead(d, after, doc); err != nil {
			return err
		}
	} else {
		if doc == nil || ev.Seal != doc.Seal(ev.Package) {
			return fmt.Errorf("recover %s: the document is missing or its seal is another: %w", after.Key, ledger.ErrIllegal)
		}
		d.doc = doc
	}
	if !ev.ID.IsZero() {
		if err := g.bindIdentity(d, after, ev.ID, ev.Supersedes); err != nil {
			return err
		}
		if err := g.bindEarlierGenerations(d, after); err != nil {
			return err
		}
		if _, err := g.bindContent(d, after); err != nil {
			return err
		}
	}
	if err := g.bindNumber(d, after); err != nil || ev.Remote == "" {
		return err
	}
	return g.bindRemote(d, after, ev.Remote, after.Generation)
}

// bindEarlierGenerations binds the earlier generations of an identity that evidence tells of, so that the same document is recognised when it
// is dropped again. One that another entry has stays with that entry: it was sent as that generation.
func (g *groupCommit) bindEarlierGenerations(d *draft, e ledger.Entry) error {
	for n := range e.Generation {
		name := idName(identityOf(e, n))
		_, taken, err := g.findHolder(name)
		if err != nil {
			return err
		}
		if !taken {
			d.bindings = append(d.bindings, nameBinding{name, holder{key: e.Key}})
		}
	}
	return nil
}

// checkSeal holds a seal that comes later against the document, whose salt it must be made with.
func (g *groupCommit) checkSeal(d *draft, key archive.Key, p archive.Package, seal archive.Digest) error {
	doc := d.doc
	if doc == nil {
		stored, _, err := readDocument(g.tx, key)
		if err != nil {
			return err
		}
		doc = &stored
	}
	if seal != doc.Seal(p) {
		return fmt.Errorf("seal %s again: the seal is not that of the document: %w", key, ledger.ErrIllegal)
	}
	return nil
}

// bindSealed binds the names of a sealed entry. If another entry has them too,
// the entry must name that one: the look-up before this transaction may have
// missed an entry that was sealed meanwhile.
func (g *groupCommit) bindSealed(d *draft, e ledger.Entry, ev ledger.Sealed) error {
	// The identity first: without it nothing else of the entry may be bound.
	if err := g.bindIdentity(d, e, ev.ID, ev.Supersedes); err != nil {
		return err
	}
	has, err := g.bindContent(d, e)
	switch {
	case err != nil:
		return err
	case has.State != ledger.None && has.State != ledger.Rejected && has.ID != e.ID && e.SameContent.IsZero():
		return &ledger.TakenError{What: ledger.TakenFiles, By: has.Key}
	}
	return g.bindNumber(d, e)
}

// bindIdentity binds the identity, which may be that of an entry that e supersedes.
func (g *groupCommit) bindIdentity(d *draft, e ledger.Entry, id archive.ID, supersedes archive.Key) error {
	first, taken, err := g.findHolder(idName(id))
	if err != nil {
		return err
	}
	if taken && first.key != supersedes {
		return &ledger.TakenError{What: ledger.TakenID, By: first.key}
	}
	// Kept in the draft: a refusal later in this change leaves the identity with its former holder.
	d.bindings = append(d.bindings, nameBinding{idName(id), holder{key: e.Key}})
	return nil
}

// bindContent binds the list of files where e is the first that has it, and returns which entry had it before; of none
// the state is None.
func (g *groupCommit) bindContent(d *draft, e ledger.Entry) (has ledger.Entry, err error) {
	if e.Content.IsZero() {
		return has, nil
	}
	name := contentName(e.Content)
	first, taken, err := g.findHolder(name)
	if taken && err == nil {
		has, err = g.loadEntry(first.key)
	}
	if err == nil && (!taken || has.IsCertainlyRejected()) {
		d.bindings = append(d.bindings, nameBinding{name, holder{key: e.Key}})
	}
	return has, err
}

// bindNumber binds the invoice number. Many entries may have the same one; each of them names the first.
func (g *groupCommit) bindNumber(d *draft, after ledger.Entry) error {
	if after.Number.IsZero() {
		return nil
	}
	first, err := g.findSameNumber(after)
	if err != nil {
		return err
	}
	if first != after.SameNumber {
		return &ledger.TakenError{What: ledger.TakenNumber, By: first}
	}
	d.bindings = append(d.bindings, nameBinding{numberName(after.Number), holder{key: after.Key}})
	return nil
}

// bindGeneration binds a later generation of an identity. It may belong to an entry that this
// one supersedes, directly or through others: that entry took the same generations before.
func (g *groupCommit) bindGeneration(d *draft, e ledger.Entry, id archive.ID) error {
	has, taken, err := g.findHolder(idName(id))
	if err != nil {
		return err
	}
	// The chain of superseded entries ends at the first one, so the loop ends.
	for k := e.Supersedes; taken && k != has.key; {
		if k.IsZero() {
			return &ledger.TakenError{What: ledger.TakenID, By: has.key}
		}
		before, err := g.loadEntry(k)
		if err != nil {
			return err
		}
		k = before.Supersedes
	}
	d.bindings = append(d.bindings, nameBinding{idName(id), holder{key: e.Key}})
	return nil
}

// addObjectDigest adds to a ticket the digest of the object that its address leads to. Only the ledger has the key.
func (g *groupCommit) addObjectDigest(ev ledger.Event) ledger.Event {
	if got, ok := ev.(ledger.TicketReceived); ok {
		// The address itself is wiped once it is spent; its digest stays and recognises the object for ever.
		got.Ticket.Object = got.Ticket.URL.ObjectDigest(g.Secret.Key[:])
		return got
	}
	return ev
}

// addSameNumber adds to an entry that is opened from evidence whose invoice number it repeats.
func (g *groupCommit) addSameNumber(e ledger.Entry, ev ledger.Event) (ledger.Event, error) {
	recovered, ok := ev.(ledger.Recovered)
	if !ok {
		return ev, nil
	}
	var err error
	recovered.SameNumber, err = g.findSameNumber(ledger.Entry{Key: e.Key, Number: recovered.Number})
	return recovered, err
}

// addFoundIdentity adds to a registration that was found the clientUUID to
// which its number was given, where nobody told it: an entry may not list the
// number any more, and then only the bucket of names knows the generation.
func (g *groupCommit) addFoundIdentity(e ledger.Entry, ev ledger.Event) (ledger.Event, error) {
	found, ok := ev.(ledger.RegistrationFound)
	if !ok || !found.ID.IsZero() {
		return ev, nil
	}
	h, taken, err := g.findHolder(remoteName(found.Remote))
	if err == nil && taken && h.key == e.Key {
		found.ID = identityOf(e, h.generation)
	}
	return found, err
}

// bindRemote binds the service's number. A number belongs to one clientUUID for ever. The
// service may give it again to the same one; giving it to another one is a mix-up.
func (g *groupCommit) bindRemote(d *draft, e ledger.Entry, r archive.RemoteID, generation uint8) error {
	return g.bindServiceName(d, e, remoteName(r), generation, ledger.TakenRemote)
}

// bindObject binds the object that an upload address leads to, by the same rule. It is never free again: the service can
// sign an address of it at any time, and an upload there would replace what was archived. The next generation of an entry
// is another clientUUID: an object that it shares with the former one is a mix-up too.
func (g *groupCommit) bindObject(d *draft, e ledger.Entry, o archive.ObjectDigest, generation uint8) error {
	return g.bindServiceName(d, e, objectName(o), generation, ledger.TakenObject)
}

// bindServiceName binds a name that the service gave to one generation of e. what says in words what the name is of.
func (g *groupCommit) bindServiceName(d *draft, e ledger.Entry, name []byte, generation uint8, what string) error {
	first, taken, err := g.findHolder(name)
	if err != nil {
		return err
	}
	id := identityOf(e, generation)
	if taken {
		had := e // its identities are those that it will have
		if first.key != e.Key {
			if had, err = g.loadEntry(first.key); err != nil {
				return err
			}
		}
		// The service bound one number to two documents. Nothing may be uploaded on such an answer.
		if identityOf(had, first.generation) != id {
			return &ledger.TakenError{What: what, By: first.key}
		}
	}
	for _, b := range namesOf(d.entry) { // what this very change was given is not yet bound
		if bytes.Equal(b.name, name) && identityOf(d.entry, b.to.generation) != id {
			return &ledger.TakenError{What: what, By: e.Key}
		}
	}
	d.bindings = append(d.bindings, nameBinding{name, holder{e.Key, generation}})
	return nil
}
