package receive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// doubtfulFile is a file that looked wrong when it was fetched, how often in a row it came with the same bytes, and since when, on the clock of the
// boot. A restart forgets it, and begins anew.
type doubtfulFile struct {
	file  string
	sum   archive.Digest
	since time.Duration
	times int
}

// A file that looks wrong is taken as it is once it came with the same bytes for so long and so often: a machine may sleep between two fetches, and a
// person may ask for many at once. Assumption: what is wrong on the way does not bring the same bytes for so long. A page in the place of a file may
// be that of a proxy, which says the same until somebody mends it.
const (
	sameUntilWhole   = 30 * time.Minute // for a file that looks cut off
	sameUntilNoError = 24 * time.Hour   // for one that looks like an answer of somebody else
	leastFetches     = 6
)

// cameOftenEnough reports whether a file of the document has come with the same bytes so often, and for so long.
func (w *work) cameOftenEnough(file string, sum archive.Digest, atLeast time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, had := w.now().Boot, w.doubtful[w.a.Document()]
	if had.file != file || had.sum != sum {
		had = doubtfulFile{file: file, sum: sum, since: now}
	}
	had.times++
	w.doubtful[w.a.Document()] = had
	return had.times >= leastFetches && now-had.since >= atLeast
}

// forgetDoubtful forgets the file of the document that looked wrong: one is taken.
func (w *work) forgetDoubtful() {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.doubtful, w.a.Document())
}

// mayTakeFile reports whether a file that is kept here is taken for what the network has. One that looks like a part of a file, or like an answer of
// somebody else, is only where it came again and again for a while, and the network itself answers. Where it is not, that was committed.
func (w *work) mayTakeFile(ctx context.Context, id string, kept archive.File) (bool, error) {
	file, err := w.openKept(kept.Path)
	if err != nil {
		return false, w.postponeLocal(ctx, CauseFolder, err)
	}
	w.checking.Lock()
	doubt := archive.CheckForm(file, kept.Size)
	w.checking.Unlock()
	file.Close() // read-only
	atLeast, told := sameUntilWhole, "half an hour"
	switch {
	case doubt == nil:
		return true, nil
	case errors.Is(doubt, archive.ErrInItsPlace):
		atLeast, told = sameUntilNoError, "a day"
	case !errors.Is(doubt, archive.ErrCutOff):
		return false, w.postponeLocal(ctx, CauseFolder, doubt)
	}
	if !w.cameOftenEnough(id, kept.SHA256, atLeast) {
		// The file stays under its name, and no line tells of it: after a crash the next fetch replaces it.
		return false, w.postpone(ctx, ledger.Cause{Code: CauseDoubt, Text: fmt.Sprintf("File %s: %v. It is fetched again, and taken as it is where the same bytes come for %s without a restart.", id, doubt, told)})
	}
	// A GET, which changes nothing at the network. A proxy that answers everything with a page does not answer it.
	if _, _, err := w.cfg.Service.FetchDocument(ctx, w.kind(), w.a.Document()); err != nil {
		return false, w.postponeAfterFault(ctx, "fetch a document", err)
	}
	w.cfg.Log.Warn("a file of a received document looks wrong, but has come like this for long; it is taken as it is", "document", w.a.Item, "file", id, "why", doubt.Error())
	return true, nil
}
