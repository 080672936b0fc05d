package recovery

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// When the status list is believed about what it leaves out.
func TestReach_I15_WhatAListProves(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	from, since := now.Add(-7*time.Hour), now.Add(-7*time.Hour)
	list := func(n int, oldest time.Time, last archive.RemoteID) (l []archive.Receipt) {
		for i := range n {
			l = append(l, archive.Receipt{Remote: archive.RemoteID(fmt.Sprint("r", i)), Updated: oldest.Add(time.Duration(n-1-i) * time.Second)})
		}
		if last != "" && n > 0 {
			l[n-1].Remote = last
		}
		return l
	}
	type row struct {
		list  []archive.Receipt
		whole bool
		since time.Time
		known archive.RemoteID
		ahead time.Duration // our clock, when the newest was registered
		want  bool
	}
	kit.Rows(t, map[string]row{
		"Empty_NothingEverRegistered":   {nil, true, since, "", 0, true},
		"Empty_ThoughSomethingWas":      {nil, true, since, "before", 0, false},
		"Short_ShowsTheNewestBefore":    {list(10, from.Add(time.Minute), "before"), true, since, "before", 0, true},
		"Short_DoesNotShowIt":           {list(10, from.Add(time.Minute), ""), true, since, "before", 0, false},
		"Short_ButNotUnderstood":        {list(10, from.Add(time.Minute), "before"), false, since, "before", 0, false},
		"Full_AllSince":                 {list(500, from.Add(time.Minute), ""), true, since, "", 0, false},
		"Full_ShowsTheNewestBefore":     {list(500, from.Add(time.Minute), "before"), true, since, "before", 0, false}, // its time is when it was updated
		"Full_GoesBackBehind":           {list(500, from.Add(-time.Hour), ""), true, since, "before", 0, true},
		"Full_GoesBackWithinTheMargin":  {list(500, from.Add(-time.Minute), ""), true, since, "before", 0, false},
		"Full_BehindButNotUnderstood":   {list(500, from.Add(-time.Hour), ""), false, since, "before", 0, false},
		"Full_OneWithoutATime":          {append(list(499, from.Add(-time.Hour), ""), archive.Receipt{Remote: "x"}), true, since, "before", 0, false},
		"Short_RestoredJustNow_ListLag": {list(10, from.Add(-time.Hour), "before"), true, now.Add(-5 * time.Hour), "before", 0, false},
		"Full_BehindButForOurClock":     {list(500, from.Add(-time.Hour), ""), true, since, "before", 2 * time.Hour, false},
		"Full_BehindInSpiteOfOurClock":  {list(500, from.Add(-3*time.Hour), ""), true, since, "before", 2 * time.Hour, true},
	}, func(t *testing.T, row row) {
		p := newComparison(Config{Grace: 24 * time.Hour, Now: func() archive.Instant { return archive.Instant{Wall: now} }, Doubt: &Doubt{From: from, Since: row.since, Told: from}})
		facts := &vaultFacts{newest: newest{remote: row.known, ahead: row.ahead}, visible: p.visibleFor(time.Time{})}
		if p.judgeList(facts, row.list, row.whole); facts.reaches != row.want {
			t.Errorf("reaches %v, want %v", facts.reaches, row.want)
		}
	})
}

// shed is a drop folder with archived folders, and an empty ledger.
type shed struct {
	t      *testing.T
	path   string
	drop   Origin
	book   *fill.Ledger
	claims int // claimed so far
}

func newShed(t *testing.T) *shed {
	t.Helper()
	s := &shed{t: t, path: t.TempDir(), book: fill.New(t, boltledger.Config{}, ledger.Info{Created: time.Now()})}
	s.book.Vault = "V"
	f := kit.Value(drop.Open(drop.Config{Path: s.path, Name: "acme", LedgerID: "L-1", Environment: "test", Epoch: 1}))(t)
	t.Cleanup(func() { f.Close() })
	s.drop = Origin{Name: "acme", Vault: "V", Folder: f, Rules: packager.Rules{Vault: "V", Sidecar: "metadata.json", Compression: "fast"}}
	return s
}

