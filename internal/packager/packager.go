package packager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Sealed is what was dropped after it was understood and packed: a folder for
// the archive or for the business network, or a single PDF.
type Sealed struct {
	ID             archive.ID
	HasChosenID    bool                 // the sidecar named the clientUUID itself
	Document       archive.Document     // what the sidecar or document says; zero for a PDF
	Number         archive.NumberDigest // of Document; zero for a PDF
	Metadata       []byte               // canonical: Document.Metadata(), or the body of a PDF's registration
	MetadataDigest archive.Digest       // of Metadata; of the network's document, byte for byte; of a PDF's receiving address
	AsRead         archive.AsRead       // the sidecar or document as it is written, for people
	Files          []archive.File       // the content, sorted by path; for the network without the document, which comes first in the ZIP
	Junk           []string             // files that were ignored and go with the folder; paths as on disk
	Others         []archive.File       // the network's document; sidecar, manifest and marker, when they are not in the ZIP
	Endings        Endings              // files that do not end as usual
	Owners         []uint32             // uids of whom its files belong to, each once
	Content        archive.Digest       // archive.ContentDigest(Files), or archive.NetworkContent; of a PDF, its own
	Package        archive.Package      // its path is the name in the spool; see ValidateFolder, ValidatePDF
}

// BuildPackage checks the folder at root and seals its files as the ZIP name in
// spool, mode 0600, replacing what is there. When it returns without an error
// the ZIP is synced and was read back. The directory is not synced: the caller
// does that, because one sync serves many packages. After an error nothing new
// bears the name.
//
// The error is a [*Refusal] for a fault of the folder, wraps
// [archive.ErrChanged] when somebody is still writing, is a
// [*durable.MountError] for a mount in the folder, and else tells a fault of
// the environment.
func BuildPackage(ctx context.Context, root *os.Root, rules Rules, spool *durable.Dir, name string) (Sealed, error) {
	d, err := readFolder(ctx, root, rules)
	if err != nil {
		return Sealed{}, err
	}
	return d.seal(ctx, spool, name, d.describe)
}

// ValidateFolder checks a folder as BuildPackage does, including the size of the
// ZIP, and writes nothing. It returns the same errors, and a zero Package.
func ValidateFolder(ctx context.Context, root *os.Root, rules Rules) (Sealed, error) {
	return BuildPackage(ctx, root, rules, nil, "")
}

// seal makes the ZIP name in spool of the folder's files; without a spool it
// packs them in the same way and writes nothing. describe says what follows from
// the files, in their order in the ZIP.
func (d *droppedFolder) seal(ctx context.Context, spool *durable.Dir, name string, describe func([]archive.File) Sealed) (Sealed, error) {
	b, err := takeWorkspace(levels[d.rules.Compression])
	if err != nil {
		return Sealed{}, err
	}
	defer b.release()
	if spool == nil {
		files, _, err := d.packFiles(ctx, b, io.Discard)
		if err != nil {
			return Sealed{}, err
		}
		return describe(files), nil
	}
	part, err := spool.Create(name, 0o600)
	if err != nil {
		return Sealed{}, fmt.Errorf("create ZIP: %w", err)
	}
	defer part.Discard()
	files, w, err := d.packFiles(ctx, b, part)
	if err != nil {
		return Sealed{}, err
	}
	// The ZIP is read back before it gets its name: a ZIP under its name always holds the files.
	sum, err := b.readBack(ctx, part, w, files)
	if err != nil {
		return Sealed{}, err
	}
	// A crash here leaves a temporary file or a whole ZIP that no entry records. Either is replaced when the folder is packed again.
	if err := part.CommitWithoutDirSync(); err != nil {
		return Sealed{}, fmt.Errorf("finish ZIP: %w", err)
	}
	s := describe(files)
	s.Package = archive.Package{Path: name, Size: w.size, SHA256: sum, MD5: w.md5}
	return s, nil
}

// readFolder reads the names, the sidecar and the lists of a folder, and refuses it for what is wrong with them.
func readFolder(ctx context.Context, root *os.Root, rules Rules) (*droppedFolder, error) {
	rules, err := rules.validated()
	if err != nil {
		return nil, err
	}
	d, err := openFolder(ctx, root, rules)
	if err != nil {
		return nil, err
	}
	return d.checkedFolder()
}

// checkedFolder refuses a folder that has faults, before any of it is packed.
func (d *droppedFolder) checkedFolder() (*droppedFolder, error) {
	if len(d.faults) == 0 {
		return d, d.checkLargeEndings()
	}
	return nil, d.refusalOrChanged()
}

// packFiles writes the folder's files as a ZIP to to, and returns what it read.
func (d *droppedFolder) packFiles(ctx context.Context, b *workspace, to io.Writer) ([]archive.File, written, error) {
	files, w, err := b.writeZIP(ctx, d.listing, to)
	if errors.Is(err, errTooLarge) {
		d.faults = append(d.faults, d.tooLargeFault("Packed, the folder is more than "+megabytes(d.rules.MaxSize)))
		return nil, w, d.refusalOrChanged()
	}
	if err != nil {
		return nil, w, err
	}
	// The document was checked in one reading and packed in another, and the file system told the same state both times.
	if d.rules.isNetwork && files[0].SHA256 != d.checkedDocument {
		return nil, w, changedError(d.sidecar.disk)
	}
	for _, f := range slices.Concat(files, d.auxiliary) {
		d.faults = append(d.faults, d.lists.compareFile(f)...)
	}
	return files, w, d.refusalOrChanged()
}

// describe returns what follows from the sidecar, the rules and the files that were packed.
func (d *droppedFolder) describe(files []archive.File) Sealed {
	doc := d.form.doc
	s := Sealed{ID: d.form.id, HasChosenID: !d.form.id.IsZero(), Document: doc, Number: doc.NumberDigest(d.rules.Vault), Metadata: doc.Metadata(),
		AsRead: d.form.asRead, Files: files, Junk: d.junk, Others: d.auxiliary, Endings: d.endings, Owners: d.owners(), Content: archive.ContentDigest(files)}
	s.MetadataDigest = archive.Sum(s.Metadata)
	if !s.HasChosenID {
		s.ID = archive.DeriveID(d.rules.Vault, s.Content, s.MetadataDigest)
	}
	return s
}
