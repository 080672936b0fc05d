package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Sender takes the documents of a route whose numbers are ours to their service. Its errors are
// *apicall.Error, but for those of Compose.
type Sender interface {
	// StoreFile stores one file of a package at the service, and returns the service's number of it. Bytes with another digest than
	// that of f never leave whole: its error is Damaged then.
	StoreFile(ctx context.Context, document archive.RemoteID, p archive.Package, f archive.File) (archive.FileID, error)
	// Compose returns what is sent of the document of a package, which has the digest. The same arguments give the same bytes.
	Compose(p archive.Package, document archive.Digest, files []archive.FileID) (archive.NetworkBody, error)
	// SendDocument sends a document under its number. [Sender.IsNumberTaken] says whether its error is that the number is known.
	SendDocument(ctx context.Context, number archive.RemoteID, b archive.NetworkBody) error
	// OpenPacked opens one file of a package.
	OpenPacked(p archive.Package, f archive.File) (io.ReadCloser, error)
	IsNumberTaken(err error) bool
	// HasDocument reports whether the service shows the document to its sender. false proves nothing: it may not show it.
	HasDocument(ctx context.Context, number archive.RemoteID, b archive.NetworkBody) bool
}

// send does what is due next for a document of the network: it announces and
// does one act, or prepares what must be there before that. What is announced
// is read out of the package, on the task's own goroutine.
func (c *Engine) send(ctx context.Context, t *task) {
	// One after the other: it holds the package's document in memory.
	c.composing.Lock()
	intent := c.announce(t, c.intendSend)
	c.composing.Unlock()
	acts := intent.wait()
	if len(acts) == 0 {
		return
	}
	isAnnounced := intent.committed != nil
	if !c.beginRisky(ctx, t, acts[0]) || c.isDraining(t.Queue) {
		if isAnnounced {
			c.takeBack(t, acts, c.takeBackSend)
		}
		return
	}
	if isAnnounced {
		c.finish(t, acts, c.sendNext(ctx, acts[0]))
		return
	}
	c.finish(t, acts, c.prepareUnannounced(ctx, acts[0]))
}

// outgoing is a document that is being sent.
type outgoing struct {
	entry ledger.Entry
	drop  Drop
	pkg   archive.Package
	files []archive.File      // that are not stored yet
	body  archive.NetworkBody // of the document, where all files are stored
}

// prepareOutgoing finds out what is sent next for an entry. Its error wraps fs.ErrNotExist where the package is missing.
func (c *Engine) prepareOutgoing(e ledger.Entry) (o outgoing, err error) {
	o.entry = e
	if o.drop, err = c.configuredDrop(e); err != nil {
		return o, err
	}
	doc, known, err := c.cfg.Ledger.Document(e.Key)
	switch {
	case err != nil:
		return o, err
	case !known:
		return o, errors.New("the ledger has no document of this entry, which lists its files")
	}
	if o.pkg, err = o.drop.Packer.FindPackage(e); err != nil {
		return o, err
	}
	if n := len(e.StoredFiles); n < len(doc.Files) && !e.WasDocumentSent() {
		o.files = doc.Files[n:]
		return o, nil
	}
	if o.body, err = c.routeOf(e).Sender.Compose(o.pkg, e.Metadata, e.StoredFiles); err != nil {
		return o, c.discardUnreadable(o, err)
	}
	return o, nil
}

// discardUnreadable removes a package out of which the document cannot be read as it was sealed. Its error says that the package is missing:
// it is made again.
func (c *Engine) discardUnreadable(o outgoing, why error) error {
	c.cfg.Log.Error("a package in the spool cannot be read; it is made again. Look at the disk of state_dir", "key", o.entry.Key, "err", why)
	// After a crash here the next start finds the package missing, or the damage again.
	if err := o.drop.Packer.RemovePackage(o.entry); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", fs.ErrNotExist, why)
}

// intendSend returns the intent of what is sent next. If the package is
// missing, or the directory is to be asked about the recipient, nothing is
// announced, and [Engine.prepareUnannounced] does that.
func (c *Engine) intendSend(e ledger.Entry) ([]ledger.Event, bool, error) {
	o, err := c.prepareOutgoing(e)
	var to archive.CompanyNumber
	if err == nil {
		to, err = c.recipientToAsk(o)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && to != "":
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case len(o.files) > 0:
		return []ledger.Event{ledger.FilesIntended{Count: uint32(len(o.files))}}, true, nil
	}
	body := archive.Sum(o.body.JSON)
	if e.WasDocumentSent() && e.Body != body { // other bytes must not go under a number that the network may know
		return []ledger.Event{ledger.SentToQuarantine{Cause: causeOtherBody}}, false, nil
	}
	return []ledger.Event{ledger.DocumentIntended{Body: body}}, true, nil
}

