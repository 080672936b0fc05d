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
		for _, kind := range []drop.Kind{drop.Delivered, drop.Archived} {
			if err := p.readPlaced(ctx, d, kind); err != nil {
				return fmt.Errorf("look through %s of drop %s: %w", kind, d.Name, err)
			}
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

// openClaimedFolders opens an entry for every claimed folder that has none. It is in doubt, because it may have been sent.
func (p *comparison) openClaimedFolders(ctx context.Context, d Origin) error {
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

// hasClaimedFolder reports whether a claimed folder has this key. It also does so where that cannot be found out.
func (d Origin) hasClaimedFolder(k archive.Key) bool {
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
