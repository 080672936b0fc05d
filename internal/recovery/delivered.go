package recovery

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
)

const deliveryName = "_DELIVERED.json"

// readDelivered reads the delivered folders of a drop whose service cannot be asked. One that the ledger does not know gets an entry by its
// delivery note, where the files beside it are those that the note lists. Nothing else proves a delivery.
func (p *comparison) readDelivered(ctx context.Context, d Drop) error {
	var later []foundDelivery
	for l, err := range d.Folder.PlacedFolders(drop.Delivered) {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			p.report.Folders.Strange.add(Finding{Text: d.Name + ": " + err.Error()})
			continue
		}
		f := foundDelivery{at: l}
		if err == nil {
			f, err = p.readDeliveredFolder(ctx, d, l)
		}
		switch {
		case err == nil && !f.key.IsZero() && (f.event.Generation > 0 || f.isUnsigned()):
			later = append(later, f)
		case err == nil && !f.key.IsZero():
			err = p.openDelivered(ctx, d, f)
		}
		if err != nil {
			return fmt.Errorf("look through the delivered folders of drop %s: %w", d.Name, err)
		}
	}
	if len(later) == 0 {
		return nil
	}
	// The first generation of each document comes first: its entry has the
	// identity of its folder. Unsigned notes come last, so that a forged one
	// takes only what is left. After a crash here the next comparison reads the
	// notes of the others again.
	if err := p.commitChanges(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(later, func(a, b foundDelivery) int {
		return cmp.Or(cmp.Compare(a.event.State, b.event.State), cmp.Compare(a.event.Generation, b.event.Generation)) // delivered before quarantined
	})
	for _, f := range later {
		if err := errors.Join(p.openDelivered(ctx, d, f), p.commitChanges(ctx)); err != nil {
			return fmt.Errorf("look through the delivered folders of drop %s: %w", d.Name, err)
		}
	}
	return nil
}

// foundDelivery is a delivered folder that the ledger does not know, with what its note proves.
type foundDelivery struct {
	at    drop.PlacedFolder
	key   archive.Key // zero: there is nothing to open
	event ledger.Recovered
	doc   ledger.Document
}

// isUnsigned reports whether the note lacks a signature of this ledger. Then it
// says what the folder holds, and a person decides whether that was delivered.
func (f foundDelivery) isUnsigned() bool { return f.event.State == ledger.Quarantined }

// readDeliveredFolder reads one delivered folder and its note.
func (p *comparison) readDeliveredFolder(ctx context.Context, d Drop, l drop.PlacedFolder) (f foundDelivery, err error) {
	key, ev, doc, err := p.readDelivery(ctx, d, l)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, ctx.Err() // somebody took the folder away in the meantime
	case isBadReceipt(err):
		p.report.Folders.Unbelieved.add(Finding{Text: d.Name + "/" + l.Path + ": " + err.Error()})
		return f, ctx.Err()
	case err != nil:
		return f, err
	}
	e, known, err := p.Book.Entry(key)
	if err != nil {
		return f, err
	}
	if known {
		if _, ours := e.GenerationOf(ev.ID); e.NeedsReconcile && p.keptAt[key] == "" && (ours || e.ID.IsZero()) {
			p.keptAt[key] = l.Path
		}
		if ev.State == ledger.Delivered && e.IsUnidentified() && !d.hasClaimedFolder(key) {
			err = p.identifyDelivered(ctx, e, ev, doc)
		}
		return f, errors.Join(err, ctx.Err())
	}
	return foundDelivery{l, key, ev, doc}, ctx.Err()
}

