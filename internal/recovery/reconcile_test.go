package recovery

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// spoken is an archive that says what it is told to.
type spoken struct {
	date   time.Time // of its answers
	list   []archive.Receipt
	index  []archive.IndexRecord
	single map[archive.RemoteID]archive.Receipt
}

func (s spoken) Status(_ context.Context, _ archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	return s.single[r], nil
}

func (s spoken) ReadStatusList(context.Context, archive.VaultID) (archive.StatusList, error) {
	return archive.StatusList{Receipts: s.list, Whole: true, Date: s.date}, nil
}

func (s spoken) Index(context.Context, archive.VaultID, string, int, string) (vaultapi.Page, error) {
	return vaultapi.Page{Records: s.index, Found: len(s.index)}, nil
}

func (s spoken) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return vaultapi.WalkIndex(ctx, s, v, each)
}

func (spoken) CheckIndex(context.Context, archive.VaultID) error { return nil }

// doubtful puts an entry into the book that is packed and in doubt.
func (s *shed) doubtful(now time.Time) ledger.Entry {
	s.t.Helper()
	dir := s.t.TempDir()
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "a.pdf"), []byte("x"), 0o660))
	kit.Must(s.t, os.WriteFile(filepath.Join(dir, "metadata.json"), []byte(`{"documentType": "Invoice", "documentId": "N1", "documentDate": "2026-10-31"}`), 0o660))
	root := kit.Value(os.OpenRoot(dir))(s.t)
	defer root.Close()
	sealed := kit.Value(packager.ValidateFolder(s.t.Context(), root, s.drop.Rules))(s.t)
	doc := ledger.Document{Metadata: sealed.Metadata, Files: sealed.Files}
	pkg := archive.Package{Size: 10, SHA256: archive.Sum([]byte("zip"))}
	return s.book.Commit(ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Document: &doc, Events: []ledger.Event{
		ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "acme", Folder: "f"},
		ledger.Sealed{ID: sealed.ID, Content: sealed.Content, Metadata: archive.Sum(sealed.Metadata), Package: pkg, Seal: doc.Seal(pkg)},
		ledger.ReconcileRequired{},
	}})
}

// compared compares seven hours after the ledger was put back, and after the first comparison.
func (s *shed) compared(service spoken, doubt Doubt) Report {
	s.t.Helper()
	doubt.Told = doubt.Since
	r, err := Reconcile(s.t.Context(), Config{Book: s.book, Committer: s.book, Service: service, Drops: []Origin{s.drop}, Grace: 24 * time.Hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
		Now: func() archive.Instant { return archive.Instant{Wall: doubt.Since.Add(7 * time.Hour)} }, Doubt: &doubt, Adopt: true})
	kit.Must(s.t, err)
	return r
}

