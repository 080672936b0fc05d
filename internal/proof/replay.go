package proof

import (
	"errors"
	"iter"
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
	edges           map[edge]bool
	words           map[string]bool // events that lead anywhere
	items           map[archive.Key]item
	bindings        map[number]binding
	arrivals        arrivals
	beforeReconcile bool // put back, and not reconciled since

	keeper  Keeper  // nil: all keys are remembered to the end
	failed  error   // of it
	least   int     // keys that are remembered before any is looked up
	mostNow int     // the same at this moment
	before  *Sums   // of the lines before; nil: all lines are shown
	rest    Resting // of the entries at rest
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
		edges: map[edge]bool{}, words: map[string]bool{}, items: map[archive.Key]item{}, bindings: map[number]binding{},
		arrivals: newArrivals(), keeper: keeper, least: leastItems, mostNow: leastItems, before: before,
	}
	for s := range edges() {
		f.edges[s] = true
		f.words[s.event] = true
	}
	if before != nil {
		f.goOnFrom(*before)
	}
	return f
}

// Check checks one consistent snapshot of a ledger. The entries may come in any
// order, each once. If reading them fails, the caller's iterators stop early,
// and the caller must throw the report away.
func Check(j Journal, entries iter.Seq[ledger.Entry]) Report {
	return NewReplay(nil, nil).check(j, entries)
}

func (f *Replay) check(j Journal, entries iter.Seq[ledger.Entry]) Report {
	f.showLines(j.Lines)
	for e := range entries {
		f.Entry(e)
	}
	if j.Arrivals == nil {
		f.arrivals.items = nil
	} else {
		for a := range j.Arrivals {
			f.Arrival(a)
		}
	}
	return f.Finish(j.Head, j.Balance)
}

func (f *Replay) showLines(lines iter.Seq2[uint64, []byte]) {
	var at ledger.Head
	for n, stored := range lines {
		if at = at.Next(stored); n != at.N {
			f.addFinding("I14", archive.Key{}, "line %d stands where line %d belongs", n, at.N)
		}
		l, err := ledger.ParseLine(stored)
		f.Line(at, l, err)
	}
}

// Line replays one line: at is the end of the chain with it, err why it cannot be parsed.
func (f *Replay) Line(at ledger.Head, stored ledger.Line, err error) {
	f.Lines, f.Head = at.N, at
	l := readLine{Line: stored}
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
		if l.Event != "created" || l.Key != "" || l.Ledger == "" {
			f.addFinding("I14", archive.Key{}, "the first line does not say which ledger it opens")
		}
	case l.Key == "":
		f.replayMark(stored)
	case isOfArrival(stored):
		l.parse()
		f.replayArrival(&l)
	default:
		l.parse()
		f.replayLine(&l)
	}
	if f.keeper != nil && len(f.items) > f.mostNow {
		f.forgetCompared()
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
	if f.Head != head {
		f.addFinding("I14", archive.Key{}, "the chain ends at line %d with %s, the head says line %d with %s", f.Head.N, f.Head.Hash, head.N, head.Hash)
	}
	f.endEntries()
	f.endArrivals()
	if f.before != nil && b != nil {
		f.Balance = *b // its reader compares it with the entries
		f.countSample()
	}
	if b != nil && *b != f.Balance {
		f.addFinding("I12", archive.Key{}, "the ledger's balance differs from a recount of the journal: %v", f.Balance)
	}
	if !f.Balance.IsBalanced() {
		f.addFinding("I1", archive.Key{}, "the balance does not agree: %v", f.Balance)
	}
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
	if wrong := f.Downloads.AddLine(l); wrong != "" {
		f.addFinding("I11", archive.Key{}, "line %d tells of a download, and %s", l.N, wrong)
	}
	f.Safe = f.Safe && l.Event != ledger.MarkReconciled || m.EntersSafeMode()
	f.beforeReconcile = f.beforeReconcile && f.Safe
	if m.EntersSafeMode() && l.Event != ledger.MarkDamaged { // what is under way when damage is found may end
		f.PutBack++
		f.beforeReconcile = true
	}
}

