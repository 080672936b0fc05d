package ledger

import (
	"slices"
	"time"

	"vaultd/internal/archive"
)

// move is one step of the model. A faulty one needs the adversary, and liveness does
// not count on it.
type move struct {
	label  string
	faulty bool
	to     world
}

// moves returns everything that can happen next.
func (o setup) moves(w *world) []move {
	var ms []move
	add := func(label string, faulty bool, f func(*world)) {
		if faulty && w.left.any == 0 {
			return
		}
		x := w.clone()
		if faulty {
			x.left.any--
		}
		f(&x)
		x.normalise()
		ms = append(ms, move{label, faulty, x})
	}
	o.network(w, add)
	o.service(w, add)
	if w.left.crash > 0 && w.vol.doing != idle {
		add("crash", true, func(x *world) { x.left.crash--; x.giveUp() })
	}
	switch w.vol.doing {
	case idle:
		o.next(w, add)
	case toPost, postWaits:
		o.posting(w, add)
	case toPut, putWaits:
		o.putting(w, add)
	default:
		o.onDisk(w, add)
	}
	o.listen(w, add)
	o.human(w, add)
	o.putBack(w, add)
	return ms
}

type adder func(label string, faulty bool, f func(*world))

// network delivers, loses and repeats what is in flight.
func (o setup) network(w *world, add adder) {
	for _, m := range w.net {
		if w.left.loss > 0 {
			add("a message is lost", true, func(x *world) { x.left.loss--; x.take(m) })
		}
		switch m.kind {
		case post:
			add("POST arrives", false, func(x *world) { x.take(m); o.register(x, m) })
			if w.left.odd > 0 && m.mine {
				add("POST is refused", true, func(x *world) {
					x.left.odd--
					x.take(m)
					x.send(message{kind: postRefused, mine: true})
				})
				add("POST arrives, its answer is crossed", true, func(x *world) {
					x.left.odd--
					x.take(m)
					o.register(x, m)
					x.net[len(x.net)-1].kind = postCrossed
				})
			}
		case put:
			add("PUT arrives", false, func(x *world) {
				x.take(m)
				m.kind = putAccepted
				if x.srv[m.bum].expired {
					m.kind = putRefused
				}
				x.send(m)
			})
			if w.left.late > 0 && m.mine && !w.srv[m.bum].expired {
				add("PUT arrives, is kept and refused", true, func(x *world) {
					x.left.late--
					x.take(m)
					x.srv[m.bum].content, x.srv[m.bum].hidden = true, true
					x.send(message{kind: putRefused, bum: m.bum, mine: true})
				})
			}
			if w.left.loss > 0 && !m.mine && !o.silent { // a client that got its one answer sent one request
				add("PUT arrives and is repeated", true, func(x *world) {
					x.left.loss--
					if !x.srv[m.bum].expired {
						x.send(message{kind: putAccepted, bum: m.bum})
					}
				})
			}
		case putAccepted:
			add("content lands", false, func(x *world) {
				x.take(m)
				s := &x.srv[m.bum]
				s.content = true
				if o.silent {
					s.landed = min(s.landed+1, 2) // more change nothing, and the space stays finite
				}
				if s.verdict == failed && s.judged < s.epoch {
					s.verdict, s.noticed = pending, false
				}
				m.kind = putStored
				x.send(m)
			})
		}
	}
}

// register makes the service take a POST; the answer is the last message.
func (o setup) register(x *world, m message) {
	for i := range x.srv {
		s := &x.srv[i]
		switch {
		case s.gen != m.gen:
		case o.repeat == refuse:
			x.send(message{kind: postRefused, mine: m.mine})
			return
		case o.repeat == deduplicate:
			s.expired = false
			s.epoch++
			if s.verdict == abandoned {
				s.verdict = pending // it waits again
			}
			x.send(message{kind: postTaken, bum: uint8(i), mine: m.mine})
			return
		}
	}
	x.srv = append(x.srv, server{gen: m.gen, epoch: 1})
	x.send(message{kind: postTaken, bum: uint8(len(x.srv) - 1), mine: m.mine})
}

