package recovery

import (
	"context"
	"errors"

	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
)

// form is what lies in the folders of a drop, as far as it is read here: a type
// with a method for each question. The route of the drop tells which form it has.
type form interface {
	// compareFiles compares the files next to a note with what it lists, and takes
	// over what they say. The note alone is not believed: the files must give the
	// digests that it lists.
	compareFiles(ctx context.Context, d Origin, dir *durable.Dir, ev *evidence) error
	// identify returns the identity of what lies in a folder, and its document.
	// Its errors are those of the packager.
	identify(ctx context.Context, d Origin, dir *durable.Dir) (ledger.Sealed, ledger.Document, error)
	// useDelivery takes over what a delivery note says by the way of its route
	// alone.
	useDelivery(ev *evidence, note proof.Delivery) error
	// readSidecar reads what the sidecar of a folder says.
	readSidecar(ctx context.Context, d Origin, dir *durable.Dir) *ledger.Document
}

var forms = [...]form{ledger.Folders: folders{}, ledger.Files: singlePDFs{}, ledger.Documents: documents{}}

// form returns the form of what lies in the folders of the drop.
func (d Origin) form() form { return forms[d.Route.Form()] }

// folders are folders with a sidecar of the archive.
type folders struct{}

func (folders) compareFiles(ctx context.Context, d Origin, dir *durable.Dir, ev *evidence) error {
	return d.compareFolder(ctx, dir, ev)
}

// identify: what an entry stands for is asked of the archive.
func (folders) identify(context.Context, Origin, *durable.Dir) (s ledger.Sealed, doc ledger.Document, err error) {
	return s, doc, errors.ErrUnsupported
}

func (folders) useDelivery(*evidence, proof.Delivery) error { return errors.ErrUnsupported }

func (folders) readSidecar(ctx context.Context, d Origin, dir *durable.Dir) *ledger.Document {
	read, err := packager.ReadSidecar(ctx, dir.Root(), d.Rules)
	if err != nil || read.IsZero() {
		return nil
	}
	return &ledger.Document{AsRead: read}
}

// noSidecar are folders without a sidecar of the archive.
type noSidecar struct{}

func (noSidecar) readSidecar(context.Context, Origin, *durable.Dir) *ledger.Document { return nil }

// singlePDFs are files without a folder around them.
type singlePDFs struct{ noSidecar }

func (singlePDFs) compareFiles(_ context.Context, _ Origin, dir *durable.Dir, ev *evidence) error {
	return comparePDF(dir, ev)
}

func (singlePDFs) identify(ctx context.Context, d Origin, dir *durable.Dir) (ledger.Sealed, ledger.Document, error) {
	return d.identifyPDF(ctx, dir)
}

func (singlePDFs) useDelivery(ev *evidence, note proof.Delivery) error { return ev.usePDF(note) }

// documents are folders with a document of the business network.
type documents struct{ noSidecar }

func (documents) compareFiles(ctx context.Context, d Origin, dir *durable.Dir, ev *evidence) error {
	return d.compareDocument(ctx, dir, ev)
}

func (documents) identify(ctx context.Context, d Origin, dir *durable.Dir) (ledger.Sealed, ledger.Document, error) {
	return d.identifyDocument(ctx, dir)
}

func (documents) useDelivery(ev *evidence, note proof.Delivery) error { return ev.useDocument(note) }
