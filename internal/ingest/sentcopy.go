package ingest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Copies takes copies of what was sent to the archive.
type Copies interface {
	// PutCopy puts a copy into a drop folder of the archive. Without an error it is durable there, or was taken from there. The same call may be
	// made again at any time: the archive knows the copy by its identity, and has it once.
	PutCopy(ctx context.Context, s SentCopy) error
}

// SentCopy is the copy of a document that was sent.
type SentCopy struct {
	Key      archive.Key // of the entry that was sent
	ID       archive.ID  // that the copy has in the archive
	Metadata []byte      // what the document says, canonical
	Files    []SentFile  // as they were packed, the document first
	Body     []byte      // that the document was sent with; nil: it is not known
}

// SentFile is one file of it.
type SentFile struct {
	archive.File
	Open func() (io.ReadCloser, error) // its bytes
}

// isToBeCopied reports whether the archive is to have a copy of the document
// now.
func (c *Engine) isToBeCopied(e ledger.Entry) bool {
	return c.cfg.Copies != nil && e.MayBeCopied()
}

// errNotAsSent says that what was sent can be read nowhere any more.
var errNotAsSent = errors.New("its package in the spool is gone, and its folder is no longer what was sent. Put the files in the folder back as they were, or take network.archive_sent out of the configuration")

// putCopy takes a copy of a document to the archive, out of its package.
func (c *Engine) putCopy(ctx context.Context, d Drop, e ledger.Entry, doc ledger.Document) error {
	pkg, err := c.findWholePackage(ctx, d, e)
	if err != nil {
		return err
	}
	row := c.routeOf(e)
	out := SentCopy{Key: e.Key, ID: archive.DeriveSentID(e.OwnNumber()), Metadata: doc.Metadata}
	if len(doc.ControlFiles) == 0 {
		return errors.New("the ledger does not list the files of the document")
	}
	for _, f := range slices.Concat(doc.ControlFiles[:1], doc.Files) {
		out.Files = append(out.Files, SentFile{f, func() (io.ReadCloser, error) { return row.Sender.OpenPacked(pkg, f) }})
	}
	body, err := row.Sender.Compose(pkg, e.Metadata, e.StoredFiles)
	if err != nil {
		return err
	}
	// Another vaultd may have sent it, in a part of the ledger that is lost, or in an older version. Then its body is not known.
	if archive.Sum(body.JSON) == e.Body {
		out.Body = body.JSON
	}
	// A crash after this leaves a copy that no line tells of; CopyPut says the rest.
	return c.cfg.Copies.PutCopy(ctx, out)
}

// findWholePackage returns the package of a document that was sent, and makes it again where it is missing or damaged. No file of it has other
// bytes than what was sent.
func (c *Engine) findWholePackage(ctx context.Context, d Drop, e ledger.Entry) (archive.Package, error) {
	err := d.Packer.CheckPackage(ctx, e)
	if err == nil {
		return d.Packer.FindPackage(e)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return archive.Package{}, err
	}
	packed, err := d.Packer.Pack(ctx, e)
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case isRefused:
		return archive.Package{}, errors.Join(errNotAsSent, refused)
	case err != nil:
		return archive.Package{}, err
	case packed.Sealed.Content != e.Content || packed.Sealed.Metadata != e.Metadata:
		return archive.Package{}, errNotAsSent
	}
	return packed.Sealed.Package, nil
}

// postponeCopy postpones a copy that could not be made. The source waits for it where it is.
func (c *Engine) postponeCopy(ctx context.Context, e ledger.Entry, err error) []ledger.Change {
	if ctx.Err() != nil {
		return nil // we are ending: the next start makes the copy
	}
	if _, isMounted := errors.AsType[*MountedError](err); isMounted {
		return c.sourceFaultChanges(e, err)
	}
	if e.Attempt == 0 {
		c.cfg.Log.Error("the archive does not get its copy of what was sent yet; it is tried again", "key", e.Key, "drop", e.Drop, "err", err)
	}
	why := ledger.Cause{Code: ledger.CauseCopyWaits, Text: "NOT ARCHIVED YET. The copy of what was sent cannot be put into its drop folder: " + err.Error()}
	return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.retryAt(e), Cause: why})}
}
