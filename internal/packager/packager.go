package packager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// SealedFolder is a folder that was understood and packed.
type SealedFolder struct {
	ID          archive.ID
	HasChosenID bool // the sidecar named the clientUUID itself
	Document    archive.Document
	Metadata    []byte          // canonical: Document.Metadata()
	AsRead      archive.AsRead  // the sidecar as it is written
	Files       []archive.File  // what the ZIP holds, sorted by path
	Junk        []string        // files that were ignored and go with the folder; paths as on disk
	Others      []archive.File  // sidecar, manifest and marker, when they are not in the ZIP
	Content     archive.Digest  // ContentDigest(Files)
	Package     archive.Package // zero from Validate
}

// BuildPackage checks the folder at root and seals its files as a ZIP at zipPath, mode
// 0600, replacing what is there. The ZIP is synced and was read back when Build
// returns without an error; that it bears its name survives a power cut once its
// directory was synced too, which is left to the caller: one sync serves many.
// With an error nothing new lies at zipPath.
//
// The error is a *Refusal for what is wrong with the folder itself, wraps
// ErrChanged when somebody is still writing, is a *durable.MountError for what is
// mounted in the folder, and is the environment's otherwise.
func BuildPackage(ctx context.Context, root *os.Root, rules Rules, zipPath string) (SealedFolder, error) {
	dir, err := durable.Open(filepath.Dir(zipPath), rules.Hook)
	if err != nil {
		return SealedFolder{}, fmt.Errorf("open spool: %w", err)
	}
	defer func() { dir.Close() }() // the sync that counts is the caller's
	s, err := BuildPackageIn(ctx, root, rules, dir, filepath.Base(zipPath))
	if err == nil {
		s.Package.Path = zipPath
	}
	return s, err
}

// BuildPackageIn is Build for a ZIP of that name in a directory that is open already. The
// path of the package is its name.
func BuildPackageIn(ctx context.Context, root *os.Root, rules Rules, spool *durable.Dir, name string) (SealedFolder, error) {
	d, err := readFolder(ctx, root, rules)
	if err != nil {
		return SealedFolder{}, err
	}
	part, err := spool.Create(name, 0o600)
	if err != nil {
		return SealedFolder{}, fmt.Errorf("create ZIP: %w", err)
	}
	defer part.Discard()
	b, err := takeWorkspace(levels[d.rules.Compression])
	if err != nil {
		return SealedFolder{}, err
	}
	defer b.release()
	s, w, err := d.packFiles(ctx, b, part)
	if err != nil {
		return SealedFolder{}, err
	}
	sum, err := b.readBack(ctx, part, w, s.Files)
	if err != nil {
		return SealedFolder{}, err
	}
	if err := part.CommitWithoutDirSync(); err != nil {
		return SealedFolder{}, fmt.Errorf("finish ZIP: %w", err)
	}
	s.Package = archive.Package{Path: name, Size: w.size, SHA256: sum, MD5: w.md5}
	return s, nil
}

// ValidateFolder checks a folder as Build would, to the size of the ZIP, and writes
// nothing. Its errors are Build's.
func ValidateFolder(ctx context.Context, root *os.Root, rules Rules) (SealedFolder, error) {
	d, err := readFolder(ctx, root, rules)
	if err != nil {
		return SealedFolder{}, err
	}
	b, err := takeWorkspace(levels[d.rules.Compression])
	if err != nil {
		return SealedFolder{}, err
	}
	defer b.release()
	s, _, err := d.packFiles(ctx, b, io.Discard)
	return s, err
}

// readFolder reads the folder up to its files' content.
func readFolder(ctx context.Context, root *os.Root, rules Rules) (*droppedFolder, error) {
	rules, err := rules.validated()
	if err != nil {
		return nil, err
	}
	d, err := openFolder(ctx, root, rules)
	if err != nil {
		return nil, err
	}
	if len(d.faults) == 0 {
		return d, d.checkLargeFilesWhole()
	}
	return nil, d.refusalOrChanged()
}

// packFiles packs the folder's files into to and derives everything but the Package
// from what was read.
func (d *droppedFolder) packFiles(ctx context.Context, b *workspace, to io.Writer) (SealedFolder, written, error) {
	files, w, err := b.writeZIP(ctx, d.listing, to)
	if errors.Is(err, errTooLarge) {
		d.faults = append(d.faults, d.tooLargeFault("Packed, the folder is more than "+megabytes(d.rules.MaxSize)))
		return SealedFolder{}, w, d.refusalOrChanged()
	}
	if err != nil {
		return SealedFolder{}, w, err
	}
	for _, f := range slices.Concat(files, d.auxiliary) {
		d.faults = append(d.faults, d.lists.compareFile(f)...)
	}
	if err := d.refusalOrChanged(); err != nil {
		return SealedFolder{}, w, err
	}
	s := SealedFolder{ID: d.form.id, HasChosenID: !d.form.id.IsZero(), Document: d.form.doc, Metadata: d.form.doc.Metadata(),
		AsRead: d.form.asRead, Files: files, Junk: d.junk, Others: d.auxiliary, Content: archive.ContentDigest(files)}
	if !s.HasChosenID {
		s.ID = archive.DeriveID(d.rules.Vault, s.Content, archive.Sum(s.Metadata))
	}
	return s, w, nil
}
