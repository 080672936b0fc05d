package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
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
	"vaultd/internal/proof"
	"vaultd/internal/spool"
)

// A room is the conductor's packer and mover for its drop folder.
var (
	_ ingest.Packer = (*room)(nil)
	_ ingest.Mover  = (*room)(nil)
)

// Fingerprint implements ingest.Packer.
func (r *room) Fingerprint(e ledger.Entry) (archive.Digest, error) {
	f, done, err := r.hold()
	if err != nil {
		return archive.Digest{}, err
	}
	defer done()
	look, err := r.lookAt(f, e.Key)
	return look, r.rights(f, e, r.mounted(e.Key, "", err))
}

// Pack implements ingest.Packer.
func (r *room) Pack(ctx context.Context, e ledger.Entry) (ingest.Packed, error) {
	f, done, err := r.hold()
	if err != nil {
		return ingest.Packed{}, err
	}
	defer done()
	dir, _, err := f.OpenClaimed(e.Key)
	if err != nil {
		return ingest.Packed{}, r.mounted(e.Key, "", err)
	}
	defer dir.Close() // read-only
	// All of it is looked at before any of it is judged: a folder with a mount in it must not be refused, for then it would be returned.
	if err := dir.FindMount(); err != nil {
		return ingest.Packed{}, r.mounted(e.Key, claimPlace(e), err)
	}
	r.d.spool.BeginPackage(e.Key)
	defer r.d.spool.EndPackage(e.Key, e.Vault)
	s, err := packager.BuildPackage(ctx, dir.Root(), r.cfg.Rules, r.d.spool.Dir(), spool.PackageName(e.Key))
	if refusal, ok := errors.AsType[*packager.Refusal](err); ok {
		return ingest.Packed{}, &ingest.RefusedError{Cause: ledger.Cause{Code: slug(refusal.Faults[0].Brief), Text: refusal.Text()}, AsRead: refusal.AsRead}
	}
	if errors.Is(err, packager.ErrChanged) {
		return ingest.Packed{}, fmt.Errorf("%w: %w", ingest.ErrChanged, err)
	}
	if err != nil {
		r.distrust(err)
		return ingest.Packed{}, r.rights(f, e, r.mounted(e.Key, claimPlace(e), err))
	}
	s.Package.Path = r.d.spool.PackagePath(e.Key)
	doc := ledger.Document{Metadata: s.Metadata, Files: s.Files, ControlFiles: s.Others, Junk: s.Junk}
	rand.Read(doc.Salt[:]) // never fails: the runtime stops the process instead
	return ingest.Packed{Document: doc, AsRead: s.AsRead, Sealed: ledger.Sealed{
		ID: s.ID, IDFromSidecar: s.HasChosenID, Content: s.Content, Metadata: archive.Sum(s.Metadata), Package: s.Package, Seal: doc.Seal(s.Package),
		Number: s.Document.NumberDigest(e.Vault), StrangeDate: s.Document.HasStrangeDate(r.d.cfg.Now().Wall.In(r.location())),
	}}, nil
}

// claimPlace is where the claimed folder of an entry lies, relative to the drop folder.
func claimPlace(e ledger.Entry) string { return path.Join(".vaultd/claimed", e.Key.String(), e.Folder) }

// mounted says in words for IT that something is mounted in a folder; other errors stay what they are. rel is where the path of the
// mount begins, relative to the drop folder.
func (r *room) mounted(k archive.Key, rel string, err error) error {
	mount, is := errors.AsType[*durable.MountError](err)
	if !is {
		return err
	}
	return &ingest.MountedError{Text: fmt.Sprintf("something is mounted at %q. What lies there belongs to another place, so nothing of this folder is packed, moved, returned or removed. IT must unmount it; see vaultd why %s",
		filepath.Join(r.cfg.Path, rel, mount.Path), k)}
}

// mountedAt is mounted for what happens to the folder of an ended entry, between its claim and its place: a mount on what lies above that
// place stops every folder that lies there.
func (r *room) mountedAt(e ledger.Entry, err error) error {
	mount, is := errors.AsType[*durable.MountError](err)
	if !is || strings.HasPrefix(mount.Path, ".vaultd/") || e.Dest != "" && !strings.HasPrefix(e.Dest, mount.Path+"/") {
		return r.mounted(e.Key, "", err)
	}
	return &ingest.MountedError{Place: mount.Path, Text: fmt.Sprintf("something is mounted at %q. What lies there belongs to another place, so no folder is moved there or away from there. IT must unmount it; it goes on by itself then",
		filepath.Join(r.cfg.Path, mount.Path))}
}

