package ingest

import (
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// spoilt remembers the registrations whose tickets a store called over before their time.
// The tickets of one call live and end together, so what was not sent yet with one of them
// need not be tried. After a restart that costs one refused upload each, and nothing else.
type spoilt struct {
	mu    sync.Mutex
	posts map[post]bool // guarded by mu
}

// post is one call: nothing else of that vault was sent in its instant.
type post struct {
	vault archive.VaultID
	sent  time.Duration // on the boot clock
}

func postOf(e ledger.Entry) post { return post{e.Vault, e.Current().Ticket.Sent.Boot} }

// book remembers the call that gave e its ticket for as long as any ticket lives, and reports
// whether that was not known.
func (s *spoilt) book(e ledger.Entry, life time.Duration, now archive.Instant) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.posts {
		if now.Boot-p.sent > life {
			delete(s.posts, p)
		}
	}
	first = !s.posts[postOf(e)]
	s.posts[postOf(e)] = true
	return first
}

func (s *spoilt) has(e ledger.Entry) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts[postOf(e)]
}

// expired books a ticket that the store calls over. That says nothing about the store, only
// about the call that brought the ticket, which counts once. Where all tickets of three calls
// in a row were over, more of them would only be lost as well.
func (c *Engine) expired(e ledger.Entry, err *apicall.Error) []ledger.Event {
	first := c.spoilt.book(e, c.cfg.Planner.Window, c.cfg.Now())
	if target := UploadTarget(e.Vault); first && c.breakers.countFault(target) {
		c.openBreaker(target, causeOf(err), err.RetryAfter)
	}
	refused := ledger.UploadRefused{NotBefore: c.anew(e), Cause: causeOf(err)}
	if sentBefore(e) { // and nobody knows what became of that
		return []ledger.Event{refused, ledger.WindowClosed{NotBefore: c.pollAt(e)}}
	}
	return []ledger.Event{refused}
}

// sentBefore reports whether an attempt before the one under way may have left something.
func sentBefore(e ledger.Entry) bool {
	r := e.Current()
	return r.UploadIntents-r.WithoutEffect > 1
}
