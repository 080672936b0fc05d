package simulation

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/statedir"
	"vaultd/internal/test/outside"
)

// Outcome is what a run came to.
type Outcome struct {
	Entries  []ledger.Entry
	Arrivals []arrival.Arrival
	Report   proof.Report
	Problems []string       // broken promises; none is well
	Fired    map[string]int // strikes by seam, operation and kind
	Finished int            // folders whose document is final, or waits for a person
	Deaths   int
	Restarts int // graceful ones
	Virtual  time.Duration
}

// String says it on one line.
func (o Outcome) String() string {
	return fmt.Sprintf("%v; %d faults, %d deaths, %d restarts, %v virtual", o.Report.Balance, sumCounts(o.Fired), o.Deaths, o.Restarts, o.Virtual.Round(time.Minute))
}

// EntriesIn returns the entries in a state.
func (o Outcome) EntriesIn(s ledger.State) (in []ledger.Entry) {
	for _, e := range o.Entries {
		if e.State == s {
			in = append(in, e)
		}
	}
	return in
}

// EntryOf returns the entry of the folder with that name; nil: there is none.
func (o Outcome) EntryOf(folder string) *ledger.Entry {
	for i := range o.Entries {
		if o.Entries[i].Folder == folder {
			return &o.Entries[i]
		}
	}
	return nil
}

// RunUntilCalm ends all faults and waits until every folder is through: entries final and their
// sources where they belong. What is not so after bound must at least be unclear or
// quarantined, or the run fails: faults over, everything ends.
func (w *World) RunUntilCalm(bound time.Duration) {
	w.t.Helper()
	w.fate.setPlan(nil)
	w.clock.setMachineClock(0)
	w.UnmountAll()
	if w.life == nil {
		w.Start()
	}
	for at := range w.countDrops() {
		w.BringBack(at)
	}
	w.completeExtracts()
	var left []string
	look := 5 * time.Minute // ever more seldom: reading everything is dear
	for end := time.Now().Add(bound); time.Now().Before(end); w.Advance(look) {
		w.Administer()
		if left = w.unfinished(true); len(left) == 0 {
			return
		}
		look = min(look+look/3, 3*time.Hour)
	}
	if left = w.unfinished(false); len(left) > 0 {
		w.t.Errorf("I25: %d not through %v after the last fault: %v; pauses: %v",
			len(left), bound, left[:min(len(left), 20)], w.d.State().Pauses)
		w.failOn(w.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
			if len(w.told) < 3 && !isThrough(e, 0) && !w.awaitsNoNotice(e) {
				w.logHistory(w.d.Ledger(), e.Key)
			}
			return nil
		}))
	}
}

// unfinished names what is not through; strictly, what is unclear is not.
func (w *World) unfinished(strict bool) (left []string) {
	lateFrom := time.Duration(0)
	if strict {
		lateFrom = w.findsLate()
	}
	entries := map[string]int{}
	if safe, is := w.d.Ledger().SafeMode(); is {
		left = append(left, "safe mode: "+safe.Mark)
	}
	w.failOn(w.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
		entries[e.Drop+"/"+e.Folder]++
		first, _, err := w.d.Ledger().Entry(e.WaitsFor)
		w.failOn(err)
		waits := e.State == ledger.Discovered && (first.State == ledger.Quarantined || first.State == ledger.Unclear || w.awaitsNoNotice(first))
		if !waits && !isThrough(e, lateFrom) && !w.awaitsNoNotice(e) {
			left = append(left, fmt.Sprintf("%q is %s/%s since attempt %d (%s), due %v", e.Folder, e.State, e.Source, e.Attempt, e.Cause.Code, e.NotBefore))
		}
		return nil
	}))
	for _, d := range w.dropped {
		if name := w.dropName(d.Drop) + "/" + d.Name; entries[name] > 0 {
			entries[name]--
		} else if w.setBacks == 0 || !w.hasEntryFor(d) {
			left = append(left, fmt.Sprintf("%q was not taken", name))
		}
	}
	left = append(left, w.findOpenNotices()...)
	left = append(left, w.findOwedCopies()...)
	left = append(left, w.findOpenReceipts()...)
	return append(left, w.findOpenExtracts(w.listArrivals(w.d.Ledger()))...)
}

