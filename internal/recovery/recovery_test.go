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
	drop   Drop
	book   *fill.Ledger
	claims int // claimed so far
}

func newShed(t *testing.T) *shed {
	t.Helper()
	s := &shed{t: t, path: t.TempDir(), book: fill.New(t, boltledger.Config{}, ledger.Info{Created: time.Now()})}
	s.book.Vault = "V"
	f := kit.Value(drop.Open(drop.Config{Path: s.path, Name: "acme", LedgerID: "L-1", Environment: "test", Epoch: 1}))(t)
	t.Cleanup(func() { f.Close() })
	s.drop = Drop{Name: "acme", Vault: "V", Folder: f, Rules: packager.Rules{Vault: "V", Sidecar: "metadata.json", Compression: "fast"}}
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
	c := Config{Book: s.book, Committer: s.book, Drops: []Drop{s.drop}, Environment: "test", Adopt: true, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }}
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

	c := Config{Book: s.book, Committer: s.book, Drops: []Drop{s.drop}, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys, Adopt: true, Now: func() archive.Instant { return archive.Instant{Wall: time.Now()} }}
	r, err := Rebuild(t.Context(), c)
	kit.Must(t, err)
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
	again, err := Rebuild(t.Context(), Config{Book: s.book, Committer: s.book, Drops: []Drop{s.drop}, Environment: "test", ReceiptKeys: c.ReceiptKeys, Now: c.Now})
	kit.Must(t, err)
	kit.Want(t, "done again", again.Folders.Receipts.Count, 0)
	problems, err := s.book.Verify(t.Context())
	kit.Check(t, err == nil && len(problems) <= 0, "the ledger: %v %v", problems, err)
}