// I2, I15: two registrations of one document, told of in one breath, are both booked before it is cleared.
func TestReconcile_I2_I15_TwoRegistrationsOfOneEntry(t *testing.T) {
	now := time.Now()
	says := func(id archive.ID, r archive.RemoteID, w archive.ServiceStatus) archive.Receipt {
		return archive.Receipt{Remote: r, ID: id, Status: w, Updated: now, Record: []byte("a")}
	}
	two := []archive.IndexRecord{{Remote: "R1", ArchivedAt: now, Raw: []byte("a")}, {Remote: "R2", ArchivedAt: now, Raw: []byte("a")}}
	for name, row := range map[string]struct {
		first  archive.ServiceStatus
		second archive.ServiceStatus
		index  bool
		state  ledger.State
		double bool
	}{
		"WaitingThenContent_InTheList": {archive.WaitingForPackage, archive.InProgress, false, ledger.Uploaded, true},
		"ContentTwice_InTheList":       {archive.Successful, archive.Successful, false, ledger.Archived, true},
		"ContentTwice_InTheIndex":      {archive.Successful, archive.Successful, true, ledger.Archived, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShed(t)
			e := s.doubtful(now)
			r1, r2 := says(e.ID, "R1", row.first), says(e.ID, "R2", row.second)
			service := spoken{list: []archive.Receipt{r1, r2}}
			if row.index {
				service = spoken{index: two, single: map[archive.RemoteID]archive.Receipt{"R1": r1, "R2": r2}}
			}
			r := s.compared(service, Doubt{From: now.Add(-time.Hour), Since: now})
			got, _, err := s.book.Entry(e.Key)
			kit.Must(t, err)
			key, known, err := s.book.FindByRemote("R2")
			kit.Must(t, err)
			kit.Check(t, known && key == e.Key && got.State == row.state && got.PossibleDouble == row.double && (r.Waits == 0 || got.NeedsReconcile),
				"R2 known %v, %s, double %v, unreconciled %v, %d wait", known, got.State, got.PossibleDouble, got.NeedsReconcile, r.Waits)
		})
	}
	t.Run("ContentTwice_NoEntryYet", func(t *testing.T) {
		s := newShed(t)
		id := archive.ID{15: 7}
		r1, r2 := says(id, "R1", archive.Successful), says(id, "R2", archive.Successful)
		r := s.compared(spoken{index: two, single: map[archive.RemoteID]archive.Receipt{"R1": r1, "R2": r2}}, Doubt{Since: now})
		key, _, err := s.book.FindByRemote("R1")
		kit.Must(t, err)
		other, _, err := s.book.FindByRemote("R2")
		kit.Must(t, err)
		e, _, err := s.book.Entry(key)
		if kit.Must(t, err); key != other || !e.PossibleDouble || r.Vaults[0].TakenIn.Count != 1 {
			t.Errorf("%s and %s, double %v, %d taken in", key, other, e.PossibleDouble, r.Vaults[0].TakenIn.Count)
		}
	})
}

// I2, I15: a list that may lag is believed once both clocks say so, ours since the ledger was put back and the archive's
// since the first comparison: a clock that was set proves nothing.
func TestReconcile_I2_I15_AClockThatWasSetClearsNothing(t *testing.T) {
	const hour = time.Hour
	now := time.Now()
	at := func(d time.Duration) time.Time { return now.Add(d) }
	for name, row := range map[string]struct {
		since, told, date time.Time // our clock says seven hours
		cleared           bool
	}{
		"BothSaySo":                     {now, at(hour), at(7 * hour), true},
		"TheyTellNoDate_NotComparedYet": {now, time.Time{}, time.Time{}, false},
		"TheirsWasSetBack":              {now, at(70 * hour), at(7 * hour), true},
		"OursWasSetBack":                {at(60 * hour), now, at(7 * hour), true},
		"OneOfTheirsIsALittleBehind":    {now, at(7 * hour), at(7*hour - time.Minute), false},
		"AlmostOnTheirs":                {now, at(hour), at(7*hour - time.Second), false},
		"NotComparedBefore":             {now, time.Time{}, at(7 * hour), false},
		"OursWasSetAhead":               {now, now, at(hour), false},
		"OursWasBehindWhenItWasPutBack": {at(-30 * hour), at(6 * hour), at(7 * hour), false},
		"TheirsWasSetAhead":             {at(2 * hour), now, at(70 * hour), false},
		"TheirsIsAlwaysAhead":           {now, at(70 * hour), at(76 * hour), true},
		"TheyTellNoDate":                {now, now, time.Time{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShed(t)
			e := s.doubtful(now)
			r, err := Reconcile(t.Context(), Config{Book: s.book, Committer: s.book, Service: spoken{date: row.date}, Drops: []Origin{s.drop}, Grace: 24 * hour, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys,
				Now: func() archive.Instant { return archive.Instant{Wall: at(7 * hour)} }, Doubt: &Doubt{From: at(-hour), Since: row.since, Told: row.told}, Adopt: true})
			kit.Must(t, err)
			got, _, err := s.book.Entry(e.Key)
			kit.Must(t, err)
			if got.NeedsReconcile == row.cleared || r.Vaults[0].Reaches != row.cleared || !r.Told.Equal(row.date) {
				t.Errorf("unreconciled %v, reaches %v, told at %v", got.NeedsReconcile, r.Vaults[0].Reaches, r.Told)
			}
			kit.Check(t, name != "AlmostOnTheirs" || len(r.Waiting) == 1 && r.Waiting[0].Until.Equal(at(7*hour+time.Second)),
				"waits %+v, want until a second later", r.Waiting)
		})
	}
}

