package recovery

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// rewriteReceipt writes the receipt of an archived folder again, as another
// program would.
func (s *shed) rewriteReceipt(folder string, change func([]byte) []byte) {
	s.t.Helper()
	name := filepath.Join(s.path, "_archived", "2026-11", folder, receiptName)
	text := kit.Value(os.ReadFile(name))(s.t)
	kit.Must(s.t, os.WriteFile(name, change(text), 0o660))
}

// rebuild rebuilds the ledger from the folder, and returns what it found and the
// entries by the names of their folders.
func (s *shed) rebuild() (FolderReport, map[string]ledger.Entry) {
	s.t.Helper()
	r, err := Rebuild(s.t.Context(), Config{Book: s.book, Committer: s.book, Drops: []Origin{s.drop}, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys, Adopt: true,
		Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }})
	kit.Must(s.t, err)
	entries := map[string]ledger.Entry{}
	kit.Must(s.t, s.book.EntriesOldestFirst(func(e ledger.Entry) error { entries[e.Folder] = e; return nil }))
	return r.Folders, entries
}

// cutSignature removes what [proof.Sign] added.
func cutSignature(text []byte) []byte {
	before, _, _ := bytes.Cut(text, []byte(",\n  \"publicKey\""))
	return append(before, "\n}\n"...)
}

// I12, I15: what a receipt says of the archive counts where this ledger signed
// it. Any other one counts only for the contents of its folder, whatever else it says.
func TestRebuild_I12_OnlyASignedReceiptSaysThatADocumentIsArchived(t *testing.T) {
	stranger := fill.New(t, boltledger.Config{}, ledger.Info{ID: "L-9"})
	replace := func(old, by string) func(*shed, []byte) []byte {
		return func(s *shed, text []byte) []byte {
			kit.Holds(s.t, "the receipt", string(text), old)
			return bytes.Replace(text, []byte(old), []byte(by), 1)
		}
	}
	cut := func(_ *shed, text []byte) []byte { return cutSignature(text) }
	type row struct {
		record string // the archive's answer in it; empty: as the archive gives it
		forge  func(*shed, []byte) []byte
		state  ledger.State // None: an entry is missing
		says   string       // the entry's cause, or why it is refused
	}
	kit.Rows(t, map[string]row{
		"AsWritten":         {forge: func(_ *shed, text []byte) []byte { return text }, state: ledger.Archived},
		"NoSignature":       {forge: cut, state: ledger.Packaged, says: "BY RECEIPT ALONE. That it is archived says the receipt in its folder alone, which has no signature"},
		"AnotherLedgersKey": {forge: func(_ *shed, text []byte) []byte { return proof.Sign(cutSignature(text), stranger) }, state: ledger.Packaged, says: "a key that is not one of this ledger"},
		"OurKeyNamed": {forge: func(s *shed, text []byte) []byte {
			return bytes.ReplaceAll(proof.Sign(cutSignature(text), stranger), []byte(stranger.Info().ReceiptKeys[0]), []byte(s.book.Info().ReceiptKeys[0]))
		}, state: ledger.Packaged, says: "was changed after it was signed"},
		"OneFieldChanged":   {forge: replace("2026-11-19T10", "2014-03-19T10"), state: ledger.Packaged, says: "was changed after it was signed"},
		"AnotherDigest":     {forge: replace(archive.Sum([]byte("Huber 7")).String(), archive.Sum([]byte("other")).String()), state: ledger.Packaged, says: "was changed after it was signed"},
		"SomethingBehindIt": {forge: func(_ *shed, text []byte) []byte { return append(text, ' ') }, state: ledger.Packaged, says: "was changed after it was signed"},
		"SignatureOfAnother": {forge: func(s *shed, text []byte) []byte {
			other := kit.Value(os.ReadFile(filepath.Join(s.path, "_archived", "2026-11", "other", receiptName)))(s.t)
			_, end, _ := bytes.Cut(other, []byte(",\n  \"publicKey\""))
			return append(append(bytes.TrimSuffix(cutSignature(text), []byte("\n}\n")), ",\n  \"publicKey\""...), end...)
		}, state: ledger.Packaged, says: "its signature is of another one"},
		"AKeyTwice": {forge: func(s *shed, text []byte) []byte {
			return replace("\n  \"bumId\":", "\n  \"BumID\": \"bum-x\",\n  \"bumId\":")(s, cutSignature(text))
		}, state: ledger.Packaged, says: "has no signature"},
		"AKeyTwice_Signed":     {forge: replace("\n  \"bumId\":", "\n  \"bumId\": \"bum-x\",\n  \"bumId\":"), state: ledger.Packaged, says: "was changed after it was signed"},
		"RecordOfAnotherBumID": {record: `{"bumId":"bum-of-another","status":"ArchivingSuccessful"}`, forge: cut, state: ledger.Packaged, says: "has no signature"},
		"RecordOfAFailure":     {record: `{"status":"ArchivingFailed"}`, forge: cut, state: ledger.Packaged, says: "has no signature"},
		"RecordFits":           {record: `{"bumId":"bum-Huber-7","documentId":"Huber 7","lastUpdated":"2026-11-19T11:00:00+01:00","status":"ArchivingSuccessful"}`, forge: func(_ *shed, text []byte) []byte { return text }, state: ledger.Archived},
		"RecordOfTheIndex":     {record: `{"archiveId":"a","bumid":"bum-Huber-7","documentId":"Huber 7","archiveDate":"2026-11-19T10:00:00Z"}`, forge: func(_ *shed, text []byte) []byte { return text }, state: ledger.Archived},
	}, func(t *testing.T, row row) {
		s := newShed(t)
		s.archived("other", nil)
		s.archived("Huber 7", func(_ string, r *proof.Receipt) {
			if row.record != "" {
				r.Record = row.record
			}
		})
		s.rewriteReceipt("Huber 7", func(text []byte) []byte { return row.forge(s, text) })
		found, entries := s.rebuild()
		e, ok := entries["Huber 7"]
		if e.State != row.state || ok != (row.state != ledger.None) {
			t.Errorf("the entry is %s (there: %v), want %s", e.State, ok, row.state)
		}
		said := e.Cause.Text
		if !ok {
			said = fmt.Sprint(found.Unbelieved)
		}
		kit.Holds(t, "what is said of it", said, row.says)
		kit.Want(t, "by receipt alone", found.Alone.Count, map[bool]int{true: 1}[row.state == ledger.Packaged])
		kit.Want(t, "rests on its receipt", e.RestsOnReceipt(), row.state == ledger.Packaged)
		if len(e.SuccessRecord) > 0 != (row.state == ledger.Archived) || e.ArchivedRemote == "" != (row.state != ledger.Archived) {
			t.Errorf("bumId %q and record %q of a document that is %s", e.ArchivedRemote, e.SuccessRecord, row.state)
		}
		if _, err := ledger.Transition(e, ledger.Reconciled{}, archive.Instant{Wall: time.Now()}); ok && (err == nil) != (row.state == ledger.Archived) {
			t.Errorf("cleared without the archive: %v", err)
		}
	})
}

