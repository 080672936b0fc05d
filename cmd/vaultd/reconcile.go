package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/recovery"
	"vaultd/internal/sanitize"
)

func (a *app) reconcileCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "hold the ledger against the archive; ends safe mode",
		Long: `Reads the archive's status list and its whole index, for every configured vault, and
holds the ledger against them: every bumId that they show, with every registration that
vaultd ever made. It sends no document. It may be run at any time. Without safe mode it
tells what differs, and an entry learns of content that it had given up: a document that
the archive holds more than once is flagged, and named until a person closes it. The
metadata that the index gives is compared with what was sent, field by field.

In safe mode it also tells the entries what the archive knows of them, makes an entry
for each document that was archived while the ledger was not there, and looks where
the folders lie. Once everything was read and every drop folder was there, safe mode
ends. Entries that the archive's answers do not speak for stay in doubt, are never sent
meanwhile, and are asked about again by themselves; it says until when.

An index that gives fewer documents than it says there are may have ended early.
Nothing is concluded from it: no document is called missing, entries in doubt stay so,
and safe mode stays. Run it again. Where the service never tells the right number, and
the provider confirms that, --accept-index lets this index count as complete, in this
comparison alone. It names the numbers that reconcile shows; FOUND is "unknown" where
the index tells none. Who accepted it stands in the journal for ever, and in every
audit.

Exit code 3 means that an index was not read to its end or that safe mode stays, 4
differences, 69 that the archive cannot be reached.`,
		Example: `  vaultd reconcile
  vaultd reconcile --reason "restored from the backup of Friday"
  vaultd reconcile --json | jq '.vaults[].missing'
  vaultd reconcile --accept-index 898/900 --reason "provider: two were deleted, ticket 4711"`,
		Args: expectArgs(),
	}
	reason := reasonFlag(c)
	accept := c.Flags().StringArray("accept-index", nil, "let the incomplete index of a vault count as complete: `[VAULT=]READ/FOUND`; repeat for several")
	c.RunE = func(c *cobra.Command, args []string) error {
		check := checkReason
		if len(*accept) > 0 {
			check = requireReason
		}
		if err := check(c, *reason); err != nil {
			return err
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error {
			accepted, err := acceptedIndexes(v.cfg, *accept)
			if err != nil {
				return err
			}
			return a.runReconcile(ctx, v, operator.Person{UID: a.uid, Reason: strings.TrimSpace(*reason)}, accepted)
		})
	}
	return c
}

func (a *app) runReconcile(ctx context.Context, v view, p operator.Person, accepted []operator.AcceptedIndex) error {
	found, err := a.compareEntries(ctx, v, p, accepted)
	if errors.Is(err, daemon.ErrComparing) {
		return fail(exitTemporary, err, "try again in a moment")
	}
	if err != nil {
		return err
	}
	if a.json {
		err = writeJSON(a.stdout, asReconciled(found))
	} else {
		a.tellReconciled(found, v)
	}
	switch n := found.Differences(); {
	case err != nil:
		return err
	case !found.Complete(): // even where something differs: there may be more of it
		return fail(exitPerson, errors.New("an index was not read to its end: nothing is concluded from it"),
			"run it again; if it lasts, show the provider the request that is named above (docs/recovery.md#an-index-that-is-not-complete)")
	case n > 0:
		return fail(exitDifferences, fmt.Errorf("%s found", present.FormatCount(n, "difference", "differences")), "see each of them above; the archive's provider can tell more about a bumId")
	case len(found.Why) > 0 && found.Safe:
		return fail(exitPerson, errors.New("safe mode stays"), "mend what is named above and run it again")
	}
	return nil
}

// compareEntries compares the ledger with the archive: inside the daemon when one runs, else in this process.
func (a *app) compareEntries(ctx context.Context, v view, p operator.Person, accepted []operator.AcceptedIndex) (found operator.Compared, err error) {
	if a.inside != nil {
		return a.inside.Reconcile(ctx, p, accepted...)
	}
	if err := checkBinding(v.ledger.Info(), v.cfg); err != nil {
		return found, err
	}
	dc, err := a.daemonConfig(v.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return found, err
	}
	c := operator.Comparison{Ledger: v.ledger, Verify: v.ledger.Verify, Archive: dc.Archive, Accept: accepted, Grace: dc.Grace, Now: dc.Now}
	doubt, err := operator.LastDoubt(v.ledger)
	if err != nil {
		return found, err
	}
	if doubt != nil { // only then the folders matter
		drops, done, err := daemon.OpenDrops(dc, v.ledger)
		if err != nil {
			return found, err
		}
		c.Drops = drops
		found, err = operator.Reconcile(ctx, c, p)
		return found, errors.Join(err, done())
	}
	for _, d := range dc.Drops {
		c.Drops = append(c.Drops, recovery.Origin{Name: d.Name, Route: d.Route, Vault: d.Vault, Rules: d.Rules, Retention: d.Retention})
	}
	return operator.Reconcile(ctx, c, p)
}

