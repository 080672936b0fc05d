package proof

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Replay holds the lines of a journal, entries and arrivals against each other.
// They are shown to it in this order: each line in the order of the journal,
// then the entries in any order, each once, then the arrivals. [Replay.Finish]
// says what it found.
type Replay struct {
	Report
	edges           edges // of entries
	items           map[archive.Key]item
	bindings        map[short]binding
	arrivalEdges    edges
	arrivals        map[archive.Key]arrivalItem
	beforeReconcile bool     // put back, and not reconciled since
	line            readLine // that is replayed now

	keeper  Keeper    // nil: all keys are remembered to the end
	failed  error     // of it
	least   int       // keys that are remembered before any is looked up
	mostNow int       // the same at this moment
	before  *Sums     // of the lines before; nil: all lines are shown
	rest    Uncertain // of the entries at rest
}

// Keeper keeps the entries.
type Keeper interface {
	Entry(archive.Key) (e ledger.Entry, ok bool, err error)
	FindByRemote(archive.RemoteID) (k archive.Key, ok bool, err error) // the entry that has a registration
}

// leastItems is how many keys are remembered before those without later lines
// are compared and forgotten.
const leastItems = 25_000

// NewReplay returns a replay. With a keeper its memory does not grow with the
// journal: each entry is compared when its last line was shown, and its lines
// are forgotten, except the registrations that it does not list any more. The
// keeper must then look for two things itself: an entry without a line, and a
// registration that two forgotten entries list. The check of boltledger does
// so. Nil: it remembers everything, and can name them.
//
// With the sums of an earlier replay, and a keeper, it is shown the lines
// behind that one, the entries that are not at rest, and those that one of the
// lines is about. The first line about an entry that there was before is then
// held against no line before it.
func NewReplay(keeper Keeper, before *Sums) *Replay {
	f := &Replay{
		edges: parseEdges(edgesText), items: map[archive.Key]item{}, bindings: map[short]binding{},
		arrivalEdges: parseEdges(arrivalEdgesText), arrivals: map[archive.Key]arrivalItem{},
		keeper: keeper, least: leastItems, mostNow: leastItems, before: before,
	}
	if before != nil {
		f.Head, f.Lines, f.Told, f.rest, f.Uncertain = before.Head, before.Head.N, before.Told, before.Rest, before.Rest.clone()
	}
	return f
}

// Line replays one line: at is the end of the chain with it, err why it cannot be parsed.
func (f *Replay) Line(at ledger.Head, stored ledger.Line, err error) {
	f.Lines, f.Head = at.N, at
	l := &f.line
	*l = readLine{Line: stored}
	switch {
	case err != nil:
		f.addFinding("I14", archive.Key{}, "line %d cannot be read", at.N)
		return
	case l.N != at.N:
		f.addFinding("I14", archive.Key{}, "line %d calls itself %d", at.N, l.N)
		return
	}
	f.Acts.AddLine(stored)
	switch {
	case at.N == 1:
		f.require(l.Event == "created" && l.Key == "" && l.Ledger != "", "I14", archive.Key{}, "the first line does not say which ledger it opens")
	case l.Key == "":
		f.replayMark(stored)
	default:
		f.replayParsed(l)
	}
	if f.keeper != nil && len(f.items) > f.mostNow {
		f.forgetCompared()
	}
}

// replayParsed replays one line of an entry or an arrival.
func (f *Replay) replayParsed(l *readLine) {
	l.parse()
	machine, replay := f.edges, (*Replay).replayLine
	if isOfArrival(l.Line) {
		machine, replay = f.arrivalEdges, (*Replay).replayArrival
	}
	switch {
	case !machine.events[l.Event]:
		f.addFinding("I14", l.key, "line %d tells of %q, which is no event", l.N, l.Event)
	case l.wrong:
		f.addFinding("I14", l.key, "line %d names no key, state or source", l.N)
	default:
		replay(f, l)
	}
}

// Err says why the keeper failed; nil: it did not.
func (f *Replay) Err() error { return f.failed }

// entry looks an entry up.
func (f *Replay) entry(k archive.Key) (e ledger.Entry, ok bool) {
	e, ok, err := f.keeper.Entry(k)
	f.failed = errors.Join(f.failed, err)
	return e, ok && err == nil
}

// Finish returns the report. head is the end of the journal as the ledger, or
// better somebody else, keeps it, and b the balance as the ledger counts it;
// nil: it does not.
func (f *Replay) Finish(head ledger.Head, b *ledger.Balance) Report {
	f.require(f.Head == head, "I14", archive.Key{}, "the chain ends at line %d with %s, the head says line %d with %s", f.Head.N, f.Head.Hash, head.N, head.Hash)
	f.endEntries()
	f.endArrivals()
	if f.before != nil && b != nil {
		f.Balance = *b // its reader compares it with the entries
		f.countSample()
	}
	f.require(b == nil || *b == f.Balance, "I12", archive.Key{}, "the ledger's balance differs from a recount of the journal: %v", f.Balance)
	f.require(f.Balance.IsBalanced(), "I1", archive.Key{}, "the balance does not agree: %v", f.Balance)
	f.Uncertain.sort()
	return f.Report
}

