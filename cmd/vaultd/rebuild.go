package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/recovery"
	"vaultd/internal/sanitize"
)

func (a *app) rebuildCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "make a lost ledger anew from what lies in the drop folders",
		Long: `For when the ledger is gone or damaged and there is no backup. Makes a new one of what
lies in the drop folders: archived folders by their receipts, folders that had been
taken and not archived, and folders that had been given back. All drop folders must be
there; they tell which ledger it was, and with which key it signed its receipts. A
receipt that no such key signed tells what its folder holds; that it is archived, the
archive must say. A damaged ledger is kept beside the new one, and
one that is whole is never replaced. vaultd must be stopped.

The new ledger is in safe mode: "vaultd reconcile" then asks the archive what else it
has, and until then nothing is taken, sent, moved or removed. Kept folders stay until a
person says otherwise. What cannot be known any more is named at the end.

If there is a backup, use it instead: see "vaultd help restore".`,
		Example: `  systemctl stop vaultd
  sudo vaultd rebuild --reason "disk failed, no backup"
  systemctl start vaultd
  vaultd reconcile`,
		Args: expectArgs(),
	}
	reason := reasonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkReason(c, *reason); err != nil {
			return err
		}
		return a.runRebuild(c, strings.TrimSpace(*reason))
	}
	return c
}

// aloneLabel begins the list of folders that only an unsigned receipt calls
// archived or delivered.
const aloneLabel = "BY RECEIPT ALONE "

// rebuilt is the object of "rebuild --json".
type rebuilt struct {
	Ledger      string       `json:"ledgerId"`
	Environment string       `json:"environment"`
	Epoch       uint64       `json:"epoch"`
	Kept        string       `json:"keptAs"`
	Receipts    findingsJSON `json:"archivedByReceipt"`
	Alone       findingsJSON `json:"byReceiptAlone"`
	Claimed     findingsJSON `json:"taken"`
	Returned    findingsJSON `json:"returned"`
	Differ      findingsJSON `json:"differFromReceipt"`
	Unbelieved  findingsJSON `json:"withoutReceipt"`
	Strange     findingsJSON `json:"leftAlone"`
	Untrusted   []string     `json:"untrustedKeys"`
	Unknowable  []string     `json:"cannotBeKnown"`
}

func (a *app) runRebuild(c *cobra.Command, reason string) error {
	var r daemon.Rebuilt
	err := a.withRecoveryConfig(func(dc daemon.Config) (err error) {
		r, err = daemon.Rebuild(c.Context(), dc, operator.Person{UID: a.uid, Reason: reason})
		return err
	})
	if errors.Is(err, ledger.ErrExists) {
		return fail(exitCreate, err, `nothing was changed; "vaultd verify" checks it, "vaultd reconcile" holds it against the archive; `+adviceMoveNewLedger)
	}
	if unmarked, ok := errors.AsType[*daemon.UnmarkedError](err); ok {
		return fail(exitConfig, unmarked, `for a new installation run "vaultd init"; otherwise check the drops' paths`)
	}
	if err != nil {
		return err
	}
	f := r.Folders
	out := rebuilt{r.Info.ID, r.Info.Environment, max(r.Info.Epoch, 1), r.Kept, asFindings(f.Receipts), asFindings(f.Alone), asFindings(f.Claimed), asFindings(f.Returned),
		asFindings(f.Differ), asFindings(f.Unbelieved), asFindings(f.Strange), append([]string{}, r.Untrusted...), recovery.ListUnrecoverable()}
	if a.json {
		return writeJSON(a.stdout, out)
	}
	fmt.Fprintf(a.stdout, "REBUILT    %s%s, epoch %d\n", sanitize.Text(out.Ledger), testMark(out.Environment != "production"), out.Epoch)
	fmt.Fprintf(a.stdout, "ARCHIVED   %d by their receipts\nTAKEN      %d that go on\nRETURNED   %d\n", f.Receipts.Count, f.Claimed.Count, f.Returned.Count)
	for _, why := range r.Untrusted {
		fmt.Fprintf(a.stdout, "KEYS       %s: what they signed counts as unsigned\n", sanitize.Text(why))
	}
	a.tellFindings(aloneLabel, f.Alone)
	a.tellFindings("DIFFERS    ", f.Differ)
	a.tellFindings("NO RECEIPT ", f.Unbelieved)
	a.tellFindings("LEFT ALONE ", f.Strange)
	a.tellKept(out.Kept)
	fmt.Fprintln(a.stdout, "CANNOT BE KNOWN ANY MORE")
	for _, u := range out.Unknowable {
		fmt.Fprintf(a.stdout, "  %s\n", u)
	}
	a.tellSafeMode()
	return nil
}
