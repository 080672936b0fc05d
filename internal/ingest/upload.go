package ingest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// uploadStep sends a package while its ticket works, or sees that it works no more.
func (c *Engine) uploadStep() engine.Step[ledger.Entry, Target] {
	s := c.newStep(ledger.Upload, c.sumWorkers())
	s.Terms = func(queue string) engine.Terms[Target] {
		route := routeOfQueue(queue)
		return engine.Terms[Target]{Batch: lateBatch, Ahead: wayOfRoute(route).ahead(), Slots: func() int { return c.callsAtOnce(uploadTargetOf(queue), c.row(route).Workers) }}
	}
	s.Admit = func(queue string, now archive.Instant) (func(ledger.Entry) admission, error) {
		if c.isHeld() || c.isDraining(queue) {
			return nil, nil
		}
		return func(e ledger.Entry) admission { return wayOf(e).admit(c, e, now) }, nil
	}
	s.MayBegin = func(e ledger.Entry, alone bool) bool { return wayOf(e).book(c, e, alone) }
	s.Start = func(t *task) func(context.Context) { return wayOf(t.Jobs[0]).start(c, t) }
	return s
}

// startUpload announces uploads, and returns what makes them.
func (c *Engine) startUpload(t *task) func(context.Context) {
	intent := c.announce(t, func(e ledger.Entry) ([]ledger.Event, bool, error) {
		evs, act := c.intendToUpload(e, whyNot(t.Kind))
		return evs, act, nil
	})
	return func(ctx context.Context) { c.upload(ctx, t, intent.wait()) }
}

// upload sends the package of an entry whose intent is committed.
func (c *Engine) upload(ctx context.Context, t *task, acts []ledger.Entry) {
	if len(acts) == 0 {
		return
	}
	e := acts[0]
	if !c.beginRisky(ctx, t, e) || c.isDraining(t.Queue) {
		c.dropBooking(e.Key)
		c.takeBack(t, acts, func(ledger.Entry) ledger.Event {
			return ledger.UploadNotSent{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: "stopped"}}
		})
		return
	}
	outcome := c.uploadPackage(ctx, e)
	c.dropBooking(e.Key)
	c.finish(t, acts, outcome)
}

// uploadIntent returns the intent to upload with a ticket. Whether Content-MD5
// goes with it is committed before the bytes leave: a store that was sent none
// may keep a part of a package as whole.
func uploadIntent(r Route, t archive.Ticket) ledger.Event {
	return ledger.UploadIntended{WithoutMD5: r.Client.OmitsMD5(t.URL)}
}

// afterWindow returns when to go on with an entry whose window is over.
func (c *Engine) afterWindow(e ledger.Entry) time.Time {
	if e.State == ledger.Sending {
		return c.nextPollAt(e)
	}
	return c.registerAgainAt(e)
}

// registerAgainAt returns when to register an entry again of which nothing was sent: at once, but not
// in a circle when tickets keep arriving too old. Those of a batch wait equally long, so that
// they go together again.
func (c *Engine) registerAgainAt(e ledger.Entry) time.Time {
	if n := len(e.Registrations); n > 1 {
		return c.cfg.Now().Wall.Add(min(firstRetry<<min(n-2, 8), maxRetry))
	}
	return c.cfg.Now().Wall
}

