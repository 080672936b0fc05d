package recovery

import (
	"context"
	"errors"
	"path"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

// folderPlace is where an entry's folder lies, or which one it was.
type folderPlace struct {
	drop, dest string
	node       ledger.Node
}

// returnedFolders are the entries that stand for folders which were given back.
type returnedFolders struct {
	dest      map[folderPlace]bool        // where the ledger thinks that they lie
	claims    map[folderPlace][]claim     // entries in doubt, by the folders that were claimed for them
	returning map[folderPlace]archive.Key // entries in doubt, by where their folders were on their way to
}

type claim struct {
	key    archive.Key
	folder string
}

// findReturned gathers where the ledger thinks that returned folders lie. An entry in doubt may have had its folder returned in
// the time that was lost: that one is known again, and it is that entry which stands for it.
func (p *comparison) findReturned() (known returnedFolders, err error) {
	known = returnedFolders{map[folderPlace]bool{}, map[folderPlace][]claim{}, map[folderPlace]archive.Key{}}
	err = p.Book.Entries(archive.Key{}, false, func(e ledger.Entry) error {
		if e.Source == ledger.Returning || e.Source == ledger.Returned {
			known.dest[folderPlace{drop: e.Drop, dest: e.Dest}] = true
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

// findOwner finds the entry in doubt whose folder this is: by its name too, for the number of a folder that was removed is soon
// another one's.
func (s returnedFolders) findOwner(d Drop, l drop.PlacedFolder) (archive.Key, bool) {
	for _, c := range s.claims[folderPlace{drop: d.Name, node: ledger.Node(l.Inode)}] {
		if strings.HasPrefix(path.Base(l.Path), c.folder) {
			return c.key, true
		}
	}
	key, ok := s.returning[folderPlace{drop: d.Name, dest: l.Path}]
	return key, ok
}

// readReturned looks at the folders of a kind that went back to people. Those that no entry stands for are told of, or get
// an entry, where nobody gives folders back at this moment.
func (p *comparison) readReturned(ctx context.Context, d Drop, kind drop.Kind, known returnedFolders) error {
	for l, err := range d.Folder.PlacedFolders(kind) {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
			continue
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		key, ok := known.findOwner(d, l)
		switch {
		case ok:
			p.returnedTo[key] = l.Path
		case !p.Adopt || known.dest[folderPlace{drop: d.Name, dest: l.Path}]:
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

// isFolderMissing reports whether the folder of an entry that has not ended lies no more where it was claimed.
func (p *comparison) isFolderMissing(e ledger.Entry) bool {
	if e.Source == ledger.Gone {
		return true
	}
	for _, d := range p.Drops {
		if d.Name == e.Drop {
			return !d.hasClaimedFolder(e.Key)
		}
	}
	return false // nobody can look
}

// correctSource tells an entry that the archive has spoken for where its folder lies, if that is not where the ledger thinks.
func (p *comparison) correctSource(e ledger.Entry) []ledger.Event {
	found := ledger.SourceFound{Source: ledger.Gone}
	switch kept, back := p.keptAt[e.Key], p.returnedTo[e.Key]; {
	case e.Source == ledger.Kept || e.Source == ledger.Returned || e.Source > ledger.Disposing:
		return p.quarantineIfOpen(e)
	case e.State == ledger.Delivered || !p.isFolderMissing(e):
		return nil // the step that it is due for knows what to do
	case kept != "" && e.State != ledger.Rejected && e.State != ledger.Duplicate:
		found = ledger.SourceFound{Source: ledger.Kept, Dest: kept}
	case back != "" && e.State != ledger.Archived:
		found = ledger.SourceFound{Source: ledger.Returned, Dest: back}
	case e.Source == ledger.Disposing:
		return nil // it goes on
	}
	return append(p.quarantineIfOpen(e), found)
}

// quarantineIfOpen is what comes first where an entry without a folder has not ended: what ended it is in the lost part of its
// life, nothing of it can be sent, and a person must look.
func (p *comparison) quarantineIfOpen(e ledger.Entry) []ledger.Event {
	if !e.State.IsOpen() {
		return nil
	}
	text := "Its folder is not here any more"
	if kept, back := p.keptAt[e.Key], p.returnedTo[e.Key]; kept != "" || back != "" {
		text = "Its folder lies in " + kept + back + " now"
	}
	return []ledger.Event{ledger.SentToQuarantine{Cause: ledger.Cause{Code: "ended-before", Text: text +
		": what became of it is in the time that the ledger lost. Look whether the invoice is archived, then close this entry; where it is not, drop it again."}}}
}
