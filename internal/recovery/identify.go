package recovery

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// Where the service cannot be asked, what may be delivered is recognised by its bytes alone when somebody drops it again. So an entry that the
// ledger knows without them is given its identity, from the file or the folder where that lies now.

// identifyClosedInDoubt gives the entry of a file that a person closed in doubt its doubt and its identity back. The service may have the file
// and cannot be asked, so whoever drops it again must get it back. It returns the document of the file; nil: the file is not there any more,
// or another entry has its identity already.
func (p *comparison) identifyClosedInDoubt(ctx context.Context, d Drop, l drop.PlacedFolder, ev *ledger.Recovered) (*ledger.Document, error) {
	ev.InDoubt = true
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	if err != nil {
		return nil, nil //nolint:nilerr // somebody took it away, or something is mounted there: there is no file to identify
	}
	defer dir.Close() // read-only
	sealed, doc, err := d.identify(ctx, dir)
	if err != nil || sealed.ID.IsZero() {
		return nil, err
	}
	if _, taken, err := p.Book.FindByID(sealed.ID); err != nil || taken || p.isOpening(sealed.ID) {
		return nil, err
	}
	ev.ID, ev.Content, ev.Metadata, ev.Number, ev.Package, ev.Seal = sealed.ID, sealed.Content, sealed.Metadata, sealed.Number, sealed.Package, sealed.Seal
	return &doc, nil
}

// isOpening reports whether a pending change opens an entry with an identity.
func (p *comparison) isOpening(id archive.ID) bool {
	return slices.ContainsFunc(p.pending, func(c ledger.Change) bool {
		opens, ok := c.Events[0].(ledger.Recovered)
		return ok && opens.ID == id
	})
}

// identifyUnpacked returns what the folder of an entry holds that was never packed, as far as this ledger knows, with its document; nil: the folder
// is gone or cannot be read as it lies there, or another entry stands for the same document when it is dropped again. Its error is an
// *unreadableError where the folder cannot be read now.
func (p *comparison) identifyUnpacked(ctx context.Context, e ledger.Entry) (*ledger.Sealed, *ledger.Document, error) {
	i := slices.IndexFunc(p.Drops, func(d Drop) bool { return d.Name == e.Drop && d.Route == e.Route })
	if i < 0 || !e.IsUnidentified() {
		return nil, nil, nil
	}
	d := p.Drops[i]
	dir, err := d.openUnpacked(e, p.returnedTo[e.Key])
	if dir == nil || err != nil {
		return nil, nil, err
	}
	defer dir.Close() // read-only
	sealed, doc, err := d.identify(ctx, dir)
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, nil, nil // it went away; or vaultd could never read it, so it was never sent
	case err != nil:
		return nil, nil, &unreadableError{err}
	case sealed.ID.IsZero():
		return nil, nil, nil
	}
	if admitted, err := p.admitIdentity(ctx, e, &sealed); err != nil || !admitted {
		return nil, nil, err
	}
	return &sealed, &doc, nil
}

// unreadableError says that a folder cannot be read now. It may be readable later, and its entry stays in doubt until then.
type unreadableError struct{ error }

// openUnpacked opens the folder of an entry where it lies: as claimed, or where it was returned to in the time that the ledger lost. nil: it is gone.
func (d Drop) openUnpacked(e ledger.Entry, returned drop.PlacedFolder) (*durable.Dir, error) {
	if d.Folder == nil {
		return nil, &unreadableError{errors.New("its drop folder is away")}
	}
	dir, _, err := d.Folder.OpenClaimed(e.Key)
	if errors.Is(err, fs.ErrNotExist) && returned.Path != "" {
		dir, err = d.Folder.OpenPlaced(returned.Path, returned.Inode)
	}
	if _, mount := errors.AsType[*durable.MountError](err); mount || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &unreadableError{err}
	}
	return dir, nil
}

