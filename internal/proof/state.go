package proof

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"maps"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// State is what a check without a finding knows at the end of the lines that it replayed. A later check goes on from it with
// [Continue], and reads neither those lines again nor the entries that were at rest and did not change since.
//
// It is no evidence by itself: it says what an earlier check found, and nothing of what became of those entries since. Its
// fields are exported so that it can be stored.
type State struct {
	Head           ledger.Head
	Balance        ledger.Balance
	Marks, PutBack uint64
	Indexes        []AcceptedIndex
	Accepted       uint64
	Downloads      Downloads
	Acts           Acts
	Open           map[archive.Key]OpenItem
	Bindings       map[[16]byte]Binding // registrations, by their shortened numbers
	AtRest         uint64               // entries
	Rest           Uncertain            // of the entries at rest
	RestSample     Sample               // of them
	RestLostPosts  uint64               // of them
	Arrivals       map[archive.Key]ArrivalItem
}

// OpenItem is what the lines tell of one entry that is not at rest.
type OpenItem struct {
	Rev            uint32
	State          ledger.State
	Source         ledger.Source
	Posts, Answers uint16
	Tickets        uint32
	Intent         bool
	Flags          string
	ID             archive.ID
	Success, Seal  [16]byte
}

// Binding is the clientUUID that a registration was given to.
type Binding struct {
	First, Last archive.Key
	ID          archive.ID
	Found       bool
}

// since is what a replay that goes on from a state must tell of.
type since struct {
	restChanged bool // a line is about an entry that was at rest
	downloads   map[[16]byte]wasCompared
}

// wasCompared is a document that was downloaded since.
type wasCompared struct {
	vault  archive.VaultID
	remote archive.RemoteID
	was    string // the outcome of the comparison before
}

// Why a check cannot go on from a state.
var (
	ErrRestChanged = errors.New("an entry that was at rest has changed")
	ErrPutBack     = errors.New("the ledger was put back or found damaged")
)

// mostCarried is how many entries that are not at rest a state may hold.
const mostCarried = 100_000

// Rules is a digest of the state machine that a journal is held against. A state of other rules proves nothing.
func Rules() string {
	sum := sha256.Sum256([]byte(edgesText + arrivalEdgesText))
	return hex.EncodeToString(sum[:8])
}

// CheckForLater is Check where entries can be looked up. It returns the state at the end too; nil where something was found, in
// safe mode, and where too many entries are on their way.
func CheckForLater(j Journal, entries iter.Seq[ledger.Entry]) (Report, *State) {
	f := newReplay()
	f.stored = j.Entry
	f.replayPartitions(j, mostItems)
	return f.finish(j, entries, nil)
}

// Continue checks the lines behind a state, which are those that j has. The entries are those that are not at rest, and those
// that one of the lines is about. The report is about the whole ledger, as far as the state is right; its Entries are those that were compared
// now. The error is ErrRestChanged or ErrPutBack: then the state is of no use, and all lines must be replayed.
func Continue(s State, j Journal, entries iter.Seq[ledger.Entry]) (Report, *State, error) {
	f := newReplay()
	f.stored, f.since, f.walked = j.Entry, &since{downloads: map[[16]byte]wasCompared{}}, map[archive.Key]bool{}
	f.part = wholeJournal()
	f.load(s)
	f.replayJournal(j)
	switch {
	case f.since.restChanged:
		return f.Report, nil, ErrRestChanged
	case f.PutBack != s.PutBack || f.Safe:
		return f.Report, nil, ErrPutBack
	}
	for key, it := range f.items {
		f.forgetEntry(key, it)
	}
	r, next := f.finish(j, entries, &s)
	return r, next, nil
}

// finish compares the entries, and returns the report and the state at the end. before is the state that the replay went on
// from; nil: it began with the first line.
func (f *replay) finish(j Journal, entries iter.Seq[ledger.Entry], before *State) (Report, *State) {
	restLost := f.LostPosts
	f.compareAll(j, entries)
	if before != nil {
		f.addRest(*before, j.ByRemote)
	}
	if !f.OK() || f.Safe || f.beforeReconcile || f.open == nil || len(f.bindings) > 4*mostCarried {
		return f.Report, nil
	}
	next := f.save()
	next.RestLostPosts = restLost
	return f.Report, next
}

