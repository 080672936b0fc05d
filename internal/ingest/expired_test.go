package ingest_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

var expired = &apicall.Error{Outcome: apicall.Refused, Code: "http-403", Text: "Request has expired", Expired: true}

// spoiler is a store that says that the tickets of some registrations are over before their time.
type spoiler struct {
	s    *service
	over func(post int) bool // whether those of that call are; mu is held

	mu   sync.Mutex
	of   map[archive.RemoteID]int // the call that gave a number; guarded by mu
	puts int                      // with a ticket that is over; guarded by mu
}

// spoils lets uploads take a moment. No two calls are sent in the same instant, though the
// bubble's clock stands still between them.
func spoils(over func(post int) bool) *spoiler {
	p := &spoiler{over: over, of: map[archive.RemoteID]int{}}
	p.s = &service{slow: true, upload: p.upload}
	p.s.hangs = func(context.Context, archive.RemoteID) error { time.Sleep(100 * time.Millisecond); return nil }
	p.s.register = func(f archive.RegisterRequest) (*archive.Ticket, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.s.serial++
		p.s.granted++
		ticket := &archive.Ticket{Remote: numbered(p.s.serial), URL: addressed(p.s.serial), Sent: p.s.now()}
		ticket.Sent.Boot -= time.Duration(p.s.posts)
		p.s.names[ticket.Remote], p.of[ticket.Remote] = f.ID, p.s.posts
		return ticket, nil
	}
	return p
}

func (p *spoiler) upload(r archive.RemoteID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over(p.of[r]) {
		p.puts++
		return expired
	}
	return nil
}

func (p *spoiler) refused() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.puts
}

// G13, I24: the store says that the tickets of one batch are over before their time. That
// costs one further call, and no more uploads than were under way. The store is not
// paused.
func TestStore_G13_ABatchThatIsOverEarly(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		first := 0
		p := spoils(func(post int) bool { return post == first })
		r := run(t, p.s)
		r.drop("V", 100) // speeds are learned
		r.pass(time.Minute)
		posts, granted := p.s.counts()
		p.mu.Lock()
		first = posts + 1
		p.mu.Unlock()
		r.dropNamed("V", "late", 50)
		for range 600 {
			r.pass(100 * time.Millisecond)
			p := r.paused()
			kit.Need(t, p == nil, "paused targets = %v, want none", p)
		}
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 150})
		if now, all := p.s.counts(); now-posts != 2 || all-granted != 100 {
			t.Errorf("%d calls for %d documents, want 2 for 100: the batch, and its documents once more", now-posts, all-granted)
		}
		n := p.refused()
		kit.Check(t, n != 0 && n <= 4, "%d uploads with tickets that are over, want 1 to 4", n)
	})
}

// G13: one batch in ten is over early, during a backlog.
func TestStore_G13_OneBatchInTenIsOverEarly(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		p := spoils(func(post int) bool { return post%10 == 5 })
		r := run(t, p.s)
		r.drop("V", 1000)
		for range 150 {
			r.pass(time.Second)
			p := r.paused()
			kit.Need(t, p == nil, "paused targets = %v, want none", p)
		}
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 1000})
		posts, granted := p.s.counts()
		spoilt := (posts + 5) / 10
		if spoilt == 0 || granted > 1000+50*spoilt || p.refused() > 4*spoilt {
			t.Errorf("%d registrations, %d uploads refused for %d batches that were over; want at most %d and %d", granted, p.refused(), spoilt, 1000+50*spoilt, 4*spoilt)
		}
	})
}

// I9, I24: every ticket is over when it comes, so each registration is lost. The store
// is paused, and vaultd asks for few tickets. It continues when one works again.
func TestStore_I9_EveryTicketIsOver(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		wrong := false
		p := spoils(func(int) bool { return wrong })
		r := run(t, p.s)
		r.drop("V", 100) // speeds are learned
		r.pass(time.Minute)
		p.mu.Lock()
		wrong = true
		p.mu.Unlock()
		posts, granted := p.s.counts()
		r.dropNamed("V", "late", 200)
		r.pass(6 * time.Hour)
		now, all := p.s.counts()
		posts, granted = now-posts, all-granted
		kit.Check(t, posts <= 6*30 && granted <= 200+6*60,
			"%d calls and %d registrations in six hours of which none can be used, want at most %d and %d", posts, granted, 6*30, 200+6*60)
		// Thirty an hour are tried, and eight at most were under way when the first was refused.
		n := p.refused()
		kit.Check(t, n <= 6*30+8, "%d uploads refused in six hours, want at most %d", n, 6*30+8)
		kit.Want(t, "paused targets", r.paused(), []string{"store of vault V"})
		p.mu.Lock()
		wrong = false
		p.mu.Unlock()
		r.pass(2 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 300})
	})
}

// I24: the store refuses every upload, and not because of the tickets' time. It is
// paused.
func TestStore_I24_RefusalsPauseTheStore(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{upload: func(archive.RemoteID) error { return fault(apicall.Refused, "http-403") }}
		r := run(t, s)
		r.dropAndPass("V", 200, time.Hour)
		kit.Want(t, "paused targets", r.paused(), []string{"store of vault V"})
	})
}

