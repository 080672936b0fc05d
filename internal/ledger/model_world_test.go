package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// The world of the model: one document, the service, the network between them, the
// folder on disk, and an adversary with a budget of faults. The entry is a real one
// and changes through Transition alone.
//
// Time is abstract. Every event and every early answer happens at the epoch; late
// means after the grace, with as many spaced answers as count for proof. Late is only
// possible when the window is over and nothing is in flight to that registration:
// that is what the grace stands for. After each step times are set back to the
// epoch and counters that only grow are folded, so that the space is finite.
type world struct {
	e     Entry
	vol   volatile
	net   []message // sorted, without doubles
	srv   []server
	disk  place
	left  faults
	undue string // a promise broken by the step that led here
	fresh bool   // the registrations are this world's own

	copy     Entry // as a backup has it
	copied   bool  // there is one
	restored bool  // it was put back
}

// volatile is what the process knows and a crash takes away.
type volatile struct {
	doing doing
	n     uint8 // registration number at the service, for a PUT
	act   Act   // that was announced, and whose outcome the process will tell
}

type doing uint8

const (
	idle doing = iota
	toPost
	postWaits
	toPut
	putWaits
	toPlace
	placed
	toDispose
	disposed
)

type message struct {
	kind messageKind
	bum  uint8 // foreign: somebody else's registration
	gen  uint8 // of the POST's identity
	mine bool  // the process waits for this exchange; else it gave up or died
}

type messageKind uint8

const (
	post messageKind = iota
	postTaken
	postRefused
	postCrossed
	put
	putAccepted // the store checked the window and reads the body
	putStored
	putRefused
)

const foreign = 200

// server is one registration at the service.
type server struct {
	gen     uint8
	content bool
	landed  uint8 // times that content landed; each may start a flow where the service has no later word
	noticed bool  // the archive took the content from the store
	expired bool
	verdict verdict
	epoch   uint8 // times it was given out
	judged  uint8 // epoch in which the verdict fell
	late    bool  // when it fell, the window was over
	hidden  bool  // it said that there is nothing, and took that back: only a later question tells
}

type verdict uint8

const (
	pending verdict = iota
	succeeded
	failed    // content came and cannot be archived
	abandoned // no content was noticed in time; a straggler may still revive it
)

type place uint8

const (
	inClaimed place = iota
	atDest
	nowhere
)

// faults are what the adversary may still do: of each kind, and in all.
type faults struct{ crash, loss, odd, human, restore, late, any uint8 }

// repeat is what the service does with a clientUUID that it knows.
type repeat uint8

const (
	anew repeat = iota
	deduplicate
	refuse
)

// setup is one service, one budget, and at most one planted mistake.
type setup struct {
	name      string
	repeat    repeat
	ambiguous bool // the service never tells waiting from in progress
	silent    bool // the service has no later word, and is never asked: the PDF route
	repeats   bool // where it is silent: an upload without an answer is sent again
	posts     uint16
	faults    faults
	mistake   string
	limit     int // states; reaching it is no failure
}

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const grace = 24 * time.Hour

func at(d time.Duration) archive.Instant {
	return archive.Instant{Wall: epoch.Add(d), Boot: d, BootID: "b"}
}

var bumNames = strings.Fields("b0 b1 b2 b3 b4 b5 b6 b7 b8 b9")

func bumName(n uint8) archive.RemoteID {
	if n == foreign {
		return "foreign"
	}
	return archive.RemoteID(bumNames[n])
}

func bumNumber(r archive.RemoteID) uint8 {
	if r == "foreign" {
		return foreign
	}
	return r[1] - '0'
}

