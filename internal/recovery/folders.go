package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

// readFolders reads what lies in the drop folders. An archived or delivered folder that the ledger does not know gets an entry by its receipt,
// and an entry that is not packed yet learns from a receipt what was packed.
func (p *comparison) readFolders(ctx context.Context) error {
	known, err := p.findReturned()
	if err != nil {
		return err
	}
	for _, d := range p.Drops {
		if d.Folder == nil {
			continue
		}
		if err := p.readDelivered(ctx, d); err != nil {
			return err
		}
		if err := p.readArchived(ctx, d); err != nil {
			return fmt.Errorf("look through the archived folders of drop %s: %w", d.Name, err)
		}
		// The archived folders came first: a receipt may already have opened the entry of a claimed folder.
		if err := p.openClaimedFolders(ctx, d); err != nil {
			return fmt.Errorf("look through the claimed folders of drop %s: %w", d.Name, err)
		}
		for _, kind := range []drop.Kind{drop.Rejected, drop.Duplicates} {
			if err := p.readReturned(ctx, d, kind, known); err != nil {
				return fmt.Errorf("look through %s of drop %s: %w", kind, d.Name, err)
			}
		}
	}
	return p.commitChanges(ctx)
}

// readArchived reads the archived folders of a drop. Those whose receipt is
// signed, and whose files are those that it lists, come first: a copy of the
// receipt in another folder, or a forged one, leaves their number and identity
// to them. The rest is read in a second pass.
func (p *comparison) readArchived(ctx context.Context, d Drop) error {
	p.later = map[drop.Inode]bool{}
	for p.first = true; ; p.first = false {
		for l, err := range d.Folder.PlacedFolders(drop.Archived) {
			if errors.Is(err, drop.ErrUnexpectedItem) {
				if p.first {
					p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
				}
				continue
			}
			if err == nil && (p.first || p.later[l.Inode]) {
				err = p.readArchivedFolder(ctx, d, l)
			}
			if err != nil {
				return err
			}
		}
		// The second pass finds in the ledger what the first one opened. A crash
		// here leaves the rest for the next comparison.
		if err := p.commitChanges(ctx); err != nil || !p.first || len(p.later) == 0 {
			return err
		}
	}
}

// openClaimedFolders opens an entry for every claimed folder that has none. It is in doubt, because it may have been sent.
func (p *comparison) openClaimedFolders(ctx context.Context, d Drop) error {
	if !p.Adopt {
		return nil
	}
	for c, err := range d.Folder.AllClaims() {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
			continue
		}
		if err != nil {
			return err
		}
		_, known, err := p.Book.Entry(c.Key)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if known {
			continue
		}
		// What an interrupted removal left of an archived folder must not be sent as a new invoice.
		remains, err := d.CheckInterruptedDisposal(ctx, c.Key, p.Environment)
		if err != nil {
			return err
		}
		p.report.Folders.Claimed.add(Finding{Key: c.Key, Text: d.Name + "/" + c.Folder})
		// Entry and doubt are one change: no commit leaves the entry without the doubt, and the engine sends nothing in doubt.
		// After a crash before the commit, the next start adopts the folder under the same key.
		err = p.addChange(ctx, ledger.Change{Key: c.Key, Events: append([]ledger.Event{ledger.ClaimedFolder{
			Route: cmp.Or(d.Route, ledger.Vault), Vault: d.Vault, Drop: d.Name, Folder: c.Folder, Owner: c.Owner, Node: ledger.Node(c.Inode), NotBefore: p.Now().Wall,
		}, ledger.ReconcileRequired{}}, remains...)})
		if err != nil {
			return err
		}
	}
	return nil
}

