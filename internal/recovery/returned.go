package recovery

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

// folderPlace is where an entry's folder lies, or the folder's inode.
type folderPlace struct {
	drop, dest string
	node       ledger.Node
}

// returnedFolders are the entries that returned folders belong to.
type returnedFolders struct {
	dest      map[folderPlace]bool        // where the folders lie, as the ledger knows it; true: an entry there was closed in doubt
	claims    map[folderPlace][]claim     // entries in doubt, by the inodes of their claimed folders
	returning map[folderPlace]archive.Key // entries in doubt, by the destination of a return that was not confirmed
}

type claim struct {
	key    archive.Key
	folder string
}

// findReturned collects where returned folders lie, as the ledger knows it. The folder of an entry in doubt may have been returned
// in the time that the ledger lost. Such a folder still belongs to that entry.
func (p *comparison) findReturned() (known returnedFolders, err error) {
	known = returnedFolders{map[folderPlace]bool{}, map[folderPlace][]claim{}, map[folderPlace]archive.Key{}}
	err = p.Book.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.Source == ledger.Returning || e.Source == ledger.Returned {
			at := folderPlace{drop: e.Drop, dest: e.Dest}
			known.dest[at] = known.dest[at] || e.InDoubt
		}
		if e.NeedsReconcile && (e.Source == ledger.Claimed || e.Source == ledger.Returning) {
			at := folderPlace{drop: e.Drop, node: e.Node}
			known.claims[at] = append(known.claims[at], claim{e.Key, e.Folder})
		}
		if e.NeedsReconcile && e.Source == ledger.Returning {
			known.returning[folderPlace{drop: e.Drop, dest: e.Dest}] = e.Key
		}
		return nil
	})
	return known, err
}

// findOwner finds the entry in doubt that a folder belongs to. The inode alone is not enough: the file system reuses the inode of
// a removed folder. So the name must fit, too.
func (s returnedFolders) findOwner(d Origin, l drop.PlacedFolder) (archive.Key, bool) {
	for _, c := range s.claims[folderPlace{drop: d.Name, node: ledger.Node(l.Inode)}] {
		if strings.HasPrefix(path.Base(l.Path), c.folder) {
			return c.key, true
		}
	}
	key, ok := s.returning[folderPlace{drop: d.Name, dest: l.Path}]
	return key, ok
}

// readReturned reads the folders of one kind that were returned to people. A folder that belongs to no entry is reported, or
// gets an entry. This happens only with Adopt: otherwise a running daemon may be returning the folder at this moment.
func (p *comparison) readReturned(ctx context.Context, d Origin, kind drop.Kind, known returnedFolders) error {
	for l, err := range d.Folder.PlacedFolders(kind) {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
			continue
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		key, ok := known.findOwner(d, l)
		isInDoubt, isKnown := known.dest[folderPlace{drop: d.Name, dest: l.Path}]
		if isKnown && !isInDoubt && kind == drop.Rejected && p.Adopt && !ok {
			// What was rejected there may have been taken again since, and closed in doubt then.
			text, err := d.readReason(l)
			if err != nil {
				return err
			}
			isKnown = !d.tellsOfDoubt(text)
		}
		switch {
		case ok:
			p.returnedTo[key] = l
		case !p.Adopt || isKnown:
		case kind == drop.Duplicates:
			p.report.Folders.Strange.add(Finding{Text: d.Name + "/" + l.Path + ": what it repeats is not known; it has no entry"})
		default:
			if err := p.openReturnedFolder(ctx, d, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// isFolderMissing reports whether the claimed folder of an entry is not in its place any more.
func (p *comparison) isFolderMissing(e ledger.Entry) bool {
	d, ok := p.dropOf(e)
	return e.Source == ledger.Gone || ok && !d.hasClaimedFolder(e.Key) // nobody can look into a drop that is not configured
}

// dropOf returns the drop of an entry; false: it is not configured any more.
func (p *comparison) dropOf(e ledger.Entry) (Origin, bool) {
	i := slices.IndexFunc(p.Drops, func(d Origin) bool { return d.Name == e.Drop })
	if i < 0 {
		return Origin{}, false
	}
	return p.Drops[i], true
}

// correctSource returns the events that tell an entry where its folder lies, if the ledger has it elsewhere. They come before the
// end of the doubt, in one change.
func (p *comparison) correctSource(e ledger.Entry) []ledger.Event {
	found := ledger.SourceFound{Source: ledger.Gone}
	switch kept, back := p.keptAt[e.Key], p.returnedTo[e.Key].Path; {
	case e.Source == ledger.Kept || e.Source == ledger.Returned || e.Source > ledger.Disposing:
		return p.quarantineIfOpen(e)
	case !p.isFolderMissing(e):
		// The folder is in its claimed place, so the step that is due goes on with it.
		return nil
	case kept != "" && e.State != ledger.Rejected && e.State != ledger.Duplicate:
		found = ledger.SourceFound{Source: ledger.Kept, Dest: kept}
	case back != "" && e.State != ledger.Archived && e.State != ledger.Delivered:
		found = ledger.SourceFound{Source: ledger.Returned, Dest: back}
	case e.Source == ledger.Disposing:
		// The removal had begun. The dispose step repeats it and finds that nothing is left to do.
		return nil
	}
	return append(p.quarantineIfOpen(e), found)
}

// quarantineIfOpen returns the event that quarantines an entry without a folder that has not ended. It did end, in the time that
// the ledger lost. Nothing of it can be sent, and a person must look.
func (p *comparison) quarantineIfOpen(e ledger.Entry) []ledger.Event {
	if !e.State.IsOpen() {
		return nil
	}
	if e.RestsOnReceipt() {
		return []ledger.Event{ledger.SentToQuarantine{Cause: ledger.Cause{Code: ledger.CauseByReceiptAlone, Text: "BY RECEIPT ALONE. That it is archived says the receipt in " + e.Dest +
			" alone, which has no signature of this ledger, and the archive does not have it under its clientUUID. Look who wrote that receipt; ask the provider whether the invoice is archived. Then close this entry; where it is not archived, drop it again."}}}
	}
	text := "Its folder is not here any more"
	if kept, back := p.keptAt[e.Key], p.returnedTo[e.Key].Path; kept != "" || back != "" {
		text = "Its folder lies in " + kept + back + " now"
	}
	return []ledger.Event{ledger.SentToQuarantine{Cause: ledger.Cause{Code: "ended-before", Text: text +
		": what became of it is in the time that the ledger lost. Look whether the invoice is archived, then close this entry; where it is not, drop it again."}}}
}
