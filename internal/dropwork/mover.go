package dropwork

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

var _ ingest.Mover = (*Mover)(nil)

// Mover moves claimed folders of ended entries to where they belong, with what people should read in them, for the engine.
type Mover struct{ *Handle }

// Destination implements ingest.Mover.
func (m *Mover) Destination(e ledger.Entry, now time.Time) (string, error) {
	f, done, err := m.HoldOpen()
	if err != nil {
		return "", err
	}
	defer done()
	kind := drop.Archived
	switch e.State {
	case ledger.Rejected:
		kind = drop.Rejected
	case ledger.Duplicate:
		kind = drop.Duplicates
	case ledger.Delivered:
		kind = drop.Delivered
	}
	dest, err := f.ProposeDestination(kind, e.Folder, now.In(m.shared.zone()))
	return dest, m.describeMountAt(e, err)
}

// Place implements ingest.Mover.
func (m *Mover) Place(ctx context.Context, e ledger.Entry, doc ledger.Document) error {
	f, done, err := m.HoldOpen()
	if err != nil {
		return err
	}
	defer done()
	differs, err := m.compareKeptFolder(ctx, f, e, doc)
	if err != nil {
		return m.describeMountAt(e, err)
	}
	notes, err := m.composeNotes(e, doc, differs)
	if err != nil {
		return err
	}
	// After a crash here the folder lies in its claim or at its place; the next start finds it in either, and does the rest.
	err = f.PlaceFolder(claimOf(e), e.Dest, notes...)
	if errors.Is(err, drop.ErrFolderLost) {
		err = m.placeByContent(ctx, f, e, doc, notes)
	}
	m.endOnSyncError(err)
	if err == nil && len(differs) > 0 {
		// After a crash here the folder is compared again where it lies by then.
		return &ingest.RefusedError{Cause: differencesCause(e.Route, differs)}
	}
	return m.describeMountAt(e, err)
}

// placeByContent places a folder that lies neither in its claim nor at its destination under the inode that was recorded.
//
// It may have come back from a backup under another one: then its content
// tells. If it is in neither place at all, it was placed before a crash and
// somebody took it away before the next start (or took it out of the claim by
// hand): nothing is left that could be moved. Of one that was to be kept that
// is a remark for a person; a rejected one is looked for by the probe, and a
// person has what came back as a duplicate.
func (m *Mover) placeByContent(ctx context.Context, f *drop.Folder, e ledger.Entry, doc ledger.Document, notes []drop.NoteFile) error {
	c, err := f.RecogniseFolder(ctx, claimOf(e), e.Dest, m.contentsOf(doc))
	switch {
	case err == nil:
		m.shared.Log.Warn("folder known again by its content: another inode, as after a backup was put back", "drop", m.Settings.Name, "key", e.Key)
		// After a crash here the next start knows the folder by its content again, in either place.
		return f.PlaceFolder(c, e.Dest, notes...)
	case errors.Is(err, drop.ErrFolderLost):
		m.shared.Log.Error("folder was placed and taken away, or taken out of its claim by hand; vaultd is done with it", "drop", m.Settings.Name, "key", e.Key, "state", e.State)
		if e.Source != ledger.Keeping {
			return nil
		}
		return &ingest.RefusedError{Cause: ledger.Cause{Code: ledger.CauseSourceMissing,
			Text: fmt.Sprintf("The folder was removed from .vaultd/claimed, or taken away from %q as soon as it was there", e.Dest)}}
	}
	return err
}

// claimOf is the claim of an entry.
func claimOf(e ledger.Entry) drop.ClaimedFolder {
	return drop.ClaimedFolder{Key: e.Key, Folder: e.Folder, Owner: e.Owner, Inode: drop.Inode(e.Node)}
}

// Dispose implements ingest.Mover.
func (m *Mover) Dispose(ctx context.Context, e ledger.Entry, doc ledger.Document) (string, error) {
	f, done, err := m.HoldOpen()
	if err != nil {
		return "", err
	}
	defer done()
	// After a crash here some files may be gone: the next start checks and removes the rest.
	to, err := f.DisposeFolder(ctx, claimOf(e), e.Dest, m.contentsOf(doc))
	m.endOnSyncError(err)
	// A mount goes before all else that is wrong: the folder may lie in its claim, where nobody finds it, and must be looked at again.
	if _, mount := errors.AsType[*durable.MountError](err); mount {
		return "", m.describeMountAt(e, err)
	}
	if stray, ok := errors.AsType[*drop.UnexpectedContentError](err); ok {
		return "", &ingest.RefusedError{Cause: differencesCause(e.Route, []drop.Difference{{Path: stray.Path, What: stray.What}})}
	}
	if errors.Is(err, drop.ErrFolderLost) {
		return "", &ingest.RefusedError{Cause: ledger.Cause{Code: ledger.CauseSourceMissing, Text: "somebody moved or removed the kept folder before it was due: " + err.Error()}}
	}
	return to, err
}

// compareKeptFolder compares a folder that is about to be kept with what was packed and archived: the receipt must be true
// for the folder in which it lies. Other folders are not compared.
func (m *Mover) compareKeptFolder(ctx context.Context, f *drop.Folder, e ledger.Entry, doc ledger.Document) ([]drop.Difference, error) {
	if e.Source != ledger.Keeping || len(doc.Files) == 0 { // found in the archive's index: nothing is known to compare with
		return nil, nil
	}
	return f.FindDifferences(ctx, claimOf(e), e.Dest, m.contentsOf(doc))
}

const namedDifferences = 5

// differencesCause says which files of a kept folder are not what was archived.
func differencesCause(r ledger.Route, differs []drop.Difference) ledger.Cause {
	text := present.WordsOf(r).Notes.Differs
	for i, d := range differs {
		if i == namedDifferences {
			// The digest makes the text another one if those change that it does not name.
			text += fmt.Sprintf(" and %d more (list %.8s);", len(differs)-i, archive.Sum(fmt.Append(nil, differs)))
			break
		}
		text += fmt.Sprintf(" %q %s;", d.Path, d.What)
	}
	return ledger.Cause{Code: ledger.CauseSourceChanged, Text: text + " the folder stays where it is kept, and is never removed by itself"}
}
