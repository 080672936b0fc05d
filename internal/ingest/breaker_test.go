package ingest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// What was under way when a breaker was locked open does not close it.
func TestBreakers_I8_LockedStaysOpen(t *testing.T) {
	t.Parallel()
	r, now := newBreakers(), time.Unix(1, 0)
	r.lockOpen(RegisterTarget("V"), ledger.Cause{Code: "cross-wired"}, now)
	r.close(RegisterTarget("V"), now)
	r.open(RegisterTarget("V"), ledger.Cause{Code: "http-403"}, 0, now)
	r.endProbe(RegisterTarget("V"), now)
	if _, open := r.isOpen(RegisterTarget("V"), now.Add(365*24*time.Hour)); !open || r.list()[0].Cause.Code != "cross-wired" {
		t.Error(r.list())
	}
}

// What was under way when the other side asked to be left alone ends well, and opens nothing before that time; a fault
// of it does not shorten the wait either.
func TestBreakers_I24_AskedWaitIsKept(t *testing.T) {
	t.Parallel()
	r, now := newBreakers(), time.Unix(1, 0)
	r.open(RegisterTarget("V"), ledger.Cause{Code: "http-429"}, time.Hour, now)
	if r.close(RegisterTarget("V"), now.Add(time.Second)) {
		t.Error("a success opened it")
	}
	r.open(RegisterTarget("V"), ledger.Cause{Code: "http-500"}, 0, now.Add(2*time.Second))
	r.open(RegisterTarget("V"), ledger.Cause{Code: "http-503"}, time.Minute, now.Add(3*time.Second))
	p := r.list()
	if until, open := r.isOpen(RegisterTarget("V"), now.Add(59*time.Minute)); !open || !until.Equal(now.Add(time.Hour)) || !p[0].Asked.Equal(until) {
		t.Errorf("%v until %v: %+v", open, until, p)
	}
	if _, open := r.isOpen(RegisterTarget("V"), now.Add(time.Hour)); open {
		t.Error("it stays open for longer than it was asked to")
	}
	r.open(RegisterTarget("V"), ledger.Cause{Code: "http-500"}, 0, now.Add(time.Hour)) // the probe
	if p := r.list(); p[0].Cause.Code != "http-500" || !p[0].Next.Before(now.Add(time.Hour+maxPause)) {
		t.Errorf("%+v", p)
	}
	if !r.close(RegisterTarget("V"), now.Add(2*time.Hour)) {
		t.Error("a success after the wait does not open it")
	}
}

// I25: a wall clock that is set back makes no pause longer than it was.
func TestBreakers_I25_ClockSetBack(t *testing.T) {
	t.Parallel()
	b, now := newBreakers(), time.Unix(1e9, 0)
	b.open(RegisterTarget("V"), ledger.Cause{Code: "dns"}, 0, now)
	b.open(RegisterTarget("ASKED"), ledger.Cause{Code: "http-429"}, time.Hour, now)
	now = now.AddDate(0, 0, -1)
	b.open(RegisterTarget("V"), ledger.Cause{Code: "dns"}, 0, now) // it was under way
	if next, open := b.isOpen(RegisterTarget("V"), now); !open || next.After(now.Add(2*firstPause)) {
		t.Errorf("open %v until %v, it is %v", open, next, now)
	}
	if next, open := b.isOpen(RegisterTarget("ASKED"), now); !open || !next.Equal(now.Add(time.Hour)) || !b.list()[0].Asked.Equal(next) {
		t.Errorf("open %v until %v, it is %v", open, next, now)
	}
	if probe, allowed := b.allow(RegisterTarget("V"), now.Add(2*firstPause)); !probe || !allowed {
		t.Error("it is not tried again")
	}
	if b.close(RegisterTarget("ASKED"), now.Add(time.Hour)); !b.isClosed(RegisterTarget("ASKED")) {
		t.Error("it does not close after the wait")
	}
}

// Uploads that are under way when the store asks to be left alone go on; what has a ticket and was not begun waits.
func TestStore_I24_AskedWaitHoldsForTheWholeRoute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var began []time.Time
		s := &service{slow: true}
		s.hangs = func(context.Context, archive.RemoteID) error { time.Sleep(2 * time.Second); return nil }
		s.upload = func(archive.RemoteID) error {
			mu.Lock()
			defer mu.Unlock()
			if began = append(began, time.Now()); len(began) == 1 {
				return &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-429", Text: "429", Status: 429, RetryAfter: 4 * time.Minute}
			}
			return nil
		}
		r := run(t, s)
		r.drop("V", 40)
		r.pass(4 * time.Minute)
		mu.Lock()
		early := len(began)
		mu.Unlock()
		if early > 4 {
			t.Errorf("%d uploads although the store asked to be left alone", early)
		}
		if p := r.Pauses(); len(p) != 1 || p[0].Target.String() != "store of vault V" || p[0].Asked.IsZero() {
			t.Error(p)
		}
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Uploaded] != 40 {
			t.Error(n)
		}
	})
}