// I2: a registration that was only found counts from what the archive's clock read then, should ours be behind.
func TestReconcile_I2_AFoundRegistrationBearsTheArchivesTime(t *testing.T) {
	s, now := newShed(t), time.Now().UTC()
	e := s.doubtful(now)
	told := now.Add(30 * time.Hour)
	s.compared(spoken{date: told, list: []archive.Receipt{{Remote: "R1", ID: e.ID, Status: archive.WaitingForPackage, Date: told}}}, Doubt{From: now.Add(-time.Hour), Since: now})
	e, _, err := s.book.Entry(e.Key)
	kit.Must(t, err)
	r := e.Current()
	kit.Check(t, r != nil && r.ClosedAt.Equal(told), "%+v, want closed at %v", r, told)
}

// I15: how far this machine's clock was ahead when the ledger was last sure is read from its newest registration.
func TestSurvey_I15_HowFarOurClockWasAhead(t *testing.T) {
	for name, row := range map[string]struct{ date, ahead time.Duration }{"Ahead": {-2 * time.Hour, 2 * time.Hour}, "Behind": {time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			s, now := newShed(t), time.Now().UTC()
			ticket := fill.Ticket("R1", now, ledger.Vault)
			ticket.Ticket.Date = now.Add(row.date)
			s.packed(s.claimed("f", "N1"), ledger.RegisterIntended{}, ticket)
			p := newComparison(Config{Book: s.book, Doubt: &Doubt{From: now.Add(time.Minute), Since: now}})
			kit.Must(t, p.surveyEntries(t.Context()))
			n := p.factsOf("V").newest
			kit.Check(t, n.remote == "R1" && n.ahead == row.ahead, `%+v, want n.remote = "R1", n.ahead = %v`, n, row.ahead)
		})
	}
}

// I2: what a list too short to show everything leaves out is believed once nothing can be under way any more.
func TestReconcile_I2_UntilNothingIsUnderWay(t *testing.T) {
	s, now := newShed(t), time.Now()
	e := s.doubtful(now)
	for passed, cleared := range map[time.Duration]bool{24*time.Hour - time.Second: false, 24 * time.Hour: true} {
		p := newComparison(Config{Book: s.book, Committer: s.book, Grace: 24 * time.Hour, Now: func() archive.Instant { return archive.Instant{Wall: now.Add(99 * time.Hour)} },
			Doubt: &Doubt{From: now, Since: now}})
		p.factsOf("V").visible = passed
		until, why := p.whyInDoubt(e, true)
		kit.Check(t, (why == "") == cleared && (cleared || until.Equal(now.Add(99*time.Hour+time.Second))),
			"after %v: until %v, %q", passed, until, why)
	}
}

// I15: an entry of which something could not be booked is not cleared by the same comparison.
func TestReconcile_I15_WhatCouldNotBeBookedStaysInDoubt(t *testing.T) {
	s, now := newShed(t), time.Now()
	e := s.doubtful(now)
	p := newComparison(Config{Book: s.book, Committer: s.book, Now: func() archive.Instant { return archive.Instant{Wall: now} }, Doubt: &Doubt{From: now, Since: now}})
	p.factsOf("V").reaches = true
	_, why := p.whyInDoubt(e, true)
	kit.Need(t, why == "", "in doubt before: %s", why)
	kit.Must(t, p.addChange(t.Context(), ledger.Change{Key: e.Key, Rev: e.Rev + 1, Events: []ledger.Event{ledger.Reconciled{}}}))
	kit.Must(t, p.commitChanges(t.Context()))
	_, why = p.whyInDoubt(e, true)
	kit.Check(t, why != "", "cleared")
}

