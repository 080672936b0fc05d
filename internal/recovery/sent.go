package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
)

// parseSent takes over what a delivery note proves of a document of the business network alone.
func parseSent(note proof.Delivery, ev *ledger.Recovered, doc *ledger.Document) (err error) {
	if ev.Remote != archive.NewBumID(ev.ID.String()) {
		return errors.New("its number is not that of its document")
	}
	if note.Body != "" {
		if ev.Body, err = archive.ParseDigest(note.Body); err != nil {
			return err
		}
	}
	for _, id := range note.StoredFiles {
		if _, err := archive.ParseFileID(string(id)); err != nil {
			return err
		}
	}
	ev.StoredFiles, ev.Means = note.StoredFiles, note.Means
	for _, f := range note.Files {
		sum, err := archive.ParseDigest(f.SHA256)
		if err != nil {
			return err
		}
		doc.Files = append(doc.Files, archive.File{Path: f.Path, Size: f.Size, SHA256: sum})
	}
	return nil
}

// compareSent compares the document and the files in a folder with the delivery note beside them, and takes over what the document says. A
// document has no digest of its own in the note: its number follows from it and from its files.
func (d Drop) compareSent(ctx context.Context, dir *durable.Dir, note proof.Delivery, ev *ledger.Recovered, doc *ledger.Document) error {
	s, err := packager.ValidateNetwork(ctx, dir.Root(), d.networkRules())
	switch reason, isDoubtful := explainUnreadable(err); {
	case isDoubtful:
		return newBadReceipt("the folder beside its delivery note cannot be read as it lies there now: %s", reason)
	case err != nil:
		return err
	}
	first, generation, is := findGeneration(s.ID, ev.ID)
	if !is || !slices.Equal(s.Files, doc.Files) {
		return newBadReceipt("the document and the files beside its delivery note of %s are not those that were delivered", note.Delivered)
	}
	ev.FirstID, ev.Generation = first, generation
	ev.Content, ev.Metadata, ev.Number = s.Content, s.Metadata, s.Document.NetworkNumberDigest()
	doc.Metadata, doc.ControlFiles, doc.Junk = s.Document.Metadata(), s.Others, s.Junk
	return nil
}

// findGeneration finds out which generation of the identity of a folder the document was sent as. A folder that was dropped again begins with a
// later one, and a release may have taken the next of that.
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

// explainUnreadable says why a folder is not believed to be what was sent. false: another fault, which may pass.
func explainUnreadable(err error) (why string, is bool) {
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return mount.Error(), true
	}
	if _, refused := errors.AsType[*packager.Refusal](err); refused || errors.Is(err, packager.ErrChanged) {
		return fmt.Sprintf("%.300v", err), true
	}
	return "", false
}
