package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// buildPDF makes an engine with a vault and a PDF service, and a drop of single files for each name.
func buildPDF(t *testing.T, pdf *service, drops ...string) *running {
	t.Helper()
	r := build(t, &service{})
	pdf.makeMaps()
	pdf.crosses, pdf.serial = "none", 500_000 // its numbers are not the vault's
	r.cfg.Routes[ledger.PDF] = ingest.Route{Client: pdf, Workers: 2, BatchSize: 1}
	for _, name := range drops {
		r.cfg.Drops = append(r.cfg.Drops, newDrop(name, ingest.Drop{Route: ledger.PDF}))
	}
	return r
}

// dropPDF claims n single files in a drop.
func (r *running) dropPDF(drop string, n int) { r.dropPDFNamed(drop, drop, n) }

func (r *running) dropPDFNamed(drop, name string, n int) {
	for i := range n {
		r.EnterClaimed(archive.NewKey(time.Now()), ledger.ClaimedFolder{Route: ledger.PDF, Drop: drop, Folder: fmt.Sprintf("%s %d.pdf", name, i),
			Fingerprint: archive.Digest{1}, NotBefore: r.s.now().Wall.Add(time.Second)})
	}
}

// commitPDF commits a packed PDF of a drop, and then the events.
func (r *running) commitPDF(drop string, more ...ledger.Event) {
	r.t.Helper()
	e := ledger.Entry{Key: archive.NewKey(time.Now())}
	e.Folder = e.Key.String() + ".pdf"
	p := kit.Value(r.folders(drop).Pack(r.t.Context(), e))(r.t)
	evs := []ledger.Event{ledger.ClaimedFolder{Route: ledger.PDF, Drop: drop, Folder: e.Folder, Fingerprint: archive.Digest{1}}, p.Sealed}
	r.apply(ledger.Change{Key: e.Key, Document: &p.Document, Events: append(evs, more...)})
}

// slot gives out the next slot of a PDF service.
func (s *service) slot(sent archive.Instant) archive.Ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return archive.Ticket{Remote: numbered(s.serial), URL: addressed(s.serial), Sent: sent, Validity: time.Hour}
}

// changePDF changes the row of the PDF route in the configuration.
func (r *running) changePDF(change func(*ingest.Route)) {
	row := r.cfg.Routes[ledger.PDF]
	change(&row)
	r.cfg.Routes[ledger.PDF] = row
}

// I12: the store's answer alone makes a PDF delivered.
func TestPDF_I12_DeliveredByTheStoresAnswer(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		pdf := &service{}
		r := buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 40)
		r.dropAndPass("V", 40, time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 40, ledger.Archived: 40})
		posts, granted := pdf.counts()
		kit.Want(t, "POSTs, slots, uploads and questions", [4]int{posts, granted, len(pdf.uploaded), len(pdf.asked)}, [4]int{40, 40, 40, 0})
		for _, e := range r.entries() {
			if e.Route != ledger.PDF {
				continue
			}
			if last := e.Current(); last.Fate != ledger.Succeeded || last.Sent != e.Package.SHA256 || e.UploadedAt.IsZero() || !e.ArchivedAt.IsZero() || e.PossibleDouble || e.Source != ledger.Kept {
				t.Errorf("entry = %+v, want the digest of its package as sent, an upload time, no archive time, no doubt, a kept source", e)
			}
		}
	})
}

// I2: the store did not answer an upload, and may have started a flow at the service.
// Nothing is sent again without a decision. A release sends it again, flagged
// permanently.
func TestPDF_I2_UnansweredUploadWaitsForADecision(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var answers atomic.Bool
		pdf := &service{upload: func(archive.RemoteID) error {
			if answers.Load() {
				return nil
			}
			return fault(apicall.OutcomeUnknown, "timeout")
		}}
		r := buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 1)
		r.pass(40 * 24 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Quarantined: 1})
		posts, _ := pdf.counts()
		kit.Want(t, "POSTs", posts, 1)
		e := r.entries()[0]
		kit.Want(t, "cause", e.Cause.Code, ledger.CauseDeliveryUnknown)
		answers.Store(true)
		r.apply(ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ledger.Released{By: ledger.Operator{UID: 7}}}})
		r.Wake()
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 1})
		e = r.entries()[0]
		kit.Check(t, e.PossibleDouble && e.Source == ledger.Kept, "possible double = %t, source = %v, want true, %v", e.PossibleDouble, e.Source, ledger.Kept)
	})
}

