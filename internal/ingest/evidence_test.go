package ingest_test

import (
	"encoding/hex"
	"errors"
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

// I4: a store's ETag counts only after the store was seen to answer with MD5s. From
// then on the MD5 of other bytes is no acceptance: the upload is repeated.
func TestTrustworthy_I4_AnETagOfOtherBytes(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		own, other := hex.EncodeToString(append([]byte{1}, make([]byte, 15)...)), hex.EncodeToString(make([]byte, 16)) // see folders.Pack
		var answers atomic.Pointer[string]
		r := run(t, &service{slow: true, etag: func(archive.RemoteID) string { return *answers.Load() }})
		want := states{}
		for _, step := range []struct {
			what, etag string
			state      ledger.State
		}{
			{"of other bytes, at a store of which nothing is known", other, ledger.Uploaded},
			{"the package's own", `"` + own + `"`, ledger.Uploaded},
			{"of other bytes, now that ETags are known to be MD5s", other, ledger.Sending},
			{"one that is no MD5", other + "-2", ledger.Uploaded},
			{"none", "", ledger.Uploaded},
		} {
			answers.Store(&step.etag)
			r.dropNamed("V", step.what, 1)
			r.pass(5 * time.Second)
			want[step.state]++
			kit.Want(t, "states after an ETag, "+step.what, r.states(), want)
			if step.state == ledger.Sending {
				answers.Store(&own)
				r.pass(10 * time.Minute) // the same bytes are sent again
				delete(want, ledger.Sending)
				want[ledger.Uploaded]++
				kit.Want(t, "states after the repeated upload", r.states(), want)
			}
		}
	})
}

// I8: the status answer for a number names another document. It is not believed,
// under whatever number it came.
func TestAnswers_I8_ThatNameAnotherDocument(t *testing.T) {
	t.Parallel()
	type row struct {
		names func(own archive.ID) archive.ID
		want  ledger.State
	}
	kit.Rows(t, map[string]row{
		"Nothing": {func(archive.ID) archive.ID { return archive.ID{} }, ledger.Archived},
		"Itself":  {func(own archive.ID) archive.ID { return own }, ledger.Archived},
		"Another": {func(archive.ID) archive.ID { return archive.ID{9} }, ledger.Uploaded},
	}, func(t *testing.T, row row) {
		synctest.Test(t, func(t *testing.T) {
			s := &service{}
			s.status = func(r archive.RemoteID) error { // its caller holds mu
				s.names[r] = row.names(s.names[r])
				return nil
			}
			r := run(t, s)
			r.dropAndPass("V", 1, 3*time.Hour)
			kit.Want(t, "states", r.states(), states{row.want: 1})
		})
	})
}

// I4: the package is missing after the first upload. It is made again. Once bytes may
// be at the store, only the identical package is sent; otherwise the document stops.
func TestReseal_I4_OnlyTheIdenticalPackage(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		first  apicall.Outcome // of the first upload
		others bool            // the folder gives other bytes now
		want   ledger.State
	}{
		"NothingSentAndOtherBytes": {apicall.NotSent, true, ledger.Uploaded},
		"SentAndOtherBytes":        {apicall.OutcomeUnknown, true, ledger.Quarantined},
		"SentAndTheSameBytes":      {apicall.OutcomeUnknown, false, ledger.Uploaded},
	} {
		kit.Bubble(t, name, func(t *testing.T) {
			s := &service{slow: true}
			r := run(t, s)
			f, uploads := r.folders("V"), 0
			s.upload = func(archive.RemoteID) error {
				if uploads++; uploads > 1 {
					return nil
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				clear(f.sealed)
				f.turns = row.others
				return fault(row.first, "connection")
			}
			r.dropAndPass("V", 1, 10*time.Minute)
			kit.Want(t, "states", r.states(), states{row.want: 1})
			e := r.entries()[0]
			if row.want == ledger.Quarantined {
				kit.Want(t, "cause", e.Cause.Code, "package-lost")
				kit.Want(t, "uploads", uploads, 1)
				return
			}
			kit.Want(t, "digest that was sent", e.Current().Sent, e.Package.SHA256)
		})
	}
}

// I2: a rebuilt ledger knows an invoice by the identity under which it was archived,
// which may be a later generation. Dropped again, the invoice is a duplicate.
func TestIdentify_I2_ALaterGenerationAlone(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{})
		content, metadata := archive.Sum([]byte("V 0")), archive.Sum([]byte(`{"documentId":"V 0"}`))
		r.rebuilt()
		r.apply(ledger.Change{Key: archive.Key{1}, Events: []ledger.Event{
			ledger.Recovered{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: "V 0", State: ledger.Archived, Source: ledger.Gone,
				ID: archive.DeriveID("V", content, metadata).Generation(archive.MaxGeneration), Remote: "b1", SuccessRecord: []byte("{}"), ArchivedAt: r.s.now().Wall},
			ledger.Reconciled{}}})
		r.dropAndPass("V", 1, time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 1, ledger.Duplicate: 1})
		posts, _ := r.s.counts()
		kit.Want(t, "calls to register what is archived", posts, 0)
		for _, e := range r.entries() {
			if e.State != ledger.Duplicate {
				continue
			}
			// It was never sealed, so the ledger keeps its metadata as they were read.
			doc, _, err := r.ledger.Document(e.Key)
			kit.Check(t, err == nil && doc.AsRead.Number == "V 0" && doc.IsOnlyAsRead(),
				"document of the duplicate = %+v (error %v), want only the metadata as read, with number V 0", doc, err)
		}
	})
}