// addRest adds what an earlier check found about entries at rest that were not compared now.
func (f *replay) addRest(s State, byRemote func(archive.RemoteID) (ledger.Entry, bool)) {
	sample := s.RestSample
	for _, d := range f.since.downloads {
		e, ok := byRemote(d.remote)
		if ok && e.State == ledger.Archived && e.ArchivedRemote == d.remote && e.Vault == d.vault && e.IsAtRest() && !f.walked[e.Key] {
			sample.Replace(d.was, f.Downloads.LastComparison(d.vault, d.remote))
		}
	}
	f.restSample.add(sample)
	f.Sample.add(sample)
	f.rest.add(s.Rest)
	f.Uncertain.add(s.Rest)
	f.Uncertain.sort()
}

func (s *Sample) add(more Sample) {
	s.Archived, s.Compared, s.Differ = s.Archived+more.Archived, s.Compared+more.Compared, s.Differ+more.Differ
}

func (u *Uncertain) add(more Uncertain) {
	u.Orphans = append(u.Orphans, more.Orphans...)
	u.Pruned += more.Pruned
	u.NeedReconcile = append(u.NeedReconcile, more.NeedReconcile...)
	u.Unclear = append(u.Unclear, more.Unclear...)
	u.Double = append(u.Double, more.Double...)
	u.InDoubt = append(u.InDoubt, more.InDoubt...)
}

// sort orders by key, as a check of all entries from the oldest on finds them: a report has the same order whatever it rests on.
func (u *Uncertain) sort() {
	slices.SortStableFunc(u.Orphans, func(a, b Orphan) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	for _, keys := range [][]archive.Key{u.NeedReconcile, u.Unclear, u.Double, u.InDoubt} {
		slices.SortFunc(keys, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	}
}

// carryOpen keeps what the lines tell of an entry that was compared and is not at rest: later lines will be about it.
func (f *replay) carryOpen(key archive.Key, it item, e ledger.Entry) bool {
	if f.open == nil || e.IsAtRest() {
		return false
	}
	if len(f.open) >= mostCarried {
		for _, it := range f.open {
			f.LostPosts += uint64(it.posts - it.answers)
		}
		f.open = nil
		return false
	}
	f.open[key] = it
	return true
}

func (f *replay) save() *State {
	s := &State{
		Head: f.Head, Balance: f.Balance, Marks: f.Marks, PutBack: f.PutBack, Indexes: f.Indexes, Accepted: f.Accepted,
		Downloads: f.Downloads, Acts: f.Acts,
		Open: map[archive.Key]OpenItem{}, Bindings: map[[16]byte]Binding{}, Rest: f.rest, RestSample: f.restSample,
		Arrivals: f.arrivals.clone(),
	}
	for _, its := range []map[archive.Key]item{f.items, f.open} {
		for k, it := range its {
			s.Open[k] = OpenItem{it.rev, it.state, it.source, it.posts, it.answers, it.tickets, it.intent, it.flags.words(), it.id, it.success, it.seal}
		}
	}
	for n, b := range f.bindings {
		s.Bindings[n] = Binding{b.first, b.last, b.id, b.found}
	}
	s.AtRest = s.Balance.Seen - uint64(len(s.Open))
	return s
}

func (f *replay) load(s State) {
	f.Head, f.Lines, f.Balance, f.Marks, f.PutBack = s.Head, s.Head.N, s.Balance, s.Marks, s.PutBack
	f.Indexes, f.Accepted, f.LostPosts, f.Acts = s.Indexes, s.Accepted, s.RestLostPosts, s.Acts.clone()
	f.Downloads = Downloads{maps.Clone(s.Downloads.Last), s.Downloads.Announced}
	f.arrivals.items = arrivals{items: s.Arrivals}.clone()
	for k, it := range s.Open {
		f.items[k] = item{rev: it.Rev, state: it.State, source: it.Source, posts: it.Posts, answers: it.Answers, tickets: it.Tickets,
			intent: it.Intent, flags: parseFlags(it.Flags), id: it.ID, success: it.Success, seal: it.Seal}
	}
	for n, b := range s.Bindings {
		f.bindings[n] = binding{b.First, b.Last, b.ID, b.Found}
	}
}

// noteDownload notes a document whose comparison a line may change.
func (f *replay) noteDownload(l ledger.Line) {
	if f.since == nil || l.Event != ledger.MarkFetched {
		return
	}
	v, r := archive.VaultID(l.Vault), archive.RemoteID(l.Remote)
	if n := numberIn(v, r); f.since.downloads[n] == (wasCompared{}) {
		f.since.downloads[n] = wasCompared{v, r, f.Downloads.LastComparison(v, r)}
	}
}