// archived makes a folder as it lies in _archived, with its receipt; change may spoil that.
func (s *shed) archived(folder string, change func(dir string, r *proof.Receipt)) archive.Key {
	s.t.Helper()
	dir := filepath.Join(s.path, "_archived", "2026-11", folder)
	kit.Must(s.t, os.MkdirAll(dir, 0o770))
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "a.pdf"), []byte(folder), 0o660))
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "metadata.json"), fmt.Appendf(nil, `{"documentType": "Invoice", "documentId": %q, "documentDate": "2026-10-31"}`, folder), 0o660))
	root := kit.Value(os.OpenRoot(dir))(s.t)
	defer root.Close()
	sealed := kit.Value(packager.ValidateFolder(s.t.Context(), root, s.drop.Rules))(s.t)
	key := archive.NewKey(time.Now())
	r := proof.Receipt{Format: "vaultd-receipt-1", Environment: "test", Key: key.String(), ClientUUID: sealed.ID.String(), BumID: archive.RemoteID("bum-" + strings.ReplaceAll(folder, " ", "-")),
		Vault: "V", DocumentID: folder, ZIP: proof.ReceiptZIP{Size: 100, SHA256: archive.Sum([]byte(folder)).String()}, Archived: "2026-11-19T10:00:00Z", Record: `{"status":"ArchivingSuccessful"}`}
	for _, f := range sealed.Files {
		r.Files = append(r.Files, proof.ReceiptFile{Path: f.Path, Size: f.Size, SHA256: f.SHA256.String()})
	}
	if change != nil {
		change(dir, &r)
	}
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, receiptName), proof.Sign(r.Encode(), s.book), 0o660))
	return key
}

// I2: a rebuild knows a document by the identity that it got where another
// sidecar had named its own, and by a generation of that.
func TestRebuild_I2_ALaterDerivation(t *testing.T) {
	s := newShed(t)
	later := map[string]func(archive.ID) archive.ID{
		"next":       func(id archive.ID) archive.ID { return id.Derivation(1) },
		"generation": func(id archive.ID) archive.ID { return id.Derivation(archive.MaxDerivation).Generation(2) },
		"beyond":     func(id archive.ID) archive.ID { return id.Derivation(archive.MaxDerivation + 1) },
	}
	for name, of := range later {
		s.archived(name, func(_ string, r *proof.Receipt) {
			r.ClientUUID = of(kit.Value(archive.ParseID(r.ClientUUID))(t)).String()
		})
	}
	c := Config{Book: s.book, Committer: s.book, Drops: []Origin{s.drop}, Environment: "test", Adopt: true, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }}
	r := kit.Value(Rebuild(t.Context(), c))(t)
	kit.Want(t, "folders that differ from their receipts", r.Folders.Differ.Count, 1)
}