// rebuilt makes the ledger one that was rebuilt and is out of safe mode again.
func (r *running) rebuilt() {
	r.t.Helper()
	for _, name := range []string{ledger.MarkRebuilt, ledger.MarkReconciled} {
		kit.Must(r.t, r.ledger.CommitMark(r.t.Context(), ledger.Mark{Name: name, At: time.Now()}, nil))
	}
}

// choose commits a folder of vault V whose sidecar names an identity.
func (r *running) choose(folder string, id archive.ID, more ...ledger.Event) {
	r.t.Helper()
	e := ledger.Entry{Key: archive.NewKey(time.Now()), Vault: "V", Folder: folder}
	p := kit.Value(r.folders("V").Pack(r.t.Context(), e))(r.t)
	p.Sealed.ID, p.Sealed.IDFromSidecar = id, true
	r.apply(ledger.Change{Key: e.Key, Document: &p.Document, Events: append([]ledger.Event{
		ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: folder, Fingerprint: archive.Digest{1}}, p.Sealed}, more...)})
}

// derivedID is the identity that the test's packager derives for a folder.
func derivedID(v archive.VaultID, folder string) archive.ID {
	return archive.DeriveID(v, archive.Sum([]byte(folder)), archive.Sum([]byte(`{"documentId":"`+folder+`"}`)))
}

// I2, I23: sidecars name identities that are derived from a colleague's
// document. It is archived all the same, once, and known again afterwards.
func TestIdentify_I2_I23_ChosenByAnotherSidecar(t *testing.T) {
	t.Parallel()
	base := derivedID("V", "V 0")
	next := func(n int) archive.ID { return base.Derivation(n) }
	type row struct {
		chosen []archive.ID
		want   archive.ID // of the document; zero: it is rejected
	}
	kit.Rows(t, map[string]row{
		"NoneChosen":         {nil, base},
		"TheFirst":           {[]archive.ID{base}, next(1)},
		"TheNextToo":         {[]archive.ID{base, next(1)}, next(2)},
		"NotTheFirst":        {[]archive.ID{next(1)}, base},
		"AGeneration":        {[]archive.ID{base.Generation(1)}, base},
		"AGenerationOfNext":  {[]archive.ID{base, next(1).Generation(2)}, next(1)},
		"AGenerationOfFirst": {[]archive.ID{base, base.Generation(1)}, next(1)},
		"All":                {[]archive.ID{base, next(1), next(2), next(3)}, archive.ID{}},
	}, func(t *testing.T, row row) {
		kit.ParallelBubble(t, func(t *testing.T) {
			r := run(t, &service{})
			for i, id := range row.chosen {
				r.choose(fmt.Sprint("chosen ", i), id)
			}
			r.pass(time.Hour)
			r.dropAndPass("V", 1, time.Hour)
			want := states{ledger.Archived: len(row.chosen) + 1}
			if row.want.IsZero() {
				want = states{ledger.Archived: len(row.chosen), ledger.Rejected: 1}
			}
			kit.Want(t, "states", r.states(), want)
			for _, e := range r.entries() {
				switch {
				case e.Folder == "V 0" && e.State == ledger.Archived:
					kit.Want(t, "identity", e.ID, row.want)
				case e.Folder == "V 0":
					kit.Want(t, "cause", e.Cause.Code, "clientuuid-taken")
				}
			}
			if row.want.IsZero() {
				return
			}
			r.drop("V", 1) // the same once more
			r.pass(time.Hour)
			want[ledger.Duplicate] = 1
			kit.Want(t, "states after it was dropped again", r.states(), want)
		})
	})
}

// I2, I23: the document whose sidecar named the identity is rejected after all.
// What got the next one in its place is still known when it is dropped again; what
// was rejected itself may come again.
func TestIdentify_I2_I23_ChosenByWhatIsRejectedLater(t *testing.T) {
	t.Parallel()
	base := derivedID("V", "V 0")
	type row struct {
		first bool // the document itself is closed before it is sent
		want  states
	}
	kit.Rows(t, map[string]row{
		"Archived": {false, states{ledger.Archived: 1, ledger.Rejected: 1, ledger.Duplicate: 1}},
		"Rejected": {true, states{ledger.Archived: 1, ledger.Rejected: 2}},
	}, func(t *testing.T, row row) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := run(t, &service{})
			by := ledger.Operator{UID: 7, Reason: archive.Digest{1}}
			r.choose("chosen", base, ledger.Held{By: by})
			if row.first {
				r.choose("V 0", base.Derivation(1), ledger.Held{By: by})
			} else {
				r.drop("V", 1)
			}
			r.pass(time.Hour)
			for _, e := range r.entries() {
				if e.State.IsOpen() {
					r.apply(ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ledger.Closed{By: by}}})
				}
			}
			r.drop("V", 1)
			r.pass(time.Hour)
			kit.Want(t, "states", r.states(), row.want)
		})
	})
}

