package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "a consistent copy of the ledger, while vaultd works",
		Long: `Writes a copy of the ledger as it stands at this moment; vaultd goes on meanwhile.
FILE gets its name only when all of it is on the disk; it never overwrites. The copy
is then checked as "vaultd verify" checks a ledger. If it is damaged, so is the ledger
it was made of: the copy is kept, what is wrong is named, and it ends with 4.

While it is made, state_dir needs room for two copies of the ledger beyond
spool.min_free; for one where vaultd is stopped. Where so much is sent meanwhile that
the ledger's file would grow, it waits for a pause, and ends with an error if there is none.

The end of its journal is printed: keep that line where the copy is not, and an older
copy put back will be noticed.

The copy holds names and amounts, and addresses of uploads under way: treat it as the
ledger itself. "-" writes to standard output, unchecked.`,
		Example: `  vaultd backup /backup/vaultd-$(date +%F).db
  vaultd backup - | age -r age1… > vaultd.db.age`,
		Args: expectArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return a.runBackup(c, args[0]) },
	}
}

func (a *app) runBackup(c *cobra.Command, file string) error {
	into := func(w io.Writer) func(context.Context, view) error {
		return func(ctx context.Context, v view) error {
			backup := v.ledger.Backup
			if v.state == nil { // nobody else works with it
				backup = v.ledger.BackupInPlace
			}
			_, err := backup(ctx, w, v.cfg.Spool.MinFree)
			return err
		}
	}
	switch out, isFile := a.stdout.(*os.File); {
	case file == "-" && isFile && term.IsTerminal(int(out.Fd())):
		return usageError{errors.New("a ledger is nothing for a terminal; name a file")}
	case file == "-":
		return a.withLedger(c, []string{file}, into(a.stdout))
	case a.inside != nil: // it would be written with the daemon's rights
		return usageError{errors.New("the daemon writes no files for others")}
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	copied, err := newCopy(file, func(w io.Writer) error {
		return a.runThroughDaemon(c.Context(), cfg, commandLine(c, []string{"-"}, nil), w, into(w))
	})
	if err != nil {
		return err
	}
	found, err := boltledger.VerifyFile(c.Context(), file)
	if err != nil {
		return fail(exitIO, fmt.Errorf("%s was written and could not be checked: %w", sanitize.Text(file), err), "make another one, and run vaultd verify")
	}
	return a.tellBackup(copied, found)
}

// backedUp is the object of "backup --json".
type backedUp struct {
	File        string `json:"file"`
	Size        int64  `json:"bytes"`
	Ledger      string `json:"ledgerId"`
	Environment string `json:"environment"`
	HeadLine    uint64 `json:"headLine"`
	HeadHash    string `json:"headHash"`
	Key         string `json:"receiptKey"` // public key of its receipts

	Whole    bool     `json:"whole"`    // nothing is wrong with it
	Problems []string `json:"problems"` // the first few
}

func (a *app) tellBackup(b backedUp, found []ledger.Problem) error {
	b.Whole, b.Problems = len(found) == 0, []string{}
	for _, p := range found[:min(len(found), present.NamedAtMost)] {
		b.Problems = append(b.Problems, p.String())
	}
	if a.json {
		if err := writeJSON(a.stdout, b); err != nil {
			return err
		}
	} else {
		b.writeText(a.stdout)
	}
	if b.Whole {
		return nil
	}
	return fail(exitDifferences, fmt.Errorf("the ledger is damaged, and its copy %s is: %s found", sanitize.Text(b.File), present.FormatCount(len(found), "difference", "differences")),
		"do not restore this copy: "+whenDamaged)
}

func (b backedUp) writeText(w io.Writer) {
	fmt.Fprintf(w, "BACKUP   %s, %s\nLEDGER   %s, %s\nJOURNAL  %s, up to %s\nRECEIPTS %s\n",
		sanitize.Text(b.File), present.FormatSize(b.Size), sanitize.Text(b.Ledger), b.Environment, present.FormatCount(b.HeadLine, "line", "lines"), b.HeadHash, b.Key)
	for _, p := range b.Problems {
		fmt.Fprintf(w, "DIFFERS  %s\n", sanitize.Text(p))
	}
	if b.Whole {
		fmt.Fprintln(w, "The copy was checked and is whole.")
	}
}

// newCopy writes a new file, which gets its name once it is on the disk and was inspected.
func newCopy(file string, write func(io.Writer) error) (b backedUp, err error) {
	f := newFile{path: file, mode: 0o600, what: "backup", skipped: "written", hint: "name another file", inspect: func(path string) (err error) {
		b, err = inspectCopy(path)
		return err
	}}
	_, err = f.writeWhole(write)
	b.File = file
	return b, err
}

// inspectCopy opens the copy as a start opens the ledger.
func inspectCopy(file string) (b backedUp, err error) {
	info, err := os.Stat(file)
	if err != nil {
		return b, fmt.Errorf("look at the backup: %w", err)
	}
	var head ledger.Head
	about, head, err := boltledger.InspectFile(file)
	if err != nil {
		return b, fail(exitIO, err, "the copy was thrown away; try again, and run vaultd verify")
	}
	return backedUp{File: file, Size: info.Size(), Ledger: about.ID, Environment: about.Environment, HeadLine: head.N, HeadHash: head.Hash.String(), Key: about.ReceiptKeys[0]}, nil
}