// I12, I15: a rebuild believes a receipt only where it can, names what it does not, and makes one entry of it.
func TestRebuild_I12_ReceiptsAndWhatIsNone(t *testing.T) {
	s := newShed(t)
	good := s.archived("good", nil)
	changed := s.archived("changed since", func(dir string, _ *proof.Receipt) {
		kit.Must(t, os.WriteFile(filepath.Join(dir, "a.pdf"), []byte("something else"), 0o660))
	})
	s.archived("late", func(_ string, r *proof.Receipt) {
		id := kit.Value(archive.ParseID(r.ClientUUID))(t)
		r.ClientUUID = id.Generation(archive.MaxGeneration).String()
	})
	s.archived("production", func(_ string, r *proof.Receipt) { r.Environment = "production" })
	s.archived("other vault", func(_ string, r *proof.Receipt) { r.Vault = "W" })
	s.archived("no record", func(_ string, r *proof.Receipt) { r.Record = "" })
	s.archived("bad number", func(_ string, r *proof.Receipt) { r.BumID = "../x" })
	s.archived("newer form", func(_ string, r *proof.Receipt) { r.Format = "vaultd-receipt-9" })
	s.archived("same number", func(_ string, r *proof.Receipt) { r.BumID = "bum-good" })
	kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_archived", "2026-11", "no receipt"), 0o770))
	kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_archived", "not a month", "good"), 0o770))
	kit.Must(t, os.Symlink("/etc", filepath.Join(s.path, "_archived", "2026-11", "link")))
	kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_rejected", "Huber 88"), 0o770))
	kit.Must(t, os.WriteFile(filepath.Join(s.path, "_rejected", "Huber 88", reasonName), []byte("\ufeffNOT ARCHIVED. Why.\r\n"), 0o660))
	kit.Must(t, os.WriteFile(filepath.Join(s.path, "_rejected", "Huber 88", "metadata.json"), []byte(`{"documentId": "D1", "documentDate": "31.10.2026"}`), 0o660))

	c := Config{Book: s.book, Committer: s.book, Drops: []Origin{s.drop}, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys, Adopt: true, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }}
	r := kit.Value(Rebuild(t.Context(), c))(t)
	entries := map[string]ledger.Entry{}
	kit.Must(t, s.book.EntriesOldestFirst(func(e ledger.Entry) error { entries[e.Folder] = e; return nil }))
	if f := r.Folders; f.Unbelieved.Count+r.Waits != 7 || f.Differ.Count != 1 || f.Returned.Count != 1 || len(entries) != 4 && len(entries) != 5 {
		t.Errorf("%+v\n%d entries, %d waits", f, len(entries), r.Waits)
	}
	e := entries["changed since"]
	kit.Check(t, e.Key == changed && e.State == ledger.Archived && e.NeedsReconcile, "changed since: %+v", e)
	if e := entries["Huber 88"]; e.State != ledger.Rejected || e.Source != ledger.Returned || e.Dest != "_rejected/Huber 88" || e.Cause.Text != "NOT ARCHIVED. Why.\n" || !e.NeedsReconcile {
		t.Errorf("returned: %+v", e)
	} else if doc, _, err := s.book.Document(e.Key); err != nil || doc.AsRead.Number != "D1" || doc.AsRead.Date != "31.10.2026" {
		t.Errorf("of the returned folder %+v is known, %v", doc, err)
	}
	var one ledger.Entry
	for _, e := range entries {
		if e.ArchivedRemote == "bum-good" {
			kit.Want(t, "two entries have the same bumId", one.Key, (archive.Key{}))
			one = e
		}
	}
	if e, ok := entries["good"]; ok && (e.Key != good || e.Source != ledger.Kept || e.Dest != "_archived/2026-11/good" || !e.DisposeAt.IsZero() || !e.NeedsReconcile) {
		t.Errorf("good: %+v", e)
	}
	again, err := Rebuild(t.Context(), Config{Book: s.book, Committer: s.book, Drops: []Origin{s.drop}, Environment: "test", ReceiptKeys: c.ReceiptKeys, Now: c.Now})
	kit.Must(t, err)
	kit.Want(t, "done again", again.Folders.Receipts.Count, 0)
	problems, err := s.book.Verify(t.Context())
	kit.Check(t, err == nil && len(problems) <= 0, "the ledger: %v %v", problems, err)
}

