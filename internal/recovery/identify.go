package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

// If the service cannot be asked, what may be delivered is recognised by its
// bytes alone when somebody drops it again. So an entry that the ledger knows
// without them is given its identity, from the file or the folder where that
// lies now.

// identifyClosedInDoubt gives the entry of a file that a person closed in doubt its doubt and its identity back. The service may have the file
// and cannot be asked, so whoever drops it again must get it back. It returns the document of the file, and the rejection whose identity it takes
// over; nil: the file is not there any more, or another entry keeps its identity.
func (p *comparison) identifyClosedInDoubt(ctx context.Context, d Origin, l drop.PlacedFolder, ev *ledger.Recovered) (doc *ledger.Document, first *ledger.Entry, err error) {
	ev.InDoubt = true
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	if err != nil {
		return nil, nil, nil // the folder was taken away, or something is mounted on it
	}
	defer dir.Close() // read-only
	sealed, found, err := d.asSentOnce().identifyContent(ctx, dir, l.Owner)
	if _, unreadable := explainUnreadable(err); unreadable {
		return nil, nil, nil // nobody can send it as it lies there; put right, it is another document
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read what was closed in doubt: %w", err) // it is tried again with the next comparison
	}
	first, admitted, err := p.findPredecessor(ctx, sealed, d.Route, d.Vault)
	if err != nil || !admitted {
		return nil, nil, err
	}
	if first != nil {
		ev.Supersedes = first.Key
	}
	ev.ID, ev.Content, ev.Metadata, ev.Number, ev.Package, ev.Seal = sealed.ID, sealed.Content, sealed.Metadata, sealed.Number, sealed.Package, sealed.Seal
	return &found, first, nil
}

// identification is what an entry learns of its document.
type identification struct {
	sealed ledger.Sealed
	doc    ledger.Document
	after  ledger.Entry  // the entry, once it knows
	first  *ledger.Entry // the rejection whose identity it takes over; may be nil
}

// identifyUnpacked finds out what the folder of an entry holds that was never packed, as far as this ledger knows. nil: the folder is gone, vaultd
// would refuse it as it lies there, or another entry stands for the same document when it is dropped again. Its error is an *unreadError where the
// folder cannot be read now.
func (p *comparison) identifyUnpacked(ctx context.Context, e ledger.Entry) (*identification, error) {
	if !e.IsUnidentified() {
		return nil, nil
	}
	d, ok := p.dropOf(e)
	if !ok || d.Route != e.Route {
		return nil, &unreadError{error: fmt.Errorf("drop %s is not configured any more", e.Drop), hasNoDrop: true}
	}
	dir, err := d.openUnpacked(e, p.returnedTo[e.Key])
	if dir == nil || err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	sealed, doc, err := d.identifyTaken(ctx, dir, e, p.Environment)
	_, isRefused := errors.AsType[*packager.Refusal](err)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case isRefused, errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &unreadError{error: err}
	}
	return p.admitIdentity(ctx, e, sealed, doc)
}

// unreadError says that a folder cannot be read now. It may be readable later, and its entry stays in doubt until then.
type unreadError struct {
	error
	hasNoDrop bool // nobody can drop the same there, and perhaps nobody ever will
}

// openUnpacked opens the folder of an entry where it lies: as claimed, or where it was returned to in the time that the ledger lost. nil: it is gone.
func (d Origin) openUnpacked(e ledger.Entry, returned drop.PlacedFolder) (*durable.Dir, error) {
	if d.Folder == nil {
		return nil, &unreadError{error: errors.New("its drop folder is away")}
	}
	dir, _, err := d.Folder.OpenClaimed(e.Key)
	if errors.Is(err, fs.ErrNotExist) && returned.Path != "" {
		dir, err = d.Folder.OpenPlaced(returned.Path, returned.Inode)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &unreadError{error: err}
	}
	return dir, nil
}

// addIdentified adds a change that gives an entry its identity. The rejection that had it before is resolved by that, so that nobody retries it
// unflagged. After a crash between the two changes it is not resolved, and its retry ends at the identity, which it has not any more.
func (p *comparison) addIdentified(ctx context.Context, c ledger.Change, first *ledger.Entry) error {
	err := p.addChange(ctx, c)
	if err == nil && first != nil && first.State == ledger.Rejected && !first.Resolved {
		err = p.addChange(ctx, ledger.Change{Key: first.Key, Rev: first.Rev, Events: []ledger.Event{ledger.Superseded{By: c.Key}}})
	}
	return err
}

// admitIdentity completes what an entry is to be told of its document by what the ledger knows of other entries. nil: another entry keeps the
// identity.
func (p *comparison) admitIdentity(ctx context.Context, e ledger.Entry, s ledger.Sealed, doc ledger.Document) (*identification, error) {
	first, admitted, err := p.findPredecessor(ctx, s, e.Route, e.Vault)
	if err != nil || !admitted {
		return nil, err
	}
	if first != nil {
		s.Supersedes = first.Key
	}
	// The ledger looks once more when it commits, and refuses an event that does not name the entries that it finds.
	twin, known, err := p.entryOf(p.Book.FindByContent(s.Content))
	if err != nil {
		return nil, err
	}
	if known && twin.State != ledger.Rejected && twin.ID != s.ID {
		s.SameContent = twin.Key
	}
	after, err := ledger.Transition(e, s, p.Now())
	if err != nil {
		return nil, err
	}
	s.SameNumber, _, err = p.Book.FindSameNumber(after)
	return &identification{s, doc, after, first}, err
}