// service lets windows end and verdicts fall.
func (o setup) service(w *world, add adder) {
	for i, s := range w.srv {
		judge := func(label string, v verdict, late bool) {
			add(label, false, func(x *world) { x.srv[i].verdict, x.srv[i].judged, x.srv[i].late = v, x.srv[i].epoch, late })
		}
		if s.content && !s.noticed && s.verdict != failed && !o.silent {
			add("the archive notices the content", false, func(x *world) { x.srv[i].verdict, x.srv[i].noticed = pending, true })
		}
		if s.content && s.verdict == failed && w.left.late > 0 {
			add("a failed job runs again", true, func(x *world) {
				x.left.late--
				x.srv[i].verdict, x.srv[i].noticed, x.srv[i].hidden = pending, true, true
			})
		}
		if !s.expired {
			add("the window ends", false, func(x *world) { x.srv[i].expired = true })
		}
		switch {
		case o.silent:
		case s.verdict == failed && s.judged < s.epoch && s.expired:
			judge("the service gives the repeated registration up", failed, true)
		case s.verdict != pending:
		case s.noticed:
			judge("archiving succeeds", succeeded, false)
			judge("archiving fails", failed, false)
			if s.expired {
				judge("archiving fails late", failed, true)
			}
		case s.expired:
			judge("the service gives the registration up", abandoned, true)
		}
	}
}

// word is what the service says about a registration now.
func (o setup) word(s server) archive.ServiceStatus {
	switch {
	case s.verdict == succeeded:
		return archive.Successful
	case s.verdict == failed, s.verdict == abandoned:
		return archive.Failed
	case o.ambiguous:
		return archive.Unfamiliar
	case s.noticed:
		return archive.InProgress
	}
	return archive.WaitingForPackage
}

// next does what the engine does for an idle entry: it asks Due, commits the
// intent, and only then is there something to do.
func (o setup) next(w *world, add adder) {
	step, _, _ := Due(w.e)
	switch step {
	case Register:
		if w.e.Posts >= o.posts {
			return
		}
		add("intend POST", false, func(x *world) {
			if o.mistake != "NoIntentBeforePost" {
				x.commit(RegisterIntended{}, 0)
			}
			x.vol = volatile{doing: toPost, act: x.e.ActUnderWay()}
		})
	case Upload:
		bum := bumNumber(w.e.Current().Ticket.Remote)
		unknown := w.e.State == Sending && o.silent && !o.repeats && o.mistake != "RepeatedUnflagged"
		if unknown {
			add("a person is to look", false, func(x *world) { x.commit(UploadUnanswered{NoRepeat: true}, 0) })
		}
		if !unknown && bum != foreign && !w.srv[bum].expired && w.e.Current().Ticket.URL != "" {
			add("intend PUT", false, func(x *world) {
				if o.mistake != "NoIntentBeforePut" {
					x.commit(UploadIntended{}, 0)
				}
				if o.mistake == "RepeatedUnflagged" {
					x.e.PossibleDouble, x.e.DuplicateConfirmed = false, false
				}
				x.vol = volatile{doing: toPut, n: bum, act: x.e.ActUnderWay()}
			})
		}
		add("close the window", false, func(x *world) {
			x.commit(WindowClosed{}, 0)
			if o.mistake == "RegisteredAgainBlindly" && x.e.State == Quarantined {
				x.e.Registrations[len(x.e.Registrations)-1].Fate = Unsent
				x.e.enterState(Packaged)
			}
			if o.mistake == "BlindReregistration" && x.e.State == Unclear {
				x.e.Registrations[len(x.e.Registrations)-1].Fate = Lapsed
				x.e.enterState(Packaged)
			}
		})
	case Place:
		add("intend to place", false, func(x *world) {
			x.commit(PlaceIntended{Dest: "there"}, 0)
			x.vol.doing = toPlace
		})
	case Dispose:
		add("intend to dispose", false, func(x *world) {
			if x.commit(DisposeIntended{}, time.Hour) {
				x.vol.doing = toDispose
			}
		})
	}
	if o.mistake == "DisposeAfter2xx" && w.e.State == Uploaded {
		add("dispose", false, func(x *world) { x.disk = nowhere })
	}
}