func (c *Engine) uploadPackage(ctx context.Context, e ledger.Entry) []ledger.Change {
	// This attempt sends nothing before the PUT below: after a fault before it the document still has its ticket.
	d, err := c.configuredDrop(e)
	if err != nil {
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: c.retryInWindow(e, c.retryAt(e)), Cause: ledger.Cause{Code: "drop-unavailable", Text: err.Error()}})}
	}
	pkg, err := d.Packer.FindPackage(e)
	if errors.Is(err, fs.ErrNotExist) {
		c.dropBooking(e.Key) // packing does not use the link
		return c.packAgain(ctx, d, e, err)
	}
	doc, known, errDoc := c.cfg.Ledger.Document(e.Key)
	if errDoc == nil && !known {
		errDoc = errors.New("the ledger has no document of this entry, whose salt the journal needs")
	}
	if err = errors.Join(err, errDoc); err != nil {
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: c.retryInWindow(e, c.retryAt(e)), Cause: localFaultCause(err)})}
	}
	if late, err := c.refuseLate(e); err != nil {
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: c.retryInWindow(e, c.retryAt(e)), Cause: localFaultCause(err)})}
	} else if late != nil {
		return []ledger.Change{c.newChange(e, late...)}
	}
	// The PUT ends with the ticket at the latest: after that its bytes prove nothing.
	ticket := e.Current().Ticket
	ctx, stop := c.outlivesStop(ctx, e)
	defer stop()
	sending, cancel := c.untilTicketEnds(ctx, ticket)
	defer cancel()
	call := c.beginCall(storeOf(e), c.routeOf(e).Workers)
	// The PUT: UploadIntended is committed. A crash from here until the outcome is committed leaves it open whether the store
	// has the bytes: the next start sends the same bytes to the same address while its window is open, and asks after that.
	sending, request := apicall.NoteRequests(sending)
	sent, etag, err := c.routeOf(e).Client.Upload(sending, ticket, pkg)
	if err == nil {
		c.learnFromUpload(e.Key)
	} else {
		c.dropBooking(e.Key)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil // we are ending: the intent stands, and the next start goes on from it
		}
		fault := apicall.AsError(err)
		if fault.Damaged {
			return []ledger.Change{c.newChange(e, c.discardDamaged(d, e, fault))}
		}
		return []ledger.Change{c.newChange(e, c.uploadFaultEvents(e, call, fault)...)}
	}
	c.noteWentWell(storeOf(e), c.uploadsOf(e))
	taken := c.takenUpload(e, ledger.UploadAccepted{Sent: sent, Seal: doc.Seal(archive.Package{SHA256: sent}), Request: request.Last()}, pkg, etag)
	if inDoubt, is := taken.(ledger.UploadUnanswered); is && inDoubt.NoRepeat {
		c.pauseInDoubt(storeOf(e), ledger.DeliveryUnknown(inDoubt.Cause.Text), 0)
	} else {
		c.closeBreaker(storeOf(e))
	}
	return []ledger.Change{c.newChange(e, taken)}
}

// refuseLate returns the outcome of an upload that was announced and may not
// begin any more; nil: it may.
func (c *Engine) refuseLate(e ledger.Entry) ([]ledger.Event, error) {
	now := c.cfg.Now()
	stored, _, err := c.cfg.Ledger.Entry(e.Key)
	if err != nil || stored.ActUnderWay() != e.ActUnderWay() { // an operator decided otherwise meanwhile
		return []ledger.Event{ledger.UploadNotSent{NotBefore: now.Wall}}, err
	}
	switch _, _, why := c.admit(stored, true, now); why {
	case windowOver:
		return []ledger.Event{ledger.UploadNotSent{NotBefore: now.Wall, Cause: ledger.Cause{Code: "too-late"}}}, nil
	case batchOver:
		return []ledger.Event{ledger.UploadNotSent{NotBefore: now.Wall, Cause: ledger.Cause{Code: "too-late"}}, ledger.WindowClosed{NotBefore: c.registerAgainAt(e)}}, nil
	case ticketShared:
		return []ledger.Event{ledger.UploadNotSent{NotBefore: now.Wall}}, nil
	}
	return nil, nil
}

// takenUpload returns what follows from a store's 2xx to an upload, and from the store's ETag.
func (c *Engine) takenUpload(e ledger.Entry, taken ledger.UploadAccepted, pkg archive.Package, etag string) ledger.Event {
	// Other bytes at the store are no success. The same address takes the right ones again while it works.
	if !c.isTrustworthyETag(etag, pkg) {
		return c.unansweredUpload(e, c.retryInWindow(e, c.retryAt(e)), ledger.Cause{Code: "etag-differs", Text: "the store answered with the MD5 of other bytes"})
	}
	return wayOf(e).taken(taken, c.nextPollAt(e))
}

// clockCheckInterval is how often an upload under way reads the boot clock. A timer stands
// still while the machine is suspended; the first reading after that ends the upload.
const clockCheckInterval = time.Second

// untilTicketEnds returns a context that ends with the ticket, by the boot clock.
func (c *Engine) untilTicketEnds(ctx context.Context, t archive.Ticket) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, window.Left(t, c.cfg.Now()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		check := time.NewTicker(clockCheckInterval)
		// This goroutine ends with ctx. The returned function waits for it.
		defer check.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-check.C:
				if window.Left(t, c.cfg.Now()) <= 0 {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
	}
}

// isTrustworthyETag compares an ETag with the package. It is evidence only at a store that
// was seen to answer with MD5s; the Content-MD5 that it accepted is what counts.
func (c *Engine) isTrustworthyETag(etag string, p archive.Package) bool {
	etag = strings.ToLower(strings.Trim(etag, `"`))
	if etag == hex.EncodeToString(p.MD5[:]) {
		c.md5ETags.Store(true)
		return true
	}
	return len(etag) != 32 || !c.md5ETags.Load()
}

