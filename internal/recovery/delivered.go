package recovery

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
)

const deliveryName = "_DELIVERED.json"

// readDelivered reads the delivered folders of a drop whose service cannot be asked. One that the ledger does not know gets an entry by its
// delivery note, where the file beside it is the one that the note lists. Nothing else proves a delivery.
func (p *comparison) readDelivered(ctx context.Context, d Drop) error {
	for l, err := range d.Folder.PlacedFolders(drop.Delivered) {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
			continue
		}
		if err == nil {
			err = p.readDeliveredFolder(ctx, d, l)
		}
		if err != nil {
			return fmt.Errorf("look through the delivered folders of drop %s: %w", d.Name, err)
		}
	}
	return nil
}

// readDeliveredFolder reads one delivered folder and its note.
func (p *comparison) readDeliveredFolder(ctx context.Context, d Drop, l drop.PlacedFolder) error {
	key, ev, doc, err := d.readDelivery(l, p.Environment)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ctx.Err() // somebody took the folder away in the meantime
	case isBadReceipt(err):
		p.report.Folders.Unbelieved.add(Finding{Text: d.Name + "/" + l.Path + ": " + err.Error()})
		return ctx.Err()
	case err != nil:
		return err
	}
	e, known, err := p.Book.Entry(key)
	if err != nil {
		return err
	}
	if known {
		if e.NeedsReconcile {
			p.keptAt[key] = l.Path
		}
		return ctx.Err()
	}
	by, taken, err := p.Book.FindByRemote(ev.Remote)
	if err == nil && !taken {
		by, taken, err = p.Book.FindByID(ev.ID)
	}
	if err != nil {
		return err
	}
	if taken {
		// One slot has one entry. A copied folder or a forged note must not get a second one.
		p.report.Folders.Unbelieved.add(Finding{Key: by, Remote: ev.Remote, Text: d.Name + "/" + l.Path + ": what its delivery note names belongs to another entry"})
		return ctx.Err()
	}
	p.report.Folders.Receipts.add(Finding{Key: key, Remote: ev.Remote, Text: d.Name + "/" + l.Path})
	// Entry and document are one change. After a crash before its commit the next comparison reads the note again, which bears the key.
	return p.addChange(ctx, ledger.Change{Key: key, Document: &doc, Events: []ledger.Event{ev}})
}

// readDelivery reads the delivery note in a folder, compares the file beside it with the note, and returns the event that opens an entry for the
// folder. A note that cannot be believed is a *badReceiptError.
func (d Drop) readDelivery(l drop.PlacedFolder, environment string) (key archive.Key, ev ledger.Recovered, doc ledger.Document, err error) {
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return key, ev, doc, newBadReceipt("%v", mount)
	}
	if err != nil {
		return key, ev, doc, err
	}
	defer dir.Close() // read-only
	text, err := readNote(dir, deliveryName)
	if err != nil {
		return key, ev, doc, err
	}
	note, err := proof.ParseDelivery(text)
	if err != nil {
		return key, ev, doc, newBadReceipt("its delivery note is not readable: %v", err)
	}
	if note.Environment != environment || note.Route != d.Route {
		return key, ev, doc, newBadReceipt("its delivery note is of the %s environment and of route %s", note.Environment, note.Route)
	}
	if key, ev, doc, err = parseDelivery(note); err != nil {
		return key, ev, doc, newBadReceipt("its delivery note lacks something, or is not as vaultd wrote it")
	}
	// The note alone is not believed: the file must give the digest that it lists.
	sum, err := digestOf(dir, doc.Files[0].Path)
	if err != nil || sum != doc.Files[0].SHA256 {
		return key, ev, doc, newBadReceipt("the file beside its delivery note is not the one that was delivered")
	}
	ev.Vault, ev.Drop, ev.Folder, ev.Owner, ev.Node, ev.Dest = d.Vault, d.Name, path.Base(l.Path), l.Owner, ledger.Node(l.Inode), l.Path
	return key, ev, doc, nil
}

// parseDelivery returns what a delivery note proves.
func parseDelivery(note proof.Delivery) (key archive.Key, ev ledger.Recovered, doc ledger.Document, err error) {
	var errs [5]error
	key, errs[0] = archive.ParseKey(note.Key)
	ev = ledger.Recovered{Route: note.Route, State: ledger.Delivered, Source: ledger.Kept, PossibleDouble: note.Double}
	ev.ID, errs[1] = archive.ParseID(note.ID)
	ev.Remote, errs[2] = archive.ParseRemoteID(string(note.BumID))
	ev.Package.Size = note.Sent.Size
	ev.Package.SHA256, errs[3] = archive.ParseDigest(note.Sent.SHA256)
	ev.UploadedAt, errs[4] = time.Parse(time.RFC3339Nano, note.Delivered)
	if err = errors.Join(errs[:]...); err == nil && (len(note.Files) != 1 || note.Sent.Size <= 0 || note.Receiving == "") {
		err = errors.New("something is missing")
	}
	if err != nil {
		return key, ev, doc, err
	}
	ev.SeenAt, _ = time.Parse(time.RFC3339Nano, note.Seen) // may be missing
	ev.RegisteredAt, _ = time.Parse(time.RFC3339Nano, note.Registered)
	ev.Content, ev.Metadata = ev.Package.SHA256, archive.ReceivingDigest(note.Receiving)
	doc.Files = []archive.File{{Path: note.Files[0].Path, Size: note.Files[0].Size, SHA256: ev.Package.SHA256}}
	// The address for notices is not in the note, and nothing is sent again by it.
	doc.Metadata = archive.PDFRequest{Receiving: note.Receiving}.Encode()
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	ev.Seal = doc.Seal(ev.Package)
	return key, ev, doc, nil
}

// readNote reads a note of vaultd's in a folder. One that is missing, too large or no file is a *badReceiptError.
func readNote(dir *durable.Dir, name string) ([]byte, error) {
	file, info, err := durable.OpenRegular(dir.Root(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, newBadReceipt("there is no %s in it", name)
	}
	if err != nil {
		return nil, newBadReceipt("its %s cannot be read", name)
	}
	defer file.Close() // read-only
	text, err := io.ReadAll(io.LimitReader(file, mostReceipt))
	if err != nil || info.Size() > mostReceipt {
		return nil, errors.Join(err, newBadReceipt("its %s is too large", name))
	}
	return text, nil
}

// digestOf returns the SHA-256 of a file in a folder.
func digestOf(dir *durable.Dir, name string) (archive.Digest, error) {
	file, _, err := durable.OpenRegular(dir.Root(), name)
	if err != nil {
		return archive.Digest{}, err
	}
	defer file.Close() // read-only
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return archive.Digest(sum.Sum(nil)), err
}