// start is a sealed document of which nothing was said to the service yet.
func (o setup) start() world {
	w := world{e: Entry{Key: archive.Key{1}}, left: o.faults}
	route := Vault
	if o.silent {
		route = PDF
	}
	w.commit(ClaimedFolder{Route: route, Vault: "V", Drop: "d", Folder: "f"}, 0)
	w.commit(Sealed{ID: archive.ID{1}, Content: archive.Digest{1}, Metadata: archive.Digest{2}, Package: archive.Package{Size: 1, SHA256: archive.Digest{3}}}, 0)
	w.normalise()
	return w
}

func (w world) clone() world {
	w.net, w.srv, w.fresh = slices.Clone(w.net), slices.Clone(w.srv), false
	return w // Transition clones the registrations, and nothing changes those of the copy
}

// commit sends an event through the one door. An event that is illegal by now is
// dropped, as the committer does for a stale change; ok tells.
func (w *world) commit(ev Event, d time.Duration) (ok bool) {
	before := w.e
	next, err := Transition(w.e, ev, at(d))
	if err != nil {
		return false
	}
	switch {
	case before.State.IsFinal() && next.State != before.State:
		w.undue = "I13 a final state changed by " + ev.JournalName()
	case ev.JournalName() == DisposeIntended{}.JournalName() && before.Hold:
		w.undue = "I3 disposal of what a person holds"
	case ev.JournalName() == DisposeIntended{}.JournalName() && (before.Contradicted || before.PossibleDouble):
		w.undue = "I13 disposal in spite of a contradiction"
	case before.DuplicateConfirmed && !(next.DuplicateConfirmed && next.PossibleDouble):
		w.undue = "I2 what a person swore was taken back by " + ev.JournalName()
	case before.PossibleDouble && !next.PossibleDouble && !(ev.JournalName() == StatusSeen{}.JournalName() && next.countHolders() <= 1) || before.InDoubt && !next.InDoubt:
		w.undue = "I2 a flag was taken back by " + ev.JournalName()
	}
	w.e, w.fresh = next, true
	return true
}

// tell commits what became of an act, as the committer does: it applies to the entry as it is now. Told twice, it changes nothing more.
func (w *world) tell(act Act, outcome Event) {
	for range 2 {
		before := w.e
		c := Change{Key: w.e.Key, Rev: w.e.Rev, Fact: true, Act: act, Events: []Event{outcome}, At: at(0)}
		evs, err := c.EventsOn(w.e)
		if err != nil {
			w.undue = "I12 the outcome " + outcome.JournalName() + " was not heard: " + err.Error()
			return
		}
		for _, ev := range evs {
			if !w.commit(ev, 0) {
				w.undue = "I12 the outcome " + outcome.JournalName() + " was dropped in " + w.e.State.String()
				return
			}
		}
		_, isLate := evs[0].(OutcomeLate)
		if text := factBreaks(before, w.e, act, isLate); text != "" {
			w.undue = text + " by " + outcome.JournalName()
			return
		}
	}
}

func (w *world) send(m message) { w.net = append(w.net, m) }

func (w *world) take(m message) {
	w.net = slices.DeleteFunc(w.net, func(x message) bool { return x == m })
}

// giveUp makes everything in flight nobody's: requests may still arrive, answers
// find no connection. It returns the act that was under way.
func (w *world) giveUp() Act {
	act := w.vol.act
	w.vol = volatile{}
	for i := range w.net {
		w.net[i].mine = false
	}
	return act
}

func (w *world) inFlight(bum uint8) bool {
	return slices.ContainsFunc(w.net, func(m message) bool { return (m.kind == put || m.kind == putAccepted) && m.bum == bum })
}

