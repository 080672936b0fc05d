package daemon

import (
	"context"
	"errors"
	"slices"

	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

// contents is what a folder may hold when it is disposed of, or known again by its content.
func (r *room) contents(doc ledger.Document) drop.Disposal {
	return drop.Disposal{Files: slices.Concat(doc.Files, doc.ControlFiles), Junk: doc.Junk, To: r.cfg.DisposeTo}
}

// placeFound places a folder that lies neither in its claim nor at its destination under the inode that was recorded.
//
// It may have come back from a backup under another one: then its content tells. Where it is in neither place at all,
// it was placed before a crash and somebody took it away before the next start (or took it out of the claim by hand):
// that is the end of it, for nothing is left that could be moved, and what is known about the document stays as it is.
func (r *room) placeFound(ctx context.Context, f *drop.Folder, e ledger.Entry, doc ledger.Document, notes []drop.NoteFile) error {
	c, err := f.RecogniseFolder(ctx, claimed(e), e.Dest, r.contents(doc))
	switch {
	case err == nil:
		r.d.cfg.Log.Warn("folder known again by its content: another inode, as after a backup was put back", "drop", r.cfg.Name, "key", e.Key)
		return f.PlaceFolder(c, e.Dest, notes...)
	case errors.Is(err, drop.ErrFolderLost):
		r.d.cfg.Log.Error("folder was placed and taken away, or taken out of its claim by hand; vaultd is done with it", "drop", r.cfg.Name, "key", e.Key, "state", e.State)
		return nil
	}
	return err
}
