package ingest_test

import (
	"context"
	"fmt"
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

// Folders that are dropped without a fault are archived.
func TestAllGoesWell(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{})
		r.dropAndPass("V", 100, time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 100})
	})
}

// I23: the service fails whenever it is asked about one number. The other documents
// are asked about all the same.
func TestAsk_I23_OneQuestionThatAlwaysFails(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{status: func(id archive.RemoteID) error {
			if id == "bum-3" {
				return fault(apicall.OutcomeUnknown, "http-500")
			}
			return nil
		}})
		r.dropAndPass("V", 50, 15*time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 49, ledger.Uploaded: 1})
		r.dropNamed("V", "later", 50)
		r.pass(30 * time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 99, ledger.Uploaded: 1})
	})
}

// The service refuses to give the status list. Each document is asked about alone.
func TestAsk_ListIsForbidden(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{list: func() error { return fault(apicall.NotProcessed, "http-403") }})
		r.dropAndPass("V", 50, 15*time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 50})
		kit.Want(t, "paused targets", r.paused(), nil)
	})
}

// I9: no ticket may be used by the policy. vaultd asks for few.
func TestRegister_I9_TicketsAgainstPolicy(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{barred: "host store.example refused: it is not in allowed_hosts"}
		r := run(t, s)
		r.dropAndPass("V", 20, 24*time.Hour)
		_, granted := s.counts()
		kit.Check(t, granted <= 20+24*60, "%d registrations in a day of which none can be used, want at most %d", granted, 20+24*60)
		kit.Want(t, "paused targets", r.paused(), []string{"vault V"})
	})
}

// I9: each ticket is over when it arrives. vaultd asks for few.
func TestRegister_I9_TicketsThatAreOver(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{}
		serial := 0
		s.register = func(archive.RegisterRequest) (*archive.Ticket, error) {
			serial++
			return &archive.Ticket{Remote: archive.RemoteID(fmt.Sprintf("old-%d", serial)), URL: addressed(1_000_000 + serial), Sent: s.now(),
				Date: time.Now(), SignedAt: time.Now().Add(-time.Hour), Validity: 15 * time.Minute}, nil
		}
		r := run(t, s)
		r.dropAndPass("V", 200, 24*time.Hour)
		kit.Check(t, serial <= 200+24*60,
			"%d registrations in a day of which none can be used, want at most %d", serial, 200+24*60)
		kit.Want(t, "paused targets", r.paused(), []string{"vault V"})
	})
}

// I24: the service refuses every document. vaultd does not have all of them refused.
func TestRegister_I24_EverythingIsRefused(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{register: func(archive.RegisterRequest) (*archive.Ticket, error) { return nil, fault(apicall.Refused, "http-400") }})
		r.dropAndPass("V", 500, time.Hour)
		if n := r.states()[ledger.Rejected]; n < 3 || n > 80 { // the waits have a random part: some 20 to 45 are usual
			t.Errorf("%d rejected in an hour, want 3 to 80", n)
		}
	})
}

// I24: a refusal that the archive explains is told to whoever dropped the
// invoice in those words, and the technical part stands behind them.
func TestRegister_I24_RefusalInWords(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{register: func(archive.RegisterRequest) (*archive.Ticket, error) {
			return nil, &apicall.Error{Outcome: apicall.Refused, Code: "field-not-accepted", Text: "register: 400", Message: "amount: no number", Plain: &apicall.Plain{Head: "NOT ARCHIVED", Says: "It does not take a field", Do: "Mend it"}}
		}})
		r.dropAndPass("V", 1, time.Hour)
		for _, e := range r.entries() {
			kit.Want(t, "the cause", e.Cause, ledger.Cause{Code: "field-not-accepted", Text: "NOT ARCHIVED. It does not take a field. Mend it, then move this whole folder back.\nIn its own words: amount: no number\nFor IT: register: 400"})
		}
		kit.Want(t, "rejected", r.states()[ledger.Rejected], 1)
	})
}

// The service forbids registrations and still answers questions. The answers do not
// end the pause of the registrations.
func TestRegister_ForbiddenWhileAskingIsNot(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var closed atomic.Bool
		s := &service{slow: true, register: func(archive.RegisterRequest) (*archive.Ticket, error) {
			if closed.Load() {
				return nil, fault(apicall.NotProcessed, "http-403")
			}
			return nil, nil
		}}
		r := run(t, s)
		r.dropAndPass("V", 300, time.Minute)
		closed.Store(true)
		before, _ := s.counts()
		r.dropNamed("V", "late", 100)
		r.pass(time.Hour)
		posts, _ := s.counts()
		kit.Check(t, posts-before <= 40, "%d refused registrations in an hour, want at most 40", posts-before)
	})
}

// I9: the store is unreachable for hours. vaultd asks for few tickets meanwhile.
func TestStore_I9_AwayForHours(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
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
		_, granted := s.counts()
		kit.Check(t, granted-before <= 150+6*60, "%d registrations in six hours without a store, want at most %d", granted-before, 150+6*60)
		away.Store(false)
		r.pass(2 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 210})
	})
}

// The store begins to fail every upload. Few documents are in doubt.
func TestStore_FailsEveryUpload(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
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
		doubt := n[ledger.Unclear] + n[ledger.Sending]
		kit.Check(t, doubt <= 90, "%d documents in doubt after six hours, want at most 90: %v", doubt, n)
		broken.Store(false)
		r.pass(2 * time.Hour)
		n = r.states()
		kit.Want(t, "documents that are archived or unclear", n[ledger.Archived]+n[ledger.Unclear], 210)
	})
}

