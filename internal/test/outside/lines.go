package outside

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// binding is what the lines say of a registration: the entries that it was given
// to first and last, and the identity that it was made for.
type binding struct {
	first, last archive.Key
	id          archive.ID
	found       bool // learnt from the service, for this or an earlier generation of the identity
}

// lines is what the lines of a journal say of registrations.
type lines struct {
	ids      map[archive.Key]archive.ID
	bindings map[archive.RemoteID]binding
	lost     map[archive.ID]int // POSTs without an answer
}

// readLine reads a line that [proof.Replay] checks: what it cannot read, it leaves out.
func (s lines) readLine(l ledger.Line) {
	key, err := archive.ParseKey(l.Key)
	if err != nil || l.Kind != "" {
		return
	}
	was := s.ids[key]
	if id, err := archive.ParseID(l.ID); err == nil {
		s.ids[key] = id
	} else if l.Event == (ledger.Unsealed{}).JournalName() {
		delete(s.ids, key) // it gets one when it is packed anew
	}
	is := s.ids[key]
	switch l.Event {
	case ledger.RegisterIntended{}.JournalName():
		s.lost[is]++
	case ledger.RegisterNotTaken{}.JournalName(), ledger.BatchRefused{}.JournalName(), ledger.RegisterRefused{}.JournalName():
		s.lost[was]--
	case ledger.TicketReceived{}.JournalName():
		s.lost[was]--
		s.bind(key, is, l)
	case ledger.RegistrationFound{}.JournalName(), ledger.DocumentIntended{}.JournalName():
		s.bind(key, is, l)
	case ledger.Recovered{}.JournalName():
		if l.Remote != "" {
			s.bind(key, is, l)
		}
	}
}

// bind notes that a line gives a registration to an entry. One of another identity
// is taken over by the entry that has it alone.
func (s lines) bind(key archive.Key, id archive.ID, l ledger.Line) {
	n := archive.RemoteID(l.Remote)
	b, ok := s.bindings[n]
	switch {
	case !ok:
		b = binding{first: key, id: id, found: l.Event == (ledger.RegistrationFound{}).JournalName()}
	case b.id != id && !((b.first == key || b.last == key) && (b.found || l.Event != (ledger.TicketReceived{}).JournalName())):
		return // proof.Replay reports it
	}
	b.last = key
	s.bindings[n] = b
}
