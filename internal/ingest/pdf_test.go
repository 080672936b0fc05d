package ingest

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
	"vaultd/internal/ledger"
)

// buildPDF makes an engine with a vault and a PDF service, and a drop of single files for each name.
func buildPDF(t *testing.T, pdf *service, drops ...string) *running {
	t.Helper()
	r := build(t, &service{})
	pdf.vault = map[archive.RemoteID]archive.VaultID{}
	pdf.names, pdf.uploaded, pdf.asked = map[archive.RemoteID]archive.ID{}, map[archive.RemoteID]time.Time{}, map[archive.RemoteID]int{}
	pdf.crosses, pdf.serial = "none", 500_000 // its numbers are not the vault's
	cfg := r.cfg
	cfg.Routes[ledger.PDF] = Route{Client: pdf, Workers: 2, BatchSize: 1, RefusalPauses: true}
	for _, name := range drops {
		f := &folders{sealed: map[archive.Key]archive.Package{}}
		cfg.Drops = append(cfg.Drops, Drop{Name: name, Route: ledger.PDF, Settle: time.Second, Packer: f, Mover: f, Unavailable: func() error { return nil }})
	}
	return &running{Engine: New(cfg), t: t, ledger: r.ledger, s: r.s}
}

// dropPDF claims n single files in a drop.
func (r *running) dropPDF(drop string, n int) {
	for i := range n {
		r.EnterClaimed(archive.NewKey(time.Now()), ledger.ClaimedFolder{Route: ledger.PDF, Drop: drop, Folder: fmt.Sprintf("%s %d.pdf", drop, i),
			Fingerprint: archive.Digest{1}, NotBefore: time.Now().Add(time.Second)})
	}
}

// restartPDF returns an engine that goes on with the ledger of r, with one row and its drops changed.
func (r *running) restartPDF(change func(*Route, []Drop)) *running {
	cfg := r.cfg
	row := cfg.Routes[ledger.PDF]
	cfg.Drops = slices.Clone(cfg.Drops)
	change(&row, cfg.Drops)
	cfg.Routes = map[ledger.Route]Route{ledger.Vault: cfg.Routes[ledger.Vault], ledger.PDF: row}
	return &running{Engine: New(cfg), t: r.t, ledger: r.ledger, s: r.s}
}

// startUntilStopped is start for an engine that another one follows.
func (r *running) startUntilStopped() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	}
}

// entriesIn returns all entries of a state.
func (r *running) entriesIn(s ledger.State) (all []ledger.Entry) {
	r.t.Helper()
	if err := r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.State == s {
			all = append(all, e)
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return all
}

func TestPDF_I12_DeliveredByTheStoresAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pdf := &service{}
		r := buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 40)
		r.drop("V", 40)
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Delivered] != 40 || n[ledger.Archived] != 40 {
			t.Fatal(n)
		}
		if posts, granted := pdf.counts(); posts != 40 || granted != 40 || len(pdf.uploaded) != 40 || len(pdf.asked) != 0 {
			t.Errorf("%d POSTs, %d slots, %d uploads, %d questions", posts, granted, len(pdf.uploaded), len(pdf.asked))
		}
		for _, e := range r.entriesIn(ledger.Delivered) {
			if last := e.Current(); last.Fate != ledger.Succeeded || last.Sent != e.Package.SHA256 || e.UploadedAt.IsZero() || !e.ArchivedAt.IsZero() || e.PossibleDouble || e.Source != ledger.Kept {
				t.Errorf("%+v", e)
			}
		}
	})
}

// An upload that nobody answered may have started a flow at the service. Nothing is ever sent again without a person.
func TestPDF_I2_UnansweredUploadWaitsForAPerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		stuck := r.entriesIn(ledger.Quarantined)
		if posts, _ := pdf.counts(); len(stuck) != 1 || stuck[0].Cause.Code != ledger.CauseDeliveryUnknown || posts != 1 {
			t.Fatal(stuck, posts)
		}
		// A release sends it again, flagged for ever.
		answers.Store(true)
		e := stuck[0]
		by := ledger.Released{By: ledger.Operator{UID: 7}}
		if res, err := r.ledger.Apply(t.Context(), ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{by}, At: r.s.now()}); err != nil || res[0].Err != nil {
			t.Fatal(err, res)
		}
		r.Wake()
		r.pass(time.Hour)
		if sent := r.entriesIn(ledger.Delivered); len(sent) != 1 || !sent[0].PossibleDouble || sent[0].Source != ledger.Kept {
			t.Error(r.states())
		}
	})
}

