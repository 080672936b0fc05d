package arrivals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// ExtractLedger is the ledger as extracts need it.
type ExtractLedger interface {
	Ledger
	FindArrival(kind arrival.Kind, item archive.ExtractID) (arrival.Arrival, bool, error)
	Arrivals(fn func(arrival.Arrival) error, states ...arrival.State) error
	// LastAlarm returns when the ledger last lost something; zero: never.
	LastAlarm() time.Time
}

// ExtractService has the extracts. Its errors are *apicall.Error.
type ExtractService interface {
	List(ctx context.Context, status string) (archive.ExtractList, error)
	Files(ctx context.Context, id archive.ExtractID) ([]archive.ExtractFile, error)
	// Download makes exactly one download, however it ends. An error of w has
	// the code "local".
	Download(ctx context.Context, f archive.ExtractFile, w io.Writer) (int64, error)
	Definition(ctx context.Context) (archive.TableDefinition, error)
}

// Acknowledger tells the service that an extract is held. The service then
// hides it from every other program. To repeat it does no harm.
type Acknowledger interface {
	Acknowledge(ctx context.Context, id archive.ExtractID, message string) error
}

// HandOn says that the files of an extract are archived, and as what.
type HandOn struct {
	Drop         Drop
	DocumentType string // one of archive.DocumentTypes
	LedgerID     string // part of the identity of each document
}

// Extracts is what an engine of extracts works with.
type Extracts struct {
	Config
	Ledger       ExtractLedger
	Service      ExtractService
	Acknowledger Acknowledger // nil: nothing is acknowledged, and what is held is at its end
	HandOn       *HandOn      // nil: nothing is archived
	Custody      *custody.Custody
	Every        time.Duration // between two lists
	MaxDownloads uint16        // of one file, before a person must look
	Hosts        string        // digest of the hosts that redirects may lead to: a download that led elsewhere is tried again once it changes
}

// mostWorkers is how many extracts are worked on at once, and so how many
// downloads there are: the service blocks who asks for much.
const mostWorkers = 2

// extracts has the steps of extracts.
type extracts struct {
	*Engine
	cfg Extracts
	way chan struct{} // size 1: full from before a download until its first byte

	again    time.Time                  // when the list is asked for again; zero: at once
	failures int                        // of the list, in a row
	listed   map[archive.ExtractID]bool // guarded by mu: by the last list that was whole; nil: none was in this run
}

// NewExtracts returns the engine of extracts; it does nothing before Run.
func NewExtracts(cfg Extracts) *Engine {
	cfg.Workers = min(cfg.Workers, mostWorkers)
	rules := arrival.Rules{Acknowledge: cfg.Acknowledger != nil, HandOn: cfg.HandOn != nil, MaxDownloads: cfg.MaxDownloads}
	x := &extracts{Engine: newEngine(cfg.Config, cfg.Ledger, arrival.Extract, rules), cfg: cfg, way: make(chan struct{}, 1)}
	x.prepare, x.do = x.look, x.doStep
	return x.Engine
}

// doStep does one step of an extract.
func (x *extracts) doStep(ctx context.Context, w *work, step arrival.Step, file string) error {
	switch step {
	case arrival.ListFiles:
		return x.listFiles(ctx, w)
	case arrival.Download:
		return x.download(ctx, w, file)
	case arrival.Conclude:
		return x.holdIfComplete(ctx, w)
	case arrival.HandOn:
		return x.handOn(ctx, w)
	}
	return x.acknowledge(ctx, w)
}

// askFiles asks for the list of files. ok is false where that failed and was
// committed.
func (x *extracts) askFiles(ctx context.Context, w *work) (ok bool, err error) {
	files, err := x.cfg.Service.Files(ctx, w.a.Item)
	if err == nil {
		w.noteAnswer()
		w.files = files
		return true, nil
	}
	// Two words of the service: a whole list without it, and that it does not
	// know its number. A missing right is neither.
	if w.a.Gone && apicall.AsError(err).Status == http.StatusNotFound {
		cause := ledger.Cause{Code: causeGone, Text: "The service does not have this extract any more, and it was not held."}
		if !w.a.LostAt.IsZero() {
			cause = ledger.Cause{Code: CauseCustodyLost, Text: "Its folder in custody is lost, and the service does not have it any more: restore the folder from a copy."}
		}
		return false, w.commit(ctx, arrival.Abandoned{Cause: cause})
	}
	return false, w.postponeAfterFault(ctx, "list files", err)
}

