package intake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Codes of causes that begin here. Others are those of [apicall.Error].
const (
	CauseCustodyFull  = "custody-full"    // the disk of the custody is full
	CauseCustody      = "custody"         // the custody cannot be written, or has something else
	CauseDamagedFile  = "damaged-file"    // what came is no whole file
	CauseDefinition   = "no-definition"   // the table definition does not come
	CauseFilesUnclear = "files-not-clear" // the list of files cannot be used, or names too few
	CauseGone         = "gone-at-service" // the service does not have it any more
	CauseLost         = "custody-lost"    // custody has lost it, and the service does not have it any more
	CauseDropFull     = "drop-full"       // the disk of the drop folder is full
	CauseDrop         = "drop"            // the drop folder is away or cannot be written, or a file in custody is not what it was
)

// apply commits events of one arrival, and waits until they are durable.
func (e *Engine) apply(ctx context.Context, a arrival.Arrival, evs ...arrival.Event) (arrival.Arrival, error) {
	// What was done must be recorded even while the program ends: a lost outcome would cost another download.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	next, err := e.cfg.Ledger.ApplyArrival(ctx, arrival.Change{Key: a.Key, Rev: a.Rev, Events: evs, At: e.now()})
	if _, stale := errors.AsType[*ledger.StaleError](err); stale {
		return a, errStale
	}
	return next, err
}

// commitTimeout bounds how long a commit is waited for. A ledger that needs longer hangs.
const commitTimeout = time.Minute

// work is the work on one arrival in one round.
type work struct {
	*Engine
	a     arrival.Arrival
	files []archive.ExtractFile // as listed in this round; nil: not yet. Addresses are never stored.

	intended string // the file whose download was announced beside the file before it; may be empty
}

// doDueSteps does what is due of the arrival until nothing is.
func (w *work) doDueSteps(ctx context.Context) error {
	for ctx.Err() == nil && w.mayAct() {
		step, file, at := w.dueOf(w.a)
		if w.intended != "" { // its download counts already, and so it comes first
			step, file, at = arrival.Download, w.intended, time.Time{}
		}
		if at.After(w.now().Wall) {
			return nil
		}
		var err error
		switch step {
		case arrival.ListFiles:
			err = w.listFiles(ctx)
		case arrival.Download:
			err = w.download(ctx, file)
		case arrival.Conclude:
			err = w.holdIfComplete(ctx)
		case arrival.HandOn:
			err = w.handOn(ctx)
		case arrival.Acknowledge:
			err = w.acknowledge(ctx)
		default:
			return nil
		}
		if errors.Is(err, errStale) || errors.Is(err, errRefused) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s of extract %s: %w", step, w.a.Item, err)
		}
	}
	return nil
}

// commit commits events and goes on with the arrival that they made.
func (w *work) commit(ctx context.Context, evs ...arrival.Event) error {
	a, err := w.apply(ctx, w.a, evs...)
	if err == nil {
		w.a = a
	}
	return err
}

// postpone commits that what is due failed, and when it is tried again.
func (w *work) postpone(ctx context.Context, c ledger.Cause) error {
	return w.commit(ctx, arrival.Postponed{Until: w.now().Wall.Add(arrival.DelayAfter(int(w.a.Attempt))), Cause: c})
}

// postponeAfterFault pauses all calls where the fault is a general one. The step stays due, or is postponed.
func (w *work) postponeAfterFault(ctx context.Context, op string, err error) error {
	e := apicall.AsError(err)
	if isGeneral(e) {
		w.pauseCalls(op, e)
	}
	return w.postpone(ctx, ledger.Cause{Code: e.Code, Text: e.Error()})
}

