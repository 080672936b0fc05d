package arrivals

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger/arrival"
)

// ReceivedLedger is the ledger as received documents need it.
type ReceivedLedger interface {
	Ledger
	Arrival(key archive.Key) (a arrival.Arrival, ok bool, err error)
}

// ReceivedService is the business network. Its errors are *apicall.Error.
type ReceivedService interface {
	// FetchDocument returns a document as it came, and its files.
	FetchDocument(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID) (raw []byte, files []archive.FileRef, err error)
	// FetchFile writes a file to w as it came, and returns what the answer
	// tells of it. An error of w has the code "local".
	FetchFile(ctx context.Context, id archive.FileID, w io.Writer) (archive.FileTold, error)
	// ConfirmReceipt says that a document was received. To repeat it does no
	// harm.
	ConfirmReceipt(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID, at time.Time) error
	// Acknowledge deletes a notification. A number that the network does not
	// know is no error.
	Acknowledge(ctx context.Context, id archive.AcknowledgementID) error
}

// Received is what an engine of received documents works with.
type Received struct {
	Config
	Ledger     ReceivedLedger
	Service    ReceivedService
	Describe   func(kind archive.NetworkKind, raw []byte) (archive.Document, error) // what a document says of itself
	Custody    *custody.Received                                                    // of files, until they are archived
	Drop       Drop
	IsArchived func(id archive.ID) (bool, error) // the archive has the document of that identity
	Confirm    bool                              // say of each document that it was received
}

// received has the steps of received documents.
type received struct {
	*Engine
	cfg   Received
	swept time.Time // when the files of archived documents were last removed

	checking sync.Mutex // held while the form of a file is checked: XML of a stranger may take a lot of memory
}

const sweepEvery = time.Hour

// NewReceived returns the engine of received documents; it does nothing before
// Run.
func NewReceived(cfg Received) *Engine {
	r := &received{Engine: newEngine(cfg.Config, cfg.Ledger, arrival.Received, arrival.Rules{Confirm: cfg.Confirm}), cfg: cfg}
	r.prepare, r.do = r.sweep, r.doStep
	return r.Engine
}

// doStep does one step of a document.
func (r *received) doStep(ctx context.Context, w *work, step arrival.Step, file string) error {
	switch step {
	case arrival.FetchDocument:
		return r.fetchDocument(ctx, w)
	case arrival.Download:
		return r.fetchFile(ctx, w, file)
	case arrival.Conclude:
		return w.commit(ctx, arrival.HeldWhole{Manifest: digestOf(w.a.Files)})
	case arrival.HandOn:
		return r.handOn(ctx, w)
	case arrival.Confirm:
		return r.confirm(ctx, w)
	}
	return r.acknowledge(ctx, w)
}

func (w *work) networkKind() archive.NetworkKind { return archive.NetworkKind(w.a.Type) }

// fetchDocument fetches the document, keeps it as it came, and commits which
// files it names.
func (r *received) fetchDocument(ctx context.Context, w *work) error {
	if ok, err := w.hasRoom(ctx, causeFull); !ok || err != nil {
		return err
	}
	// A GET: it changes nothing at the network, and a crash in it fetches the
	// document once more.
	noting, request := apicall.NoteRequests(ctx)
	raw, files, err := r.cfg.Service.FetchDocument(noting, w.networkKind(), w.a.Document())
	if err != nil {
		return w.postponeAfterFault(ctx, "fetch a document", err)
	}
	w.noteAnswer()
	kept, err := r.cfg.Custody.Keep(w.a.Key, documentName, func(p io.Writer) error { _, err := p.Write(raw); return err })
	if err != nil {
		return w.postponeLocal(ctx, CauseFolder, err)
	}
	// The document is durable. A crash before this commit fetches it once more,
	// and replaces it: no line tells of its bytes yet.
	return w.commit(ctx, arrival.DocumentHeld{Stored: documentName, Size: kept.Size, SHA256: kept.SHA256, Files: files, Request: request.Last()})
}