// I2: the outcome of the last uploads to the store is unknown. It is tried ever more
// rarely, with one document. An operator or a success ends that. A definite refusal
// differs, and every document survives.
func TestPDF_I2_StoreInDoubt(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var outcome atomic.Pointer[error]
		says := func(err error) { outcome.Store(&err) }
		r := buildPDF(t, &service{upload: func(archive.RemoteID) error { return *outcome.Load() }}, "scans")
		// One worker, so that no second upload is under way when the outage begins: that one would end in doubt too.
		r.changePDF(func(row *ingest.Route) { row.Workers = 1 })
		want := func(when string, inDoubt int, needsPerson bool) {
			t.Helper()
			kit.Want(t, when+": documents in doubt", r.states()[ledger.Quarantined], inDoubt)
			kit.Want(t, when+": paused target", r.onlyPause().Target, ingest.PDFStoreTarget())
			kit.Want(t, when+": the pause needs an operator", r.onlyPause().NeedsPerson(), needsPerson)
		}
		says(fault(apicall.OutcomeUnknown, "timeout"))
		began := time.Now()
		r.start()
		r.dropPDF("scans", 40)
		for _, at := range []struct {
			after       time.Duration
			inDoubt     int
			needsPerson bool
		}{{4 * time.Minute, 1, false}, {6 * time.Minute, 2, false}, {20 * time.Minute, 3, true}, {2 * time.Hour, 3, true}, {3 * time.Hour, 4, true}, {8 * time.Hour, 5, true}} {
			r.pass(at.after - time.Since(began))
			want(fmt.Sprintf("after %v", at.after), at.inDoubt, at.needsPerson)
		}
		// A probe that is refused leaves its document as it was, and does not end the row of doubts.
		says(fault(apicall.NotSent, "no-connection"))
		r.pass(24 * time.Hour)
		want("after refused probes", 5, false)
		says(fault(apicall.OutcomeUnknown, "timeout"))
		r.pass(time.Hour)
		want("after another probe in doubt", 6, true)
		says(nil)
		may := r.MayResumeUploads(ingest.PDFStoreTarget())
		kit.Want(t, "an operator may resume, resumes, may again", [3]bool{may, r.ResumeUploads(ingest.PDFStoreTarget()), r.MayResumeUploads(ingest.PDFStoreTarget())}, [3]bool{true, true, false})
		r.pass(10 * time.Minute)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 34, ledger.Quarantined: 6})
		// A success ended the row of doubts.
		says(fault(apicall.OutcomeUnknown, "timeout"))
		r.dropPDFNamed("scans", "last", 1)
		r.pass(4 * time.Minute)
		want("after the first doubt since a success", 7, false)
	})
}

// I2: vaultd ended during an upload, and cannot tell whether the store has it. The
// document waits for a decision, or is sent again where the configuration allows it.
func TestPDF_I2_RestartDuringAnUpload(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		repeats bool
		want    ledger.State
		uploads int
	}{"WaitsForADecision": {false, ledger.Quarantined, 0}, "SendsAgainWhereAllowed": {true, ledger.Delivered, 1}} {
		kit.Bubble(t, name, func(t *testing.T) {
			pdf := &service{}
			r := buildPDF(t, pdf, "scans")
			r.changePDF(func(route *ingest.Route) { route.RepeatsUpload = row.repeats })
			r.commitPDF("scans", ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: pdf.slot(r.s.now())}, ledger.UploadIntended{})
			r.start()
			r.pass(time.Minute)
			kit.Want(t, "states", r.states(), states{row.want: 1})
			kit.Want(t, "uploads", len(pdf.uploaded), row.uploads)
			e := r.entries()[0]
			kit.Want(t, "flagged as possibly sent twice", e.PossibleDouble, row.repeats)
			if !row.repeats {
				kit.Want(t, "cause", e.Cause.Code, ledger.CauseDeliveryUnknown)
			}
		})
	}
}

// hangsFor is an upload that takes that long, or until it is cut off.
func hangsFor(d time.Duration) func(context.Context, archive.RemoteID) error {
	return func(ctx context.Context, _ archive.RemoteID) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return fault(apicall.OutcomeUnknown, "cancelled")
		}
	}
}