// causeOtherBody is the cause of an entry whose document cannot be sent again as it was sent before.
var causeOtherBody = ledger.Cause{Code: "package-lost", Text: "what is to be sent is no longer what was announced"}

// takeBackSend returns the outcome of an intent to send of which nothing left.
func (c *Engine) takeBackSend(e ledger.Entry) ledger.Event {
	return ledger.UploadNotSent{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: "stopped"}}
}

// sendNext sends one document whose intent is committed: it stores the files
// that are left, commits their numbers with the intent to send the document, and
// sends that.
func (c *Engine) sendNext(ctx context.Context, e ledger.Entry) []ledger.Change {
	o, err := c.prepareOutgoing(e)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it went missing after the intent: nothing left, and the next attempt makes it again
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: c.quickRetryAt(e), Cause: ledger.Cause{Code: "package-missing", Text: err.Error()}})}
	case err != nil: // nothing left
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: c.retryAt(e), Cause: localFaultCause(err)})}
	}
	if len(o.files) > 0 {
		var evs []ledger.Event
		if o, evs = c.storeFiles(ctx, o); len(evs) > 0 {
			return []ledger.Change{c.newChange(e, evs...)}
		}
		switch {
		case len(o.files) > 0:
			return nil // we are ending: the intent stands, and the next start goes on from it
		case c.mustPauseSending(o.entry): // heard while its files were stored
			return []ledger.Change{c.newChange(o.entry, c.takeBackSend(o.entry))}
		}
	}
	return c.sendDocument(ctx, o)
}

// storeFiles stores the files of a document that are left, one after the other,
// and announces the document then: no file is left in what it returns. Else the
// events say what became of them. Those that were stored are always among them,
// so this process stores no file twice; they are empty where the process ends.
func (c *Engine) storeFiles(ctx context.Context, o outgoing) (outgoing, []ledger.Event) {
	var stored ledger.FilesStored
	var evs []ledger.Event
	for i, f := range o.files {
		if i > 0 && c.mustPauseSending(o.entry) {
			return o, append(evs, c.takeBackSend(o.entry))
		}
		noting, request := apicall.NoteRequests(ctx)
		id, fault := c.storeFile(noting, o, f)
		switch {
		case fault != nil:
			return o, append(evs, fault)
		case id == "":
			return o, evs
		}
		stored.IDs, stored.Request = append(stored.IDs, id), request.Last()
		evs = []ledger.Event{stored}
		o.entry.Attempt = 0 // as FilesStored has it: the next file begins its own retries
	}
	return c.announceStored(o, stored)
}

// announceStored commits the numbers of the files that were just stored with the
// intent to send the document that names them.
func (c *Engine) announceStored(o outgoing, stored ledger.FilesStored) (outgoing, []ledger.Event) {
	e := o.entry
	body, err := c.routeOf(e).Sender.Compose(o.pkg, e.Metadata, slices.Concat(e.StoredFiles, stored.IDs))
	if err != nil {
		return o, []ledger.Event{stored, c.postpone(e, localFaultCause(c.discardUnreadable(o, err)))}
	}
	// A crash before this commit leaves the files announced, and the next start
	// stores them again. After it no file is stored again: the same bytes go under
	// the same number.
	intent := ledger.DocumentIntended{Body: archive.Sum(body.JSON)}
	res := (<-c.submit([]ledger.Change{c.newChange(e, stored, intent)}))[0]
	switch {
	case res.Err != nil:
		return o, []ledger.Event{stored, c.postpone(e, localFaultCause(res.Err))}
	case !res.Entry.WasDocumentSent(): // somebody changed the entry: its files are stored, and what is due now is asked anew
		return o, nil
	}
	o.entry, o.files, o.body = res.Entry, nil, body
	return o, nil
}

