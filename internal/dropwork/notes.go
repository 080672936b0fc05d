package dropwork

import (
	"fmt"
	"strings"

	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
)

// composeNotes returns what people are to read in the folder.
func (m *Mover) composeNotes(e ledger.Entry, doc ledger.Document, differs []drop.Difference) ([]drop.NoteFile, error) {
	switch e.State {
	case ledger.Duplicate:
		text, err := m.duplicateText(e)
		return []drop.NoteFile{drop.ReasonNote(text)}, err
	case ledger.Rejected:
		lines, err := m.DescribeUnusual(e)
		if err != nil {
			return nil, fmt.Errorf("find the other one with an invoice number: %w", err)
		}
		text := m.rejectionText(e)
		for _, line := range lines {
			text += "Look at this as well: " + line + ".\n"
		}
		return []drop.NoteFile{drop.ReasonNote(text)}, nil
	}
	if e.State == ledger.Delivered {
		return m.deliveryNotes(e, doc, differs)
	}
	head := m.shared.Ledger.Head()
	receipt, err := proof.NewReceipt(m.shared.Environment, e, doc, &head)
	if err != nil {
		return nil, err
	}
	for _, d := range differs {
		receipt.Differs = append(receipt.Differs, proof.ReceiptDifference{Path: d.Path, What: d.What})
	}
	return []drop.NoteFile{{Name: "_RECEIPT.json", Data: proof.Sign(receipt.Encode(), m.shared.Ledger)}, drop.ReceiptNote(m.receiptText(e, receipt))}, nil
}

// deliveryNotes are the delivery note and its text for people, for a folder whose document was delivered.
func (m *Mover) deliveryNotes(e ledger.Entry, doc ledger.Document, differs []drop.Difference) ([]drop.NoteFile, error) {
	head := m.shared.Ledger.Head()
	note, err := proof.NewDelivery(m.shared.Environment, e, doc, &head)
	if err != nil {
		return nil, err
	}
	for _, d := range differs {
		note.Differs = append(note.Differs, proof.ReceiptDifference{Path: d.Path, What: d.What})
	}
	record := drop.NoteFile{Name: "_DELIVERED.json", Data: proof.Sign(note.Encode(), m.shared.Ledger)}
	return []drop.NoteFile{record, drop.DeliveryNote(m.deliveryText(e, note))}, nil
}

// deliveryText is the delivery note for a person who opens it with a double click.
func (m *Mover) deliveryText(e ledger.Entry, note proof.Delivery) string {
	var b strings.Builder
	words := present.WordsOf(e.Route).Notes
	b.WriteString(words.Delivered + "\n")
	if note.Rejected != "" {
		fmt.Fprintf(&b, "REJECTED LATER: %s. Ask IT before you do anything.\n", present.WordsOf(e.Route).LaterWord)
	}
	if note.Double {
		b.WriteString(words.Twice + "\n")
	}
	if len(note.Differs) > 0 {
		b.WriteString("THIS FOLDER IS NOT WHAT WAS SENT. Something changed after it was packed:\n")
		for _, d := range note.Differs {
			fmt.Fprintf(&b, "  %s %s\n", d.Path, d.What)
		}
		b.WriteString("This folder is never removed by itself.\n")
	}
	if m.shared.Environment != "production" {
		b.WriteString("TEST, NO EVIDENCE: this was the test environment.\n")
	}
	fmt.Fprintf(&b, "\n%-15s %s\nTo              %s\n%-15s %s   (bumId)\n", words.When, e.CompletedAt().In(m.shared.zone()).Format("2 Jan 2006 15:04:05 MST"),
		sanitize.Text(note.Receiver()), words.Number, note.BumID)
	if how := present.DescribeMeans(e); how != "" {
		fmt.Fprintf(&b, "Means           %s\n", how)
	}
	for _, f := range note.Files {
		fmt.Fprintf(&b, "File            %s, %s, SHA-256 %s\n", f.Path, present.FormatBytes(f.Size), f.SHA256)
	}
	if checked := present.DescribeValidation(e); checked != "" {
		b.WriteString("\n" + checked + "\n")
	}
	return b.String()
}

// moveBack and movePDFBack are how every refusal of a folder, and of a PDF, ends. The place is added here, where it is known.
const (
	moveBack    = "move this whole folder back"
	movePDFBack = "move the PDF back"
)

