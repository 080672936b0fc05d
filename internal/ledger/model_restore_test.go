package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// putBack is the machine that dies and gets a ledger from a backup. What was under way
// is nobody's any more, and the entry is as it was once.
func (o setup) putBack(w *world, add adder) {
	if w.left.restore > 0 && !w.copied && !w.restored {
		add("a backup is made", true, func(x *world) { x.left.restore--; x.copy, x.copied = x.e, true })
	}
	if w.copied {
		add("the backup is put back", true, func(x *world) {
			x.giveUp()
			x.e, x.copy, x.copied, x.restored, x.fresh = x.copy, Entry{}, false, true, true
			x.e.Registrations = slices.Clone(x.e.Registrations)
			if !x.e.IsAtRest() && o.mistake != "RestoredWithoutDoubt" {
				x.commit(ReconcileRequired{}, 0)
			}
		})
	}
	if w.e.NeedsReconcile && w.vol.doing == idle {
		add("reconcile", false, o.reconcile)
	}
}

// reconcile tells the entry what the service knows, looks where the source lies, and
// ends the suspicion.
func (o setup) reconcile(x *world) {
	for i, s := range x.srv {
		if o.silent || x.listed(uint8(i)) || o.mistake == "ReconciledWithoutAsking" {
			continue
		}
		id := x.e.FirstID
		if s.gen > 0 {
			id = id.Generation(int(s.gen))
		}
		x.commit(RegistrationFound{Remote: bumName(uint8(i)), ID: id, Date: epoch.Add(time.Duration(s.epoch) * time.Hour)}, 0)
	}
	for i, s := range x.srv {
		if o.silent || !x.listed(uint8(i)) {
			continue
		}
		rc := archive.Receipt{Remote: bumName(uint8(i)), Status: o.word(s), Updated: epoch.Add(time.Duration(s.judged)*time.Hour + time.Minute)}
		if s.late {
			rc.Updated = rc.Updated.Add(20 * time.Minute)
		}
		o.hear(x, rc, 0)
	}
	lies := map[place]SourceFound{atDest: {Kept, "there"}, nowhere: {Gone, ""}}[x.disk]
	if x.disk == atDest && x.e.State != Archived && x.e.State != Delivered {
		lies = SourceFound{Returned, "there"}
	}
	if x.disk != inClaimed && o.mistake != "SourceNotLookedFor" {
		if x.e.State.IsOpen() { // it was given back by a decision that is lost
			x.commit(SentToQuarantine{}, 0)
		}
		x.commit(lies, 0)
	}
	x.commit(Reconciled{}, 0)
}
