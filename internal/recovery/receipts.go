package recovery

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
)

const (
	receiptName = "_RECEIPT.json"
	mostReceipt = 16 << 20 // bytes
)

// evidence is what an archived folder and its receipt prove.
type evidence struct {
	key     archive.Key
	sealed  ledger.Sealed
	doc     ledger.Document
	receipt proof.Receipt
	at      struct{ seen, registered, uploaded, archived time.Time }

	unsigned string // why the receipt counts as unsigned, in words; may be empty
	differs  string // how the files next to the receipt differ from its list, in words; may be empty
}

// badReceiptError says that a receipt cannot be believed.
type badReceiptError struct{ what string }

func (e *badReceiptError) Error() string { return e.what }

func newBadReceipt(format string, a ...any) error { return &badReceiptError{fmt.Sprintf(format, a...)} }

// readEvidence reads the receipt of an archived folder, and compares the files
// beside it with what the receipt lists. A receipt that cannot be believed is a
// *badReceiptError; any other error is of the file system. isForNow is false
// where the folder is one of the second pass.
func (p *comparison) readEvidence(ctx context.Context, d Drop, l drop.PlacedFolder) (ev evidence, isForNow bool, err error) {
	dir, err := d.Folder.OpenPlaced(l.Path, l.Inode)
	// Something is mounted over the folder: what lies there is not what was archived.
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return ev, false, newBadReceipt("%v", mount)
	}
	if err != nil {
		return ev, false, err
	}
	defer dir.Close() // read-only
	if ev, err = readReceipt(dir, p.Environment, p.ReceiptKeys); err != nil {
		return ev, false, err
	}
	if ev.unsigned == "" || !p.first {
		err = d.compareFiles(ctx, dir, &ev)
	}
	if p.first && err == nil && (ev.unsigned != "" || ev.differs != "") {
		p.later[l.Inode] = true
		return ev, false, nil
	}
	return ev, err == nil, err
}

// readReceipt reads the receipt in a folder, and looks who signed it.
func readReceipt(dir *durable.Dir, environment string, keys []string) (ev evidence, err error) {
	text, err := readNote(dir, receiptName)
	if err != nil {
		return ev, err
	}
	if ev, err = parseReceipt(text, environment); err != nil {
		return ev, err
	}
	if ev.unsigned, err = explainUnsigned(text, keys, ev.receipt.Encode()); err != nil {
		return ev, newBadReceipt("its receipt %v", err)
	}
	if ev.unsigned == "" { // anybody could have named users in another one
		ev.doc.FileOwners = ev.receipt.FileOwners
	}
	return ev, nil
}

// explainUnsigned says why a note counts as unsigned; empty: this ledger signed
// it. An unsigned note must have the form in which vaultd wrote it.
func explainUnsigned(text []byte, keys []string, asWritten []byte) (why string, err error) {
	_, err = proof.CheckSignature(text, keys)
	switch {
	case err == nil:
		return "", nil
	case !errors.Is(err, proof.ErrUnsigned):
		return err.Error(), nil
	}
	if !proof.HasWrittenForm(text, asWritten) {
		return "", errors.New("is not as vaultd wrote it, and has no signature")
	}
	return err.Error(), nil
}

// compareFiles compares the files next to a receipt with what it lists.
func (d Drop) compareFiles(ctx context.Context, dir *durable.Dir, ev *evidence) error {
	if ev.receipt.Vault != d.Vault {
		return newBadReceipt("its receipt is of vault %s, the drop sends to %s", ev.receipt.Vault, d.Vault)
	}
	// The receipt alone is not believed: the files must give the digests that it lists.
	s, err := packager.ValidateFolder(ctx, dir.Root(), d.Rules)
	if mount, is := errors.AsType[*durable.MountError](err); is {
		ev.differs = mount.Error()
		return nil
	}
	if _, refused := errors.AsType[*packager.Refusal](err); refused || errors.Is(err, packager.ErrChanged) || errors.Is(err, fs.ErrPermission) {
		ev.differs = "it would not be taken as it lies there now"
		return nil
	}
	if err != nil {
		return err
	}
	ev.useFolder(s)
	return nil
}