// mustPauseSending reports whether nothing more of a document may be sent for
// now, of which something was sent already.
func (c *Engine) mustPauseSending(e ledger.Entry) bool {
	queue := ledger.QueueOf(e)
	_, isOpen := c.breakers.IsOpen(storeOf(e), c.cfg.Now().Wall)
	return isOpen || c.isHeld() || c.isDraining(queue) || c.lanes.IsClosed()
}

// storeFile stores one file of a document at its service. It returns the file's
// number, or what became of it; neither, where the process ends.
func (c *Engine) storeFile(ctx context.Context, o outgoing, f archive.File) (archive.FileID, ledger.Event) {
	e, target := o.entry, storeOf(o.entry)
	call := c.beginCall(target, c.routeOf(e).Workers)
	// The POST: FilesIntended is committed. A crash from here until the document is
	// announced leaves it open whether the service has the file. The next start
	// stores it again, and no document ever names the first copy.
	id, err := c.routeOf(e).Sender.StoreFile(ctx, e.OwnNumber(), o.pkg, f)
	if err == nil {
		c.noteTaken(e)
		return id, nil
	}
	if ctx.Err() != nil {
		return "", nil // we are ending: the intent stands, and the next start goes on from it
	}
	fault := apicall.AsError(err)
	if fault.Damaged {
		return "", c.discardForNetwork(o, fault)
	}
	again := c.noteSendFault(e, call, fault)
	switch fault.Outcome {
	case apicall.Refused: // the service answers: the file is at fault
		c.closeBreaker(target)
		return "", c.wordRefusal(e, f.Path, fault, func(why ledger.Cause) ledger.Event { return ledger.DocumentRefused{Cause: why} })
	case apicall.NotSent, apicall.NotProcessed:
		return "", ledger.UploadNotSent{NotBefore: again, Cause: causeOf(fault)}
	}
	return "", ledger.UploadUnanswered{NotBefore: again, Cause: causeOf(fault)}
}

// sendDocument sends a document whose files are all stored.
func (c *Engine) sendDocument(ctx context.Context, o outgoing) []ledger.Change {
	e, target, sender := o.entry, storeOf(o.entry), c.routeOf(o.entry).Sender
	if archive.Sum(o.body.JSON) != e.Body { // the package was made again since: other bytes must not go under this number
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: c.cfg.Now().Wall}, ledger.SentToQuarantine{Cause: causeOtherBody})}
	}
	call := c.beginCall(target, c.routeOf(e).Workers)
	// The POST: DocumentIntended is committed with the digest of these bytes. A crash from here until the outcome is committed leaves it
	// open whether the service has the document. The next start sends the same bytes under the same number.
	noting, request := apicall.NoteRequests(ctx)
	err := sender.SendDocument(noting, e.OwnNumber(), o.body)
	if err == nil {
		c.noteTaken(e)
		return []ledger.Change{c.newChange(e, ledger.DocumentTaken{Request: request.Last()})}
	}
	if ctx.Err() != nil {
		return nil // we are ending: the intent stands, and the next start goes on from it
	}
	fault := apicall.AsError(err)
	again := c.noteSendFault(e, call, fault)
	switch fault.Outcome {
	case apicall.Refused:
		c.closeBreaker(target)
		return []ledger.Change{c.newChange(e, c.judgeRefusedDocument(ctx, o, fault, sender.IsNumberTaken(err)))}
	case apicall.NotSent, apicall.NotProcessed:
		return []ledger.Change{c.newChange(e, ledger.UploadNotSent{NotBefore: again, Cause: causeOf(fault)})}
	}
	return []ledger.Change{c.newChange(e, ledger.UploadUnanswered{NotBefore: again, Cause: causeOf(fault)})}
}

// judgeRefusedDocument returns what follows where the service refuses a
// document. If an earlier attempt got no answer, the service may have taken
// that one, and this refusal can be about the repetition.
func (c *Engine) judgeRefusedDocument(ctx context.Context, o outgoing, fault *apicall.Error, numberTaken bool) ledger.Event {
	before := o.entry.HasEarlierUnanswered()
	switch {
	case numberTaken && before:
		return ledger.DocumentTaken{WasKnown: true}
	case numberTaken:
		return ledger.DocumentRefused{Cause: ledger.Cause{Code: ledger.CauseNumberTaken, Text: fmt.Sprintf(
			"the network has a document under the number %s already, which this ledger did not send: another vaultd may have, or a lost part of this ledger: %s", o.entry.OwnNumber(), fault.Error())}}
	// Assumption: a sender may fetch its own document. If it may not, nothing
	// is concluded, and an operator is asked.
	case before && c.routeOf(o.entry).Sender.HasDocument(ctx, o.entry.OwnNumber(), o.body):
		return ledger.DocumentTaken{WasKnown: true}
	}
	return c.wordRefusal(o.entry, "", fault, func(why ledger.Cause) ledger.Event { return ledger.DocumentRefused{Cause: why} })
}

