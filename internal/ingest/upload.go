package ingest

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/window"
)

// uploadStep sends a package while its ticket works, or sees that it works no more.
func (c *Conductor) uploadStep() step {
	return step{
		name: ledger.Upload, width: c.cfg.Workers, ahead: 256, batch: overAtOnce, risky: true,
		way: func(e ledger.Entry, now archive.Instant) way {
			switch {
			case !c.mayStart(e, nil, now):
				return way{route: noRoute, most: overAtOnce, late: true}
			case e.State == ledger.Sending: // bytes may be there: the window decides, not the route
				return way{route: noRoute, most: 1}
			}
			return way{route: storeRoute(e.Vault), most: 1}
		},
		pace:  func(lane string) int { return c.paces.limit(storePrefix+lane, c.cfg.Workers) },
		joins: func(e ledger.Entry) bool { return c.cfg.Planner.Joins(e.Package.Size, c.cfg.Now()) },
		turn:  c.turn,
		route: func(string) string { return noRoute },
		intend: func(ledger.Entry, archive.Instant) ([]ledger.Event, bool, error) {
			return []ledger.Event{ledger.UploadIntended{}}, true, nil
		},
		tooLate: func(e ledger.Entry) ledger.Event { return ledger.WindowClosed{NotBefore: c.afterWindow(e)} },
		do: func(ctx context.Context, es []ledger.Entry) []ledger.Change {
			defer c.turnOver(es[0].Key, false)
			return c.upload(ctx, es[0])
		},
		recall: func(e ledger.Entry) ledger.Event {
			c.turnOver(e.Key, false)
			return ledger.UploadNotSent{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: "stopped"}}
		},
	}
}

// overAtOnce is how many entries whose window is over are told so in one commit: they
// are registered again together.
const overAtOnce = 64

// mayStart reports whether an upload of e, which may be booked already, may start now. Of what may be at the store
// already the window decides, and not what the store said to another document.
func (c *Conductor) mayStart(e ledger.Entry, booked *window.Upload, now archive.Instant) bool {
	return c.cfg.Planner.MayStart(e.Current().Ticket, e.Package.Size, booked, now) && (e.State == ledger.Sending || !c.spoilt.has(e))
}

// afterWindow returns when to go on with an entry whose window is over.
func (c *Conductor) afterWindow(e ledger.Entry) time.Time {
	if e.State == ledger.Sending {
		return c.pollAt(e)
	}
	return c.anew(e)
}

// anew returns when to register an entry again of which nothing was sent: at once, but not
// in a circle when tickets keep arriving too old. Those of a batch wait equally long, so that
// they go together again.
func (c *Conductor) anew(e ledger.Entry) time.Time {
	if n := len(e.Registrations); n > 1 {
		return c.cfg.Now().Wall.Add(min(firstRetry<<min(n-2, 8), maxRetry))
	}
	return c.cfg.Now().Wall
}

func (c *Conductor) upload(ctx context.Context, e ledger.Entry) []ledger.Change {
	d, err := c.configured(e)
	if err != nil {
		return []ledger.Change{c.change(e, ledger.UploadNotSent{NotBefore: c.retryAt(e, 0), Cause: ledger.Cause{Code: "drop-unavailable", Text: err.Error()}})}
	}
	pkg, err := d.Packer.Spooled(e)
	if errors.Is(err, fs.ErrNotExist) {
		c.turnOver(e.Key, false) // packing does not use the line
		return c.reseal(ctx, d, e)
	}
	if err != nil {
		return []ledger.Change{c.change(e, ledger.UploadNotSent{NotBefore: c.retryAt(e, 0), Cause: localFault(err)})}
	}
	began := c.cfg.Now()
	if !c.mayStart(e, c.turnOf(e.Key), began) { // it took long to commit the intent, or the machine slept meanwhile
		return []ledger.Change{c.change(e, ledger.UploadNotSent{NotBefore: began.Wall, Cause: ledger.Cause{Code: "too-late"}})}
	}
	if c.spoilt.has(e) && !sentBefore(e) { // heard while this waited for its turn
		return []ledger.Change{c.change(e, ledger.UploadNotSent{NotBefore: began.Wall, Cause: ledger.Cause{Code: "too-late"}},
			ledger.WindowClosed{NotBefore: c.anew(e)})}
	}
	ticket := e.Current().Ticket
	sending, cancel := c.whileUsable(ctx, ticket)
	defer cancel()
	call := c.paces.began(storeRoute(e.Vault), c.cfg.Workers)
	etag, err := c.cfg.Vault.Upload(sending, ticket, pkg)
	c.turnOver(e.Key, err == nil)
	if err != nil {
		if ctx.Err() != nil {
			return nil // we are ending: the intent stands, and the next start goes on from it
		}
		fault := asRemote(err)
		if fault.Outcome == Refused && !fault.Expired {
			c.dropDamaged(ctx, d, e)
		}
		return []ledger.Change{c.change(e, c.uploadFault(e, call, fault)...)}
	}
	c.paces.went(storeRoute(e.Vault), c.runners[ledger.Upload].under(ledger.Lane(e)))
	c.open(storeRoute(e.Vault))
	if !c.trustworthy(etag, pkg) {
		c.dropDamaged(ctx, d, e)
		return []ledger.Change{c.change(e, ledger.UploadUnanswered{NotBefore: c.retryAt(e, 0), Cause: ledger.Cause{Code: "etag-differs",
			Text: "the store answered with the MD5 of other bytes; the same bytes are sent again"}})}
	}
	return []ledger.Change{c.change(e, ledger.UploadAccepted{NotBefore: c.pollAt(e)})}
}