// posting acts on an intent to register and commits its outcome.
func (o setup) posting(w *world, add adder) {
	if w.vol.doing == toPost {
		add("POST leaves", false, func(x *world) {
			x.vol.doing = postWaits
			x.send(message{kind: post, gen: x.e.Generation, mine: true})
		})
		if w.left.odd > 0 {
			add("POST cannot leave", true, func(x *world) { x.left.odd--; x.tell(x.giveUp(), RegisterNotTaken{}) })
		}
		return
	}
	add("POST is given up", false, func(x *world) { x.tell(x.giveUp(), RegisterUnanswered{}) })
	for _, m := range w.net {
		if !m.mine {
			continue
		}
		switch m.kind {
		case postTaken:
			add("ticket", false, func(x *world) { o.ticket(x, x.giveUp(), m.bum) })
		case postCrossed:
			add("crossed answer", false, func(x *world) {
				act := x.giveUp()
				if o.mistake == "AdoptedByPosition" {
					o.ticket(x, act, foreign)
					return
				}
				x.tell(act, AnswerMixedUp{})
			})
		case postRefused:
			add("refusal", false, func(x *world) {
				act := x.giveUp()
				if x.e.BatchLimit == 1 {
					x.tell(act, RegisterRefused{})
					return
				}
				x.tell(act, BatchRefused{Part: 1})
			})
		}
	}
}

func (o setup) ticket(x *world, act Act, bum uint8) {
	date := epoch
	if bum != foreign {
		date = epoch.Add(time.Duration(x.srv[bum].epoch) * time.Hour)
	}
	if o.mistake == "NoIntentBeforePost" {
		x.commit(RegisterIntended{}, 0)
		act = x.e.ActUnderWay()
	}
	x.tell(act, TicketReceived{archive.Ticket{Remote: bumName(bum), URL: "u", Sent: at(0), Date: date}})
}

// putting acts on an intent to upload and commits its outcome.
func (o setup) putting(w *world, add adder) {
	if w.vol.doing == toPut {
		add("PUT leaves", false, func(x *world) {
			x.vol.doing = putWaits
			x.send(message{kind: put, bum: x.vol.n, mine: true})
		})
		if w.left.odd > 0 {
			add("PUT cannot leave", true, func(x *world) { x.left.odd--; x.tell(x.giveUp(), UploadNotSent{}) })
		}
		return
	}
	ended := func(x *world) Act {
		act := x.giveUp()
		if o.mistake == "NoIntentBeforePut" {
			x.commit(UploadIntended{}, 0)
			act = x.e.ActUnderWay()
		}
		return act
	}
	taken := func(x *world, act Act) {
		if o.silent {
			x.tell(act, DeliveryConfirmed{Sent: x.e.Package.SHA256})
			return
		}
		x.tell(act, UploadAccepted{Sent: x.e.Package.SHA256})
	}
	add("PUT is given up", false, func(x *world) {
		act := ended(x)
		if o.mistake == "TimeoutTakenForSuccess" {
			taken(x, act)
			return
		}
		x.tell(act, UploadUnanswered{NoRepeat: o.silent && !o.repeats})
	})
	for _, m := range w.net {
		switch {
		case m.mine && m.kind == putStored:
			add("PUT 200", false, func(x *world) {
				taken(x, ended(x))
			})
		case m.mine && m.kind == putRefused:
			add("PUT 403", false, func(x *world) {
				act := ended(x)
				if o.mistake == "RefusalHidesEarlierAttempt" {
					x.e.Registrations = slices.Clone(x.e.Registrations)
					x.e.Current().WithoutEffect = x.e.Current().UploadIntents - 1
				}
				x.tell(act, UploadRefused{})
				if o.mistake == "RefusalForgotten" && x.e.State == Packaged {
					x.e.Current().Fate = Unsent
				}
			})
		}
	}
}

// onDisk moves the source; a crash may lie between any two of these.
func (o setup) onDisk(w *world, add adder) {
	switch w.vol.doing {
	case toPlace:
		if w.disk == nowhere {
			return
		}
		add("the source is moved", false, func(x *world) { x.disk, x.vol.doing = atDest, placed })
	case placed:
		add("placed", false, func(x *world) { x.vol = volatile{}; x.commit(Placed{DisposeAt: epoch}, 0) })
	case toDispose:
		add("the source is removed", false, func(x *world) { x.disk, x.vol.doing = nowhere, disposed })
	case disposed:
		add("disposed", false, func(x *world) { x.vol = volatile{}; x.commit(Disposed{}, 0) })
	}
}