// reconciled is the object of "reconcile --json".
type reconciled struct {
	Safe    bool             `json:"safeMode"`     // still
	Left    bool             `json:"safeModeLeft"` // by this
	Why     []string         `json:"safeModeWhy"`  // why it stays
	Cleared int              `json:"cleared"`      // entries that are not in doubt any more
	Doubted int              `json:"inDoubt"`      // entries that still are
	Waiting []waitingJSON    `json:"waiting"`      // the first thousand of them
	Folders foldersJSON      `json:"folders"`      // in safe mode
	Vaults  []reconciledJSON `json:"vaults"`
}

type waitingJSON struct {
	Key    string     `json:"key"`
	Drop   string     `json:"drop"`
	Folder string     `json:"folder"`
	State  string     `json:"state"`
	Why    string     `json:"why"`
	Until  *time.Time `json:"until"`
}

type foldersJSON struct {
	Receipts   findingsJSON `json:"archivedByReceipt"`
	Alone      findingsJSON `json:"byReceiptAlone"`
	Claimed    findingsJSON `json:"taken"`
	Differ     findingsJSON `json:"differFromReceipt"`
	Unbelieved findingsJSON `json:"withoutReceipt"`
	Returned   findingsJSON `json:"returned"`
	Strange    findingsJSON `json:"leftAlone"`
}

type reconciledJSON struct {
	Vault   string       `json:"vault"`
	Listed  int          `json:"listed"`  // registrations in the status list
	Reaches bool         `json:"reaches"` // it shows every one since the ledger's last line
	Indexed int          `json:"indexed"` // documents that the index gave, each counted once
	Index   indexJSON    `json:"index"`
	Found   findingsJSON `json:"found"`
	TakenIn findingsJSON `json:"takenIn"`
	Strange findingsJSON `json:"notInLedger"`
	Missing findingsJSON `json:"missing"`
	Ended   int          `json:"retentionEnded"` // not in the index any more, and their retention is over

	Double    findingsJSON `json:"archivedTwice"`
	Uncounted findingsJSON `json:"notCounted"` // given up by the ledger, and the archive has content

	Differing   findingsJSON   `json:"metadataDiffers"`     // one for each field
	Added       map[string]int `json:"metadataAdded"`       // documents, by the field that was not sent: no difference
	Compared    int            `json:"metadataCompared"`    // documents
	NotCompared int            `json:"metadataNotCompared"` // documents whose metadata the ledger does not have
}

// indexJSON tells how much of an index was read.
type indexJSON struct {
	Read     int    `json:"read"`
	Found    *int   `json:"found"` // as the index tells it; null: it does not
	Complete bool   `json:"complete"`
	Accepted bool   `json:"accepted"` // not complete, and a person lets it count as complete
	Why      string `json:"why"`      // it is not complete
	Request  string `json:"requestId"`
}

func asIndex(r recovery.VaultReport) indexJSON {
	i := indexJSON{r.Index.Read, nil, r.Index.Complete, r.Accepted, r.Index.Why, r.Index.Request}
	if r.Index.Found != operator.FoundUnknown {
		i.Found = &r.Index.Found
	}
	return i
}

type findingsJSON struct {
	Count int           `json:"count"`
	Named []findingJSON `json:"named"` // the first thousand
}

type findingJSON struct {
	Key    string `json:"key,omitempty"`
	BumID  string `json:"bumId,omitempty"`
	Number string `json:"documentId,omitempty"`
	Text   string `json:"text"`

	Field  string  `json:"field,omitempty"`  // of the metadata, in metadataDiffers
	Ours   *string `json:"ours,omitempty"`   // what was sent; may be empty
	Theirs *string `json:"theirs,omitempty"` // what the index gives
}

