package ingest

import (
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// sharedTickets remembers the entries whose number or upload address the service gave to another document too. The ledger keeps
// the other document from using it. The first one may be the wrong owner just as well: what was not sent with its ticket
// yet is not sent. What may be at the store already stays there and is asked about, for nothing replaces it any more.
//
// After a restart this is forgotten, and the first owner's ticket is used; the other document's never is.
type sharedTickets struct {
	mu sync.Mutex
	at map[archive.Key]archive.Instant // when that was heard; guarded by mu
}

func (s *sharedTickets) add(k archive.Key, now archive.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at[k] = now
}

// has reports whether the current ticket of e was asked for before its entry was booked.
func (s *sharedTickets) has(e ledger.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.at[e.Key]
	if !ok {
		return false
	}
	since, ok := at.Since(e.Current().Ticket.Sent)
	return ok && since >= 0
}

// stopForSharedTicket is the end of an entry whose ticket was given to another document too.
func stopForSharedTicket() ledger.SentToQuarantine {
	return ledger.SentToQuarantine{Cause: ledger.Cause{Code: "ticket-shared",
		Text: "the service gave this document's number or upload address to another document too, before anything was uploaded; nothing is. Ask the provider which of them it belongs to"}}
}

// mixedUpWith returns what becomes of an entry whose ticket belongs to another entry, or to another generation of it.
func (c *Engine) mixedUpWith(e ledger.Entry, taken *ledger.TakenError) ledger.AnswerMixedUp {
	c.noteMixUp(e)
	if taken.By != e.Key {
		c.sharedTickets.add(taken.By, c.cfg.Now())
	}
	cause := ledger.Cause{Code: "bumid-taken", Text: "the service gave this document a number that belongs to entry " + taken.By.String()}
	if taken.What == ledger.TakenObject {
		cause = ledger.Cause{Code: "address-taken", Text: "the service gave this document an upload address that belongs to entry " + taken.By.String() +
			"; nothing was uploaded to it. Ask the provider what it has under both"}
	}
	return ledger.AnswerMixedUp{Cause: cause}
}