// CheckInterruptedDisposal returns the event that quarantines a claimed folder without an entry that holds its own receipt and
// has lost files: it was archived, and its removal was interrupted. It must not be sent as a new invoice. Nil: the folder is no
// such one.
func (d Drop) CheckInterruptedDisposal(ctx context.Context, key archive.Key, environment string) ([]ledger.Event, error) {
	if !d.Route.IsAsked() {
		return nil, nil // it is quarantined anyway: nobody can be asked whether it was delivered
	}
	dir, _, err := d.Folder.OpenClaimed(key)
	if _, mount := errors.AsType[*durable.MountError](err); mount {
		// The pack step quarantines a folder with a mount in it, so nothing of it is sent.
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	// Whoever wrote the receipt: the folder stays here until an operator
	// decides.
	ev, err := readReceipt(dir, environment, nil)
	if err == nil {
		err = d.compareFiles(ctx, dir, &ev)
	}
	switch {
	case isBadReceipt(err):
		return nil, nil
	case err != nil || ev.key != key || ev.differs == "":
		return nil, err
	}
	return []ledger.Event{ledger.SentToQuarantine{Cause: ledger.Cause{Code: "archived-before", Text: fmt.Sprintf(
		"It is archived as %s, by its %s; here lies what its removal left when it was interrupted. Nothing of it is to be sent: close it, and take the rest away.",
		ev.receipt.BumID, receiptName)}}}, nil
}

// useFolder takes over what the folder says, where its files are those that the receipt lists.
func (ev *evidence) useFolder(s packager.SealedFolder) {
	isIdentity := ev.sealed.ID == s.ID
	for later := range s.ID.Later(s.HasChosenID) {
		isIdentity = isIdentity || ev.sealed.ID == later
	}
	switch {
	case s.Content != ev.sealed.Content:
		ev.differs = "its files are not those that the receipt lists"
	case !isIdentity:
		ev.differs = "its sidecar is not the one that was archived"
	default:
		ev.sealed.IDFromSidecar, ev.sealed.Metadata = s.HasChosenID, archive.Sum(s.Metadata)
		taken := ev.at.seen
		if taken.IsZero() {
			taken = ev.at.archived
		}
		ev.sealed.Number, ev.sealed.StrangeDate = s.Document.NumberDigest(ev.receipt.Vault), s.Document.HasStrangeDate(taken)
		ev.sealed.LooksCutOff = len(s.Endings.Short) > 0
		ev.doc.Metadata, ev.doc.Files, ev.doc.ControlFiles, ev.doc.Junk, ev.doc.Remarks = s.Metadata, s.Files, s.Others, s.Junk, s.Endings.Remarks()
	}
}

// parseReceipt reads a receipt that this vaultd wrote; unknown fields at its end are a later version's.
func parseReceipt(text []byte, environment string) (ev evidence, err error) {
	if ev.receipt, err = proof.ParseReceipt(text); err != nil {
		return ev, newBadReceipt("its receipt is not readable: %v", err)
	}
	r := ev.receipt
	var errs [6]error
	ev.key, errs[0] = archive.ParseKey(r.Key)
	ev.sealed.ID, errs[1] = archive.ParseID(r.ClientUUID)
	ev.receipt.BumID, errs[2] = archive.ParseRemoteID(string(r.BumID))
	ev.sealed.Package.SHA256, errs[3] = archive.ParseDigest(r.ZIP.SHA256)
	ev.sealed.Package.Size = r.ZIP.Size
	ev.at.archived, errs[4] = time.Parse(time.RFC3339Nano, r.Archived)
	for _, f := range r.Files {
		sum, err := archive.ParseDigest(f.SHA256)
		errs[5] = errors.Join(errs[5], err)
		ev.doc.Files = append(ev.doc.Files, archive.File{Path: f.Path, Size: f.Size, SHA256: sum})
	}
	switch {
	case r.Environment != environment:
		return ev, newBadReceipt("its receipt is of the %s environment", r.Environment)
	case errors.Join(errs[:]...) != nil || len(r.Files) == 0 || len(r.FileOwners) > ledger.MaxFileOwners || r.ZIP.Size <= 0 || r.Record == "":
		return ev, newBadReceipt("its receipt lacks something, or is not as vaultd wrote it")
	}
	if what := contradictRecord(r, ev.at.archived); what != "" {
		return ev, newBadReceipt("its receipt contradicts itself: %s", what)
	}
	for to, s := range map[*time.Time]string{&ev.at.seen: r.Seen, &ev.at.registered: r.Registered, &ev.at.uploaded: r.Uploaded} {
		*to, _ = time.Parse(time.RFC3339Nano, s) // the time of a step may be missing
	}
	// The salt of the lost ledger is not in the receipt. A new one makes digests in new journal lines differ from the old ones.
	rand.Read(ev.doc.Salt[:]) // never fails: the runtime stops the process instead
	meta := archive.Document{Number: r.DocumentID}
	ev.doc.Metadata = meta.Metadata()
	ev.sealed.Metadata, ev.sealed.Content = archive.Sum(ev.doc.Metadata), archive.ContentDigest(ev.doc.Files)
	ev.sealed.Seal = ev.doc.Seal(ev.sealed.Package)
	return ev, nil
}

// contradictRecord compares the archive's answer in a receipt with the
// receipt's own fields, and returns in words the first contradiction; empty if
// they agree. A field that the answer leaves out, or an answer that was too
// long to be kept whole, counts as agreeing.
func contradictRecord(r proof.Receipt, archived time.Time) string {
	f, err := apicall.ReadFields([]byte(r.Record), "bumId", "bumid", "clientUUID", "documentId", "status", "lastUpdated")
	if errors.Is(err, apicall.ErrTwice) {
		return "the archive's answer in it gives a field twice"
	}
	if err != nil {
		return ""
	}
	status, clientUUID := f.Text("status"), ""
	if id, err := archive.ParseID(f.Text("clientUUID")); err == nil {
		clientUUID = id.String()
	}
	for _, x := range []struct{ what, answer, receipt string }{
		{"bumId", cmp.Or(f.Text("bumId"), f.Text("bumid")), string(r.BumID)}, {"clientUUID", clientUUID, r.ClientUUID}, {"documentId", f.Text("documentId"), r.DocumentID},
	} {
		if x.answer != "" && x.answer != x.receipt {
			return fmt.Sprintf("the archive's answer in it is about %s %.100q, the receipt about %.100q", x.what, x.answer, x.receipt)
		}
	}
	switch updated := f.Time("lastUpdated"); {
	case status != "" && status != archivedWord:
		return fmt.Sprintf("the archive's answer in it says %.100q", status)
	case status != "" && !updated.IsZero() && !updated.Equal(archived):
		return fmt.Sprintf("the archive's answer in it is of %s, the receipt of %s", updated.UTC().Format(time.RFC3339), r.Archived)
	}
	return ""
}

// archivedWord is the archive's word for a document that is archived.
const archivedWord = "ArchivingSuccessful"

// recoveredEvent makes the event that opens an entry for the folder. An
// unsigned receipt says only what the folder holds: whether that is archived,
// and under which number, is for the archive to say.
func (ev evidence) recoveredEvent(d Drop, l drop.PlacedFolder) ledger.Recovered {
	r := ev.receipt
	if ev.unsigned != "" {
		return ledger.Recovered{
			Route: cmp.Or(d.Route, ledger.Vault), Vault: d.Vault, Drop: d.Name, Folder: path.Base(l.Path), Owner: l.Owner, Node: ledger.Node(l.Inode),
			State: ledger.Packaged, Source: ledger.Kept, Dest: l.Path, ID: ev.sealed.ID, Content: ev.sealed.Content, Metadata: ev.sealed.Metadata,
			Package: ev.sealed.Package, Seal: ev.sealed.Seal, Number: ev.sealed.Number, StrangeDate: ev.sealed.StrangeDate, LooksCutOff: ev.sealed.LooksCutOff,
			Cause: ledger.Cause{Code: ledger.CauseByReceiptAlone, Text: fmt.Sprintf(
				"BY RECEIPT ALONE. That it is archived says the receipt in its folder alone, which %s. The archive has not confirmed it.", ev.unsigned)},
		}
	}
	return ledger.Recovered{
		Route: cmp.Or(d.Route, ledger.Vault), Vault: d.Vault, Drop: d.Name, Folder: path.Base(l.Path), Owner: l.Owner, Node: ledger.Node(l.Inode),
		State: ledger.Archived, Source: ledger.Kept, Dest: l.Path, ID: ev.sealed.ID, Content: ev.sealed.Content, Metadata: ev.sealed.Metadata,
		Package: ev.sealed.Package, Seal: ev.sealed.Seal, Number: ev.sealed.Number, StrangeDate: ev.sealed.StrangeDate, LooksCutOff: ev.sealed.LooksCutOff,
		Remote: r.BumID, SuccessRecord: []byte(r.Record), PossibleDouble: r.Double,
		SeenAt: ev.at.seen, RegisteredAt: ev.at.registered, UploadedAt: ev.at.uploaded, ArchivedAt: ev.at.archived,
	}
}