// newOutbox is a shed whose drop is one of the business network.
func newOutbox(t *testing.T) *shed {
	t.Helper()
	s := newShed(t)
	s.path = t.TempDir()
	f := kit.Value(drop.Open(drop.Config{Path: s.path, Name: "out", LedgerID: "L-1", Environment: "test", Epoch: 1}))(t)
	t.Cleanup(func() { f.Close() })
	s.drop = Origin{Name: "out", Route: ledger.Network, Folder: f, Rules: packager.Rules{Sidecar: "document.json", Compression: "fast", Complete: "marker"}, Network: packager.NetworkRules{
		Check: func([]byte) []packager.DocumentFault { return []packager.DocumentFault{{Text: "is refused today"}} },
		Read:  networkapi.ReadMetadata, MaxDocument: networkapi.MaxDocument,
		CheckFileName: func(string) (string, bool) { return "no such files today", false },
	}}
	return s
}

// folder makes a folder with a document and, unless it is bare, one file.
func (s *shed) folder(under, name string, bare bool) string {
	s.t.Helper()
	dir := filepath.Join(s.path, under, name)
	kit.Must(s.t, os.MkdirAll(dir, 0o770))
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "document.json"), fmt.Appendf(nil, `{"documentType":"Invoice","data":{"externalDocumentIdentifier":{"id":%q},"issueDate":"2026-10-31",
		"documentCurrencyCode":"EUR","accountingSupplierParty":{"partyName":"S"},"accountingCustomerParty":{"partyName":"C"}},
		"processingPreference":{"sentTo":{"id":"1234567890123","schemeId":"GLN"}}}`, name), 0o660))
	if !bare {
		kit.Must(s.t, os.WriteFile(filepath.Join(dir, "a.pdf"), []byte(name), 0o660))
	}
	return dir
}

// sealedAs reads a folder as the packer would.
func (s *shed) sealedAs(dir string) packager.Sealed {
	s.t.Helper()
	root := kit.Value(os.OpenRoot(dir))(s.t)
	defer root.Close()
	sealed := kit.Value(packager.ValidateNetwork(s.t.Context(), root, s.drop.networkRules()))(s.t)
	return sealed
}

// delivered makes a folder as it lies in _delivered, with its note; change may spoil that.
func (s *shed) delivered(name string, bare bool, generation int, change func(dir string, n *proof.Delivery)) archive.Key {
	s.t.Helper()
	dir := s.folder("_delivered/2026-11", name, bare)
	sealed := s.sealedAs(dir)
	e := ledger.Entry{Key: archive.NewKey(time.Now()), Route: ledger.Network, ID: sealed.ID, State: ledger.Delivered, SeenAt: time.Now(), RegisteredAt: time.Now(), UploadedAt: time.Now(),
		Package: archive.Package{Size: 100, SHA256: archive.Sum([]byte(name))}, Body: archive.Sum([]byte("body")), StoredFiles: []archive.FileID{"f-1"}, Means: ledger.EmailDelivery}
	if generation > 0 {
		e.ID = sealed.ID.Generation(generation)
	}
	e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: e.OwnNumber()}, Fate: ledger.Succeeded}}
	note := kit.Value(proof.NewDelivery("test", e, ledger.Document{Metadata: sealed.Document.Metadata(), Files: sealed.Files}, nil))(s.t)
	if change != nil {
		change(dir, &note)
	}
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, deliveryName), proof.Sign(note.Encode(), s.book), 0o660))
	return e.Key
}

// rebuilt rebuilds the ledger from the folders and ends the doubt, and returns the entries by the names of their folders.
func (s *shed) rebuilt() (Report, map[string]ledger.Entry) {
	s.t.Helper()
	c := Config{Book: s.book, Committer: s.book, Drops: []Origin{s.drop}, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys, Adopt: true, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }}
	r, err := Rebuild(s.t.Context(), c)
	kit.Must(s.t, err)
	c.Doubt = &Doubt{Since: time.Now()}
	_, err = Reconcile(s.t.Context(), c)
	kit.Must(s.t, err)
	entries := map[string]ledger.Entry{}
	kit.Must(s.t, s.book.EntriesOldestFirst(func(e ledger.Entry) error { entries[e.Folder] = e; return nil }))
	problems, err := s.book.Verify(s.t.Context())
	kit.Check(s.t, err == nil && len(problems) <= 0, "the ledger: %v %v", problems, err)
	return r, entries
}