// readArchivedFolder reads one archived folder and its receipt, in the pass whose turn it is.
func (p *comparison) readArchivedFolder(ctx context.Context, d Drop, l drop.PlacedFolder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ev, isForNow, err := p.readEvidence(ctx, d, l)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Somebody took the folder away in the meantime.
		return nil
	case err != nil && !isBadReceipt(err):
		return err
	case err != nil:
		p.report.Folders.Unbelieved.add(Finding{Text: d.Name + "/" + l.Path + ": " + err.Error()})
		return nil
	case !isForNow:
		return nil
	}
	if ev.differs != "" {
		p.report.Folders.Differ.add(Finding{Key: ev.key, Remote: ev.receipt.BumID, Number: ev.receipt.DocumentID, Text: d.Name + "/" + l.Path + ": " + ev.differs})
	}
	e, ok, err := p.Book.Entry(ev.key)
	switch {
	case err != nil:
		return err
	case !ok:
		return p.openArchivedFolder(ctx, d, l, ev)
	case !e.NeedsReconcile:
		return nil
	}
	return p.placeArchivedFolder(ctx, d, l, ev, e)
}

// placeArchivedFolder notes that the folder of an unconfirmed entry was kept,
// by its receipt.
func (p *comparison) placeArchivedFolder(ctx context.Context, d Drop, l drop.PlacedFolder, ev evidence, e ledger.Entry) error {
	place := d.Name + "/" + l.Path
	_, ours := e.GenerationOf(ev.sealed.ID)
	at := cmp.Or(p.keptAt[e.Key], e.Dest)
	switch {
	case !e.ID.IsZero() && !ours:
		p.report.Folders.Unbelieved.add(Finding{Key: e.Key, Remote: ev.receipt.BumID, Text: place + ": its receipt bears the key of another document's entry"})
		return nil
	case e.Drop == d.Name && at != "" && at != l.Path && e.Source != ledger.Claimed && (ev.unsigned != "" || ev.differs != "" || p.keptAt[e.Key] != ""):
		p.report.Folders.Unbelieved.add(Finding{Key: e.Key, Remote: ev.receipt.BumID, Text: place + ": its receipt is a copy of the one in " + at})
		return nil
	}
	p.keptAt[e.Key] = l.Path
	if e.State != ledger.Discovered || d.hasClaimedFolder(e.Key) {
		return nil
	}
	// The restored ledger knows the folder as claimed only. Its receipt proves that it was packed since, and as what.
	if _, taken, err := p.Book.FindByID(ev.sealed.ID); err != nil || taken {
		return err
	}
	p.report.Folders.Receipts.add(Finding{Key: e.Key, Remote: ev.receipt.BumID, Number: ev.receipt.DocumentID, Text: place})
	return p.addChange(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Document: &ev.doc, Events: []ledger.Event{ev.sealed}})
}

// openArchivedFolder opens an entry for an archived folder that the ledger does not know. The entry is in doubt until the archive
// confirms the receipt.
func (p *comparison) openArchivedFolder(ctx context.Context, d Drop, l drop.PlacedFolder, ev evidence) error {
	by, taken, err := p.Book.FindByRemote(ev.receipt.BumID)
	if err == nil && !taken {
		by, taken, err = p.Book.FindByID(ev.sealed.ID)
	}
	if err != nil {
		return err
	}
	if taken || ev.unsigned != "" && d.hasClaimedFolder(ev.key) {
		// One registration has one entry. A copied folder or a forged receipt must not get a second one.
		p.report.Folders.Unbelieved.add(Finding{Key: by, Remote: ev.receipt.BumID, Text: d.Name + "/" + l.Path + ": what its receipt names belongs to another entry"})
		return nil
	}
	found := &p.report.Folders.Receipts
	if ev.unsigned != "" {
		found = &p.report.Folders.Alone
	}
	found.add(Finding{Key: ev.key, Remote: ev.receipt.BumID, Number: ev.receipt.DocumentID, Text: d.Name + "/" + l.Path})
	return p.addChange(ctx, ledger.Change{Key: ev.key, Document: &ev.doc, Events: []ledger.Event{ev.recoveredEvent(d, l)}})
}

func isBadReceipt(err error) bool {
	_, is := errors.AsType[*badReceiptError](err)
	return is
}

// hasClaimedFolder reports whether a claimed folder has this key. It also does so where that cannot be found out.
func (d Drop) hasClaimedFolder(k archive.Key) bool {
	if d.Folder == nil {
		return true
	}
	dir, _, err := d.Folder.OpenClaimed(k)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	dir.Close() // read-only
	return true
}