// findPredecessor returns the rejected entry that has the identity of a document and gives it up; nil: no entry has it. It returns false where the
// entry that has it keeps it.
func (p *comparison) findPredecessor(ctx context.Context, s ledger.Sealed, r ledger.Route, v archive.VaultID) (first *ledger.Entry, admitted bool, err error) {
	if err := p.commitChanges(ctx); err != nil { // one of them may be of the same document, and the look-up must see it
		return nil, false, err
	}
	e, taken, err := p.entryOf(p.Book.FindByID(s.ID))
	switch {
	case err != nil || !taken:
		return nil, err == nil, err
	// A number of ours under which something was sent is used up, and the
	// service itself refuses it.
	case ledger.CompareIdentity(e, s, r, string(v)) != ledger.Proceed || e.OwnNumber() != "" && len(e.Registrations) > 0:
		return nil, false, nil
	}
	return &e, true, nil
}

// entryOf returns the entry that a look-up found.
func (p *comparison) entryOf(key archive.Key, found bool, err error) (ledger.Entry, bool, error) {
	if err != nil || !found {
		return ledger.Entry{}, false, err
	}
	return p.Book.Entry(key)
}

// asSentOnce returns the drop with rules by which what was sent once is read: it is not judged by what a document may hold today.
func (d Origin) asSentOnce() Origin {
	d.PDF.MaxSize = 0
	d.Network = d.networkRules()
	d.Rules = d.Network.Rules
	return d
}

// identifyTaken is identifyContent for the folder of an entry. If its delivery
// note lies in it, because vaultd died before it moved the folder, that tells
// what was delivered.
func (d Origin) identifyTaken(ctx context.Context, dir *durable.Dir, e ledger.Entry, environment string) (ledger.Sealed, ledger.Document, error) {
	ev, err := d.readNote(dir, drop.Delivered, environment, nil)
	if err == nil {
		err = d.form().compareFiles(ctx, d, dir, &ev)
	}
	switch {
	case err == nil && ev.key == e.Key && ev.event.Generation == 0:
		return ev.sealed(), ev.doc, nil
	case err != nil && !isBadReceipt(err):
		return ledger.Sealed{}, ev.doc, err
	}
	return d.identifyContent(ctx, dir, e.Owner)
}

// identifyContent returns the identity of what lies in a folder of that owner, in
// a drop whose service cannot be asked, and its document. Its errors are those of
// the packager.
func (d Origin) identifyContent(ctx context.Context, dir *durable.Dir, owner uint32) (s ledger.Sealed, doc ledger.Document, err error) {
	s, doc, err = d.form().identify(ctx, d, dir)
	doc.FileOwners = ledger.OtherOwners(doc.FileOwners, owner)
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	s.Seal = doc.Seal(s.Package)
	return s, doc, err
}

// identifyPDF is identifyContent for a single PDF.
func (d Origin) identifyPDF(ctx context.Context, dir *durable.Dir) (s ledger.Sealed, doc ledger.Document, err error) {
	is, err := packager.ValidatePDFFolder(ctx, dir.Root(), d.PDF)
	s.ID, s.Content, s.Metadata, s.Package = is.ID, is.Content, is.MetadataDigest, is.Package
	doc.Metadata, doc.Files, doc.Junk, doc.FileOwners = is.Metadata, is.Files, is.Junk, is.Owners
	return s, doc, err
}

// identifyDocument is identifyContent for a folder of the business network. The ZIP is not made, so the package has the size and the digest of nothing
// but the document: no ZIP in the spool passes for it, and one is made before anything is sent.
func (d Origin) identifyDocument(ctx context.Context, dir *durable.Dir) (s ledger.Sealed, doc ledger.Document, err error) {
	rules := d.Network
	rules.Rules = d.Rules
	if typeFiles := rules.TypeFiles; typeFiles != nil { // that nobody knows the picture of the document refuses none that was taken once
		rules.TypeFiles = func(document []byte, folder string, names []string) ([]archive.FileType, []packager.DocumentFault) {
			types, _ := typeFiles(document, folder, names)
			return types, nil
		}
	}
	n, err := packager.ValidateNetwork(ctx, dir.Root(), rules)
	if err != nil {
		return s, doc, err
	}
	doc = ledger.Document{Metadata: n.Metadata, Files: n.Files, ControlFiles: n.Others, Junk: n.Junk, FileOwners: n.Owners}
	s.ID, s.Content, s.Metadata, s.Number = n.ID, n.Content, n.MetadataDigest, n.Number
	s.Package = archive.Package{Size: n.Others[0].Size, SHA256: n.MetadataDigest}
	return s, doc, nil
}
