package ingest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// I8: a document is given the upload address, or the number, of one that is on its way. Nothing of it is uploaded.
// What was not sent yet with the first one's ticket is not sent either; an upload that has begun ends as usual.
func TestTicketShared_I8_WithADocumentOnItsWay(t *testing.T) {
	t.Parallel()
	for _, what := range []string{ledger.TakenObject, ledger.TakenRemote} {
		for _, begun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/begun=%v", what, begun), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, release, sent := &service{}, make(chan struct{}), map[archive.RemoteID]int{}
					s.hangs = func(ctx context.Context, r archive.RemoteID) error {
						s.mu.Lock()
						sent[r]++
						s.mu.Unlock()
						select {
						case <-release:
							return nil
						case <-ctx.Done():
							return fault(apicall.OutcomeUnknown, "timeout")
						}
					}
					hangs := s.hangs
					s.hangs = nil
					r := run(t, s)
					r.dropNamed("V", "before", 20) // shows how quick the line is
					r.pass(10 * time.Minute)
					s.hangs = hangs
					r.drop("V", 12)
					r.pass(30 * time.Second)
					first := archive.RemoteID("")
					for n := 21; n <= 32; n++ {
						if id := numbered(n); (sent[id] > 0) == begun && r.byNumber(id).State == ledger.Sending {
							first = id
						}
					}
					if first == "" {
						t.Fatalf("vacuous: %v sent, %v", sent, r.states())
					}
					s.register = func(archive.RegisterRequest) (*archive.Ticket, error) {
						own := archive.Ticket{Remote: "second", URL: addressed(33), Sent: s.now()}
						if what == ledger.TakenRemote {
							own.Remote = first
							return &own, nil
						}
						var n int
						fmt.Sscanf(string(first), "bum-%d", &n)
						own.URL = addressed(n) + "?X-Amz-Signature=anew"
						return &own, nil
					}
					r.dropNamed("V", "second", 1)
					r.pass(30 * time.Second)
					s.register = nil
					close(release)
					r.pass(10 * time.Minute)

					owner := r.byNumber(first)
					stopped := owner.State == ledger.Quarantined && owner.Cause.Code == "ticket-shared" && len(owner.OpenQuestions()) == 0
					if stopped == begun || begun && owner.State != ledger.Archived || sent[first] > 0 != begun {
						t.Errorf("the first is %s, %+v, %d uploads", owner.State, owner.Cause, sent[first])
					}
					n := r.states()
					if want := map[bool]int{false: 2, true: 1}[begun]; n[ledger.Quarantined] != want || n[ledger.Archived] != 33-want || sent["second"] > 0 {
						t.Errorf("%v, %d uploads of the second", n, sent["second"])
					}
					if p := r.Pauses(); len(p) != 0 {
						t.Errorf("once: %v", p)
					}
				})
			})
		}
	}
}

// byNumber returns the entry whose last registration has a number.
func (r *running) byNumber(id archive.RemoteID) (found ledger.Entry) {
	r.t.Helper()
	err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if c := e.Current(); c != nil && c.Ticket.Remote == id {
			found = e
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// I8: a ticket that an entry got after the other one was heard of is its own.
func TestTicketShared_I8_ALaterTicketIsNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		defer r.ledger.Close()
		e := inState(ledger.Registered)
		e.Registrations[0].Ticket.Sent = r.s.now()
		if r.sharedTickets.has(e) {
			t.Error("nothing was heard")
		}
		time.Sleep(time.Second)
		r.sharedTickets.add(e.Key, r.s.now())
		if !r.sharedTickets.has(e) {
			t.Error("its ticket is older")
		}
		time.Sleep(time.Second)
		if e.Registrations[0].Ticket.Sent = r.s.now(); r.sharedTickets.has(e) {
			t.Error("its ticket is later")
		}
	})
}

// I8: an upload address that belongs elsewhere is a mix-up, and the document it was given to stops. Its cause does not
// hold the address.
func TestCollision_I8_AddressOfAnotherEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		defer r.ledger.Close()
		e := inState(ledger.Registering)
		for n := 1; n <= 2; n++ {
			change, ok := r.correctCollision([]ledger.Entry{e}, nil, ledger.Result{Key: e.Key, Err: &ledger.TakenError{What: ledger.TakenObject, By: archive.Key{2}}})
			crossed, is := change.Events[0].(ledger.AnswerMixedUp)
			if !ok || !is || crossed.Cause.Code != "address-taken" {
				t.Errorf("%v %+v", ok, change.Events)
			}
			if p := r.Pauses(); len(p) != n-1 {
				t.Errorf("after %d: %v", n, p)
			}
		}
	})
}