// I2, I12: what an interrupted removal left in a claim is no new invoice; a whole folder goes on as before.
func TestReconcile_I2_RemainsOfAnArchivedFolder(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(dir string)
		other bool
		stuck bool
	}{
		"Whole":              {func(string) {}, false, false},
		"AFileIsGone":        {func(dir string) { kit.Must(t, os.Remove(filepath.Join(dir, "a.pdf"))) }, false, true},
		"TheSidecarIsGone":   {func(dir string) { kit.Must(t, os.Remove(filepath.Join(dir, "metadata.json"))) }, false, true},
		"AnotherOnesReceipt": {func(dir string) { kit.Must(t, os.Remove(filepath.Join(dir, "a.pdf"))) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := newShed(t), time.Now()
			key := s.archived("torso", nil)
			if row.other {
				s.archived("torso", func(_ string, r *proof.Receipt) { r.Key = archive.NewKey(now).String() })
			}
			claim := filepath.Join(s.path, ".vaultd", "claimed", key.String())
			kit.Must(t, os.Mkdir(claim, 0o700))
			kit.Must(t, os.Rename(filepath.Join(s.path, "_archived", "2026-11", "torso"), filepath.Join(claim, "torso")))
			row.spoil(filepath.Join(claim, "torso"))
			s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
			e, ok, err := s.book.Entry(key)
			kit.Must(t, err)
			stuck := e.State == ledger.Quarantined && e.Cause.Code == "archived-before"
			kit.Check(t, ok && stuck == row.stuck, "%s, %+v, want ok, stuck = %v", e.State, e.Cause, row.stuck)
		})
	}
}

// I12: what was given back in the time that the ledger lost gets an entry, once; what it knows of does not.
func TestReconcile_I12_ReturnedMeanwhile(t *testing.T) {
	s, now := newShed(t), time.Now()
	kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_rejected", "Huber 88"), 0o770))
	kit.Must(t, os.MkdirAll(filepath.Join(s.path, "_duplicates", "Otto 19"), 0o770))
	for i, want := range []int{1, 0} {
		r := s.compared(spoken{}, Doubt{From: now.Add(-time.Hour), Since: now})
		kit.Check(t, r.Folders.Returned.Count == want && r.Folders.Strange.Count == 1, "comparison %d: %+v", i, r.Folders)
	}
	n := 0
	kit.Must(t, s.book.EntriesOldestFirst(func(e ledger.Entry) error {
		if n++; e.State != ledger.Rejected || e.Dest != "_rejected/Huber 88" || e.NeedsReconcile {
			return fmt.Errorf("%s, %q, unreconciled %v", e.State, e.Dest, e.NeedsReconcile)
		}
		return nil
	}))
	kit.Want(t, "entries", n, 1)
}

// I15: of a ledger that was made anew, a short list proves something only where it shows what a receipt names.
func TestReach_I15_OfALedgerMadeAnew(t *testing.T) {
	s := newShed(t)
	s.archived("good", nil)
	now := time.Now()
	c := Config{Book: s.book, Committer: s.book, Drops: []Origin{s.drop}, Environment: "test", ReceiptKeys: s.book.Info().ReceiptKeys, Adopt: true, Grace: 24 * time.Hour,
		Now: func() archive.Instant { return archive.Instant{Wall: now.Add(7 * time.Hour)} }, Doubt: &Doubt{Since: now}}
	kit.Value(Rebuild(t.Context(), c))(t)
	p := newComparison(c)
	facts := p.factsOf("V")
	facts.visible = 7 * time.Hour
	for name, row := range map[string]struct {
		list []archive.Receipt
		want bool
	}{
		"Empty":             {nil, false},
		"Strangers":         {[]archive.Receipt{{Remote: "x", Updated: now}}, false},
		"ShowsAReceiptsOwn": {[]archive.Receipt{{Remote: "x", Updated: now}, {Remote: "bum-good", Updated: now}}, true},
	} {
		if p.judgeList(facts, row.list, true); facts.reaches != row.want {
			t.Errorf("%s: %v, want facts.reaches = %v", name, facts.reaches, row.want)
		}
	}
}
