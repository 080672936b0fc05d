package recovery

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"vaultd/internal/packager"
	"vaultd/internal/proof"
)

const (
	receiptName  = "_RECEIPT.json"
	deliveryName = "_DELIVERED.json"
	mostReceipt  = 16 << 20 // bytes
)

// evidence is what a folder proves with its note: an archived one with its
// receipt, a delivered one with its delivery note.
type evidence struct {
	key    archive.Key
	event  ledger.Recovered // opens an entry for the folder
	doc    ledger.Document
	note   string           // its kind, in words
	remote archive.RemoteID // that the note names
	number string           // of the invoice; of a receipt
	taken  time.Time        // when the document was seen first, or else archived

	hasChosenID bool   // its sidecar chose the identity
	unsigned    string // why the note counts as unsigned, in words; may be empty
	differs     string // how the files next to a receipt differ from its list, in words; may be empty
}

// badReceiptError says that a receipt or a delivery note cannot be believed.
type badReceiptError struct{ what string }

func (e *badReceiptError) Error() string { return e.what }

func newBadReceipt(format string, a ...any) error { return &badReceiptError{fmt.Sprintf(format, a...)} }

func isBadReceipt(err error) bool {
	_, is := errors.AsType[*badReceiptError](err)
	return is
}

// readEvidence reads the note of a folder, and compares the files beside it
// with what the note lists. A note that cannot be believed is a
// *badReceiptError; any other error is of the file system. The files of a
// folder of a later pass need not have been compared.
func (p *comparison) readEvidence(ctx context.Context, d Origin, l drop.PlacedFolder, kind drop.Kind, pass int) (ev evidence, err error) {
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	// Something is mounted over the folder: what lies there is not what was placed.
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return ev, newBadReceipt("%v", mount)
	}
	if err != nil {
		return ev, err
	}
	defer dir.Close() // read-only
	if ev, err = d.readNote(dir, kind, p.Environment, p.ReceiptKeys); err != nil || ev.passOf() > pass {
		return ev, err
	}
	r := &ev.event
	r.Route, r.Vault, r.Drop, r.Folder, r.Owner, r.Node, r.Dest = cmp.Or(d.Route, ledger.Vault), d.Vault, d.Name, path.Base(l.Path), l.Owner, ledger.Node(l.Inode), l.Path
	return ev, d.form().compareFiles(ctx, d, dir, &ev)
}

// readNote reads the note in a folder of one kind, and looks who signed it. An
// unsigned one says only what the folder holds: whether that is archived or
// delivered, and under which number, is for the archive or for a person to say.
func (d Origin) readNote(dir *durable.Dir, kind drop.Kind, environment string, keys []string) (ev evidence, err error) {
	name, parse := deliveryName, d.parseDelivery
	if kind == drop.Archived {
		name, parse = receiptName, d.parseReceipt
	}
	text, err := readNoteFile(dir, name)
	if err == nil {
		ev, err = parse(text, environment)
	}
	if err != nil {
		return ev, err
	}
	_, unsigned := proof.CheckSignature(text, keys)
	if unsigned == nil {
		return ev, nil
	}
	r := &ev.event
	ev.unsigned = unsigned.Error()
	ev.doc.FileOwners = nil // anybody could have named users in it
	r.Remote, r.SuccessRecord, r.PossibleDouble = "", nil, false
	r.SeenAt, r.RegisteredAt, r.UploadedAt, r.ArchivedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	if kind == drop.Archived {
		r.State, r.Cause = ledger.Packaged, ledger.Cause{Code: ledger.CauseByReceiptAlone, Text: fmt.Sprintf(
			"BY RECEIPT ALONE. That it is archived says the receipt in its folder alone, which %s. The archive has not confirmed it.", ev.unsigned)}
	} else {
		r.State, r.Cause = ledger.Quarantined, ledger.DeliveryUnknown("that it was delivered says the note in its folder alone, which "+ev.unsigned)
	}
	return ev, nil
}

// noted is what receipts and delivery notes have in common.
type noted struct {
	key, id, seen, registered, ended string
	remote                           archive.RemoteID
	files                            []proof.ReceiptFile
	sent                             proof.ReceiptZIP
	owners                           []uint32
}

// parse returns what a note proves, but for what its kind alone has, and when
// the document was archived or delivered.
func (n noted) parse(note string, state ledger.State) (ev evidence, ended time.Time, err error) {
	r := &ev.event
	var errs [5]error
	ev.key, errs[0] = archive.ParseKey(n.key)
	r.ID, errs[1] = archive.ParseID(n.id)
	r.Remote, errs[2] = archive.ParseRemoteID(string(n.remote))
	r.Package.SHA256, errs[3] = archive.ParseDigest(n.sent.SHA256)
	ended, errs[4] = time.Parse(time.RFC3339Nano, n.ended)
	err = errors.Join(errs[:]...)
	for _, f := range n.files {
		sum, bad := archive.ParseDigest(f.SHA256)
		err = errors.Join(err, bad)
		ev.doc.Files = append(ev.doc.Files, archive.File{Path: f.Path, Size: f.Size, SHA256: sum})
	}
	if n.sent.Size <= 0 || len(n.owners) > ledger.MaxFileOwners {
		err = errors.Join(err, errors.New("something is missing, or too much"))
	}
	r.SeenAt, _ = time.Parse(time.RFC3339Nano, n.seen) // the time of a step may be missing
	r.RegisteredAt, _ = time.Parse(time.RFC3339Nano, n.registered)
	// The salt of the lost ledger is not in the note. A new one makes digests
	// in new journal lines differ from the old ones.
	rand.Read(ev.doc.Salt[:]) // never fails: the runtime stops the process instead
	if ev.taken = r.SeenAt; ev.taken.IsZero() {
		ev.taken = ended
	}
	ev.note, r.State, r.Source, r.Package.Size, ev.remote, ev.doc.FileOwners = note, state, ledger.Kept, n.sent.Size, r.Remote, n.owners
	r.Seal = ev.doc.Seal(r.Package)
	return ev, ended, err
}

// readNoteFile reads a note of vaultd's in a folder. A missing or too large
// one, or one that is no file, is a *badReceiptError.
func readNoteFile(dir *durable.Dir, name string) ([]byte, error) {
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

// compareFolder compares the files of a folder with the receipt beside them.
func (d Origin) compareFolder(ctx context.Context, dir *durable.Dir, ev *evidence) error {
	s, err := packager.ValidateFolder(ctx, dir.Root(), d.Rules)
	switch reason, isDoubtful := explainUnreadable(err); {
	case isDoubtful, errors.Is(err, fs.ErrPermission):
		ev.differs = cmp.Or(reason, "it cannot be read")
		return nil
	case err != nil:
		return err
	}
	ev.useFolder(s)
	return nil
}

// explainUnreadable says why a folder is not believed to be what was sent.
// false: another fault, which may pass.
func explainUnreadable(err error) (why string, is bool) {
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return mount.Error(), true
	}
	if _, refused := errors.AsType[*packager.Refusal](err); refused || errors.Is(err, archive.ErrChanged) {
		return fmt.Sprintf("%.300v", err), true
	}
	return "", false
}