func (c *Engine) uploadFaultEvents(e ledger.Entry, call uint64, err *apicall.Error) []ledger.Event {
	if err.Expired && err.Outcome == apicall.Refused {
		return c.handleExpiredTicket(e, err)
	}
	if err.RefusesMD5 { // it took nothing: the same bytes go to the same address at once
		return []ledger.Event{ledger.UploadNotSent{NotBefore: c.cfg.Now().Wall, Cause: causeOf(err), WithoutMD5: true}}
	}
	target, again := storeOf(e), c.retryAt(e)
	switch {
	case err.Outcome == apicall.OutcomeUnknown && !wayOf(e).mayRepeat(c.routeOf(e)): // the document waits for a person, and so would each one after it
		c.isTooMuch(target, call)
		c.pauseInDoubt(target, causeOf(err), err.RetryAfter)
	case isOverload(err):
		c.slowDown(target, call, err)
		if err.RetryAfter == 0 {
			again = c.quickRetryAt(e)
		}
	case c.breakers.CountFault(target): // else each document with a ticket would end in doubt as well
		c.openBreaker(target, causeOf(err), err.RetryAfter)
	case err.Outcome == apicall.OutcomeUnknown:
		again = c.quickRetryAt(e)
	}
	switch {
	case err.Outcome == apicall.NotSent, err.Outcome == apicall.OutcomeUnknown, wasSentBefore(e): // it goes on with its ticket
		again = c.retryInWindow(e, again)
	case err.Outcome == apicall.Refused:
		again = c.refusedPackageAt(e, again)
	}
	switch err.Outcome {
	case apicall.NotSent:
		return []ledger.Event{ledger.UploadNotSent{NotBefore: again, Cause: causeOf(err)}}
	case apicall.Refused, apicall.NotProcessed:
		return []ledger.Event{ledger.UploadRefused{NotBefore: again, Cause: causeOf(err)}}
	}
	return []ledger.Event{c.unansweredUpload(e, again, causeOf(err))}
}

// uploadsOf returns how many uploads are under way in the queue of an entry.
func (c *Engine) uploadsOf(e ledger.Entry) int {
	return c.lanes.Doing(ledger.Upload.String(), ledger.QueueOf(e))
}

// handleExpiredTicket books a ticket that the store calls over. That says
// nothing about the store, only about the call that brought the ticket, which
// counts once. If all tickets of three calls in a row were over, more of them
// would only be lost as well.
func (c *Engine) handleExpiredTicket(e ledger.Entry, err *apicall.Error) []ledger.Event {
	// All tickets of one POST live and end together: its other documents need
	// not be refused one by one.
	first := c.expiredBatches.add(e, c.cfg.Now())
	if target := storeOf(e); first && c.breakers.CountFault(target) {
		c.openBreaker(target, causeOf(err), err.RetryAfter)
	}
	refused := ledger.UploadRefused{NotBefore: c.registerAgainAt(e), Cause: causeOf(err)}
	// An earlier attempt may have left bytes, and nobody knows what became of
	// them: the entry is unclear, and is asked about first.
	if wasSentBefore(e) {
		return []ledger.Event{refused, ledger.WindowClosed{NotBefore: c.nextPollAt(e)}}
	}
	return []ledger.Event{refused}
}

// pauseInDoubt pauses the uploads to a store after one of which nobody knows what became, and nobody can be asked.
func (c *Engine) pauseInDoubt(store Target, cause ledger.Cause, retryAfter time.Duration) {
	inARow, news := c.breakers.OpenInDoubt(store, cause, retryAfter, c.cfg.Now().Wall)
	if news {
		if inARow >= engine.Tolerated {
			cause.Code = engine.CauseDoubtInARow
		}
		c.tellPause(Pause{Target: store, Cause: cause})
	}
}

// ResumeUploads lets the uploads to a store go on by the word of a person, and reports whether they were paused.
func (c *Engine) ResumeUploads(store Target) bool {
	resumed := c.breakers.Resume(store)
	c.Wake()
	return resumed
}

// MayResumeUploads reports whether the uploads to a store are paused in such a way that a person can let them go on.
func (c *Engine) MayResumeUploads(store Target) bool { return c.breakers.MayResume(store) }

// unansweredUpload returns what follows from an upload of which nobody knows what became: the same bytes go again to the same address, or,
// where the service may process them twice and cannot be asked, a person decides.
func (c *Engine) unansweredUpload(e ledger.Entry, again time.Time, why ledger.Cause) ledger.Event {
	return ledger.UploadUnanswered{NotBefore: again, Cause: why, NoRepeat: !wayOf(e).mayRepeat(c.routeOf(e))}
}