// askFiles asks for the list of files. ok is false where that failed and was committed.
func (w *work) askFiles(ctx context.Context) (ok bool, err error) {
	files, err := w.cfg.Service.Files(ctx, w.a.Item)
	if err == nil {
		w.noteAnswer()
		w.files = files
		return true, nil
	}
	if ctx.Err() != nil {
		return false, nil // the program ends; the step stays due
	}
	// Two words of the service: a whole list without it, and that it does not know its number. A missing right is neither.
	if w.a.Gone && apicall.AsError(err).Status == http.StatusNotFound {
		cause := ledger.Cause{Code: CauseGone, Text: "The service does not have this extract any more, and it was not held."}
		if !w.a.LostAt.IsZero() {
			cause = ledger.Cause{Code: CauseLost, Text: "Its folder in custody is lost, and the service does not have it any more: restore the folder from a copy."}
		}
		return false, w.commit(ctx, arrival.Abandoned{Cause: cause})
	}
	return false, w.postponeAfterFault(ctx, "list files", err)
}

// listFiles asks for the list of files and commits their names.
func (w *work) listFiles(ctx context.Context) error {
	ok, err := w.askFiles(ctx)
	if !ok || err != nil {
		return err
	}
	// A list that names nothing new leaves no line: it is asked for again and again where it names too few.
	if w.a.State == arrival.Announced || !w.hasAllListedFiles() {
		err = w.commit(ctx, arrival.FilesListed{Files: w.files})
	}
	if errors.Is(err, ledger.ErrIllegal) {
		return w.postpone(ctx, ledger.Cause{Code: CauseFilesUnclear, Text: "The list of its files cannot be used: " + err.Error()})
	}
	isHere := !slices.ContainsFunc(w.a.Files, func(f arrival.File) bool { return !f.IsHeld() })
	if err == nil && isHere && len(w.a.Files) < w.a.Count { // what is listed is fetched first
		text := fmt.Sprintf("The service said that it has %d files, and lists %d.", w.a.Count, len(w.a.Files))
		return w.postpone(ctx, ledger.Cause{Code: CauseFilesUnclear, Text: text})
	}
	return err
}

// download downloads one file into custody.
func (w *work) download(ctx context.Context, name string) error {
	isIntended := w.intended == name
	w.intended = "" // whatever keeps this download from its GET: it counts, and what is due is asked anew
	listed := func() int {
		return slices.IndexFunc(w.files, func(f archive.ExtractFile) bool { return f.Name == name })
	}
	if listed() < 0 { // as after a start: addresses are asked for again
		if ok, err := w.askFiles(ctx); !ok || err != nil {
			return err
		}
	}
	i := listed()
	if i < 0 {
		return w.postpone(ctx, ledger.Cause{Code: CauseFilesUnclear, Text: "The list leaves out a file that it had before and that is not held."})
	}
	// Before the intent: a download that finds no place costs one of the few that the service allows.
	if w.cfg.Room != nil {
		if err := w.cfg.Room(); err != nil {
			return w.postpone(ctx, ledger.Cause{Code: CauseCustodyFull, Text: err.Error()})
		}
	}
	number := 1 + w.placeOf(name)
	h, err := w.cfg.Custody.Begin(w.extract())
	if err != nil {
		return w.postponeLocal(ctx, err)
	}
	defer h.Close()
	p, err := h.Begin(number, w.files[i])
	if err != nil {
		return w.postponeLocal(ctx, err)
	}
	defer p.Abandon()
	from := hostOfLink(w.files[i].URL)
	begun, err := w.enterWay(ctx, from)
	if err != nil {
		return err
	}
	defer begun()
	if !isIntended {
		// The intent: from here on the download counts. A crash before the GET leaves a count that is too high by one, never too low.
		if err := w.commit(ctx, arrival.DownloadIntended{File: name}); err != nil {
			return err
		}
	}
	noting, request := apicall.NoteRequests(ctx)
	if _, err := w.cfg.Service.Download(noting, w.files[i], firstByte{p, begun}); err != nil {
		if ctx.Err() != nil {
			return nil // the program ends; the intent stands, and the next start downloads again
		}
		if e := apicall.AsError(err); e.Code == "local" {
			return w.postponeLocal(ctx, err)
		}
		if e := apicall.AsError(err); e.IsUnlisted() {
			return w.postponeRefused(ctx, from, e)
		}
		w.files = nil // an address may be over
		return w.postponeAfterFault(ctx, "download", err)
	}
	w.noteAnswer()
	return w.keepDownloaded(ctx, name, p, request.Last())
}