// I2, I12: a ledger that is made anew takes in what the business network delivered, by the note and the files beside it, whatever a document may
// hold today. The same folder dropped again is a duplicate. A note that does not fit its folder proves nothing.
func TestRebuild_I2_NetworkDeliveryNotes(t *testing.T) {
	s := newOutbox(t)
	keys := map[string]archive.Key{"good": s.delivered("good", false, 0, nil), "bare": s.delivered("bare", true, 0, nil), "later": s.delivered("later", false, archive.MaxGeneration, nil)}
	write := func(name, text string) func(string, *proof.Delivery) {
		return func(dir string, _ *proof.Delivery) {
			kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o660))
		}
	}
	s.delivered("other file", false, 0, write("a.pdf", "something else"))
	s.delivered("one more", false, 0, write("b.pdf", "new"))
	s.delivered("other document", false, 0, write("document.json", `{"documentType":"Invoice","data":{"externalDocumentIdentifier":{"id":"9"}}}`))
	s.delivered("no document", false, 0, func(dir string, _ *proof.Delivery) { kit.Must(t, os.Remove(filepath.Join(dir, "document.json"))) })
	s.delivered("other number", false, 0, func(_ string, n *proof.Delivery) { n.BumID = archive.NewBumID("x") })
	s.delivered("other identity", false, 0, func(_ string, n *proof.Delivery) {
		id := archive.ID{9}
		n.ID, n.BumID = id.String(), archive.NewBumID(id.String())
	})
	s.delivered("a PDF", false, 0, func(_ string, n *proof.Delivery) { n.Route = ledger.PDF })
	s.delivered("bad file number", false, 0, func(_ string, n *proof.Delivery) { n.StoredFiles = []archive.FileID{"a/b"} })

	r, entries := s.rebuilt()
	f := r.Folders
	kit.Check(t, f.Unbelieved.Count == 8 && f.Receipts.Count == 3 && len(entries) == 3, "%d entries: %+v", len(entries), f)
	for name, key := range keys {
		e := entries[name]
		if e.Key != key || e.State != ledger.Delivered || e.Source != ledger.Kept || e.NeedsReconcile || e.Means != ledger.EmailDelivery || e.Body != archive.Sum([]byte("body")) || e.Number.IsZero() {
			t.Errorf("%s: %+v, want e.Key = %v, e.State = ledger.Delivered, e.Source = ledger.Kept, not e.NeedsReconcile, e.Means = ledger.EmailDelivery, e.Body = %v, not e.Number.IsZero()", name, e, key, archive.Sum([]byte("body")))
			continue
		}
		again := s.sealedAs(filepath.Join(s.path, e.Dest))
		found, known, err := s.book.FindByID(again.ID)
		kit.Must(t, err)
		v := ledger.CompareIdentity(e, ledger.Sealed{ID: again.ID, Content: again.Content, Metadata: again.MetadataDigest}, ledger.Network, "")
		kit.Check(t, known && found == key && v == ledger.Same, "%s dropped again: known %v, verdict %d", name, known, v)
		if doc, known, err := s.book.Document(key); err != nil || !known {
			t.Errorf("%s: %v, %v, want no error, known", name, known, err)
		} else if d, err := archive.ParseMetadata(doc.Metadata); err != nil || d.Number != name || len(d.RecipientIDs) == 0 {
			t.Errorf("%s: it says %+v, %v", name, d, err)
		}
	}
	again, _ := s.rebuilt()
	kit.Check(t, again.Folders.Receipts.Count == 0, "done again: %+v", again.Folders.Receipts)
}

