package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const foundAtMost = 20 // that are printed unless more are asked for

func (a *app) findCommand() *cobra.Command {
	limit := foundAtMost
	c := &cobra.Command{
		Use:   "find WORDS",
		Short: "was it archived, when, and under which number?",
		Long: `Finds folders by what people remember: every word must occur somewhere in the
folder's name, the invoice number, the buyer's reference, the trading partner, the
values of additional parameters, the names and numbers of sender and recipient, the
addresses that a PDF was sent with, the bumId, the clientUUID or the key. Upper and
lower case are the same, and so are ü, ue and u. The newest come first, as they are
found.

Of a rejected folder and of a duplicate it looks at what their sidecar says. That is
shown as read: nobody checked it.

What lies in a drop folder under such a name and is not taken yet comes last.

Exit code 1 means that nothing that was taken has all these words there, and 75 that
the answer may lack documents, with the reason. With --json each line is an object
with the keys of "vaultd list --json"; what is not taken yet has the state "not-taken"
and the keys folder, drop, state, reason, detail, since and scannedAt.`,
		Example: `  vaultd find Müller 4711
  vaultd find "Huber & Söhne" 2026-88 --limit 0
  vaultd find 46aa4caf-b373-11ed-bbfc-cfd535abf178 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			words := wordsOf(args)
			switch {
			case len(words) == 0:
				return usageError{errors.New("WORDS are missing: part of a folder's name, an invoice number or the name of a sender or recipient, such as: vaultd find Müller 4711")}
			case !slices.ContainsFunc(words, func(w string) bool { return strings.Trim(w, "*?%") != "" }):
				return usageError{fmt.Errorf("%s stands for nothing: a word is found in the middle of a name or number too, such as: vaultd find Müller 4711; vaultd list shows all", strings.Join(words, " "))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 {
				return usageError{errors.New("--limit is negative; 0 shows all")}
			}
			return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runFind(ctx, v, wordsOf(args), limit) })
		},
	}
	c.Flags().IntVar(&limit, "limit", foundAtMost, "at most so many; 0: all")
	return c
}

// wordsOf splits what was asked for into words.
func wordsOf(args []string) []string { return strings.Fields(strings.Join(args, " ")) }

func (a *app) runFind(ctx context.Context, v view, words []string, limit int) error {
	q := catalog.NewQuery(words)
	c, release := v.openCatalog()
	n := 0
	err := c.Search(ctx, q, archive.Key{}, a.tellLongSearch, func(h catalog.Hit) error {
		if limit > 0 && n == limit {
			return errEnough
		}
		n++
		return a.printHit(v, h)
	})
	if _, lacks := errors.AsType[*catalog.IncompleteError](err); lacks && n == 0 && len(words) == 1 {
		err = errors.Join(a.printNumbered(v, words[0]), err)
	}
	enough := errors.Is(err, errEnough)
	if enough {
		err = nil
	}
	if err := errors.Join(err, release()); err != nil {
		return err
	}
	if enough {
		fmt.Fprintf(a.stderr, "the newest %d; --limit 0 shows all\n", limit)
	}
	// The limit is no limit for these: they are few, and none of them is in the archive.
	pending, err := v.findNotTaken(q.OccursIn)
	if err := errors.Join(err, a.printNotTaken(v, pending)); err != nil || n > 0 {
		return err
	}
	if len(pending) > 0 {
		return failSilently(exitFailed)
	}
	return fail(exitFailed, fmt.Errorf("nothing that was taken has %q in its names, numbers, references or additional parameters", strings.Join(words, " ")), `try fewer words; what was not taken yet stands in "vaultd status"`)
}

// printNumbered prints the entries with a key, clientUUID or bumId, which the
// ledger finds without the catalog.
func (a *app) printNumbered(v view, number string) error {
	es, err := v.findByNumber(number)
	for _, e := range es {
		doc, _, failed := v.ledger.Document(e.Key)
		hit, unread := catalog.NewQuery(nil).Match(e, doc)
		if err := errors.Join(failed, unread); err != nil {
			return err
		}
		if err := a.printHit(v, *hit); err != nil {
			return err
		}
	}
	return err
}

// describePut says that what is told of the place of a kept folder is of then: a
// search looks into no drop folder.
func describePut(e ledger.Entry) string {
	if e.Source != ledger.Kept || e.IsSourceMissing() {
		return ""
	}
	return ", where vaultd put it"
}

// printHit answers the question that was asked in its first line.
func (a *app) printHit(v view, h catalog.Hit) error {
	e, c := h.Entry, v.Clock
	d, err := present.CompleteDetails(v.ledger, e, h.Meta, ledger.Document{AsRead: h.Read}, v.Location)
	if err == nil && d.Recipient == "" { // whom a PDF went to stands in its document alone
		d, err = present.ReadDetails(v.ledger, e, v.Location)
	}
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, present.NewListRow(c, e, d))
	}
	p := &present.Page{}
	fmt.Fprintf(p, "%s (%s)  %s", sanitize.Text(e.Folder), sanitize.Text(e.Drop), present.StateText(e))
	switch {
	case e.State == ledger.Archived:
		fmt.Fprintf(p, " %s, bumId %s\n", c.Exact(e.ArchivedAt), sanitize.Text(string(e.ArchivedRemote)))
	case e.State == ledger.Delivered:
		fmt.Fprintf(p, " %s, bumId %s\n", c.Exact(e.CompletedAt()), sanitize.Text(string(present.RemoteNumber(e))))
	case e.State == ledger.Duplicate:
		fmt.Fprintf(p, "; %s\n", d.DescribeReason(c, e))
	case e.State == ledger.Rejected || e.State == ledger.Quarantined:
		fmt.Fprintf(p, "; taken %s: %s\n", c.Brief(e.SeenAt), present.SummarizeReason(e))
	default:
		fmt.Fprintf(p, "; taken %s, %s\n", c.Brief(e.SeenAt), present.WordsOf(e.Route).NotEndedYet)
	}
	for _, part := range []struct{ name, value string }{
		{"number", h.Meta.Number}, {"date", strings.TrimSuffix(h.Meta.Date, "T00:00:00Z")}, {"from", h.Meta.SenderName}, {"to", h.Meta.RecipientName},
	} {
		if part.value != "" {
			fmt.Fprintf(p, "  %-10s %s\n", part.name, sanitize.Text(part.value))
		}
	}
	for i, f := range present.AsReadFields(h.Read) {
		if i == 0 {
			fmt.Fprintf(p, "  %s:\n", present.AsReadMark(e))
		}
		fmt.Fprintf(p, "    %-14s %s\n", f.Name, sanitize.Text(f.Value))
	}
	if e.Dest != "" {
		fmt.Fprintf(p, "  %-10s %s\n", "folder", present.DescribePlace(e)+describePut(e))
	}
	fmt.Fprintf(p, "  %-10s %s\n", "key", e.Key)
	if _, err := a.stdout.Write(p.Bytes()); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}