// I2: a stop waits for an upload whose outcome no one can be asked about, longer than
// for others, and for 45 seconds at most.
func TestPDF_I2_StopWaitsForAnUpload(t *testing.T) {
	t.Parallel()
	const grace = 45 * time.Second
	for put, want := range map[time.Duration]ledger.State{30 * time.Second: ledger.Delivered, 10 * time.Minute: ledger.Quarantined} {
		synctest.Test(t, func(t *testing.T) {
			pdf := &service{hangs: hangsFor(put)}
			r := buildPDF(t, pdf, "scans")
			r.start()
			r.dropPDF("scans", 1)
			r.pass(5 * time.Second)
			kit.Want(t, "states", r.states(), states{ledger.Sending: 1})
			r.drop("V", 1) // it is claimed, and not worked on during the stop
			began := time.Now()
			r.stop()
			if took := time.Since(began); took > grace+time.Second || took < min(put, grace)-10*time.Second {
				t.Errorf("an upload of %v: the stop took %v, want the rest of the upload, at most %v", put, took, grace)
			}
			pdf.hangs = nil
			r.start()
			r.pass(time.Hour)
			kit.Want(t, fmt.Sprintf("states after an upload of %v", put), r.states(), states{want: 1, ledger.Archived: 1})
		})
	}
}

// I2: a reload waits for such an upload while all other work continues. It begins no
// other such upload meanwhile, and waits for DrainLimit at most.
func TestPDF_I2_ReloadWaitsForUploads(t *testing.T) {
	t.Parallel()
	for put, most := range map[time.Duration]time.Duration{30 * time.Second: 31 * time.Second, time.Hour: ingest.DrainLimit} {
		synctest.Test(t, func(t *testing.T) {
			pdf := &service{hangs: hangsFor(put)}
			r := buildPDF(t, pdf, "scans")
			r.start()
			r.dropPDF("scans", 9)
			r.pass(5 * time.Second)
			r.drop("V", 5)
			began := time.Now()
			r.DrainUploads(t.Context())
			if took := time.Since(began); took > most || took < min(put, ingest.DrainLimit)-10*time.Second {
				t.Errorf("uploads of %v: the reload waited %v, want the rest of the upload, at most %v", put, took, most)
			}
			n := r.states()
			kit.Want(t, fmt.Sprintf("uploads of %v: documents that wait", put), n[ledger.Registered]+n[ledger.Packaged]+n[ledger.Registering], 7)
			kit.Want(t, fmt.Sprintf("uploads of %v: documents of the vault that were sent", put), n[ledger.Uploaded]+n[ledger.Archived], 5)
			r.stop()
			pdf.hangs = nil
			r.start()
			r.pass(time.Hour)
			n = r.states()
			if least := map[bool]int{true: 9, false: 7}[put < ingest.DrainLimit]; n[ledger.Delivered] < least || n[ledger.Archived] != 5 {
				t.Errorf("uploads of %v: states = %v, want at least %d delivered and 5 archived", put, n, least)
			}
		})
	}
}

// I2: no more uploads are announced than there are slots. A crash leaves no more
// documents in doubt.
func TestPDF_I2_FewUploadsAreAnnounced(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		sent, most := 0, 0
		var r *running
		pdf := &service{hangs: func(context.Context, archive.RemoteID) error {
			mu.Lock()
			defer mu.Unlock()
			if sent++; sent > 100 { // how long an upload takes is known by now
				most = max(most, r.states()[ledger.Sending])
			}
			return nil
		}}
		r = buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 250)
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 250})
		kit.Check(t, most >= 1 && most <= 3, "at most %d uploads were announced at once, want 1 to 3", most)
	})
}

// I24: a registration holds only configured addresses, so its refusal stops that drop,
// rejects nothing, and stops no other drop. Once the configuration is corrected, the
// files that wait are packed again for the new address.
func TestPDF_I24_RefusedAddressIsTheConfigurations(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		request := func(to string) []byte { return fmt.Appendf(nil, `{"receivingEmailAddress":%q}`, to) }
		var mu sync.Mutex
		said := map[string]int{}
		pdf := &service{register: func(f archive.RegisterRequest) (*archive.Ticket, error) {
			mu.Lock()
			defer mu.Unlock()
			said[string(f.Metadata)]++
			if bytes.Contains(f.Metadata, []byte("typo")) {
				return nil, &apicall.Error{Outcome: apicall.Refused, Code: "http-422", Text: `the service refuses receivingEmailAddress (request 7c1f)`}
			}
			return nil, nil
		}}
		r := buildPDF(t, pdf, "wrong", "right")
		sendTo := func(drop, to string) {
			d := r.configured(drop)
			d.Request, d.Packer = request(to), &requesting{folders: r.folders(drop), request: request(to)}
		}
		sendTo("wrong", "typo@in.example")
		sendTo("right", "ap@in.example")
		r.start()
		r.dropPDF("wrong", 12)
		r.dropPDF("right", 12)
		r.pass(6 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 12, ledger.Packaged: 12})
		if p := r.onlyPause(); p.Target != ingest.PDFTarget("wrong") || !p.NeedsPerson() || !strings.Contains(present.AdviseOnPause(p), `correct drops[1].receiving of the drop "wrong", then reload`) {
			t.Errorf("pause = %+v, want one of the drop wrong, with advice on drops[1].receiving", p)
		}
		if n := said[string(request("typo@in.example"))]; n > 250 { // after a while every two and a half minutes
			t.Errorf("%d calls in six hours with the wrong address, want at most 250", n)
		}
		r.stop()
		sendTo("wrong", "books@in.example")
		r.start()
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 24})
		kit.Want(t, "calls with the corrected address", said[string(request("books@in.example"))], 12)
	})
}

