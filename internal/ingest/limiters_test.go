package ingest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
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
				t.Fatalf("states after an hour = %v, want %d uploaded", r.states(), n)
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
	kit.Need(t, faults >= n/30, "%d faults, want at least %d: the test shows nothing", faults, n/30)
	t.Logf("%v without faults, %v with %d", calm, strained, faults)
	kit.Check(t, float64(calm) >= 0.9*float64(strained),
		"uploading took %v with faults and %v without, want at most a ninth more", strained, calm)
}

// A store that only says 503 opens its breaker after a few calls, and is tried again by single ones.
func TestStore_I24_Only503Rests(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		calls := 0
		var mu sync.Mutex
		r := run(t, &service{upload: func(archive.RemoteID) error {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "http-503", Text: "503", Status: 503}
		}})
		r.dropAndPass("V", 200, time.Hour)
		kit.Want(t, "paused targets", r.paused(), []string{"store of vault V"})
		if calls > 200 { // those in doubt are sent again until their window ends
			t.Errorf("%d calls in an hour to a store that takes nothing, want at most 200", calls)
		}
	})
}

// G13: the tickets of a batch run out together, while their uploads are under way. The
// documents are registered again together.
func TestRegister_G13_OneCallForAnExpiredBatch(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s := &service{slow: true}
		r := run(t, s)
		r.drop("V", 100) // speeds are learned
		r.pass(time.Minute)
		posts, _ := s.counts()
		var once sync.Once
		r.folders("V").finds = func() {
			once.Do(func() { s.suspend(20 * time.Minute) }) // no ticket outlives that
		}
		r.dropNamed("V", "late", 50)
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Uploaded: 150})
		now, _ := s.counts()
		kit.Want(t, "calls for the batch, and for its expired tickets", now-posts, 2)
	})
}

// I21: a PDF service wants few calls when they begin. It gets two at once until one
// went well and a second has passed, and again after a pause of more than 5 minutes.
func TestLimiters_I21_FewCallsAfterAPause(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		under, early, later := 0, 0, 0 // the most at once
		var first time.Time            // of a burst
		pdf := &service{hangs: func(context.Context, archive.RemoteID) error {
			mu.Lock()
			if under++; time.Since(first) < time.Second {
				early = max(early, under)
			} else {
				later = max(later, under)
			}
			mu.Unlock()
			time.Sleep(250 * time.Millisecond)
			mu.Lock()
			under--
			mu.Unlock()
			return nil
		}}
		r := buildPDF(t, pdf, "scans")
		r.changePDF(func(row *ingest.Route) { row.Workers = 8 })
		r.start()
		burst := func(name string, n int) {
			mu.Lock()
			first, early, later = time.Now().Add(time.Second), 0, 0 // a folder settles for a second
			mu.Unlock()
			r.dropPDFNamed("scans", name, n)
			for done := r.states()[ledger.Delivered]; r.states()[ledger.Delivered] < done+n; {
				r.pass(time.Second)
			}
		}
		burst("first", 80)
		kit.Check(t, early <= 2 && later >= 4,
			"the first burst: %d calls at once in its first second and %d later, want at most 2 and then at least 4", early, later)
		r.pass(4 * time.Minute)
		burst("after a short pause", 40)
		kit.Check(t, early >= 4, "after 4 minutes: %d calls at once in the first second, want at least 4", early)
		r.pass(6 * time.Minute)
		// All of these have their slots already: each upload may begin at the same moment.
		mu.Lock()
		first, early, later = time.Now(), 0, 0
		mu.Unlock()
		for range 40 {
			r.commitPDF("scans", ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: pdf.slot(r.s.now())})
		}
		r.Wake()
		r.pass(time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 160})
		kit.Check(t, early <= 2 && later >= 4,
			"after 6 minutes: %d calls at once in the first second and %d later, want at most 2 and then at least 4", early, later)
	})
}

