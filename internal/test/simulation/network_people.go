package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"vaultd/internal/ledger"
)

// networkEntries returns the entries of the business network that the running daemon has.
func (w *World) networkEntries() (all []ledger.Entry) {
	w.t.Helper()
	w.failOn(w.d.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
		if e.Route == ledger.Network {
			all = append(all, e)
		}
		return nil
	}))
	return all
}

// DecideDocuments lets a person decide on the documents of the network of which nobody knows what became. Who is careful looks into the
// network first; who is not has most of them sent again. One in ten is left for later.
func (w *World) DecideDocuments(r *rand.Rand, careful bool) {
	w.t.Helper()
	if w.life == nil || w.life.isDead() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	for _, e := range w.networkEntries() {
		if e.State != ledger.Quarantined || e.NeedsReconcile {
			continue
		}
		switch dice := r.IntN(10); {
		case dice == 0:
			continue
		case careful && w.wasSentToNetwork(e), !careful && dice < 4:
			after, err := w.d.Actions().Act(ctx, e, administrator, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} })
			w.log.newLogger().Info("a person closed a document", "folder", e.Folder, "state", after.State, "err", err)
		default:
			after, err := w.d.Actions().Release(ctx, e, administrator)
			w.log.newLogger().Info("a person had a document sent again", "folder", e.Folder, "state", after.State, "err", err)
		}
	}
}

// wasSentToNetwork reports whether the network has the document under any number of the entry.
func (w *World) wasSentToNetwork(e ledger.Entry) bool {
	for _, d := range w.emulator.SentDocuments() {
		if d.BumID == string(e.OwnNumber()) || slices.ContainsFunc(e.Registrations, func(r ledger.Registration) bool { return string(r.Ticket.Remote) == d.BumID }) {
			return true
		}
	}
	return false
}

// DropReturnedAgain lets people drop again what the network did not deliver, at once or days after it had said that it did. Each is dropped
// again once.
func (w *World) DropReturnedAgain(r *rand.Rand) {
	w.t.Helper()
	if w.life == nil || w.life.isDead() {
		return
	}
	for _, e := range w.networkEntries() {
		cameBack := e.State == ledger.Rejected && !e.InDoubt && (e.Cause.Code == ledger.CauseUndelivered || e.Cause.Code == ledger.CauseInvalidContent)
		i := slices.IndexFunc(w.dropped, func(d Dropped) bool { return w.dropName(d.Drop) == e.Drop && d.Name == e.Folder })
		if i < 0 || w.redropped[e.Key] || !cameBack && !e.IsUndelivered() || r.IntN(3) == 0 {
			continue
		}
		w.redropped[e.Key] = true
		d := w.dropped[i]
		w.DropFolders(d.Drop, d.CopyDocumentToDropAgain(1000+len(w.redropped)))
	}
}