// listFiles asks for the list of files and commits their names.
func (x *extracts) listFiles(ctx context.Context, w *work) error {
	ok, err := x.askFiles(ctx, w)
	if !ok || err != nil {
		return err
	}
	// A list that names nothing new leaves no line: it is asked for again and
	// again where it names too few.
	if w.a.State == arrival.Announced || !w.hasAllListedFiles() {
		err = w.commit(ctx, arrival.FilesListed{Files: w.files})
	}
	if errors.Is(err, ledger.ErrIllegal) {
		return w.postpone(ctx, ledger.Cause{Code: causeFilesUnclear, Text: "The list of its files cannot be used: " + err.Error()})
	}
	isHere := !slices.ContainsFunc(w.a.Files, func(f arrival.File) bool { return !f.IsHeld() })
	if err == nil && isHere && len(w.a.Files) < w.a.Count { // what is listed is fetched first
		text := fmt.Sprintf("The service said that it has %d files, and lists %d.", w.a.Count, len(w.a.Files))
		return w.postpone(ctx, ledger.Cause{Code: causeFilesUnclear, Text: text})
	}
	return err
}

// download downloads a file into custody, and others whose intents were
// committed with the file before them.
func (x *extracts) download(ctx context.Context, w *work, name string) error {
	next, err := x.downloadFile(ctx, w, name, false)
	for err == nil && next != "" && ctx.Err() == nil && !w.isHeld() && !w.isPaused() { // whatever keeps the next one from its GET: it counts, and what is due is asked anew
		next, err = x.downloadFile(ctx, w, next, true)
	}
	return err
}

// downloadFile downloads one file into custody. It returns the one that is to
// be downloaded next, and whose intent is committed; empty: none is.
func (x *extracts) downloadFile(ctx context.Context, w *work, name string, isIntended bool) (next string, err error) {
	listed := func() int {
		return slices.IndexFunc(w.files, func(f archive.ExtractFile) bool { return f.Name == name })
	}
	if listed() < 0 { // as after a start: addresses are asked for again
		if ok, err := x.askFiles(ctx, w); !ok || err != nil {
			return "", err
		}
	}
	i := listed()
	if i < 0 {
		return "", w.postpone(ctx, ledger.Cause{Code: causeFilesUnclear, Text: "The list leaves out a file that it had before and that is not held."})
	}
	// Before the intent: a download that finds no place costs one of the few
	// that the service allows.
	if ok, err := w.hasRoom(ctx, causeCustodyFull); !ok || err != nil {
		return "", err
	}
	number := 1 + placeOf(w.a.Files, name)
	h, err := x.cfg.Custody.Begin(w.extract())
	if err != nil {
		return "", w.postponeLocal(ctx, causeCustody, err)
	}
	defer h.Close()
	p, err := h.Begin(number, w.files[i])
	if err != nil {
		return "", w.postponeLocal(ctx, causeCustody, err)
	}
	defer p.Abandon()
	from := hostOfLink(w.files[i].URL)
	begun, err := x.enterWay(ctx, from)
	if err != nil {
		return "", err
	}
	defer begun()
	if !isIntended {
		// The intent: from here on the download counts. A crash before the GET
		// leaves a count that is too high by one, never too low.
		if err := w.commit(ctx, arrival.DownloadIntended{File: name}); err != nil {
			return "", err
		}
	}
	noting, request := apicall.NoteRequests(ctx)
	if _, err := x.cfg.Service.Download(noting, w.files[i], firstByte{p, begun}); err != nil {
		if ctx.Err() != nil {
			return "", nil // the program ends; the intent stands, and the next start downloads again
		}
		if e := apicall.AsError(err); e.Code == "local" {
			return "", w.postponeLocal(ctx, causeCustody, err)
		}
		if e := apicall.AsError(err); e.IsUnlisted() {
			return "", x.postponeRefused(ctx, w, from, e)
		}
		w.files = nil // an address may be over
		return "", w.postponeAfterFault(ctx, "download", err)
	}
	w.noteAnswer()
	return x.keepDownloaded(ctx, w, name, p, request.Last())
}

// keepDownloaded makes a file durable that came whole, and commits that it is
// held.
func (x *extracts) keepDownloaded(ctx context.Context, w *work, name string, p *custody.Part, request archive.RequestID) (next string, err error) {
	kept, err := p.Commit(ctx)
	if err != nil {
		return "", w.postponeLocal(ctx, causeCustody, err)
	}
	// The file is durable under its name. A crash before this commit downloads
	// it once more, and finds the same bytes there.
	if kept.Beside != "" {
		w.Log.Error("other bytes were held for this file: both are kept", "extract", w.a.Item, "file", kept.Stored, "first", kept.Beside)
	}
	held := arrival.FileHeld{File: name, Stored: kept.Stored, Size: kept.Size, SHA256: kept.SHA256, Beside: kept.Beside != "", Request: request}
	evs := []arrival.Event{held}
	next = x.nextDownload(w, held)
	if next != "" {
		// In one commit with the file before it: each commit waits for the
		// disk. A crash before its GET leaves a count that is too high by one.
		evs = append(evs, arrival.DownloadIntended{File: next})
	}
	return next, w.commit(ctx, evs...)
}