// rights names what in a claimed folder may not be read, where that is why it failed.
func (r *room) rights(f *drop.Folder, e ledger.Entry, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	what := f.FindUnreadable(e.Key)
	if what == nil {
		return err // it was something of ours
	}
	if e.Cause.Code != ingest.Unreadable {
		r.d.cfg.Log.Error("claimed folder not packed", "drop", r.cfg.Name, "key", e.Key, "cause", ingest.Unreadable, "err", what)
	}
	return &ingest.UnreadableError{Text: what.Error() + ". IT must give the share's group the right to read it (docs/samba.md); it is tried again by itself"}
}

// slug makes a stable code of a few words.
func slug(words string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, words), "-")
}

// Spooled implements ingest.Packer.
func (r *room) Spooled(e ledger.Entry) (archive.Package, error) {
	return r.d.spool.FindPackage(e.Key, e.Package)
}

// Drop implements ingest.Packer.
func (r *room) Drop(e ledger.Entry) error { return r.d.spool.RemovePackage(e.Key, e.Vault) }

// Destination implements ingest.Mover.
func (r *room) Destination(e ledger.Entry, now time.Time) (string, error) {
	f, done, err := r.hold()
	if err != nil {
		return "", err
	}
	defer done()
	kind := drop.Archived
	switch e.State {
	case ledger.Rejected:
		kind = drop.Rejected
	case ledger.Duplicate:
		kind = drop.Duplicates
	}
	dest, err := f.ProposeDestination(kind, e.Folder, now.In(r.location()))
	return dest, r.mountedAt(e, err)
}

func (r *room) location() *time.Location {
	if r.d.cfg.Location == nil {
		return time.UTC
	}
	return r.d.cfg.Location
}

// Place implements ingest.Mover.
func (r *room) Place(ctx context.Context, e ledger.Entry, doc ledger.Document) error {
	f, done, err := r.hold()
	if err != nil {
		return err
	}
	defer done()
	differs, err := r.compareKept(ctx, f, e, doc)
	if err != nil {
		return r.mountedAt(e, err)
	}
	notes, err := r.notes(e, doc, differs)
	if err != nil {
		return err
	}
	err = f.PlaceFolder(claimed(e), e.Dest, notes...)
	if errors.Is(err, drop.ErrFolderLost) {
		err = r.placeFound(ctx, f, e, doc, notes)
	}
	switch {
	case errors.Is(err, drop.ErrDestinationTaken):
		return fmt.Errorf("%w: %w", ingest.ErrTaken, err)
	case errors.Is(err, durable.ErrSync):
		r.d.die(fmt.Errorf("drop %s: %w", r.cfg.Name, err))
	case err == nil && len(differs) > 0:
		// After a crash here the folder is compared again where it lies by then.
		return &ingest.RefusedError{Cause: differCause(differs)}
	}
	return r.mountedAt(e, err)
}

func claimed(e ledger.Entry) drop.ClaimedFolder {
	return drop.ClaimedFolder{Key: e.Key, Folder: e.Folder, Owner: e.Owner, Inode: drop.Inode(e.Node)}
}

// Dispose implements ingest.Mover.
func (r *room) Dispose(ctx context.Context, e ledger.Entry, doc ledger.Document) (string, error) {
	f, done, err := r.hold()
	if err != nil {
		return "", err
	}
	defer done()
	to, err := f.DisposeFolder(ctx, claimed(e), e.Dest, r.contents(doc))
	r.distrust(err)
	// A mount goes before all else that is wrong: the folder may lie in its claim, where nobody finds it, and must be looked at again.
	if _, mount := errors.AsType[*durable.MountError](err); mount {
		return "", r.mountedAt(e, err)
	}
	if stray, ok := errors.AsType[*drop.UnexpectedContentError](err); ok {
		return "", &ingest.RefusedError{Cause: ledger.Cause{Code: ledger.CauseSourceChanged, Text: stray.Error()}}
	}
	if errors.Is(err, drop.ErrFolderLost) {
		return "", &ingest.RefusedError{Cause: ledger.Cause{Code: "source-missing", Text: "somebody moved or removed the archived folder before it was due: " + err.Error()}}
	}
	return to, err
}