// keepDownloaded makes a file durable that came whole, and commits that it is held.
func (w *work) keepDownloaded(ctx context.Context, name string, p *custody.Part, request archive.RequestID) error {
	kept, err := p.Commit(ctx)
	if err != nil {
		return w.postponeLocal(ctx, err)
	}
	// The file is durable under its name. A crash before this commit downloads it once more, and finds the same bytes there.
	if kept.Beside != "" {
		w.cfg.Log.Error("other bytes were held for this file: both are kept", "extract", w.a.Item, "file", kept.Stored, "first", kept.Beside)
	}
	held := arrival.FileHeld{File: name, Stored: kept.Stored, Size: kept.Size, SHA256: kept.SHA256, Beside: kept.Beside != "", Request: request}
	evs, next := []arrival.Event{held}, w.nextDownload(held)
	if next != "" {
		// In one commit with the file before it: each commit waits for the disk. A crash before its GET leaves a count that is too high by one.
		evs = append(evs, arrival.DownloadIntended{File: next})
	}
	if err := w.commit(ctx, evs...); err != nil {
		return err
	}
	w.intended = next
	return nil
}

// nextDownload returns the file that is downloaded as soon as one is held; empty: none is by itself, or it is not certain that it can be.
func (w *work) nextDownload(held arrival.FileHeld) string {
	after := w.a
	after.Files = slices.Clone(after.Files)
	f := &after.Files[w.placeOf(held.File)]
	f.Stored, f.SHA256 = held.Stored, held.SHA256
	step, file, at := w.dueOf(after)
	isListed := slices.ContainsFunc(w.files, func(f archive.ExtractFile) bool { return f.Name == file })
	if step != arrival.Download || at.After(w.now().Wall) || !isListed || !w.mayAct() || w.cfg.Room != nil && w.cfg.Room() != nil {
		return ""
	}
	return file
}

// placeOf returns the place of a file in the list of the arrival.
func (w *work) placeOf(name string) int {
	return slices.IndexFunc(w.a.Files, func(f arrival.File) bool { return f.Name == name })
}

// postponeLocal postpones for a fault of the custody's disk or of what came. A file whose place is not known stops the process.
func (w *work) postponeLocal(ctx context.Context, err error) error {
	damaged, isDamaged := errors.AsType[*custody.DamagedError](err)
	switch {
	case errors.Is(err, custody.ErrUnknownPlace):
		return err
	case ctx.Err() != nil:
		return nil
	case isDamaged:
		return w.postpone(ctx, ledger.Cause{Code: CauseDamagedFile, Text: damaged.Error()})
	case custody.IsFull(err):
		return w.postpone(ctx, ledger.Cause{Code: CauseCustodyFull, Text: err.Error()})
	}
	return w.postpone(ctx, ledger.Cause{Code: CauseCustody, Text: err.Error()})
}

