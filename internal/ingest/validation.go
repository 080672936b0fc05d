package ingest

import (
	"context"
	"errors"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// How long the file is waited for that tells what the network's check of a document found. It is help for people, and nothing is decided by it.
const (
	validationWait  = 15 * time.Minute // after the network's word; the try that ends it may be five minutes later. Assumption: the file is there by then
	validationTries = 3                // at least, where the daemon did not run meanwhile
	validationMost  = 32               // tries, which take about an hour, where the clock was set back meanwhile
	validationCall  = 20 * time.Second // one of them

	validationSlow    = 2 * time.Second // a call that takes longer holds up others
	validationSilence = time.Minute     // without such calls, after one that did and failed
)

// keepValidation fetches the file that tells what the network's check of a document found, and puts it beside the document. kept is nil where that
// is tried again later, as the changes say.
func (c *Engine) keepValidation(ctx context.Context, d Drop, e ledger.Entry, doc ledger.Document) (kept ledger.Event, postponed []ledger.Change) {
	content, err := c.fetchValidation(ctx, e)
	if err == nil {
		// A crash after this leaves the file in the claimed folder. The next start fetches it again and replaces it.
		err = d.Mover.PutValidation(e, content)
	}
	_, isRefused := errors.AsType[*RefusedError](err)
	_, isMounted := errors.AsType[*MountedError](err)
	isLate := !c.cfg.Now().Wall.Before(e.EndedAt().Add(validationWait)) || e.Attempt >= validationMost-1
	isOver := isRefused || isLate && e.Attempt >= validationTries-1
	switch {
	case err == nil:
		// The journal never forgets, so it gets no digest from which the file could be guessed once the document is erased.
		return ledger.ValidationKept{Seal: doc.Seal(archive.Package{SHA256: archive.Sum(content)}), Size: int64(len(content))}, nil
	case ctx.Err() != nil:
		return nil, nil // we are ending: the next start fetches it
	case isMounted:
		return nil, c.sourceFaultChanges(e, err)
	case isOver:
		c.cfg.Log.Warn("the file with what the network's check found could not be had; the document goes on without it", "key", e.Key, "file", e.ValidationFile, "err", err)
		return ledger.ValidationNotFetched{}, nil
	case e.Attempt == 0:
		c.cfg.Log.Info("the file with what the network's check found cannot be had yet; it is tried again", "key", e.Key, "file", e.ValidationFile, "err", err)
	}
	return nil, []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.retryAt(e)})}
}

var errRoutePaused = errors.New("the way to the network is paused")

// fetchValidation fetches the file. It changes nothing at the network, and may be repeated at any time.
func (c *Engine) fetchValidation(ctx context.Context, e ledger.Entry) ([]byte, error) {
	if _, isOpen := c.breakers.IsOpen(storeOf(e), c.cfg.Now().Wall); isOpen {
		return nil, errRoutePaused
	}
	if now := c.cfg.Now().Boot; int64(now) < c.checksSilentUntil.Load() {
		return nil, errRoutePaused
	}
	began := c.cfg.Now().Boot
	call, end := context.WithTimeout(ctx, validationCall)
	defer end()
	content, err := c.routeOf(e).Sender.FetchValidationFile(call, e.ValidationFile)
	if now := c.cfg.Now().Boot; err != nil && now-began > validationSlow {
		// Folders without such a file are placed by the same worker: they must not wait for one slow call after the other.
		c.checksSilentUntil.Store(int64(now + max(validationSilence, apicall.AsError(err).RetryAfter)))
	}
	return content, err
}
