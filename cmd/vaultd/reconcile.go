package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/daemon"
	"vaultd/internal/recovery"
)

func (a *app) reconcileCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reconcile",
		Short: "hold the ledger against the archive; ends safe mode",
		Long: `Reads the archive's status list and its whole index, for every configured vault, and
holds the ledger against them. It sends no document. It may be run at any time; without
safe mode it changes nothing and only tells what differs.

In safe mode it also tells the entries what the archive knows of them, makes an entry
for each document that was archived while the ledger was not there, and looks where
the folders lie. Once everything was read and every drop folder was there, safe mode
ends. Entries that the archive's answers do not speak for stay in doubt, are never sent
meanwhile, and are asked about again by themselves; it says until when.

Exit code 4 means differences, 69 that the archive cannot be reached.`,
		Example: `  vaultd reconcile
  vaultd reconcile --reason "restored from the backup of Friday"
  vaultd reconcile --json | jq '.vaults[].missing'`,
		Args: takes(),
	}
	reason := reasonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkReason(c, *reason, false); err != nil {
			return err
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.reconcile(ctx, v, *reason) })
	}
	return c
}

func (a *app) reconcile(ctx context.Context, v view, reason string) error {
	p := daemon.Person{UID: a.uid, Reason: reason}
	found, err := a.compare(ctx, v, p)
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
	case n > 0:
		return fail(exitDifferences, fmt.Errorf("%s found", many(n, "difference", "differences")), "see each of them above; the archive's provider can tell more about a bumId")
	case len(found.Why) > 0 && found.Safe:
		return fail(exitPerson, errors.New("safe mode stays"), "mend what is named above and run it again")
	}
	return nil
}

// compare holds the ledger against the archive, inside the daemon or beside none.
func (a *app) compare(ctx context.Context, v view, p daemon.Person) (found daemon.Compared, err error) {
	if a.inside != nil {
		return a.inside.Reconcile(ctx, p)
	}
	dc, err := a.daemonConfig(v.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return found, err
	}
	c := daemon.Comparison{Ledger: v.ledger, Archive: dc.Archive, Grace: dc.Grace, Now: dc.Now}
	doubt, err := daemon.InDoubt(v.ledger)
	if err != nil {
		return found, err
	}
	if doubt { // only then the folders matter
		drops, done, err := daemon.OpenDrops(dc, v.ledger)
		if err != nil {
			return found, err
		}
		c.Drops = drops
		found, err = daemon.Reconcile(ctx, c, p)
		return found, errors.Join(err, done())
	}
	for _, d := range dc.Drops {
		c.Drops = append(c.Drops, recovery.Drop{Name: d.Name, Vault: d.Vault, Rules: d.Rules})
	}
	return daemon.Reconcile(ctx, c, p)
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
	Indexed int          `json:"indexed"` // documents in the index
	Found   findingsJSON `json:"found"`
	TakenIn findingsJSON `json:"takenIn"`
	Strange findingsJSON `json:"notInLedger"`
	Missing findingsJSON `json:"missing"`
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
}

func asFindings(f recovery.Findings) findingsJSON {
	out := findingsJSON{Count: f.Count, Named: []findingJSON{}}
	for _, n := range f.Named {
		one := findingJSON{BumID: string(n.Remote), Number: n.Number, Text: n.Text}
		if !n.Key.IsZero() {
			one.Key = n.Key.String()
		}
		out.Named = append(out.Named, one)
	}
	return out
}

func asReconciled(c daemon.Compared) reconciled {
	f := c.Folders
	out := reconciled{Safe: c.Safe && !c.Left, Left: c.Left, Why: append([]string{}, c.Why...), Cleared: c.Cleared, Doubted: c.Waits, Waiting: []waitingJSON{},
		Folders: foldersJSON{asFindings(f.Receipts), asFindings(f.Claimed), asFindings(f.Differ), asFindings(f.Unbelieved), asFindings(f.Returned), asFindings(f.Strange)}, Vaults: []reconciledJSON{}}
	for _, w := range c.Waiting {
		out.Waiting = append(out.Waiting, waitingJSON{w.Key.String(), w.Drop, w.Folder, w.State.String(), w.Why, inUTC(w.Until)})
	}
	for _, r := range c.Vaults {
		out.Vaults = append(out.Vaults, reconciledJSON{string(r.Vault), r.Listed, r.Reaches, r.Indexed,
			asFindings(r.Found), asFindings(r.TakenIn), asFindings(r.Strange), asFindings(r.Missing)})
	}
	return out
}

func (a *app) tellReconciled(c daemon.Compared, v view) {
	a.tellFindings("RECEIPT    ", c.Folders.Receipts)
	a.tellFindings("TAKEN      ", c.Folders.Claimed)
	a.tellFindings("DIFFERS    ", c.Folders.Differ)
	a.tellFindings("NO RECEIPT ", c.Folders.Unbelieved)
	a.tellFindings("RETURNED   ", c.Folders.Returned)
	a.tellFindings("LEFT ALONE ", c.Folders.Strange)
	for _, r := range c.Vaults {
		fmt.Fprintf(a.stdout, "VAULT      %s: %d archived in the index, %d in the status list\n", safe(string(r.Vault)), r.Indexed, r.Listed)
		a.tellFindings("  found      ", r.Found)
		a.tellFindings("  taken in   ", r.TakenIn)
		a.tellFindings("  UNKNOWN    ", r.Strange)
		a.tellFindings("  MISSING    ", r.Missing)
	}
	if c.Cleared > 0 || c.Waits > 0 {
		fmt.Fprintf(a.stdout, "IN DOUBT   %d no more, %d still\n", c.Cleared, c.Waits)
	}
	for _, w := range c.Waiting[:min(len(c.Waiting), shown)] {
		until := ""
		if !w.Until.IsZero() {
			until = ", until " + v.brief(w.Until)
		}
		fmt.Fprintf(a.stdout, "  %s %s: %s%s\n", w.Key, brief(w.Folder, 60), brief(w.Why, 160), until)
	}
	for _, why := range c.Why {
		fmt.Fprintf(a.stdout, "STAYS      %s\n", brief(why, 300))
	}
	switch {
	case c.Left:
		fmt.Fprintln(a.stdout, "RESULT     safe mode is over: vaultd takes and sends again")
	case c.Safe:
		fmt.Fprintln(a.stdout, "RESULT     SAFE MODE stays")
	case c.Differences() == 0:
		fmt.Fprintln(a.stdout, "RESULT     nothing differs")
	}
}

// shown is how many findings of one kind people see; --json has more.
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
		fmt.Fprintf(a.stdout, "    %s: %s\n", brief(id, 120), brief(n.Text, 200))
	}
	if f.Count > shown {
		fmt.Fprintf(a.stdout, "    and %d more; see --json\n", f.Count-shown)
	}
}
