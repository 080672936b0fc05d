package recovery

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

// unsignedPass is the first pass for folders whose note is unsigned. Those
// before it are for later generations, which are fewer.
const unsignedPass = 1000

// passOf is the pass in which the folder is read. Signed notes whose files are
// those that they list, and the first generation of each document, come first:
// a copy of a note in another folder, or a forged one, leaves their number and
// identity to them, and the entry of a document has the identity of its folder.
func (ev *evidence) passOf() int {
	pass := int(ev.event.Generation)
	if ev.differs != "" {
		pass++
	}
	if ev.unsigned != "" {
		pass += unsignedPass
	}
	return pass
}

// readPlaced reads the archived or the delivered folders of a drop. A folder
// that the ledger does not know gets an entry by its note, and an entry that is
// not packed yet learns from a note what was packed.
func (p *comparison) readPlaced(ctx context.Context, d Origin, kind drop.Kind) error {
	later := map[drop.Inode]int{} // the passes of those that are not read yet
	for pass := 0; ; {
		for l, err := range d.Folder.PlacedFolders(kind) {
			switch {
			case errors.Is(err, drop.ErrUnexpectedItem):
				if pass == 0 {
					p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
				}
				continue
			case err == nil && pass > 0 && later[l.Inode] != pass:
				continue
			case err == nil:
				var is int
				if is, err = p.readPlacedFolder(ctx, d, l, kind, pass); is > pass {
					later[l.Inode] = is // and nothing of the others, which may be ten million
				}
			}
			if err = errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
		// The next pass finds in the ledger what this one opened. A crash here
		// leaves the rest for the next comparison.
		maps.DeleteFunc(later, func(_ drop.Inode, is int) bool { return is <= pass })
		if err := p.commitChanges(ctx); err != nil || len(later) == 0 {
			return err
		}
		pass = slices.Min(slices.Collect(maps.Values(later)))
	}
}

// readPlacedFolder reads one folder. It returns the pass that the folder is read in.
func (p *comparison) readPlacedFolder(ctx context.Context, d Origin, l drop.PlacedFolder, kind drop.Kind, pass int) (is int, err error) {
	ev, err := p.readEvidence(ctx, d, l, kind, pass)
	switch {
	case errors.Is(err, fs.ErrNotExist): // somebody took the folder away in the meantime
		return 0, nil
	case isBadReceipt(err):
		p.report.Folders.Unbelieved.add(Finding{Text: d.Name + "/" + l.Path + ": " + err.Error()})
		return 0, nil
	case err != nil || ev.passOf() > pass:
		return ev.passOf(), err
	}
	if ev.differs != "" {
		p.report.Folders.Differ.add(ev.finding(ev.key, ": "+ev.differs))
	}
	e, known, err := p.Book.Entry(ev.key)
	switch {
	case err != nil:
		return 0, err
	case !known:
		return 0, p.openPlaced(ctx, d, ev)
	case e.NeedsReconcile:
		return 0, p.notePlaced(ctx, d, ev, e)
	}
	return 0, nil
}

// finding is what is reported of the folder.
func (ev *evidence) finding(k archive.Key, text string) Finding {
	return Finding{Key: k, Remote: ev.remote, Number: ev.number, Text: ev.event.Drop + "/" + ev.event.Dest + text}
}

// notePlaced notes that the folder of an unconfirmed entry was kept, by its note.
func (p *comparison) notePlaced(ctx context.Context, d Origin, ev evidence, e ledger.Entry) error {
	_, ours := e.GenerationOf(ev.event.ID)
	at := cmp.Or(p.keptAt[e.Key], e.Dest)
	switch {
	case !e.ID.IsZero() && !ours:
		p.report.Folders.Unbelieved.add(ev.finding(e.Key, ": its "+ev.note+" bears the key of another document's entry"))
		return nil
	case e.Drop == d.Name && at != "" && at != ev.event.Dest && e.Source != ledger.Claimed && (ev.unsigned != "" || ev.differs != "" || p.keptAt[e.Key] != ""):
		p.report.Folders.Unbelieved.add(ev.finding(e.Key, ": its "+ev.note+" is a copy of the one in "+at))
		return nil
	}
	p.keptAt[e.Key] = ev.event.Dest
	// The restored ledger knows the folder as claimed only. Its note proves
	// that it was packed since, and as what. A later generation of an identity
	// does not tell which others the entry had.
	isUnpacked := e.State == ledger.Discovered || e.IsUnidentified() && ev.unsigned == "" && ev.event.Generation == 0
	if !isUnpacked || d.hasClaimedFolder(e.Key) {
		return nil
	}
	is, err := p.admitIdentity(ctx, e, ev.sealed(), ev.doc)
	if err != nil || is == nil {
		return err
	}
	p.report.Folders.Receipts.add(ev.finding(e.Key, ""))
	// The entry is still in doubt. After a crash before the commit the next
	// comparison reads the note again.
	return p.addIdentified(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Document: &is.doc, Events: []ledger.Event{is.sealed}}, is.first)
}

// sealed returns what the note says that was packed.
func (ev *evidence) sealed() ledger.Sealed {
	r := ev.event
	return ledger.Sealed{ID: r.ID, IDFromSidecar: ev.hasChosenID, Content: r.Content, Metadata: r.Metadata, Package: r.Package, Seal: r.Seal, Number: r.Number, StrangeDate: r.StrangeDate, LooksCutOff: r.LooksCutOff}
}

// openPlaced opens an entry for a folder that the ledger does not know. It is
// in doubt until the archive confirms a receipt.
func (p *comparison) openPlaced(ctx context.Context, d Origin, ev evidence) error {
	if p.hasPendingChange(ev.key, archive.Receipt{ID: ev.event.ID, Remote: ev.remote}) {
		if err := p.commitChanges(ctx); err != nil {
			return err
		}
	}
	r := &ev.event
	var first *ledger.Entry
	by, taken, err := p.Book.FindByRemote(ev.remote)
	if err == nil && !taken {
		by, taken, err = p.Book.FindByID(r.ID)
	}
	if err == nil && taken && r.State == ledger.Delivered {
		// A rejected document may have been dropped again, and delivered then:
		// the note is the later word.
		var admitted bool
		if first, admitted, err = p.findPredecessor(ctx, ev.sealed(), d.Route, d.Vault); admitted && first != nil {
			taken, r.Supersedes = false, first.Key
		}
	}
	if err == nil && !taken && r.Generation > 0 {
		// If an earlier generation has an entry of its own, this one begins
		// with its own identity, as when it was dropped again.
		var before bool
		if _, before, err = p.Book.FindByID(r.FirstID); before {
			r.FirstID, r.Generation = archive.ID{}, 0
		}
	}
	if err != nil {
		return err
	}
	if taken || ev.unsigned != "" && d.hasClaimedFolder(ev.key) {
		// One registration has one entry. A copied folder or a forged note must
		// not get a second one.
		p.report.Folders.Unbelieved.add(ev.finding(by, ": what its "+ev.note+" names belongs to another entry"))
		return nil
	}
	found := &p.report.Folders.Receipts
	if ev.unsigned != "" {
		found = &p.report.Folders.Alone
	}
	found.add(ev.finding(ev.key, ""))
	// Entry and document are one change. After a crash before its commit the
	// next comparison reads the note again, which bears the key.
	return p.addIdentified(ctx, ledger.Change{Key: ev.key, Document: &ev.doc, Events: []ledger.Event{*r}}, first)
}
