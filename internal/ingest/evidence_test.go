package ingest_test

import (
	"encoding/hex"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
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
			r.drop("V", 1)
			r.pass(3 * time.Hour)
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
			r.drop("V", 1)
			r.pass(10 * time.Minute)
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
		r.apply(ledger.Change{Key: archive.Key{1}, Events: []ledger.Event{
			ledger.Recovered{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: "V 0", State: ledger.Archived, Source: ledger.Gone,
				ID: archive.DeriveID("V", content, metadata).Generation(archive.MaxGeneration), Remote: "b1", SuccessRecord: []byte("{}"), ArchivedAt: r.s.now().Wall},
			ledger.Reconciled{}}})
		r.drop("V", 1)
		r.pass(time.Hour)
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
