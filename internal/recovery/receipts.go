package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/proof"
)

// CheckInterruptedDisposal returns the event that quarantines a claimed folder without an entry that holds its own receipt and
// has lost files: it was archived, and its removal was interrupted. It must not be sent as a new invoice. Nil: the folder is no
// such one.
func (d Origin) CheckInterruptedDisposal(ctx context.Context, key archive.Key, environment string) ([]ledger.Event, error) {
	if d.Vault == "" {
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
	// The folder stays here until an operator decides, whoever wrote the receipt.
	ev, err := d.readNote(dir, drop.Archived, environment, nil)
	if err == nil {
		err = d.form().compareFiles(ctx, d, dir, &ev)
	}
	switch {
	case isBadReceipt(err):
		return nil, nil
	case err != nil || ev.key != key || ev.differs == "":
		return nil, err
	}
	return []ledger.Event{ledger.SentToQuarantine{Cause: ledger.Cause{Code: "archived-before", Text: fmt.Sprintf(
		"It is archived as %s, by its %s; here lies what its removal left when it was interrupted. Nothing of it is to be sent: close it, and take the rest away.",
		ev.remote, receiptName)}}}, nil
}

// useFolder takes over what the folder says, where its files are those that the receipt lists.
func (ev *evidence) useFolder(s packager.Sealed) {
	to := &ev.event
	isIdentity := to.ID == s.ID
	for later := range s.ID.Later(s.HasChosenID) {
		isIdentity = isIdentity || to.ID == later
	}
	switch {
	case s.Content != to.Content:
		ev.differs = "its files are not those that the receipt lists"
	case !isIdentity:
		ev.differs = "its sidecar is not the one that was archived"
	default:
		ev.hasChosenID, to.Metadata = s.HasChosenID, s.MetadataDigest
		to.Number, to.StrangeDate, to.LooksCutOff = s.Document.NumberDigest(to.Vault), s.Document.HasStrangeDate(ev.taken), len(s.Endings.Short) > 0
		ev.doc.Metadata, ev.doc.Files, ev.doc.ControlFiles, ev.doc.Junk, ev.doc.Remarks = s.Metadata, s.Files, s.Others, s.Junk, s.Endings.Remarks()
	}
}

// parseReceipt returns what a receipt proves that this vaultd wrote; unknown
// fields at its end are a later version's.
func (d Origin) parseReceipt(text []byte, environment string) (ev evidence, err error) {
	r, err := proof.ParseReceipt(text)
	if err != nil {
		return ev, newBadReceipt("its receipt is not readable: %v", err)
	}
	ev, archived, err := noted{r.Key, r.ClientUUID, r.Seen, r.Registered, r.Archived, r.BumID, r.Files, r.ZIP, r.FileOwners}.parse("receipt", ledger.Archived)
	switch {
	case r.Environment != environment:
		return ev, newBadReceipt("its receipt is of the %s environment", r.Environment)
	case err != nil || len(r.Files) == 0 || r.Record == "":
		return ev, newBadReceipt("its receipt lacks something, or is not as vaultd wrote it")
	case r.Vault != d.Vault:
		return ev, newBadReceipt("its receipt is of vault %s, the drop sends to %s", r.Vault, d.Vault)
	}
	to := &ev.event
	to.UploadedAt, _ = time.Parse(time.RFC3339Nano, r.Uploaded) // may be missing
	to.ArchivedAt, to.SuccessRecord, to.PossibleDouble = archived, []byte(r.Record), r.Double
	ev.number, ev.doc.Metadata = r.DocumentID, archive.Document{Number: r.DocumentID}.Metadata()
	to.Metadata, to.Content = archive.Sum(ev.doc.Metadata), archive.ContentDigest(ev.doc.Files)
	return ev, nil
}