// A store of which nobody knows what it did with the last uploads is tried ever more rarely, with one document. A person, or a success,
// ends that. A definite refusal does not, and costs no document.
func TestPDF_I2_StoreInDoubt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var outcome atomic.Pointer[error]
		says := func(err error) { outcome.Store(&err) }
		pdf := &service{upload: func(archive.RemoteID) error { return *outcome.Load() }}
		// One worker, so that no second upload is under way when the outage begins: that one would end in doubt too.
		r := buildPDF(t, pdf, "scans").restartPDF(func(row *Route, _ []Drop) { row.Workers = 1 })
		inDoubt := func() int { return r.states()[ledger.Quarantined] }
		says(fault(apicall.OutcomeUnknown, "timeout"))
		began := time.Now()
		r.start()
		r.dropPDF("scans", 40)
		for _, at := range []struct {
			after       time.Duration
			want        int
			needsPerson bool
		}{{4 * time.Minute, 1, false}, {6 * time.Minute, 2, false}, {20 * time.Minute, 3, true}, {2 * time.Hour, 3, true}, {3 * time.Hour, 4, true}, {8 * time.Hour, 5, true}} {
			r.pass(at.after - time.Since(began))
			p := r.Pauses()
			if n := inDoubt(); n != at.want || len(p) != 1 || p[0].Target != PDFStoreTarget() || p[0].NeedsPerson() != at.needsPerson {
				t.Fatalf("after %v: %d in doubt, %+v", at.after, n, p)
			}
		}
		// A probe that is refused leaves the document as it was, and does not begin the row anew.
		says(fault(apicall.NotSent, "no-connection"))
		r.pass(24 * time.Hour)
		if n := inDoubt(); n != 5 || r.Pauses()[0].NeedsPerson() {
			t.Fatal(n, r.Pauses())
		}
		says(fault(apicall.OutcomeUnknown, "timeout"))
		r.pass(time.Hour)
		if n := inDoubt(); n != 6 || !r.Pauses()[0].NeedsPerson() {
			t.Fatal(n, r.Pauses())
		}
		says(nil)
		if !r.MayResumeUploads(PDFStoreTarget()) || !r.ResumeUploads(PDFStoreTarget()) || r.MayResumeUploads(PDFStoreTarget()) {
			t.Error("a person could not let it go on")
		}
		r.pass(10 * time.Minute)
		if n := r.states(); n[ledger.Delivered] != 34 {
			t.Fatal(n)
		}
		// After a success the row begins anew.
		says(fault(apicall.OutcomeUnknown, "timeout"))
		r.EnterClaimed(archive.NewKey(time.Now()), ledger.ClaimedFolder{Route: ledger.PDF, Drop: "scans", Folder: "last.pdf", Fingerprint: archive.Digest{1}, NotBefore: time.Now().Add(time.Second)})
		r.pass(4 * time.Minute)
		if p := r.Pauses(); inDoubt() != 7 || len(p) != 1 || p[0].NeedsPerson() {
			t.Error(inDoubt(), p)
		}
	})
}

// A restart that finds an upload under way cannot tell whether the store has it.
func TestPDF_I2_RestartDuringAnUpload(t *testing.T) {
	t.Parallel()
	for name, repeats := range map[string]bool{"AsksAPerson": false, "SendsAgainWhereAllowed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pdf := &service{}
				r := buildPDF(t, pdf, "scans").restartPDF(func(row *Route, _ []Drop) { row.RepeatsUpload = repeats })
				key := archive.NewKey(time.Now())
				p, doc := archive.Package{Size: 9, SHA256: archive.Sum([]byte("scans 0.pdf"))}, ledger.Document{Metadata: []byte("{}")}
				ticket := archive.Ticket{Remote: "slot", URL: "https://store.example/slot", Sent: r.s.now(), Validity: time.Hour}
				pdf.names["slot"] = archive.ID{1}
				f := r.drops["scans"].Packer.(*folders)
				f.sealed[key] = p
				res, err := r.ledger.Apply(t.Context(), ledger.Change{Key: key, Document: &doc, At: r.s.now(), Events: []ledger.Event{
					ledger.ClaimedFolder{Route: ledger.PDF, Drop: "scans", Folder: "scans 0.pdf"}, ledger.Sealed{ID: archive.ID{1}, Content: p.SHA256, Package: p, Seal: doc.Seal(p)},
					ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: ticket}, ledger.UploadIntended{}}})
				if err != nil || res[0].Err != nil {
					t.Fatal(err, res)
				}
				r.start()
				r.pass(time.Minute)
				if !repeats {
					if stuck := r.entriesIn(ledger.Quarantined); len(stuck) != 1 || stuck[0].Cause.Code != ledger.CauseDeliveryUnknown || len(pdf.uploaded) != 0 {
						t.Error(r.states(), pdf.uploaded)
					}
					return
				}
				if sent := r.entriesIn(ledger.Delivered); len(sent) != 1 || !sent[0].PossibleDouble || len(pdf.uploaded) != 1 {
					t.Error(r.states(), pdf.uploaded)
				}
			})
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

