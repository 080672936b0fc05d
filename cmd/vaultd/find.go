package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
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
folder's name, the invoice number, the names and numbers of sender and recipient,
the bumId, the clientUUID or the key. Upper and lower case are the same, and so are
ü, ue and u. The newest come first, as they are found.

Of a rejected folder and of a duplicate it looks at what their sidecar says. That is
shown as read: nobody checked it.

Exit code 1 means that nothing was found. With --json each line is an object with the
keys of "vaultd list --json".`,
		Example: `  vaultd find Müller 4711
  vaultd find "Huber & Söhne" 2026-88 --limit 0
  vaultd find 46aa4caf-b373-11ed-bbfc-cfd535abf178 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(wordsOf(args)) == 0 {
				return usageError{errors.New("WORDS are missing: a name, an invoice number, whatever is remembered")}
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
	s := newSearch(words)
	n := 0
	err := v.ledger.EntriesNewestFirst(func(e ledger.Entry) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		hit, err := v.matchEntry(s, e)
		switch {
		case err != nil || hit == nil:
			return err
		case limit > 0 && n == limit:
			return errEnough
		}
		n++
		return a.printHit(v, *hit)
	})
	switch {
	case errors.Is(err, errEnough):
		fmt.Fprintf(a.stderr, "the newest %d; --limit 0 shows all\n", limit)
	case err != nil:
		return err
	case n == 0:
		return a.printNothingFound(v, s, words)
	}
	return nil
}

// printNothingFound searches what was not taken before it says that nothing was found.
func (a *app) printNothingFound(v view, s search, words []string) error {
	pending, err := v.findNotTaken(func(name string) bool { return s.wordsNotIn(name) == nil })
	if err := errors.Join(err, a.printNotTaken(v, pending)); err != nil {
		return err
	}
	if len(pending) > 0 {
		return failSilently(exitFailed)
	}
	return fail(exitFailed, fmt.Errorf("nothing was ever taken with %q", strings.Join(words, " ")), `try fewer words; what was not taken yet stands in "vaultd status"`)
}

// hit is an entry that was found, with what its document says.
type hit struct {
	entry ledger.Entry
	meta  archive.Document
	read  archive.AsRead // of a folder that was refused or is a duplicate
}

// matchEntry reads the document only where the entry alone does not decide.
func (v view) matchEntry(s search, e ledger.Entry) (*hit, error) {
	marks := []string{e.Key.String()}
	if !e.ID.IsZero() {
		marks = append(marks, e.ID.String(), e.FirstID.String())
	}
	for _, r := range e.Registrations {
		marks = append(marks, string(r.Ticket.Remote))
	}
	rest := s.wordsNotIn(e.Folder, e.Dest).wordsNotBeginning(marks)
	doc, _, err := v.ledger.Document(e.Key)
	if err != nil {
		return nil, err
	}
	h := &hit{entry: e, read: doc.AsRead}
	if h.meta, err = present.ParseMetadata(e, doc); err != nil {
		return nil, err
	}
	m, r := h.meta, h.read
	texts := []string{m.Number, m.SenderName, m.RecipientName, r.Number, r.SenderName, r.RecipientName, r.SenderIDs, r.RecipientIDs}
	texts = append(append(texts, m.SenderIDs...), m.RecipientIDs...)
	if rest.wordsNotIn(texts...) != nil {
		return nil, nil
	}
	return h, nil
}

// printHit answers the question that was asked in its first line.
func (a *app) printHit(v view, h hit) error {
	e, c := h.entry, v.Clock
	d, err := present.CompleteDetails(v.ledger, e, h.meta, h.read, v.Location)
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
	case e.State == ledger.Duplicate:
		fmt.Fprintf(p, "; %s\n", d.DescribeReason(c, e))
	case e.State == ledger.Rejected || e.State == ledger.Quarantined:
		fmt.Fprintf(p, "; taken %s: %s\n", c.Brief(e.SeenAt), present.SummarizeReason(e))
	default:
		fmt.Fprintf(p, "; taken %s, not archived yet\n", c.Brief(e.SeenAt))
	}
	for _, part := range []struct{ name, value string }{
		{"number", h.meta.Number}, {"date", strings.TrimSuffix(h.meta.Date, "T00:00:00Z")}, {"from", h.meta.SenderName}, {"to", h.meta.RecipientName},
	} {
		if part.value != "" {
			fmt.Fprintf(p, "  %-10s %s\n", part.name, sanitize.Text(part.value))
		}
	}
	for i, f := range present.AsReadFields(h.read) {
		if i == 0 {
			fmt.Fprintf(p, "  %s:\n", present.AsReadMark(e))
		}
		fmt.Fprintf(p, "    %-14s %s\n", f.Name, sanitize.Text(f.Value))
	}
	if e.Dest != "" {
		fmt.Fprintf(p, "  %-10s %s\n", "folder", present.DescribePlace(e))
	}
	fmt.Fprintf(p, "  %-10s %s\n", "key", e.Key)
	if _, err := a.stdout.Write(p.Bytes()); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}

// search is a list of words, each in the forms under which it may be written.
type search [][]string

func newSearch(words []string) search {
	var s search
	for _, w := range words {
		s = append(s, spellingsOf(w))
	}
	return s
}

// wordsNotIn gives the words that occur in none of the texts; nil when all do.
func (s search) wordsNotIn(texts ...string) search {
	if len(s) == 0 {
		return nil
	}
	var hay []string
	for _, t := range texts {
		hay = append(hay, spellingsOf(t)...)
	}
	var missing search
	for _, forms := range s {
		if !containsAny(forms, hay) {
			missing = append(missing, forms)
		}
	}
	return missing
}

func containsAny(forms, hay []string) bool {
	for _, h := range hay {
		for _, f := range forms {
			if strings.Contains(h, f) {
				return true
			}
		}
	}
	return false
}

// leastMark is how many characters of a key or number must be given, from its beginning.
const leastMark = 6

// wordsNotBeginning gives the words with which none of the keys and numbers begins. Words inside of them do not count: a key
// or UUID holds any short number somewhere.
func (s search) wordsNotBeginning(marks []string) search {
	var missing search
	for _, forms := range s {
		if !slices.ContainsFunc(marks, func(m string) bool {
			return len(forms[0]) >= min(leastMark, len(m)) && strings.HasPrefix(strings.ToLower(m), forms[0])
		}) {
			missing = append(missing, forms)
		}
	}
	return missing
}

var spelledOut = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")

// spellingsOf gives the forms of a text that count as the same: without case and marks, and with umlauts spelled out.
func spellingsOf(text string) []string {
	lower := cases.Fold().String(norm.NFC.String(text))
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(lower))
	if out := spelledOut.Replace(lower); out != plain {
		return []string{plain, out}
	}
	return []string{plain}
}