// I2: a rebuilt ledger knows an invoice by the identity that it got in the place
// of a chosen one, or by a generation of that. Dropped again, it is a duplicate.
func TestIdentify_I2_ALaterDerivationAlone(t *testing.T) {
	t.Parallel()
	base := derivedID("V", "V 0")
	kit.Rows(t, map[string]archive.ID{
		"Next": base.Derivation(1), "Last": base.Derivation(archive.MaxDerivation), "LastOfLast": base.Derivation(archive.MaxDerivation).Generation(archive.MaxGeneration),
	}, func(t *testing.T, id archive.ID) {
		kit.ParallelBubble(t, func(t *testing.T) {
			r := run(t, &service{})
			r.rebuilt()
			r.apply(ledger.Change{Key: archive.Key{1}, Events: []ledger.Event{
				ledger.Recovered{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: "V 0", State: ledger.Archived, Source: ledger.Gone,
					ID: id, Remote: "b1", SuccessRecord: []byte("{}"), ArchivedAt: r.s.now().Wall},
				ledger.Reconciled{}}})
			r.dropAndPass("V", 1, time.Hour)
			kit.Want(t, "states", r.states(), states{ledger.Archived: 1, ledger.Duplicate: 1})
			posts, _ := r.s.counts()
			kit.Want(t, "calls to register what is archived", posts, 0)
		})
	})
}

// I21: a PDF that is sent again takes the next generation, up to the last one
// that a rebuild looks for.
func TestIdentify_I21_GenerationsEnd(t *testing.T) {
	t.Parallel()
	base := derivedID("", "scans 0.pdf")
	for taken, want := range map[int]ledger.State{archive.MaxGeneration: ledger.Delivered, archive.MaxGeneration + 1: ledger.Rejected} {
		synctest.Test(t, func(t *testing.T) {
			r := buildPDF(t, &service{}, "scans")
			r.configured("scans").SendsAgain = true
			r.cfg.Drops = append(r.cfg.Drops, newDrop("V", ingest.Drop{Vault: "V"}))
			r.start()
			for n := range taken {
				id := base.Generation(n)
				r.choose(fmt.Sprint("chosen ", n), id)
			}
			r.dropPDF("scans", 1)
			r.pass(time.Hour)
			for _, e := range r.entries() {
				if e.Route != ledger.PDF {
					continue
				}
				kit.Want(t, fmt.Sprintf("state where %d are taken", taken), e.State, want)
				if want == ledger.Rejected {
					kit.Want(t, "cause", e.Cause.Code, "identities-used-up")
				} else {
					kit.Want(t, "identity", e.ID, base.Generation(archive.MaxGeneration))
				}
			}
		})
	}
}

// unsent is a network to which nothing is sent while a test looks.
type unsent struct{ ingest.Sender }

func (unsent) Compose(archive.Package, archive.Digest, []archive.FileID) (archive.NetworkBody, error) {
	return archive.NetworkBody{}, errors.New("not sent")
}

// I2, I21: a document of the business network walks its generations past one
// that another sidecar names, and none follows the last one.
func TestIdentify_I2_I21_ChosenOfTheNetwork(t *testing.T) {
	t.Parallel()
	base := derivedID("", "out 0.pdf")
	for taken, want := range map[int]archive.ID{0: base, 1: base.Generation(1), archive.MaxGeneration: base.Generation(archive.MaxGeneration), archive.MaxGeneration + 1: {}} {
		synctest.Test(t, func(t *testing.T) {
			r := buildPDF(t, &service{})
			r.cfg.Routes[ledger.Network] = ingest.Route{Sender: unsent{}, Workers: 1, BatchSize: 1}
			r.cfg.Drops = append(r.cfg.Drops, newDrop("V", ingest.Drop{Vault: "V"}), newDrop("out", ingest.Drop{Route: ledger.Network}))
			r.start()
			for n := range taken {
				id := base.Generation(n)
				r.choose(fmt.Sprint("chosen ", n), id)
			}
			key := archive.NewKey(time.Now())
			r.EnterClaimed(key, ledger.ClaimedFolder{Route: ledger.Network, Drop: "out", Folder: "out 0.pdf", Fingerprint: archive.Digest{1}, NotBefore: r.s.now().Wall.Add(time.Second)})
			r.pass(time.Minute)
			e, _, err := r.ledger.Entry(key)
			kit.Must(t, err)
			kit.Want(t, fmt.Sprintf("identity where %d are taken", taken), e.ID, want)
			if want.IsZero() {
				kit.Want(t, "cause", e.Cause.Code, "identities-used-up")
			}
		})
	}
}
