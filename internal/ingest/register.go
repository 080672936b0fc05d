package ingest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// maxBody bounds the bytes of metadata in one registration.
const maxBody = 4_000_000

// registerStep asks for tickets, many documents at once, and only for as many as
// can be uploaded in time.
func (c *Engine) registerStep() engine.Step[ledger.Entry, Target] {
	s := c.newStep(ledger.Register, c.registerWidth())
	s.Terms = func(queue string) engine.Terms[Target] {
		row := c.row(routeOfQueue(queue))
		return engine.Terms[Target]{Target: targetOf(queue), Batch: row.BatchSize, Linger: row.BatchWait,
			Slots: func() int { return c.callsAtOnce(registerTargetOfQueue(queue), c.registrationsAtOnce(queue)) }}
	}
	s.Admit = c.admitToRegister
	s.Limit = c.countAffordable
	s.Start = func(t *task) func(context.Context) {
		intent := c.announce(t, func(e ledger.Entry) ([]ledger.Event, bool, error) { return c.intendToRegister(e, t.Now) })
		return func(ctx context.Context) { c.register(ctx, t, intent.wait()) }
	}
	return s
}

// admitToRegister returns how an entry may be registered now.
func (c *Engine) admitToRegister(string, archive.Instant) (func(ledger.Entry) admission, error) {
	if c.isHeld() {
		return nil, nil
	}
	return func(e ledger.Entry) admission {
		most := c.routeOf(e).BatchSize
		if e.BatchLimit > 0 {
			most = min(int(e.BatchLimit), most)
		}
		return admission{Target: registerTargetOf(e), Most: most}
	}, nil
}

func (c *Engine) intendToRegister(e ledger.Entry, now archive.Instant) ([]ledger.Event, bool, error) {
	d, err := c.configuredDrop(e)
	if err != nil {
		return nil, false, err // it could not be uploaded
	}
	if changed, err := c.hasOtherRequest(d, e, now); changed || err != nil {
		return []ledger.Event{ledger.Unsealed{}}, false, err
	}
	return []ledger.Event{ledger.RegisterIntended{}}, true, nil
}

// register registers documents whose intents are committed, and lets those with
// a ticket go on to their upload in the same commit, for which there is room. A
// crash before that commit loses the tickets: the next start registers again.
func (c *Engine) register(ctx context.Context, t *task, acts []ledger.Entry) {
	if len(acts) == 0 {
		return
	}
	if !c.beginRisky(ctx, t, acts[0]) {
		c.takeBack(t, acts, func(ledger.Entry) ledger.Event {
			return ledger.RegisterNotTaken{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: "stopped"}}
		})
		return
	}
	outcome := c.registerBatch(ctx, acts)
	if len(outcome) == 0 {
		return
	}
	with, uploads := c.handOn(t, acts, outcome)
	t.Leave(true)
	results := <-c.submit(with)
	for _, res := range results {
		if next := uploads[res.Key]; next != nil {
			next.Go(ctx, func(ctx context.Context) {
				if res.Err == nil && res.Entry.State == ledger.Sending { // an entry that moved on has its ticket alone
					c.upload(ctx, next, []ledger.Entry{res.Entry})
				}
			})
		}
	}
	c.correct(acts, results)
}

// handOn adds to the tickets that an answer brought the intent to upload, for
// as many as may start now and have room. It returns the outcome to commit, and
// the tasks of those uploads.
//
// Ticket and intent are one commit then: without that a document costs one
// commit more (rows flat-100k and whole-S of the bench). A crash after it finds
// "sending" although no byte was sent: the next start sends the same bytes to
// the same address while it works, and asks for evidence when it does not.
func (c *Engine) handOn(t *task, acts []ledger.Entry, outcome []ledger.Change) ([]ledger.Change, map[archive.Key]*task) {
	store, now := uploadTargetOf(t.Queue), c.cfg.Now()
	if c.isHeld() || c.isDraining(t.Queue) {
		return outcome, nil
	}
	sizes := map[archive.Key]int64{}
	for _, e := range acts {
		sizes[e.Key] = e.Package.Size
	}
	with, tasks := slices.Clone(outcome), map[archive.Key]*task{}
	for i, change := range with {
		got, ok := change.Events[0].(ledger.TicketReceived)
		if !ok || !c.cfg.Planner.MayStart(got.Ticket, sizes[change.Key], nil, now) {
			continue
		}
		if next := t.HandOn(ledger.Upload.String(), t.Queue, store, change.Key); next != nil {
			tasks[change.Key] = next
			with[i].Events = []ledger.Event{got, uploadIntent(c.row(routeOfQueue(t.Queue)), got.Ticket)}
		}
	}
	return with, tasks
}