// nextDownload returns the file that is downloaded as soon as one is held;
// empty: none is by itself, or it is not certain that it can be.
func (x *extracts) nextDownload(w *work, held arrival.FileHeld) string {
	after := w.a
	after.Files = slices.Clone(after.Files)
	f := &after.Files[placeOf(w.a.Files, held.File)]
	f.Stored, f.SHA256 = held.Stored, held.SHA256
	step, file, at := w.dueOf(after)
	isListed := slices.ContainsFunc(w.files, func(f archive.ExtractFile) bool { return f.Name == file })
	if step != arrival.Download || at.After(w.now().Wall) || !isListed || w.isHeld() || w.isPaused() || x.Room != nil && x.Room() != nil {
		return ""
	}
	return file
}

// holdIfComplete asks for the list of files once more, and holds the extract
// where that names nothing new.
func (x *extracts) holdIfComplete(ctx context.Context, w *work) error {
	// Asked again in every case: a file that was added while the others came is
	// seen only so.
	ok, err := x.askFiles(ctx, w)
	if !ok || err != nil {
		return err
	}
	if !w.hasAllListedFiles() {
		return w.commit(ctx, arrival.FilesListed{Files: w.files})
	}
	if len(w.files) < w.a.Count {
		return w.postpone(ctx, ledger.Cause{Code: causeFilesUnclear, Text: "The list, asked for again, names fewer files than it did."})
	}
	definition, err := x.cfg.Service.Definition(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil // the program ends; the step stays due
		}
		e := apicall.AsError(err)
		if isGeneral(e) {
			return w.postponeAfterFault(ctx, "table definition", err)
		}
		hasNone := e.Status >= 400 && e.Status < 500
		if !hasNone && (w.a.Cause.Code != causeDefinition || w.a.Attempt < definitionTries) {
			return w.postpone(ctx, ledger.Cause{Code: causeDefinition, Text: e.Error()})
		}
		w.Log.Warn("an extract is held without a table definition: the service does not give one", "extract", w.a.Item, "err", e.Error())
	}
	manifest, err := x.writeManifest(w, definition)
	if err != nil {
		return w.postponeLocal(ctx, causeCustody, err)
	}
	// Files, definition and manifest are durable. A crash before this commit
	// asks again and finds the same manifest.
	return w.commit(ctx, arrival.HeldWhole{Again: w.files, Manifest: manifest})
}

// definitionTries is how often a table definition is asked for in vain before
// an extract is held without it. Its records can be read by their names. If the
// service says that it has none, it is asked once.
const definitionTries = 3

// hasAllListedFiles reports whether the list, as it was asked for last, names
// no file that the arrival does not have.
func (w *work) hasAllListedFiles() bool {
	return !slices.ContainsFunc(w.files, func(f archive.ExtractFile) bool {
		return !slices.ContainsFunc(w.a.Files, func(had arrival.File) bool { return had.Name == f.Name })
	})
}

// writeManifest writes the definition and the manifest.
func (x *extracts) writeManifest(w *work, definition archive.TableDefinition) (archive.Digest, error) {
	h, err := x.cfg.Custody.Begin(w.extract())
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
	// A life before may have died between its manifest and the commit. That
	// manifest counts, with the definition of its day.
	if m, err := x.cfg.Custody.Find(w.a.Item); err == nil {
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
func (x *extracts) acknowledge(ctx context.Context, w *work) error {
	isRepeated := w.a.AcknowledgeIntents > 0
	return w.tell(ctx, arrival.AcknowledgeIntended{OnlyHandedOn: x.cfg.HandOn != nil},
		func(ctx context.Context) error { return x.cfg.Acknowledger.Acknowledge(ctx, w.a.Item, "held") },
		func(err *apicall.Error) bool { return isRepeated && x.wasAlreadyAcknowledged(w, err) },
		func(id archive.RequestID) arrival.Event { return arrival.AcknowledgementTaken{Request: id} })
}

// wasAlreadyAcknowledged reports whether a repeated acknowledgement shows that
// an earlier one was taken: the service does not know the number, and its last
// whole list leaves the extract out.
func (x *extracts) wasAlreadyAcknowledged(w *work, err *apicall.Error) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return err.Status == http.StatusNotFound && x.listed != nil && !x.listed[w.a.Item]
}

// extract is the extract as it was announced.
func (w *work) extract() archive.Extract {
	a := w.a
	return archive.Extract{ID: a.Item, Type: a.Type, Name: a.Name, Start: a.Start, End: a.End, Made: a.Made, Files: a.Count}
}
