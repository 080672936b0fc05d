package recovery

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// claimed lets a folder be dropped and taken, and then happen to its entry what evs say.
func (s *shed) claimed(folder, number string, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	dir, now := filepath.Join(s.path, folder), time.Now()
	kit.Must(s.t, os.Mkdir(dir, 0o770))
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "a.pdf"), []byte(number), 0o660))
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "metadata.json"), fmt.Appendf(nil, `{"documentType": "Invoice", "documentId": %q, "documentDate": "2026-10-31"}`, number), 0o660))
	c := kit.Value(s.drop.Folder.ClaimFolder(folder, now))(s.t)
	all := append([]ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "acme", Folder: folder, Node: ledger.Node(c.Inode)}}, evs...)
	return s.told(c.Key, 0, all...)
}

// told commits events of an entry.
func (s *shed) told(key archive.Key, rev uint32, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	return s.book.Commit(ledger.Change{Key: key, Rev: rev, At: archive.Instant{Wall: time.Now()}, Events: evs})
}

// packs gives what a claimed folder is packed as.
func (s *shed) packs(e ledger.Entry) (ledger.Sealed, ledger.Document) {
	s.t.Helper()
	root := kit.Value(os.OpenRoot(s.claim(e)))(s.t)
	defer root.Close()
	got := kit.Value(packager.ValidateFolder(s.t.Context(), root, s.drop.Rules))(s.t)
	doc, pkg := ledger.Document{Metadata: got.Metadata, Files: got.Files}, archive.Package{Size: 10, SHA256: archive.Sum([]byte("zip"))}
	return ledger.Sealed{ID: got.ID, Content: got.Content, Metadata: archive.Sum(got.Metadata), Package: pkg, Seal: doc.Seal(pkg)}, doc
}

// packed packs it, and lets evs happen then.
func (s *shed) packed(e ledger.Entry, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	sealed, doc := s.packs(e)
	return s.book.Commit(ledger.Change{Key: e.Key, Rev: e.Rev, At: archive.Instant{Wall: time.Now()}, Document: &doc, Events: append([]ledger.Event{sealed}, evs...)})
}

func (s *shed) claim(e ledger.Entry) string {
	return filepath.Join(s.path, ".vaultd", "claimed", e.Key.String(), e.Folder)
}

func (s *shed) entry(key archive.Key) ledger.Entry {
	s.t.Helper()
	e, ok, err := s.book.Entry(key)
	if kit.Must(s.t, err); !ok {
		s.t.Fatal("there is no entry")
	}
	return e
}

// I1, I25: an entry whose folder went away in the lost time is told where that lies now; a person ends it, and it rests.
func TestReconcile_I1_I25_TheFolderWentAwayMeanwhile(t *testing.T) {
	tooSoon := ledger.Refused{Cause: ledger.Cause{Code: "x"}}
	type row struct {
		packed bool
		evs    []ledger.Event
		to     string // empty: removed
		state  ledger.State
		source ledger.Source
		dest   string
	}
	kit.Rows(t, map[string]row{
		"NotPacked_Removed":        {state: ledger.Quarantined, source: ledger.Gone},
		"NotPacked_GivenBack":      {to: "_rejected/f", state: ledger.Quarantined, source: ledger.Returned, dest: "_rejected/f"},
		"NotPacked_Repeated":       {to: "_duplicates/f (2)", state: ledger.Quarantined, source: ledger.Returned, dest: "_duplicates/f (2)"},
		"Packed_Removed":           {packed: true, state: ledger.Quarantined, source: ledger.Gone},
		"Packed_GivenBack":         {packed: true, to: "_rejected/f", state: ledger.Quarantined, source: ledger.Returned, dest: "_rejected/f"},
		"Packed_AnotherOfItsInode": {packed: true, to: "_rejected/g", state: ledger.Quarantined, source: ledger.Gone},
		"Rejected_GivenBack":       {evs: []ledger.Event{tooSoon}, to: "_rejected/f", state: ledger.Rejected, source: ledger.Returned, dest: "_rejected/f"},
		"Rejected_TakenAway":       {evs: []ledger.Event{tooSoon, ledger.PlaceIntended{Dest: "_rejected/f"}}, state: ledger.Rejected, source: ledger.Gone},
		"Packed_StillThere":        {packed: true, to: "stays", state: ledger.Packaged, source: ledger.Claimed},
	}, func(t *testing.T, row row) {
		s, now := newShed(t), time.Now()
		e := s.claimed("f", "N1", row.evs...)
		if row.packed {
			e = s.packed(e)
		}
		e = s.told(e.Key, e.Rev, ledger.ReconcileRequired{})
		switch row.to {
		case "":
			kit.Must(t, os.RemoveAll(s.claim(e)))
		case "stays":
		default:
			kit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.path, row.to)), 0o770))
			kit.Must(t, os.Rename(s.claim(e), filepath.Join(s.path, row.to)))
		}
		s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
		e = s.entry(e.Key)
		if e.NeedsReconcile || e.State != row.state || e.Source != row.source || e.Dest != row.dest {
			t.Fatalf("%s/%s at %q, unreconciled %v", e.State, e.Source, e.Dest, e.NeedsReconcile)
		}
		if e.State == ledger.Packaged {
			return
		}
		e = s.told(e.Key, e.Rev, ledger.Closed{})
		if _, _, due := ledger.Due(e); e.State != ledger.Rejected || due || !e.IsAtRest() {
			t.Errorf("closed: %s/%s, due %v", e.State, e.Source, due)
		}
	})
}