// countAffordable returns how many of a queue's ready entries may be given a ticket now, and when
// to ask again where nothing that is under way will tell. Only tickets that can be used just
// now count: those of a vault whose store is away do not use the network link. A vault
// that holds none may always have one.
func (c *Engine) countAffordable(ready []ledger.Entry) (n int, again time.Time, err error) {
	// While the store takes no uploads a ticket would expire unused.
	queue := ledger.ServiceQueueOf(ready[0])
	store := uploadTargetOf(queue)
	if again, open := c.breakers.IsOpen(store, c.cfg.Now().Wall); open {
		return 0, again, nil
	}
	own, granted, err := c.tickets(queue)
	if err != nil {
		return 0, again, err
	}
	if !c.breakers.IsClosed(store) { // a document with a ticket makes the probe; the vault needs one ticket for that
		return max(0, 1-own), time.Time{}, nil
	}
	var waiting []int64
	for _, e := range ready {
		waiting = append(waiting, e.Package.Size)
	}
	// The planner sees the tickets of all vaults: their uploads share one network link.
	n = c.cfg.Planner.Plan(string(ready[0].Route), waiting, granted, c.cfg.Now())
	// A vault without any ticket gets one, however busy the link is with other vaults.
	if own == 0 {
		n = max(n, 1)
	}
	return n, time.Time{}, nil
}

// tickets returns the sizes of the documents that hold a ticket or are being
// given one, in a service queue itself and in all others whose store takes
// uploads; own is how many are of the queue itself. They are read out of the
// due index for each batch (0.16 ms for 64 tickets, 0.6 ms for 256), and what
// is being registered the dispatcher knows itself: no copy can be out of step
// with the ledger. What a start finds as registering holds nothing yet, and
// does not count.
func (c *Engine) tickets(queue string) (own int, sizes []int64, err error) {
	seen := map[archive.Key]bool{}
	counts := func(of string) bool { return of == queue || c.breakers.IsClosed(uploadTargetOf(of)) }
	count := func(of string, e ledger.Entry) {
		if seen[e.Key] || !counts(of) {
			return
		}
		seen[e.Key] = true
		sizes = append(sizes, e.Package.Size)
		if of == queue {
			own++
		}
	}
	c.lanes.UnderWay(ledger.Register.String(), count)
	queues, err := c.cfg.Index.Queues(ledger.Upload)
	for _, of := range queues {
		if !counts(of) { // hundreds of tickets may wait for a store that is away: they are not read
			continue
		}
		_, _, errDue := c.cfg.Index.DueInQueue(ledger.Upload, of, c.farAway(), 1, nil, func(e ledger.Entry) bool {
			if e.State > ledger.Registering { // else it needs no ticket
				count(of, e)
			}
			return true
		})
		err = errors.Join(err, errDue)
	}
	return own, sizes, err
}

