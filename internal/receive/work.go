package receive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"golang.org/x/sys/unix"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Codes of the causes of what is postponed here; those of calls are the codes of their errors.
const (
	CauseFull   = "receive-full"   // there is no room for what comes
	CauseFolder = "receive-folder" // the folder of what comes cannot be used
	CauseLost   = "receive-lost"   // a file that was held is missing or is another one
	CauseDoubt  = "receive-doubt"  // what came for a file looks like a part of it, or like an answer of somebody else
	CauseDrop   = "drop"           // the drop folder is away or cannot be written
)

// work is the work on one document.
type work struct {
	*Engine
	a arrival.Arrival
}

// errStale ends the work on an arrival that somebody else changed: the next look decides anew.
var errStale = errors.New("the arrival was changed by somebody else")

// doDueSteps does what is due for the document, one step after the other, until one has to wait.
func (w *work) doDueSteps(ctx context.Context) error {
	for ctx.Err() == nil && w.mayAct() {
		step, file, at := arrival.Due(w.a, w.rules())
		if step == arrival.NoStep || at.After(w.now().Wall) {
			return nil
		}
		var err error
		switch step {
		case arrival.FetchDocument:
			err = w.fetchDocument(ctx)
		case arrival.Download:
			err = w.fetchFile(ctx, file)
		case arrival.Conclude:
			err = w.commit(ctx, arrival.HeldWhole{Manifest: digestOf(w.a.Files)})
		case arrival.HandOn:
			err = w.handOn(ctx)
		case arrival.Confirm:
			err = w.confirm(ctx)
		case arrival.Acknowledge:
			err = w.acknowledge(ctx)
		default:
			return nil
		}
		if errors.Is(err, errStale) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s of document %s: %w", step, w.a.Item, err)
		}
	}
	return nil
}

// commit commits events and goes on with the arrival that they made.
func (w *work) commit(ctx context.Context, evs ...arrival.Event) error {
	a, err := w.cfg.Ledger.ApplyArrival(ctx, arrival.Change{Key: w.a.Key, Rev: w.a.Rev, Events: evs, At: w.now()})
	if _, stale := errors.AsType[*ledger.StaleError](err); stale {
		return errStale
	}
	if err == nil {
		w.a = a
	}
	return err
}

func (w *work) kind() archive.NetworkKind { return archive.NetworkKind(w.a.Type) }

// postpone commits that what is due failed, and when it is tried again.
func (w *work) postpone(ctx context.Context, c ledger.Cause) error {
	w.logWait(c)
	return w.commit(ctx, arrival.Postponed{Until: w.now().Wall.Add(arrival.DelayAfter(int(w.a.Attempt))), Cause: c})
}

// logWait logs once for each cause that the document has to wait.
func (w *work) logWait(c ledger.Cause) {
	if w.a.Cause.Code != c.Code {
		w.cfg.Log.Warn("a received document has to wait; it is tried again", "document", w.a.Item, "cause", c.Code, "why", c.Text)
	}
}

// postponeAfterFault postpones after a failed call, and pauses all calls where the fault is not that of one document.
func (w *work) postponeAfterFault(ctx context.Context, step string, err error) error {
	if ctx.Err() != nil {
		return nil // the program ends; the step stays due
	}
	e := apicall.AsError(err)
	if e.Denied || e.Overloaded() || e.IsUnlisted() || e.Outcome == apicall.NotSent && e.Code != "request" {
		w.pauseCalls(step, e)
	}
	return w.postpone(ctx, ledger.Cause{Code: e.Code, Text: e.Error()})
}

// postponeLocal postpones for a fault of the disk. A file whose place is not known stops the process.
func (w *work) postponeLocal(ctx context.Context, code string, err error) error {
	switch {
	case errors.Is(err, durable.ErrSync):
		return err
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG):
		code = CauseFull
	}
	return w.postpone(ctx, ledger.Cause{Code: code, Text: err.Error()})
}

// hasRoom says whether something may be fetched; where not, that was committed.
func (w *work) hasRoom(ctx context.Context) (ok bool, err error) {
	if w.cfg.Room == nil {
		return true, nil
	}
	if err := w.cfg.Room(); err != nil {
		return false, w.postpone(ctx, ledger.Cause{Code: CauseFull, Text: err.Error()})
	}
	return true, nil
}

// fetchDocument fetches the document, keeps it as it came, and commits which files it names.
func (w *work) fetchDocument(ctx context.Context) error {
	if ok, err := w.hasRoom(ctx); !ok || err != nil {
		return err
	}
	// A GET: it changes nothing at the network, and a crash in it fetches the document once more.
	noting, request := apicall.NoteRequests(ctx)
	raw, files, err := w.cfg.Service.FetchDocument(noting, w.kind(), w.a.Document())
	if err != nil {
		return w.postponeAfterFault(ctx, "fetch a document", err)
	}
	w.noteAnswer()
	kept, err := w.keepFile(documentName, func(p *part) error { _, err := p.Write(raw); return err })
	if err != nil {
		return w.postponeLocal(ctx, CauseFolder, err)
	}
	// The document is durable. A crash before this commit fetches it once more, and replaces it: no line tells of its bytes yet.
	return w.commit(ctx, arrival.DocumentHeld{Stored: documentName, Size: kept.Size, SHA256: kept.SHA256, Files: files, Request: request.Last()})
}