func asFindings(f recovery.Findings) findingsJSON {
	out := findingsJSON{Count: f.Count, Named: []findingJSON{}}
	for _, n := range f.Named {
		one := findingJSON{BumID: string(n.Remote), Number: n.Number, Text: n.Text}
		if !n.Key.IsZero() {
			one.Key = n.Key.String()
		}
		if n.Field != "" {
			one.Field, one.Ours, one.Theirs = n.Field, &n.Ours, &n.Theirs
		}
		out.Named = append(out.Named, one)
	}
	return out
}

func asReconciled(c operator.Compared) reconciled {
	f := c.Folders
	out := reconciled{Safe: c.Safe && !c.Left, Left: c.Left, Why: append([]string{}, c.Why...), Cleared: c.Cleared, Doubted: c.Waits, Waiting: []waitingJSON{},
		Folders: foldersJSON{asFindings(f.Receipts), asFindings(f.Alone), asFindings(f.Claimed), asFindings(f.Differ), asFindings(f.Unbelieved), asFindings(f.Returned), asFindings(f.Strange)}, Vaults: []reconciledJSON{}}
	for _, w := range c.Waiting {
		out.Waiting = append(out.Waiting, waitingJSON{w.Key.String(), w.Drop, w.Folder, w.State.String(), w.Why, present.TimeOrNil(w.Until)})
	}
	for _, r := range c.Vaults {
		added := r.Added
		if added == nil {
			added = map[string]int{}
		}
		out.Vaults = append(out.Vaults, reconciledJSON{string(r.Vault), r.Listed, r.Reaches, r.Indexed, asIndex(r),
			asFindings(r.Found), asFindings(r.TakenIn), asFindings(r.Strange), asFindings(r.Missing), r.Ended, asFindings(r.Double), asFindings(r.Uncounted),
			asFindings(r.Differing), added, r.Compared, r.NotCompared})
	}
	return out
}

func (a *app) tellReconciled(c operator.Compared, v view) {
	a.tellFindings("RECEIPT    ", c.Folders.Receipts)
	a.tellFindings(aloneLabel, c.Folders.Alone)
	a.tellFindings("TAKEN      ", c.Folders.Claimed)
	a.tellFindings("DIFFERS    ", c.Folders.Differ)
	a.tellFindings("NO RECEIPT ", c.Folders.Unbelieved)
	a.tellFindings("RETURNED   ", c.Folders.Returned)
	a.tellFindings("LEFT ALONE ", c.Folders.Strange)
	for _, r := range c.Vaults {
		a.tellVault(r)
	}
	if c.Cleared > 0 || c.Waits > 0 {
		fmt.Fprintf(a.stdout, "IN DOUBT   %d no more, %d still\n", c.Cleared, c.Waits)
	}
	for _, w := range c.Waiting[:min(len(c.Waiting), shown)] {
		until := ""
		if !w.Until.IsZero() {
			until = ", until " + v.Brief(w.Until)
		}
		fmt.Fprintf(a.stdout, "  %s %s: %s%s\n", w.Key, sanitize.FirstLine(w.Folder, 60), sanitize.FirstLine(w.Why, 160), until)
	}
	label := "STAYS     "
	if !c.Safe {
		label = "NOTE      "
	}
	for _, why := range c.Why {
		fmt.Fprintf(a.stdout, "%s %s\n", label, sanitize.FirstLine(why, 400))
	}
	switch {
	case c.Left:
		fmt.Fprintln(a.stdout, "RESULT     safe mode is over: vaultd takes and sends again")
	case c.Safe:
		fmt.Fprintln(a.stdout, "RESULT     SAFE MODE stays")
	case !c.Complete():
		fmt.Fprintln(a.stdout, "RESULT     NOT EVERYTHING was compared")
	case c.Differences() == 0:
		fmt.Fprintln(a.stdout, "RESULT     nothing differs")
	}
}