// replayMark replays a line about the ledger as a whole.
func (f *Replay) replayMark(l ledger.Line) {
	f.Marks++
	m := ledger.Mark{Name: l.Event}
	switch {
	case !slices.Contains(ledger.MarkNames(), l.Event) || l.State != "" || l.UID == nil:
		f.addFinding("I14", archive.Key{}, "line %d tells of %q, which is no event of a ledger", l.N, l.Event)
	case uint64(l.Rev) != f.Marks:
		f.addFinding("I5", archive.Key{}, "line %d is the mark number %d, it calls itself %d", l.N, f.Marks, l.Rev)
	case l.Event == ledger.MarkReconciled && !f.Safe:
		f.addFinding("I15", archive.Key{}, "line %d leaves a safe mode that nothing entered", l.N)
	}
	if l.Event == ledger.MarkIndex && l.UID != nil {
		f.addAcceptedIndex(AcceptedIndex{Vault: archive.VaultID(l.Vault), Gave: l.Cause, At: l.At, UID: uint32(*l.UID)})
	}
	wrong := f.Downloads.AddLine(l)
	f.require(wrong == "", "I11", archive.Key{}, "line %d tells of a download, and %s", l.N, wrong)
	f.Safe = f.Safe && l.Event != ledger.MarkReconciled || m.EntersSafeMode()
	f.beforeReconcile = f.beforeReconcile && f.Safe
	if m.EntersSafeMode() && l.Event != ledger.MarkDamaged { // what is under way when damage is found may end
		f.PutBack++
		f.beforeReconcile = true
	}
}

// checkRevision compares the revision of a line with that of the line before. A
// missing one is a lost line; a repeated one is a second writer.
func (f *Replay) checkRevision(l *readLine, before uint32) {
	if l.Rev != before+1 {
		f.addFinding("I5", l.key, "line %d is revision %d after revision %d", l.N, l.Rev, before)
	}
}

// rule is one rule of the lines of entries or of arrivals. It is held against
// what the lines before tell.
type rule[item any] struct {
	promise string
	broken  func(it *item, l *readLine) bool
	text    string // what is wrong with the line, in words
}

// hold holds a line against rules.
func hold[item any](f *Replay, rules []rule[item], it *item, l *readLine) {
	for _, r := range rules {
		if r.broken(it, l) {
			f.addFinding(r.promise, l.key, "line %d: %s: %s", l.N, l.describe(), r.text)
		}
	}
}

// replayLine replays one line of an entry.
func (f *Replay) replayLine(l *readLine) {
	key := l.key
	it, known := f.items[key]
	if !known && f.before != nil && l.Rev > 1 {
		it = item{old: true, rev: l.Rev - 1, intent: true, flags: l.Flags}
	}
	f.checkRevision(l, it.rev)
	if !(it.old && !known) && !f.hasEdge(it, l) {
		f.addFinding(brokenPromise(l.Event, it.state, l.to), key, "line %d: %s leads from %s/%s to %s/%s", l.N, l.describe(), it.state, it.source, l.to, l.then)
	}
	switch {
	case l.ID != "":
		it.id, _ = archive.ParseID(l.ID)
	case l.Event == unsealed:
		it.id, it.size = archive.ID{}, 0 // it gets both when it is packed anew
	}
	// Until the service was asked, an entry in doubt may already have been sent
	// by the lost part of the ledger.
	if intents[l.Event] && (f.beforeReconcile || strings.Contains(it.flags, "needs-reconcile")) {
		f.addFinding("I15", key, "line %d: %s, before the service was asked what the ledger forgot", l.N, l.Event)
	}
	f.bind(&it, l)
	hold(f, lineRules, &it, l)
	f.Balance.CountChange(it.state, l.to)
	it.advance(l)
	f.items[key] = it
}

// hasEdge reports whether an edge of the state machine goes from where the item is to where the line says.
func (f *Replay) hasEdge(it item, l *readLine) bool {
	e := edge{l.Event, cmp.Or(l.Status, "-"), it.state.String(), l.State, ledger.NoSource.String(), ledger.NoSource.String()}
	if l.Event == notificationSeen || l.Event == outcomeLate {
		e[1] = "-" // it may be any pair of codes, see saysOtherwise, or any outcome
	}
	if it.source == l.then && f.edges.all[e] {
		return true
	}
	e[4], e[5] = it.source.String(), l.Source
	return f.edges.all[e]
}

// brokenPromise returns the promise that a change without an edge breaks.
func brokenPromise(event string, from, to ledger.State) string {
	switch {
	case from.IsFinal() && to != from:
		return "I13"
	case strings.HasPrefix(event, "dispose"):
		return "I3"
	case outcomes[event]:
		return "I11"
	case to == ledger.Uploaded || to == ledger.Archived || to == ledger.Delivered:
		return "I12"
	}
	return "I1"
}