// isThrough reports whether nothing more is to happen to an entry. lateFrom is by when the service must have been asked about what it
// failed, counted from then; zero: that is not waited for, nor what is unclear.
func isThrough(e ledger.Entry, lateFrom time.Duration) bool {
	switch {
	case e.State == ledger.Unclear:
		return lateFrom == 0
	case lateFrom > 0 && asksLate(e, lateFrom):
		return false
	case e.State == ledger.Quarantined:
		return true
	case !e.State.IsFinal() || e.Source == ledger.Claimed || e.Source == ledger.Returning || e.Source == ledger.Keeping || e.Source == ledger.Disposing:
		return false
	}
	return e.DisposeAt.IsZero() || e.Source != ledger.Kept || e.PossibleDouble || e.Contradicted
}

// findsLate returns how long after a failure was heard a question certainly finds what the service archived since. A machine's clock that
// was wrong may have asked earlier than it meant, and then a later one of the questions finds it.
func (w *World) findsLate() time.Duration {
	sure := lateAtMost + time.Hour + w.clock.errorSpan()
	for _, question := range []time.Duration{6 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour} {
		if question >= sure {
			return question
		}
	}
	return 10 * 24 * time.Hour
}

// asksLate reports whether the question is still to come that finds what the service archives after it had called it
// failed or refused.
func asksLate(e ledger.Entry, lateFrom time.Duration) bool {
	return slices.ContainsFunc(e.Registrations, func(r ledger.Registration) bool {
		return r.IsGivenUp() && slices.Contains(e.DueQuestions(r.ClosedAt.Add(lateFrom)), r.Ticket.Remote)
	})
}

// Check ends the daemon and holds the ledger to its promises, against what the service
// and the disk saw. Every problem fails the test. It fails as vacuous too: when faults
// were asked for and none fired, or when less than nine tenths were finished.
func (w *World) Check(faultsAsked bool) Outcome {
	w.t.Helper()
	unsaid := w.findUntoldFolders()
	w.Stop()
	o := Outcome{Problems: unsaid, Fired: w.fate.firedCopy(), Deaths: w.deaths, Restarts: w.restarts, Virtual: w.VirtualTime()}
	l, done := w.openLedger()
	o.Report, o.Entries = w.checkProof(l, w.collectSeen())
	problems, err := l.Verify(context.Background())
	w.failOn(err)
	o.Arrivals = w.listArrivals(l)
	o.Problems = append(o.Problems, w.checkExtracts(l)...)
	o.Problems = append(o.Problems, w.checkNetwork(l, o.Entries)...)
	o.Problems = append(o.Problems, w.checkCopies(l, o.Entries)...)
	o.Problems = append(o.Problems, w.checkEnds(o.Entries)...)
	o.Problems = append(o.Problems, w.checkReceived(l)...)
	o.Problems = append(o.Problems, w.checkReceipts(o.Entries)...)
	for _, f := range o.Report.Findings {
		o.Problems = append(o.Problems, f.String())
		w.tellOf(l, f)
	}
	w.failOn(done())
	for _, p := range problems {
		o.Problems = append(o.Problems, "verify: "+p.String())
	}
	o.Problems = append(o.Problems, w.violations(o.Entries)...)
	o.Problems = append(o.Problems, w.mounts.violations()...)
	if w.setBacks > 0 {
		o.Problems = append(o.Problems, w.unaccounted(o.Entries)...)
	}
	o.Problems = append(o.Problems, findUnsaid(o.Entries)...)
	o.Problems = append(o.Problems, w.checkPDFs(o.Entries)...)
	if w.late > 0 {
		o.Problems = append(o.Problems, fmt.Sprintf("I6: %d uploads were begun after the end of their window", w.late))
	}
	for _, p := range o.Problems {
		w.t.Error(p)
	}
	o.Finished = countFinished(o.Entries)
	if w.setBacks > 0 { // what was through when it was lost has no entry any more
		o.Finished = min(len(w.dropped), o.Finished+len(w.dropped)-len(o.Entries))
	}
	w.failIfVacuous(o, faultsAsked)
	return o
}

func (w *World) failIfVacuous(o Outcome, faultsAsked bool) {
	w.t.Helper()
	if faultsAsked && sumCounts(o.Fired)+o.Deaths == 0 {
		w.t.Error("vacuous: no fault fired")
	}
	if len(w.dropped) == 0 || 10*(o.Finished+1) < 9*len(w.dropped) { // one may wait for a person, however few there are
		w.t.Errorf("vacuous: %d of %d dropped folders are finished: %v", o.Finished, len(w.dropped), o.Report.Balance)
	}
}