// normalise drops what cannot matter: wall times, revisions, counters that only grow.
func (w *world) normalise() {
	e := &w.e
	if e.Cause.Code != CauseDeliveryUnknown { // by that one a release is flagged
		e.Cause = Cause{}
	}
	e.Rev, e.Attempt, e.NotBefore, e.SuccessRecord = 1, 0, time.Time{}, nil
	awaited := w.vol.act == e.ActUnderWay() // which number an act has is all the same
	if e.Acts = 1; w.vol.act != (Act{}) {
		w.vol.act.Number = 1 + uint32(bit(!awaited))
	}
	e.SeenAt, e.RegisteredAt, e.UploadedAt = epoch, epoch, epoch
	if !e.ArchivedAt.IsZero() {
		e.ArchivedAt = epoch
	}
	for i := range e.Registrations {
		if !w.fresh {
			break // nothing was committed: they are as they were
		}
		r := &e.Registrations[i]
		looked := r.IsGivenUp() && !(e.isCurrent(r) && r.Fate == Lapsed && r.EqualAnswers < neededAnswers && (!r.LastAnswer.After(r.ClosedAt) || r.LastStatus == archive.Unfamiliar)) // else nothing hangs on it
		r.UploadIntents, r.WithoutEffect, r.EqualAnswers, r.LastAnswer = min(r.UploadIntents-r.WithoutEffect, 2), 0, 0, epoch
		if r.LastStatus != archive.InProgress {
			r.LastStatus = archive.Unfamiliar
		}
		if looked {
			r.LastAnswer, r.LastStatus = epoch.Add(time.Hour), archive.Failed
		}
		if !r.ClosedAt.IsZero() {
			r.ClosedAt = epoch
		}
	}
	w.net = slices.DeleteFunc(w.net, func(m message) bool {
		return !m.mine && m.kind != post && m.kind != put && m.kind != putAccepted
	})
	slices.SortFunc(w.net, func(a, b message) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.bum, b.bum), cmp.Compare(a.gen, b.gen), cmp.Compare(bit(a.mine), bit(b.mine)))
	})
	w.net = slices.Compact(w.net)
	for i := range w.srv {
		if w.forgotten(uint8(i)) {
			w.srv[i].expired, w.srv[i].verdict, w.srv[i].judged, w.srv[i].late = true, abandoned, w.srv[i].epoch, true
		}
	}
}

