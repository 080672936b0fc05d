package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "hold the ledger to its promises",
		Long: `Checks every record's checksum, the chain of the journal from its first line on, and
all that is derived from them; then replays the journal and holds every entry
against it. It changes nothing in the ledger and asks nobody. While vaultd runs it reads
a copy of one moment, which needs room in state_dir beyond spool.min_free. Exit code 4
means differences.

Where nothing differs it leaves a checkpoint, as the daemon's daily check does. The next
verify goes on from there: it reads the lines that came since, and every entry that is on
its way or that one of those lines is about. Under RESTS ON it says from which line, time
and hash it goes on, and what it did not read again: what became of older records since
then it cannot tell. --whole reads everything. So does every verify where the checkpoint
is missing or cannot be used, and where everything was read last more than 7 days ago.

With --head it reads everything, and says whether the journal still contains a head
that somebody kept: the log has one of each start and each day, and so have each
receipt and each report. Where the journal does not, its past was written anew, lines
are missing, or it is another ledger.

With --receipt it does something else: it says whether the signature of a _RECEIPT.json or
_DELIVERED.json holds with a key of this ledger, or with --key with one that a drop.json
or a report names; then it needs no ledger.

With --archive it does something else: it downloads archived documents and compares
them with what was sent, so many (60) or such a part of all of them (5%). Those that
nobody ever downloaded come first, the oldest first; a document that was compared is
downloaded again only once all others were. The provider may charge for downloads: it
stops where the month has none left (billing.downloads_per_month). The bytes are not
kept; what came of each is journaled, and every audit counts them.`,
		Example: `  vaultd verify
  vaultd verify --whole
  vaultd verify --json
  vaultd verify --head 2026-10.html
  vaultd verify --receipt _RECEIPT.json
  vaultd verify --receipt _RECEIPT.json --key 2026-10.html
  vaultd verify --archive 60
  vaultd verify --archive 0.5%`,
		Args: expectArgs(),
	}
	part := c.Flags().String("archive", "", "download and compare archived documents: a `number`, or a part of all such as 5%")
	head := c.Flags().String("head", "", "find out whether the journal still contains a head that was kept: `LINE:HASH`, or a receipt, report or log that has one")
	receipt := c.Flags().String("receipt", "", "find out whether the signature of a receipt or a delivery note holds: its `file`")
	key := c.Flags().String("key", "", "the public key to check --receipt with: the key, or a drop.json or report that names it")
	whole := c.Flags().Bool("whole", false, "read the whole ledger, whatever was verified before")
	c.MarkFlagsMutuallyExclusive("archive", "whole")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case *receipt != "" && (*head != "" || *part != "" || *whole):
			return usageError{errors.New("--receipt checks a signature alone; give it without --head, --archive and --whole")}
		case *receipt != "":
			return a.verifyReceipt(c, args, *receipt, *key)
		case *key != "":
			return usageError{errors.New("--key is for --receipt")}
		}
		return a.verifyAsAsked(c, args, *head, *part, *whole)
	}
	return c
}

// verifyAsAsked checks the ledger, or with a part the archive.
func (a *app) verifyAsAsked(c *cobra.Command, args []string, head, part string, whole bool) error {
	if head != "" && part != "" {
		return usageError{errors.New("--archive compares documents and --head the journal; give one of them")}
	}
	kept, err := a.readKeptHeads(head)
	if err != nil {
		return err
	}
	if head != "" { // the daemon gets the heads, not the file's name
		if err := c.Flags().Set("head", joinHeads(kept)); err != nil {
			return err
		}
	}
	if !c.Flags().Changed("archive") {
		return a.withLedger(c, args, func(ctx context.Context, v view) error {
			return a.runVerify(ctx, v, extent(whole || len(kept) > 0), kept)
		})
	}
	many, err := parsePortion(part)
	if err != nil {
		return err
	}
	return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.verifyArchive(ctx, v, many) })
}

// extent is how much of the ledger is read.
type extent bool

const (
	sinceCheckpoint extent = false
	wholeLedger     extent = true
)

func (a *app) runVerify(ctx context.Context, v view, what extent, kept []ledger.Head) error {
	found, err := v.verifyLedger(ctx, v.verification(what))
	if err != nil {
		return err
	}
	if err := found.compareHeads(v.ledger, kept); err != nil {
		return err
	}
	if !found.OK && a.inside != nil {
		a.inside.CheckNow()
	}
	counts, err := v.compareCatalog(ctx)
	if err != nil {
		return err
	}
	found.CatalogDiffers, found.CatalogNotCompared = counts.Differs, counts.NotDone
	if a.json {
		err = writeJSON(a.stdout, found)
	} else {
		found.catalog = v.describeCatalog(counts)
		found.writeText(a.stdout)
	}
	switch n := len(found.Problems) + len(found.Findings) + int(found.Omitted); {
	case err != nil:
		return err
	case n > 0:
		return fail(exitDifferences, fmt.Errorf("%s found", present.FormatCount(n, "difference", "differences")),
			whenDamaged)
	}
	return nil
}