// I2: an undelivered document that was dropped again has two notes. Both are taken in, and the number of the second is known as its own.
func TestRebuild_I2_BothGenerationsOfADocument(t *testing.T) {
	s := newOutbox(t)
	s.delivered("twice", false, 0, nil)
	second := s.delivered("twice", false, 1, nil)
	kit.Must(t, os.Rename(filepath.Join(s.path, "_delivered/2026-11/twice"), filepath.Join(s.path, "_delivered/2026-11/twice (2)")))
	first := s.delivered("twice", false, 0, nil)
	r, entries := s.rebuilt()
	one, two := entries["twice"], entries["twice (2)"]
	if r.Folders.Unbelieved.Count != 0 || one.Key != first || two.Key != second || one.OwnNumber() == two.OwnNumber() || two.ID != one.ID.Generation(1) {
		t.Errorf("%+v\n%+v\n%+v\nwant r.Folders.Unbelieved.Count = 0, one.Key = %v, two.Key = %v, one.OwnNumber() other than %v, two.ID = %v", r.Folders, one, two, first, second, two.OwnNumber(), one.ID.Generation(1))
	}
	for _, e := range []ledger.Entry{one, two} {
		key, known, err := s.book.FindByRemote(e.OwnNumber())
		kit.Check(t, err == nil && known && key == e.Key, "a notification about %s goes to %v, %v", e.Folder, key, err)
	}
}

// I2: what was being sent when the ledger was lost is in quarantine, and nothing sends it by itself. It has its number again, unless vaultd would
// refuse it today. What a person closed in doubt comes back with its identity, so that it is not sent again when it is dropped again.
func TestRebuild_I2_NetworkFoldersInDoubt(t *testing.T) {
	kit.Rows(t, map[string]bool{"AsBefore": false, "RefusedToday": true}, func(t *testing.T, isRefused bool) {
		s := newOutbox(t)
		if !isRefused {
			s.drop.Rules.Complete, s.drop.Network.Check, s.drop.Network.CheckFileName = "", s.drop.networkRules().Check, s.drop.networkRules().CheckFileName
		}
		key := archive.NewKey(time.Now())
		underWay := s.sealedAs(s.folder(".vaultd/claimed/"+key.String(), "under way", false)).ID
		closed := s.folder("_rejected", "closed", false)
		id := s.sealedAs(closed).ID
		kit.Must(t, os.WriteFile(filepath.Join(closed, reasonName), []byte(ledger.ClosedInDoubt+". Nobody could tell.\r\n"), 0o660))
		kit.Must(t, os.WriteFile(filepath.Join(s.folder("_rejected", "not delivered", false), reasonName), []byte("NOT DELIVERED. Why.\r\n"), 0o660))
		_, entries := s.rebuilt()
		e := entries["under way"]
		if e.Key != key || e.State != ledger.Quarantined || e.Cause.Code != ledger.CauseDeliveryUnknown || e.NeedsReconcile || e.ID.IsZero() != isRefused {
			t.Errorf("%+v, want e.Key = %v, e.State = ledger.Quarantined, e.Cause.Code = ledger.CauseDeliveryUnknown, not e.NeedsReconcile, e.ID.IsZero() = %v", e, key, isRefused)
		}
		_, _, due := ledger.Due(e)
		kit.Check(t, !due, "something is done with it by itself")
		by, _, err := s.book.FindByRemote(archive.NewBumID(underWay.String()))
		kit.Check(t, err == nil && (by == key || isRefused), "what the network tells of it goes to %s, %v", by, err)
		e = entries["closed"]
		kit.Check(t, e.State == ledger.Rejected && e.InDoubt && e.ID == id, "%+v, want e.State = ledger.Rejected, e.InDoubt, e.ID = %v", e, id)
		e = entries["not delivered"]
		kit.Check(t, e.State == ledger.Rejected && !e.InDoubt && e.ID.IsZero(), "%+v, want e.State = ledger.Rejected, not e.InDoubt, e.ID.IsZero()", e)
	})
}