// tellVault tells what was found in one vault.
func (a *app) tellVault(r recovery.VaultReport) {
	fmt.Fprintf(a.stdout, "VAULT      %s: %d archived in the index, %d in the status list\n", sanitize.Text(string(r.Vault)), r.Indexed, r.Listed)
	switch {
	case r.Accepted:
		fmt.Fprintf(a.stdout, "  ACCEPTED   the index gave %s; it counts as complete by your decision\n", r.DescribeIndex())
	case !r.Index.Complete:
		fmt.Fprintf(a.stdout, "  INCOMPLETE the index gave %s; %s\n", r.DescribeIndex(), r.Index.Why)
	}
	a.tellFindings("  found      ", r.Found)
	a.tellFindings("  taken in   ", r.TakenIn)
	a.tellFindings("  UNKNOWN    ", r.Strange)
	a.tellFindings("  MISSING    ", r.Missing)
	if r.Ended > 0 {
		fmt.Fprintf(a.stdout, "  ended      %s: not in the index any more, and the retention is over\n", present.FormatCount(r.Ended, "document", "documents"))
	}
	a.tellFindings("  TWICE      ", r.Double)
	a.tellFindings("  GIVEN UP   ", r.Uncounted)
	a.tellFindings("  DIFFERS    ", r.Differing)
	if len(r.Added) > 0 {
		var fields []string
		for _, name := range slices.Sorted(maps.Keys(r.Added)) {
			fields = append(fields, fmt.Sprintf("%s of %d", name, r.Added[name]))
		}
		fmt.Fprintf(a.stdout, "  added      %s documents: the index gives what was not sent, which is no difference\n", strings.Join(fields, ", "))
	}
	if r.NotCompared > 0 {
		fmt.Fprintf(a.stdout, "  not compared %s: the metadata that was sent is not in this ledger\n", present.FormatCount(r.NotCompared, "document", "documents"))
	}
}

// shown is how many findings of one kind the text output names; --json has more.
const shown = 20

func (a *app) tellFindings(label string, f recovery.Findings) {
	if f.Count == 0 {
		return
	}
	fmt.Fprintf(a.stdout, "%s%d\n", label, f.Count)
	for _, n := range f.Named[:min(len(f.Named), shown)] {
		id := string(n.Remote)
		if n.Number != "" {
			id += " " + n.Number
		}
		if !n.Key.IsZero() {
			id += " " + n.Key.String()
		}
		fmt.Fprintf(a.stdout, "    %s: %s\n", sanitize.FirstLine(id, 160), sanitize.FirstLine(n.Text, 240))
	}
	if f.Count > shown {
		fmt.Fprintf(a.stdout, "    and %d more; see --json\n", f.Count-shown)
	}
}

// acceptedIndexes parses the values of --accept-index, each as [VAULT=]READ/FOUND. The vault may be left out when all drops
// have the same one.
func acceptedIndexes(c config.Config, texts []string) (all []operator.AcceptedIndex, err error) {
	var vaults []string
	for _, d := range c.VaultDrops() {
		if !slices.Contains(vaults, d.Vault) {
			vaults = append(vaults, d.Vault)
		}
	}
	for _, text := range texts {
		one, err := acceptedIndex(text, vaults)
		if err != nil {
			return nil, usageError{fmt.Errorf("--accept-index %q: %w", sanitize.Text(text), err)}
		}
		if slices.ContainsFunc(all, func(a operator.AcceptedIndex) bool { return a.Vault == one.Vault }) {
			return nil, usageError{fmt.Errorf("--accept-index %q: vault %s is named twice", sanitize.Text(text), sanitize.Text(string(one.Vault)))}
		}
		all = append(all, one)
	}
	return all, nil
}

func acceptedIndex(text string, vaults []string) (a operator.AcceptedIndex, err error) {
	numbers, vault := text, ""
	if i := strings.LastIndexByte(text, '='); i >= 0 {
		vault, numbers = text[:i], text[i+1:]
	} else if len(vaults) == 1 {
		vault = vaults[0]
	}
	switch {
	case vault == "":
		return a, fmt.Errorf("say of which vault, as in VAULT=898/900; configured are %s", sanitize.Text(strings.Join(vaults, ", ")))
	case !slices.Contains(vaults, vault):
		return a, fmt.Errorf("no drop is configured for vault %s", sanitize.Text(vault))
	}
	read, found, ok := strings.Cut(numbers, "/")
	a = operator.AcceptedIndex{Vault: archive.VaultID(vault), Found: operator.FoundUnknown}
	a.Read, err = strconv.Atoi(read)
	if err == nil && found != "unknown" {
		a.Found, err = strconv.Atoi(found)
		ok = ok && a.Found >= 0
	}
	if err != nil || !ok || a.Read < 0 {
		return a, fmt.Errorf("give both numbers as reconcile shows them, as in 898/900, or 898/unknown where the index does not say how many there are")
	}
	return a, nil
}