// fetchFile fetches one file of the document, as it comes, onto the disk.
func (r *received) fetchFile(ctx context.Context, w *work, id string) error {
	if isTaken, err := r.takeKept(ctx, w, id); isTaken || err != nil {
		return err
	}
	if ok, err := w.hasRoom(ctx, causeFull); !ok || err != nil {
		return err
	}
	f, isKept, err := r.keepFetched(ctx, w, id)
	if !isKept || err != nil {
		return err
	}
	// The file is durable under its name. A crash before the commit in this
	// fetches it once more.
	return r.takeFetched(ctx, w, f)
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
func (r *received) keepFetched(ctx context.Context, w *work, id string) (f fetched, isKept bool, err error) {
	var failed error
	f.id = id
	noting, request := apicall.NoteRequests(ctx)
	f.kept, err = r.cfg.Custody.Keep(w.a.Key, storedName(w.a.Files, id), func(p io.Writer) error {
		f.told, failed = r.cfg.Service.FetchFile(noting, archive.FileID(id), p)
		return failed
	})
	if failed != nil && apicall.AsError(failed).Code != "local" {
		return f, false, w.postponeAfterFault(ctx, "fetch a file", failed)
	}
	f.request = request.Last()
	if err == nil {
		f.told = f.told.Or(w.a.Files[placeOf(w.a.Files, id)].Told)
		err = r.unwrap(w, &f)
	}
	if err != nil {
		return f, false, w.postponeLocal(ctx, CauseFolder, err)
	}
	return f, true, nil
}

// decodedEnd stands behind the name of a file that came in an encoding, and was
// got out of it.
const decodedEnd = "-decoded"

// unwrap keeps a file as it is out of its encoding, beside what came.
func (r *received) unwrap(w *work, f *fetched) error {
	in, err := r.cfg.Custody.Open(w.a.Key, f.kept.Path)
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
	plain, err := r.cfg.Custody.Keep(w.a.Key, f.kept.Path+decodedEnd, func(p io.Writer) error { return archive.Unwrap(encoding, in, p) })
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

// handOn puts the document with its files into the drop folder, and commits
// that it is there.
func (r *received) handOn(ctx context.Context, w *work) error {
	f, err := r.makeFolder(w)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errOtherBytes) {
		// A ledger that was put back may not know that it lay in the drop
		// folder, and that its files were removed because the archive has it.
		isArchived, errFind := r.cfg.IsArchived(archive.DeriveReceivedID(w.a.Document()))
		if errFind != nil {
			return errFind
		}
		if isArchived {
			// A crash before this commit finds the same again.
			w.Log.Warn("a received document is not here any more, but the archive has it; nothing is put into the drop folder again", "document", w.a.Item, "why", err.Error())
			return w.commit(ctx, arrival.HandedOn{})
		}
		return w.postponeLocal(ctx, CauseLost, err)
	}
	if err != nil {
		return w.postponeLocal(ctx, CauseFolder, err)
	}
	return w.handOn(ctx, r.cfg.Drop, f)
}

// confirm tells the network that the document was received.
func (r *received) confirm(ctx context.Context, w *work) error {
	say := func(ctx context.Context) error {
		return r.cfg.Service.ConfirmReceipt(ctx, w.networkKind(), w.a.Document(), w.a.HandedOnAt)
	}
	return w.tell(ctx, arrival.ConfirmIntended{}, say, func(*apicall.Error) bool { return false },
		func(id archive.RequestID) arrival.Event { return arrival.ConfirmationTaken{Request: id} })
}

// acknowledge deletes the notification that announced the document. Everything
// of it lies in the drop folder by now. After a crash it is deleted again; that
// it is not there any more counts as done.
func (r *received) acknowledge(ctx context.Context, w *work) error {
	return w.tell(ctx, arrival.AcknowledgeIntended{OnlyHandedOn: true}, func(ctx context.Context) error { return r.cfg.Service.Acknowledge(ctx, w.a.Notice) },
		w.isGone, func(id archive.RequestID) arrival.Event { return arrival.AcknowledgementTaken{Request: id} })
}

// isGone reports whether the network does not know the notification any more,
// as a page says that may be a proxy's. It is believed from the second deletion
// on. If it is not so, the notification is listed again, and whoever takes
// notifications in deletes it: the document is here.
func (w *work) isGone(err *apicall.Error) bool {
	return err.Status == http.StatusNotFound && w.a.AcknowledgeIntents > 1
}
