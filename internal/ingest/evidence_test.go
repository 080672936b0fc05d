package ingest

import (
	"context"
	"encoding/hex"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// TestTrustworthy_I4_AnETagOfOtherBytes: an ETag speaks only at a store that was seen to
// answer with MD5s; there a differing one says that other bytes lie there.
func TestTrustworthy_I4_AnETagOfOtherBytes(t *testing.T) {
	t.Parallel()
	var c Engine
	p := archive.Package{Size: 1, SHA256: archive.Digest{1}, MD5: [16]byte{1, 2, 3}}
	own, other := hex.EncodeToString(p.MD5[:]), hex.EncodeToString(make([]byte, 16))
	for _, step := range []struct {
		what, etag string
		want       bool
	}{
		{"at a store of which nothing is known", other, true},
		{"the package's own", `"` + own + `"`, true},
		{"another one, now that ETags are known to be MD5s", other, false},
		{"one that is no MD5", other + "-2", true},
		{"none", "", true},
	} {
		if got := c.isTrustworthyETag(step.etag, p); got != step.want {
			t.Errorf("%s: %v", step.what, got)
		}
	}
}

// inState is an entry of the drop V in a state in which it holds one registration.
func inState(s ledger.State) ledger.Entry {
	content := archive.Sum([]byte("a folder"))
	return ledger.Entry{Key: archive.Key{1}, Rev: 5, State: s, Source: ledger.Claimed, Vault: "V", Drop: "V", Folder: "a folder",
		ID: archive.ID{1}, FirstID: archive.ID{1}, Content: content, Metadata: archive.Sum([]byte(`{"documentId":"a folder"}`)),
		Package:       archive.Package{Size: 20_000, SHA256: content, MD5: [16]byte{1}},
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "b1"}, UploadIntents: 1, Fate: ledger.MaybeStored}}}
}

// TestAnswers_I8_ThatNameAnotherDocument: a word about somebody else is no word about us,
// whatever number it stands under.
func TestAnswers_I8_ThatNameAnotherDocument(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		defer r.ledger.Close()
		e := inState(ledger.Uploaded)
		for id, want := range map[archive.ID]int{{}: 1, e.ID: 1, {9}: 0} {
			heard := map[archive.RemoteID]archive.Receipt{"b1": {Remote: "b1", ID: id, Status: archive.Successful}}
			if evs := r.eventsOf(e, heard); len(evs) != want {
				t.Errorf("told as clientUUID %s: %d events, want %d", id, len(evs), want)
			}
		}
	})
}

// TestCollision_I8_NumberOfAnotherEntry: a number that belongs elsewhere is a mix-up, and
// the document it was given to stops.
func TestCollision_I8_NumberOfAnotherEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		defer r.ledger.Close()
		e := inState(ledger.Registering)
		change, ok := r.correctCollision([]ledger.Entry{e}, nil, ledger.Result{Key: e.Key, Err: &ledger.TakenError{What: "bumId", By: archive.Key{2}}})
		if _, crossed := change.Events[0].(ledger.AnswerMixedUp); !ok || !crossed {
			t.Errorf("%v %+v", ok, change.Events)
		}
	})
}

// TestReseal_I4_OnlyTheIdenticalPackage: once bytes may be at the store, a package that is
// lost and cannot be made again as it was stops its document.
func TestReseal_I4_OnlyTheIdenticalPackage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		defer r.ledger.Close()
		e := inState(ledger.Sending)
		for name, row := range map[string]struct {
			sends uint16
			other bool
			stuck bool
		}{
			"NothingSentAndOtherBytes": {1, true, false}, // this attempt is the only one, and it sends nothing
			"SentAndOtherBytes":        {2, true, true},
			"SentAndTheSameBytes":      {2, false, false},
		} {
			e := e
			e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "b1"}, UploadIntents: row.sends, Fate: ledger.MaybeStored}}
			if row.other {
				e.Package.SHA256 = archive.Digest{7}
			}
			evs := r.packAgain(context.Background(), r.drops["V"], e)[0].Events
			if _, stuck := evs[len(evs)-1].(ledger.SentToQuarantine); stuck != row.stuck {
				t.Errorf("%s: %+v", name, evs)
			}
		}
	})
}

// TestIdentify_I2_ALaterGenerationAlone: a ledger that was made anew knows an invoice by the identity under which it
// was archived, which may be a later generation. Dropped again it is a duplicate.
func TestIdentify_I2_ALaterGenerationAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{})
		content, metadata := archive.Sum([]byte("V 0")), archive.Sum([]byte(`{"documentId":"V 0"}`))
		rs, err := r.ledger.Apply(t.Context(), ledger.Change{Key: archive.Key{1}, At: r.s.now(), Events: []ledger.Event{
			ledger.Recovered{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: "V 0", State: ledger.Archived, Source: ledger.Gone,
				ID: archive.DeriveID("V", content, metadata).Generation(1), Remote: "b1", SuccessRecord: []byte("{}"), ArchivedAt: r.s.now().Wall},
			ledger.Reconciled{}}})
		if err != nil || rs[0].Err != nil {
			t.Fatal(err, rs)
		}
		r.drop("V", 1)
		r.pass(time.Hour)
		if n := r.states(); n[ledger.Duplicate] != 1 {
			t.Error(n)
		}
		if posts, _ := r.s.counts(); posts != 0 {
			t.Errorf("%d POSTs for what is archived", posts)
		}
		// It was never sealed, so this is all that is known of its metadata.
		err = r.ledger.EntriesOldestFirst(func(e ledger.Entry) error {
			doc, _, err := r.ledger.Document(e.Key)
			if e.State == ledger.Duplicate && (doc.AsRead.Number != "V 0" || !doc.IsOnlyAsRead()) {
				t.Errorf("the duplicate keeps %+v", doc)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}
