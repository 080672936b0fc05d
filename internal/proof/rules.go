package proof

import (
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

var (
	unsealed          = ledger.Unsealed{}.JournalName()
	registerIntended  = ledger.RegisterIntended{}.JournalName()
	ticketReceived    = ledger.TicketReceived{}.JournalName()
	registrationFound = ledger.RegistrationFound{}.JournalName()
	documentIntended  = ledger.DocumentIntended{}.JournalName()
	recovered         = ledger.Recovered{}.JournalName()
	reconcileRequired = ledger.ReconcileRequired{}.JournalName()
	statusSeen        = ledger.StatusSeen{}.JournalName()
	notificationSeen  = ledger.NotificationSeen{}.JournalName()
	filesStored       = ledger.FilesStored{}.JournalName() // the intent stands for those that are still under way
	outcomeLate       = ledger.OutcomeLate{}.JournalName()
)

func namesOf(evs ...ledger.Event) map[string]bool {
	names := map[string]bool{}
	for _, ev := range evs {
		names[ev.JournalName()] = true
	}
	return names
}

var (
	// intents announce a remote call or a move.
	intents = namesOf(ledger.RegisterIntended{}, ledger.UploadIntended{}, ledger.FilesIntended{}, ledger.DocumentIntended{}, ledger.PlaceIntended{}, ledger.DisposeIntended{})
	// outcomes report a remote call or a move that an intent announced.
	outcomes = namesOf(ledger.RegisterUnanswered{}, ledger.RegisterNotTaken{}, ledger.BatchRefused{}, ledger.RegisterRefused{}, ledger.AnswerMixedUp{}, ledger.TicketReceived{},
		ledger.UploadNotSent{}, ledger.UploadUnanswered{}, ledger.UploadRefused{}, ledger.UploadAccepted{}, ledger.DeliveryConfirmed{},
		ledger.DocumentTaken{}, ledger.DocumentRefused{},
		ledger.Placed{}, ledger.Disposed{})
	// answers are the outcomes that answer a POST of a registration.
	answers = namesOf(ledger.RegisterNotTaken{}, ledger.BatchRefused{}, ledger.RegisterRefused{}, ledger.TicketReceived{})
	// uploads report that the bytes which left arrived.
	uploads = namesOf(ledger.UploadAccepted{}, ledger.DeliveryConfirmed{})
)

// lineRules are the rules of the lines of entries.
var lineRules = []rule[item]{
	{"I11", func(it *item, l *readLine) bool { return (outcomes[l.Event] || l.Event == filesStored) && !it.intent }, "without an intent before it"},
	{"I2", func(it *item, l *readLine) bool {
		return !it.old && l.isSuccess() && it.success != (short{}) && it.success != noSuccess && it.success != l.remote && !strings.Contains(l.Flags, "double")
	}, "a second registration is archived, and the entry does not say so"},
	{"I12", func(it *item, l *readLine) bool {
		return !it.old && l.to == ledger.Archived && it.success == (short{}) && !l.isSuccess() && l.Event != recovered
	}, "archived without the service's success"},
	{"I12", func(it *item, l *readLine) bool { return l.to != it.state && l.saysOtherwise() }, "the notification does not say so"},
	{"I4", func(it *item, l *readLine) bool {
		return uploads[l.Event] && it.seal != (short{}) && shorten(l.Seal) != it.seal
	}, "the bytes that left are not the package as it was sealed"},
	{"I13", func(it *item, l *readLine) bool { return l.takesBack(it.flags) }, "takes back the flags of the line before"},
}

// isSuccess reports whether the line tells of the service's own success.
func (l *readLine) isSuccess() bool {
	return l.Event == statusSeen && l.Status == archive.Successful.String()
}

// endsSaidBy has what a notification of the business network says where it leads to an end.
var endsSaidBy = map[ledger.State][]archive.Meaning{
	ledger.Uploaded: {archive.MeansProcessing}, ledger.Delivered: {archive.MeansDelivered}, ledger.Rejected: {archive.MeansUndelivered, archive.MeansInvalid},
}

// saysOtherwise reports whether the line is a notification that does not tell
// of the state that it led to.
func (l *readLine) saysOtherwise() bool {
	return l.Event == notificationSeen && !slices.Contains(endsSaidBy[l.to], archive.MeaningOfPair(l.Status))
}

// binds reports whether the line gives a registration to its entry.
func (l *readLine) binds() bool {
	return l.Event == ticketReceived || l.Event == registrationFound || l.Event == documentIntended || l.Event == recovered && l.Remote != ""
}

// bind notes the registration that a line gives to its entry: it belongs to one
// identity for ever. Any other line is about one that was given to it.
func (f *Replay) bind(it *item, l *readLine) {
	b, ok := f.bindings[l.remote]
	switch {
	case !l.binds():
		f.require(l.Remote == "" || b.isBoundTo(l.key) || !ok && it.old, "I8", l.key, "line %d is about registration %s, which was never given to it", l.N, l.Remote)
		return
	case ok && l.Event == documentIntended && b.last == l.key && b.id == it.id:
		return // sent again under its number
	}
	it.tickets++
	switch {
	case !ok:
		b = binding{first: l.key, id: it.id, found: l.Event == registrationFound}
	case b.id != it.id && !(b.isBoundTo(l.key) && (b.found || l.Event != ticketReceived)):
		f.addFinding("I8", l.key, "line %d binds registration %s, which belongs to %s as clientUUID %s", l.N, l.Remote, b.last, b.id)
		return
	}
	b.last = l.key
	f.bindings[l.remote] = b
}

// advance is what a line changes.
func (it *item) advance(l *readLine) {
	it.intent = intents[l.Event] || it.intent && !outcomes[l.Event]
	if l.Event == reconcileRequired {
		it.intent = it.intent && it.state.IsFinal() // the process that announced it is gone
	}
	if l.Event == registerIntended {
		it.posts++
	}
	if answers[l.Event] {
		it.answers++
	}
	switch {
	case it.success != (short{}):
	case l.isSuccess(), l.Event == recovered && l.to == ledger.Archived:
		it.success = l.remote
	case l.to == ledger.Archived:
		it.success = noSuccess // reported once
	}
	if l.Seal != "" && !uploads[l.Event] {
		it.seal, it.size = shorten(l.Seal), l.Size
	}
	it.rev, it.state, it.source, it.flags = l.Rev, l.to, l.then, l.Flags
}
