package recovery

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

const receiving = "ap@in.example"

// newScans is a shed whose drop is one of single PDFs.
func newScans(t *testing.T) *shed {
	t.Helper()
	s := newShed(t)
	s.path = t.TempDir()
	f := kit.Value(drop.Open(drop.Config{Path: s.path, Name: "scans", LedgerID: "L-1", Environment: "test", Epoch: 1}))(t)
	t.Cleanup(func() { f.Close() })
	s.drop = Origin{Name: "scans", Route: ledger.PDF, PDF: packager.PDFRules{Receiving: receiving, Notify: "clerk@acme.example"}, Folder: f}
	return s
}

// pdf puts a PDF where the entry of a drop of single PDFs has it.
func (s *shed) pdf(under, name, content string) (dir string) {
	s.t.Helper()
	dir = filepath.Join(s.path, under, name)
	kit.Must(s.t, os.MkdirAll(dir, 0o770))
	s.write(dir, name, content)
	return dir
}

// write puts a file into a folder.
func (s *shed) write(dir, name, content string) {
	s.t.Helper()
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o660))
}

// noteDelivery puts the delivery note of a PDF beside it.
func (s *shed) noteDelivery(dir string, key archive.Key, is ledger.Sealed) {
	s.t.Helper()
	e := ledger.Entry{Key: key, Route: ledger.PDF, ID: is.ID, Package: is.Package, State: ledger.Delivered, UploadedAt: time.Now(),
		Registrations: []ledger.Registration{{Ticket: archive.Ticket{Remote: "b1"}, Fate: ledger.Succeeded}}}
	note := kit.Value(proof.NewDelivery("test", e, ledger.Document{Metadata: archive.PDFRequest{Receiving: receiving}.Encode(),
		Files: []archive.File{{Path: "scan.pdf", Size: is.Package.Size, SHA256: is.Package.SHA256}}}, nil))(s.t)
	s.write(dir, "_DELIVERED.txt", "DELIVERED")
	s.write(dir, deliveryName, string(proof.Sign(note.Encode(), s.book)))
}

// taken lets a PDF be taken, and then happen to its entry what evs say.
func (s *shed) taken(name, content string, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	s.claims++ // keys of one millisecond are in random order, and the comparison follows their order
	key := archive.NewKey(time.Now().Add(time.Duration(s.claims) * time.Millisecond))
	s.pdf(filepath.Join(".vaultd/claimed", key.String()), name, content)
	dir, c, err := s.drop.Folder.OpenClaimed(key)
	kit.Must(s.t, err)
	kit.Must(s.t, dir.Close())
	return s.told(key, 0, append([]ledger.Event{ledger.ClaimedFolder{Route: ledger.PDF, Drop: "scans", Folder: name, Node: ledger.Node(c.Inode)}}, evs...)...)
}

// pdfSealed is what a PDF with a content is packed as when it goes to an address.
func pdfSealed(content, to string) (ledger.Sealed, ledger.Document) {
	sum := archive.Sum([]byte(content))
	doc, pkg := ledger.Document{Files: []archive.File{{Path: "x.pdf", Size: int64(len(content)), SHA256: sum}}}, archive.Package{Size: int64(len(content)), SHA256: sum}
	return ledger.Sealed{ID: archive.DerivePDFID(to, sum), Content: sum, Metadata: archive.ReceivingDigest(to), Package: pkg, Seal: doc.Seal(pkg)}, doc
}

// sealed is taken for a PDF that was packed before evs happened.
func (s *shed) sealed(name, content, to string, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	e := s.taken(name, content)
	ev, doc := pdfSealed(content, to)
	return s.book.Commit(ledger.Change{Key: e.Key, Rev: e.Rev, At: archive.Instant{Wall: time.Now()}, Document: &doc, Events: append([]ledger.Event{ev}, evs...)})
}