// openDelivered opens an entry for a delivered folder that the ledger does not know.
func (p *comparison) openDelivered(ctx context.Context, d Drop, f foundDelivery) error {
	ev, l := f.event, f.at
	var first *ledger.Entry
	var by archive.Key
	var taken bool
	var err error
	if !f.isUnsigned() {
		by, taken, err = p.Book.FindByRemote(ev.Remote)
	}
	if err == nil && !taken {
		by, taken, err = p.Book.FindByID(ev.ID)
		if err == nil && taken && !f.isUnsigned() {
			// What was rejected before may have been dropped again, and delivered then: the note is the later word.
			var admitted bool
			if first, admitted, err = p.findPredecessor(ctx, sealedAs(ev), d.Route, d.Vault); admitted {
				taken, ev.Supersedes = false, first.Key
			}
		}
	}
	if err == nil && !taken && ev.Generation > 0 {
		// If an earlier generation has an entry of its own, this one begins
		// with its own identity, as when it was dropped again.
		var before bool
		if _, before, err = p.Book.FindByID(ev.FirstID); before {
			ev.FirstID, ev.Generation = archive.ID{}, 0
		}
	}
	if err != nil {
		return err
	}
	if taken || f.isUnsigned() && d.hasClaimedFolder(f.key) {
		// One slot has one entry. A copied folder or a forged note must not get a second one.
		p.report.Folders.Unbelieved.add(Finding{Key: by, Remote: ev.Remote, Text: d.Name + "/" + l.Path + ": what its delivery note names belongs to another entry"})
		return ctx.Err()
	}
	found := &p.report.Folders.Receipts
	if f.isUnsigned() {
		found = &p.report.Folders.Alone
	}
	found.add(Finding{Key: f.key, Remote: ev.Remote, Text: d.Name + "/" + l.Path})
	// Entry and document are one change. After a crash before its commit the next comparison reads the note again, which bears the key.
	return p.addIdentified(ctx, ledger.Change{Key: f.key, Document: &f.doc, Events: []ledger.Event{ev}}, first)
}

// readDelivery reads the delivery note in a delivered folder, and returns the event that opens an entry for the folder. A note that cannot be
// believed is a *badReceiptError.
func (p *comparison) readDelivery(ctx context.Context, d Drop, l drop.PlacedFolder) (key archive.Key, ev ledger.Recovered, doc ledger.Document, err error) {
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return key, ev, doc, newBadReceipt("%v", mount)
	}
	if err != nil {
		return key, ev, doc, err
	}
	defer dir.Close() // read-only
	if key, ev, doc, err = d.readDeliveryIn(ctx, dir, p.Environment, p.ReceiptKeys); err != nil {
		return key, ev, doc, err
	}
	ev.Vault, ev.Drop, ev.Folder, ev.Owner, ev.Node, ev.Dest = d.Vault, d.Name, path.Base(l.Path), l.Owner, ledger.Node(l.Inode), l.Path
	return key, ev, doc, nil
}

// readDeliveryIn reads the delivery note in a folder, and compares the files
// next to it with the note. The delivery behind an unsigned note is uncertain.
func (d Drop) readDeliveryIn(ctx context.Context, dir *durable.Dir, environment string, keys []string) (key archive.Key, ev ledger.Recovered, doc ledger.Document, err error) {
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
	unsigned, err := explainUnsigned(text, keys, note.Encode())
	if err != nil {
		return key, ev, doc, newBadReceipt("its delivery note %v", err)
	}
	if unsigned != "" {
		ev.State, ev.Remote, ev.UploadedAt, ev.RegisteredAt, ev.PossibleDouble = ledger.Quarantined, "", time.Time{}, time.Time{}, false
		ev.Cause = ledger.DeliveryUnknown(ev.Route, "that it was delivered says the note in its folder alone, which "+unsigned)
	} else { // anybody could have named users in an unsigned one
		doc.FileOwners = note.FileOwners
	}
	// The note alone is not believed: the files must give the digests that it lists.
	if d.Route == ledger.Network {
		err = d.compareSent(ctx, dir, note, &ev, &doc)
	} else if sum, unread := digestOf(dir, doc.Files[0].Path); unread != nil || sum != doc.Files[0].SHA256 {
		err = newBadReceipt("the file beside its delivery note is not the one that was delivered")
	}
	return key, ev, doc, err
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
	if err = errors.Join(errs[:]...); err == nil && (note.Sent.Size <= 0 || len(note.FileOwners) > ledger.MaxFileOwners) {
		err = errors.New("something is missing, or too much")
	}
	if err != nil {
		return key, ev, doc, err
	}
	ev.SeenAt, _ = time.Parse(time.RFC3339Nano, note.Seen) // may be missing
	ev.RegisteredAt, _ = time.Parse(time.RFC3339Nano, note.Registered)
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	ev.Seal = doc.Seal(ev.Package)
	if note.Route == ledger.Network {
		return key, ev, doc, parseSent(note, &ev, &doc)
	}
	if len(note.Files) != 1 || note.Receiving == "" {
		return key, ev, doc, errors.New("something is missing")
	}
	ev.Content, ev.Metadata = ev.Package.SHA256, archive.ReceivingDigest(note.Receiving)
	doc.Files = []archive.File{{Path: note.Files[0].Path, Size: note.Files[0].Size, SHA256: ev.Package.SHA256}}
	// The address for notices is not in the note, and nothing is sent again by it.
	doc.Metadata = archive.PDFRequest{Receiving: note.Receiving}.Encode()
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
