package dropwork

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

var _ ingest.Packer = (*Packer)(nil)

// Packer seals claimed folders of one drop into the spool, for the engine.
type Packer struct{ *Handle }

// Fingerprint implements ingest.Packer.
func (p *Packer) Fingerprint(e ledger.Entry) (archive.Digest, error) {
	f, done, err := p.HoldOpen()
	if err != nil {
		return archive.Digest{}, err
	}
	defer done()
	// This comes before the scan: a file that was closed in between was changed before it.
	if err := p.checkClaimClosed(f, e); err != nil {
		return archive.Digest{}, err
	}
	fingerprint, err := p.takeFingerprint(f, e.Key)
	return fingerprint, p.describeUnreadable(f, e, p.describeMount(e.Key, "", err))
}

// checkClaimClosed returns an [*ingest.OpenError] where a program may still
// write to a file of a claimed folder.
func (p *Packer) checkClaimClosed(f *drop.Folder, e ledger.Entry) error {
	dir, _, err := f.OpenClaimed(e.Key)
	if err != nil {
		return nil // the scan that follows says so
	}
	defer dir.Close() // read-only
	if file := p.findOpen(f, dir.Root(), "."); file != "" {
		return &ingest.OpenError{Path: file}
	}
	return nil
}

// Pack implements ingest.Packer.
func (p *Packer) Pack(ctx context.Context, e ledger.Entry) (ingest.Packed, error) {
	s, err := p.packClaimed(ctx, e)
	if err != nil {
		return ingest.Packed{}, err
	}
	s.Package.Path = p.shared.Spool.PackagePath(e.Route, e.Key)
	doc := ledger.Document{Metadata: s.Metadata, Files: s.Files, ControlFiles: s.Others, Junk: s.Junk, Remarks: s.Endings.Remarks(), FileOwners: ledger.OtherOwners(s.Owners, e.Owner)}
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	return ingest.Packed{Document: doc, AsRead: s.AsRead, Sealed: ledger.Sealed{
		ID: s.ID, IDFromSidecar: s.HasChosenID, Content: s.Content, Metadata: s.MetadataDigest, Package: s.Package, Seal: doc.Seal(s.Package),
		Number: s.Number, StrangeDate: s.Document.HasStrangeDate(p.shared.Now().Wall.In(p.shared.zone())), LooksCutOff: len(s.Endings.Short) > 0,
	}}, nil
}

// packClaimed opens the claimed folder of an entry, packs it into the spool,
// and books the package. It returns the errors that the engine expects of Pack.
func (p *Packer) packClaimed(ctx context.Context, e ledger.Entry) (s packager.Sealed, err error) {
	f, done, err := p.HoldOpen()
	if err != nil {
		return s, err
	}
	defer done()
	dir, _, err := f.OpenClaimed(e.Key)
	if err != nil {
		return s, p.describeMount(e.Key, "", err)
	}
	defer dir.Close() // read-only
	// This comes before any of it is judged: a folder with a mount in it must not be refused, for then it would be returned.
	if err := dir.FindMount(); err != nil {
		return s, p.describeMount(e.Key, claimPath(e), err)
	}
	queue := ledger.ServiceQueueOf(e)
	most := largestPackage(dir.Root())
	if err := p.shared.Spool.BeginPackage(e.Route, e.Key, queue, most); err != nil {
		return s, err
	}
	defer p.shared.Spool.EndPackage(e.Route, e.Key, queue, most)
	// A crash here leaves a half-made file, which the next start removes; the
	// entry is still to be packed.
	s, err = p.Settings.form().build(ctx, p.Settings, e, dir.Root(), p.shared.Spool.Dir())
	if refusal, ok := errors.AsType[*packager.Refusal](err); ok {
		files, owners := p.readRefused(ctx, dir.Root())
		return s, &ingest.RefusedError{Cause: ledger.Cause{Code: codeOf(refusal.Faults[0].Brief), Text: refusal.Text()},
			Known: ledger.Document{AsRead: refusal.AsRead, Files: files, FileOwners: ledger.OtherOwners(owners, e.Owner)}}
	}
	if err != nil {
		p.endOnSyncError(err)
		return s, p.describeUnreadable(f, e, p.describeMount(e.Key, claimPath(e), err))
	}
	return s, nil
}

