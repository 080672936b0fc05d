package boltledger

import (
	"bytes"
	"fmt"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// acceptDocument accepts the document that comes with an event, holds a seal
// against its document, and keeps the notification that an event is about.
func (g *groupCommit) acceptDocument(d *draft, after ledger.Entry, ev ledger.Event, doc *ledger.Document) error {
	switch ev := ev.(type) {
	case ledger.Refused, ledger.FoundDuplicate:
		return acceptAsRead(d, after, doc)
	case ledger.Sealed:
		return acceptSealed(d, after, doc, ev.Seal, ev.Package)
	case ledger.Recovered:
		if ev.Content.IsZero() {
			return acceptAsRead(d, after, doc)
		}
		return acceptSealed(d, after, doc, ev.Seal, ev.Package)
	case ledger.Resealed:
		return g.checkSeal(d, after.Key, ev.Package, ev.Seal)
	case ledger.DeliveryConfirmed:
		return g.checkSeal(d, after.Key, archive.Package{SHA256: ev.Sent}, ev.Seal)
	case ledger.UploadAccepted:
		return g.checkSeal(d, after.Key, archive.Package{SHA256: ev.Sent}, ev.Seal)
	case ledger.NotificationSeen:
		return g.addNotice(d, after, ev.Notification)
	}
	return nil
}

// acceptSealed accepts the document of a folder that is sealed.
func acceptSealed(d *draft, after ledger.Entry, doc *ledger.Document, seal archive.Digest, p archive.Package) error {
	if doc == nil || seal != doc.Seal(p) {
		return fmt.Errorf("seal %s: the document is missing or its seal is another: %w", after.Key, ledger.ErrIllegal)
	}
	d.doc = doc
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

// bindNames binds the names that an event gives to an entry, by the rules that
// no entry can check alone: see mayTake. All of this runs in the transaction of
// the commit: what was looked up before may be out of date. The bindings stay in
// the draft: a refusal later in this change leaves each name with its former
// holder.
func (g *groupCommit) bindNames(d *draft, after ledger.Entry, ev ledger.Event) error {
	had := namesOf(d.entry)
	_, isSealed := ev.(ledger.Sealed) // which says anew what it repeats
	for _, b := range namesOf(after) {
		if slices.ContainsFunc(had, b.equals) && (!isSealed || fromService(b.name[0])) {
			continue
		}
		takes, err := g.mayTake(d.entry, after, b, ev)
		if err != nil {
			return err
		}
		if takes {
			d.bindings = append(d.bindings, b)
		}
	}
	return nil
}

// mayTake reports whether e takes a name, or leaves it to the entry that has it.
// The error is a [*ledger.TakenError] where e must not have it.
//
//   - An invoice number may be that of many entries; each names the first.
//   - An identity is free, or that of an entry that e supersedes. Of the earlier
//     generations that evidence tells of, one that another entry has was sent as
//     that, and stays with it.
//   - A list of files stays with the first entry that has it, unless that was
//     certainly rejected. A sealed entry that has it too names one of them.
//   - A number or an object of the service belongs to one clientUUID for ever.
//     The service may give it again to the same one; giving it to another one,
//     the next generation of an entry too, is a mix-up. It can sign an address
//     of an object at any time, and an upload there would replace what was
//     archived.
func (g *groupCommit) mayTake(before, e ledger.Entry, b nameBinding, ev ledger.Event) (bool, error) {
	if b.name[0] == byNumber {
		first, err := g.findSameNumber(e)
		if err == nil && first != e.SameNumber {
			err = &ledger.TakenError{What: ledger.TakenNumber, By: first}
		}
		return true, err
	}
	h, taken, err := g.findHolder(b.name)
	has := e // its identities are those that it will have
	if taken && err == nil && h.key != e.Key {
		has, err = g.loadEntry(h.key)
	}
	if err != nil {
		return false, err
	}
	_, isEvidence := ev.(ledger.Recovered)
	switch b.name[0] {
	case byID:
		if isEvidence && !bytes.Equal(b.name, idName(e.ID)) {
			return !taken, nil
		}
		isFree, err := !taken, error(nil)
		if taken {
			isFree, err = g.supersedes(e, h.key)
		}
		if err == nil && !isFree {
			err = &ledger.TakenError{What: ledger.TakenID, By: h.key}
		}
		return true, err
	case byContent:
		isFree := !taken || has.IsCertainlyRejected()
		if !isFree && !isEvidence && has.State != ledger.Rejected && has.ID != e.ID && e.SameContent.IsZero() {
			err = &ledger.TakenError{What: ledger.TakenFiles, By: h.key}
		}
		return isFree, err
	}
	id := identityOf(e, b.to.generation)
	isMixUp := taken && identityOf(has, h.generation) != id
	for _, o := range namesOf(before) { // what this very change was given is not yet bound
		if bytes.Equal(o.name, b.name) && identityOf(before, o.to.generation) != id {
			isMixUp, h = true, o.to
		}
	}
	if isMixUp {
		err = &ledger.TakenError{What: map[byte]string{byRemote: ledger.TakenRemote, byObject: ledger.TakenObject}[b.name[0]], By: h.key, Remote: registrationWith(has, b.name)}
	}
	return true, err
}

// registrationWith returns the registration of e that has a name from the
// service; empty: e lists it no more.
func registrationWith(e ledger.Entry, name []byte) archive.RemoteID {
	for _, r := range e.Registrations {
		if bytes.Equal(remoteName(r.Ticket.Remote), name) || bytes.Equal(objectName(r.Ticket.Object), name) {
			return r.Ticket.Remote
		}
	}
	return ""
}

// supersedes reports whether e is another entry, or supersedes it, directly or
// through others: those took the same generations before.
func (g *groupCommit) supersedes(e ledger.Entry, other archive.Key) (bool, error) {
	// The chain of superseded entries ends at the first one, so the loop ends.
	for e.Key != other {
		if e.Supersedes.IsZero() {
			return false, nil
		}
		var err error
		if e, err = g.loadEntry(e.Supersedes); err != nil {
			return false, err
		}
	}
	return true, nil
}

// complete adds to an event what the ledger alone knows: of an upload address,
// the digest of the object that it leads to; of evidence, the entry whose
// invoice number it repeats; of a registration that was found, the clientUUID to
// which its number was given. An entry may not list the number any more, and
// then only the bucket of names knows the generation.
func (g *groupCommit) complete(e ledger.Entry, ev ledger.Event) (ledger.Event, error) {
	switch ev := ev.(type) {
	case ledger.TicketReceived:
		// The address itself is wiped once it is spent; its digest stays and recognises the object for ever.
		ev.Ticket.Object = ev.Ticket.URL.ObjectDigest(g.Secret.Key[:])
		return ev, nil
	case ledger.Recovered:
		var err error
		ev.SameNumber, err = g.findSameNumber(ledger.Entry{Key: e.Key, Number: ev.Number})
		return ev, err
	case ledger.RegistrationFound:
		if !ev.ID.IsZero() {
			return ev, nil
		}
		h, taken, err := g.findHolder(remoteName(ev.Remote))
		if err == nil && taken && h.key == e.Key {
			ev.ID = identityOf(e, h.generation)
		}
		return ev, err
	}
	return ev, nil
}