// clockLook is how often an upload under way looks at the boot clock. A timer stands
// still while the machine is suspended; the first look after that ends the upload.
const clockLook = time.Second

// whileUsable returns a context that ends with the ticket, by the boot clock.
func (c *Conductor) whileUsable(ctx context.Context, t archive.Ticket) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, window.Left(t, c.cfg.Planner.Window, c.cfg.Now()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(clockLook)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if window.Left(t, c.cfg.Planner.Window, c.cfg.Now()) <= 0 {
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

// trustworthy compares an ETag with the package. It is evidence only at a store that
// was seen to answer with MD5s; the Content-MD5 that it accepted is what counts.
func (c *Conductor) trustworthy(etag string, p archive.Package) bool {
	etag = strings.ToLower(strings.Trim(etag, `"`))
	if etag == hex.EncodeToString(p.MD5[:]) {
		c.md5ETags.Store(true)
		return true
	}
	return len(etag) != 32 || !c.md5ETags.Load()
}

func (c *Conductor) uploadFault(e ledger.Entry, call uint64, err *RemoteError) []ledger.Event {
	if err.Expired && err.Outcome == Refused {
		return c.expired(e, err)
	}
	route, again := storeRoute(e.Vault), c.retryAt(e, err.RetryAfter)
	switch {
	case err.strains():
		c.strain(route, call, err)
		again = c.quickly(e, err.RetryAfter)
	case c.routes.doubt(route): // else each document with a ticket would end in doubt as well
		c.pause(route, err.cause(), err.RetryAfter)
	case err.Outcome == Unanswered:
		again = c.quickly(e, err.RetryAfter)
	}
	switch err.Outcome {
	case NotSent:
		return []ledger.Event{ledger.UploadNotSent{NotBefore: again, Cause: err.cause()}}
	case Refused:
		return []ledger.Event{ledger.UploadRefused{NotBefore: c.apart(e, again), Cause: err.cause()}}
	case TurnedAway:
		return []ledger.Event{ledger.UploadRefused{NotBefore: again, Cause: err.cause()}}
	}
	return []ledger.Event{ledger.UploadUnanswered{NotBefore: again, Cause: err.cause()}}
}

// maxApart is how long a document whose package the store refuses waits at most for its next registration.
const maxApart = 30 * time.Minute

// apart puts off when to register an entry again whose package the store refused, longer each
// time: it may be the only one, and then no route rests because of it.
func (c *Conductor) apart(e ledger.Entry, again time.Time) time.Time {
	n := uint64(len(e.Registrations)) + e.Folded.Total()
	if at := c.cfg.Now().Wall.Add(min(firstRetry<<min(n-1, 20), maxApart)); at.After(again) {
		return at
	}
	return again
}

// dropDamaged removes a package that is no longer what was sealed, once a store did not take it
// for that. It is made again before it is next sent.
func (c *Conductor) dropDamaged(ctx context.Context, d Drop, e ledger.Entry) {
	intact, err := d.Packer.Intact(ctx, e)
	if err == nil && !intact {
		c.cfg.Log.Error("a package in the spool is no longer what was sealed; it is made again. Look at the disk of state_dir", "key", e.Key)
		err = d.Packer.Drop(e)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
		c.cfg.Log.Warn("package not looked at after the store refused it", "key", e.Key, "err", err)
	}
}

// reseal makes a package again that is missing from the spool. Where bytes of it may
// be at the store, only the identical one will do.
func (c *Conductor) reseal(ctx context.Context, d Drop, e ledger.Entry) []ledger.Change {
	notSent := ledger.UploadNotSent{NotBefore: c.cfg.Now().Wall, Cause: ledger.Cause{Code: "package-missing"}}
	if err := c.cfg.Room(e.Vault); err != nil {
		notSent.NotBefore, notSent.Cause.Text = c.retryAt(e, 0), err.Error()
		return []ledger.Change{c.change(e, notSent)}
	}
	packed, err := d.Packer.Pack(ctx, e)
	if err == nil {
		err = c.cfg.Settle()
	}
	switch refused, isRefused := errors.AsType[*RefusedError](err); {
	case isRefused:
		return []ledger.Change{c.change(e, notSent, ledger.GotStuck{Cause: refused.Cause})}
	case err != nil:
		notSent.NotBefore, notSent.Cause = c.retryAt(e, 0), localFault(err)
		return []ledger.Change{c.change(e, notSent)}
	}
	sent := sentBefore(e)
	for _, r := range e.Registrations[:len(e.Registrations)-1] {
		sent = sent || r.Fate != ledger.Unsent
	}
	identical := packed.Sealed.Package.SHA256 == e.Package.SHA256
	sameInvoice := packed.Sealed.Content == e.Content && packed.Sealed.Metadata == e.Metadata
	if !sameInvoice || sent && !identical {
		return []ledger.Change{c.change(e, notSent, ledger.GotStuck{Cause: ledger.Cause{Code: "package-lost",
			Text: fmt.Sprintf("the spooled ZIP is gone and cannot be made again as it was: now %s, recorded %s", packed.Sealed.Package.SHA256, e.Package.SHA256)}})}
	}
	doc, ok, err := c.cfg.Ledger.Document(e.Key)
	if err != nil || !ok {
		return []ledger.Change{c.change(e, notSent)}
	}
	return []ledger.Change{c.change(e, notSent, ledger.Resealed{Package: packed.Sealed.Package, Seal: doc.Seal(packed.Sealed.Package)})}
}