// largestPackage returns how many bytes the package of a folder takes at most:
// its files and, for each, what a ZIP says of it. An unreadable file counts as
// zero bytes: packing it fails. An unreadable folder in it hides others: then
// that is as much as a package may have.
func largestPackage(root *os.Root) int64 {
	const perFile = 1 << 10
	size := int64(64 << 10) // the document, and the end of the ZIP
	err := durable.Walk(root, ".", archive.MaxPackage/perFile, func(_ string, d fs.DirEntry) error {
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			size += info.Size() + info.Size()>>10 + perFile
		}
		if size >= archive.MaxPackage {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil { // it ended early: there is enough already, or a folder that cannot be read
		return archive.MaxPackage
	}
	return size
}

// readRefused returns the files of a refused folder, by which it is recognised when
// it is dropped again, and their owners; none where they cannot be read.
func (p *Packer) readRefused(ctx context.Context, root *os.Root) (files []archive.File, owners []uint32) {
	t, err := p.Settings.form().readTraces(ctx, p.Settings, root)
	if err != nil {
		return nil, nil
	}
	if files, err = t.Files(ctx); err != nil {
		files = nil
	}
	return files, t.Owners()
}

// describeUnreadable names what in a claimed folder may not be read, where that is why it failed.
func (p *Packer) describeUnreadable(f *drop.Folder, e ledger.Entry, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	what := f.FindUnreadable(e.Key)
	if what == nil {
		return err // it was something of ours
	}
	if e.Cause.Code != ingest.Unreadable {
		p.shared.Log.Error("claimed folder not packed", "drop", p.Settings.Name, "key", e.Key, "cause", ingest.Unreadable, "err", what)
	}
	return &ingest.UnreadableError{Text: what.Error() + ". IT must give the share's group the right to read it (docs/samba.md); it is tried again by itself"}
}

// codeOf makes a stable code of a few words.
func codeOf(words string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, words), "-")
}

// FindPackage implements ingest.Packer.
func (p *Packer) FindPackage(e ledger.Entry) (archive.Package, error) {
	return p.shared.Spool.FindPackage(e.Route, e.Key, e.Package)
}

// CheckPackage implements ingest.Packer.
func (p *Packer) CheckPackage(ctx context.Context, e ledger.Entry) error {
	if _, err := p.FindPackage(e); err != nil {
		return err
	}
	whole, err := p.shared.Spool.HasDigest(ctx, e.Route, e.Key, e.Package, func(time.Duration) error { return nil })
	if err == nil && !whole {
		p.shared.Log.Error("a package in the spool is no longer what was sealed. Look at the disk of state_dir", "key", e.Key)
		err = fmt.Errorf("check package: it is no longer what was sealed: %w", fs.ErrNotExist)
	}
	return err
}

// RemovePackage implements ingest.Packer.
func (p *Packer) RemovePackage(e ledger.Entry) error {
	// After a crash here the package may still be there. A package that its entry still needs is used or made again; any other
	// one is removed by the count at the next start.
	return p.shared.Spool.RemovePackage(e.Route, e.Key, ledger.ServiceQueueOf(e))
}

// claimPath is where the claimed folder of an entry lies, relative to the drop folder.
func claimPath(e ledger.Entry) string { return path.Join(".vaultd/claimed", e.Key.String(), e.Folder) }

// describeMount says in words for IT that something is mounted in a folder; other errors stay what they are. rel is where the path of the
// mount begins, relative to the drop folder.
func (h *Handle) describeMount(k archive.Key, rel string, err error) error {
	mount, is := errors.AsType[*durable.MountError](err)
	if !is {
		return err
	}
	return &ingest.MountedError{Text: fmt.Sprintf("something is mounted at %q. What lies there belongs to another place, so nothing of this folder is packed, moved, returned or removed. IT must unmount it; see vaultd why %s",
		filepath.Join(h.Settings.Path, rel, mount.Path), k)}
}

// describeMountAt is describeMount for what happens to the folder of an ended entry, between its claim and its place: a mount on what lies above that
// place stops every folder that lies there.
func (h *Handle) describeMountAt(e ledger.Entry, err error) error {
	mount, is := errors.AsType[*durable.MountError](err)
	if !is || strings.HasPrefix(mount.Path, ".vaultd/") || e.Dest != "" && !strings.HasPrefix(e.Dest, mount.Path+"/") {
		return h.describeMount(e.Key, "", err)
	}
	return &ingest.MountedError{Place: mount.Path, Text: fmt.Sprintf("something is mounted at %q. What lies there belongs to another place, so no folder is moved there or away from there. IT must unmount it; it goes on by itself then",
		filepath.Join(h.Settings.Path, mount.Path))}
}
