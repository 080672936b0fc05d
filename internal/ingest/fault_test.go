package ingest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func TestAllGoesWell(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{})
		r.drop("V", 100)
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Archived] != 100 {
			t.Error(n)
		}
	})
}

// One number that the service cannot answer for keeps nobody else from being heard.
func TestAsk_I23_OneQuestionThatAlwaysFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{status: func(id archive.RemoteID) error {
			if id == "bum-3" {
				return fault(apicall.OutcomeUnknown, "http-500")
			}
			return nil
		}})
		r.drop("V", 50)
		r.pass(15 * time.Minute)
		if n := r.states(); n[ledger.Archived] != 49 || n[ledger.Uploaded] != 1 {
			t.Error(n)
		}
		r.dropNamed("V", "later", 50)
		r.pass(30 * time.Minute)
		if n := r.states(); n[ledger.Archived] != 99 || n[ledger.Uploaded] != 1 {
			t.Error(n)
		}
	})
}

// The list is only a shortcut: without it each document is asked about alone.
func TestAsk_ListIsForbidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{list: func() error { return fault(apicall.NotProcessed, "http-403") }})
		r.drop("V", 50)
		r.pass(15 * time.Minute)
		if n := r.states(); n[ledger.Archived] != 50 {
			t.Error(n)
		}
		if p := r.Pauses(); len(p) != 0 {
			t.Error(p)
		}
	})
}

// Tickets that cannot be used must not be asked for every other second.
func TestRegister_I9_TicketsAgainstPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{barred: "host store.example refused: it is not in allowed_hosts"}
		r := run(t, s)
		r.drop("V", 20)
		r.pass(24 * time.Hour)
		if _, granted := s.counts(); granted > 20+24*60 {
			t.Errorf("%d registrations in a day of which none can be used", granted)
		}
		if len(r.Pauses()) != 1 {
			t.Error(r.Pauses())
		}
	})
}

// A ticket that is over when it arrives is no reason to ask for the next at once.
func TestRegister_I9_TicketsThatAreOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{}
		serial := 0
		s.register = func(archive.RegisterRequest) (*archive.Ticket, error) {
			serial++
			return &archive.Ticket{Remote: archive.RemoteID(fmt.Sprintf("old-%d", serial)), URL: addressed(1_000_000 + serial), Sent: s.now(),
				Date: time.Now(), SignedAt: time.Now().Add(-time.Hour), Validity: 15 * time.Minute}, nil
		}
		r := run(t, s)
		r.drop("V", 200)
		r.pass(24 * time.Hour)
		if serial > 200+24*60 {
			t.Errorf("%d registrations in a day of which none can be used", serial)
		}
		if len(r.Pauses()) != 1 {
			t.Error(r.Pauses())
		}
	})
}

// A service that refuses whatever it gets must not be fed all documents.
func TestRegister_I24_EverythingIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{register: func(archive.RegisterRequest) (*archive.Ticket, error) { return nil, fault(apicall.Refused, "http-400") }})
		r.drop("V", 500)
		r.pass(time.Hour)
		if n := r.states()[ledger.Rejected]; n < 3 || n > 80 { // the waits have a random part: some 20 to 45 are usual
			t.Errorf("%d rejected in an hour", n)
		}
	})
}

// Answers to questions do not open what registrations found closed.
func TestRegister_ForbiddenWhileAskingIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Bool
		s := &service{slow: true, register: func(archive.RegisterRequest) (*archive.Ticket, error) {
			if closed.Load() {
				return nil, fault(apicall.NotProcessed, "http-403")
			}
			return nil, nil
		}}
		r := run(t, s)
		r.drop("V", 300)
		r.pass(time.Minute)
		closed.Store(true)
		before, _ := s.counts()
		r.dropNamed("V", "late", 100)
		r.pass(time.Hour)
		if posts, _ := s.counts(); posts-before > 40 {
			t.Errorf("%d refused registrations in an hour", posts-before)
		}
	})
}

