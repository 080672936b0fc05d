package proof

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Entry compares one entry with its lines.
func (f *Replay) Entry(e ledger.Entry) {
	f.Entries++
	f.Sample.Add(e, &f.Downloads)
	f.checkEntry(e)
	f.checkSentDigest(e)
	f.Uncertain.note(e)
	if e.IsAtRest() {
		f.rest.note(e)
	}
}

// endEntries is called when all entries were shown.
func (f *Replay) endEntries() {
	for key, it := range f.items {
		f.require(it.stored, "I1", key, "the journal knows it as %s, but there is no entry", it.state)
	}
}

// checkEntry compares one entry with its replayed lines.
func (f *Replay) checkEntry(e ledger.Entry) {
	it, ok := f.items[e.Key]
	switch {
	case !ok && f.keeper != nil:
		// Its lines were compared and forgotten at its last line. Only its registrations can still collide with others.
		f.checkSharedNumbers(e)
		return
	case !ok:
		f.addFinding("I1", e.Key, "there is an entry, but no line of the journal")
		return
	}
	f.require(!it.stored, "I1", e.Key, "there is more than one entry")
	it.stored = true
	f.items[e.Key] = it
	f.require(e.Rev == it.rev, "I5", e.Key, "the entry is at revision %d, its last line at %d", e.Rev, it.rev)
	f.require(e.State == it.state && e.Source == it.source, "I12", e.Key, "the entry is %s/%s, its last line says %s/%s", e.State, e.Source, it.state, it.source)
	f.require(e.ID == it.id, "I12", e.Key, "the entry's clientUUID is not that of its last line")
	f.require(it.size == 0 || e.Package.Size == it.size, "I12", e.Key, "the entry's package has %d bytes, the line that sealed it says %d", e.Package.Size, it.size)
	f.require(e.FlagWords() == it.flags, "I12", e.Key, "the entry's flags are not those of its last line")
	if !it.old { // else some are of the lines before
		f.require(e.Posts == it.posts && e.Answers == it.answers, "I9", e.Key, "the entry counts %d POSTs and %d answers, its lines %d and %d", e.Posts, e.Answers, it.posts, it.answers)
		f.checkRegistrations(e, it)
	}
	f.checkLastWord(e)
}

// checkLastWord checks that an entry has the last word of its route, and no other: delivered by the store's 2xx to the recorded bytes or by a
// notification, archived by the service's own success.
func (f *Replay) checkLastWord(e ledger.Entry) {
	switch {
	case e.State == ledger.Delivered && !e.Route.Reaches(e.State):
		f.addFinding("I12", e.Key, "delivered, though the service of its route says at the end whether it is archived")
	case !e.Route.Reaches(e.State):
		f.addFinding("I12", e.Key, "%s, though the service of its route says nothing after the upload", e.State)
	case e.NeedsComparison() && (e.Source == ledger.Disposing || e.Source == ledger.Moved || e.Source == ledger.Gone):
		f.addFinding("I3", e.Key, "its source was disposed of, and what an upload without Content-MD5 left was never compared")
	case e.State == ledger.Delivered && !e.IsUndelivered(): // which says so: it is contradicted
		f.require(e.Current() != nil && e.Current().Fate == ledger.Succeeded, "I12", e.Key, "delivered, and no upload of it was answered with success")
	}
}

// checkSharedNumbers compares the registrations of an entry whose lines were
// forgotten with those that are still remembered: of entries that were not
// forgotten, and those that their entries do not list any more. If two
// forgotten entries list the same number, the keeper of the entries finds it.
func (f *Replay) checkSharedNumbers(e ledger.Entry) {
	for _, r := range e.Registrations {
		b, ok := f.bindings[shorten(string(r.Ticket.Remote))]
		if !ok || b.isBoundTo(e.Key) {
			continue
		}
		if by, ok := f.entry(b.last); ok {
			_, own := by.GenerationOf(e.FirstID.Generation(int(r.Generation)))
			f.require(own, "I8", e.Key, "it lists registration %s, which was given to %s as clientUUID %s", r.Ticket.Remote, b.last, b.id)
		}
	}
}

// forgetCompared compares the entries that have no later lines with those that
// were shown, and forgets these. It keeps the registrations that an entry does
// not list any more: nothing else would tell later whose they were.
func (f *Replay) forgetCompared() {
	for _, key := range slices.SortedFunc(maps.Keys(f.items), compareKeys) {
		e, ok := f.entry(key)
		if !ok || e.Rev != f.items[key].rev {
			continue
		}
		f.checkEntry(e)
		delete(f.items, key)
		for _, r := range e.Registrations {
			if n := shorten(string(r.Ticket.Remote)); f.bindings[n].first == key && f.bindings[n].last == key {
				delete(f.bindings, n)
			}
		}
	}
	f.mostNow = max(f.least, 2*len(f.items)) // those that stay are looked up again, so not too often
}

func compareKeys(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }

// checkRegistrations compares the entry's registrations with those its lines bound to it.
func (f *Replay) checkRegistrations(e ledger.Entry, it item) {
	all := uint64(len(e.Registrations)) + e.Pruned.Total()
	f.require(all == uint64(it.tickets), "I8", e.Key, "registrations: the entry counts %d, its lines %d", all, it.tickets)
	for _, r := range e.Registrations {
		f.require(f.bindings[shorten(string(r.Ticket.Remote))].isBoundTo(e.Key), "I8", e.Key, "no line gave registration %s to it", r.Ticket.Remote)
	}
	f.require(e.State != ledger.Archived || e.ArchivedRemote != "" && shorten(string(e.ArchivedRemote)) == it.success, "I12", e.Key, "archived as %q, which no line calls successful first", e.ArchivedRemote)
}

// checkSentDigest compares the recorded digest with the one that left for the registration that was archived or delivered.
func (f *Replay) checkSentDigest(e ledger.Entry) {
	recorded := cmp.Or(e.Body, e.Package.SHA256) // of a document with a body, that is what left
	for _, r := range e.Registrations {
		is := e.State == ledger.Archived && r.Ticket.Remote == e.ArchivedRemote || e.State == ledger.Delivered && r.Fate == ledger.Succeeded
		f.require(!is || r.Sent.IsZero() || r.Sent == recorded, "I4", e.Key, "other bytes left for registration %s than are recorded", r.Ticket.Remote)
	}
}

// note notes what cannot be guaranteed about one entry.
func (u *Uncertain) note(e ledger.Entry) {
	for _, r := range e.Orphans() {
		u.Orphans = append(u.Orphans, Orphan{e.Key, r})
	}
	for _, class := range []struct {
		is   bool
		keys *[]archive.Key
	}{{e.State == ledger.Unclear, &u.Unclear}, {e.PossibleDouble, &u.Double}, {e.InDoubt, &u.InDoubt}, {e.NeedsReconcile, &u.NeedReconcile}} {
		if class.is {
			*class.keys = append(*class.keys, e.Key)
		}
	}
	u.Pruned += uint64(e.Pruned.Unsent)
	u.LostPosts += uint64(e.Posts) - uint64(e.Answers)
}