// refusing is a packer that finds fault with every folder.
type refusing struct{ *folders }

func (refusing) Pack(context.Context, ledger.Entry) (ingest.Packed, error) {
	return ingest.Packed{}, &ingest.RefusedError{Cause: ledger.Cause{Code: "no-metadata"}}
}

// I25: a folder of an entry in doubt is faulty. The entry has no identity by which the
// archive could be asked, so it waits for a decision. An entry that is not in doubt is
// rejected.
func TestSeal_I25_AFaultyFolderInDoubtNeedsADecision(t *testing.T) {
	t.Parallel()
	for inDoubt, want := range map[bool]ledger.State{true: ledger.Quarantined, false: ledger.Rejected} {
		synctest.Test(t, func(t *testing.T) {
			r := build(t, &service{})
			r.configured("V").Packer = refusing{r.folders("V")}
			evs := []ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: "f", Fingerprint: archive.Digest{1}, NotBefore: time.Now().Add(time.Second)}}
			if inDoubt {
				evs = append(evs, ledger.ReconcileRequired{})
			}
			r.apply(ledger.Change{Key: archive.NewKey(time.Now()), Events: evs})
			r.start()
			r.pass(time.Hour)
			kit.Want(t, fmt.Sprintf("states where the entry is in doubt: %t", inDoubt), r.states(), states{want: 1})
		})
	}
}

// unknown is an answer that may be about one number, or about the path to all.
func unknown(o apicall.Outcome, code string) error {
	return &apicall.Error{Outcome: o, Code: code, Text: code, Status: 404}
}

// I23: the service does not know eight numbers, more than the faults in a row that open
// a breaker. The other documents are asked about, the eight need a decision after the
// grace, and nothing is paused.
func TestAsk_I23_ManyUnknownNumbers(t *testing.T) {
	t.Parallel()
	for name, forbidden := range map[string]bool{"WithList": false, "ListIsForbidden": true} {
		for _, how := range []error{unknown(apicall.NotProcessed, "http-400"), unknown(apicall.OutcomeUnknown, "http-502")} {
			kit.Bubble(t, name+"/"+how.Error(), func(t *testing.T) {
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
				r.dropAndPass("V", 50, 15*time.Minute)
				kit.Want(t, "states", r.states(), states{ledger.Archived: 42, ledger.Uploaded: 8})
				kit.Want(t, "paused targets", r.paused(), nil)
				r.pass(26 * time.Hour)
				kit.Want(t, "states", r.states(), states{ledger.Archived: 42, ledger.Unclear: 8})
				_, granted := s.counts()
				kit.Want(t, "registrations", granted, 50)
			})
		}
	}
}

// I24: the path to a whole vault is wrong, for a day and more. No document is blamed
// for that, one or many, also after the path is right again.
func TestAsk_I24_NobodyIsBlamedForAPathThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, documents := range []int{1, 2, 20} {
		for _, how := range []error{unknown(apicall.NotProcessed, "http-404"), unknown(apicall.OutcomeUnknown, "http-502")} {
			kit.Bubble(t, fmt.Sprint(documents, how), func(t *testing.T) {
				var broken atomic.Bool
				broken.Store(true)
				answer := func() error {
					if broken.Load() {
						return how
					}
					return nil
				}
				r := run(t, &service{status: func(archive.RemoteID) error { return answer() }, list: answer})
				r.dropAndPass("V", documents, 30*time.Hour)
				kit.Want(t, "states", r.states(), states{ledger.Uploaded: documents})
				kit.Want(t, "paused targets", r.paused(), []string{"status of vault V"})
				broken.Store(false)
				r.pass(2 * time.Hour)
				kit.Want(t, "states", r.states(), states{ledger.Archived: documents})
			})
		}
	}
}

// I24: a gateway fails for the moment in which one question is asked. No document
// counts as absent.
func TestAsk_I24_AFaultThatHasPassedBlamesNobody(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var away atomic.Bool
		s := &service{slow: true, status: func(archive.RemoteID) error {
			if away.Swap(false) {
				return unknown(apicall.OutcomeUnknown, "http-502")
			}
			return nil
		}}
		r := run(t, s)
		r.drop("V", 2)
		r.pass(25 * time.Hour) // from here on one answer that it is absent is enough
		for range 20 {
			away.Store(true)
			r.pass(time.Hour)
		}
		kit.Want(t, "the last fault was not met: nothing was asked", away.Load(), false)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 2})
		for _, e := range r.entries() {
			kit.Want(t, "times that "+e.Folder+" was unclear", e.Failures, 0)
		}
	})
}

// shortening leaves the first document out of each of its first answers.
type shortening struct {
	*service
	left atomic.Int32 // answers that it still shortens
}

func (s *shortening) Register(ctx context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	a, err := s.service.Register(ctx, v, frozen)
	if s.left.Add(-1) >= 0 {
		delete(a.Tickets, frozen[0].ID)
	}
	return a, err
}

// I9: the service took a POST, and its answer does not name the document. It may be
// registered, so the answer counts as lost.
func TestRegister_I9_LeftOutOfTheAnswer(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &shortening{service: &service{}}
		s.left.Store(2)
		r := build(t, s.service)
		route := r.cfg.Routes[ledger.Vault]
		route.Client = s
		r.cfg.Routes[ledger.Vault] = route
		r.start()
		r.dropAndPass("V", 1, time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 1})
		e := r.entries()[0]
		kit.Want(t, "POSTs", e.Posts, 3)
		kit.Want(t, "POSTs without an answer", e.Posts-e.Answers, 2)
	})
}
