package ingest

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// lasts runs n documents whose uploads take a tenth of a second each and returns how long
// it takes until all are uploaded.
func lasts(t *testing.T, n int, upload func(archive.RemoteID) error) (d time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		s := &service{slow: true, upload: upload}
		s.hangs = func(context.Context, archive.RemoteID) error { time.Sleep(100 * time.Millisecond); return nil }
		r := run(t, s)
		r.drop("V", n)
		began := time.Now()
		for s.took() < n {
			if time.Sleep(100 * time.Millisecond); time.Since(began) > time.Hour {
				t.Fatal(r.states())
			}
		}
		d = time.Since(began)
	})
	return d
}

// took returns how many uploads were taken.
func (s *service) took() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploaded)
}

// G13: a store that now and then says 503 or breaks a connection is slowed down for, not
// stopped for: nine tenths of the speed are left.
func TestStore_G13_AFewFaults(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	r, faults := rand.New(rand.NewPCG(1, 13)), 0
	few := func(archive.RemoteID) error {
		mu.Lock()
		defer mu.Unlock()
		switch f := r.Float64(); {
		case f < 0.05:
			faults++
			return &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-503", Text: "503", Status: 503}
		case f < 0.06:
			faults++
			return fault(apicall.OutcomeUnknown, "connection")
		}
		return nil
	}
	const n = 800
	calm, strained := lasts(t, n, nil), lasts(t, n, few)
	if faults < n/30 {
		t.Fatalf("vacuous: %d faults", faults)
	}
	t.Logf("%v without faults, %v with %d", calm, strained, faults)
	if float64(calm) < 0.9*float64(strained) {
		t.Errorf("%v without faults, %v with them", calm, strained)
	}
}

// A store that only says 503 opens its breaker after a few calls, and is tried again by single ones.
func TestStore_I24_Only503Rests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var mu sync.Mutex
		r := run(t, &service{upload: func(archive.RemoteID) error {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-503", Text: "503", Status: 503}
		}})
		r.drop("V", 200)
		r.pass(time.Hour)
		if p := r.Pauses(); len(p) != 1 || p[0].Target.String() != "store of vault V" {
			t.Error(p)
		}
		if calls > 200 { // those in doubt are sent again until their window ends
			t.Errorf("%d calls in an hour to a store that takes nothing", calls)
		}
	})
}

// G13: documents whose tickets ran out together are registered again together.
func TestRegister_G13_OneCallForAnExpiredBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{slow: true}
		r := run(t, s)
		r.drop("V", 100) // speeds are learned
		r.pass(time.Minute)
		r.breakers.lockOpen(UploadTarget("V"), ledger.Cause{Code: "test"}, time.Now())
		r.breakers.unlock(UploadTarget("V"))
		posts, _ := s.counts()
		var once sync.Once
		for _, d := range r.drops {
			d.Packer.(*folders).finds = func() {
				once.Do(func() { s.suspend(20 * time.Minute) }) // no ticket outlives that
			}
		}
		r.dropNamed("V", "late", 50)
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Uploaded] != 150 {
			t.Fatal(n)
		}
		if now, _ := s.counts(); now-posts != 2 {
			t.Errorf("%d calls, want 2: for one batch, and again because its tickets ran out under way", now-posts)
		}
	})
}

// I21: a service that starts gently gets few calls until one went well and a second has passed, and again once a pause is over, before any call of the next
// burst began.
func TestLimiters_I21_FewCallsAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store := limiters{by: map[Target]*limiter{}}, Target{Service: PDFService, Purpose: ToUpload}
		const most = 8
		want := func(when string, limit int) {
			t.Helper()
			if got := p.limit(store, most); got != limit {
				t.Errorf("%s: %d calls at once, want %d", when, got, limit)
			}
		}
		want("before the first", startCalls)
		for range 10 * most {
			p.begin(store, most)
			p.succeeded(store, most)
		}
		want("before a second has passed", startCalls)
		time.Sleep(startTime + 1)
		grown := p.limit(store, most)
		if grown <= startCalls {
			t.Fatalf("vacuous: %d calls at once", grown)
		}
		time.Sleep(startPause - startTime - 1)
		want("at the end of the longest pause", grown)
		time.Sleep(time.Second)
		want("after it", startCalls)
		p.begin(store, most)
		want("once a call began", startCalls)
	})
}