// fetchFile fetches one file of the document, as it comes, onto the disk.
func (w *work) fetchFile(ctx context.Context, id string) error {
	if isTaken, err := w.takeKept(ctx, id); isTaken || err != nil {
		return err
	}
	if ok, err := w.hasRoom(ctx); !ok || err != nil {
		return err
	}
	f, isKept, err := w.keepFetched(ctx, id)
	if !isKept || err != nil {
		return err
	}
	// The file is durable under its name. A crash before the commit in this fetches it once more.
	return w.takeFetched(ctx, f)
}

// fetched is a file that was fetched and is kept here.
type fetched struct {
	id        string
	told      archive.FileTold // by the answer, and by the document
	kept      archive.File     // the file itself, out of its encoding
	isWrapped bool             // it could not be got out of its encoding: what is kept is what came
	request   archive.RequestID
}

// keepFetched fetches a file and keeps it as it came, and beside that, where it
// came in an encoding, the file itself. isKept is false where that failed and
// was committed.
func (w *work) keepFetched(ctx context.Context, id string) (f fetched, isKept bool, err error) {
	var failed error
	f.id = id
	noting, request := apicall.NoteRequests(ctx)
	f.kept, err = w.keepFile(storedName(w.a.Files, id), func(p *part) error {
		f.told, failed = w.cfg.Service.FetchFile(noting, archive.FileID(id), p)
		return failed
	})
	if failed != nil && apicall.AsError(failed).Code != "local" {
		return f, false, w.postponeAfterFault(ctx, "fetch a file", failed)
	}
	f.request = request.Last()
	if err == nil {
		f.told = f.told.Or(w.fileOf(id).Told)
		err = w.unwrap(&f)
	}
	if err != nil {
		return f, false, w.postponeLocal(ctx, CauseFolder, err)
	}
	return f, true, nil
}

// decodedEnd stands behind the name of a file that came in an encoding, and was got out of it.
const decodedEnd = "-decoded"

// unwrap keeps a file as it is out of its encoding, beside what came.
func (w *work) unwrap(f *fetched) error {
	in, err := w.openKept(f.kept.Path)
	if err != nil {
		return err
	}
	defer in.Close() // read-only
	head := make([]byte, archive.HeadOfFile)
	n, err := in.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	encoding := f.told.Wrapping(head[:n])
	if encoding == "" {
		return nil
	}
	plain, err := w.keepFile(f.kept.Path+decodedEnd, func(p *part) error { return archive.Unwrap(encoding, in, p) })
	switch {
	case errors.Is(err, archive.ErrCutOff):
		f.isWrapped = true
	case err != nil:
		return err
	default:
		f.kept = plain
	}
	return nil
}

// handOn puts the document with its files into the drop folder, and commits that it is there.
func (w *work) handOn(ctx context.Context) error {
	f, err := w.makeFolder()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errOtherBytes) {
		// A ledger that was put back may not know that it lay in the drop folder, and that its files were removed because the archive has it.
		isArchived, errFind := w.cfg.IsArchived(archive.DeriveReceivedID(w.a.Document()))
		if errFind != nil {
			return errFind
		}
		if isArchived {
			// A crash before this commit finds the same again.
			w.cfg.Log.Warn("a received document is not here any more, but the archive has it; nothing is put into the drop folder again", "document", w.a.Item, "why", err.Error())
			return w.commit(ctx, arrival.HandedOn{})
		}
		return w.postponeLocal(ctx, CauseLost, err)
	}
	if err != nil {
		return w.postponeLocal(ctx, CauseFolder, err)
	}
	// A crash after this leaves a folder that is there, or that was taken from there. The next start puts it there again: it is found, or
	// it ends as a duplicate of the first, because both have one identity.
	if err := w.cfg.Drop.PutFolder(ctx, f); err != nil {
		return w.postponeLocal(ctx, CauseDrop, err)
	}
	return w.commit(ctx, arrival.HandedOn{})
}

// confirm tells the network that the document was received.
func (w *work) confirm(ctx context.Context) error {
	// The intent: a crash after it leaves a confirmation that may have been taken, and the next start repeats it.
	if err := w.commit(ctx, arrival.ConfirmIntended{}); err != nil {
		return err
	}
	noting, request := apicall.NoteRequests(ctx)
	if err := w.cfg.Service.ConfirmReceipt(noting, w.kind(), w.a.Document(), w.a.HandedOnAt); err != nil {
		return w.postponeAfterFault(ctx, "confirm the receipt", err)
	}
	w.noteAnswer()
	return w.commit(ctx, arrival.ConfirmationTaken{Request: request.Last()})
}

// acknowledge deletes the notification that announced the document. Everything of it lies in the drop folder by now.
func (w *work) acknowledge(ctx context.Context) error {
	// The intent: a crash after it leaves a notification that may be deleted, and the next start deletes it again; that it is not there
	// any more counts as done.
	if err := w.commit(ctx, arrival.AcknowledgeIntended{OnlyHandedOn: true}); err != nil {
		return err
	}
	noting, request := apicall.NoteRequests(ctx)
	switch err := w.cfg.Service.Acknowledge(noting, w.a.Notice); {
	case err == nil:
		w.noteAnswer()
	case !w.isGone(err): // a page that says so may be a proxy's, so it ends no pause
		return w.postponeAfterFault(ctx, "delete the notification", err)
	}
	return w.commit(ctx, arrival.AcknowledgementTaken{Request: request.Last()})
}

// isGone reports whether the network does not know the notification any more,
// as a page says that may be a proxy's. It is believed from the second deletion
// on. If it is not so, the notification is listed again, and whoever takes
// notifications in deletes it: the document is here.
func (w *work) isGone(err error) bool {
	return apicall.AsError(err).Status == http.StatusNotFound && w.a.AcknowledgeIntents > 1
}
