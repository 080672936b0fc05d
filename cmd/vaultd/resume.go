package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) resumeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "resume ROUTE --reason TEXT",
		Short: "let go on what was stopped until a person has looked",
		Long: `When far more archived folders of a drop are due for removal than usual, nothing of it
is removed or moved before a person has looked: the cause may be a clock that is wrong
by years, or a grace that was changed by mistake. "vaultd status" then shows a pause
"disposal of NAME". This command approves it: all that is due now goes.

Look first: is the date of this machine right? Is after_archive what you want? To keep
the folders instead, set action: keep, or a longer grace, and reload: what is configured
now decides, not what was when they were archived.

The other pause that waits for a person is "pdf store": nobody knows what became of three
uploads of PDFs in a row, and nobody can be asked. Each further one may end so as well,
and has to be looked for. Look first: does the store work again? Without this command one
PDF is tried after two hours, and then ever more rarely.

All other pauses end by themselves, once what caused them is mended. Who approved stands
in the journal for ever, with the number of folders and a digest of the reason.`,
		Example: `  vaultd resume "disposal of acme-in" --reason "first month end with action: delete, 3000 invoices, all archived"
  vaultd resume "pdf store" --reason "the provider says that the store works again"`,
		Args:                  expectArgs("ROUTE (as status shows it, such as \"disposal of acme-in\")"),
		DisableFlagsInUseLine: true,
	}
	reason := reasonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := requireReason(c, *reason); err != nil {
			return err
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.runResume(ctx, v, args[0], *reason) })
	}
	return c
}

// resumedJSON is the object that "resume --json" prints.
type resumedJSON struct {
	Act     string `json:"act"`
	UID     uint32 `json:"uid"` // who acted
	Drop    string `json:"drop"`
	Folders int    `json:"folders"` // that are due now, and go
}

func (a *app) runResume(ctx context.Context, v view, what, reason string) error {
	target, err := ingest.ParseTarget(what)
	if err == nil && target == ingest.PDFStoreTarget() {
		return a.resumeUploads(ctx, v, target, reason)
	}
	if err != nil || target.Purpose != ingest.ToDispose {
		return usageError{fmt.Errorf("%q is not a pause that waits for a person; the others end by themselves once what caused them is mended: see vaultd status", sanitize.Text(what))}
	}
	h, err := a.operatorActions(v)
	if err != nil {
		return err
	}
	n, err := h.ApproveDisposal(ctx, target.Drop, operator.Person{UID: a.uid, Reason: strings.TrimSpace(reason)})
	if errors.Is(err, operator.ErrNothingDue) {
		return fail(exitFailed, err, "nothing was changed; see vaultd status for the names of drops")
	}
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, resumedJSON{"disposal-approved", a.uid, target.Drop, n})
	}
	fmt.Fprintf(a.stdout, "%s of drop %s may be removed now, by %s\n", present.FormatCount(n, "archived folder", "archived folders"), sanitize.Text(target.Drop), present.UserName(a.uid))
	if v.state == nil {
		fmt.Fprintln(a.stdout, "  vaultd is not running: it goes on with the next run")
	}
	return nil
}

// resumedUploadsJSON is the object that "resume --json" prints for a store.
type resumedUploadsJSON struct {
	Act   string `json:"act"`
	UID   uint32 `json:"uid"` // who acted
	Route string `json:"route"`
}

// resumeUploads lets the uploads to a store go on.
func (a *app) resumeUploads(ctx context.Context, v view, store ingest.Target, reason string) error {
	h, err := a.operatorActions(v)
	if err != nil {
		return err
	}
	err = h.ResumeUploads(ctx, store, operator.Person{UID: a.uid, Reason: strings.TrimSpace(reason)})
	switch {
	case errors.Is(err, operator.ErrNotPaused) && v.state == nil:
		return fail(exitFailed, err, "vaultd is not running, and a pause of a store ends with the process: the next run goes on by itself")
	case errors.Is(err, operator.ErrNotPaused):
		return fail(exitFailed, err, "nothing was changed; see vaultd status for what is paused")
	case err != nil:
		return err
	case a.json:
		return writeJSON(a.stdout, resumedUploadsJSON{ledger.MarkUploadsResumed, a.uid, store.String()})
	}
	fmt.Fprintf(a.stdout, "uploads to %s go on, by %s\n", store, present.UserName(a.uid))
	return nil
}
