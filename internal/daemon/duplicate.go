package daemon

import (
	"fmt"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// duplicateReason is what a person reads in a folder whose invoice was archived before: which folder that was, where it
// lies, and its numbers.
func (r *room) duplicateReason(e ledger.Entry) (string, error) {
	first, ok, err := r.d.ledger.Entry(e.DuplicateOf)
	if err != nil {
		return "", fmt.Errorf("find the first of a duplicate: %w", err)
	}
	if !ok {
		return "", fmt.Errorf("find the first of a duplicate: the ledger has no entry %s", e.DuplicateOf)
	}
	number, err := r.invoiceNumber(first)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "DUPLICATE. These files were archived on %s as %q. Nothing to do.\n\n", first.ArchivedAt.In(r.location()).Format("2 Jan 2006"), first.Folder)
	line := func(title, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-15s %s\n", title, sanitize.Text(value))
		}
	}
	line("Its folder", r.firstPlace(first))
	line("Invoice number", number)
	line("Archived", first.ArchivedAt.In(r.location()).Format("2 Jan 2006 15:04:05 MST"))
	line("Archive's no.", string(first.ArchivedRemote)+"   (bumId)")
	return b.String(), nil
}

// invoiceNumber is the number of a sealed entry; empty where its document is erased, or was never known.
func (r *room) invoiceNumber(e ledger.Entry) (string, error) {
	doc, ok, err := r.d.ledger.Document(e.Key)
	if err != nil || !ok || len(doc.Metadata) == 0 {
		return "", err
	}
	meta, err := archive.ParseMetadata(doc.Metadata)
	if err != nil {
		return "", fmt.Errorf("entry %s: %w", e.Key, err)
	}
	return meta.Number, nil
}

// firstPlace says where the folder of an archived entry is now, as people see it on the share.
func (r *room) firstPlace(first ledger.Entry) string {
	place := strings.ReplaceAll(first.Dest, "/", `\`)
	switch {
	case first.Source == ledger.Gone:
		return "was deleted after its grace"
	case first.Source == ledger.Moved:
		return "was moved to another place after its grace; IT knows where"
	case place == "":
		return ""
	case first.Drop != r.cfg.Name:
		return place + " (in the drop folder " + first.Drop + ")"
	}
	return place
}