// maxRefusedWait is how long a document whose package the store refuses waits at most for its next registration.
const maxRefusedWait = 30 * time.Minute

// refusedPackageAt puts off when to register an entry again whose package the store refused, longer each
// time: it may be the only one, and then no breaker opens because of it.
func (c *Engine) refusedPackageAt(e ledger.Entry, again time.Time) time.Time {
	n := uint64(len(e.Registrations)) + e.Pruned.Total()
	if at := c.cfg.Now().Wall.Add(min(firstRetry<<min(n-1, 20), maxRefusedWait)); at.After(again) {
		return at
	}
	return again
}

// discardDamaged removes a package that turned out to be no longer what was sealed while it was sent: packAgain makes it again
// before it is next sent. Its end was withheld, but some stores keep what they got of a body and call that a success, so
// nobody knows what the address holds now. The store is not at fault.
func (c *Engine) discardDamaged(d Drop, e ledger.Entry, fault *apicall.Error) ledger.Event {
	c.cfg.Log.Error("a package in the spool is no longer what was sealed; it is made again. Look at the disk of state_dir", "key", e.Key, "err", fault)
	// If we die before or after this, or if it fails, the intent stands: the next attempt finds the package missing, or
	// finds the damage again.
	if err := d.Packer.RemovePackage(e); err != nil {
		c.cfg.Log.Warn("a damaged package was not removed; the next upload finds it again", "key", e.Key, "err", err)
	}
	return c.unansweredUpload(e, c.retryInWindow(e, c.quickRetryAt(e)), causeOf(fault))
}

// packAgain makes a package again that is missing from the spool. If bytes of
// it may be at the store, only the identical one will do. The package may turn
// out to be missing once more, so its use waits longer after each time. why says
// what was wrong with it.
func (c *Engine) packAgain(ctx context.Context, d Drop, e ledger.Entry, why error) []ledger.Change {
	notSent := ledger.UploadNotSent{NotBefore: c.retryInWindow(e, c.quickRetryAt(e)), Cause: ledger.Cause{Code: "package-missing", Text: why.Error()}}
	if err := c.cfg.SpoolSpace(ledger.ServiceQueueOf(e)); err != nil {
		notSent.NotBefore, notSent.Cause.Text = c.retryInWindow(e, c.retryAt(e)), err.Error()
		return []ledger.Change{c.newChange(e, notSent)}
	}
	// The package is renamed into the spool and synced before the ledger hears of it. A crash before that commit finds it
	// here, or makes it once more.
	packed, err := d.Packer.Pack(ctx, e)
	if err == nil {
		err = c.cfg.SyncPackages()
	}
	mounted, isMounted := errors.AsType[*MountedError](err)
	switch refused, isRefused := errors.AsType[*RefusedError](err); {
	case isRefused:
		return []ledger.Change{c.newChange(e, notSent, ledger.SentToQuarantine{Cause: refused.Cause})}
	case isMounted:
		return []ledger.Change{c.newChange(e, notSent, ledger.SentToQuarantine{Cause: mounted.cause()})}
	case err != nil:
		notSent.NotBefore, notSent.Cause = c.retryInWindow(e, c.retryAt(e)), localFaultCause(err)
		return []ledger.Change{c.newChange(e, notSent)}
	}
	sent := wasSentBefore(e)
	for _, r := range e.Registrations[:len(e.Registrations)-1] {
		sent = sent || r.Fate != ledger.Unsent
	}
	// From the first byte that was sent on only the identical package may follow: the store may hold the old one.
	identical := packed.Sealed.Package.SHA256 == e.Package.SHA256
	sameInvoice := packed.Sealed.Content == e.Content && packed.Sealed.Metadata == e.Metadata
	if !sameInvoice || sent && !identical {
		return []ledger.Change{c.newChange(e, notSent, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "package-lost",
			Text: fmt.Sprintf("the package in the spool is gone and cannot be made again as it was: now %s, recorded %s", packed.Sealed.Package.SHA256, e.Package.SHA256)}})}
	}
	doc, known, err := c.cfg.Ledger.Document(e.Key)
	if err != nil || !known {
		notSent.NotBefore, notSent.Cause = c.retryInWindow(e, c.retryAt(e)), localFaultCause(errors.Join(err, errors.New("the ledger has no document of this entry")))
		return []ledger.Change{c.newChange(e, notSent)}
	}
	// Both events are one commit: the new digest never stands beside an upload that sent the old bytes.
	return []ledger.Change{c.newChange(e, notSent, ledger.Resealed{Package: packed.Sealed.Package, Seal: doc.Seal(packed.Sealed.Package)})}
}