// replayLine replays one line of an entry.
func (f *Replay) replayLine(l *readLine) {
	key, to, then := l.key, l.to, l.then
	switch {
	case !f.words[l.Event]:
		f.addFinding("I14", key, "line %d tells of %q, which is no event", l.N, l.Event)
		return
	case l.wrong:
		f.addFinding("I14", key, "line %d names no key, state or source", l.N)
		return
	}
	it, known := f.items[key]
	if !known && f.before != nil && l.Rev > 1 {
		it = item{old: true, rev: l.Rev - 1, intent: true, flags: l.flags}
	}
	// A missing revision is a lost line; a repeated one is a second writer.
	if l.Rev != it.rev+1 {
		f.addFinding("I5", key, "line %d is revision %d after revision %d", l.N, l.Rev, it.rev)
	}
	if !(it.old && !known) && !f.hasEdge(it, l, to, then) {
		f.addFinding(brokenPromise(l.Event, it.state, to), key, "line %d: %s leads from %s/%s to %s/%s", l.N, describeEvent(l), it.state, it.source, to, then)
	}
	it.rev = l.Rev
	switch {
	case l.ID != "":
		it.id = l.id
	case l.Event == (ledger.Unsealed{}).JournalName():
		it.id, it.size = archive.ID{}, 0 // it gets both when it is packed anew
	}
	f.replayRemote(key, &it, l)
	f.replayStatus(key, &it, l, to)
	f.replayNotification(key, it, l, to)
	f.replaySeal(key, &it, l)
	it.replayFlags(f, key, l)
	f.Balance.CountChange(it.state, to)
	it.state, it.source = to, then
	f.items[key] = it
}

// hasEdge reports whether an edge of the state machine goes from where the item is to where the line says.
func (f *Replay) hasEdge(it item, l *readLine, to ledger.State, then ledger.Source) bool {
	s := edge{event: l.Event, word: l.Status, from: it.state, to: to}
	if l.Event == (ledger.NotificationSeen{}).JournalName() {
		s.word = "" // it may be any pair of codes; see replayNotification
	}
	if it.source == then && f.edges[s] {
		return true
	}
	s.source, s.then = it.source, then
	return f.edges[s]
}

// brokenPromise returns the promise that a change without an edge breaks.
func brokenPromise(event string, from, to ledger.State) string {
	switch {
	case from.IsFinal() && to != from:
		return "I13"
	case strings.HasPrefix(event, "dispose") || event == (ledger.Disposed{}).JournalName():
		return "I3"
	case outcomes[event]:
		return "I11"
	case to == ledger.Uploaded || to == ledger.Archived || to == ledger.Delivered:
		return "I12"
	}
	return "I1"
}

func describeEvent(l *readLine) string {
	if l.Status == "" {
		return l.Event
	}
	return l.Event + " " + l.Status
}

// outcomes are the events that report a remote call or a move that an intent announced.
var outcomes = map[string]bool{
	ledger.RegisterUnanswered{}.JournalName(): true, ledger.RegisterNotTaken{}.JournalName(): true, ledger.BatchRefused{}.JournalName(): true,
	ledger.RegisterRefused{}.JournalName(): true, ledger.AnswerMixedUp{}.JournalName(): true, ledger.TicketReceived{}.JournalName(): true,
	ledger.UploadNotSent{}.JournalName(): true, ledger.UploadUnanswered{}.JournalName(): true, ledger.UploadRefused{}.JournalName(): true,
	ledger.FileStored{}.JournalName(): true, ledger.FileUnanswered{}.JournalName(): true, ledger.FileNotTaken{}.JournalName(): true, ledger.FileRefused{}.JournalName(): true,
	ledger.DocumentTaken{}.JournalName(): true, ledger.DocumentRefused{}.JournalName(): true,
	ledger.UploadAccepted{}.JournalName(): true, ledger.DeliveryConfirmed{}.JournalName(): true, ledger.Placed{}.JournalName(): true, ledger.Disposed{}.JournalName(): true,
}

// intents are the events that announce a remote call or a move.
var intents = map[string]bool{
	ledger.RegisterIntended{}.JournalName(): true, ledger.UploadIntended{}.JournalName(): true, ledger.FileIntended{}.JournalName(): true, ledger.DocumentIntended{}.JournalName(): true,
	ledger.PlaceIntended{}.JournalName(): true, ledger.DisposeIntended{}.JournalName(): true,
}