// I24: the store is paused, and no document holds a ticket any more that could probe
// it. One is registered for that as soon as the store may be tried.
func TestStore_I24_IsTriedAlsoWhenNothingHoldsATicket(t *testing.T) {
	t.Parallel()
	for range 50 { // the waits of the documents and of the store are random: one in three shows it
		synctest.Test(t, func(t *testing.T) {
			var refused atomic.Int32
			r := run(t, &service{slow: true, upload: func(archive.RemoteID) error {
				if refused.Add(1) <= 4 {
					return fault(apicall.Refused, "http-403")
				}
				return nil
			}})
			r.drop("V", 4)
			for len(r.Pauses()) == 0 {
				r.pass(10 * time.Millisecond)
			}
			r.pass(15 * time.Second) // two waits of 2.5 and 4.5 s at most, and those of a batch
			kit.Want(t, "states", r.states(), states{ledger.Uploaded: 4})
		})
	}
}

// I2: the store did not answer an upload, and says at the next attempt that the ticket
// is over. The service is asked, and the document is not registered again.
func TestStore_I2_OverAfterAnUnansweredUpload(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		calls := 0
		s := &service{upload: func(archive.RemoteID) error {
			if calls++; calls == 1 {
				return fault(apicall.OutcomeUnknown, "timeout")
			}
			return expired
		}}
		r := run(t, s)
		r.dropAndPass("V", 1, time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Unclear: 1})
		kit.Want(t, "uploads", calls, 2)
		_, granted := s.counts()
		kit.Want(t, "registrations", granted, 1)
	})
}

// I25, I26: the store refuses one document and accepts all others, so no breaker opens.
// The document is registered again later each time.
func TestStore_I25_OneThatIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	every := 5 * time.Second // another document comes
	if kit.Sampled(t, "documents that come meanwhile") {
		every = 50 * time.Second
	}
	synctest.Test(t, func(t *testing.T) {
		s := &service{slow: true}
		bad := atomic.Int32{}
		s.upload = func(r archive.RemoteID) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.names[r] == alwaysRefused {
				bad.Add(1)
				return fault(apicall.Refused, "http-400")
			}
			return nil
		}
		r := run(t, s)
		r.dropNamed("V", "bad", 1)
		good := int(time.Hour / every)
		for i := range good {
			r.dropNamed("V", fmt.Sprint("good ", i), 1)
			r.pass(every)
		}
		r.pass(time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: good, ledger.Packaged: 1})
		kit.Want(t, "paused targets", r.paused(), nil)
		n := bad.Load()
		kit.Check(t, n >= 5 && n <= 12, "the refused document was sent %d times in an hour, want 5 to 12", n)
	})
}

// alwaysRefused is the identity of the folder "bad 0" of the drop V.
var alwaysRefused = archive.DeriveID("V", archive.Sum([]byte("bad 0")), archive.Sum([]byte(`{"documentId":"bad 0"}`)))

// I4: a package turns out to be damaged while it is sent. It is made again, and sent to
// the same address if it is identical. Otherwise the entry stops, because the store may
// keep the bytes that left. No target is paused.
func TestUpload_I4_ADamagedPackageIsMadeAgain(t *testing.T) {
	t.Parallel()
	type row struct {
		other bool // the folder gives other bytes now
		want  ledger.State
		sent  int
	}
	kit.Rows(t, map[string]row{
		"TheSameBytes": {false, ledger.Uploaded, 2},
		"OtherBytes":   {true, ledger.Quarantined, 1},
	}, func(t *testing.T, row row) {
		synctest.Test(t, func(t *testing.T) {
			r := build(t, &service{slow: true})
			f := r.folders("V")
			var uploads atomic.Int32
			r.s.damaged = func() bool { return uploads.Add(1) == 1 }
			r.start()
			r.drop("V", 1)
			f.mu.Lock()
			f.turns = row.other
			f.mu.Unlock()
			r.pass(5 * time.Minute)
			kit.Want(t, "states", r.states(), states{row.want: 1})
			kit.Want(t, "uploads", int(uploads.Load()), row.sent)
			kit.Want(t, "times that it was packed", f.packed, 2)
			posts, _ := r.s.counts()
			kit.Want(t, "registrations", posts, 1)
			kit.Want(t, "paused targets", r.paused(), nil)
		})
	})
}

// I4: other bytes than those of the package left, and the store accepted them. The entry
// is not uploaded until the recorded digest was sent.
func TestUpload_I4_TheDigestThatLeftIsRecorded(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		var wrong atomic.Bool
		wrong.Store(true)
		r.s.sends = func(p archive.Package) archive.Digest {
			if wrong.Load() {
				return archive.Digest{6}
			}
			return p.SHA256
		}
		r.start()
		r.dropAndPass("V", 1, time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Sending: 1})
		wrong.Store(false)
		r.pass(10 * time.Minute) // whatever the back-off chose, it is within the window
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 1})
		e := r.entries()[0]
		kit.Want(t, "digest that was sent", e.Current().Sent, e.Package.SHA256)
	})
}