// I2: a PDF that was under way when its ledger was put back was perhaps delivered, and only its bytes tell that it is the same one when a clerk
// moves it in again. So the entry learns them, wherever the file lies now, and a person who closes it leaves an entry that says no.
func TestReconcile_I2_APDFThatWasNeverPackedIsIdentified(t *testing.T) {
	const content = "%PDF-1.7 the same bytes\n%%EOF\n"
	refused := ledger.Refused{Cause: ledger.Cause{Code: "x"}}
	want, _ := pdfSealed(content, receiving)
	for name, row := range map[string]struct {
		before     func(s *shed) ledger.Entry // another entry of the same bytes
		meanwhile  func(s *shed, e ledger.Entry)
		unknown    bool // another entry stands for it, or nobody can tell
		supersedes bool
		twin       bool
		source     ledger.Source
	}{
		"StillThere": {source: ledger.Claimed},
		"GivenBack": {source: ledger.Returned, meanwhile: func(s *shed, e ledger.Entry) {
			dir := filepath.Join(s.path, "_rejected", "scan.pdf")
			kit.Must(t, os.MkdirAll(filepath.Dir(dir), 0o770))
			kit.Must(t, os.Rename(s.claim(e), dir))
			kit.Must(t, os.WriteFile(filepath.Join(dir, reasonName), []byte(ledger.ClosedInDoubt+". Nobody could tell.\r\n"), 0o660))
		}},
		"Delivered": {source: ledger.Kept, meanwhile: func(s *shed, e ledger.Entry) {
			dir := filepath.Join(s.path, "_delivered/2026-11", "scan.pdf")
			kit.Must(t, os.MkdirAll(filepath.Dir(dir), 0o770))
			kit.Must(t, os.Rename(s.claim(e), dir))
			s.noteDelivery(dir, e.Key, want)
		}},
		"DiedBeforeTheMove": {source: ledger.Claimed, meanwhile: func(s *shed, e ledger.Entry) { s.noteDelivery(s.claim(e), e.Key, want) }},
		"Junk":              {source: ledger.Claimed, meanwhile: func(s *shed, e ledger.Entry) { s.write(s.claim(e), "Thumbs.db", "x") }},
		"Removed":           {source: ledger.Gone, unknown: true, meanwhile: func(s *shed, e ledger.Entry) { kit.Must(t, os.RemoveAll(s.claim(e))) }},
		"TwoFiles":          {source: ledger.Claimed, unknown: true, meanwhile: func(s *shed, e ledger.Entry) { s.write(s.claim(e), "b.pdf", content) }},
		"NoPDF":             {source: ledger.Claimed, unknown: true, meanwhile: func(s *shed, e ledger.Entry) { s.write(s.claim(e), "scan.pdf", "PK docx") }},
		"RejectedBefore":    {source: ledger.Claimed, supersedes: true, before: func(s *shed) ledger.Entry { return s.sealed("before.pdf", content, receiving, refused) }},
		"UnderWayTwice":     {source: ledger.Claimed, unknown: true, before: func(s *shed) ledger.Entry { return s.taken("before.pdf", content) }},
		"ElsewhereBefore":   {source: ledger.Claimed, twin: true, before: func(s *shed) ledger.Entry { return s.sealed("before.pdf", content, "other@in.example") }},
		"NotForElsewhere":   {source: ledger.Claimed, before: func(s *shed) ledger.Entry { return s.sealed("before.pdf", content, "other@in.example", refused) }},
		"OtherBytesBefore":  {source: ledger.Claimed, before: func(s *shed) ledger.Entry { return s.sealed("before.pdf", "%PDF-1.7 others\n%%EOF\n", receiving) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := newScans(t), time.Now()
			var first ledger.Entry
			if row.before != nil {
				first = row.before(s)
				if !first.IsAtRest() {
					first = s.told(first.Key, first.Rev, ledger.ReconcileRequired{})
				}
			}
			e := s.taken("scan.pdf", content, ledger.ReconcileRequired{})
			if row.meanwhile != nil {
				row.meanwhile(s, e)
			}
			r := s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
			kit.Need(t, r.Waits == 0 && r.Unpacked == 0, "%d wait, %d not packed: %+v", r.Waits, r.Unpacked, r.Waiting)
			e = s.entry(e.Key)
			kit.Need(t, !e.NeedsReconcile && e.State == ledger.Quarantined && e.Source == row.source && e.ID.IsZero() == row.unknown,
				"%s/%s as %s, unreconciled %v", e.State, e.Source, e.ID, e.NeedsReconcile)
			kit.Check(t, e.Supersedes.IsZero() != row.supersedes && e.SameContent.IsZero() != row.twin,
				"supersedes %s, twin %s", e.Supersedes, e.SameContent)
			closed := s.told(e.Key, e.Rev, ledger.Closed{})
			switch key, _, err := s.book.FindByID(want.ID); {
			case err != nil || !row.unknown && key != e.Key:
				t.Errorf("the same PDF again finds %s, %v", key, err)
			case name == "UnderWayTwice" && key != first.Key:
				t.Errorf("the same PDF again finds %s, and not the first one", key)
			case !row.unknown && ledger.CompareIdentity(closed, want, ledger.PDF, "") != ledger.Conflict:
				t.Error("closed in doubt, and the same PDF would be sent again")
			}
			problems, err := s.book.Verify(t.Context())
			kit.Check(t, err == nil && len(problems) <= 0, "the ledger: %v %v", problems, err)
		})
	}
}

