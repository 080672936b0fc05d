package ingest

import (
	"context"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// way is how the documents of a route reach their service, whatever is
// configured: a type with a method for each question. A route whose service is
// not configured any more has one as well.
type way interface {
	// seal lets a packed folder on, unless its identity is another entry's.
	seal(c *Engine, d Drop, e ledger.Entry, p Packed) []ledger.Change
	// refused returns what follows where the service refuses a registration.
	refused(c *Engine, asked []ledger.Entry, err *apicall.Error) []ledger.Change
	// locked is where nothing goes any more once the service mixed up documents
	// twice.
	locked(e ledger.Entry) Target
	// call tells the calls of one instant apart that gave tickets; empty: there is
	// one.
	call(e ledger.Entry) archive.RemoteID
	// ahead is how many uploads may be announced ahead of their slots.
	ahead() int
	// admit returns how the upload of an entry that is due may go now.
	admit(c *Engine, e ledger.Entry, now archive.Instant) admission
	// book books an upload unless it would keep others from ending in time.
	book(c *Engine, e ledger.Entry, alone bool) bool
	// start announces a task, and returns what sends it.
	start(c *Engine, t *task) func(context.Context)
	// mayRepeat reports whether the same bytes may go to the same address again
	// where nobody knows what became of the first time.
	mayRepeat(r Route) bool
	// taken is what the store's 2xx to the recorded bytes means.
	taken(ev ledger.UploadAccepted, poll time.Time) ledger.Event
	// isAsked reports whether the service tells later what became of an upload.
	isAsked() bool
}

// ways has the way of each route.
var ways = map[ledger.Route]way{ledger.Vault: archiveWay{}, ledger.PDF: pdfWay{}, ledger.Network: networkWay{}}

// announcedAhead is how many uploads are announced ahead of their slots where the
// intent costs nothing after a crash.
const announcedAhead = 256

// archiveWay registers in batches, uploads and asks.
type archiveWay struct{}

func (archiveWay) seal(c *Engine, d Drop, e ledger.Entry, p Packed) []ledger.Change {
	return c.sealDerived(d, e, p)
}

func (archiveWay) refused(c *Engine, asked []ledger.Entry, err *apicall.Error) []ledger.Change {
	return c.splitRefusedBatch(asked, err)
}

func (archiveWay) locked(e ledger.Entry) Target { return registerTargetOf(e) }

func (archiveWay) call(ledger.Entry) archive.RemoteID { return "" }

func (archiveWay) ahead() int { return announcedAhead }

func (archiveWay) admit(c *Engine, e ledger.Entry, now archive.Instant) admission {
	return c.admitUpload(e, now)
}

func (archiveWay) book(c *Engine, e ledger.Entry, alone bool) bool { return c.beginUpload(e, alone) }

func (archiveWay) start(c *Engine, t *task) func(context.Context) { return c.startUpload(t) }

func (archiveWay) mayRepeat(Route) bool { return true }

func (archiveWay) taken(ev ledger.UploadAccepted, poll time.Time) ledger.Event {
	ev.NotBefore = poll
	return ev
}

func (archiveWay) isAsked() bool { return true }

// pdfWay registers one document at a time, and hears no more after the upload.
type pdfWay struct{ archiveWay }

func (pdfWay) seal(c *Engine, d Drop, e ledger.Entry, p Packed) []ledger.Change {
	if d.SendsAgain {
		return c.sealNextGeneration(d, e, p)
	}
	return c.sealDerived(d, e, p)
}

// refused: what was refused are addresses of the configuration. No document is to
// blame, and all of them wait.
func (pdfWay) refused(c *Engine, asked []ledger.Entry, err *apicall.Error) []ledger.Change {
	return c.pauseAfterRefusal(asked, err)
}

// locked is all of its drops: nothing is registered while nothing may be
// uploaded.
func (pdfWay) locked(e ledger.Entry) Target { return storeOf(e) }

// call: each registers one document, and several may be sent in one instant.
func (pdfWay) call(e ledger.Entry) archive.RemoteID { return e.Current().Ticket.Remote }

// ahead: after a crash an upload that was announced counts as one that may have
// been made, and nobody can be asked. No more of them are announced than there
// are slots, beside those whose outcome is being committed.
func (pdfWay) ahead() int { return 0 }

func (pdfWay) mayRepeat(r Route) bool { return r.RepeatsUpload }

func (pdfWay) taken(ev ledger.UploadAccepted, _ time.Time) ledger.Event {
	return ledger.DeliveryConfirmed{Sent: ev.Sent, Seal: ev.Seal, Request: ev.Request}
}

func (pdfWay) isAsked() bool { return false }

// networkWay sends under numbers of ours: there is no ticket and no window. What
// was announced and not sent is sent after a crash under the same number.
type networkWay struct{ pdfWay }

func (networkWay) seal(c *Engine, d Drop, e ledger.Entry, p Packed) []ledger.Change {
	return c.sealForNetwork(d, e, p)
}

func (networkWay) ahead() int { return announcedAhead }

func (networkWay) admit(_ *Engine, e ledger.Entry, _ archive.Instant) admission {
	return admission{Target: storeOf(e), Most: 1}
}

func (networkWay) book(*Engine, ledger.Entry, bool) bool { return true }

func (networkWay) start(c *Engine, t *task) func(context.Context) {
	return func(ctx context.Context) { c.send(ctx, t) }
}
