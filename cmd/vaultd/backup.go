package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/selfcheck"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "a consistent copy of the ledger, while vaultd works",
		Long: `Writes a copy of the ledger as it stands at this moment; vaultd goes on meanwhile.
FILE gets its name only when all of it is on the disk and was read back; it never
overwrites. The ledger is checked before, as "vaultd verify --whole" does, in a copy of
one moment. If that is damaged, it is kept as it is in FILE.damaged, what is wrong is
named, and it ends with 4. If it could not be checked, there is no backup, and the error
says why.

While vaultd runs, state_dir needs room for a copy of the ledger beyond
spool.min_free. Where so much is sent meanwhile that
the ledger's file would grow, it waits for a pause, and ends with an error if there is none.

The end of its journal is printed: keep that line where the copy is not, and an older
copy put back will be noticed.

The copy holds names and amounts, and addresses of uploads under way: treat it as the
ledger itself. "-" writes to standard output, once the check has ended; its exit code says
what the check found.`,
		Example: `  vaultd backup /backup/vaultd-$(date +%F).db
  vaultd backup - | age -r age1… > vaultd.db.age`,
		Args: expectArgs("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return a.runBackup(c, args[0]) },
	}
}

func (a *app) runBackup(c *cobra.Command, file string) error {
	into := func(w io.Writer) func(context.Context, view) error {
		return func(ctx context.Context, v view) error { return v.backUp(ctx, w) }
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
	b := backedUp{Problems: []string{}, written: sha256.New()}
	f := newFile{path: file, mode: 0o600, what: "backup", skipped: "written", hint: "name another file", keptCode: exitDifferences, keptSuffix: ".damaged",
		inspect: b.inspect}
	path, err := f.writeWhole(func(w io.Writer) error {
		w = io.MultiWriter(w, b.written)
		return a.runThroughDaemon(c.Context(), cfg, commandLine(c, []string{"-"}, nil), w, into(w))
	})
	if path == "" {
		return err
	}
	if b.File, b.Whole = path, err == nil; !b.Whole {
		if notListed := b.listProblems(c.Context()); notListed != nil {
			b.Problems = append(b.Problems, notListed.Error())
		}
	}
	if a.json {
		return errors.Join(err, writeJSON(a.stdout, b))
	}
	b.writeText(a.stdout)
	return err
}

// backUp writes a checked backup of the ledger, or a copy of a damaged one as it is.
func (v view) backUp(ctx context.Context, w io.Writer) (err error) {
	how := v.verification(wholeLedger)
	var copied *os.File
	var found selfcheck.Verified
	if v.state == nil { // nobody else works with it
		found, err = how.Verify(ctx, v.ledger)
	} else {
		copied, found, err = how.CheckCopy(ctx, v.ledger, v.cfg.Spool.MinFree)
	}
	if err != nil {
		return fmt.Errorf("there is no backup, because the ledger could not be checked: %w", err)
	}
	if !found.IsDamaged() {
		_, err := v.ledger.Backup(ctx, w, copied)
		return err
	}
	// There may be no better one.
	if copied == nil {
		if copied, err = v.ledger.Copy(ctx, v.cfg.Spool.MinFree); err != nil {
			return err
		}
	}
	_, err = io.Copy(w, io.NewSectionReader(copied, 0, math.MaxInt64))
	if err := errors.Join(err, copied.Close()); err != nil {
		return err
	}
	n := len(found.Problems) + len(found.Report.Findings) + int(found.Report.Omitted)
	return fail(exitDifferences, &ledger.DamageError{What: present.FormatCount(n, "difference", "differences") + " found; so is this copy of it"}, "do not restore this copy: "+whenDamaged)
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

	written hash.Hash // of the bytes
}

func (b backedUp) writeText(w io.Writer) {
	fmt.Fprintf(w, "BACKUP   %s, %s\n", sanitize.Text(b.File), present.FormatSize(b.Size))
	if b.Ledger != "" {
		fmt.Fprintf(w, "LEDGER   %s, %s\nJOURNAL  %s, up to %s\nRECEIPTS %s\n",
			sanitize.Text(b.Ledger), b.Environment, present.FormatCount(b.HeadLine, "line", "lines"), b.HeadHash, b.Key)
	}
	for _, p := range b.Problems {
		fmt.Fprintf(w, "DIFFERS  %s\n", sanitize.Text(p))
	}
	if b.Whole {
		fmt.Fprintln(w, "The ledger was checked and the file was read back: it is whole.")
	}
}

// listProblems notes what is wrong with a damaged copy.
func (b *backedUp) listProblems(ctx context.Context) error {
	f, err := os.Open(b.File)
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer f.Close() // read-only
	found, err := selfcheck.Verification{Whole: true, Now: time.Now, Executable: thisProgram}.VerifyFile(ctx, f)
	for _, p := range found.Problems[:min(len(found.Problems), present.NamedAtMost)] {
		b.Problems = append(b.Problems, p.String())
	}
	if err != nil || found.HasUnreadPages() {
		return err
	}
	return b.look(b.File)
}

// inspect reads the copy back, and opens it as a start opens the ledger.
func (b *backedUp) inspect(path string) error {
	if err := cmp.Or(b.readBack(path), b.look(path)); err != nil {
		return fail(exitIO, err, "the copy was thrown away; try again, and run vaultd verify")
	}
	return nil
}

// readBack compares the bytes of a synced file with those that were written.
func (b *backedUp) readBack(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	defer f.Close()                                         // read-only
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // so that the disk is asked, where it can be
	read := sha256.New()
	if _, err := io.Copy(read, f); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	if !bytes.Equal(read.Sum(nil), b.written.Sum(nil)) {
		return errors.New("the disk gives other bytes of the backup than were written")
	}
	return nil
}

// look notes what the copy says of itself.
func (b *backedUp) look(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("look at the backup: %w", err)
	}
	defer f.Close() // read-only
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at the backup: %w", err)
	}
	b.Size = info.Size()
	about, head, err := boltledger.InspectOpenFile(f)
	if err == nil {
		b.Ledger, b.Environment, b.HeadLine, b.HeadHash, b.Key = about.ID, about.Environment, head.N, head.Hash.String(), about.ReceiptKeys[0]
	}
	return err
}