// I2: where the archive may have the package, its word decides and nobody else does.
func TestReconcile_I2_TheFolderOfWhatWasSentWentAway(t *testing.T) {
	s, now := newShed(t), time.Now()
	e := s.claimed("f", "N1")
	e = s.packed(e, ledger.RegisterIntended{}, fill.Ticket("R1", now, ledger.Vault),
		ledger.UploadIntended{})
	doc, _, err := s.book.Document(e.Key)
	kit.Must(t, err)
	e = s.told(e.Key, e.Rev, ledger.UploadAccepted{Sent: e.Package.SHA256, Seal: doc.Seal(e.Package)}, ledger.ReconcileRequired{})
	kit.Must(t, os.RemoveAll(s.claim(e)))
	doubt := Doubt{From: now.Add(-time.Hour), Since: now}
	service := spoken{list: []archive.Receipt{{Remote: "R1", ID: e.ID, Status: archive.InProgress, Updated: now}}}
	if r := s.compared(service, doubt); r.Waits != 1 || s.entry(e.Key).State != ledger.Uploaded {
		t.Fatalf("%d wait, %s", r.Waits, s.entry(e.Key).State)
	}
	done := archive.Receipt{Remote: "R1", ID: e.ID, Status: archive.Successful, Updated: now, Record: []byte("a")}
	s.told(e.Key, s.entry(e.Key).Rev, ledger.StatusSeen{Receipt: done, Grace: time.Hour})
	s.compared(spoken{list: []archive.Receipt{done}, index: []archive.IndexRecord{{Remote: "R1", ArchivedAt: now, Raw: []byte("a")}}}, doubt)
	if e = s.entry(e.Key); e.NeedsReconcile || e.State != ledger.Archived || e.Source != ledger.Gone {
		t.Errorf("%s/%s, unreconciled %v", e.State, e.Source, e.NeedsReconcile)
	}
}

// I2: that holds for what may be there until nothing can be under way any more.
func TestReconcile_I2_TheFolderOfWhatMayBeSentWentAway(t *testing.T) {
	for passed, decides := range map[time.Duration]bool{24*time.Hour - time.Second: true, 24 * time.Hour: false} {
		s, now := newShed(t), time.Now()
		e := s.claimed("f", "N1")
		e = s.packed(e, ledger.RegisterIntended{}, fill.Ticket("R1", now, ledger.Vault),
			ledger.UploadIntended{}, ledger.UploadUnanswered{}, ledger.WindowClosed{}, ledger.ReconcileRequired{})
		kit.Must(t, os.RemoveAll(s.claim(e)))
		r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: spoken{date: now.Add(passed)}, Drops: []Origin{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
			Now: func() archive.Instant { return archive.Instant{Wall: now.Add(passed)} }, Doubt: &Doubt{From: now.Add(-time.Hour), Since: now, Told: now}})
		kit.Must(t, err)
		if r.Waits > 0 != decides || s.entry(e.Key).NeedsReconcile != decides {
			t.Errorf("after %v: %d wait: %+v", passed, r.Waits, r.Waiting)
		}
	}
}

// I9: what is being archived while it is compared, and has neither an entry nor a folder here, is not forgotten.
func TestReconcile_I9_OnItsWayAndNoFolder(t *testing.T) {
	s, now := newShed(t), time.Now()
	doubt, id := Doubt{From: now.Add(-time.Hour), Since: now}, archive.ID{15: 9}
	under := archive.Receipt{Remote: "R1", ID: id, Status: archive.InProgress, Updated: now}
	for range 2 { // once, however often it is compared
		r := s.compared(spoken{list: []archive.Receipt{under}}, doubt)
		if r.Differences() != 0 || r.Waits != 1 {
			t.Fatalf("%d differ, %d wait", r.Differences(), r.Waits)
		}
	}
	key, ok, err := s.book.FindByRemote("R1")
	kit.Must(t, err)
	e := s.entry(key)
	step, _, due := ledger.Due(e)
	if !ok || e.State != ledger.Uploaded || e.Source != ledger.Gone || e.ID != id || !due || step != ledger.Ask {
		t.Fatalf("%v: %s/%s, %s is due: %v", ok, e.State, e.Source, step, due)
	}
	t.Run("Archived", func(t *testing.T) {
		done := archive.Receipt{Remote: "R1", ID: id, Status: archive.Successful, Updated: now, Record: []byte("a")}
		s.told(key, e.Rev, ledger.StatusSeen{Receipt: done, Grace: time.Hour})
		s.compared(spoken{list: []archive.Receipt{done}, index: []archive.IndexRecord{{Remote: "R1", ArchivedAt: now, Raw: []byte("a")}}}, doubt)
		if e := s.entry(key); e.NeedsReconcile || e.State != ledger.Archived || !e.IsAtRest() {
			t.Errorf("%s/%s, unreconciled %v", e.State, e.Source, e.NeedsReconcile)
		}
	})
	t.Run("Failed", func(t *testing.T) {
		s := newShed(t)
		s.compared(spoken{list: []archive.Receipt{under}}, doubt)
		key, _, err := s.book.FindByRemote("R1")
		kit.Must(t, err)
		failed := archive.Receipt{Remote: "R1", ID: id, Status: archive.Failed, Updated: now}
		for h := 25; s.entry(key).State != ledger.Packaged && h < 100; h++ {
			s.book.Commit(ledger.Change{Key: key, Rev: s.entry(key).Rev, At: archive.Instant{Wall: now.Add(time.Duration(h) * time.Hour)},
				Events: []ledger.Event{ledger.StatusSeen{Receipt: failed, Grace: 24 * time.Hour}}})
		}
		s.compared(spoken{list: []archive.Receipt{failed}}, doubt)
		if e := s.entry(key); e.NeedsReconcile || e.State != ledger.Quarantined || e.Source != ledger.Gone {
			t.Errorf("%s/%s, unreconciled %v", e.State, e.Source, e.NeedsReconcile)
		}
	})
}