// requesting packs for an address, as the packer of a PDF drop does: the identity and the request rest on it.
type requesting struct {
	*folders
	request []byte
}

func (q *requesting) Pack(ctx context.Context, e ledger.Entry) (ingest.Packed, error) {
	packed, err := q.folders.Pack(ctx, e)
	packed.Document.Metadata, packed.Sealed.Metadata = q.request, archive.Sum(q.request)
	packed.Sealed.ID = archive.DeriveID("", packed.Sealed.Content, packed.Sealed.Metadata)
	return packed, err
}

// I24: the store certainly takes nothing. No document is in doubt, the store is
// paused, and the vault continues.
func TestPDF_I24_StoreThatRefuses(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		var refuse atomic.Bool
		refuse.Store(true)
		pdf := &service{upload: func(archive.RemoteID) error {
			if refuse.Load() {
				return fault(apicall.Refused, "http-400")
			}
			return nil
		}}
		r := buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 20)
		r.dropAndPass("V", 20, 10*time.Minute)
		n := r.states()
		kit.Want(t, "PDFs that wait", n[ledger.Packaged]+n[ledger.Registered], 20)
		kit.Want(t, "documents of the vault that are archived", n[ledger.Archived], 20)
		if p := r.onlyPause(); p.Target != ingest.PDFStoreTarget() || p.NeedsPerson() || strings.Contains(present.AdviseOnPause(p), "receiving") {
			t.Errorf("pause = %+v, want one of the PDF store that needs no operator, without advice on an address", p)
		}
		refuse.Store(false)
		r.pass(2 * time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 20, ledger.Archived: 20})
	})
}

// I8: the second mix-up stops the service of all its drops, and no vault.
func TestPDF_I8_MixedUpTwice(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		pdf := &service{}
		pdf.register = func(archive.RegisterRequest) (*archive.Ticket, error) {
			return &archive.Ticket{Remote: "one", URL: "https://store.example/one", Sent: pdf.now(), Validity: time.Hour}, nil
		}
		r := buildPDF(t, pdf, "scans", "post")
		r.start()
		r.dropPDF("scans", 3)
		r.pass(time.Minute)
		r.dropPDF("post", 3)
		r.dropAndPass("V", 3, 2*24*time.Hour)
		n := r.states()
		kit.Check(t, n[ledger.Delivered] <= 1 && n[ledger.Quarantined] >= 2 && n[ledger.Archived] == 3,
			"states = %v, want at most 1 delivered, at least 2 quarantined, 3 archived", n)
		posts, _ := pdf.counts()
		kit.Check(t, posts <= 4, "%d POSTs to a service that mixes documents up, want at most 4", posts)
	})
}

// I24: the route is removed from the configuration. Its documents wait as they are,
// and the vault continues.
func TestPDF_I24_RouteLeftOut(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		pdf := &service{register: func(archive.RegisterRequest) (*archive.Ticket, error) {
			return nil, fault(apicall.NotProcessed, "http-403")
		}}
		r := buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 3)
		r.pass(time.Minute)
		r.stop()
		delete(r.cfg.Routes, ledger.PDF)
		r.cfg.Drops = slices.DeleteFunc(r.cfg.Drops, func(d ingest.Drop) bool { return d.Route == ledger.PDF })
		r.start()
		r.dropAndPass("V", 3, 24*time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Packaged: 3, ledger.Archived: 3})
	})
}

// A file that was sent before is a duplicate, or is sent again where the drop is
// configured so.
func TestPDF_SendsAgainWhereAsked(t *testing.T) {
	t.Parallel()
	for sendsAgain, want := range map[bool]states{false: {ledger.Delivered: 1, ledger.Duplicate: 3}, true: {ledger.Delivered: 4}} {
		synctest.Test(t, func(t *testing.T) {
			r := buildPDF(t, &service{}, "scans")
			r.configured("scans").SendsAgain = sendsAgain
			r.start()
			for range 4 {
				r.dropPDF("scans", 1)
				r.pass(time.Minute)
			}
			kit.Want(t, fmt.Sprintf("states where it is sent again: %t", sendsAgain), r.states(), want)
		})
	}
}
