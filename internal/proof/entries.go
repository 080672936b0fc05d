package proof

import (
	"bytes"
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
	f.LostPosts += uint64(e.Posts) - uint64(e.Answers)
	if e.IsAtRest() {
		f.rest.Uncertain.note(e)
		f.rest.LostPosts += uint64(e.Posts) - uint64(e.Answers)
	}
}

// endEntries is called when all entries were shown.
func (f *Replay) endEntries() {
	for key, it := range f.items {
		if !it.stored {
			f.addFinding("I1", key, "the journal knows it as %s, but there is no entry", it.state)
		}
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
	case it.stored:
		f.addFinding("I1", e.Key, "there is more than one entry")
	}
	it.stored = true
	f.items[e.Key] = it
	if e.Rev != it.rev {
		f.addFinding("I5", e.Key, "the entry is at revision %d, its last line at %d", e.Rev, it.rev)
	}
	if e.State != it.state || e.Source != it.source {
		f.addFinding("I12", e.Key, "the entry is %s/%s, its last line says %s/%s", e.State, e.Source, it.state, it.source)
	}
	if e.ID != it.id {
		f.addFinding("I12", e.Key, "the entry's clientUUID is not that of its last line")
	}
	if it.size != 0 && e.Package.Size != it.size {
		f.addFinding("I12", e.Key, "the entry's package has %d bytes, the line that sealed it says %d", e.Package.Size, it.size)
	}
	if it.flags != (flags{e.InDoubt, e.PossibleDouble, e.NeedsReconcile, !e.SameNumber.IsZero(), e.StrangeDate, e.Reviewed, e.CutOff != ledger.NotCutOff}) {
		f.addFinding("I12", e.Key, "the entry's flags are not those of its last line")
	}
	if !it.old && (e.Posts != it.posts || e.Answers != it.answers) {
		f.addFinding("I9", e.Key, "the entry counts %d POSTs and %d answers, its lines %d and %d", e.Posts, e.Answers, it.posts, it.answers)
	}
	f.checkRegistrations(e, it)
	f.checkLastWord(e)
}

// checkLastWord checks that an entry has the last word of its route, and no other: delivered by the store's 2xx to the recorded bytes or by a
// notification, archived by the service's own success.
func (f *Replay) checkLastWord(e ledger.Entry) {
	switch {
	case e.State == ledger.Delivered && e.Route.IsAsked():
		f.addFinding("I12", e.Key, "delivered, though the service of its route says at the end whether it is archived")
	case (e.State == ledger.Archived || e.State == ledger.Uploaded && !e.Route.IsNotified() || e.State == ledger.Unclear) && !e.Route.IsAsked():
		f.addFinding("I12", e.Key, "%s, though the service of its route says nothing after the upload", e.State)
	case e.State == ledger.Delivered && e.Current() == nil:
		f.addFinding("I12", e.Key, "delivered, and it has no registration that was uploaded")
	case e.NeedsComparison() && (e.Source == ledger.Disposing || e.Source == ledger.Moved || e.Source == ledger.Gone):
		f.addFinding("I3", e.Key, "its source was disposed of, and what an upload without Content-MD5 left was never compared")
	case e.IsUndelivered(): // and it says so: it is contradicted
	case e.State == ledger.Delivered && e.Current().Fate != ledger.Succeeded:
		f.addFinding("I12", e.Key, "delivered, and no upload of it was answered with success")
	}
}

// checkSharedNumbers compares the registrations of an entry whose lines were
// forgotten with those that are still remembered: of entries that were not
// forgotten, and those that their entries do not list any more. If two
// forgotten entries list the same number, the keeper of the entries finds it
// (see [Journal]).
func (f *Replay) checkSharedNumbers(e ledger.Entry) {
	for _, r := range e.Registrations {
		b, ok := f.bindings[shortNumber(r.Ticket.Remote)]
		if !ok || b.isBoundTo(e.Key) {
			continue
		}
		if by, ok := f.entry(b.last); ok && !hasIdentity(by, e.FirstID.Generation(int(r.Generation))) {
			f.addFinding("I8", e.Key, "it lists registration %s, which was given to %s as clientUUID %s", r.Ticket.Remote, b.last, b.id)
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
			if n := shortNumber(r.Ticket.Remote); f.bindings[n].first == key && f.bindings[n].last == key {
				delete(f.bindings, n)
			}
		}
	}
	f.mostNow = max(f.least, 2*len(f.items)) // those that stay are looked up again, so not too often
}

func compareKeys(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) }

// checkRegistrations compares the entry's registrations with those its lines bound to it.
func (f *Replay) checkRegistrations(e ledger.Entry, it item) {
	if it.old { // some of them are of the lines before
		return
	}
	if all := uint64(len(e.Registrations)) + e.Pruned.Total(); all != uint64(it.tickets) {
		f.addFinding("I8", e.Key, "registrations: the entry counts %d, its lines %d", all, it.tickets)
	}
	for _, r := range e.Registrations {
		if b, ok := f.bindings[shortNumber(r.Ticket.Remote)]; !ok || !b.isBoundTo(e.Key) {
			f.addFinding("I8", e.Key, "no line gave registration %s to it", r.Ticket.Remote)
		}
	}
	if e.State == ledger.Archived && (e.ArchivedRemote == "" || shortNumber(e.ArchivedRemote) != it.success) {
		f.addFinding("I12", e.Key, "archived as %q, which no line calls successful first", e.ArchivedRemote)
	}
}

// checkSentDigest compares the recorded digest with the one that left for the registration that was archived or delivered.
func (f *Replay) checkSentDigest(e ledger.Entry) {
	for _, r := range e.Registrations {
		is := e.State == ledger.Archived && r.Ticket.Remote == e.ArchivedRemote || e.State == ledger.Delivered && r.Fate == ledger.Succeeded
		recorded := e.Package.SHA256
		if e.Route.IsNotified() {
			recorded = e.Body
		}
		if is && !r.Sent.IsZero() && r.Sent != recorded {
			f.addFinding("I4", e.Key, "other bytes left for registration %s than are recorded", r.Ticket.Remote)
		}
	}
}

// note notes what cannot be guaranteed about one entry.
func (u *Uncertain) note(e ledger.Entry) {
	for _, r := range e.Orphans() {
		u.Orphans = append(u.Orphans, Orphan{e.Key, r})
	}
	add := func(is bool, keys *[]archive.Key) {
		if is {
			*keys = append(*keys, e.Key)
		}
	}
	add(e.State == ledger.Unclear, &u.Unclear)
	add(e.PossibleDouble, &u.Double)
	add(e.InDoubt, &u.InDoubt)
	add(e.NeedsReconcile, &u.NeedReconcile)
	u.Pruned += uint64(e.Pruned.Unsent)
}

// hasIdentity reports whether id is an identity that e may have had, or comes to have.
func hasIdentity(e ledger.Entry, id archive.ID) bool {
	_, ok := e.GenerationOf(id)
	return ok
}