// rejectionText is what a person reads in a folder that came back.
func (m *Mover) rejectionText(e ledger.Entry) string {
	text, words := strings.TrimRight(present.CauseText(e), "\n"), present.WordsOf(e.Route).Notes
	if e.InDoubt {
		return ledger.ClosedInDoubt + ". " + words.InDoubt + " Ask IT before it is dropped again.\n" + text + "\n"
	}
	if !present.IsOwnRefusal(text) {
		begin := words.Refused
		if words.Undone != "" && !e.UploadedAt.IsZero() {
			begin = words.Undone // the service had it: that it was not sent would be wrong
		}
		text = strings.TrimRight(begin+". "+text+"\n"+words.Remedy, "\n")
	}
	if checked := present.DescribeValidation(e); checked != "" {
		text += "\n" + checked
	}
	where := " to " + m.Settings.Name + " (where _STATUS.txt lies)"
	return strings.NewReplacer(moveBack, moveBack+where, movePDFBack, movePDFBack+where).Replace(text) + "\n"
}

// receiptText is the receipt for a person who opens it with a double click.
func (m *Mover) receiptText(e ledger.Entry, rc proof.Receipt) string {
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
	if m.shared.Environment != "production" {
		b.WriteString("TEST, NO EVIDENCE: this was the test environment.\n")
	}
	fmt.Fprintf(&b, "\nInvoice number  %s\nArchived        %s\nArchive's no.   %s   (bumId)\nOur identity    %s   (clientUUID)\nVault           %s\nZIP             %s, SHA-256 %s\n\nFiles (%d)\n",
		rc.DocumentID, e.ArchivedAt.In(m.shared.zone()).Format("2 Jan 2006 15:04:05 MST"), rc.BumID, rc.ClientUUID, rc.Vault, present.FormatBytes(rc.ZIP.Size), rc.ZIP.SHA256, len(rc.Files))
	for _, f := range rc.Files {
		fmt.Fprintf(&b, "  %-40s %16s  %s\n", f.Path, present.FormatBytes(f.Size), f.SHA256)
	}
	return b.String()
}

// duplicateText is what a person reads in a folder whose invoice was archived before: which folder that was, where it
// lies, and its numbers.
func (m *Mover) duplicateText(e ledger.Entry) (string, error) {
	first, ok, err := m.shared.Ledger.Entry(e.DuplicateOf)
	if err != nil {
		return "", fmt.Errorf("find the first of a duplicate: %w", err)
	}
	if !ok {
		return "", fmt.Errorf("find the first of a duplicate: the ledger has no entry %s", e.DuplicateOf)
	}
	if first.State == ledger.Delivered {
		return fmt.Sprintf("ALREADY SENT on %s as %q. Nothing to do.\n\nIts folder       %s\n", first.CompletedAt().In(m.shared.zone()).Format("2 Jan 2006"), first.Folder, sanitize.Text(m.describePlace(first))), nil
	}
	metadata, _, err := present.ReadMetadata(m.shared.Ledger, first)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "DUPLICATE. These files were archived on %s as %q. Nothing to do.\n\n", first.ArchivedAt.In(m.shared.zone()).Format("2 Jan 2006"), first.Folder)
	line := func(title, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-15s %s\n", title, sanitize.Text(value))
		}
	}
	line("Its folder", m.describePlace(first))
	line("Invoice number", metadata.Number)
	line("Archived", first.ArchivedAt.In(m.shared.zone()).Format("2 Jan 2006 15:04:05 MST"))
	line("Archive's no.", string(first.ArchivedRemote)+"   (bumId)")
	return b.String(), nil
}

// describePlace says where the folder of an archived entry was put, as people see it on the share.
func (m *Mover) describePlace(first ledger.Entry) string {
	place := strings.ReplaceAll(first.Dest, "/", `\`)
	switch {
	case first.Source == ledger.Gone:
		return "was deleted after its grace"
	case first.Source == ledger.Moved:
		return "was moved to another place after its grace; IT knows where"
	case first.IsSourceMissing():
		return "is not in its place any more; ask IT"
	case place == "":
		return ""
	case first.Drop != m.Settings.Name:
		return place + " (in the drop folder " + first.Drop + ")"
	}
	return place
}

// DescribeUnusual says in a few words what a person should look at.
func (h *Handle) DescribeUnusual(e ledger.Entry) (words []string, err error) {
	if !e.SameNumber.IsZero() {
		other, ok, err := h.shared.Ledger.Entry(e.SameNumber)
		if err != nil {
			return nil, err
		}
		text := "same invoice number as another folder"
		if ok {
			text = "same invoice number, sender and date"
			if e.SameContent == e.SameNumber {
				text = "same invoice number, sender, date and files, with other metadata,"
			}
			text = fmt.Sprintf("%s as %q", text, other.Folder)
		}
		if !other.ArchivedAt.IsZero() {
			text += ", archived " + other.ArchivedAt.In(h.shared.zone()).Format("2 Jan 2006")
		}
		words = append(words, text)
	}
	if e.CutOff == ledger.CutOffFound {
		words = append(words, "a file looks cut off")
	}
	if e.StrangeDate {
		words = append(words, "document date is before 1990, in the future, or another day here than in UTC")
	}
	return words, nil
}