func (c *Engine) registerBatch(ctx context.Context, es []ledger.Entry) []ledger.Change {
	var frozen []archive.RegisterRequest
	var asked, rest []ledger.Entry
	size := 0
	for _, e := range es {
		doc, ok, err := c.cfg.Ledger.Document(e.Key)
		if err != nil || !ok {
			c.cfg.Log.Error("document missing in the ledger", "key", e.Key, "err", err)
			rest = append(rest, e)
			continue
		}
		req := archive.RegisterRequest{ID: e.ID, Metadata: doc.Metadata}
		if size += len(req.Metadata); size > maxBody && len(frozen) > 0 {
			rest = append(rest, e)
			continue
		}
		frozen, asked = append(frozen, req), append(asked, e)
	}
	// What does not fit into this body is not sent: its intent is taken back, and it is due again.
	changes := c.changeEach(rest, func(e ledger.Entry) ledger.Event {
		return ledger.RegisterNotTaken{NotBefore: c.retryAt(e), Cause: ledger.Cause{Code: "left-out"}}
	})
	if len(asked) == 0 {
		return changes
	}
	// The packages are synced before anything is said about them: a power cut must not take one that the service expects.
	if err := c.cfg.SyncPackages(); err != nil {
		return append(changes, c.changeEach(asked, func(e ledger.Entry) ledger.Event {
			return ledger.RegisterNotTaken{NotBefore: c.retryAt(e), Cause: localFaultCause(err)}
		})...)
	}
	target := registerTargetOf(asked[0])
	atOnce := c.registrationsAtOnce(ledger.ServiceQueueOf(asked[0]))
	call := c.beginCall(target, atOnce)
	// The POST: RegisterIntended is committed for each document. A crash from here until the tickets are committed loses the
	// answer; the next start registers again, and what was registered in vain ends unused.
	noting, request := apicall.NoteRequests(ctx)
	answer, err := c.routeOf(asked[0]).Client.Register(noting, asked[0].Vault, frozen)
	if err != nil {
		return append(changes, c.registerFaultChanges(asked, call, apicall.AsError(err))...)
	}
	c.noteWentWell(target, atOnce)
	// The tickets are committed by the worker. Until then nobody uses them.
	return append(changes, c.ticketChanges(asked, answer, request.Last())...)
}

// ticketChanges returns the outcomes of an answer: what it gives a document exactly once is that
// document's; whatever it says about others is not believed.
func (c *Engine) ticketChanges(asked []ledger.Entry, a archive.RegisterResult, request archive.RequestID) []ledger.Change {
	// An answer with tickets shows that the service takes documents of this vault.
	c.refusals.reset(ledger.ServiceQueueOf(asked[0]))
	c.updateRegisterBreaker(asked[0], a)
	if a.Foreign > 0 {
		c.cfg.Log.Error("answer to a registration holds records nobody asked for; they are ignored", "target", registerTargetOf(asked[0]).String(), "records", a.Foreign)
	}
	if len(a.Crossed) > 0 {
		defer c.noteMixUp(asked[0])
	}
	return c.changeEach(asked, func(e ledger.Entry) ledger.Event {
		// A mixed-up answer comes first: a ticket that may be another document's must never be used.
		if why, crossed := a.Crossed[e.ID]; crossed {
			return ledger.AnswerMixedUp{Cause: ledger.Cause{Code: "cross-wired", Text: why}}
		}
		if why, barred := a.Barred[e.ID]; barred {
			return ledger.RegisterUnanswered{NotBefore: c.retryAt(e), Cause: barredCause(why)}
		}
		// The life of the ticket counts from before the POST left.
		if t, ok := a.Tickets[e.ID]; ok {
			t.Request = request
			return ledger.TicketReceived{Ticket: t}
		}
		return ledger.RegisterUnanswered{NotBefore: c.retryAt(e), Cause: ledger.Cause{Code: "not-in-the-answer",
			Text: "the service's answer does not name this document; it is registered again"}}
	})
}

// barredCause says why a ticket must not be used.
func barredCause(why string) ledger.Cause {
	if strings.Contains(why, "upload header") {
		return ledger.Cause{Code: "upload-header-refused", Text: why}
	}
	return ledger.Cause{Code: "upload-address-refused", Text: why}
}

// updateRegisterBreaker closes the breaker or opens it, by whether an answer
// brought tickets that work. If none does, asking again at once would only
// leave registrations behind.
func (c *Engine) updateRegisterBreaker(asked ledger.Entry, a archive.RegisterResult) {
	target := registerTargetOf(asked)
	for _, why := range a.Barred {
		c.openBreaker(target, barredCause(why), 0)
		return
	}
	for _, t := range a.Tickets {
		c.cfg.Planner.ObserveTicket(string(asked.Route), t)
		if c.cfg.Planner.MayStart(t, 0, nil, t.Sent) {
			c.closeBreaker(target)
			return
		}
	}
	if c.breakers.CountFault(target) {
		c.openBreaker(target, ledger.Cause{Code: "no-usable-ticket",
			Text: "the service's answers bring no upload address, or only such as are over when they arrive"}, 0)
	}
}