// identifyDelivered tells an entry that was never packed, as far as this ledger knows, what its delivery note proves that it is.
func (p *comparison) identifyDelivered(ctx context.Context, e ledger.Entry, note ledger.Recovered, doc ledger.Document) error {
	sealed := ledger.Sealed{ID: note.ID, Content: note.Content, Metadata: note.Metadata, Package: note.Package, Seal: note.Seal, Number: note.Number}
	if admitted, err := p.admitIdentity(ctx, e, &sealed); err != nil || !admitted {
		return err
	}
	p.report.Folders.Receipts.add(Finding{Key: e.Key, Remote: note.Remote, Text: e.Drop + "/" + note.Dest})
	return p.addChange(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Document: &doc, Events: []ledger.Event{sealed}})
}

// admitIdentity completes what an entry is to be told of its document by what the ledger knows of other entries. It returns false where another
// entry keeps the identity.
func (p *comparison) admitIdentity(ctx context.Context, e ledger.Entry, s *ledger.Sealed) (admitted bool, err error) {
	if err := p.commitChanges(ctx); err != nil { // one of them may be of the same document, and the look-ups must see it
		return false, err
	}
	first, taken, err := p.entryOf(p.Book.FindByID(s.ID))
	if err != nil {
		return false, err
	}
	if taken {
		// The number of what was sent over the network is used up, and the network itself refuses it.
		if ledger.CompareIdentity(first, *s, e.Route, string(e.Vault)) != ledger.Proceed || e.Route.IsNotified() && len(first.Registrations) > 0 {
			return false, nil
		}
		s.Supersedes = first.Key
	}
	// The ledger looks once more when it commits, and refuses an event that does not name the entries that it finds.
	twin, known, err := p.entryOf(p.Book.FindByContent(s.Content))
	if err != nil {
		return false, err
	}
	if known && twin.State != ledger.Rejected && twin.ID != s.ID {
		s.SameContent = twin.Key
	}
	after, err := ledger.Transition(e, *s, p.Now())
	if err != nil {
		return false, err
	}
	s.SameNumber, _, err = p.Book.FindSameNumber(after)
	return err == nil, err
}

// entryOf returns the entry that a look-up found.
func (p *comparison) entryOf(key archive.Key, found bool, err error) (ledger.Entry, bool, error) {
	if err != nil || !found {
		return ledger.Entry{}, false, err
	}
	return p.Book.Entry(key)
}

// identify returns the identity of what lies in a folder of a drop whose service cannot be asked, and its document; zero: it cannot be told.
func (d Drop) identify(ctx context.Context, dir *durable.Dir) (s ledger.Sealed, doc ledger.Document, err error) {
	read := d.identifyPDF
	if d.Route == ledger.Network {
		read = d.identifyDocument
	}
	if s, doc, err = read(ctx, dir); err != nil {
		return s, doc, fmt.Errorf("read what may be delivered already: %w", err) // it is tried again with the next comparison
	}
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	s.Seal = doc.Seal(s.Package)
	return s, doc, nil
}

// identifyPDF is identify for a single PDF.
func (d Drop) identifyPDF(_ context.Context, dir *durable.Dir) (s ledger.Sealed, doc ledger.Document, err error) {
	items, err := fs.ReadDir(dir.Root().FS(), ".")
	items = slices.DeleteFunc(items, func(it fs.DirEntry) bool { return it.Name() == reasonName })
	if err != nil || len(items) != 1 || !items[0].Type().IsRegular() {
		return s, doc, err // it is not what vaultd took, or would send
	}
	name := items[0].Name()
	file, _, err := durable.OpenRegular(dir.Root(), name)
	if err != nil {
		return s, doc, err
	}
	defer file.Close() // read-only
	sum, short := sha256.New(), md5.New()
	size, err := io.Copy(io.MultiWriter(sum, short), file)
	if err != nil || size == 0 {
		return s, doc, err
	}
	s.Package = archive.Package{Size: size, SHA256: archive.Digest(sum.Sum(nil)), MD5: [md5.Size]byte(short.Sum(nil))}
	s.ID, s.Content, s.Metadata = archive.DerivePDFID(d.Receiving, s.Package.SHA256), s.Package.SHA256, archive.ReceivingDigest(d.Receiving)
	doc.Files = []archive.File{{Path: name, Size: size, SHA256: s.Package.SHA256}}
	doc.Metadata = archive.PDFRequest{Receiving: d.Receiving, Notify: d.Notify}.Encode()
	return s, doc, nil
}
