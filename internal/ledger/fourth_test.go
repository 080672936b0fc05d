package ledger

import (
	"errors"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// courier is a route that no program has: its service hands out a signed slip
// for each document, and none of the three others does.
const courier Route = "courier"

var courierRow = routeRow{route: courier, evidence: slip{}, form: Folders, vaults: true, ending: ".bin", noted: "courier"}

// slip is the evidence of courier: a slip that can be fetched again and again is
// the last word. It differs from each of the others in each answer that it
// gives itself.
type slip struct{ unasked }

func (slip) allows(_ *Entry, ev Event) bool {
	switch ev.(type) {
	case StatusSeen, DeliveryConfirmed, Unsealed:
		return false
	}
	return !isByNumber(ev)
}

func (slip) number(Entry) archive.RemoteID { return "" }

func (slip) begin(Entry) Step { return Register }

func (slip) await() Step { return Ask }

func (slip) repeat(e *Entry) { e.PossibleDouble = true }

func (slip) unsent() State { return Packaged } // an address serves one attempt

func (slip) lose(e *Entry, why string) {
	e.enterState(Unclear)
	e.Cause = Cause{Code: "slip-awaited", Text: why}
}

func (slip) restore(e *Entry, at archive.Instant) {
	switch {
	case e.State.IsOpen() && e.Current() != nil:
		e.Current().Fate = MaybeStored
		e.closeTicket(at.Wall)
		e.enterState(Unclear)
	case e.State == Registering:
		e.enterState(Packaged)
	}
}

func (slip) find(r *Registration) { r.UploadIntents = 1 }

func (slip) reaches(s State) bool { return s != Archived }

func (slip) recovers(s State) bool { return s == Delivered }

func (slip) release(e *Entry) { e.enterState(Packaged) }

func (slip) mayHavePackage(e *Entry) bool { return len(e.Registrations) > 0 }

func (slip) contradicted(State) Attention { return InQuarantine }

// slipSeen is the one event of its own.
type slipSeen struct{ signed bool }

func (slipSeen) JournalName() string { return "slip-seen" }

func (ev slipSeen) apply(e *Entry, at archive.Instant) error {
	r := e.Current()
	if r == nil || e.State != Uploaded && e.State != Unclear {
		return ErrIllegal
	}
	if !ev.signed {
		r.Fate, r.ClosedAt = Lapsed, at.Wall
		e.enterState(Packaged)
		return nil
	}
	r.Fate = Succeeded
	e.evidence().succeed(e, len(e.Registrations)-1, at)
	return nil
}

// withCourier adds the row for one test. No test that runs beside others may
// call it: it changes the table of all.
func withCourier(t *testing.T) {
	before := routeRows
	routeRows = append(slices.Clip(routeRows), courierRow)
	t.Cleanup(func() { routeRows = before })
}

// I2, I11: a route is a row. One that differs from the others in its evidence
// goes from the claim to its end by Transition and Due alone, through uploads
// that nobody answered and a restored ledger.
func TestRoute_I2_AFourthOneIsARow(t *testing.T) {
	withCourier(t)
	kit.Want(t, "routes", Routes(), []Route{Vault, PDF, Network, courier})
	kit.Want(t, "ending", courier.PackageEnding(), ".bin")
	e := Entry{Key: archive.Key{1}}
	step := func(due Step, queue string, evs ...Event) {
		t.Helper()
		got, _, _ := Due(e)
		kit.Want(t, "due", got, due)
		kit.Want(t, "queue", QueueOf(e), queue)
		e = must(t, e, 0, evs...)
	}
	const folder, service = "drop d", "vault V"
	unanswered := []Event{UploadIntended{}, UploadUnanswered{}}
	step(NoStep, "", ClaimedFolder{Route: courier, Vault: "V", Drop: "d", Folder: "f"})
	step(Seal, folder, Sealed{ID: archive.ID{1}, Content: archive.Digest{1}, Metadata: archive.Digest{2}, Package: zip(3)})
	step(Register, service, RegisterIntended{}, TicketReceived{ticket("1")})
	step(Upload, service, UploadIntended{}, UploadNotSent{})
	kit.Want(t, "state after an upload of which nothing left", e.State, Packaged)
	step(Register, service, RegisterIntended{}, TicketReceived{ticket("2")})
	step(Upload, service, unanswered...)
	step(Upload, service, unanswered...)
	kit.Want(t, "flagged, sent twice", e.PossibleDouble && !e.DuplicateConfirmed, true)
	step(Upload, service, WindowClosed{})
	kit.Want(t, "cause of what is unknown", e.Cause.Code, "slip-awaited")
	step(Ask, service, slipSeen{signed: false})
	step(Register, service, RegisterIntended{}, TicketReceived{ticket("3")}, UploadIntended{}, ReconcileRequired{})
	kit.Want(t, "state after the ledger was restored", e.State, Unclear)
	step(NoStep, "", Reconciled{})
	step(Ask, service, slipSeen{signed: true})
	kit.Want(t, "last word", e.State, Delivered)
	step(Place, folder, PlaceIntended{Dest: "_delivered/f"}, Placed{})
	kit.Want(t, "at rest", e.IsAtRest(), true)
	kit.Want(t, "bill", len(e.Transactions()), 0)
}

// I12: the evidence of one route is none of another one: its events are refused
// by the machine, whoever offers them.
func TestRoute_I12_EachTakesItsOwnEvidence(t *testing.T) {
	withCourier(t)
	evidenceOf := map[Route][]Event{
		Vault:   {StatusSeen{Receipt: archive.Receipt{Remote: "1", Status: archive.Successful, Updated: epoch, Record: []byte("{}")}, Grace: time.Hour}},
		PDF:     {DeliveryConfirmed{Sent: zip(3).SHA256}},
		Network: {NotificationSeen{archive.Notification{AcknowledgementID: "a", Document: "1", Response: "TechnicalAccept", Action: "Delivered"}}},
	}
	for _, r := range Routes() {
		e := Entry{Key: archive.Key{1}, Route: r, State: Sending, Source: Claimed, ID: archive.ID{1}, FirstID: archive.ID{1}, Package: zip(3), Posts: 1, Answers: 1,
			Registrations: []Registration{{Ticket: ticket("1"), Fate: MaybeStored, UploadIntents: 1}}}
		for of, evs := range evidenceOf {
			_, err := Transition(e, evs[0], at(0))
			e.State = Delivered
			kit.Want(t, string(r)+": may be copied", e.MayBeCopied(), r == Network)
			e.State = Sending
			kit.Check(t, (err == nil) == (of == r) && (err == nil || errors.Is(err, ErrIllegal)), "%s of %s on %s: %v, want it allowed: %v", evs[0].JournalName(), of, r, err, of == r)
		}
	}
}

// Each column of each row says something of its own, but for the few that may
// be empty.
func TestRoute_EachRowIsWhole(t *testing.T) {
	for _, row := range routeRows {
		kit.Check(t, row.route != "" && row.evidence != nil && row.ending != "" && (row.noted != "") == (row.route != Vault), "a column of %+v is missing", row)
	}
}