// A stop waits for an upload that nobody can be asked about, longer than for others, and not for ever.
func TestPDF_I2_StopWaitsForAnUpload(t *testing.T) {
	t.Parallel()
	for put, want := range map[time.Duration]ledger.State{30 * time.Second: ledger.Delivered, 10 * time.Minute: ledger.Quarantined} {
		synctest.Test(t, func(t *testing.T) {
			pdf := &service{hangs: hangsFor(put)}
			r := buildPDF(t, pdf, "scans")
			stop := r.startUntilStopped()
			r.dropPDF("scans", 1)
			r.pass(5 * time.Second)
			if n := r.states(); n[ledger.Sending] != 1 {
				t.Fatal(n)
			}
			r.drop("V", 1) // it is taken in, and none of it is worked on during the stop
			began := time.Now()
			stop()
			if took := time.Since(began); took > unaskedGrace+time.Second || took < min(put, unaskedGrace)-10*time.Second {
				t.Errorf("the stop took %v", took)
			}
			pdf.hangs = nil
			r = r.restartPDF(func(*Route, []Drop) {})
			r.start()
			r.pass(time.Hour)
			if n := r.states(); n[want] != 1 || n[ledger.Archived] != 1 {
				t.Errorf("a PUT of %v: %v", put, n)
			}
		})
	}
}

// A reload waits for such an upload while all other work goes on, begins no other one meanwhile, and waits not for ever.
func TestPDF_I2_ReloadWaitsForUploads(t *testing.T) {
	t.Parallel()
	for put, most := range map[time.Duration]time.Duration{30 * time.Second: 31 * time.Second, time.Hour: DrainLimit} {
		synctest.Test(t, func(t *testing.T) {
			pdf := &service{hangs: hangsFor(put)}
			r := buildPDF(t, pdf, "scans")
			stop := r.startUntilStopped()
			r.dropPDF("scans", 9)
			r.pass(5 * time.Second)
			r.drop("V", 5)
			began := time.Now()
			r.DrainUploads(t.Context())
			if took := time.Since(began); took > most || took < min(put, DrainLimit)-10*time.Second {
				t.Errorf("a PUT of %v: the reload waited %v", put, took)
			}
			n := r.states()
			if n[ledger.Registered]+n[ledger.Packaged]+n[ledger.Registering] != 7 || n[ledger.Uploaded]+n[ledger.Archived] != 5 {
				t.Errorf("a PUT of %v: %v", put, n)
			}
			stop()
			pdf.hangs = nil
			r = r.restartPDF(func(*Route, []Drop) {})
			r.start()
			r.pass(time.Hour)
			if n := r.states(); put < DrainLimit && n[ledger.Delivered] != 9 || n[ledger.Delivered] < 7 || n[ledger.Archived] != 5 {
				t.Errorf("a PUT of %v: %v", put, n)
			}
		})
	}
}

// What a crash leaves in doubt is no more than what the slots can hold.
func TestPDF_I2_FewUploadsAreAnnounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		r.dropPDF("scans", 400)
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Delivered] != 400 || most > 3 || most == 0 {
			t.Errorf("%v; %d at most were announced at once", n, most)
		}
	})
}

// The body of a registration holds nothing but configured addresses: a refusal stops that drop, rejects nothing, and stops no other drop.
// Once the configuration is corrected, what waits is packed anew for the new address.
func TestPDF_I24_RefusedAddressIsTheConfigurations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		address := func(drops []Drop, typo string) {
			for i, d := range drops {
				if d.Route == ledger.PDF {
					to := "ap@in.example"
					if d.Name == "wrong" {
						to = typo
					}
					drops[i].Request = request(to)
					drops[i].Packer = &requesting{folders: d.Packer.(interface{ inner() *folders }).inner(), request: request(to)}
				}
			}
		}
		r := buildPDF(t, pdf, "wrong", "right").restartPDF(func(_ *Route, drops []Drop) { address(drops, "typo@in.example") })
		stop := r.startUntilStopped()
		r.dropPDF("wrong", 12)
		r.dropPDF("right", 12)
		r.pass(6 * time.Hour)
		if n := r.states(); n[ledger.Delivered] != 12 || n[ledger.Packaged] != 12 {
			t.Fatal(n)
		}
		pauses := r.Pauses()
		if len(pauses) != 1 || pauses[0].Target != PDFTarget("wrong") || !pauses[0].NeedsPerson() || !strings.Contains(pauses[0].Advice(), `correct drops[1].receiving of the drop "wrong", then reload`) {
			t.Errorf("%+v", pauses)
		}
		if n := said[string(request("typo@in.example"))]; n > 250 { // after a while every two and a half minutes
			t.Errorf("it was asked %d times in six hours", n)
		}
		stop()
		r = r.restartPDF(func(_ *Route, drops []Drop) { address(drops, "books@in.example") })
		r.start()
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Delivered] != 24 || said[string(request("books@in.example"))] != 12 {
			t.Error(n, said)
		}
	})
}

