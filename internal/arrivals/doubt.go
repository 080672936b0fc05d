package arrivals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// A file that looks wrong is taken as it is once it came with the same bytes
// for so long and so often: a person may ask for many fetches at once.
// Assumption: what is wrong on the way does not bring the same bytes for so
// long. A page in the place of a file may be that of a proxy, which says the
// same until somebody mends it.
const (
	sameUntilWhole   = 30 * time.Minute // for a file that looks cut off
	sameUntilNoError = 24 * time.Hour   // for one that looks like an answer of somebody else
	leastFetches     = 6
)

// isBelieved reports whether bytes that look wrong came so often, and for so
// long, or whether a person takes them as they are.
func isBelieved(d arrival.Doubt, atLeast time.Duration) bool {
	return d.Overruled || d.Times >= leastFetches && d.For >= atLeast
}

// findWrong says what looks wrong about a file that was fetched, and for how
// long the same bytes have to come until it is taken all the same.
func (r *received) findWrong(w *work, f fetched) (wrong error, atLeast time.Duration, err error) {
	if f.isWrapped {
		return archive.ErrCutOff, sameUntilWhole, nil
	}
	file, err := r.cfg.Custody.Open(w.a.Key, f.kept.Path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close() // read-only
	r.checking.Lock()
	defer r.checking.Unlock()
	switch wrong := archive.CheckForm(file, f.kept.Size, f.told.IsPage); {
	case errors.Is(wrong, archive.ErrInItsPlace):
		return wrong, sameUntilNoError, nil
	case errors.Is(wrong, archive.ErrCutOff):
		return wrong, sameUntilWhole, nil
	default:
		return nil, 0, wrong
	}
}

// takeFetched commits that a file is held that was fetched and kept here. A
// file that looks like a part of one, or like an answer of somebody else, is
// held only where it came again and again for a while, or where a person takes
// it, and the network itself answers; else it is fetched again.
func (r *received) takeFetched(ctx context.Context, w *work, f fetched) error {
	id, kept := f.id, f.kept
	held := arrival.FileHeld{File: id, Stored: kept.Path, Size: kept.Size, SHA256: kept.SHA256, Told: f.told, Request: f.request}
	wrong, atLeast, err := r.findWrong(w, f)
	if err != nil {
		return w.postponeLocal(ctx, CauseFolder, err)
	}
	if wrong == nil {
		w.noteAnswer()
		return w.commit(ctx, held)
	}
	now := w.now().Wall
	again := arrival.FileDoubted{File: id, Stored: kept.Path, SHA256: kept.SHA256, Told: f.told, Why: wrong.Error(), Until: now.Add(arrival.DelayAfter(int(w.a.Attempt))),
		Cause: ledger.Cause{Code: CauseDoubt, Text: fmt.Sprintf("File %s: %v. It is fetched again, and taken as it is where the same bytes come for %s.", id, wrong, describeLeast(atLeast))}}
	if !isBelieved(w.a.Files[placeOf(w.a.Files, id)].Doubt.After(again, now), atLeast) {
		w.logWait(again.Cause)
		// The file stays under its name, for a person to look at. It is not
		// held: the next fetch replaces it.
		return w.commit(ctx, again)
	}
	// A GET, which changes nothing at the network. A proxy that answers
	// everything with a page does not answer it.
	if _, _, err := r.cfg.Service.FetchDocument(ctx, w.networkKind(), w.a.Document()); err != nil {
		return w.postponeAfterFault(ctx, "fetch a document", err)
	}
	w.noteAnswer()
	w.Log.Warn("a file of a received document looks wrong, but has come like this for long, or a person takes it; it is taken as it is", "document", w.a.Item, "file", id, "why", wrong.Error())
	return w.commit(ctx, again, held)
}

// takeKept commits that a file is held that a person takes as it is, where it
// still lies here with the bytes that the person means; isTaken is false where
// it does not, and it is fetched again.
func (r *received) takeKept(ctx context.Context, w *work, id string) (isTaken bool, err error) {
	f, ok := w.a.FindDoubted()
	if !ok || f.Name != id || !f.Doubt.Overruled {
		return false, nil
	}
	sum, size, err := r.cfg.Custody.Digest(w.a.Key, f.Doubt.Stored)
	if err != nil || sum != f.Doubt.SHA256 {
		return false, nil // it is fetched again, and a fault of the disk is told then
	}
	w.Log.Warn("a file of a received document looks wrong; it is taken as it is, because a person decided so", "document", w.a.Item, "file", id, "why", f.Doubt.Why)
	// The file is durable under its name. A crash before this commit finds it
	// there again.
	return true, w.commit(ctx, arrival.FileHeld{File: id, Stored: f.Doubt.Stored, Size: size, SHA256: sum})
}

func describeLeast(d time.Duration) string {
	if d == sameUntilNoError {
		return "a day"
	}
	return "half an hour"
}