// distrust ends the process where nobody knows what is on disk: to try again on what
// the kernel has in memory would only look like a success.
func (r *room) distrust(err error) {
	if errors.Is(err, durable.ErrSync) {
		r.d.die(fmt.Errorf("drop %s: %w", r.cfg.Name, err))
	}
}

// notes returns what people are to read in the folder.
func (r *room) notes(e ledger.Entry, doc ledger.Document, differs []drop.Difference) ([]drop.NoteFile, error) {
	switch e.State {
	case ledger.Duplicate:
		text, err := r.duplicateReason(e)
		return []drop.NoteFile{drop.ReasonNote(text)}, err
	case ledger.Rejected:
		lines, err := r.unusual(e)
		if err != nil {
			return nil, fmt.Errorf("find the other one with an invoice number: %w", err)
		}
		text := r.reason(e)
		for _, line := range lines {
			text += "Look at this as well: " + line + ".\n"
		}
		return []drop.NoteFile{drop.ReasonNote(text)}, nil
	}
	receipt, err := proof.NewReceipt(r.d.cfg.Environment, e, doc, nil)
	if err != nil {
		return nil, err
	}
	for _, d := range differs {
		receipt.Differs = append(receipt.Differs, proof.ReceiptDifference{Path: d.Path, What: d.What})
	}
	return []drop.NoteFile{{Name: "_RECEIPT.json", Data: receipt.Encode()}, drop.ReceiptNote(r.receiptText(e, receipt))}, nil
}

// back is how every refusal of a folder ends; the place is told here, where it is known.
const back = "move this whole folder back"

// reason is what a person reads in a folder that came back.
func (r *room) reason(e ledger.Entry) string {
	text := strings.TrimRight(e.Cause.Text, "\n")
	switch {
	case e.InDoubt:
		return "CLOSED IN DOUBT. Nobody could tell whether this was archived. Ask IT before it is dropped again.\n" + text + "\n"
	case !strings.HasPrefix(text, "NOT ARCHIVED"):
		text = "NOT ARCHIVED. " + text + "\nPut it right, then " + back + "."
	}
	return strings.ReplaceAll(text, back, back+" to "+r.cfg.Name+" (where _STATUS.txt lies)") + "\n"
}

// receiptText is the receipt for a person who opens it with a double click.
func (r *room) receiptText(e ledger.Entry, rc proof.Receipt) string {
	var b strings.Builder
	if len(rc.Differs) == 0 {
		b.WriteString("ARCHIVED. This folder is in the archive; it stays here for your use.\n")
	} else {
		b.WriteString("ARCHIVED, BUT THIS FOLDER IS NOT WHAT WAS ARCHIVED. The files of the list below are in the archive. In this folder something changed after they were packed:\n")
		for _, d := range rc.Differs {
			fmt.Fprintf(&b, "  %s %s\n", d.Path, d.What)
		}
		b.WriteString("If the change belongs to the invoice, ask whoever made it, and drop a corrected invoice. This folder is never removed by itself.\n")
	}
	if r.d.cfg.Environment != "production" {
		b.WriteString("TEST, NO EVIDENCE: this was the test environment.\n")
	}
	fmt.Fprintf(&b, "\nInvoice number  %s\nArchived        %s\nArchive's no.   %s   (bumId)\nOur identity    %s   (clientUUID)\nVault           %s\nZIP             %s, SHA-256 %s\n\nFiles (%d)\n",
		rc.DocumentID, e.ArchivedAt.In(r.location()).Format("2 Jan 2006 15:04:05 MST"), rc.BumID, rc.ClientUUID, rc.Vault, many(rc.ZIP.Size, "byte", "bytes"), rc.ZIP.SHA256, len(rc.Files))
	for _, f := range rc.Files {
		fmt.Fprintf(&b, "  %-40s %16s  %s\n", f.Path, many(f.Size, "byte", "bytes"), f.SHA256)
	}
	return b.String()
}

// many counts a thing in words: "1 folder", "2 folders".
func many[N ~int | ~int64 | ~uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