func (c *Engine) registerFaultChanges(asked []ledger.Entry, call uint64, err *apicall.Error) []ledger.Change {
	target := registerTargetOf(asked[0])
	switch err.Outcome {
	case apicall.Refused:
		return wayOf(asked[0]).refused(c, asked, err)
	case apicall.NotSent, apicall.NotProcessed:
		return c.pauseAfterRefusal(asked, err)
	}
	again := c.retryAt
	switch {
	case err.Overloaded():
		c.slowDown(target, call, err)
		again = c.quickRetryAt
	case c.breakers.CountFault(target):
		c.openBreaker(target, causeOf(err), err.RetryAfter)
	}
	return c.changeEach(asked, func(e ledger.Entry) ledger.Event {
		return ledger.RegisterUnanswered{NotBefore: again(e), Cause: causeOf(err)}
	})
}

// pauseAfterRefusal pauses where no document is to blame: nothing was registered,
// and all of them wait.
func (c *Engine) pauseAfterRefusal(asked []ledger.Entry, err *apicall.Error) []ledger.Change {
	c.openBreaker(registerTargetOf(asked[0]), causeOf(err), err.RetryAfter)
	return c.changeEach(asked, func(ledger.Entry) ledger.Event {
		return ledger.RegisterNotTaken{NotBefore: c.cfg.Now().Wall, Cause: causeOf(err)}
	})
}

// splitRefusedBatch splits a refused batch until the document that is at fault stands alone.
func (c *Engine) splitRefusedBatch(asked []ledger.Entry, err *apicall.Error) []ledger.Change {
	target, queue := registerTargetOf(asked[0]), ledger.ServiceQueueOf(asked[0])
	if n := len(asked); n > 1 {
		if !c.refusals.isFull(queue) { // the service answers, unless it refuses whatever it gets
			c.closeBreaker(target)
		}
		return c.changeEach(asked, func(ledger.Entry) ledger.Event { return ledger.BatchRefused{Part: uint16((n + 1) / 2)} })
	}
	if c.refusals.add(queue, asked[0].Key) {
		c.openBreaker(target, ledger.Cause{Code: "refused-in-a-row",
			Text: "the service refused three different documents in a row and took none since: " + err.Error()}, 0)
	} else {
		c.closeBreaker(target)
	}
	return c.changeEach(asked, func(e ledger.Entry) ledger.Event {
		return c.wordRefusal(e, "", err, func(why ledger.Cause) ledger.Event { return ledger.RegisterRefused{Cause: why} })
	})
}

// noteMixUp counts an answer that gave one number or one address to two documents. Once is an incident of one
// document; the second time nothing more goes to that vault, or to that service, before a restart.
func (c *Engine) noteMixUp(e ledger.Entry) {
	c.cfg.Log.Error("answer to a registration is cross-wired; nothing is uploaded on it", "target", registerTargetOf(e).String())
	if c.mixUps.count(ledger.ServiceQueueOf(e)) > 1 {
		c.breakers.LockOpen(wayOf(e).locked(e), ledger.Cause{Code: "cross-wired",
			Text: "the service mixed up documents twice; nothing is registered until vaultd is restarted. Ask the provider."}, c.cfg.Now().Wall)
	}
}

// mixUps counts the cross-wired answers of each service queue since the start: another vault's
// mix-up stops nobody else.
type mixUps struct {
	mu sync.Mutex
	n  map[string]int // by service queue; guarded by mu
}

func (x *mixUps) count(queue string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.n[queue]++
	return x.n[queue]
}

// refusals counts different documents refused in a service queue since one was last taken.
type refusals struct {
	mu sync.Mutex
	by map[string]map[archive.Key]bool // by service queue; guarded by mu
}

func (r *refusals) add(queue string, k archive.Key) (tooMany bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by[queue] == nil {
		r.by[queue] = map[archive.Key]bool{}
	}
	if len(r.by[queue]) < engine.Tolerated {
		r.by[queue][k] = true
	}
	return len(r.by[queue]) >= engine.Tolerated
}

func (r *refusals) isFull(queue string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.by[queue]) >= engine.Tolerated
}

func (r *refusals) reset(queue string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, queue)
}
