package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// listen hears the service's word about any registration of the entry at any time:
// asked for, or from the list that is at hand.
func (o setup) listen(w *world, add adder) {
	if o.mistake == "NeverAsks" || o.silent {
		return
	}
	heard := map[archive.RemoteID]bool{"foreign": true}
	for _, r := range w.e.Registrations {
		if heard[r.Ticket.Remote] {
			continue
		}
		heard[r.Ticket.Remote] = true
		bum := bumNumber(r.Ticket.Remote)
		s := w.srv[bum]
		word := o.word(s)
		rc := archive.Receipt{Remote: r.Ticket.Remote, Status: word, Updated: epoch.Add(time.Duration(s.judged)*time.Hour + time.Minute)}
		if s.late {
			rc.Updated = rc.Updated.Add(20 * time.Minute)
		}
		settled := s.expired && !w.inFlight(bum) && w.vol.doing == idle && (s.noticed || !s.content) // what the grace stands for
		add("hears early "+word.String(), false, func(x *world) { o.hear(x, rc, 0) })
		if settled {
			add("hears late "+word.String(), false, func(x *world) { o.hear(x, rc, grace) })
		}
		if r := w.e.findRegistration(rc.Remote); r.IsGivenUp() {
			add("hears again "+word.String(), false, func(x *world) { o.hear(x, rc, grace/graceParts) })
		}
		if w.left.odd > 0 && s.verdict == pending {
			absent := archive.Receipt{Remote: rc.Remote, Status: archive.Absent}
			add("hears 404", true, func(x *world) { x.left.odd--; o.hear(x, absent, grace/graceParts) })
			if settled {
				add("hears 404 late", true, func(x *world) {
					o.hear(x, absent, grace)
					o.hear(x, absent, grace+time.Hour)
					o.hear(x, absent, grace+2*time.Hour)
				})
			}
		}
	}
}

func (o setup) hear(x *world, rc archive.Receipt, d time.Duration) {
	rc.Date = epoch.Add(100 * grace) // our clock alone says what is late here
	ev := StatusSeen{Receipt: rc, Grace: grace}
	switch {
	case o.mistake == "NoGrace":
		ev.Grace = 0
	case o.mistake == "UnknownWordIsSuccess" && rc.Status == archive.Unfamiliar:
		ev.Receipt.Status = archive.Successful
	case o.mistake == "AbsentIsProof" && rc.Status == archive.Absent:
		ev.Receipt.Status = archive.WaitingForPackage
	case o.mistake == "UnusedTakenForFailed" && rc.Status == archive.Failed:
		ev.Receipt.Updated = rc.Updated.Truncate(time.Hour) // as if it failed inside the window
	case o.mistake == "FailureBelievedAtOnce" && rc.Status == archive.Failed && x.e.State == Unclear && rc.Remote == x.e.Current().Ticket.Remote:
		x.e.Registrations = slices.Clone(x.e.Registrations)
		x.e.Current().Fate = Lapsed
		x.e.enterState(Packaged)
		return
	}
	times := 1
	if d >= grace || ev.Grace == 0 {
		times = neededAnswers
	}
	for i := range times {
		x.commit(ev, d+time.Duration(i)*grace/graceParts)
	}
}

// human is the operator, who may hold anything, and close or release what is in doubt.
func (o setup) human(w *world, add adder) {
	if w.e.Hold {
		add("a person lets it go on", false, func(x *world) { x.commit(Unheld{}, 0) })
	} else if w.left.human > 0 {
		add("a person holds", true, func(x *world) { x.left.human--; x.commit(Held{}, 0) })
	}
	if w.left.human == 0 || w.e.State != Unclear && w.e.State != Quarantined {
		return
	}
	add("a person closes", true, func(x *world) { x.left.human--; x.commit(Closed{}, 0) })
	add("a person releases", true, func(x *world) {
		x.left.human--
		double := x.e.PossibleDouble
		x.commit(Released{}, 0)
		if o.mistake == "ReleaseUnflagged" {
			x.e.PossibleDouble = double
		}
	})
}

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
