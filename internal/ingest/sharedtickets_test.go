package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I8: the service gives a document the upload address, or the number, of one that is
// on its way. Nothing of the new document is uploaded. What was not sent yet with the
// first one's ticket is not sent either; an upload that has begun ends as usual. The
// second time the vault stops.
func TestTicketShared_I8_WithADocumentOnItsWay(t *testing.T) {
	t.Parallel()
	for what, cause := range map[string]string{ledger.TakenObject: "address-taken", ledger.TakenRemote: "bumid-taken"} {
		for _, begun := range []bool{false, true} {
			kit.Bubble(t, fmt.Sprintf("%s/begun=%v", what, begun), func(t *testing.T) {
				r, h := buildHanging(t)
				r.drop("V", 12)
				r.pass(30 * time.Second)
				first := archive.RemoteID("")
				for n := 21; n <= 32; n++ {
					if id := numbered(n); (h.sent[id] > 0) == begun && r.byNumber(id).State == ledger.Sending {
						first = id
					}
				}
				if first == "" {
					t.Fatalf("no document is being sent, begun %t: %v were sent, states = %v", begun, h.sent, r.states())
				}
				r.shareNext(first, what)
				r.dropNamed("V", "second", 1)
				r.pass(30 * time.Second)
				close(h.release)
				r.pass(10 * time.Minute)

				owner, want := r.byNumber(first), states{ledger.Quarantined: 1, ledger.Archived: 32}
				if begun {
					kit.Want(t, "state of the first", owner.State, ledger.Archived)
				} else {
					want = states{ledger.Quarantined: 2, ledger.Archived: 31}
					kit.Want(t, "state of the first", owner.State, ledger.Quarantined)
					kit.Want(t, "cause of the first", owner.Cause.Code, "ticket-shared")
					kit.Want(t, "open questions about the first", len(owner.OpenQuestions()), 0)
				}
				kit.Want(t, "uploads of the first", h.sent[first] > 0, begun)
				kit.Want(t, "states", r.states(), want)
				kit.Want(t, "uploads of the second", h.sent["second"], 0)
				es := r.entries()
				c := es[len(es)-1].Cause
				kit.Check(t, c.Code == cause && !strings.Contains(c.Text, "store.example"), "cause of the second = %+v, want %s, without the address", c, cause)
				kit.Want(t, "paused targets after one mix-up", r.paused(), nil)

				r.shareNext(first, what)
				r.dropNamed("V", "third", 1)
				r.pass(time.Minute)
				kit.Want(t, "paused targets after the second", r.paused(), []string{"vault V"})
			})
		}
	}
}

// I8: a document is given the address of one whose upload is under way. The store then
// refuses that upload, because its ticket is over. The ticket that the first document
// gets after that is its own.
func TestTicketShared_I8_ALaterTicketIsNot(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r, h := buildHanging(t)
		r.dropNamed("V", "first", 1)
		r.pass(30 * time.Second)
		first := numbered(21)
		kit.Want(t, "uploads of the first", h.sent[first], 1)
		r.shareNext(first, ledger.TakenObject)
		r.dropNamed("V", "second", 1)
		r.pass(30 * time.Second)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 20, ledger.Sending: 1, ledger.Quarantined: 1})
		r.s.upload = func(id archive.RemoteID) error {
			if id == first {
				return expired
			}
			return nil
		}
		close(h.release)
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 21, ledger.Quarantined: 1})
	})
}

// hanging counts the uploads of a service that end only when release is closed.
type hanging struct {
	release chan struct{}
	sent    map[archive.RemoteID]int
}

// buildHanging makes an engine that has archived 20 documents and knows how quick the
// line is. Each upload after that hangs.
func buildHanging(t *testing.T) (*running, *hanging) {
	t.Helper()
	s, h := &service{}, &hanging{release: make(chan struct{}), sent: map[archive.RemoteID]int{}}
	r := run(t, s)
	r.dropNamed("V", "before", 20)
	r.pass(10 * time.Minute)
	s.hangs = func(ctx context.Context, id archive.RemoteID) error {
		s.mu.Lock()
		h.sent[id]++
		s.mu.Unlock()
		select {
		case <-h.release:
			return nil
		case <-ctx.Done():
			return fault(apicall.OutcomeUnknown, "timeout")
		}
	}
	return r, h
}

// shareNext lets the service give the next document the number of another one, or its
// address under a new signature.
func (r *running) shareNext(with archive.RemoteID, what string) {
	r.t.Helper()
	own := &archive.Ticket{Remote: "second", URL: addressed(33), Sent: r.s.now()}
	if what == ledger.TakenRemote {
		own.Remote = with
	} else {
		var n int
		kit.Value(fmt.Sscanf(string(with), "bum-%d", &n))(r.t)
		own.URL = addressed(n) + "?X-Amz-Signature=anew"
	}
	r.s.register = func(archive.RegisterRequest) (*archive.Ticket, error) { // its caller holds mu
		r.s.register, own.Sent = nil, r.s.now()
		return own, nil
	}
}

// byNumber returns the entry whose last registration has a number.
func (r *running) byNumber(id archive.RemoteID) (found ledger.Entry) {
	r.t.Helper()
	for _, e := range r.entries() {
		if c := e.Current(); c != nil && c.Ticket.Remote == id {
			found = e
		}
	}
	return found
}
