package ingest

import (
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// whyNot says why an upload may not start now.
type whyNot uint8

const (
	mayStart     whyNot = iota
	windowOver          // an upload that starts now ends after its ticket does
	batchOver           // the store called another ticket of the same registration over
	ticketShared        // another document was given its number or its upload address too
	mayNotRepeat        // it was under way when the process ended, and nobody can be asked what became of it
	storeAsked          // bytes may be at the store, which asked for a wait
)

// admit is the one question whether the upload of an entry may start: ok, when
// it may where time alone helps, and why it may not. All memories that decide
// it are read here: the window of the ticket and the uploads that are booked
// beside it, the batches that were over early, tickets that were given twice,
// what the store asked for. The circuit breaker of the store and its limiter
// are the engine's part: see [engine.Admission] and [engine.Terms].
//
// It is asked when the entry is due, and again before the PUT, when the intent
// is committed (announced): that may have taken long, the machine may have
// slept, and the store or the service may have said more meanwhile. Where bytes
// may be at the store already, the window decides alone: nothing replaces them
// any more.
func (c *Engine) admit(e ledger.Entry, announced bool, now archive.Instant) (ok bool, when time.Time, why whyNot) {
	maybeSent := e.State == ledger.Sending
	if announced {
		maybeSent = wasSentBefore(e)
	}
	switch {
	case !c.cfg.Planner.MayStart(e.Current().Ticket, e.Package.Size, c.bookingOf(e.Key), now):
		return false, when, windowOver
	case !maybeSent && c.expiredBatches.has(e):
		return false, when, batchOver
	case !maybeSent && e.Current().Shared:
		return false, when, ticketShared
	case maybeSent && !announced && !wayOf(e).mayRepeat(c.routeOf(e)):
		return false, when, mayNotRepeat
	case maybeSent && !announced:
		if when = c.leaveStoreUntil(e, now); !when.IsZero() {
			return false, when, storeAsked
		}
	}
	return true, when, mayStart
}

// admitUpload returns how the upload of an entry that is due may go now.
func (c *Engine) admitUpload(e ledger.Entry, now archive.Instant) admission {
	ok, when, why := c.admit(e, false, now)
	switch {
	case why == windowOver || why == batchOver:
		return admission{Most: lateBatch, Kind: uint8(windowOver)}
	case ok && e.State == ledger.Registered:
		return admission{Target: storeOf(e), Most: 1}
	}
	return admission{Most: 1, From: when, Kind: uint8(why)} // bytes may be at the store: the window decides, not the breaker
}

// intendToUpload returns what is committed for an entry that is due, and
// whether its upload is made then.
func (c *Engine) intendToUpload(e ledger.Entry, why whyNot) ([]ledger.Event, bool) {
	switch why {
	case windowOver:
		return []ledger.Event{ledger.WindowClosed{NotBefore: c.afterWindow(e)}}, false
	case ticketShared:
		return []ledger.Event{stopForSharedTicket()}, false
	case mayNotRepeat:
		return []ledger.Event{c.unansweredUpload(e, time.Time{}, ledger.Cause{Text: "vaultd ended while the document was being sent"})}, false
	}
	return []ledger.Event{uploadIntent(c.routeOf(e), e.Current().Ticket)}, true
}

// lateBatch is how many entries whose window is over are told so in one commit: they
// are registered again together.
const lateBatch = 64

// leaveStoreUntil returns until when an upload of which bytes may be at the
// store waits because the store asked for that; zero: it need not. It never
// waits beyond its ticket: after the wait there must be room for as many like
// it as may go at once.
func (c *Engine) leaveStoreUntil(e ledger.Entry, now archive.Instant) time.Time {
	until := c.breakers.AskedUntil(storeOf(e))
	wait := until.Sub(now.Wall)
	if wait <= 0 || !c.cfg.Planner.MayStart(e.Current().Ticket, e.Package.Size*int64(c.routeOf(e).Workers), nil, instantIn(now, wait)) {
		return time.Time{}
	}
	return until
}

// retryInWindow returns when an upload that failed is tried again: at the given
// time, or sooner where an upload that starts then would not end before its
// ticket does. It is not much sooner: attempts must not become ever more
// frequent towards the end of a ticket.
func (c *Engine) retryInWindow(e ledger.Entry, at time.Time) time.Time {
	now := c.cfg.Now()
	for wait, n := at.Sub(now.Wall), 0; n < 3 && wait > 0; wait, n = wait/2, n+1 {
		if c.cfg.Planner.MayStart(e.Current().Ticket, e.Package.Size, nil, instantIn(now, wait)) {
			return now.Wall.Add(wait)
		}
	}
	return at // no upload may start any more
}

// instantIn returns the instant d after now, by both clocks.
func instantIn(now archive.Instant, d time.Duration) archive.Instant {
	now.Wall, now.Boot = now.Wall.Add(d), now.Boot+d
	return now
}

// wasSentBefore reports whether an attempt before the one under way may have left something.
func wasSentBefore(e ledger.Entry) bool {
	r := e.Current()
	return r.UploadIntents-r.WithoutEffect > 1
}

// bookings knows the uploads that have a slot. The planner hears of each before
// the next one is compared with it: of several that begin at the same moment
// each would find the link free.
//
// Promise I6 needs it: without it two uploads begin on a slow line that only
// one can end in time (TestUpload_I6_OfSeveralAtOnceEachCounts).
type bookings struct {
	mu sync.Mutex
	by map[archive.Key]*window.Upload // guarded by mu
}

// beginUpload books an upload unless it would keep others from ending in time.
// One that is alone in its queue always begins.
func (c *Engine) beginUpload(e ledger.Entry, alone bool) bool {
	if !alone && !c.cfg.Planner.MayJoin(e.Package.Size, c.cfg.Now()) {
		return false
	}
	c.underWay.mu.Lock()
	defer c.underWay.mu.Unlock()
	c.underWay.by[e.Key] = c.cfg.Planner.BeginUpload(e.Current().Ticket, e.Package.Size, c.cfg.Now())
	return true
}

// bookingOf returns the booking of an entry; nil: it has none.
func (c *Engine) bookingOf(k archive.Key) *window.Upload {
	c.underWay.mu.Lock()
	defer c.underWay.mu.Unlock()
	return c.underWay.by[k]
}

// learnFromUpload ends the booking of an upload that went well: the planner learns its speed.
func (c *Engine) learnFromUpload(k archive.Key) { c.endBooking(k, true) }

// dropBooking ends a booking from which nothing is learned. One that has ended
// before is left alone.
func (c *Engine) dropBooking(k archive.Key) { c.endBooking(k, false) }

func (c *Engine) endBooking(k archive.Key, wentWell bool) {
	c.underWay.mu.Lock()
	defer c.underWay.mu.Unlock()
	if u := c.underWay.by[k]; u != nil {
		delete(c.underWay.by, k)
		c.cfg.Planner.EndUpload(u, c.cfg.Now(), wentWell)
	}
}

// expiredBatches remembers the registrations whose tickets a store called over before their time.
// The tickets of one call live and end together, so what was not sent yet with one of them
// need not be tried. After a restart that costs one refused upload each, and nothing else.
type expiredBatches struct {
	mu      sync.Mutex
	batches map[batchID]time.Duration // when the tickets of the call end, on the boot clock; guarded by mu
}

// batchID is one call: nothing else of that queue was sent in its instant, but
// where each call is for one document.
type batchID struct {
	queue  string
	sent   time.Duration    // on the boot clock
	remote archive.RemoteID // where each call registers one document, and several may be sent in one instant
}

func batchOf(e ledger.Entry) batchID {
	return batchID{queue: ledger.ServiceQueueOf(e), sent: e.Current().Ticket.Sent.Boot, remote: wayOf(e).call(e)}
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