// I15, I25: a folder that waits for another one of the same invoice does not keep safe mode for ever: its identity is
// known, and the other entry stands for it.
func TestReconcile_I25_ASecondFolderOfTheSameInvoice(t *testing.T) {
	s, now := newShed(t), time.Now()
	first := s.claimed("f", "N1")
	first = s.packed(first, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "x"}})
	second := s.claimed("f again", "N1", ledger.Postponed{Cause: ledger.Cause{Code: "same-invoice-under-way"}, WaitsFor: first.Key}, ledger.ReconcileRequired{})
	other := s.claimed("g", "N2", ledger.ReconcileRequired{})
	r := s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
	if r.Unpacked != 1 || r.Waits != 2 {
		t.Errorf("%d not packed, %d wait", r.Unpacked, r.Waits)
	}
	for _, e := range []ledger.Entry{second, other} {
		if e = s.entry(e.Key); !e.NeedsReconcile || e.State != ledger.Discovered {
			t.Errorf("%s is %s, unreconciled %v", e.Folder, e.State, e.NeedsReconcile)
		}
	}
}

// I2: what the archive has of a folder that is not packed yet is that folder's, whatever generation it went by.
func TestReconcile_I2_NotPackedYetAndArchivedByALaterGeneration(t *testing.T) {
	s, now := newShed(t), time.Now()
	e := s.claimed("f", "N1", ledger.ReconcileRequired{})
	sealed, _ := s.packs(e)
	id := sealed.ID.Generation(archive.MaxGeneration)
	rc := archive.Receipt{Remote: "R1", ID: id, Status: archive.Successful, Updated: now, Record: []byte("a")}
	service := spoken{list: []archive.Receipt{rc}, index: []archive.IndexRecord{{Remote: "R1", ArchivedAt: now, Raw: []byte("a")}}, single: map[archive.RemoteID]archive.Receipt{"R1": rc}}
	doubt := Doubt{From: now.Add(-time.Hour), Since: now}
	if r := s.compared(service, doubt); r.Vaults[0].TakenIn.Count != 0 || r.Unpacked != 1 {
		t.Fatalf("%d taken in, %d not packed", r.Vaults[0].TakenIn.Count, r.Unpacked)
	}
	s.packed(s.entry(e.Key))
	s.compared(service, doubt)
	if e = s.entry(e.Key); e.State != ledger.Archived || e.ArchivedRemote != "R1" {
		t.Errorf("%s as %q", e.State, e.ArchivedRemote)
	}
}

// I2: the archive has a folder that is still to be packed by the identity that
// it got because another sidecar named its own. That is our own document.
func TestReconcile_I2_NotPackedYetAndArchivedByALaterDerivation(t *testing.T) {
	s, now := newShed(t), time.Now()
	e := s.claimed("f", "N1", ledger.ReconcileRequired{})
	sealed, _ := s.packs(e)
	other := s.claimed("g", "N2")
	chosen, doc := s.packs(other)
	chosen.ID, chosen.IDFromSidecar = sealed.ID, true
	s.book.Commit(ledger.Change{Key: other.Key, Rev: other.Rev, At: archive.Instant{Wall: now}, Document: &doc, Events: []ledger.Event{chosen}})
	rc := archive.Receipt{Remote: "R1", ID: sealed.ID.Derivation(1), Status: archive.Successful, Updated: now, Record: []byte("a")}
	service := spoken{list: []archive.Receipt{rc}, index: []archive.IndexRecord{{Remote: "R1", ArchivedAt: now, Raw: []byte("a")}}, single: map[archive.RemoteID]archive.Receipt{"R1": rc}}
	r := s.compared(service, Doubt{From: now.Add(-time.Hour), Since: now})
	kit.Want(t, "documents that are taken in as nobody's", r.Vaults[0].TakenIn.Count, 0)
	kit.Want(t, "folders that are not packed", r.Unpacked, 1)
}
