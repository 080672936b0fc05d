package ingest

import (
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// expiredBatches remembers the registrations whose tickets a store called over before their time.
// The tickets of one call live and end together, so what was not sent yet with one of them
// need not be tried. After a restart that costs one refused upload each, and nothing else.
type expiredBatches struct {
	mu      sync.Mutex
	batches map[batchID]time.Duration // when the tickets of the call end, on the boot clock; guarded by mu
}

// batchID is one call: nothing else of that queue was sent in its instant, but where each call is for one document.
type batchID struct {
	queue  string
	sent   time.Duration    // on the boot clock
	remote archive.RemoteID // where each call registers one document, and several may be sent in one instant
}

func batchOf(e ledger.Entry) batchID {
	id := batchID{queue: ledger.ServiceQueueOf(e), sent: e.Current().Ticket.Sent.Boot}
	if !e.Route.HasVaults() {
		id.remote = e.Current().Ticket.Remote
	}
	return id
}

// add remembers the call that gave e its ticket for as long as its tickets live, and reports
// whether that was not known.
func (s *expiredBatches) add(e ledger.Entry, now archive.Instant) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, end := range s.batches {
		if now.Boot > end {
			delete(s.batches, p)
		}
	}
	_, known := s.batches[batchOf(e)]
	t := e.Current().Ticket
	s.batches[batchOf(e)] = t.Sent.Boot + t.Life()
	return !known
}

func (s *expiredBatches) has(e ledger.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.batches[batchOf(e)]
	return known
}

// handleExpiredTicket books a ticket that the store calls over. That says
// nothing about the store, only about the call that brought the ticket, which
// counts once. If all tickets of three calls in a row were over, more of them
// would only be lost as well.
func (c *Engine) handleExpiredTicket(e ledger.Entry, err *apicall.Error) []ledger.Event {
	// All tickets of one POST live and end together: its other documents need not be refused one by one.
	first := c.expiredBatches.add(e, c.cfg.Now())
	if target := storeOf(e); first && c.breakers.CountFault(target) {
		c.openBreaker(target, causeOf(err), err.RetryAfter)
	}
	refused := ledger.UploadRefused{NotBefore: c.registerAgainAt(e), Cause: causeOf(err)}
	// An earlier attempt may have left bytes, and nobody knows what became of them: the entry is unclear, and is asked about first.
	if wasSentBefore(e) {
		return []ledger.Event{refused, ledger.WindowClosed{NotBefore: c.nextPollAt(e)}}
	}
	return []ledger.Event{refused}
}

// wasSentBefore reports whether an attempt before the one under way may have left something.
func wasSentBefore(e ledger.Entry) bool {
	r := e.Current()
	return r.UploadIntents-r.WithoutEffect > 1
}