// holdIfComplete asks for the list of files once more, and holds the extract where that names nothing new.
func (w *work) holdIfComplete(ctx context.Context) error {
	// Asked again in every case: a file that was added while the others came is seen only so.
	ok, err := w.askFiles(ctx)
	if !ok || err != nil {
		return err
	}
	if !w.hasAllListedFiles() {
		return w.commit(ctx, arrival.FilesListed{Files: w.files})
	}
	if len(w.files) < w.a.Count {
		return w.postpone(ctx, ledger.Cause{Code: CauseFilesUnclear, Text: "The list, asked for again, names fewer files than it did."})
	}
	definition, err := w.cfg.Service.Definition(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the program ends; the step stays due
		}
		e := apicall.AsError(err)
		if isGeneral(e) {
			return w.postponeAfterFault(ctx, "table definition", err)
		}
		hasNone := e.Status >= 400 && e.Status < 500
		if !hasNone && (w.a.Cause.Code != CauseDefinition || w.a.Attempt < definitionTries) {
			return w.postpone(ctx, ledger.Cause{Code: CauseDefinition, Text: e.Error()})
		}
		w.cfg.Log.Warn("an extract is held without a table definition: the service does not give one", "extract", w.a.Item, "err", e.Error())
	}
	manifest, err := w.writeManifest(definition)
	if err != nil {
		return w.postponeLocal(ctx, err)
	}
	// Files, definition and manifest are durable. A crash before this commit asks again and finds the same manifest.
	return w.commit(ctx, arrival.HeldWhole{Again: w.files, Manifest: manifest})
}

// definitionTries is how often a table definition is asked for in vain before
// an extract is held without it. Its records can be read by their names. If the
// service says that it has none, it is asked once.
const definitionTries = 3

// hasAllListedFiles reports whether the list, as it was asked for last, names no file that the arrival does not have.
func (w *work) hasAllListedFiles() bool {
	return !slices.ContainsFunc(w.files, func(f archive.ExtractFile) bool {
		return !slices.ContainsFunc(w.a.Files, func(had arrival.File) bool { return had.Name == f.Name })
	})
}

// writeManifest writes the definition and the manifest.
func (w *work) writeManifest(definition archive.TableDefinition) (archive.Digest, error) {
	h, err := w.cfg.Custody.Begin(w.extract())
	if err != nil {
		return archive.Digest{}, err
	}
	defer h.Close()
	var held []custody.HeldFile
	for _, f := range w.a.Files {
		file, err := h.Recall(f.Stored, f.Size, f.SHA256)
		if err != nil {
			return archive.Digest{}, err
		}
		held = append(held, custody.HeldFile{Name: f.Name, Table: f.Table, File: file})
	}
	var kept custody.File
	// A life before may have died between its manifest and the commit. That manifest counts, with the definition of its day.
	if m, err := w.cfg.Custody.Find(w.a.Item); err == nil {
		kept = m.Definition
	} else if definition.Raw != nil {
		if kept, err = h.Definition(definition.Raw); err != nil {
			return archive.Digest{}, err
		}
	}
	_, digest, err := h.Seal(held, kept, w.now().Wall)
	return digest, err
}

// acknowledge tells the service that the extract is held.
func (w *work) acknowledge(ctx context.Context) error {
	repeated := w.a.AcknowledgeIntents > 0
	// The intent: a crash after it leaves an acknowledgement that may have been taken, and the next start repeats it.
	if err := w.commit(ctx, arrival.AcknowledgeIntended{OnlyHandedOn: w.cfg.HandOn != nil}); err != nil {
		return err
	}
	noting, request := apicall.NoteRequests(ctx)
	err := w.cfg.Acknowledger.Acknowledge(noting, w.a.Item, "held")
	if err == nil || repeated && w.wasAlreadyAcknowledged(apicall.AsError(err)) {
		w.noteAnswer()
		return w.commit(ctx, arrival.AcknowledgementTaken{Request: request.Last()})
	}
	if ctx.Err() != nil {
		return nil // the program ends; the intent stands
	}
	return w.postponeAfterFault(ctx, "acknowledge", err)
}

// wasAlreadyAcknowledged reports whether a repeated acknowledgement shows that an earlier one was taken: the service does not know the number, and its
// last whole list leaves the extract out.
func (w *work) wasAlreadyAcknowledged(err *apicall.Error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return err.Status == http.StatusNotFound && w.listed != nil && !w.listed[w.a.Item]
}

// extract is the extract as it was announced.
func (w *work) extract() archive.Extract {
	a := w.a
	return archive.Extract{ID: a.Item, Type: a.Type, Name: a.Name, Start: a.Start, End: a.End, Made: a.Made, Files: a.Count}
}