// requesting packs for an address, as the packer of a PDF drop does: the identity and the request rest on it.
type requesting struct {
	*folders
	request []byte
}

func (f *folders) inner() *folders    { return f }
func (q *requesting) inner() *folders { return q.folders }

func (q *requesting) Pack(ctx context.Context, e ledger.Entry) (Packed, error) {
	packed, err := q.folders.Pack(ctx, e)
	packed.Document.Metadata, packed.Sealed.Metadata = q.request, archive.Sum(q.request)
	packed.Sealed.ID = archive.DeriveID("", packed.Sealed.Content, packed.Sealed.Metadata)
	return packed, err
}

func TestPDF_I24_StoreThatRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
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
		r.drop("V", 20)
		r.pass(10 * time.Minute)
		n := r.states()
		if n[ledger.Packaged]+n[ledger.Registered] != 20 || n[ledger.Archived] != 20 {
			t.Fatal(n) // certainly nothing was taken, and the vault goes on
		}
		if p := r.Pauses(); len(p) != 1 || p[0].Target != PDFStoreTarget() || p[0].NeedsPerson() || strings.Contains(p[0].Advice(), "receiving") {
			t.Errorf("%+v", p)
		}
		refuse.Store(false)
		r.pass(2 * time.Hour)
		if n := r.states(); n[ledger.Delivered] != 20 {
			t.Error(n)
		}
	})
}

// The second mix-up stops the service of all its drops, and no vault.
func TestPDF_I8_MixedUpTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pdf := &service{}
		pdf.register = func(archive.RegisterRequest) (*archive.Ticket, error) {
			return &archive.Ticket{Remote: "one", URL: "https://store.example/one", Sent: pdf.now(), Validity: time.Hour}, nil
		}
		r := buildPDF(t, pdf, "scans", "post")
		r.start()
		r.dropPDF("scans", 3)
		r.pass(time.Minute)
		r.dropPDF("post", 3)
		r.drop("V", 3)
		r.pass(2 * 24 * time.Hour)
		n := r.states()
		if n[ledger.Delivered] > 1 || n[ledger.Quarantined] < 2 || n[ledger.Archived] != 3 {
			t.Error(n)
		}
		if posts, _ := pdf.counts(); posts > 4 {
			t.Errorf("%d POSTs went to a service that mixes documents up", posts)
		}
	})
}

// Where the route is left out of the configuration, what it took before waits as it is, and the vault goes on.
func TestPDF_I24_RouteLeftOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pdf := &service{register: func(archive.RegisterRequest) (*archive.Ticket, error) {
			return nil, fault(apicall.NotProcessed, "http-403")
		}}
		r := buildPDF(t, pdf, "scans")
		stop := r.startUntilStopped()
		r.dropPDF("scans", 3)
		r.pass(time.Minute)
		stop()
		cfg := r.cfg
		cfg.Routes = map[ledger.Route]Route{ledger.Vault: cfg.Routes[ledger.Vault]}
		cfg.Drops = slices.DeleteFunc(slices.Clone(cfg.Drops), func(d Drop) bool { return d.Route == ledger.PDF })
		r = &running{Engine: New(cfg), t: t, ledger: r.ledger, s: r.s}
		r.start()
		r.drop("V", 3)
		r.pass(24 * time.Hour)
		if n := r.states(); n[ledger.Packaged] != 3 || n[ledger.Archived] != 3 {
			t.Error(n)
		}
	})
}

func TestPDF_SendsAgainWhereAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pdf := &service{}
		r := buildPDF(t, pdf, "scans")
		r.start()
		r.dropPDF("scans", 1)
		r.pass(time.Minute)
		r.dropPDF("scans", 1)
		r.pass(time.Minute)
		if n := r.states(); n[ledger.Delivered] != 1 || n[ledger.Duplicate] != 1 {
			t.Fatal(n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		pdf := &service{}
		r := buildPDF(t, pdf, "scans").restartPDF(func(_ *Route, drops []Drop) {
			for i := range drops {
				drops[i].SendsAgain = true
			}
		})
		r.start()
		for range 4 {
			r.dropPDF("scans", 1)
			r.pass(time.Minute)
		}
		if n := r.states(); n[ledger.Delivered] != 4 {
			t.Fatal(n)
		}
	})
}