// While the store is away, tickets are not collected.
func TestStore_I9_AwayForHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := &service{upload: func(archive.RemoteID) error {
			if away.Load() {
				return fault(apicall.NotSent, "no-connection")
			}
			return nil
		}}
		r := run(t, s)
		r.drop("V", 60) // speeds are learned
		r.pass(time.Hour)
		away.Store(true)
		_, before := s.counts()
		r.dropNamed("V", "late", 150)
		r.pass(6 * time.Hour)
		if _, granted := s.counts(); granted-before > 150+6*60 {
			t.Errorf("%d registrations in six hours without a store", granted-before)
		}
		away.Store(false)
		r.pass(2 * time.Hour)
		if n := r.states(); n[ledger.Archived] != 210 {
			t.Error(n)
		}
	})
}

// A store that fails in the middle of everything leaves few documents in doubt.
func TestStore_FailsEveryUpload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		r := run(t, &service{upload: func(archive.RemoteID) error {
			if broken.Load() {
				return fault(apicall.OutcomeUnknown, "http-500")
			}
			return nil
		}})
		r.drop("V", 60) // speeds are learned
		r.pass(time.Hour)
		broken.Store(true)
		r.dropNamed("V", "late", 150)
		r.pass(6 * time.Hour)
		n := r.states()
		if doubt := n[ledger.Unclear] + n[ledger.Sending]; doubt > 90 {
			t.Errorf("%d documents in doubt after six hours: %v", doubt, n)
		}
		broken.Store(false)
		r.pass(2 * time.Hour)
		if n := r.states(); n[ledger.Archived]+n[ledger.Unclear] != 210 {
			t.Error(n)
		}
	})
}

// refusing is a packer that finds fault with every folder.
type refusing struct{ *folders }

func (refusing) Pack(context.Context, ledger.Entry) (Packed, error) {
	return Packed{}, &RefusedError{Cause: ledger.Cause{Code: "no-metadata"}}
}

// I25: a faulty folder in doubt gets no identity, so that the archive cannot speak for it, however long it is asked.
// A person must look; one that is not in doubt goes back to whoever dropped it.
func TestSeal_I25_AFaultyFolderInDoubtCallsAPerson(t *testing.T) {
	t.Parallel()
	for doubted, want := range map[bool]ledger.State{true: ledger.Quarantined, false: ledger.Rejected} {
		synctest.Test(t, func(t *testing.T) {
			r := build(t, &service{})
			d := r.drops["V"]
			d.Packer = refusing{d.Packer.(*folders)}
			r.drops["V"] = d
			evs := []ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: "f", Fingerprint: archive.Digest{1}, NotBefore: time.Now().Add(time.Second)}}
			if doubted {
				evs = append(evs, ledger.ReconcileRequired{})
			}
			if rs, err := r.ledger.Apply(t.Context(), ledger.Change{Key: archive.NewKey(time.Now()), At: r.s.now(), Events: evs}); err != nil || rs[0].Err != nil {
				t.Fatal(err, rs)
			}
			r.start()
			r.pass(time.Hour)
			if n := r.states(); n[want] != 1 {
				t.Errorf("in doubt %v: %v", doubted, n)
			}
		})
	}
}

// unknown is an answer that may be about one number, or about the path to all.
func unknown(o apicall.Outcome, code string) error {
	return &apicall.Error{Outcome: o, Code: code, Text: code, Status: 404}
}