// countFinished counts the entries that are final, or wait for a person's decision.
func countFinished(entries []ledger.Entry) (n int) {
	states := map[archive.Key]ledger.State{}
	for _, e := range entries {
		states[e.Key] = e.State
	}
	for _, e := range entries {
		waits := e.State == ledger.Discovered && (states[e.WaitsFor] == ledger.Quarantined || e.Route == ledger.Network && states[e.WaitsFor] == ledger.Uploaded)
		isSent := e.Route == ledger.Network && e.State == ledger.Uploaded // some documents the network never tells of
		if e.State.IsFinal() || e.State == ledger.Quarantined || waits || isSent {
			n++
		}
	}
	return n
}

// checkBetweenLives is the part of Check that must hold at any instant at which no process runs.
func (w *World) checkBetweenLives() {
	w.t.Helper()
	l, done := w.openLedger()
	seen := w.collectSeen()
	w.hideLate(l, &seen)
	report, entries := w.checkProof(l, seen)
	for _, p := range slices.Concat(w.checkPDFs(entries), w.checkExtracts(l), w.checkNetwork(l, entries), w.checkCopies(l, entries), w.checkReceived(l)) {
		w.t.Errorf("between two lives, %v into the run: %s", w.VirtualTime(), p)
	}
	for _, f := range report.Findings {
		w.t.Errorf("between two lives, %v into the run: %v", w.VirtualTime(), f)
		w.tellOf(l, f)
	}
	w.failOn(done())
}

func (w *World) openLedger() (*boltledger.Ledger, func() error) {
	w.t.Helper()
	l, done, err := statedir.OpenLedger(w.stateDir(), time.UTC, nil)
	w.failOn(err)
	return l, done
}

// hideLate takes out the content that the service first called refused or failed, where the ledger cannot know better
// yet. In the end it must.
func (w *World) hideLate(l *boltledger.Ledger, s *outside.Seen) {
	w.t.Helper()
	late := map[archive.RemoteID]bool{}
	for _, r := range w.emulator.Registrations() {
		late[archive.RemoteID(r.BumID)] = r.Late
	}
	for i := range s.Registrations {
		r := &s.Registrations[i]
		key, _, err := l.FindByRemote(r.Remote)
		w.failOn(err)
		e, _, err := l.Entry(key)
		w.failOn(err)
		if late[r.Remote] && e.IsNews(archive.Receipt{Remote: r.Remote, Status: archive.InProgress}) {
			r.Failed, r.Archived = true, false
		}
	}
}

// checkProof runs the checker.
func (w *World) checkProof(l *boltledger.Ledger, seen outside.Seen) (proof.Report, []ledger.Entry) {
	w.t.Helper()
	var entries []ledger.Entry
	w.failOn(l.EntriesOldestFirst(func(e ledger.Entry) error {
		entries = append(entries, e)
		return nil
	}))
	if _, safe := l.SafeMode(); safe || slices.ContainsFunc(entries, func(e ledger.Entry) bool { return e.NeedsReconcile }) {
		seen = outside.Seen{} // it says itself that it does not know
	}
	report, err := outside.Check(l, entries, seen)
	w.failOn(err)
	return report, entries
}

// collectSeen is what was watched from outside.
func (w *World) collectSeen() outside.Seen {
	w.t.Helper()
	disk := outside.Disk{Present: w.listFolders()}
	s := outside.Seen{Disk: &disk}
	for i := range w.countDrops() {
		if _, err := os.Stat(filepath.Join(w.DropPath(i), ".vaultd")); err != nil {
			s.Disk = nil // a drop folder is away: nobody can look
		}
	}
	if w.setBacks > 0 {
		s.Disk = nil // what was disposed of since the copy is not in the ledger; see accounted
	}
	for _, d := range w.dropped {
		disk.Dropped = append(disk.Dropped, outside.Folder{Drop: w.dropName(d.Drop), Path: d.Name})
	}
	var err error
	s.Registrations, err = outside.RegistrationsOf(w.emulator.Registrations())
	w.failOn(err)
	s.Slots = w.collectSlots()
	return s
}