// noteTaken notes that the service took something of an entry.
func (c *Engine) noteTaken(e ledger.Entry) {
	c.noteWentWell(storeOf(e), c.uploadsOf(e))
	c.closeBreaker(storeOf(e))
}

// noteSendFault notes a call that failed, and returns when it is made again. If
// no document is to blame the route pauses.
func (c *Engine) noteSendFault(e ledger.Entry, call uint64, fault *apicall.Error) time.Time {
	target, again := storeOf(e), c.retryAt(e)
	switch {
	case fault.Outcome == apicall.Refused:
	case isOverload(fault):
		c.slowDown(target, call, fault)
		if fault.RetryAfter == 0 {
			again = c.quickRetryAt(e)
		}
	case fault.Outcome == apicall.NotProcessed, c.breakers.CountFault(target):
		c.openBreaker(target, causeOf(fault), fault.RetryAfter)
	case fault.Outcome == apicall.OutcomeUnknown:
		again = c.quickRetryAt(e)
	}
	return again
}

// discardForNetwork removes a package that is no longer what was sealed. It is made again before anything more is sent of it.
func (c *Engine) discardForNetwork(o outgoing, fault *apicall.Error) ledger.Event {
	c.cfg.Log.Error("a package in the spool is no longer what was sealed; it is made again. Look at the disk of state_dir", "key", o.entry.Key, "err", fault)
	// If this fails, the next attempt finds the damage again.
	if err := o.drop.Packer.RemovePackage(o.entry); err != nil {
		c.cfg.Log.Warn("a damaged package was not removed; the next attempt finds it again", "key", o.entry.Key, "err", err)
	}
	return ledger.UploadUnanswered{NotBefore: c.quickRetryAt(o.entry), Cause: causeOf(fault)}
}

// packForNetworkAgain makes a package again that is missing from the spool. It
// must hold the same invoice. What is sent of it has the digests that were
// recorded, so it need not be the same ZIP unless the document was sent. No
// intent is committed for this: nothing leaves. The package may turn out to be
// missing once more, so its use waits longer after each time. why says what was
// wrong with the package.
func (c *Engine) packForNetworkAgain(ctx context.Context, e ledger.Entry, d Drop, why error) []ledger.Change {
	packed, err := d.Packer.Pack(ctx, e)
	if err == nil {
		err = c.cfg.SyncPackages()
	}
	refused, isRefused := errors.AsType[*RefusedError](err)
	mounted, isMounted := errors.AsType[*MountedError](err)
	switch {
	case isRefused:
		return []ledger.Change{c.newChange(e, ledger.SentToQuarantine{Cause: refused.Cause})}
	case isMounted:
		return []ledger.Change{c.newChange(e, ledger.SentToQuarantine{Cause: mounted.cause()})}
	case err != nil:
		return []ledger.Change{c.newChange(e, c.postpone(e, localFaultCause(err)))}
	}
	identical := packed.Sealed.Package.SHA256 == e.Package.SHA256
	if packed.Sealed.Content != e.Content || packed.Sealed.Metadata != e.Metadata || e.WasDocumentSent() && !identical {
		return []ledger.Change{c.newChange(e, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "package-lost",
			Text: "the package in the spool is gone and cannot be made again as it was: the folder differs from what was sealed"}})}
	}
	doc, known, err := c.cfg.Ledger.Document(e.Key)
	if err != nil || !known {
		return []ledger.Change{c.newChange(e, c.postpone(e, localFaultCause(errors.Join(err, errors.New("the ledger has no document of this entry")))))}
	}
	// One commit: no package that was made again is used without its wait.
	return []ledger.Change{c.newChange(e, ledger.Resealed{Package: packed.Sealed.Package, Seal: doc.Seal(packed.Sealed.Package)},
		ledger.Postponed{NotBefore: c.quickRetryAt(e), Cause: ledger.Cause{Code: "package-missing", Text: why.Error()}})}
}