// compareCatalog compares the catalog's counts with the ledger's balance.
func (v view) compareCatalog(ctx context.Context) (catalog.Comparison, error) {
	c, release := v.openCatalog()
	counts := c.Compare(ctx)
	return counts, release()
}

// describeCatalog says what is wrong with the catalog's counts, and that nothing rests on them; empty: nothing is.
func (v view) describeCatalog(counts catalog.Comparison) string {
	switch {
	case counts.Differs != "" && v.state != nil:
		return "does not count as the ledger does: " + counts.Differs + "; the running vaultd makes it anew. Audit and verify do not rest on it"
	case counts.Differs != "":
		return "does not count as the ledger does: " + counts.Differs + "; vaultd makes it anew when it starts. Audit and verify do not rest on it"
	case counts.NotDone != "":
		return "its counts were not compared: " + counts.NotDone
	}
	return ""
}

func (v view) verifyLedger(ctx context.Context, how selfcheck.Verification) (verdict, error) {
	info := v.ledger.Info()
	d := verdict{Ledger: info.ID, Keys: info.ReceiptKeys, Test: info.Environment != "production", Problems: []verdictProblem{}, Findings: []verdictFinding{}}
	if s, is := v.ledger.SafeMode(); is {
		d.SafeMode = v.unknownSince(s)
	}
	verify := how.Verify
	if v.state != nil { // the daemon works with it
		verify = func(ctx context.Context, l *boltledger.Ledger) (selfcheck.Verified, error) {
			return how.VerifyCopy(ctx, l, v.cfg.Spool.MinFree)
		}
	}
	found, err := verify(ctx, v.ledger)
	if err != nil {
		return d, err
	}
	for _, p := range found.Problems {
		d.Problems = append(d.Problems, verdictProblem{p.Where, p.What})
	}
	if found.OtherPast != "" {
		d.Problems = append(d.Problems, verdictProblem{"journal", found.OtherPast})
	}
	d.NotUsed = found.NotUsed
	if b := found.Basis; b != nil {
		d.RestsOn = &verdictBasis{Line: b.Line, Hash: b.Hash.String(), At: isoTime(b.At), WholeAt: isoTime(b.Whole), WholeLine: b.ToLine,
			Resting: found.Resting, at: v.Exact(b.At), whole: v.Exact(b.Whole)}
	}
	d.NotSaved = found.NotSaved
	if !found.Proven {
		return d, nil
	}
	d.setReport(found)
	d.Double, d.Twice, d.SentTwice = v.separateByRoute(found.Report.Double)
	d.OK = found.OK()
	return d, nil
}

func isoTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (d *verdict) setReport(v selfcheck.Verified) {
	r := v.Report
	d.LinesRead, d.EntriesRead = v.Lines, r.Entries
	d.Lines, d.Entries, d.HeadLine, d.HeadHash, d.Balance = r.Lines, r.Entries+v.Resting, r.Head.N, r.Head.Hash.String(), r.Balance.String()
	d.Omitted, d.LostPosts, d.PutBack, d.Replayed = r.Omitted, r.LostPosts, r.PutBack, true
	d.Archived, d.Compared, d.Differ = r.Sample.Archived, r.Sample.Compared, r.Sample.Differ
	d.Accepted, d.Indexes = r.Accepted, []string{}
	for _, i := range r.Indexes {
		d.Indexes = append(d.Indexes, fmt.Sprintf("vault %s gave %s; accepted by uid %d at %s", i.Vault, i.Gave, i.UID, i.At))
	}
	for _, f := range r.Findings {
		one := verdictFinding{Promise: f.Promise, Text: f.Text}
		if !f.Key.IsZero() {
			one.Key = f.Key.String()
		}
		d.Findings = append(d.Findings, one)
	}
	d.Unused = []string{}
	for _, o := range r.Orphans {
		d.Unused = append(d.Unused, string(o.Remote))
	}
	d.NeedReconcile, d.Unclear, d.InDoubt = keyTexts(r.NeedReconcile), keyTexts(r.Unclear), keyTexts(r.InDoubt)
}

// separateByRoute separates what is possibly double at the archive from the PDFs that were possibly processed twice, and from the network documents
// that were possibly sent twice. An entry that cannot be read
// counts as one of the archive: the findings tell of it.
func (v view) separateByRoute(keys []archive.Key) (double, processed, sent []string) {
	double = []string{}
	for _, k := range keys {
		to := &double
		if e, ok, err := v.ledger.Entry(k); err == nil && ok {
			to = cmp.Or(map[ledger.Route]*[]string{ledger.PDF: &processed, ledger.Network: &sent}[e.Route], to)
		}
		*to = append(*to, k.String())
	}
	return double, processed, sent
}

func keyTexts(keys []archive.Key) []string {
	texts := []string{}
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	return texts
}

// unknownSince says why a ledger is in safe mode, and what it does not know.
func (v view) unknownSince(s ledger.SafeMode) string {
	if s.KnownUntil.IsZero() {
		return present.DescribeSafeMode(s) + "; what it says is not known to be all"
	}
	return present.DescribeSafeMode(s) + "; what was done after " + v.Exact(s.KnownUntil) + " is not known"
}
