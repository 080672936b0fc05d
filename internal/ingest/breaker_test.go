package ingest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// registering is a service of which a test answers some calls to register.
type registering struct {
	*service
	calls  atomic.Int32
	answer func(call int32, v archive.VaultID, frozen []archive.RegisterRequest) (r archive.RegisterResult, mine bool, err error) // nil: none
}

func (s *registering) Register(ctx context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	if n := s.calls.Add(1); s.answer != nil {
		if r, mine, err := s.answer(n, v, frozen); mine {
			return r, err
		}
	}
	return s.service.Register(ctx, v, frozen)
}

// buildRegistering makes an engine whose service registers one document in a call,
// and lets it archive some, so that two calls may be under way at once.
func buildRegistering(t *testing.T) (*running, *registering) {
	t.Helper()
	s := &registering{service: &service{}}
	r := build(t, s.service)
	row := r.cfg.Routes[ledger.Vault]
	row.Client, row.BatchSize = s, 1
	r.cfg.Routes[ledger.Vault] = row
	r.start()
	r.drop("V", 20)
	r.pass(time.Hour)
	kit.Want(t, "states", r.states(), states{ledger.Archived: 20})
	return r, s
}

// I8: the service mixed up documents twice. A registration that was under way then
// ends well, or with 403, and the vault stays closed all the same.
func TestBreakers_I8_LockedStaysOpen(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"Success": nil, "Forbidden": fault(apicall.NotProcessed, "http-403")} {
		kit.Bubble(t, name, func(t *testing.T) {
			r, s := buildRegistering(t)
			before, underWay, release := s.calls.Load(), atomic.Int32{}, make(chan struct{})
			s.answer = func(call int32, _ archive.VaultID, frozen []archive.RegisterRequest) (a archive.RegisterResult, mine bool, err error) {
				switch call - before {
				case 1, 3: // the service mixes up a document with another one
					time.Sleep(time.Second)
					return archive.RegisterResult{Crossed: map[archive.ID]string{frozen[0].ID: "mixed up"}}, true, nil
				case 2:
					underWay.Add(1)
					<-release
					underWay.Add(-1)
					return a, end != nil, end
				}
				return a, false, nil
			}
			r.dropNamed("V", "late", 3)
			r.pass(30 * time.Second)
			kit.Want(t, "calls under way when the vault was closed", underWay.Load(), 1)
			kit.Want(t, "calls", s.calls.Load()-before, 3)
			close(release)
			r.dropNamed("V", "later", 3)
			r.pass(3 * 24 * time.Hour)
			kit.Want(t, "calls in the days after", s.calls.Load()-before-3, 0)
			kit.Want(t, "paused target", r.onlyPause().Target, ingest.RegisterTarget("V"))
			kit.Want(t, "cause of the pause", r.onlyPause().Cause.Code, "cross-wired")
		})
	}
}

// I24: the service asks to be left alone for an hour while another call is under way.
// However that call ends, nothing is sent within the hour. Then one call is a probe;
// its fault is shown, and a success ends the pause.
func TestBreakers_I24_AskedWaitIsKept(t *testing.T) {
	t.Parallel()
	tooMany := &apicall.Error{Outcome: apicall.NotProcessed, Code: "http-429", Text: "429", Status: 429, RetryAfter: time.Hour}
	shorter := &apicall.Error{Outcome: apicall.NotProcessed, Code: "http-503", Text: "503", Status: 503, RetryAfter: time.Minute}
	for name, end := range map[string]error{"Success": nil, "Fault": fault(apicall.NotProcessed, "http-500"), "AsksForAShorterWait": shorter} {
		kit.Bubble(t, name, func(t *testing.T) {
			r, s := buildRegistering(t)
			before := s.calls.Load()
			s.answer = func(call int32, _ archive.VaultID, _ []archive.RegisterRequest) (a archive.RegisterResult, mine bool, err error) {
				switch call - before {
				case 1:
					time.Sleep(time.Second)
					return a, true, tooMany
				case 2: // under way when the service asks
					time.Sleep(3 * time.Second)
					return a, end != nil, end
				case 3: // the probe
					return a, true, fault(apicall.NotProcessed, "http-500")
				}
				return a, false, nil
			}
			r.dropNamed("V", "late", 4)
			r.pass(time.Minute)
			asked := r.onlyPause()
			kit.Want(t, "paused target", asked.Target, ingest.RegisterTarget("V"))
			if !asked.Next.Equal(asked.Asked) || time.Until(asked.Asked) < 58*time.Minute {
				t.Errorf("the next try is at %v, asked until %v, want both about 59 minutes after %v", asked.Next, asked.Asked, time.Now())
			}
			r.pass(time.Until(asked.Asked) - time.Second)
			kit.Want(t, "calls within the hour", s.calls.Load()-before, 2)
			r.pass(1300 * time.Millisecond) // a second probe comes half a second after the first at the earliest
			kit.Want(t, "calls after the hour", s.calls.Load()-before, 3)
			if p := r.onlyPause(); p.Cause.Code != "http-500" || time.Until(p.Next) > 5*time.Minute {
				t.Errorf("after the probe: pause = %+v, want one for http-500 of at most 5 minutes", p)
			}
			r.pass(time.Hour)
			kit.Want(t, "paused targets", r.paused(), nil)
			kit.Want(t, "states", r.states(), states{ledger.Archived: 24})
		})
	}
}

// I25: the wall clock is set back by a day during a pause. The pause ends when it
// would have ended.
func TestBreakers_I25_ClockSetBack(t *testing.T) {
	t.Parallel()
	type row struct {
		fault         error
		nothingBefore time.Duration
		triedWithin   time.Duration
	}
	kit.Rows(t, map[string]row{
		"Fault":     {fault(apicall.NotProcessed, "dns"), 0, 10 * time.Second},
		"AskedWait": {&apicall.Error{Outcome: apicall.NotProcessed, Code: "http-429", Text: "429", Status: 429, RetryAfter: time.Hour}, 58 * time.Minute, 62 * time.Minute},
	}, func(t *testing.T, row row) {
		synctest.Test(t, func(t *testing.T) {
			r, s := buildRegistering(t)
			before := s.calls.Load()
			s.answer = func(call int32, _ archive.VaultID, _ []archive.RegisterRequest) (a archive.RegisterResult, mine bool, err error) {
				return a, call == before+1, row.fault
			}
			r.dropNamed("V", "late", 1)
			for s.calls.Load() == before {
				r.pass(10 * time.Millisecond)
			}
			s.setWall(-24 * time.Hour)
			r.dropNamed("V", "later", 1)
			r.pass(row.nothingBefore)
			kit.Want(t, "calls during the pause", s.calls.Load()-before, 1)
			r.pass(row.triedWithin - row.nothingBefore)
			n := s.calls.Load() - before
			kit.Check(t, n >= 2, "%d calls within %v, want another one after the pause", n, row.triedWithin)
			kit.Want(t, "paused targets", r.paused(), nil)
		})
	})
}

// I24: uploads that are under way when the store asks to be left alone go on. A
// document with a ticket whose upload was not begun waits.
func TestStore_I24_AskedWaitHoldsForTheWholeRoute(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
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
		kit.Check(t, early <= 4,
			"%d uploads although the store asked to be left alone, want at most the 4 under way", early)
		p := r.onlyPause()
		kit.Check(t, p.Target == ingest.UploadTarget("V") && !p.Asked.IsZero(), "pause = %+v, want the store of vault V, with the time it asked for", p)
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 40})
	})
}
