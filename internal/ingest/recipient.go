package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// RecipientChecker knows which recipients a directory should list, and asks it. Its errors are *apicall.Error, but for those of RecipientOf.
type RecipientChecker interface {
	// RecipientOf returns whom the document of a package, which has the digest, goes to; empty: no directory lists such recipients.
	RecipientOf(p archive.Package, document archive.Digest) (archive.CompanyNumber, error)
	// IsKnown reports whether an answer that still counts lists the recipient. It asks nobody.
	IsKnown(archive.CompanyNumber) bool
	// Ask asks whether the recipient is listed today. The outcome Refused of its error means that the directory does not take the number.
	Ask(context.Context, archive.CompanyNumber) (isListed bool, err error)
}

// causeRecipientTold is the code of the cause of an entry that is sent although its recipient is not listed, or could not be asked about. It stays
// until something of the document is sent, and says that people were told.
const causeRecipientTold = "recipient-not-confirmed"

const (
	// firstAskAgain and laterAskAgain are the waits of a document whose recipient is not listed. A person puts that right, and not soon.
	firstAskAgain = time.Hour
	laterAskAgain = 6 * time.Hour
	// unrequiredWait is how long the answer of a directory is waited for that nothing depends on.
	unrequiredWait = 15 * time.Second
)

// recipientFaults remembers the last faults of the directory, more of them than calls are under way. A restart forgets them, and all breakers
// with them.
type recipientFaults struct {
	mu   sync.Mutex
	last []ledger.Cause // guarded by mu
}

const mostRecipientFaults = 32

func (f *recipientFaults) add(cause ledger.Cause) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = append(f.last[max(0, len(f.last)-mostRecipientFaults+1):], cause)
}

func (f *recipientFaults) has(cause ledger.Cause) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Contains(f.last, cause)
}

// recipientToAsk returns whom the directory is asked about before anything of a document is sent; empty: nothing is asked. Its error wraps
// fs.ErrNotExist where the package cannot be read, which is made again then.
func (c *Engine) recipientToAsk(o outgoing) (archive.CompanyNumber, error) {
	e, route := o.entry, c.routeOf(o.entry)
	switch {
	case route.Recipients == nil:
		return "", nil
	case e.State != ledger.Packaged || e.CountUnusedFiles() > 0 || len(e.StoredFiles) > 0 || len(e.Registrations) > 0:
		return "", nil // something of it may have left: it is never held then
	case !route.RequiresListed && e.Cause.Code == causeRecipientTold:
		return "", nil // people were told
	}
	to, err := route.Recipients.RecipientOf(o.pkg, e.Metadata)
	switch {
	case err != nil:
		return "", c.discardUnreadable(o, err)
	case to == "" || route.Recipients.IsKnown(to):
		return "", nil
	}
	return to, nil
}

// prepareUnannounced does what must be done before anything of a document can be announced: it makes a missing package again, or asks the directory
// about the recipient. What is due is found anew after that.
func (c *Engine) prepareUnannounced(ctx context.Context, e ledger.Entry) []ledger.Change {
	o, err := c.prepareOutgoing(e)
	if err == nil {
		var to archive.CompanyNumber
		if to, err = c.recipientToAsk(o); err == nil && to == "" {
			return nil // it is all there by now
		}
		if err == nil {
			return c.askAboutRecipient(ctx, e, to)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return []ledger.Change{c.newChange(e, c.postpone(e, localFaultCause(err)))}
	}
	return c.packForNetworkAgain(ctx, e, o.drop, err)
}

// askAboutRecipient asks the directory. If it lists the recipient nothing is
// committed: the answer is kept, and the next turn announces the first act. A
// crash loses the answer, and it is asked for again.
func (c *Engine) askAboutRecipient(ctx context.Context, e ledger.Entry, to archive.CompanyNumber) []ledger.Change {
	route, target := c.routeOf(e), storeOf(e)
	asking, call := ctx, c.beginCall(target, route.Workers)
	if !route.RequiresListed {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, unrequiredWait)
		defer cancel()
	}
	asked := c.cfg.Now().Wall.In(cmp.Or(c.cfg.Location, time.Local)).Format("15:04")
	isListed, err := route.Recipients.Ask(asking, to)
	if ctx.Err() != nil {
		return nil // we are ending: nothing was announced, and the next start asks
	}
	if err == nil {
		c.closeAfterRecipientFault(target)
	}
	fault := apicall.AsError(err)
	switch isRefused := err != nil && fault.Outcome == apicall.Refused; {
	case isListed:
		return nil
	case err == nil, isRefused:
		text := fmt.Sprintf("%s has no valid line in the directory (asked %s).", to, asked)
		if isRefused {
			text = fmt.Sprintf("The directory does not take %s as a number (asked %s).", to, asked)
		}
		return []ledger.Change{c.newChange(e, c.holdForRecipient(e, text))}
	case !route.RequiresListed:
		return []ledger.Change{c.newChange(e, c.sendAllTheSame(e, fmt.Sprintf("The directory could not be asked about %s: %s.", to, fault.Error())))}
	}
	c.recipientFaults.add(causeOf(fault))
	return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.noteSendFault(e, call, fault), Cause: causeOf(fault)})}
}

// holdForRecipient returns what follows where the directory does not list the recipient of a document.
func (c *Engine) holdForRecipient(e ledger.Entry, text string) ledger.Event {
	if !c.routeOf(e).RequiresListed {
		return c.sendAllTheSame(e, text)
	}
	again := firstAskAgain
	if e.Cause.Code == ledger.CauseRecipientNotListed {
		again = laterAskAgain
	} else {
		c.cfg.Log.Warn("a document waits: the directory does not list its recipient", "key", e.Key, "drop", e.Drop, "answer", text)
	}
	// It waits by itself: what others wait for is another matter, and they go on.
	return ledger.Postponed{NotBefore: c.cfg.Now().Wall.Add(again),
		Cause: ledger.Cause{Code: ledger.CauseRecipientNotListed, Text: "NOT SENT YET. " + text + " Check it with the recipient."}}
}

// sendAllTheSame returns the event after which a document goes on although its recipient is not confirmed. The ledger keeps that people were told, so
// they are told once, also where the process ends before the next turn.
func (c *Engine) sendAllTheSame(e ledger.Entry, text string) ledger.Event {
	c.cfg.Log.Warn("a document is sent although its recipient is not confirmed", "key", e.Key, "drop", e.Drop, "why", text)
	return ledger.Postponed{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: causeRecipientTold, Text: text + " It is sent all the same."}}
}

// closeAfterRecipientFault lets a route go on that was paused for a fault of the directory, which answers again. What it was paused for otherwise
// stays: an answer of the directory says nothing about that.
func (c *Engine) closeAfterRecipientFault(t Target) {
	if cause, isOpen := c.breakers.CauseOf(t); isOpen && c.recipientFaults.has(cause) {
		c.closeBreaker(t)
	}
}
