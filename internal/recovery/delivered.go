package recovery

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
)

// parseDelivery returns what a delivery note proves. Nothing else proves a
// delivery by a service that cannot be asked.
func (d Origin) parseDelivery(text []byte, environment string) (ev evidence, err error) {
	note, err := proof.ParseDelivery(text)
	if err != nil {
		return ev, newBadReceipt("its delivery note is not readable: %v", err)
	}
	if note.Environment != environment || note.Route != d.Route {
		return ev, newBadReceipt("its delivery note is of the %s environment and of route %s", note.Environment, note.Route)
	}
	ev, delivered, err := noted{note.Key, note.ID, note.Seen, note.Registered, note.Delivered, note.BumID, note.Files, note.Sent, note.FileOwners}.parse("delivery note", ledger.Delivered)
	ev.event.Route, ev.event.UploadedAt, ev.event.PossibleDouble = note.Route, delivered, note.Double
	if err == nil {
		err = d.form().useDelivery(&ev, note)
	}
	if err != nil {
		return ev, newBadReceipt("its delivery note lacks something, or is not as vaultd wrote it")
	}
	return ev, nil
}

// usePDF takes over what the delivery note of a PDF says.
func (ev *evidence) usePDF(note proof.Delivery) error {
	r := &ev.event
	if len(note.Files) != 1 || note.Receiving == "" || ev.doc.Files[0].SHA256 != r.Package.SHA256 {
		return errors.New("something is missing")
	}
	r.Content, r.Metadata = r.Package.SHA256, archive.ReceivingDigest(note.Receiving)
	// The address for notices is not in the note, and nothing is sent again by it.
	ev.doc.Metadata = archive.PDFRequest{Receiving: note.Receiving}.Encode()
	return nil
}

// useDocument takes over what the delivery note of a document of the business
// network says.
func (ev *evidence) useDocument(note proof.Delivery) (err error) {
	r := &ev.event
	if r.Remote != archive.NewBumID(r.ID.String()) {
		return errors.New("its number is not that of its document")
	}
	if note.Body != "" {
		r.Body, err = archive.ParseDigest(note.Body)
	}
	for _, id := range note.StoredFiles {
		_, bad := archive.ParseFileID(string(id))
		err = errors.Join(err, bad)
	}
	r.StoredFiles, r.Means = note.StoredFiles, note.Means
	return err
}

// comparePDF compares a PDF with the delivery note next to it.
func comparePDF(dir *durable.Dir, ev *evidence) error {
	bad := newBadReceipt("the file beside its delivery note is not the one that was delivered")
	file, _, err := durable.OpenRegular(dir.Root(), ev.doc.Files[0].Path)
	if err != nil {
		return bad
	}
	defer file.Close() // read-only
	sum := sha256.New()
	if _, err = io.Copy(sum, file); err != nil || archive.Digest(sum.Sum(nil)) != ev.doc.Files[0].SHA256 {
		return bad
	}
	return nil
}

// compareDocument compares the document and the files in a folder of the
// business network with the delivery note beside them. A document has no digest
// of its own in the note: its number follows from it and from its files.
func (d Origin) compareDocument(ctx context.Context, dir *durable.Dir, ev *evidence) error {
	s, err := packager.ValidateNetwork(ctx, dir.Root(), d.networkRules())
	switch reason, isDoubtful := explainUnreadable(err); {
	case isDoubtful:
		return newBadReceipt("the folder beside its delivery note cannot be read as it lies there now: %s", reason)
	case err != nil:
		return err
	}
	r := &ev.event
	first, generation, is := findGeneration(s.ID, r.ID)
	if !is || !slices.Equal(s.Files, ev.doc.Files) {
		return newBadReceipt("the document and the files beside its delivery note are not those that were delivered")
	}
	r.FirstID, r.Generation = first, generation
	r.Content, r.Metadata, r.Number = s.Content, s.MetadataDigest, s.Number
	ev.doc.Metadata, ev.doc.ControlFiles, ev.doc.Junk = s.Metadata, s.Others, s.Junk
	return nil
}

// findGeneration finds out which generation of the identity of a folder the
// document was sent as. A folder that was dropped again begins with a later
// one, and a release may have taken the next of that.
func findGeneration(of, sent archive.ID) (first archive.ID, generation uint8, is bool) {
	if n, is := of.GenerationOf(sent); is {
		return of, n, true
	}
	for _, begun := range of.Successors() {
		if n, is := begun.GenerationOf(sent); is {
			return begun, n, true
		}
	}
	return archive.ID{}, 0, false
}
