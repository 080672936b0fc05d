package ingest

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

// spoiler is a store for which the tickets of some registrations are over before their time.
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

// G13, I24: a batch whose tickets the store calls over before their time costs one further call
// and no more uploads than were under way; the store is not at fault.
func TestStore_G13_ABatchThatIsOverEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
			if n := r.Pauses(); len(n) != 0 {
				t.Fatal(n)
			}
		}
		if n := r.states(); n[ledger.Uploaded] != 150 {
			t.Fatal(n)
		}
		if now, all := p.s.counts(); now-posts != 2 || all-granted != 100 {
			t.Errorf("%d calls for %d documents, want 2 for 100: the batch, and its documents once more", now-posts, all-granted)
		}
		if n := p.refused(); n == 0 || n > 4 {
			t.Errorf("%d uploads with tickets that are over", n)
		}
	})
}

// G13: one batch in ten is over early, in the midst of a backlog.
func TestStore_G13_OneBatchInTenIsOverEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := spoils(func(post int) bool { return post%10 == 5 })
		r := run(t, p.s)
		r.drop("V", 1000)
		for range 150 {
			r.pass(time.Second)
			if n := r.Pauses(); len(n) != 0 {
				t.Fatal(n)
			}
		}
		if n := r.states(); n[ledger.Uploaded] != 1000 {
			t.Fatal(n)
		}
		posts, granted := p.s.counts()
		spoilt := (posts + 5) / 10
		if spoilt == 0 || granted > 1000+50*spoilt || p.refused() > 4*spoilt {
			t.Errorf("%d registrations, %d uploads refused for %d batches that were over", granted, p.refused(), spoilt)
		}
	})
}

// I9, I24: where every ticket is over when it comes, whatever is registered is lost: the route
// is paused, and tickets are not asked for in a circle. It goes on when one works again.
func TestStore_I9_EveryTicketIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		if posts > 6*30 || granted > 200+6*60 {
			t.Errorf("%d calls and %d registrations in six hours of which none can be used", posts, granted)
		}
		// Thirty an hour are tried, and eight at most were under way when the first was refused.
		if n := p.refused(); n > 6*30+8 {
			t.Errorf("%d uploads refused in six hours", n)
		}
		if n := r.Pauses(); len(n) != 1 || n[0].Target.String() != "store of vault V" {
			t.Error(n)
		}
		p.mu.Lock()
		wrong = false
		p.mu.Unlock()
		r.pass(2 * time.Hour)
		if n := r.states(); n[ledger.Uploaded] != 300 {
			t.Error(n)
		}
	})
}

// I24: a store that refuses and does not say that it is the ticket's time is in doubt itself.
func TestStore_I24_RefusalsAreDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{upload: func(archive.RemoteID) error { return fault(apicall.Refused, "http-403") }}
		r := run(t, s)
		r.drop("V", 200)
		r.pass(time.Hour)
		if p := r.Pauses(); len(p) != 1 || p[0].Target.String() != "store of vault V" {
			t.Error(p)
		}
	})
}

// I24: where nothing holds a ticket any more that could try a store whose breaker is open, a document is
// registered for that as soon as the store may be tried, and not whenever somebody looks next.
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
			if n := r.states(); n[ledger.Uploaded] != 4 {
				t.Errorf("%v, paused %v", n, r.Pauses())
			}
		})
	}
}

// I2: that a ticket is over says nothing about an earlier upload with it: the service is asked,
// and nothing is registered again.
func TestStore_I2_OverAfterAnUnansweredUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := &service{upload: func(archive.RemoteID) error {
			if calls++; calls == 1 {
				return fault(apicall.OutcomeUnknown, "timeout")
			}
			return expired
		}}
		r := run(t, s)
		r.drop("V", 1)
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Unclear] != 1 || calls != 2 {
			t.Errorf("%v after %d uploads", n, calls)
		}
		if _, granted := s.counts(); granted != 1 {
			t.Errorf("registered %d times", granted)
		}
	})
}

// I25, I26: one document that the store never takes, while it takes all others, is registered again later each time:
// no breaker opens because of it, so nothing else keeps it from going in a circle.
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
		if n := r.states(); n[ledger.Uploaded] != good || n[ledger.Packaged] != 1 || len(r.Pauses()) > 0 {
			t.Fatal(n, r.Pauses())
		}
		if n := bad.Load(); n < 5 || n > 12 {
			t.Errorf("sent %d times in an hour", n)
		}
	})
}

// alwaysRefused is the identity of the folder "bad 0" of the drop V.
var alwaysRefused = archive.DeriveID("V", archive.Sum([]byte("bad 0")), archive.Sum([]byte(`{"documentId":"bad 0"}`)))

// I4: a package that turns out to be damaged while it is sent is made again and sent to the same address, if what is
// made is identical. Else the entry stops: nobody knows what the store made of the bytes that left. No route is to blame.
func TestUpload_I4_ADamagedPackageIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		other bool // the folder gives other bytes now
		want  ledger.State
		sent  int
	}{
		"TheSameBytes": {false, ledger.Uploaded, 2},
		"OtherBytes":   {true, ledger.Quarantined, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := build(t, &service{slow: true})
				f := r.drops["V"].Packer.(*folders)
				var uploads atomic.Int32
				r.s.damaged = func() bool { return uploads.Add(1) == 1 }
				r.start()
				r.drop("V", 1)
				f.mu.Lock()
				f.turns = row.other
				f.mu.Unlock()
				r.pass(5 * time.Minute)
				if n := r.states(); n[row.want] != 1 || int(uploads.Load()) != row.sent || f.packed != 2 {
					t.Errorf("%v, sent %d times, packed %d times", n, uploads.Load(), f.packed)
				}
				if posts, _ := r.s.counts(); posts != 1 || len(r.Pauses()) > 0 {
					t.Errorf("%d registrations, pauses %v", posts, r.Pauses())
				}
			})
		})
	}
}

// I4: an acceptance counts only for the digest that was recorded: whatever else left, the entry is not uploaded.
func TestUpload_I4_TheDigestThatLeftIsRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		r.drop("V", 1)
		r.pass(time.Minute)
		if n := r.states(); n[ledger.Sending] != 1 {
			t.Errorf("other bytes left: %v", n)
		}
		wrong.Store(false)
		r.pass(10 * time.Minute) // whatever the back-off chose, it is within the window
		if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
			if e.State != ledger.Uploaded || e.Current().Sent != e.Package.SHA256 {
				t.Errorf("%s, sent %s", e.State, e.Current().Sent)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}
