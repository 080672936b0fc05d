package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
)

func (a *app) receiptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "receipt X",
		Short: "what proves that one folder is archived",
		Long: `Prints the receipt of an archived folder: what was archived, under which numbers, when
the archive itself said so, and the digests of every file and of the ZIP as it was
sent. With --json it is the record that lies beside the kept folder as _RECEIPT.json,
with the archive's own answer as it came.

A receipt of a test environment says so: it is no evidence.`,
		Example: `  vaultd receipt "Müller 4711"
  vaultd receipt 46aa4caf-b373-11ed-bbfc-cfd535abf178 --json > receipt.json`,
		Args: expectArgs(xMeans),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runReceipt(ctx, v, args[0]) })
		},
	}
}

func (a *app) runReceipt(ctx context.Context, v view, x string) error {
	e, err := a.findOne(ctx, v, x)
	if err != nil {
		return err
	}
	r, err := v.newReceipt(e)
	if errors.Is(err, proof.ErrNotArchived) {
		return fail(exitFailed, fmt.Errorf("%q is not archived, so there is no receipt: %s", e.Folder, e.State), "see vaultd why "+e.Key.String())
	}
	if err != nil {
		return err
	}
	out := r.Encode()
	if !a.json {
		out = receiptPage(v.Clock, e, r)
	}
	if _, err := a.stdout.Write(out); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}

// newReceipt makes the receipt of an entry. The error wraps [proof.ErrNotArchived] where there is none.
func (v view) newReceipt(e ledger.Entry) (proof.Receipt, error) {
	doc, _, err := v.ledger.Document(e.Key)
	if err != nil {
		return proof.Receipt{}, err
	}
	r, err := proof.NewReceipt(v.ledger.Info().Environment, e, doc, nil)
	r.Differs = listKeptDifferences(e)
	return r, err
}

// listKeptDifferences returns how a kept folder differs from what was archived, as the ledger recorded it. The receipt in the folder
// names each file.
func listKeptDifferences(e ledger.Entry) []proof.ReceiptDifference {
	if !e.SourceDiffers() {
		return nil
	}
	return []proof.ReceiptDifference{{Path: ".", What: e.Cause.Text}}
}

// receiptPage is the receipt for a person.
func receiptPage(c present.Clock, e ledger.Entry, r proof.Receipt) []byte {
	p := &present.Page{}
	fmt.Fprintf(p, "RECEIPT  %s%s\n", sanitize.Text(e.Folder), testMark(r.Environment != "production"))
	p.AddHeading("ARCHIVED " + c.Exact(e.ArchivedAt))
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(p, "  %-15s %s\n", title, text)
		}
	}
	line("Invoice number", sanitize.Text(r.DocumentID))
	line("Archive's no.", sanitize.Text(string(r.BumID))+" (bumId)")
	line("Our identity", r.ClientUUID+" (clientUUID)")
	line("Vault", sanitize.Text(string(r.Vault)))
	line("Key", r.Key)
	if r.Double {
		line("Note", "another registration may hold the same content")
	}
	for _, d := range r.Differs {
		line("KEPT FOLDER", sanitize.Text(d.What))
	}
	p.AddHeading("TIMES")
	line("Taken", c.Exact(e.SeenAt))
	line("Registered", c.Exact(e.RegisteredAt))
	line("Uploaded", c.Exact(e.UploadedAt))
	line("Archived", c.Exact(e.ArchivedAt)+", the archive's own time")
	p.AddHeading("SENT")
	line("ZIP", fmt.Sprintf("%s, SHA-256 %s", present.FormatBytes(r.ZIP.Size), r.ZIP.SHA256))
	p.AddHeading(fmt.Sprintf("FILES (%d)", len(r.Files)))
	for _, f := range r.Files {
		fmt.Fprintf(p, "  %s\n    %s, SHA-256 %s\n", sanitize.Text(f.Path), present.FormatBytes(f.Size), f.SHA256)
	}
	p.AddHeading("THE ARCHIVE'S OWN WORDS")
	p.AddText(r.Record)
	return p.Bytes()
}