// I12: the users that a receipt names count where this ledger signed it. Others
// could have named anybody.
func TestRebuild_I12_OwnersOfFilesCountWhereTheReceiptIsSigned(t *testing.T) {
	named := []uint32{0, 1002}
	for name, row := range map[string]struct {
		named []uint32
		isCut bool // the signature is
		known bool // there is an entry
		want  []uint32
	}{
		"Signed":   {named, false, true, named},
		"Unsigned": {named, true, true, nil},
		"TooMany":  {make([]uint32, ledger.MaxFileOwners+1), false, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShed(t)
			key := s.archived("Huber 7", func(_ string, r *proof.Receipt) { r.FileOwners = row.named })
			if row.isCut {
				s.rewriteReceipt("Huber 7", cutSignature)
			}
			_, entries := s.rebuild()
			kit.Want(t, "entries", len(entries) == 1, row.known)
			doc, _, err := s.book.Document(key)
			kit.Must(t, err)
			kit.Want(t, "owners of files", doc.FileOwners, row.want)
		})
	}
}

// I12, I3: an entry that rests on a receipt alone becomes archived only by the
// archive's status of its own clientUUID; a bumId of another document and a
// retention that is over leave it as it is. Then it needs attention.
func TestReconcile_I12_AReceiptAloneWaitsForTheArchivesWord(t *testing.T) {
	now := time.Now()
	type row struct {
		id    func(own archive.ID) archive.ID // that the archive gives for the bumId in the receipt; nil: unknown
		state ledger.State
	}
	kit.Rows(t, map[string]row{
		"Confirmed":   {func(own archive.ID) archive.ID { return own }, ledger.Archived},
		"OfAnother":   {func(archive.ID) archive.ID { return archive.ID{9} }, ledger.Quarantined},
		"WithoutAnID": {func(archive.ID) archive.ID { return archive.ID{} }, ledger.Quarantined},
		"Unknown":     {nil, ledger.Quarantined},
	}, func(t *testing.T, row row) {
		s := newShed(t)
		s.drop.Retention = 10
		s.archived("Huber 7", func(_ string, r *proof.Receipt) { r.Archived = "2014-03-19T10:00:00Z" })
		s.rewriteReceipt("Huber 7", cutSignature)
		_, entries := s.rebuild()
		e := entries["Huber 7"]
		service := spoken{}
		if row.id != nil {
			rc := archive.Receipt{Remote: "bum-Huber-7", ID: row.id(e.ID), Status: archive.Successful, Updated: now, Record: []byte(`{"status":"ArchivingSuccessful"}`)}
			rec := archive.IndexRecord{Remote: rc.Remote, ArchivedAt: now, Raw: []byte("{}")}
			rec.Document.Number = "Huber 7"
			service = spoken{index: []archive.IndexRecord{rec}, single: map[archive.RemoteID]archive.Receipt{rc.Remote: rc}}
		}
		for range 2 {
			r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: []Origin{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
				Now: func() archive.Instant { return archive.Instant{Wall: now.Add(25 * time.Hour)} }, Doubt: &Doubt{Since: now, Told: now}})
			kit.Must(t, err)
			kit.Want(t, "ended by its retention", r.Vaults[0].Ended, 0)
		}
		e, _, err := s.book.Entry(e.Key)
		kit.Must(t, err)
		kit.Want(t, "state", e.State, row.state)
		kit.Want(t, "rests on its receipt", e.RestsOnReceipt(), row.state != ledger.Archived)
		kit.Want(t, "needs a person", e.Attention() == ledger.ByReceiptAlone, row.state != ledger.Archived)
		kit.Want(t, "place", e.Source.String()+" "+e.Dest, "kept _archived/2026-11/Huber 7")
		if step, _, due := ledger.Due(e); due && row.state != ledger.Archived {
			t.Errorf("%s is due, want nothing", step)
		}
		problems, err := s.book.Verify(t.Context())
		if err != nil || len(problems) > 0 {
			t.Errorf("the ledger: %v %v", problems, err)
		}
	})
}