// I12: what is identified late has the owners of its files as what was packed.
func TestReconcile_I12_OwnersOfFilesThatWereNeverPacked(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give a file to another user")
	}
	s, now := newScans(t), time.Now()
	e := s.taken("scan.pdf", "%PDF-1.7 the same bytes\n%%EOF\n", ledger.ReconcileRequired{}) // a folder of uid 0
	kit.Must(t, os.Chown(filepath.Join(s.claim(e), "scan.pdf"), 47_111, -1))
	s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
	doc, _, err := s.book.Document(e.Key)
	kit.Must(t, err)
	kit.Want(t, "owners of files", doc.FileOwners, []uint32{47_111})
}

// I2, I25: while the file cannot be looked at, its entry stays in doubt, and nobody can drop it again meanwhile. It is identified as soon as
// that is possible. A drop that is not configured any more keeps nobody from going on.
func TestReconcile_I2_APDFThatCannotBeRead(t *testing.T) {
	type row struct {
		spoil  func(s *shed, claim string) (mend func())
		unread int
	}
	kit.Rows(t, map[string]row{
		"TheDropIsAway": {func(s *shed, _ string) func() {
			there := s.drop.Folder
			s.drop.Folder = nil
			return func() { s.drop.Folder = there }
		}, 1},
		"TwoFoldersInTheClaim": {func(s *shed, claim string) func() {
			other := filepath.Join(filepath.Dir(claim), "other.pdf")
			kit.Must(t, os.Mkdir(other, 0o770))
			return func() { kit.Must(t, os.Remove(other)) }
		}, 1},
		"TheDropHasAnotherName": {func(s *shed, _ string) func() {
			s.drop.Name = "papers"
			return func() { s.drop.Name = "scans" }
		}, 0},
	}, func(t *testing.T, row row) {
		s, now := newScans(t), time.Now()
		e := s.taken("scan.pdf", "%PDF-1.7 x\n%%EOF\n", ledger.ReconcileRequired{})
		mend := row.spoil(s, s.claim(e))
		doubt := Doubt{From: now.Add(-time.Hour), Since: now}
		if r := s.compared(spoken{}, doubt); r.Waits != 1 || r.Unread.Count != row.unread || r.Unpacked != 0 || !s.entry(e.Key).NeedsReconcile {
			t.Errorf("%d wait, %d cannot be read: %+v", r.Waits, r.Unread.Count, r.Waiting)
		}
		mend()
		if r := s.compared(spoken{}, doubt); r.Waits != 0 || s.entry(e.Key).NeedsReconcile || s.entry(e.Key).ID.IsZero() {
			t.Errorf("%d wait: %+v", r.Waits, s.entry(e.Key))
		}
	})
}

// I2: what was rejected for certain may have been dropped again in the time that the ledger lost. What the folders tell of that is the later word.
func TestReconcile_I2_WhatCameAfterARejection(t *testing.T) {
	const content = "%PDF-1.7 the same bytes\n%%EOF\n"
	want, _ := pdfSealed(content, receiving)
	closedInDoubt := func(at string) func(s *shed, rejected ledger.Entry) {
		return func(s *shed, rejected ledger.Entry) {
			kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_rejected"), 0o770))
			kit.Must(t, os.Rename(s.claim(rejected), filepath.Join(s.path, "_rejected", at)))
			s.write(filepath.Join(s.path, "_rejected", at), reasonName, ledger.ClosedInDoubt+". Nobody could tell.\r\n")
		}
	}
	for name, row := range map[string]struct {
		meanwhile func(s *shed, rejected ledger.Entry)
		want      ledger.Verdict
	}{
		"Delivered": {func(s *shed, _ ledger.Entry) {
			s.noteDelivery(s.pdf("_delivered/2026-11", "scan.pdf", content), archive.NewKey(time.Now()), want)
		}, ledger.Same},
		"ClosedInDoubt":              {closedInDoubt("before (2).pdf"), ledger.Conflict},
		"ClosedInDoubtInItsOldPlace": {closedInDoubt("before.pdf"), ledger.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := newScans(t), time.Now()
			rejected := s.sealed("before.pdf", content, receiving, ledger.Closed{})
			rejected = s.told(rejected.Key, rejected.Rev, ledger.PlaceIntended{Dest: "_rejected/before.pdf"}, ledger.Placed{})
			row.meanwhile(s, rejected)
			for range 2 { // also where nothing is new
				s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
			}
			key, _, err := s.book.FindByID(want.ID)
			kit.Must(t, err)
			later := s.entry(key)
			if got := ledger.CompareIdentity(later, want, ledger.PDF, ""); key == rejected.Key || later.Supersedes != rejected.Key || got != row.want {
				t.Errorf("the same PDF again finds %s (%s), verdict %d", later.Folder, later.State, got)
			}
			n := 0
			kit.Must(t, s.book.EntriesOldestFirst(func(ledger.Entry) error { n++; return nil }))
			problems, err := s.book.Verify(t.Context())
			kit.Check(t, err == nil && len(problems) <= 0 && n == 2, "%d entries; the ledger: %v %v", n, problems, err)
		})
	}
}