// replayRemote replays intents, outcomes and registrations.
func (f *Replay) replayRemote(key archive.Key, it *item, l *readLine) {
	// Until the service was asked, an entry in doubt may already have been sent by the lost part of the ledger.
	if intents[l.Event] && (it.flags.needsReconcile || f.beforeReconcile) {
		f.addFinding("I15", key, "line %d: %s, before the service was asked what the ledger forgot", l.N, l.Event)
	}
	switch {
	case intents[l.Event]:
		it.intent = true
	case outcomes[l.Event] && !it.intent:
		f.addFinding("I11", key, "line %d: %s without an intent before it", l.N, l.Event)
	case outcomes[l.Event]:
		it.intent = false
	}
	switch l.Event {
	case ledger.RegisterIntended{}.JournalName():
		it.posts++
	case ledger.RegisterNotTaken{}.JournalName(), ledger.BatchRefused{}.JournalName(), ledger.RegisterRefused{}.JournalName(), ledger.TicketReceived{}.JournalName():
		it.answers++
	}
	switch l.Event {
	case ledger.ReconcileRequired{}.JournalName():
		it.intent = it.intent && it.state.IsFinal() // the process that announced it is gone
		return
	case ledger.TicketReceived{}.JournalName(), ledger.RegistrationFound{}.JournalName():
	case ledger.DocumentIntended{}.JournalName():
		if b, ok := f.bindings[l.remote]; ok && b.last == key && b.id == it.id {
			return // sent again under its number
		}
	case ledger.Recovered{}.JournalName():
		if l.Remote == "" {
			return
		}
	default:
		return
	}
	it.tickets++
	n := l.remote
	b, ok := f.bindings[n]
	switch {
	case !ok:
		b = binding{first: key, id: it.id, found: l.Event == (ledger.RegistrationFound{}).JournalName()}
	case b.id != it.id && !(b.isBoundTo(key) && (b.found || l.Event != (ledger.TicketReceived{}).JournalName())):
		f.addFinding("I8", key, "line %d binds registration %s, which belongs to %s as clientUUID %s", l.N, l.Remote, b.last, b.id)
		return
	}
	b.last = key
	f.bindings[n] = b
}

// replayStatus replays what the service said: an entry is archived by its success alone, and a second success is flagged.
func (f *Replay) replayStatus(key archive.Key, it *item, l *readLine, to ledger.State) {
	if l.Remote != "" {
		if b, ok := f.bindings[l.remote]; !b.isBoundTo(key) && (ok || !it.old) {
			f.addFinding("I8", key, "line %d is about registration %s, which was never given to it", l.N, l.Remote)
		}
	}
	heard := l.Event == (ledger.StatusSeen{}).JournalName() && l.Status == archive.Successful.String()
	if (heard || l.Event == (ledger.Recovered{}).JournalName() && to == ledger.Archived) && it.success == (number{}) {
		it.success = l.remote
	}
	if first := it.success; !it.old && heard && first != noSuccess && first != l.remote && !l.flags.double {
		f.addFinding("I2", key, "line %d: a second registration is archived, %s, and the entry does not say so", l.N, l.Remote)
	}
	if to == ledger.Archived && it.success == (number{}) && !it.old {
		f.addFinding("I12", key, "line %d: archived without the service's success", l.N)
		it.success = noSuccess // reported once
	}
}

// replayNotification checks that a notification of the business network led to an end only where it tells of that end.
func (f *Replay) replayNotification(key archive.Key, it item, l *readLine, to ledger.State) {
	if l.Event != (ledger.NotificationSeen{}).JournalName() || to == it.state {
		return
	}
	told := map[ledger.State][]archive.Meaning{ledger.Uploaded: {archive.MeansProcessing}, ledger.Delivered: {archive.MeansDelivered}, ledger.Rejected: {archive.MeansUndelivered, archive.MeansInvalid}}
	if !slices.Contains(told[to], archive.MeaningOfPair(l.Status)) {
		f.addFinding("I12", key, "line %d: %s by the notification %q, which does not say so", l.N, to, l.Status)
	}
}

// replaySeal checks that the bytes that left in an accepted upload are the package as it was sealed last.
func (f *Replay) replaySeal(key archive.Key, it *item, l *readLine) {
	is := parseSeal(l.Seal)
	if l.Event == (ledger.ValidationKept{}).JournalName() {
		return // the digest is that of a file which the network made
	}
	if l.Event == (ledger.UploadAccepted{}).JournalName() || l.Event == (ledger.DeliveryConfirmed{}).JournalName() {
		if it.seal != (sealStart{}) && is != it.seal {
			f.addFinding("I4", key, "line %d: the bytes that left are not the package as it was sealed", l.N)
		}
		return
	}
	if l.Seal != "" {
		it.seal, it.size = is, l.Size
	}
}