// I12: a copy of a receipt leaves everything to the folder that it was written
// for, wherever the copy is and whatever is next to it.
func TestRebuild_I12_ACopyOfAReceiptTakesNothing(t *testing.T) {
	s := newShed(t)
	key := s.archived("Huber 7", nil)
	own := filepath.Join(s.path, "_archived", "2026-11", "Huber 7")
	text := kit.Value(os.ReadFile(filepath.Join(own, receiptName)))(t)
	for _, folder := range []string{"2014-03/A", "2026-11/Z"} {
		dir := filepath.Join(s.path, "_archived", filepath.FromSlash(folder))
		kit.Must(t, os.MkdirAll(dir, 0o770))
		s.write(dir, "b.pdf", "something else")
		s.write(dir, "metadata.json", `{"documentType": "Invoice", "documentId": "A", "documentDate": "2026-10-31"}`)
		kit.Must(t, os.WriteFile(filepath.Join(dir, receiptName), text, 0o660))
	}
	unsigned := filepath.Join(s.path, "_archived", "2014-03", "0")
	kit.Must(t, os.MkdirAll(unsigned, 0o770))
	kit.Must(t, os.WriteFile(filepath.Join(unsigned, receiptName), cutSignature(text), 0o660))
	found, entries := s.rebuild()
	e := entries["Huber 7"]
	if len(entries) != 1 || e.Key != key || e.State != ledger.Archived || e.Dest != "_archived/2026-11/Huber 7" {
		t.Errorf("%d entries, and %s is %s in %q, want one, archived in its own place", len(entries), e.Key, e.State, e.Dest)
	}
	kit.Want(t, "copies that are not believed", found.Unbelieved.Count, 3)
	kit.Holds(t, "what is said of one", fmt.Sprint(found.Unbelieved), "2014-03/A: its receipt is a copy of the one in _archived/2026-11/Huber 7")
}

// I2, I12: what the folder of a delivered document says counts where this
// ledger signed it. Else an operator decides, and retries of the same document
// are off.
func TestRebuild_I12_OnlyASignedNoteSaysThatADocumentIsDelivered(t *testing.T) {
	type row struct {
		forge func([]byte) []byte
		state ledger.State
	}
	kit.Rows(t, map[string]row{
		"AsWritten":       {func(text []byte) []byte { return text }, ledger.Delivered},
		"NoSignature":     {cutSignature, ledger.Quarantined},
		"OneFieldChanged": {func(text []byte) []byte { return bytes.Replace(text, []byte("EmailDelivery"), []byte("Electronic"), 1) }, ledger.Quarantined},
	}, func(t *testing.T, row row) {
		s := newOutbox(t)
		s.delivered("good", false, 0, nil)
		file := filepath.Join(s.path, "_delivered", "2026-11", "good", deliveryName)
		text := kit.Value(os.ReadFile(file))(t)
		kit.Must(t, os.WriteFile(file, row.forge(text), 0o660))
		_, entries := s.rebuilt()
		e := entries["good"]
		if e.State != row.state || e.Source != ledger.Kept || e.NeedsReconcile {
			t.Errorf("the entry is %s, %s, in doubt %v, want %s, kept, false", e.State, e.Source, e.NeedsReconcile, row.state)
		}
		if row.state == ledger.Quarantined && (!strings.Contains(e.Cause.Text, "says the note in its folder alone") || e.Attention() != ledger.InQuarantine) {
			t.Errorf("cause %+v", e.Cause)
		}
	})
}
