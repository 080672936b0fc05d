package outside

import (
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Slot is one upload slot of a service that cannot be asked, as the service has it.
type Slot struct {
	Remote  archive.RemoteID // as the ledger knows it
	Uploads []StoredUpload   // those that the store kept and did not answer with a refusal, in order
}

// StoredUpload is one upload that the store kept.
type StoredUpload struct {
	SHA256 archive.Digest
	Size   int64 // bytes
	Torn   bool  // its body ended early, and the store kept it
}

// slotCheck checks the entries of routes that are not asked against the slots of their service.
type slotCheck struct {
	byRemote map[archive.RemoteID]Slot // nil: nobody looked
	known    map[archive.RemoteID]bool // some entry lists it
}

func newSlots(all []Slot) slotCheck {
	s := slotCheck{known: map[archive.RemoteID]bool{}}
	if all != nil {
		s.byRemote = map[archive.RemoteID]Slot{}
	}
	for _, one := range all {
		s.byRemote[one.Remote] = one
	}
	return s
}

// checkEntry checks one entry against the slots that it lists.
func (s slotCheck) checkEntry(e ledger.Entry, c *check) {
	if s.byRemote == nil || e.Route.IsAsked() || e.Route.IsNotified() {
		return
	}
	holding, uploads := 0, 0
	for _, r := range e.Registrations {
		slot := s.byRemote[r.Ticket.Remote]
		if s.known[r.Ticket.Remote] = true; len(slot.Uploads) == 0 {
			continue
		}
		holding, uploads = holding+1, uploads+len(slot.Uploads)
		for _, u := range slot.Uploads {
			if !u.Torn && (u.SHA256 != e.Package.SHA256 || u.Size != e.Package.Size) {
				c.addFinding("I4", e.Key, "slot %s holds %d bytes that are not the recorded ones", slot.Remote, u.Size)
			}
		}
	}
	if e.State == ledger.Delivered && !s.isStored(e) {
		c.addFinding("I12", e.Key, "delivered, and the service does not have the recorded bytes in the slot that is recorded")
	}
	switch {
	case e.PossibleDouble:
	case uploads > 1:
		c.addFinding("I2", e.Key, "the service took its content this often: %d, in slots: %d, and the entry does not say so", uploads, holding)
	case uploads > 0 && isSaidAbsent(e):
		c.addFinding("I12", e.Key, "it is %s, as if the service certainly had nothing of it, and a slot has content", e.State)
	}
}

// isStored reports whether the slot of a delivered entry holds the recorded bytes.
func (s slotCheck) isStored(e ledger.Entry) bool {
	r := e.Current()
	return r != nil && slices.ContainsFunc(s.byRemote[r.Ticket.Remote].Uploads, func(u StoredUpload) bool {
		return !u.Torn && u.SHA256 == e.Package.SHA256 && u.Size == e.Package.Size
	})
}

// isSaidAbsent reports whether an entry says that the service certainly has no content of it.
func isSaidAbsent(e ledger.Entry) bool {
	switch e.State {
	case ledger.Sending, ledger.Delivered, ledger.Quarantined:
		return false
	case ledger.Rejected:
		return !e.InDoubt
	}
	return true
}

// checkAll checks that every content belongs to an entry. A slot without content may come from a registration whose answer was lost.
func (s slotCheck) checkAll(c *check) {
	for r, slot := range s.byRemote {
		// A registration that its entry does not list any more never had content. What a lost ledger knew is judged by the folders.
		if len(slot.Uploads) > 0 && !s.known[r] && c.PutBack == 0 {
			c.addFinding("I9", archive.Key{}, "slot %s has content that no entry knows of", r)
		}
	}
}