// The name of a target that users read is the one that they may type.
func TestTarget_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	key := archive.NewKey(time.Unix(1, 0))
	for name, target := range map[string]ingest.Target{
		"vault V-1":                      ingest.RegisterTarget("V-1"),
		"store of vault V-1":             ingest.UploadTarget("V-1"),
		"status of vault V-1":            ingest.AskTarget("V-1"),
		"drop acme-in":                   ingest.DropTarget("acme-in"),
		"disposal of acme-in":            ingest.DisposalTarget("acme-in"),
		"_archived/2026 of drop acme-in": ingest.PlaceTarget("_archived/2026", "acme-in"),
		"folder " + key.String():         ingest.FolderTarget(key),
		"spool":                          ingest.SpoolTarget(),
	} {
		kit.Want(t, "name", target.String(), name)
		got, err := ingest.ParseTarget(name)
		kit.Want(t, fmt.Sprintf("ParseTarget(%q) failed", name), err, nil)
		kit.Want(t, "target of "+name, got, target)
	}
	for _, name := range []string{"", "vault ", "drop", "folder x", "everything", " of drop "} {
		kit.Fails(t, fmt.Sprintf("ParseTarget(%q)", name), kit.Err(ingest.ParseTarget(name)))
	}
}

// The queue of a target is the one that the ledger names.
func TestTarget_QueuesAreTheLedgers(t *testing.T) {
	t.Parallel()
	e := ledger.Entry{Key: archive.NewKey(time.Unix(1, 0)), Route: ledger.Vault, State: ledger.Discovered, Drop: "acme-in", Vault: "V-1"}
	kit.Want(t, "queue of a drop", ingest.DropTarget(e.Drop).Queue(), ledger.QueueOf(e))
	e.State = ledger.Packaged
	kit.Want(t, "queue of a vault", ingest.AskTarget(e.Vault).Queue(), ledger.QueueOf(e))
}

// I23: a stuck vault fills its own share of the spool. Its backlog is not
// packed, and another vault's folders are archived as usual.
func TestSeal_I23_AFullVaultHoldsUpNoOther(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{}, "FULL", "B")
		r.cfg.SpoolSpace = func(queue string) error {
			if queue == "vault FULL" {
				return ingest.ErrFull
			}
			return nil
		}
		r.start()
		r.dropAndPass("FULL", 3000, time.Minute)
		r.dropAndPass("B", 300, 5*time.Minute)
		kit.Want(t, "states of the other vault", r.statesOf("B"), states{ledger.Archived: 300})
		kit.Want(t, "states of the full vault", r.statesOf("FULL"), states{ledger.Discovered: 3000})
	})
}

// I23: packing the backlog of one drop takes most of an hour. A single folder of
// another drop is packed within minutes.
func TestSeal_I23_ABacklogDelaysNoOther(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{}, "BIG", "B")
		for _, drop := range []string{"BIG", "B"} {
			r.folders(drop).takes = time.Second
		}
		r.start()
		r.dropAndPass("BIG", 3000, time.Minute)
		r.drop("B", 1)
		r.pass(6 * time.Minute) // behind the entries of one search alone
		kit.Want(t, "folders of the other drop that wait", r.statesOf("B")[ledger.Discovered], 0)
		n := r.statesOf("BIG")[ledger.Discovered]
		kit.Check(t, n >= 1500, "%d folders of the backlog wait, want at least 1500: the test shows nothing", n)
	})
}

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
				r.dropAndPass("V", 12, 30*time.Second)
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

// I8: vaultd ends after a document was given the address, or the number, of one that
// waits for its upload. The next start does not use that ticket either.
func TestTicketShared_I8_OverARestart(t *testing.T) {
	t.Parallel()
	for _, what := range []string{ledger.TakenObject, ledger.TakenRemote} {
		kit.Bubble(t, what, func(t *testing.T) {
			r, h := buildHanging(t)
			r.dropAndPass("V", 12, 30*time.Second)
			var first ledger.Entry
			for _, e := range r.entries() {
				if c := e.Current(); e.State == ledger.Sending && h.sent[c.Ticket.Remote] == 0 {
					first = e
				}
			}
			kit.Need(t, first.State == ledger.Sending, "no document waits for its upload: states = %v", r.states())
			number := first.Current().Ticket.Remote
			r.shareNext(number, what)
			r.dropNamed("V", "second", 1)
			r.pass(30 * time.Second)
			r.stop()
			close(h.release)
			r.start()
			r.pass(10 * time.Minute)
			first, _, err := r.ledger.Entry(first.Key)
			kit.Must(t, err)
			kit.Want(t, "uploads with the shared ticket", h.sent[number], 0)
			kit.Want(t, "state of the first", first.State, ledger.Quarantined)
			kit.Want(t, "cause of the first", first.Cause.Code, "ticket-shared")
			kit.Want(t, "states", r.states(), states{ledger.Quarantined: 2, ledger.Archived: 31})
		})
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