// listFolders finds every folder in the places where one can lie.
func (w *World) listFolders() (all []outside.Folder) {
	w.t.Helper()
	for i := range w.countDrops() {
		add := func(dir string) {
			for _, name := range listNames(filepath.Join(w.DropPath(i), dir)) {
				if dir != "" || !drop.IsReservedName(name) {
					all = append(all, outside.Folder{Drop: w.dropName(i), Path: path.Join(dir, name)})
				}
			}
		}
		add("")
		add(string(drop.Rejected))
		add(string(drop.Duplicates))
		for _, kept := range []drop.Kind{drop.Archived, drop.Delivered} {
			for _, month := range listNames(filepath.Join(w.DropPath(i), string(kept))) {
				add(path.Join(string(kept), month))
			}
		}
		for _, key := range listNames(filepath.Join(w.DropPath(i), ".vaultd/claimed")) {
			add(path.Join(".vaultd/claimed", key))
		}
		for _, name := range listNames(filepath.Join(w.dir, "moved")) {
			all = append(all, outside.Folder{Drop: w.dropName(i), Path: filepath.Join(w.dir, "moved", name)})
		}
	}
	return all
}

func listNames(dir string) (all []string) {
	entries, _ := os.ReadDir(dir) // what is not there holds nothing
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// violations are what the service noted, but for two contents of one document where the
// ledger says so itself: then an operator, or an answer that came too late, is known.
func (w *World) violations(entries []ledger.Entry) (all []string) {
	flagged := map[string]bool{}
	for _, e := range entries {
		if e.PossibleDouble {
			flagged[e.ID.String()], flagged[e.FirstID.String()] = true, true
		}
	}
	for _, v := range w.emulator.Violations() {
		if w.wasGarbled() && strings.Contains(v, " was acknowledged before file ") || w.explainsDoublePDF(v, entries) || w.setBacks > 0 && strings.HasPrefix(v, "other bytes posted under bumId ") {
			continue
		}
		rest, double := strings.CutPrefix(v, "double content: clientUUID ")
		id, _, _ := strings.Cut(rest, " ")
		if !double || !flagged[id] {
			all = append(all, "service: "+v)
		}
	}
	return all
}

// tellOf logs what is known of the entry that a finding is about.
func (w *World) tellOf(l *boltledger.Ledger, f proof.Finding) {
	w.t.Helper()
	if _, rest, named := strings.Cut(f.Text, "clientUUID "); named && f.Key == (archive.Key{}) {
		word, _, _ := strings.Cut(rest, " ")
		if id, err := archive.ParseID(word); err == nil {
			f.Key, _, err = l.FindByID(id)
			w.failOn(err)
		}
	}
	w.logHistory(l, f.Key)
}

// logHistory logs what is known of an entry: its registrations, on both sides, and its lines.
func (w *World) logHistory(l *boltledger.Ledger, k archive.Key) {
	w.t.Helper()
	e, ok, err := l.Entry(k)
	if w.failOn(err); !ok || w.told[k] {
		return
	}
	w.told[k] = true
	w.t.Logf("%q: %s/%s, generation %d, %d POSTs, %d answers, double %v, cause %+v", e.Folder, e.State, e.Source, e.Generation, e.Posts, e.Answers, e.PossibleDouble, e.Cause)
	for _, r := range e.Registrations {
		w.t.Logf("  ours   %s of generation %d, sent %v, %d sends, %d clear, fate %d, closed %v, %d times %v, last %v",
			r.Ticket.Remote, r.Generation, r.Ticket.Sent.Wall, r.UploadIntents, r.WithoutEffect, r.Fate, r.ClosedAt, r.EqualAnswers, r.LastStatus, r.LastAnswer)
	}
	for _, s := range w.emulator.Registrations() {
		if s.ClientUUID == e.ID.String() || s.ClientUUID == e.FirstID.String() {
			w.t.Logf("  theirs %s at %v until %v, %d PUTs, stored %v, %s (%s)", s.BumID, s.RegisteredAt, s.Deadline, s.PUTs, s.StoredAt, s.State, s.Message)
		}
	}
	w.failOn(l.Lines(1, func(_ uint64, line []byte) error {
		if m, err := ledger.ParseLine(line); err == nil && m.Key == k.String() {
			w.t.Logf("  %s %s %s → %s/%s %s %s", m.At, m.Event, m.Status, m.State, m.Source, m.Remote, m.Cause)
		}
		return nil
	}))
}