// Numbers that the service does not know, more of them than faults in a row are suffered, keep nobody else from being
// heard, end with a person, and pause nothing.
func TestAsk_I23_ManyUnknownNumbers(t *testing.T) {
	t.Parallel()
	for name, forbidden := range map[string]bool{"WithList": false, "ListIsForbidden": true} {
		for _, how := range []error{unknown(apicall.NotProcessed, "http-400"), unknown(apicall.OutcomeUnknown, "http-502")} {
			t.Run(name+"/"+how.Error(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &service{status: func(id archive.RemoteID) error {
						if id <= "bum-16" { // 1 and 10 to 16
							return how
						}
						return nil
					}}
					if forbidden {
						s.list = func() error { return fault(apicall.NotProcessed, "http-403") }
					}
					r := run(t, s)
					r.drop("V", 50)
					r.pass(15 * time.Minute)
					if n := r.states(); n[ledger.Archived] != 42 || n[ledger.Uploaded] != 8 {
						t.Error(n)
					}
					if p := r.Pauses(); len(p) != 0 {
						t.Error(p)
					}
					r.pass(26 * time.Hour)
					if n := r.states(); n[ledger.Archived] != 42 || n[ledger.Unclear] != 8 {
						t.Error(n)
					}
					if posts, granted := s.counts(); granted != 50 {
						t.Errorf("%d calls, %d registrations", posts, granted)
					}
				})
			})
		}
	}
}

// Where nothing of a vault is answered, no document is blamed, be it one or many; what is answered again blames nobody
// either.
func TestAsk_I24_NobodyIsBlamedForAPathThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, documents := range []int{1, 2, 20} {
		for _, how := range []error{unknown(apicall.NotProcessed, "http-404"), unknown(apicall.OutcomeUnknown, "http-502")} {
			t.Run(fmt.Sprint(documents, how), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var broken atomic.Bool
					broken.Store(true)
					answer := func() error {
						if broken.Load() {
							return how
						}
						return nil
					}
					r := run(t, &service{status: func(archive.RemoteID) error { return answer() }, list: answer})
					r.drop("V", documents)
					r.pass(30 * time.Hour)
					if n := r.states(); n[ledger.Uploaded] != documents {
						t.Error(n)
					}
					if p := r.Pauses(); len(p) != 1 || p[0].Target.String() != "status of vault V" {
						t.Error(p)
					}
					broken.Store(false)
					r.pass(2 * time.Hour)
					if n := r.states(); n[ledger.Archived] != documents {
						t.Error(n)
					}
				})
			})
		}
	}
}

// A gateway that is away for the moment in which one question is asked makes nothing absent.
func TestAsk_I24_AFaultThatHasPassedBlamesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		s := &service{slow: true, status: func(archive.RemoteID) error {
			if away.Swap(false) {
				return unknown(apicall.OutcomeUnknown, "http-502")
			}
			return nil
		}}
		r := run(t, s)
		r.drop("V", 2)
		r.pass(25 * time.Hour) // from here on one word of absence is enough
		for range 20 {
			away.Store(true)
			r.pass(time.Hour)
		}
		if away.Load() {
			t.Error("vacuous: nothing was asked")
		}
		if n := r.states(); n[ledger.Uploaded] != 2 {
			t.Error(n)
		}
		if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
			if e.Failures > 0 {
				t.Errorf("%q was unclear %d times", e.Folder, e.Failures)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// forgetful leaves the first document out of each of its first answers.
type forgetful struct {
	*service
	left *atomic.Int32 // answers that it still shortens
}

func (s forgetful) Register(ctx context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	a, err := s.service.Register(ctx, v, frozen)
	if s.left.Add(-1) >= 0 {
		delete(a.Tickets, frozen[0].ID)
	}
	return a, err
}

// TestRegister_I9_LeftOutOfTheAnswer: the service took a POST, and its answer
// does not name the document. It may be registered, so the answer counts as
// lost.
func TestRegister_I9_LeftOutOfTheAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, left := &service{}, &atomic.Int32{}
		left.Store(2)
		r := build(t, s)
		route := r.cfg.Routes[ledger.Vault]
		route.Client = forgetful{s, left}
		r.cfg.Routes[ledger.Vault] = route
		r.start()
		r.drop("V", 1)
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), map[ledger.State]int{ledger.Archived: 1})
		kit.Must(t, r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
			kit.Want(t, "POSTs", e.Posts, 3)
			kit.Want(t, "POSTs without an answer", e.Posts-e.Answers, 2)
			return nil
		}))
	})
}
