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
		Short: "what proves that one folder is archived, or delivered",
		Long: `Prints the receipt of an archived folder: what was archived, under which numbers, when
the archive itself said so, and the digests of every file and of the ZIP as it was
sent. With --json it is the record that lies beside the kept folder as _RECEIPT.json,
with the archive's own answer as it came.

Of a delivered PDF it prints the delivery note: which bytes the store of the
accounts-payable system took, and when. With --json it is the record that lies beside the
kept PDF as _DELIVERED.json. Of a document that the business network delivered it prints
the same: to whom, how, and when.

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
	page, record, err := v.newEvidence(e)
	switch {
	case errors.Is(err, proof.ErrNoRecord):
		w := present.WordsOf(e.Route)
		return fail(exitFailed, fmt.Errorf("%q is not %s, so there is no %s: %s", e.Folder, w.End, w.Record, e.State), "see vaultd why "+e.Key.String())
	case err != nil:
		return err
	}
	out := page
	if a.json {
		out = record
	}
	if _, err := a.stdout.Write(out); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}

// newEvidence makes what proves the end of an entry, for a person and as the record that lies beside the kept folder: its receipt, or the
// delivery note of what was delivered. The error wraps [proof.ErrNoRecord] where there is neither.
func (v view) newEvidence(e ledger.Entry) (page, record []byte, err error) {
	if e.State != ledger.Delivered {
		r, err := v.newReceipt(e)
		if err != nil {
			return nil, nil, err
		}
		return receiptPage(v.Clock, e, r), proof.Sign(r.Encode(), v.ledger), nil
	}
	doc, _, err := v.ledger.Document(e.Key)
	if err != nil {
		return nil, nil, err
	}
	head := v.ledger.Head()
	note, err := proof.NewDelivery(v.ledger.Info().Environment, e, doc, &head)
	if err != nil {
		return nil, nil, err
	}
	note.Differs = listKeptDifferences(e)
	return deliveryPage(v.Clock, e, note), proof.Sign(note.Encode(), v.ledger), nil
}

// newReceipt makes the receipt of an entry. The error wraps [proof.ErrNoRecord]
// where there is none.
func (v view) newReceipt(e ledger.Entry) (proof.Receipt, error) {
	doc, _, err := v.ledger.Document(e.Key)
	if err != nil {
		return proof.Receipt{}, err
	}
	head := v.ledger.Head()
	r, err := proof.NewReceipt(v.ledger.Info().Environment, e, doc, &head)
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
	line("Request ids", present.DescribeRequests(r.Requests))
	line("Files also of", present.DescribeFileOwners(r.FileOwners))
	p.AddHeading(fmt.Sprintf("FILES (%d)", len(r.Files)))
	for _, f := range r.Files {
		fmt.Fprintf(p, "  %s\n    %s, SHA-256 %s\n", sanitize.Text(f.Path), present.FormatBytes(f.Size), f.SHA256)
	}
	p.AddHeading("THE ARCHIVE'S OWN WORDS")
	p.AddText(r.Record)
	return p.Bytes()
}

// deliveryPage is the delivery note for a person.
func deliveryPage(c present.Clock, e ledger.Entry, n proof.Delivery) []byte {
	p, words := &present.Page{}, present.WordsOf(e.Route).Notes
	fmt.Fprintf(p, "DELIVERY NOTE  %s%s\n", sanitize.Text(e.Folder), testMark(n.Environment != "production"))
	p.AddText(words.Page)
	p.AddHeading("DELIVERED " + c.Exact(e.CompletedAt()))
	line := func(title, text string) {
		if text != "" {
			fmt.Fprintf(p, "  %-15s %s\n", title, text)
		}
	}
	line("To", sanitize.Text(n.Receiver()))
	line("Means", present.DescribeMeans(e))
	line("Recipient", present.DescribeRecipient(e))
	line(words.NumberTitle, sanitize.Text(string(n.BumID))+" (bumId)")
	line("Our identity", n.ID)
	line("Key", n.Key)
	if n.Double {
		line("Note", words.Double)
	}
	for _, d := range n.Differs {
		line(words.Kept, sanitize.Text(d.What))
	}
	p.AddHeading("TIMES")
	line("Taken", c.Exact(e.SeenAt))
	line("Registered", c.Exact(e.RegisteredAt))
	line("Delivered", c.Exact(e.CompletedAt())+", by the clock of this machine")
	p.AddHeading("SENT")
	line(words.Sent, fmt.Sprintf("%s, SHA-256 %s", present.FormatBytes(n.Sent.Size), n.Sent.SHA256))
	if n.Body != "" {
		line("Body", "SHA-256 "+n.Body)
	}
	line("Request ids", present.DescribeRequests(n.Requests))
	line("Files also of", present.DescribeFileOwners(n.FileOwners))
	if e.Contradicted {
		line("LATER", present.WordsOf(e.Route).LaterWord)
	}
	return p.Bytes()
}