// forgotten reports whether nothing can reach a registration any more, so that how
// it ends is all the same.
func (w *world) forgotten(bum uint8) bool {
	if w.srv[bum].content || slices.ContainsFunc(w.net, func(m message) bool { return m.bum == bum && m.kind != post }) {
		return false
	}
	return !slices.ContainsFunc(w.e.Registrations, func(r Registration) bool {
		return bumNumber(r.Ticket.Remote) == bum && (r.ClosedAt.IsZero() || r.Fate != Unsent && r.Fate != Lapsed)
	})
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// appendKey writes everything that can matter: two worlds with the same key behave alike.
func (w *world) appendKey(b []byte) []byte {
	b = w.e.appendKey(b)
	b = append(b, byte(w.vol.doing), w.vol.n, byte(w.vol.act.Number), w.vol.act.Generation, byte(w.disk), w.left.crash, w.left.loss, w.left.odd, w.left.human, w.left.restore, w.left.late, w.left.any, byte(len(w.net)))
	for _, m := range w.net {
		b = append(b, byte(m.kind), m.bum, m.gen, bit(m.mine))
	}
	for _, s := range w.srv {
		b = append(b, s.gen, bit(s.content)|bit(s.expired)<<1|bit(s.noticed)<<2|bit(s.late)<<3|bit(s.hidden)<<4, byte(s.verdict), s.epoch, s.judged, s.landed)
	}
	b = append(b, bit(w.copied)|bit(w.restored)<<1)
	if w.copied {
		b = w.copy.appendKey(b)
	}
	return b
}

func (e *Entry) appendKey(b []byte) []byte {
	b = append(b, byte(e.State), byte(e.Source), byte(e.Posts), byte(e.Answers), byte(e.LostAnswers), e.Failures, byte(e.BatchLimit), e.Generation,
		bit(e.Hold)|bit(e.InDoubt)<<1|bit(e.PossibleDouble)<<2|bit(e.Contradicted)<<3|bit(e.Resolved)<<4|bit(!e.DisposeAt.IsZero())<<5|bit(e.Dest != "")<<6|bit(e.NeedsReconcile)<<7)
	b = append(b, bit(e.DuplicateConfirmed), bit(e.Cause.Code == CauseDeliveryUnknown))
	archived := byte(255)
	if e.ArchivedRemote != "" {
		archived = bumNumber(e.ArchivedRemote)
	}
	b = append(b, archived, byte(len(e.Registrations)))
	for _, r := range e.Registrations {
		b = append(b, bumNumber(r.Ticket.Remote), r.Generation, byte(r.UploadIntents), byte(r.Fate), byte(r.LastStatus),
			bit(r.ClosedAt.IsZero())|bit(r.Ticket.URL == "")<<1|bit(r.LastAnswer.After(epoch))<<2, byte(r.Ticket.Date.Sub(epoch)/time.Hour))
	}
	return b
}

// broken says which promise does not hold in this world; empty: all do.
func (w *world) broken() string {
	if w.undue != "" {
		return w.undue
	}
	live, gone := 0, w.e.Source == Gone || w.e.Source == Moved
	for i, s := range w.srv {
		if !w.e.Route.IsAsked() {
			live += int(s.landed)
			continue
		}
		if s.content && s.verdict != failed && !w.isHidden(uint8(i)) {
			live++
		}
	}
	archived := slices.ContainsFunc(w.srv, func(s server) bool { return s.verdict == succeeded || !w.e.Route.IsAsked() && s.content })
	switch {
	case w.e.NeedsReconcile && w.disk == nowhere && !archived:
		return "I3 the source is gone and nothing is archived"
	case w.e.NeedsReconcile: // it says of itself that it does not know
		return ""
	case w.disk == nowhere && !gone && w.e.Source != Disposing:
		return "I1 the source vanished while it is " + w.e.Source.String()
	case w.disk == nowhere && w.restored && archived && (w.e.State == Quarantined || w.e.InDoubt) && !w.e.Route.IsAsked(): // a person is to look, or did
	case w.disk == nowhere && !(w.e.State == Archived && w.is(w.e.ArchivedRemote, succeeded)) && !w.isDelivered():
		return "I3 the source is gone and nothing is archived"
	case w.disk == atDest && w.e.Source == Claimed, w.disk == inClaimed && w.e.Source > Returning && w.e.Source != Keeping:
		return "I1 the source does not lie where the entry says"
	}
	_, _, due := Due(w.e)
	switch {
	case w.e.State == Delivered && !w.isDelivered():
		return "I12 delivered, but the store has no content"
	case !w.e.Route.IsAsked() && (w.e.State == Uploaded || w.e.State == Unclear || w.e.State == Archived):
		return "I12 " + w.e.State.String() + ", and the service never says so"
	case live > 1 && !w.e.PossibleDouble && (w.e.Route.IsAsked() || w.e.State != Quarantined && !w.e.InDoubt): // a person is to look at what waits there, or did
		return "I2 two archivable contents and the entry does not say so"
	case w.forgets():
		return "I2 nobody asks any more about a registration that got content"
	case w.listed(foreign):
		return "I8 a registration of somebody else was taken"
	case w.unknown() > int(w.e.Posts-w.e.Answers) && (w.e.Route.IsAsked() || !w.restored): // what a silent service was given after the copy nobody can tell
		return "I9 more unknown registrations than POSTs without an answer"
	case w.e.State == Uploaded && !w.holds(w.e.Current().Ticket.Remote):
		return "I12 uploaded, but the service has no content"
	case w.e.State == Archived && !w.is(w.e.ArchivedRemote, succeeded):
		return "I12 archived, but the service never said so"
	case w.e.State == Rejected && !w.e.InDoubt && !w.e.Contradicted && (live > 0 || w.anyPut()):
		return "I12 rejected as certainly absent, but content is possible"
	case w.e.State.IsOpen() && !due && !w.e.Hold:
		return "I25 an open entry with nothing due"
	}
	return w.e.misfit()
}

func (w *world) listed(bum uint8) bool {
	return slices.ContainsFunc(w.e.Registrations, func(r Registration) bool { return bumNumber(r.Ticket.Remote) == bum })
}

// isHidden reports whether the service said of a registration that there is nothing, and the
// entry has not heard yet that it took this back.
func (w *world) isHidden(bum uint8) bool {
	r := w.e.findRegistration(bumName(bum))
	return w.srv[bum].hidden && (r == nil || r.Fate == Unsent || r.IsGivenUp())
}

// forgets reports whether some content would never be heard of.
func (w *world) forgets() bool {
	_, _, due := Due(w.e)
	for i := range w.srv {
		if w.isHidden(uint8(i)) && (!due && !w.e.Hold || !slices.Contains(w.e.DueQuestions(epoch.Add(365*24*time.Hour)), bumName(uint8(i)))) {
			return true
		}
	}
	return false
}

// overdue reports whether the service has more to tell than the entry says.
func (w *world) overdue() bool {
	n := 0
	for _, s := range w.srv {
		n += int(bit(s.verdict == succeeded))
	}
	return n > 1 && !w.e.PossibleDouble || n > 0 && w.e.State != Archived && !w.e.Contradicted && w.e.State != Unclear
}

// unknown counts the registrations that the entry does not list. Of those that a
// restored one forgot only content counts: how many POSTs there were nobody knows.
func (w *world) unknown() (n int) {
	for i, s := range w.srv {
		if !w.listed(uint8(i)) && (!w.restored || s.content || w.inFlight(uint8(i))) {
			n++
		}
	}
	return n
}

// misfit says where the state and what is known of its registration differ.
func (e *Entry) misfit() string {
	r := e.Current()
	want := map[State]Fate{Registered: Unsent, Sending: MaybeStored, Uploaded: Stored, Unclear: MaybeStored}
	if fate, ok := want[e.State]; ok && (r == nil || r.Fate != fate) {
		return fmt.Sprintf("I25 %s, but its registration stands as fate %d, so that nobody asks the right question", e.State, r.Fate)
	}
	if e.State != Registered && e.State != Sending {
		for _, r := range e.Registrations {
			if r.Ticket.URL != "" {
				return "I7 a spent address was kept"
			}
		}
	}
	return ""
}

// isDelivered reports whether the entry is delivered and the store has its content.
func (w *world) isDelivered() bool {
	return w.e.State == Delivered && w.holds(w.e.Current().Ticket.Remote)
}

func (w *world) is(r archive.RemoteID, v verdict) bool {
	return r != "" && r != "foreign" && w.srv[bumNumber(r)].verdict == v
}

func (w *world) holds(r archive.RemoteID) bool {
	return r != "foreign" && w.srv[bumNumber(r)].content
}

func (w *world) anyPut() bool {
	return slices.ContainsFunc(w.net, func(m message) bool { return m.kind == put || m.kind == putAccepted })
}

// settled reports whether this is where an invoice may stay: at rest, or in front of
// a person, or at the bound of this model. A service that never tells leaves a
// question open for ever; then it is enough that the source is placed.
func (w *world) settled(o setup) bool {
	step, _, due := Due(w.e)
	if w.e.State.IsFinal() && w.overdue() {
		return false
	}
	waits := w.e.State.IsFinal() && due && step == Ask && (o.ambiguous || len(w.e.OpenQuestions()) == 0) // late questions alone change nothing
	rest := w.e.IsAtRest() || w.e.State.IsFinal() && w.e.NeedsPerson() && !due || waits
	return rest && w.vol.doing == idle || w.e.State == Unclear || w.e.State == Quarantined ||
		step == Register && w.e.Posts >= o.posts
}
