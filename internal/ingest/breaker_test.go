package ingest_test

import (
	"context"
	"strings"
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
	r.dropAndPass("V", 20, time.Hour)
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
		r.dropAndPass("V", 40, 4*time.Minute)
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

// slowRemover takes its time to remove a folder.
type slowRemover struct {
	*folders
	takes time.Duration
}

func (m slowRemover) Dispose(context.Context, ledger.Entry, ledger.Document) (string, error) {
	time.Sleep(m.takes)
	return "", nil
}

// TestDispose_I3_WhatIsDueMeanwhileIsAskedAbout: the limit allowed the folders
// that were due. Others become due while those are removed, and are not
// removed before the limit has allowed them too.
func TestDispose_I3_WhatIsDueMeanwhileIsAskedAbout(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		d := r.configured("V")
		d.Disposes, d.Grace, d.Mover = true, 30*day, slowRemover{r.folders("V"), 25 * time.Minute}
		var asked []int
		r.cfg.DisposalLimit = func(_ string, due int) error { asked = append(asked, due); return nil }
		r.start()
		r.dropAndPass("V", 3, time.Hour)
		r.dropNamed("V", "later", 5)
		r.pass(time.Hour)
		kit.Want(t, "folders that are kept", r.sourcesOf("V")[ledger.Kept], 8)
		r.s.suspend(30*day - 110*time.Minute) // the first three are due since some minutes, the others in about 50
		r.pass(day)
		kit.Want(t, "folders that are gone", r.sourcesOf("V")[ledger.Gone], 8)
		kit.Want(t, "numbers that the limit was asked about", asked, []int{3, 5})
	})
}

// oldArchive says of each document that it was archived long ago.
type oldArchive struct{ *service }

func (s oldArchive) Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	rc, err := s.service.Status(ctx, v, r)
	rc.Updated = rc.Updated.AddDate(-1, 0, 0)
	return rc, err
}

// TestDispose_I3_GraceBeginsWhenTheFolderIsKept: the grace is for the users of
// the folder. The archive's clock does not shorten it.
func TestDispose_I3_GraceBeginsWhenTheFolderIsKept(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		r := build(t, s)
		d := r.configured("V")
		d.Disposes, d.Grace = true, 30*day
		route := r.cfg.Routes[ledger.Vault]
		route.Asker = oldArchive{s}
		r.cfg.Routes[ledger.Vault] = route
		r.start()
		r.dropAndPass("V", 1, 29*day)
		kit.Want(t, "sources before the grace is over", r.sourcesOf("V"), sources{ledger.Kept: 1})
		r.pass(2 * day)
		kit.Want(t, "sources after it", r.sourcesOf("V"), sources{ledger.Gone: 1})
	})
}

// Folders with one invoice number are packed at the same time. All are archived, and
// all but the first name the first.
func TestSeal_SameNumberAtOnceIsNotMissed(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		// A commit takes a while, however fast the disk is: other folders are compared meanwhile.
		r := buildSlow(t, &service{}, func(string) error { time.Sleep(time.Millisecond); return nil })
		f := r.folders("V")
		f.number, f.takes = archive.NumberDigest{1}, time.Second
		r.start()
		r.drop("V", 60) // enough that two are compared at once, however busy the machine is
		r.pass(2 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 60})
		first, named := archive.Key{}, 0
		for _, e := range r.entries() {
			if e.SameNumber.IsZero() {
				first = e.Key
			}
		}
		for _, e := range r.entries() {
			if e.SameNumber == first {
				named++
			}
		}
		kit.Want(t, "entries that name the first", named, 59)
		f.mu.Lock()
		defer f.mu.Unlock()
		kit.Check(t, f.packed != 60,
			"each folder was packed once, want more: no two were compared at once, and the test shows nothing")
	})
}

// same_number: hold and strange_dates: hold let a document wait for an
// operator, and the ledger records the reason. The operator lets it continue,
// and has looked at it then. The first document with a number passes.
func TestSeal_HoldsWhatIsUnusual(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		holds  ingest.Holds
		sealed func(*folders)
		reason string // how it begins
	}{
		"SameNumber":         {ingest.Holds{SameNumber: true}, func(f *folders) { f.number = archive.NumberDigest{1} }, "same_number: hold. "},
		"StrangeDate":        {ingest.Holds{StrangeDate: true}, func(f *folders) { f.dated = true }, "strange_dates: hold. "},
		"SameFilesAndNumber": {ingest.Holds{SameNumber: true}, func(f *folders) { f.number, f.same = archive.NumberDigest{1}, true }, "same_number: hold. "},
	} {
		kit.Bubble(t, name, func(t *testing.T) {
			r := build(t, &service{})
			f := r.folders("V")
			f.number, f.same = archive.NumberDigest{1}, name == "SameFilesAndNumber"
			r.start()
			r.dropNamed("V", "first", 1)
			r.pass(time.Hour)
			r.stop()
			f.number = archive.NumberDigest{2}
			row.sealed(f)
			r.configured("V").Holds = row.holds
			r.start()
			r.dropNamed("V", "second", 1)
			r.pass(2 * time.Hour)
			es := r.entries()
			kit.Want(t, "states", r.states(), states{ledger.Archived: 1, ledger.Packaged: 1})
			if e := es[1]; !e.Hold || e.Attention() != ledger.AwaitingDecision {
				t.Fatalf("the second is held: %t, attention = %v, want true, %v", e.Hold, e.Attention(), ledger.AwaitingDecision)
			}
			notes, err := r.ledger.Notes(es[1].Key)
			why := notes[es[1].Rev].Text
			kit.Check(t, err == nil && strings.HasPrefix(why, row.reason), "reason = %q (error %v), want it to begin with %q", why, err, row.reason)
			r.apply(ledger.Change{Key: es[1].Key, Rev: es[1].Rev, Events: []ledger.Event{ledger.Unheld{}}})
			r.Wake()
			r.pass(2 * time.Hour)
			kit.Want(t, "states", r.states(), states{ledger.Archived: 2})
			e := r.entries()[1]
			kit.Want(t, "attention", e.Attention(), ledger.NoAttention)
			kit.Want(t, "reviewed", e.Reviewed, e.NeedsReview())
		})
	}
}
